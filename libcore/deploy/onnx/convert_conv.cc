// SPDX-License-Identifier: Apache-2.0
// Convolutions. Filters are [out, in / groups, ...] in both worlds, whatever
// the layout of the data; ONNX knows channels-first data only.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/deploy/onnx/quantized_bias.h"
#include "libcore/deploy/onnx/window.h"

namespace pd {
namespace {

void AddWindowAttrs(OnnxOp* op, const OnnxWindow& window, OnnxAttrs* attrs) {
  attrs->emplace_back("strides", window.strides);
  if (window.same) {
    attrs->emplace_back("auto_pad", std::string("SAME_UPPER"));
    return;  // PaddlePaddle sets dilations to 1 then
  }
  attrs->emplace_back("pads", window.pads);
  attrs->emplace_back("dilations", op->Ints("dilations"));
}

void ConvertConv(OnnxOp* op) {
  const OnnxWindow window = ReadWindow(op, "Input");
  OnnxAttrs attrs = {{"group", op->Int("groups")}};
  AddWindowAttrs(op, window, &attrs);
  GiveChannelsFirst(op, window, "Output", "Conv",
                    {ToChannelsFirst(op, window, op->In("Input")),
                     op->In("Filter"), QuantizedBias(op)},
                    attrs);
}

// The pads of padding_algorithm SAME, which PaddlePaddle computes as if the
// input were a convolution's; ONNX's auto_pad means others.
bool PadsOfSame(OnnxOp* op, OnnxWindow* window) {
  const Shape& x = op->ShapeOf("Input");
  const Shape& filter = op->ShapeOf("Filter");
  const size_t n = window->strides.size();
  for (size_t i = 0; i < n; ++i) {
    const int64_t extent = x[i + (window->channels_last ? 1 : 2)];
    if (extent < 0 || filter.size() != n + 2) {
      op->Fail(
          Unimplemented("padding_algorithm 'SAME' with input shape %s: "
                        "its extents must be known",
                        ToString(x)));
      return false;
    }
    const int64_t stride = window->strides[i];
    const int64_t sum = std::max<int64_t>(
        ((extent + stride - 1) / stride - 1) * stride + filter[i + 2] - extent,
        0);
    window->pads[i] = sum / 2;
    window->pads[n + i] = sum - sum / 2;
  }
  window->same = false;
  return true;
}

// Elements of `output_size` beyond the smallest output are padding at the
// end.
std::vector<int64_t> PaddingFor(OnnxOp* op, const OnnxWindow& window,
                                const std::vector<int64_t>& output_size,
                                const std::vector<int64_t>& dilations) {
  const Shape& x = op->ShapeOf("Input");
  const Shape& filter = op->ShapeOf("Filter");
  const size_t n = window.strides.size();
  std::vector<int64_t> extra(n, 0);
  for (size_t i = 0; i < n; ++i) {
    const int64_t extent = x[i + (window.channels_last ? 1 : 2)];
    if (extent < 0 || filter.size() != n + 2 || output_size.size() != n) {
      op->Fail(
          Unimplemented("attr 'output_size' is %s with input shape %s: "
                        "its extents must be known",
                        ToString(output_size), ToString(x)));
      return extra;
    }
    extra[i] = output_size[i] - ((extent - 1) * window.strides[i] +
                                 dilations[i] * (filter[i + 2] - 1) + 1 -
                                 window.pads[i] - window.pads[n + i]);
  }
  return extra;
}

void ConvertConvTranspose(OnnxOp* op) {
  OnnxWindow window = ReadWindow(op, "Input");
  const size_t n = window.strides.size();
  auto dilations = op->Ints("dilations");
  if (window.same) {
    dilations.assign(n, 1);
    if (!PadsOfSame(op, &window)) return;
  }
  OnnxAttrs attrs = {{"group", op->Int("groups")},
                     {"strides", window.strides},
                     {"pads", window.pads},
                     {"dilations", dilations}};
  const auto output_size = op->Ints("output_size");
  auto extra = op->Ints("output_padding");
  if (!output_size.empty())
    extra = PaddingFor(op, window, output_size, dilations);
  if (!extra.empty()) attrs.emplace_back("output_padding", extra);
  GiveChannelsFirst(op, window, "Output", "ConvTranspose",
                    {ToChannelsFirst(op, window, op->In("Input")),
                     op->In("Filter"), op->OptionalIn("Bias")},
                    attrs);
}

}  // namespace

OnnxConverters ConvConverters() {
  return {
      {"conv2d", ConvertConv},
      {"conv2d_transpose", ConvertConvTranspose},
      {"conv3d", ConvertConv},
      {"depthwise_conv2d", ConvertConv},
      {"depthwise_conv2d_transpose", ConvertConvTranspose},
  };
}

}  // namespace pd
