// SPDX-License-Identifier: Apache-2.0
// int8_conv2d and int8_matmul: products of a uint8 tensor and constant 8-bit
// weights with all that follows them in one op. int8.h says what they compute;
// the loops here are the oracle of the fast kernels.
//   int8_conv2d: conv2d's attributes (depthwise_conv2d's are the same); NCHW
//   int8_matmul: Input is flattened to a matrix at x_num_col_dims
// No gradients. OutputFloat, where the output is uint8, gets the number before
// it is quantized. ResidualData is uint8 (y_scale, y_zero) or float32.
#include <memory>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Everything that a sum becomes.
struct Finish {
  Int8Epilogue e;
  Int8Channels channels;
  Tensor *residual = nullptr, *out = nullptr, *floats = nullptr;

  void operator()(int32_t sum, int64_t channel, int64_t at) const {
    const auto o = static_cast<size_t>(channel);
    float z =
        std::fma(static_cast<float>(sum), channels.scales[o], channels.bias[o]);
    if (residual != nullptr && residual->dtype() == DType::kUInt8)
      z = std::fma(static_cast<float>(residual->data<uint8_t>()[at] - e.y.zero),
                   e.y.scale, z);
    else if (residual != nullptr)
      z = z + residual->data<float>()[at];
    z = e.act(z);
    if (floats != nullptr) floats->data<float>()[at] = z;
    if (e.out.quantized())
      out->data<uint8_t>()[at] = e.out(z);
    else
      out->data<float>()[at] = z;
  }
};

absl::StatusOr<Finish> ReadFinish(BindContext* context, const Int8Weights& w) {
  Finish f;
  f.out = context->Output("Output");
  f.floats = context->Output("OutputFloat");
  f.residual = context->Input("ResidualData");
  PD_ASSIGN_OR_RETURN(f.e, ReadInt8Epilogue(context->op()));
  PD_ASSIGN_OR_RETURN(f.channels, ReadInt8Channels(context, w));
  if (f.residual != nullptr && (f.residual->shape() != f.out->shape() ||
                                (f.residual->dtype() != DType::kUInt8 &&
                                 f.residual->dtype() != DType::kFloat32)))
    return InvalidArgument("'ResidualData' is %s of shape %s; 'Output' has %s",
                           Name(f.residual->dtype()),
                           ToString(f.residual->shape()),
                           ToString(f.out->shape()));
  return f;
}

absl::Status ExpectBytes(BindContext* context) {
  const DType dtype = context->Input("Input")->dtype();
  if (dtype != DType::kUInt8)
    return InvalidArgument("'Input' is %s; expected uint8", Name(dtype));
  return absl::OkStatus();
}

// Where tap k reads for output position `at`; -1 for nowhere.
using SourceOf = int64_t (*)(const WindowAxis& axis, int64_t at, int64_t k);

int64_t ConvSource(const WindowAxis& axis, int64_t at, int64_t k) {
  const int64_t from = axis.Source(at, k);
  return from >= 0 && from < axis.in ? from : -1;
}

// The axis is that of the convolution whose gradient it is.
int64_t TransposedSource(const WindowAxis& axis, int64_t at, int64_t k) {
  const int64_t from = at + axis.pad_before - k * axis.dilation;
  if (from < 0 || from % axis.stride != 0) return -1;
  return from / axis.stride < axis.out ? from / axis.stride : -1;
}

// The windows that a convolution, or a transposed one, sums over.
struct Windows {
  WindowAxis h, v;
  SourceOf source;
  int64_t in_h, in_w, out_h, out_w;
  int64_t batch, groups;
};

