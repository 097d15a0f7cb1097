// SPDX-License-Identifier: Apache-2.0
// Gradients of z = W[row] . X[n] + Bias[row] for some pairs (n, row), as
// hierarchical_sigmoid and nce compute it: of X [N, D], of Bias, and of W, the
// latter dense or as SelectedRows, one for each pair.
#ifndef PD_LIBCORE_OPS_LOSS_LINEAR_ROWS_H_
#define PD_LIBCORE_OPS_LOSS_LINEAR_ROWS_H_

#include <cstdint>
#include <cstring>

#include "libcore/base/status_macros.h"
#include "libcore/ops/infer_context.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Where the gradients go; null: not asked for.
struct LinearRowsGrad {
  Tensor *dx = nullptr, *dw = nullptr, *dbias = nullptr;
  bool sparse = false;
  int64_t pairs = 0;

  /// Sets all to 0, and every pair's row to the first.
  void Begin(const Tensor& w) const {
    for (Tensor* t : {dx, dw, dbias})
      if (t != nullptr && t->bytes() > 0) std::memset(t->raw(), 0, t->bytes());
    if (dw == nullptr || !sparse) return;
    dw->set_height(w.dim(0));
    dw->rows().assign(static_cast<size_t>(pairs), 0);
  }

  /// Adds the gradient d of z of sample n and `row`, which are this pair.
  template <typename T>
  void Add(const Tensor& x, const Tensor& w, int64_t pair, int64_t n,
           int64_t row, T d) const {
    const int64_t width = x.dim(1);
    if (dbias != nullptr) dbias->data<T>()[row] += d;
    if (dx != nullptr) {
      const T* weights = w.data<T>() + row * width;
      T* to = dx->data<T>() + n * width;
      for (int64_t k = 0; k < width; ++k) to[k] += d * weights[k];
    }
    if (dw == nullptr) return;
    if (sparse) dw->rows()[static_cast<size_t>(pair)] = row;
    const T* in = x.data<T>() + n * width;
    T* to = dw->data<T>() + (sparse ? pair : row) * width;
    for (int64_t k = 0; k < width; ++k) to[k] += d * in[k];
  }
  /// A pair that is not there: zeros of this row.
  void Skip(int64_t pair, int64_t row) const {
    if (dw != nullptr && sparse) dw->rows()[static_cast<size_t>(pair)] = row;
  }
};

/// The gradients of an op's inputs, that of `weight` [height, width] with a row
/// for each element of `pairs` where the attribute is_sparse says so.
inline absl::Status InferLinearRowsGrad(InferContext* context,
                                        const char* weight, const char* pairs) {
  PD_RETURN_IF_ERROR(InferGradLikeInput(context));
  if (!context->Attr<bool>("is_sparse")) return absl::OkStatus();
  const TensorMeta& w = context->Input(weight);
  const Shape& each = context->Input(pairs).shape;
  if (w.shape.size() != 2)
    return InvalidArgument("'%s' has shape %s; expected [rows, width]", weight,
                           ToString(w.shape));
  TensorMeta grad;
  grad.dtype = w.dtype;
  grad.kind = VarKind::kSelectedRows;
  grad.height = w.shape[0];
  grad.shape = {IsDynamic(each) ? -1 : NumElements(each), w.shape[1]};
  context->SetOutput(absl::StrCat(weight, "@GRAD"), std::move(grad));
  return absl::OkStatus();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_LINEAR_ROWS_H_
