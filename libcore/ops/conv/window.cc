// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/conv/window.h"

#include <algorithm>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Ints = std::vector<int32_t>;

int64_t CeilDiv(int64_t a, int64_t b) {  // b > 0, any sign of a
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

// Here and below an attribute with a default is one that some of the ops with
// windows do not have: deformable_conv, max_pool2d_with_index, spp.
absl::StatusOr<bool> ChannelsLast(const OpDesc& op, size_t rank) {
  const std::string format = op.AttrOr<std::string>("data_format", "NCHW");
  if (format == "NHWC" || format == "NDHWC" || format == "NLC") return true;
  if (format == "NCHW" || format == "NCDHW" || format == "NCL" ||
      format == "AnyLayout")
    return false;
  return InvalidArgument(
      "attr 'data_format' is '%s' for a tensor of rank %d; expected NCHW, "
      "NHWC, NCDHW or NDHWC",
      format, rank);
}

// One positive number per axis.
absl::Status CheckPositive(const char* attr, const Ints& values, size_t axes) {
  if (values.size() != axes)
    return InvalidArgument("attr '%s' has %d numbers; expected %d", attr,
                           values.size(), axes);
  for (int32_t v : values)
    if (v <= 0)
      return InvalidArgument("attr '%s' holds %d; expected 1 or more", attr, v);
  return absl::OkStatus();
}

// Sets the paddings of all axes; kernels, strides and extents are set.
absl::Status ReadPaddings(const OpDesc& op, std::vector<WindowAxis>* axes) {
  const auto& given = op.Attr<Ints>("paddings");
  const auto algorithm =
      op.AttrOr<std::string>("padding_algorithm", "EXPLICIT");
  if (algorithm == "VALID") return absl::OkStatus();
  if (algorithm == "SAME") {
    for (WindowAxis& axis : *axes) {
      axis.dilation = 1;
      if (axis.in < 0) continue;
      const int64_t out = CeilDiv(axis.in, axis.stride);
      const int64_t sum =
          std::max<int64_t>((out - 1) * axis.stride + axis.kernel - axis.in, 0);
      axis.pad_before = sum / 2;
      axis.pad_after = sum - axis.pad_before;
    }
    return absl::OkStatus();
  }
  if (algorithm != "EXPLICIT")
    return InvalidArgument(
        "attr 'padding_algorithm' is '%s'; expected EXPLICIT, SAME or VALID",
        algorithm);
  const size_t n = axes->size();
  if (given.size() != n && given.size() != 2 * n)
    return InvalidArgument("attr 'paddings' has %d numbers; expected %d or %d",
                           given.size(), n, 2 * n);
  for (size_t i = 0; i < n; ++i) {
    const bool pairs = given.size() == 2 * n;
    (*axes)[i].pad_before = given[pairs ? 2 * i : i];
    (*axes)[i].pad_after = given[pairs ? 2 * i + 1 : i];
  }
  return absl::OkStatus();
}

absl::Status SetOut(WindowAxis* axis, bool ceil_mode) {
  if (axis->in < 0) return absl::OkStatus();
  const int64_t span = axis->dilation * (axis->kernel - 1) + 1;
  const int64_t room = axis->in + axis->pad_before + axis->pad_after - span;
  const int64_t extra = ceil_mode ? axis->stride - 1 : 0;
  // Rounded towards zero, as in PaddlePaddle: a window that reaches less than a
  // stride too far has an output.
  axis->out = (room + extra) / axis->stride + 1;
  if (axis->out <= 0)
    return InvalidArgument(
        "the window spans %d positions; the input has %d with paddings %d and "
        "%d, so there is no output",
        span, axis->in, axis->pad_before, axis->pad_after);
  return absl::OkStatus();
}

Shape Assemble(int64_t batch, int64_t channels, bool channels_last,
               const std::vector<WindowAxis>& axes,
               int64_t WindowAxis::*extent = &WindowAxis::out) {
  Shape shape = {batch};
  if (!channels_last) shape.push_back(channels);
  for (const WindowAxis& axis : axes) shape.push_back(axis.*extent);
  if (channels_last) shape.push_back(channels);
  return shape;
}

}  // namespace

std::pair<int64_t, int64_t> WindowAxis::Valid(int64_t k) const {
  const int64_t shift = pad_before - k * dilation;
  const int64_t begin = std::max<int64_t>(CeilDiv(shift, stride), 0);
  const int64_t end = std::min(CeilDiv(in + shift, stride), out);
  return {begin, std::max(begin, end)};
}