absl::StatusOr<Step> BindWindows(BindContext* context, const Windows& s) {
  PD_ASSIGN_OR_RETURN(Int8Weights read, ReadInt8Weights(context));
  PD_ASSIGN_OR_RETURN(const Finish finish, ReadFinish(context, read));
  const auto w = std::make_shared<const Int8Weights>(std::move(read));
  const int32_t zero = context->Attr<int32_t>("x_zero");
  Tensor* x = context->Input("Input");
  return Step([=](const RunContext&) {
    const int64_t plane = s.in_h * s.in_w, out_plane = s.out_h * s.out_w;
    const int64_t group_out = w->outputs / s.groups;
    ParallelFor(s.batch * w->outputs, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t n = p / w->outputs, o = p % w->outputs;
        const uint8_t* image =
            x->data<uint8_t>() +
            (n * s.groups + o / group_out) * w->channels * plane;
        const int8_t* weights = w->values.data() + o * w->taps * w->channels;
        for (int64_t at = 0; at < out_plane; ++at) {
          int32_t sum = 0;
          for (int64_t tap = 0; tap < w->taps; ++tap) {
            const int64_t y = s.source(s.h, at / s.out_w, tap / s.v.kernel);
            const int64_t z = s.source(s.v, at % s.out_w, tap % s.v.kernel);
            if (y < 0 || z < 0) continue;
            for (int64_t c = 0; c < w->channels; ++c)
              sum += (image[c * plane + y * s.in_w + z] - zero) *
                     weights[tap * w->channels + c];
          }
          finish(sum, o, p * out_plane + at);
        }
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindConv(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConv(context->op(), context->Input("Input")->shape(),
                               context->Input("Filter")->shape()));
  const WindowAxis &h = g.axes[0], &v = g.axes[1];
  return BindWindows(
      context, {h, v, ConvSource, h.in, v.in, h.out, v.out, g.batch, g.groups});
}

absl::StatusOr<Step> BindTranspose(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConvTranspose(context->op(), context->Input("Input")->shape(),
                        context->Input("Filter")->shape()));
  const WindowAxis &h = g.axes[0], &v = g.axes[1];
  return BindWindows(
      context, {h, v, TransposedSource, h.out, v.out, h.in, v.in, g.batch, 1});
}

absl::StatusOr<Step> BindMatmul(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  Tensor* x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(const Int8Product p,
                      ReadInt8Product(context->op(), x->shape(),
                                      context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(Int8Weights read, ReadInt8Weights(context));
  PD_ASSIGN_OR_RETURN(const Finish finish, ReadFinish(context, read));
  const auto w = std::make_shared<const Int8Weights>(std::move(read));
  const int32_t zero = context->Attr<int32_t>("x_zero");
  return Step([=](const RunContext&) {
    const uint8_t* in = x->data<uint8_t>();
    ParallelFor(p.rows * p.columns, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const uint8_t* row = in + at / p.columns * p.depth;
        const int64_t o = at % p.columns;
        const int8_t* weights = w->values.data() + o * p.depth;
        int32_t sum = 0;
        for (int64_t k = 0; k < p.depth; ++k)
          sum += (row[k] - zero) * weights[k];
        finish(sum, o, at);
      }
    });
    return absl::OkStatus();
  });
}

absl::Status InferConv(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  if (input.shape.size() != 4)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input.shape));
  PD_ASSIGN_OR_RETURN(
      const ConvGeometry g,
      ReadConv(context->op(), input.shape, context->Input("Filter").shape));
  if (g.channels_last) return InvalidArgument("it is for NCHW");
  context->SetOutput("Output", g.OutputShape(), Int8OutDType(context->op()));
  context->SetOutput("OutputFloat", g.OutputShape(), DType::kFloat32);
  return absl::OkStatus();
}

absl::Status InferTranspose(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  if (input.shape.size() != 4)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input.shape));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConvTranspose(context->op(), input.shape,
                                        context->Input("Filter").shape));
  if (g.channels_last || g.groups != 1)
    return InvalidArgument("it is for NCHW and one group");
  context->SetOutput("Output", g.InputShape(), Int8OutDType(context->op()));
  context->SetOutput("OutputFloat", g.InputShape(), DType::kFloat32);
  return absl::OkStatus();
}

absl::Status InferMatmul(InferContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Int8Product p,
      ReadInt8Product(context->op(), context->Input("Input").shape,
                      context->Input("Filter").shape));
  context->SetOutput("Output", p.shape, Int8OutDType(context->op()));
  context->SetOutput("OutputFloat", p.shape, DType::kFloat32);
  return absl::OkStatus();
}

OpDef Product(const char* type) {
  OpDef def(type);
  def.Input("Input");
  AddInt8Weights(&def);
  def.OptionalInput("Bias").OptionalInput("ResidualData").Output("Output");
  def.OptionalOutput("OutputFloat");
  for (const char* slot : {"NormScale", "NormBias", "NormMean", "NormVariance"})
    def.OptionalInput(slot);
  def.Attr("norm_epsilon", 1e-5f);
  AddInt8Input("x", &def);
  AddInt8Input("y", &def);
  AddInt8Output(&def);
  def.NoGrad();
  return def;
}

}  // namespace

absl::Status RegisterInt8Conv(OpRegistry* registry) {
  OpDef conv = Product("int8_conv2d");
  conv.Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>{1, 1})
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string("NCHW"));
  conv.Infer(InferConv).Reference(BindConv);
  PD_RETURN_IF_ERROR(registry->Add(std::move(conv)));
  OpDef transpose = Product("int8_conv2d_transpose");
  transpose.Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("output_padding", std::vector<int32_t>{})
      .Attr("output_size", std::vector<int32_t>{})
      .Attr("padding_algorithm", std::string("EXPLICIT"))
      .Attr("dilations", std::vector<int32_t>{1, 1})
      .Attr("groups", int32_t{1})
      .Attr("data_format", std::string("NCHW"));
  transpose.Infer(InferTranspose).Reference(BindTranspose);
  PD_RETURN_IF_ERROR(registry->Add(std::move(transpose)));
  OpDef matmul = Product("int8_matmul");
  matmul.Attr("x_num_col_dims", int32_t{1}).Attr("trans_y", false);
  matmul.Infer(InferMatmul).Reference(BindMatmul);
  return registry->Add(std::move(matmul));
}

}  // namespace pd
