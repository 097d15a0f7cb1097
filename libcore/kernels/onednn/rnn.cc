// SPDX-License-Identifier: Apache-2.0
// rnn and its gradient in floats: oneDNN's matrix product, our cells.
#include "libcore/kernels/cpu/rnn_cells.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/recurrent/rnn_bind.h"

namespace pd {
namespace onednn {
namespace {

struct FastRnnMath {
  static void Product(const GemmShape& shape, const float* a, const float* b,
                      float* c) {
    Sgemm(shape, a, b, c);
  }
  static void Cell(RnnMode mode, int64_t n, const float* from_h, float* gates,
                   float* extra, float* h, float* c) {
    cpu::VectorRnnCell(mode, n, from_h, gates, extra, h, c);
  }
  static void CellGrad(RnnMode mode, int64_t n, const RnnCellState<float>& s,
                       float* dh, float* dc, float* dx, float* dgh) {
    cpu::VectorRnnCellGrad(mode, n, s, dh, dc, dx, dgh);
  }
};

absl::Status ExpectFloats(BindContext* context) {
  const Tensor* x = context->Input("Input");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x->size() == 0) return Unimplemented("there are no steps");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> BindRnn(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectFloats(context));
  return BindRnnWith<float, FastRnnMath>(context);
}

absl::StatusOr<Step> BindRnnGrad(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectFloats(context));
  return BindRnnGradWith<float, FastRnnMath>(context);
}

}  // namespace onednn
}  // namespace pd
