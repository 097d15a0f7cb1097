// SPDX-License-Identifier: Apache-2.0
// Convolutions. Filters are [out, in / groups, ...] in both worlds, whatever
// the layout of the data; ONNX knows channels-first data only.
#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
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
  attrs->emplace_back(
      "dilations",
      op->Ints("dilations", std::vector<int64_t>(window.strides.size(), 1)));
}

void ConvertConv(OnnxOp* op) {
  const OnnxWindow window = ReadWindow(op, "Input");
  OnnxAttrs attrs = {{"group", op->Int("groups", 1)}};
  AddWindowAttrs(op, window, &attrs);
  GiveChannelsFirst(op, window, "Output", "Conv",
                    {ToChannelsFirst(op, window, op->In("Input")),
                     op->In("Filter"), op->OptionalIn("Bias")},
                    attrs);
}

void ConvertConvTranspose(OnnxOp* op) {
  const OnnxWindow window = ReadWindow(op, "Input");
  OnnxAttrs attrs = {{"group", op->Int("groups", 1)}};
  const auto output_size = op->Ints("output_size");
  if (!output_size.empty() && window.same) {
    op->Fail(Unimplemented(
        "attr 'output_size' together with padding_algorithm 'SAME'"));
    return;
  }
  AddWindowAttrs(op, window, &attrs);
  auto extra = op->Ints("output_padding");
  if (!output_size.empty()) {
    // What the stride leaves open is padding at the end.
    const Shape& x = op->ShapeOf("Input");
    const Shape& filter = op->ShapeOf("Filter");
    const size_t n = window.strides.size();
    const auto dilations = op->Ints("dilations", std::vector<int64_t>(n, 1));
    extra.assign(n, 0);
    for (size_t i = 0; i < n && filter.size() == n + 2; ++i) {
      const int64_t extent = x[i + (window.channels_last ? 1 : 2)];
      if (extent < 0) {
        op->Fail(
            Unimplemented("attr 'output_size' with input shape %s: its "
                          "extents must be known",
                          ToString(x)));
        return;
      }
      extra[i] = output_size[i] - ((extent - 1) * window.strides[i] +
                                   dilations[i] * (filter[i + 2] - 1) + 1 -
                                   window.pads[i] - window.pads[n + i]);
    }
  }
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
