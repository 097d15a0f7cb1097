// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_matmul with the tiles of the other 8-bit products.
#include <memory>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/dynamic_product.h"

namespace pd {
namespace int8 {

absl::StatusOr<Step> BindDynamicMatmul(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const Int8Product p,
                      ReadInt8Product(context->op(), x->shape(),
                                      context->Input("Filter")->shape()));
  if (p.rows == 0 || p.depth == 0 || p.columns == 0)
    return Unimplemented("there is nothing to do");
  PD_ASSIGN_OR_RETURN(const Int8Weights w, ReadInt8Weights(context));
  const auto product = std::make_shared<const DynamicProduct>(w);
  for (const char* slot : {"Filter", "FilterScale", "FilterZero"})
    if (Tensor* constant = context->Input(slot)) context->NoBuffer(constant);
  Tensor* scratch = context->Scratch(product->ScratchBytes(p.rows));
  return Step([product, x, out, scratch, rows = p.rows](const RunContext&) {
    product->Run(x->data<float>(), rows, out->data<float>(),
                 scratch->data<uint8_t>());
    return absl::OkStatus();
  });
}

}  // namespace int8
}  // namespace pd
