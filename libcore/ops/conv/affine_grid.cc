// SPDX-License-Identifier: Apache-2.0
// The grid that an affine map of the output's positions gives. Theta is
// [n, 2, 3] for images or [n, 3, 4] for volumes; positions run over [-1, 1],
// from the centres of the outer pixels when align_corners, else from the
// corners:
//   base = (x, y, 1) or (x, y, z, 1); Output[n, (z,) y, x] = Theta[n] base
//   Theta@GRAD[n, i, j] = sum over positions of Output@GRAD[i] * base[j]
// The output's shape, [n, c, (d,) h, w], is OutputShape or attr output_shape.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Theta's axes: 2 or 3.
absl::StatusOr<size_t> AffineGridAxesOf(const Shape& theta) {
  for (int64_t axes : {2, 3})
    if (theta.size() == 3 && (theta[1] == axes || theta[1] < 0) &&
        (theta[2] == axes + 1 || theta[2] < 0))
      return static_cast<size_t>(axes);
  return InvalidArgument(
      "'Theta' has shape %s; expected [n, 2, 3] or [n, 3, 4]", ToString(theta));
}

absl::Status InferAffineGrid(InferContext* context) {
  const TensorMeta& theta = context->Input("Theta");
  PD_ASSIGN_OR_RETURN(const size_t axes, AffineGridAxesOf(theta.shape));
  Shape shape(axes + 2, -1);
  const auto asked = RequestedInts(*context, "OutputShape", "", "output_shape");
  if (asked.size() == axes + 2)
    std::copy(asked.begin() + 2, asked.end(), shape.begin() + 1);
  else if (!asked.empty() || !context->HasInput("OutputShape"))
    return InvalidArgument("the output shape has %d numbers; expected %d",
                           asked.size(), axes + 2);
  if (!asked.empty() && asked[0] >= 0 && theta.shape[0] >= 0 &&
      asked[0] != theta.shape[0])
    return InvalidArgument("the output shape begins with %d; 'Theta' has %d",
                           asked[0], theta.shape[0]);
  for (size_t i = 1; i <= axes; ++i)
    if (shape[i] < -1 || shape[i] == 0)
      return InvalidArgument("the output shape holds %d", shape[i]);
  shape[0] = theta.shape[0];
  shape[axes + 1] = static_cast<int64_t>(axes);
  context->SetOutput("Output", std::move(shape), theta.dtype);
  return absl::OkStatus();
}

// The coordinates of one axis.
template <typename T>
std::vector<T> Coordinates(int64_t count, bool align_corners) {
  std::vector<T> at(static_cast<size_t>(count));
  const T steps = static_cast<T>(align_corners ? count - 1 : count);
  for (int64_t i = 0; i < count; ++i) {
    if (align_corners && count == 1)
      at[0] = T(-1);
    else
      at[i] = T(-1) +
              (static_cast<T>(2 * i) + (align_corners ? T(0) : T(1))) / steps;
  }
  return at;
}

// Calls body(n, position, base) for every position of every image.
template <typename T, typename Body>
void ForEachPosition(const Shape& grid, bool align_corners, const Body& body) {
  const size_t axes = grid.size() - 2;
  std::vector<std::vector<T>> at;
  for (size_t i = 0; i < axes; ++i)
    at.push_back(Coordinates<T>(grid[axes - i], align_corners));  // x first
  if (axes == 2) at.push_back({T(1)});
  int64_t position = 0;
  for (int64_t n = 0; n < grid[0]; ++n)
    for (T z : at[2])
      for (T y : at[1])
        for (T x : at[0]) {
          const T base[] = {x, y, z, T(1)};
          body(n, position++, base);
        }
}

absl::StatusOr<Step> BindAffineGrid(BindContext* context) {
  Tensor* theta = context->Input("Theta");
  Tensor* out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const size_t axes, AffineGridAxesOf(theta->shape()));
  const bool align_corners = context->Attr<bool>("align_corners");
  return DispatchFloat(theta->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t rows = static_cast<int64_t>(axes), columns = rows + 1;
      ForEachPosition<T>(out->shape(), align_corners,
                         [&](int64_t n, int64_t position, const T* base) {
                           const T* matrix =
                               theta->data<T>() + n * rows * columns;
                           T* to = out->data<T>() + position * rows;
                           for (int64_t i = 0; i < rows; ++i) {
                             to[i] = T(0);
                             for (int64_t j = 0; j < columns; ++j)
                               to[i] += matrix[i * columns + j] * base[j];
                           }
                         });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindAffineGridGrad(BindContext* context) {
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* dtheta = context->Output("Theta@GRAD");
  const bool align_corners = context->Attr<bool>("align_corners");
  const Shape& grid = dout->shape();
  if (grid.size() < 4 || grid.size() > 5 ||
      grid.back() != static_cast<int64_t>(grid.size()) - 2)
    return InvalidArgument("'Output@GRAD' has shape %s; expected a grid",
                           ToString(grid));
  const int64_t rows = grid.back(), columns = rows + 1;
  if (dtheta->shape() != Shape{grid[0], rows, columns} ||
      dtheta->dtype() != dout->dtype())
    return InvalidArgument("'Theta' has shape %s; 'Output@GRAD' %s",
                           ToString(dtheta->shape()), ToString(grid));
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(dtheta->data<T>(), dtheta->size(), T(0));
      ForEachPosition<T>(dout->shape(), align_corners,
                         [&](int64_t n, int64_t position, const T* base) {
                           T* matrix = dtheta->data<T>() + n * rows * columns;
                           const T* from = dout->data<T>() + position * rows;
                           for (int64_t i = 0; i < rows; ++i)
                             for (int64_t j = 0; j < columns; ++j)
                               matrix[i * columns + j] += from[i] * base[j];
                         });
      return absl::OkStatus();
    });
  });
}

absl::Status InferAffineGridGrad(InferContext* context) {
  if (context->HasInput("Theta")) return InferGradLikeInput(context);
  const TensorMeta& dout = context->Input("Output@GRAD");
  if (dout.shape.size() < 4 || dout.shape.size() > 5)
    return InvalidArgument("'Output@GRAD' has shape %s; expected a grid",
                           ToString(dout.shape));
  const int64_t axes = static_cast<int64_t>(dout.shape.size()) - 2;
  context->SetOutput("Theta@GRAD", {dout.shape[0], axes, axes + 1}, dout.dtype);
  return absl::OkStatus();
}

void AddAffineGridAttrs(OpDef* def) {
  def->Attr("output_shape", std::vector<int32_t>{}).Attr("align_corners", true);
}

}  // namespace

absl::Status RegisterAffineGrid(OpRegistry* registry) {
  OpDef op("affine_grid");
  op.Input("Theta").OptionalInput("OutputShape").Output("Output");
  AddAffineGridAttrs(&op);
  op.Infer(InferAffineGrid).Reference(BindAffineGrid);
  op.Grad(GradSpec{
      "affine_grid_grad", {"Theta", "OutputShape"}, {}, {"Output"}, {"Theta"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("affine_grid_grad");
  grad.OptionalInput("Theta").OptionalInput("OutputShape");
  grad.Input("Output@GRAD").Output("Theta@GRAD");
  AddAffineGridAttrs(&grad);
  grad.Infer(InferAffineGridGrad).NoGrad().Reference(BindAffineGridGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
