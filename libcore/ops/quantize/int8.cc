// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/quantize/int8.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd {
namespace {

bool IsMatrix(const OpDesc& op) { return op.type != "int8_conv2d"; }

// The axis of output channels of a Filter as it lies in its file.
size_t OutputAxis(const OpDesc& op) {
  if (op.type == "int8_conv2d_transpose") return 1;
  return IsMatrix(op) && !op.Attr<bool>("trans_y") ? 1 : 0;
}

// Every element as a float, row-major: integers of 8 bits are exact.
absl::StatusOr<std::vector<float>> Numbers(const Tensor& tensor,
                                           const char* slot) {
  const Array array = ToArray(tensor);
  std::vector<float> values(static_cast<size_t>(array.size()));
  const absl::Status status = DispatchTypes<float, int8_t, uint8_t, int32_t>(
      array.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        const T* from = reinterpret_cast<const T*>(array.bytes.get());
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<float>(from[i]);
        return absl::OkStatus();
      });
  if (!status.ok()) return Annotate(status, absl::StrCat("'", slot, "'"));
  return values;
}

// One number for each channel out of one, or as many.
absl::StatusOr<std::vector<float>> Spread(const Tensor& tensor,
                                          const char* slot, int64_t channels) {
  PD_ASSIGN_OR_RETURN(std::vector<float> values, Numbers(tensor, slot));
  if (values.size() == 1)
    values.resize(static_cast<size_t>(channels), values[0]);
  if (static_cast<int64_t>(values.size()) != channels)
    return InvalidArgument("'%s' has shape %s; expected 1 number, or %d", slot,
                           ToString(tensor.shape()), channels);
  return values;
}

// Floats become integers by the rule of the fake_quantize ops.
void QuantizeFloats(const OpDesc& op, const ChannelView& view, bool has_scale,
                    std::vector<float>* scales, std::vector<float>* values) {
  if (!has_scale) AbsMaxOfChannels(values->data(), view, scales->data());
  const bool to_even = op.Attr<int32_t>("filter_round") == 0;
  ForChannels(values->data(), view, values->data(), [&](int64_t c) {
    return Quantizer<float>(127, to_even, false,
                            (*scales)[static_cast<size_t>(c)]);
  });
}

}  // namespace

Int8In ReadInt8In(const OpDesc& op, const char* slot) {
  const std::string prefix = absl::StrCat(slot, "_");
  Int8In in;
  in.scale = op.Attr<float>(prefix + "scale");
  in.zero = op.Attr<int32_t>(prefix + "zero");
  in.high = op.Attr<int32_t>(prefix + "high");
  return in;
}

absl::StatusOr<Int8Epilogue> ReadInt8Epilogue(const OpDesc& op) {
  static const std::pair<const char*, Int8Act::Kind> kActivations[] = {
      {"", Int8Act::Kind::kNone},
      {"relu", Int8Act::Kind::kRelu},
      {"clip", Int8Act::Kind::kClip},
      {"leaky_relu", Int8Act::Kind::kLeaky},
      {"hard_swish", Int8Act::Kind::kHardSwish},
      {"hard_sigmoid", Int8Act::Kind::kHardSigmoid}};
  Int8Epilogue e;
  const std::string name = op.Attr<std::string>("activation");
  bool known = false;
  for (const auto& [text, kind] : kActivations) {
    if (name != text) continue;
    e.act.kind = kind;
    known = true;
  }
  if (!known)
    return InvalidArgument("attr 'activation' is '%s'; expected one of int8's",
                           name);
  e.act.a = op.Attr<float>("act_a");
  e.act.b = op.Attr<float>("act_b");
  e.act.c = op.Attr<float>("act_c");
  e.out.factor = op.Attr<float>("out_factor");
  e.out.zero = op.Attr<int32_t>("out_zero");
  e.out.low = op.Attr<int32_t>("out_low");
  e.out.high = op.Attr<int32_t>("out_high");
  if (!std::isfinite(e.out.factor) || e.out.factor < 0 || e.out.low < 0 ||
      e.out.low > e.out.high || e.out.high > 255)
    return InvalidArgument(
        "attrs 'out_factor', 'out_low' and 'out_high' are %g, %d and %d; "
        "expected a positive factor, and bounds in [0, 255]",
        e.out.factor, e.out.low, e.out.high);
  if (op.FindAttr("y_scale") != nullptr) e.y = ReadInt8In(op, "y");
  return e;
}

