// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/layer_args.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

absl::StatusOr<std::string> WithAxes(const char* type, LayerContext* c,
                                     const std::string& x, Ints axes) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.attrs["axes"] = std::move(axes);
  return c->Append(std::move(op), {"Out", "XShape"});
}

}  // namespace

std::string Space::format() const {
  if (axes == 3) return channels_last ? "NDHWC" : "NCDHW";
  return channels_last ? "NHWC" : "NCHW";
}

std::string Space::described() const {
  if (axes == 1) return channels_last ? "[N, L, C]" : "[N, C, L]";
  if (axes == 2)
    return channels_last ? "images [N, H, W, C]" : "images [N, C, H, W]";
  return channels_last ? "[N, D, H, W, C]" : "[N, C, D, H, W]";
}

const char* Space::axis_name(int axis) const {
  constexpr const char* kNames[] = {"depth", "height", "width"};
  return axes == 1 ? "length" : kNames[3 - axes + axis];
}

absl::Status ExpectSpace(LayerContext* c, const Space& space, size_t i) {
  if (static_cast<int>(c->shape(i).size()) == space.axes + 2)
    return absl::OkStatus();
  return c->Misfit(space.described(), i);
}

int32_t Windows::before(int axis) const {
  const size_t i = static_cast<size_t>(axis);
  return padding.size() > kernel.size() ? padding[2 * i] : padding[i];
}

int32_t Windows::behind(int axis) const {
  const size_t i = static_cast<size_t>(axis);
  return padding.size() > kernel.size() ? padding[2 * i + 1] : padding[i];
}

absl::Status CheckFits(LayerContext* c, const Space& space, const Windows& w,
                       const std::string& x) {
  if (w.algorithm == "SAME") return absl::OkStatus();
  const bool pads = w.algorithm == "EXPLICIT";
  for (int i = 0; i < space.axes; ++i) {
    const size_t k = static_cast<size_t>(i);
    const int64_t extent =
        c->ShapeOf(x)[static_cast<size_t>(space.first_axis() + i)];
    const int64_t before = pads ? w.before(i) : 0;
    const int64_t behind = pads ? w.behind(i) : 0;
    const int64_t dilation = w.dilation.empty() ? 1 : w.dilation[k];
    const int64_t window = dilation * (int64_t{w.kernel[k]} - 1) + 1;
    if (extent < 0 || window <= extent + before + behind) continue;
    return Annotate(
        InvalidArgument(
            "a kernel of %d%s does not fit into the %s of %d%s", w.kernel[k],
            dilation > 1 ? absl::StrCat(" (", window, " with dilation)") : "",
            space.axis_name(i), extent,
            before + behind > 0
                ? absl::StrCat(" with padding ", before, " and ", behind)
                : ""),
        c->Described());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> Lift(LayerContext* c, const Space& space,
                                 const std::string& x) {
  if (space.axes != 1) return x;
  return Unsqueeze(c, x, {space.first_axis()});
}

absl::StatusOr<std::string> Lower(LayerContext* c, const Space& space,
                                  const std::string& x) {
  if (space.axes != 1) return x;
  return Squeeze(c, x, {space.first_axis()});
}

Ints Lift(const Space& space, Ints numbers, int32_t height) {
  if (space.axes == 1) numbers.insert(numbers.begin(), height);
  return numbers;
}

Ints LiftedPadding(const Space& space, const Windows& w) {
  if (w.algorithm != "EXPLICIT")
    return Ints(static_cast<size_t>(space.axes == 3 ? 3 : 2), 0);
  if (space.axes == 1 && w.padding.size() == 2)
    return {0, 0, w.padding[0], w.padding[1]};
  return Lift(space, w.padding, 0);
}

absl::StatusOr<std::string> Unsqueeze(LayerContext* c, const std::string& x,
                                      Ints axes) {
  return WithAxes("unsqueeze2", c, x, std::move(axes));
}

absl::StatusOr<std::string> Squeeze(LayerContext* c, const std::string& x,
                                    Ints axes) {
  return WithAxes("squeeze2", c, x, std::move(axes));
}

absl::StatusOr<std::string> Reshape(LayerContext* c, const std::string& x,
                                    Ints shape) {
  OpDesc op;
  op.type = "reshape2";
  op.SetInput("X", {x});
  op.attrs["shape"] = std::move(shape);
  return c->Append(std::move(op), {"Out", "XShape"});
}

absl::StatusOr<std::string> Scale(LayerContext* c, const std::string& x,
                                  double scale, double bias) {
  return c->Unary("scale", x,
                  {{"scale", static_cast<float>(scale)},
                   {"bias", static_cast<float>(bias)},
                   {"bias_after_scale", true}});
}

}  // namespace pd
