// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/linear_rows.h"

#include <limits>

namespace pd::cuda {

absl::StatusOr<LinearRows> LinearRows::Make(BindContext* context,
                                            DeviceBinding* binding, Tensor* x,
                                            Tensor* w, int64_t columns,
                                            const LinearRowsGrad& to) {
  PD_RETURN_IF_ERROR(OnlyFloat32({x, w, to.dx, to.dw, to.dbias}));
  LinearRows grads;
  grads.to_ = to;
  grads.device_ = CudaOf(binding);
  grads.x_ = x;
  grads.w_ = w;
  grads.args_.samples = x->dim(0);
  grads.args_.columns = columns;
  grads.args_.width = x->dim(1);
  const int64_t pairs = grads.args_.samples * columns;
  if (pairs * grads.args_.width == 0 ||
      pairs > std::numeric_limits<int32_t>::max())
    return Unimplemented("%d rows of %d elements", pairs, grads.args_.width);
  const auto scratch = [&](int64_t elements, size_t bytes) {
    return context->Scratch(static_cast<size_t>(elements) * bytes);
  };
  grads.dz_ = scratch(pairs, sizeof(float));
  grads.places_ = scratch(pairs, sizeof(int32_t));
  if (to.dw != nullptr && to.sparse) {
    if (to.dw->size() != pairs * grads.args_.width)
      return Unimplemented("rows of another number than %d", pairs);
    PD_ASSIGN_OR_RETURN(grads.known_rows_, binding->RowsOf(to.dw));
    grads.values_ = to.dw;
  } else {
    grads.rows_ = scratch(pairs, sizeof(int64_t));
    grads.values_ = scratch(pairs * grads.args_.width, sizeof(float));
  }
  using Start = Starter<LinearRowsArgs>;
  PD_ASSIGN_OR_RETURN(grads.grad_x_,
                      Start::Find(binding, "linear_rows_grad_x"));
  PD_ASSIGN_OR_RETURN(grads.make_values_,
                      Start::Find(binding, "linear_rows_values"));
  using Rows = Starter<SelectedArgs>;
  PD_ASSIGN_OR_RETURN(grads.order_, Rows::Find(binding, "order_rows"));
  PD_ASSIGN_OR_RETURN(grads.add_, Rows::Find(binding, "add_rows"));
  return grads;
}

absl::Status LinearRows::AddUp(const float* values, int64_t width,
                               Tensor* dense) const {
  SelectedArgs args{};
  args.values = values;
  args.rows = rows();
  args.places = places_->data<int32_t>();
  args.n = args_.samples * args_.columns;
  args.width = width;
  args.height = w_->dim(0);
  args.dense = At(dense);
  PD_RETURN_IF_ERROR(device_->Clear(dense->raw(), dense->bytes()));
  PD_RETURN_IF_ERROR(order_.Elements(args.n, args));
  return add_.Elements(args.n * width, args);
}

absl::Status LinearRows::Run() const {
  LinearRowsArgs args = args_;
  args.x = At(x_);
  args.w = At(w_);
  args.dz = dz();
  args.rows = rows();
  args.dx = At(to_.dx);
  args.values = At(values_);
  if (to_.dx != nullptr)
    PD_RETURN_IF_ERROR(grad_x_.Elements(to_.dx->size(), args));
  if (to_.dw != nullptr)
    PD_RETURN_IF_ERROR(
        make_values_.Elements(args.samples * args.columns * args.width, args));
  if (to_.dw != nullptr && !to_.sparse)
    PD_RETURN_IF_ERROR(AddUp(args.values, args.width, to_.dw));
  return to_.dbias == nullptr ? absl::OkStatus() : AddUp(dz(), 1, to_.dbias);
}

}  // namespace pd::cuda