DType Int8OutDType(const OpDesc& op) {
  return op.Attr<float>("out_factor") != 0 ? DType::kUInt8 : DType::kFloat32;
}

int64_t Int8Weights::LargestSum() const {
  int64_t most = 0;
  const auto size = static_cast<size_t>(taps * channels);
  for (size_t o = 0; o < static_cast<size_t>(outputs); ++o) {
    int64_t sum = 0;
    for (size_t i = 0; i < size; ++i) sum += std::abs(values[o * size + i]);
    most = std::max(most, sum);
  }
  return most;
}

absl::StatusOr<Int8Weights> ReadInt8Weights(BindContext* context) {
  for (const char* slot : {"Filter", "FilterScale", "FilterZero"}) {
    const Tensor* tensor = context->Input(slot);
    if (tensor != nullptr &&
        (!context->IsConstant(tensor) || !tensor->has_value()))
      return InvalidArgument("'%s' is not constant", slot);
  }
  return ReadInt8Weights(context->op(), *context->Input("Filter"),
                         context->Input("FilterScale"),
                         context->Input("FilterZero"));
}

absl::StatusOr<Int8Weights> ReadInt8Weights(const OpDesc& op,
                                            const Tensor& filter,
                                            const Tensor* scale,
                                            const Tensor* zero) {
  const Shape& shape = filter.shape();
  const size_t axis = OutputAxis(op);
  if (shape.size() < 2)
    return InvalidArgument("'Filter' has shape %s", ToString(shape));
  Int8Weights w;
  w.outputs = shape[axis];
  w.channels = shape[1 - axis];
  for (size_t i = 2; i < shape.size(); ++i) w.taps *= shape[i];
  PD_ASSIGN_OR_RETURN(std::vector<float> values, Numbers(filter, "Filter"));
  w.scales.assign(static_cast<size_t>(w.outputs), 0.0f);
  if (scale != nullptr) {
    PD_ASSIGN_OR_RETURN(w.scales, Spread(*scale, "FilterScale", w.outputs));
  }
  ChannelView view;
  PD_ASSIGN_OR_RETURN(view, ViewChannels(shape, static_cast<int64_t>(axis)));
  if (op.Attr<bool>("filter_floats")) {
    if (scale == nullptr && op.Attr<bool>("filter_whole")) {
      float most = 0;
      for (const float v : values) most = std::max(most, std::fabs(v));
      w.scales.assign(w.scales.size(), most);
    }
    QuantizeFloats(op, view, scale != nullptr || op.Attr<bool>("filter_whole"),
                   &w.scales, &values);
  } else if (scale == nullptr) {
    w.scales.assign(w.scales.size(), 1.0f);
  }
  std::vector<float> zeros(w.scales.size(), 0.0f);
  if (zero != nullptr) {
    PD_ASSIGN_OR_RETURN(zeros, Spread(*zero, "FilterZero", w.outputs));
  }
  const float levels = op.Attr<float>("filter_levels");
  for (float& s : w.scales) {
    s = s / levels;
    if (!std::isfinite(s) || s < 0)
      return InvalidArgument("'FilterScale' holds %g", s * levels);
  }
  w.values.resize(values.size());
  // From [outer, O, inner] to [O, taps, channels].
  size_t at = 0;
  for (int64_t outer = 0; outer < view.outer; ++outer)
    for (int64_t o = 0; o < view.channels; ++o)
      for (int64_t inner = 0; inner < view.inner; ++inner) {
        const float v = values[at++] - zeros[static_cast<size_t>(o)];
        if (!(v >= -128 && v <= 127) || v != std::nearbyint(v))
          return InvalidArgument(
              "'Filter' holds %g; expected integers of 8 bits", v);
        const int64_t c = axis == 1 ? outer : inner / w.taps;
        const int64_t tap = inner % w.taps;
        w.values[static_cast<size_t>((o * w.taps + tap) * w.channels + c)] =
            static_cast<int8_t>(v);
      }
  return w;
}

const std::vector<const char*>& Int8ChannelSlots() {
  static const auto* const kSlots = new std::vector<const char*>{
      "Bias", "NormScale", "NormBias", "NormMean", "NormVariance"};
  return *kSlots;
}

