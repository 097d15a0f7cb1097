// SPDX-License-Identifier: Apache-2.0
// Convolutions and transposed convolutions over one to three axes, and
// paddle.vision's conv_norm_activation.
#include <cmath>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

struct Conv {
  Space space;
  Windows windows;
  int64_t in = 0, out = 0;  // in: as given, 0 where not
  int32_t groups = 1;
  const job::ParamAttr* weight_attr = nullptr;
  const job::ParamAttr* bias_attr = nullptr;  // null: no bias
  job::Padding::Mode mode = job::Padding::zeros;
  Ints output_padding, output_size;  // of transposed ones
};

template <typename P>
Conv ReadConv(const P& p, int axes) {
  Conv conv;
  conv.space = {axes, p.data_format() != 0};
  conv.windows.kernel = Spread(p.kernel_size(), axes, 1);
  conv.windows.stride = Spread(p.stride(), axes, 1);
  conv.windows.dilation = Spread(p.dilation(), axes, 1);
  conv.windows.padding = Spread(p.padding(), axes, 0);
  conv.windows.algorithm = job::Padding::Algorithm_Name(p.padding_algorithm());
  conv.in = p.in_channels();
  conv.out = p.out_channels();
  conv.groups = p.groups();
  conv.weight_attr = &p.weight_attr();
  conv.bias_attr = p.bias() ? &p.bias_attr() : nullptr;
  return conv;
}

// The input's channels, which the groups divide.
absl::StatusOr<int64_t> Channels(LayerContext* c, const Conv& conv) {
  PD_RETURN_IF_ERROR(ExpectSpace(c, conv.space));
  PD_ASSIGN_OR_RETURN(
      const int64_t in,
      c->Extent(conv.space.channel_axis(), conv.in > 0 ? &conv.in : nullptr,
                "input channels", "in_channels"));
  if (in % conv.groups == 0 && conv.out % conv.groups == 0) return in;
  return InvalidArgument(
      "'groups' is %d; it must divide the %d input channels and the %d output "
      "channels",
      conv.groups, in, conv.out);
}

// Lifts the input and the filter, appends the op, adds the bias.
absl::StatusOr<std::string> AppendConv(LayerContext* c, const Conv& conv,
                                       const std::string& x, OpDesc op,
                                       const std::string& filter) {
  const Space& space = conv.space;
  PD_ASSIGN_OR_RETURN(const std::string input, Lift(c, space, x));
  PD_ASSIGN_OR_RETURN(const std::string weight,
                      Lift(c, {space.axes, false}, filter));
  op.SetInput("Input", {input});
  op.SetInput("Filter", {weight});
  op.attrs["strides"] = Lift(space, conv.windows.stride, 1);
  op.attrs["paddings"] = LiftedPadding(space, conv.windows);
  op.attrs["padding_algorithm"] = conv.windows.algorithm;
  op.attrs["dilations"] = Lift(space, conv.windows.dilation, 1);
  op.attrs["groups"] = conv.groups;
  op.attrs["data_format"] = space.format();
  PD_ASSIGN_OR_RETURN(std::string out, c->Append(std::move(op), {"Output"}));
  if (conv.bias_attr != nullptr) {
    PD_ASSIGN_OR_RETURN(const std::string bias,
                        c->Bias(*conv.bias_attr, {conv.out}));
    const int axis = space.channels_last ? -1 : 1;
    PD_ASSIGN_OR_RETURN(out, c->Binary("elementwise_add", out, bias, axis));
  }
  return Lower(c, space, out);
}

// [a, b, kernel...]
Shape FilterShape(int64_t a, int64_t b, const Windows& windows) {
  Shape shape = {a, b};
  shape.insert(shape.end(), windows.kernel.begin(), windows.kernel.end());
  return shape;
}

absl::StatusOr<std::string> BuildConv(LayerContext* c, Conv conv) {
  PD_ASSIGN_OR_RETURN(const int64_t in, Channels(c, conv));
  const Shape shape = FilterShape(conv.out, in / conv.groups, conv.windows);
  // PaddlePaddle's default looks at all input channels, whatever the groups.
  const double reads = static_cast<double>(in) *
                       static_cast<double>(NumElements(shape, 2, shape.size()));
  PD_ASSIGN_OR_RETURN(const std::string filter,
                      c->Weight(*conv.weight_attr, shape,
                                NormalInitializer(std::sqrt(2.0 / reads))));
  std::string x = c->input();
  if (conv.mode != job::Padding::zeros) {
    if (conv.windows.algorithm != "EXPLICIT")
      return InvalidArgument(
          "'padding_mode' is %s; it goes with 'padding', not with "
          "'padding_algorithm'",
          job::Padding::Mode_Name(conv.mode));
    Ints around;
    for (int i = 0; i < conv.space.axes; ++i) {
      around.push_back(conv.windows.before(i));
      around.push_back(conv.windows.behind(i));
    }
    PD_ASSIGN_OR_RETURN(x, PadAround(c, conv.space, x, around,
                                     job::Padding::Mode_Name(conv.mode)));
    conv.windows.padding.assign(static_cast<size_t>(conv.space.axes), 0);
  }
  PD_RETURN_IF_ERROR(CheckFits(c, conv.space, conv.windows, x));
  OpDesc op;
  op.type = conv.space.axes == 3 ? "conv3d" : "conv2d";
  if (conv.space.axes == 2 && conv.groups == in && in != 1)
    op.type = "depthwise_conv2d";
  return AppendConv(c, conv, x, std::move(op), filter);
}

