// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_rnn: the products of int8_dynamic_matmul, our cells.
#include <memory>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/rnn_cells.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/dynamic_product.h"
#include "libcore/ops/quantize/int8_dynamic_rnn.h"

namespace pd {
namespace int8 {
namespace {

struct FastMath {
  std::vector<DynamicProduct> products;
  Tensor* scratch = nullptr;

  void Product(size_t matrix, const float* x, int64_t rows, float* out) const {
    products[matrix].Run(x, rows, out, scratch->data<uint8_t>());
  }
  static void Cell(RnnMode mode, int64_t n, const float* from_h, float* gates,
                   float* extra, float* h, float* c) {
    cpu::VectorRnnCell(mode, n, from_h, gates, extra, h, c);
  }
};

}  // namespace

absl::StatusOr<Step> BindDynamicRnn(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const RnnInputs inputs,
                      ReadRnnInputs(context, /*float_matrices=*/false));
  const RnnDims& d = inputs.dims;
  if (inputs.x->size() == 0) return Unimplemented("there are no steps");
  PD_ASSIGN_OR_RETURN(const std::vector<Int8Weights> weights,
                      ReadDynamicRnnWeights(context, d));
  auto math = std::make_shared<FastMath>();
  size_t scratch = 0;
  for (const Int8Weights& w : weights) {
    math->products.emplace_back(w);
    scratch = std::max(scratch, math->products.back().ScratchBytes(d.rows()));
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    context->NoBuffer(context->Input("WeightList", i));
    context->NoBuffer(context->Input("WeightScale", i));
  }
  math->scratch = context->Scratch(scratch);
  return BindDynamicRnnWith(context, inputs,
                            std::shared_ptr<const FastMath>(std::move(math)));
}

}  // namespace int8
}  // namespace pd
