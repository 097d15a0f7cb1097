// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_matmul: float32 rows times constant 8-bit weights, by integers
// (int8_dynamic.h). Input is flattened to a matrix at x_num_col_dims; the
// weights are those of int8_matmul (int8.h).
#include "libcore/ops/quantize/int8_dynamic.h"

#include <memory>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindDynamic(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const Int8Product p,
                      ReadInt8Product(context->op(), x->shape(),
                                      context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(Int8Weights read, ReadInt8Weights(context));
  const auto w = std::make_shared<const Int8Weights>(std::move(read));
  Tensor* bytes = context->Scratch(static_cast<size_t>(p.rows * p.depth));
  return Step([=](const RunContext&) {
    ParallelFor(p.rows, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const float* in = x->data<float>() + r * p.depth;
        uint8_t* u = bytes->data<uint8_t>() + r * p.depth;
        const DynamicRow row = DynamicRow::Of(in, p.depth);
        for (int64_t k = 0; k < p.depth; ++k)
          u[k] = static_cast<uint8_t>(row(in[k]));
        for (int64_t o = 0; o < p.columns; ++o) {
          const int8_t* weights = w->values.data() + o * p.depth;
          int32_t sum = 0;
          for (int64_t k = 0; k < p.depth; ++k)
            sum += (u[k] - row.zero) * weights[k];
          out->data<float>()[r * p.columns + o] =
              static_cast<float>(sum) *
              (row.scale * w->scales[static_cast<size_t>(o)]);
        }
      }
    });
    return absl::OkStatus();
  });
}

absl::Status InferDynamic(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  if (x.dtype != DType::kFloat32)
    return InvalidArgument("'Input' is %s; expected float32", Name(x.dtype));
  PD_ASSIGN_OR_RETURN(
      const Int8Product p,
      ReadInt8Product(context->op(), x.shape, context->Input("Filter").shape));
  if (p.depth > kMostDynamicDepth)
    return InvalidArgument(
        "'Input' has rows of %d numbers; expected at most "
        "%d",
        p.depth, kMostDynamicDepth);
  context->SetOutput("Output", p.shape, DType::kFloat32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterInt8Dynamic(OpRegistry* registry) {
  OpDef def("int8_dynamic_matmul");
  def.Input("Input");
  AddInt8Weights(&def);
  def.Output("Output");
  def.Attr("x_num_col_dims", int32_t{1}).Attr("trans_y", false);
  def.Infer(InferDynamic).NoGrad().Reference(BindDynamic);
  return registry->Add(std::move(def));
}

}  // namespace pd