template <typename P>
absl::StatusOr<std::string> BuildPlain(LayerContext* c, const P& p, int axes) {
  Conv conv = ReadConv(p, axes);
  conv.mode = p.padding_mode();
  return BuildConv(c, std::move(conv));
}

absl::Status CheckOutput(const Conv& conv) {
  if (!conv.output_padding.empty() && !conv.output_size.empty())
    return InvalidArgument(
        "'output_size' and 'output_padding' are given; only one of them says "
        "how large the result is");
  for (size_t i = 0; i < conv.output_padding.size(); ++i) {
    const int32_t stride = conv.windows.stride[i];
    const int32_t dilation = conv.windows.dilation[i];
    if (conv.output_padding[i] >= std::max(stride, dilation))
      return InvalidArgument(
          "'output_padding' is %d; it must be below the stride %d or the "
          "dilation %d",
          conv.output_padding[i], stride, dilation);
  }
  return absl::OkStatus();
}

template <typename P>
absl::StatusOr<std::string> BuildTransposed(LayerContext* c, const P& p,
                                            int axes) {
  Conv conv = ReadConv(p, axes);
  if (!p.output_padding().empty())
    conv.output_padding = Spread(p.output_padding(), axes, 0);
  if (!p.output_size().empty())
    conv.output_size = Spread(p.output_size(), axes, 0);
  PD_RETURN_IF_ERROR(CheckOutput(conv));
  PD_ASSIGN_OR_RETURN(const int64_t in, Channels(c, conv));
  const Shape shape = FilterShape(in, conv.out / conv.groups, conv.windows);
  PD_ASSIGN_OR_RETURN(
      const std::string filter,
      c->Weight(*conv.weight_attr, shape, XavierUniformInitializer()));
  OpDesc op;
  op.type = axes == 3 ? "conv3d_transpose" : "conv2d_transpose";
  if (axes == 2 && conv.groups == in && in != 1 && shape[1] == 1)
    op.type = "depthwise_conv2d_transpose";
  Ints padding, size;
  if (!conv.output_padding.empty())
    padding = Lift(conv.space, conv.output_padding, 0);
  if (!conv.output_size.empty()) size = Lift(conv.space, conv.output_size, 1);
  op.attrs["output_padding"] = std::move(padding);
  op.attrs["output_size"] = std::move(size);
  return AppendConv(c, conv, c->input(), std::move(op), filter);
}

absl::StatusOr<std::string> BuildAnyConv(LayerContext* c) {
  const job::Layer& l = c->layer();
  switch (l.kind_case()) {
    case job::Layer::kConv1D:
      return BuildPlain(c, l.conv1d(), 1);
    case job::Layer::kConv2D:
      return BuildPlain(c, l.conv2d(), 2);
    case job::Layer::kConv3D:
      return BuildPlain(c, l.conv3d(), 3);
    case job::Layer::kConv1DTranspose:
      return BuildTransposed(c, l.conv1d_transpose(), 1);
    case job::Layer::kConv2DTranspose:
      return BuildTransposed(c, l.conv2d_transpose(), 2);
    default:
      return BuildTransposed(c, l.conv3d_transpose(), 3);
  }
}

absl::StatusOr<std::string> BuildConvNormActivation(LayerContext* c) {
  const job::ConvNormActivation& p = c->layer().conv_norm_activation();
  Conv conv;
  conv.windows.kernel = Spread(p.kernel_size(), 2, 3);
  conv.windows.stride = Spread(p.stride(), 2, 1);
  conv.windows.dilation = Spread(p.dilation(), 2, 1);
  for (size_t i = 0; i < 2; ++i)
    conv.windows.padding.push_back((conv.windows.kernel[i] - 1) / 2 *
                                   conv.windows.dilation[i]);
  if (!p.padding().empty()) conv.windows.padding = Spread(p.padding(), 2, 0);
  conv.in = p.in_channels();
  conv.out = p.out_channels();
  conv.groups = p.groups();
  const job::ParamAttr plain;
  conv.weight_attr = &plain;
  if (p.has_bias() ? p.bias() : !p.norm_layer()) conv.bias_attr = &plain;
  std::string x;
  {
    const LayerContext::Sublayer sublayer(c, "conv2d", "0");
    PD_ASSIGN_OR_RETURN(x, BuildConv(c, std::move(conv)));
  }
  if (p.norm_layer()) {
    const LayerContext::Sublayer sublayer(c, "batch_norm2d", "1");
    BatchNormArgs norm;
    norm.channels = p.out_channels();
    norm.weight_attr = norm.bias_attr = &plain;
    PD_ASSIGN_OR_RETURN(x, AppendBatchNorm(c, x, norm));
  }
  if (p.activation_layer().empty()) return x;
  return AppendActivation(c, x, p.activation_layer(), "activation_layer");
}

}  // namespace

void AddConvLayers(LayerTable* table) {
  for (const int kind :
       {job::Layer::kConv1D, job::Layer::kConv2D, job::Layer::kConv3D,
        job::Layer::kConv1DTranspose, job::Layer::kConv2DTranspose,
        job::Layer::kConv3DTranspose})
    (*table)[kind] = {BuildAnyConv};
  (*table)[job::Layer::kConvNormActivation] = {BuildConvNormActivation};
}

}  // namespace pd