absl::StatusOr<Int8Channels> ReadInt8Channels(BindContext* context,
                                              const Int8Weights& weights) {
  std::map<std::string, const Tensor*> tensors;
  for (const char* slot : Int8ChannelSlots()) {
    const Tensor* tensor = context->Input(slot);
    if (tensor == nullptr) continue;
    if (!context->IsConstant(tensor) || !tensor->has_value())
      return InvalidArgument("'%s' is not constant", slot);
    tensors[slot] = tensor;
  }
  return ReadInt8Channels(context->op(), tensors, weights);
}

absl::StatusOr<Int8Channels> ReadInt8Channels(
    const OpDesc& op, const std::map<std::string, const Tensor*>& tensors,
    const Int8Weights& weights) {
  std::map<std::string, std::vector<float>> values;
  for (const auto& [slot, tensor] : tensors) {
    if (tensor->dtype() != DType::kFloat32 || tensor->size() != weights.outputs)
      return InvalidArgument("'%s' is %s of shape %s; expected %d of float32",
                             slot, Name(tensor->dtype()),
                             ToString(tensor->shape()), weights.outputs);
    PD_ASSIGN_OR_RETURN(values[slot], Numbers(*tensor, slot.c_str()));
  }
  const bool norm = values.count("NormScale") > 0;
  if (norm && values.size() < 4 + values.count("Bias"))
    return InvalidArgument("a part of the batch normalisation is missing");
  // int8_dynamic_matmul has neither: it finds its input's scale when it runs.
  const double epsilon = op.AttrOr("norm_epsilon", 1e-5f);
  const float scale = op.AttrOr("x_scale", 1.0f);
  Int8Channels channels;
  for (size_t o = 0; o < static_cast<size_t>(weights.outputs); ++o) {
    double factor = double{scale} * weights.scales[o];
    double bias = values.count("Bias") > 0 ? values["Bias"][o] : 0.0f;
    if (norm) {
      const double k = values["NormScale"][o] /
                       std::sqrt(values["NormVariance"][o] + epsilon);
      factor *= k;
      bias = bias * k + values["NormBias"][o] - values["NormMean"][o] * k;
    }
    channels.scales.push_back(static_cast<float>(factor));
    channels.bias.push_back(static_cast<float>(bias));
  }
  return channels;
}

absl::StatusOr<Int8Product> ReadInt8Product(const OpDesc& op, const Shape& x,
                                            const Shape& filter) {
  const auto split = static_cast<size_t>(op.Attr<int32_t>("x_num_col_dims"));
  if (filter.size() != 2 || split < 1 || split >= x.size())
    return InvalidArgument(
        "'Input' has shape %s, attr 'x_num_col_dims' is %d, and 'Filter' has "
        "shape %s",
        ToString(x), split, ToString(filter));
  Int8Product p;
  const size_t out = OutputAxis(op);
  p.columns = filter[out];
  p.rows = p.depth = 1;
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t* part = i < split ? &p.rows : &p.depth;
    *part = *part < 0 || x[i] < 0 ? -1 : *part * x[i];
    if (i < split) p.shape.push_back(x[i]);
  }
  p.shape.push_back(p.columns);
  if (p.depth >= 0 && p.depth != filter[1 - out])
    return InvalidArgument("'Input' has shape %s; 'Filter' has shape %s",
                           ToString(x), ToString(filter));
  return p;
}

void AddInt8Input(const char* slot, OpDef* def) {
  const std::string prefix = absl::StrCat(slot, "_");
  def->Attr(prefix + "scale", 1.0f).Attr(prefix + "zero", int32_t{0});
  def->Attr(prefix + "high", int32_t{255});
}

void AddInt8Output(OpDef* def) {
  def->Attr("activation", std::string()).Attr("act_a", 0.0f);
  def->Attr("act_b", 0.0f).Attr("act_c", 0.0f).Attr("out_factor", 0.0f);
  def->Attr("out_zero", int32_t{0}).Attr("out_low", int32_t{0});
  def->Attr("out_high", int32_t{255});
}

void AddInt8Weights(OpDef* def) {
  def->Input("Filter").OptionalInput("FilterScale").OptionalInput("FilterZero");
  def->Attr("filter_levels", 127.0f).Attr("filter_floats", false);
  def->Attr("filter_whole", false).Attr("filter_round", int32_t{0});
}

}  // namespace pd