Shape ConvGeometry::InputShape() const {
  return Assemble(batch, in_channels, channels_last, axes, &WindowAxis::in);
}

Shape ConvGeometry::OutputShape() const {
  return Assemble(batch, out_channels, channels_last, axes);
}

Shape PoolGeometry::OutputShape() const {
  return Assemble(batch, channels, channels_last, axes);
}

namespace {

// Axes (`in` of the given input), batch and groups: what both directions share.
absl::StatusOr<ConvGeometry> ReadConvAxes(const OpDesc& op, const Shape& input,
                                          const Shape& filter) {
  if (input.size() < 3 || input.size() != filter.size())
    return InvalidArgument(
        "the input has shape %s and the filter %s; expected one rank of 3 or "
        "more",
        ToString(input), ToString(filter));
  const size_t n = input.size() - 2;
  ConvGeometry g;
  PD_ASSIGN_OR_RETURN(g.channels_last, ChannelsLast(op, input.size()));
  const auto& strides = op.Attr<Ints>("strides");
  const auto& dilations = op.Attr<Ints>("dilations");
  PD_RETURN_IF_ERROR(CheckPositive("strides", strides, n));
  PD_RETURN_IF_ERROR(CheckPositive("dilations", dilations, n));
  g.groups = op.Attr<int32_t>("groups");
  g.batch = input[0];
  if (g.groups < 1 || (filter[0] >= 0 && filter[0] % g.groups != 0))
    return InvalidArgument(
        "attr 'groups' is %d; the filter %s has %d channels to divide",
        g.groups, ToString(filter), filter[0]);
  for (size_t i = 0; i < n; ++i) {
    WindowAxis axis;
    axis.in = input[i + (g.channels_last ? 1 : 2)];
    axis.kernel = filter[i + 2];
    axis.stride = strides[i];
    axis.dilation = dilations[i];
    if (axis.kernel <= 0)
      return InvalidArgument(
          "the filter has shape %s; expected extents of 1 "
          "or more",
          ToString(filter));
    g.axes.push_back(axis);
  }
  PD_RETURN_IF_ERROR(ReadPaddings(op, &g.axes));
  return g;
}

}  // namespace

absl::StatusOr<ConvGeometry> ReadConv(const OpDesc& op, const Shape& input,
                                      const Shape& filter) {
  PD_ASSIGN_OR_RETURN(ConvGeometry g, ReadConvAxes(op, input, filter));
  g.in_channels = g.channels_last ? input.back() : input[1];
  g.out_channels = filter[0];
  if (g.in_channels >= 0 && filter[1] >= 0 &&
      g.in_channels != filter[1] * g.groups)
    return InvalidArgument(
        "the input %s has %d channels; the filter %s in %d groups reads %d",
        ToString(input), g.in_channels, ToString(filter), g.groups,
        filter[1] * g.groups);
  for (WindowAxis& axis : g.axes) PD_RETURN_IF_ERROR(SetOut(&axis, false));
  return g;
}

namespace {

// The extent of a transposed convolution's output: `least` by the windows, or
// what the attributes make of it. -1 stays.
absl::StatusOr<int64_t> TransposedExtent(int64_t least, const WindowAxis& axis,
                                         const Ints& sizes,
                                         const Ints& paddings, size_t i) {
  if (!sizes.empty()) {
    if (least >= 0 && (sizes[i] < least || sizes[i] >= least + axis.stride))
      return InvalidArgument(
          "attr 'output_size' holds %d at %d; expected %d to %d", sizes[i], i,
          least, least + axis.stride - 1);
    return sizes[i];
  }
  if (paddings.empty() || least < 0) return least;
  if (paddings[i] < 0 || paddings[i] >= std::max(axis.stride, axis.dilation))
    return InvalidArgument(
        "attr 'output_padding' holds %d at %d; expected less than stride %d or "
        "dilation %d",
        paddings[i], i, axis.stride, axis.dilation);
  return least + paddings[i];
}

}  // namespace

absl::StatusOr<ConvGeometry> ReadConvTranspose(const OpDesc& op,
                                               const Shape& input,
                                               const Shape& filter) {
  PD_ASSIGN_OR_RETURN(ConvGeometry g, ReadConvAxes(op, input, filter));
  g.out_channels = g.channels_last ? input.back() : input[1];
  if (g.out_channels >= 0 && filter[0] >= 0 && g.out_channels != filter[0])
    return InvalidArgument(
        "the input %s has %d channels; the filter %s reads %d", ToString(input),
        g.out_channels, ToString(filter), filter[0]);
  g.out_channels = std::max(g.out_channels, filter[0]);
  g.in_channels = filter[1] < 0 ? -1 : filter[1] * g.groups;
  const auto& sizes = op.Attr<Ints>("output_size");
  const auto& paddings = op.Attr<Ints>("output_padding");
  for (const Ints& list : {sizes, paddings})
    if (!list.empty() && list.size() != g.axes.size())
      return InvalidArgument(
          "attrs 'output_size' and 'output_padding' have %d and %d numbers; "
          "expected none or %d",
          sizes.size(), paddings.size(), g.axes.size());
  for (size_t i = 0; i < g.axes.size(); ++i) {
    WindowAxis& axis = g.axes[i];
    axis.out = axis.in;
    int64_t least = -1;
    if (axis.in >= 0) {
      least = (axis.in - 1) * axis.stride - axis.pad_before - axis.pad_after +
              axis.dilation * (axis.kernel - 1) + 1;
      if (least <= 0)
        return InvalidArgument(
            "paddings %d and %d take away all of the output of %d windows",
            axis.pad_before, axis.pad_after, axis.in);
    }
    PD_ASSIGN_OR_RETURN(axis.in,
                        TransposedExtent(least, axis, sizes, paddings, i));
  }
  return g;
}

absl::StatusOr<PoolGeometry> ReadPool(const OpDesc& op, const Shape& input) {
  if (input.size() < 3)
    return InvalidArgument("the input has shape %s; expected rank 3 or more",
                           ToString(input));
  const size_t n = input.size() - 2;
  PoolGeometry g;
  PD_ASSIGN_OR_RETURN(g.channels_last, ChannelsLast(op, input.size()));
  const auto& type = op.Attr<std::string>("pooling_type");
  if (type != "max" && type != "avg")
    return InvalidArgument("attr 'pooling_type' is '%s'; expected max or avg",
                           type);
  g.max = type == "max";
  g.exclusive = op.AttrOr("exclusive", true);
  g.ceil_mode = op.AttrOr("ceil_mode", false);
  const bool global = op.AttrOr("global_pooling", false);
  // PaddlePaddle's maximum has the extents of adaptive pooling, but plain
  // windows (its adaptive maximum is max_pool2d_with_index).
  const bool parts = op.AttrOr("adaptive", false) && !global;
  g.adaptive = parts && !g.max;
  const auto& ksize = op.Attr<Ints>("ksize");
  const auto& strides = op.Attr<Ints>("strides");
  if (!global) PD_RETURN_IF_ERROR(CheckPositive("ksize", ksize, n));
  PD_RETURN_IF_ERROR(CheckPositive("strides", strides, n));
  g.batch = input[0];
  g.channels = g.channels_last ? input.back() : input[1];
  for (size_t i = 0; i < n; ++i) {
    WindowAxis axis;
    axis.in = input[i + (g.channels_last ? 1 : 2)];
    axis.stride = strides[i];
    axis.kernel = global ? axis.in : ksize[i];
    g.axes.push_back(axis);
  }
  if (!global && !parts) PD_RETURN_IF_ERROR(ReadPaddings(op, &g.axes));
  for (WindowAxis& axis : g.axes) {
    if (global) axis.out = 1;
    if (parts) axis.out = axis.kernel;
    if (axis.out < 0) PD_RETURN_IF_ERROR(SetOut(&axis, g.ceil_mode));
  }
  return g;
}

PoolWindow WindowAt(const WindowAxis& axis, bool adaptive, int64_t position) {
  PoolWindow w;
  if (adaptive) {
    w.begin = position * axis.in / axis.out;
    w.end = CeilDiv((position + 1) * axis.in, axis.out);
    w.padded = w.end - w.begin;
    return w;
  }
  const int64_t begin = axis.Source(position, 0);
  const int64_t end = begin + axis.kernel;
  w.padded = std::min(end, axis.in + axis.pad_before) - begin;
  w.begin = std::max<int64_t>(begin, 0);
  w.end = std::max(std::min(end, axis.in), w.begin);
  return w;
}

}  // namespace pd
