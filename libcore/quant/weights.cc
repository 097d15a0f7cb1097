// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/error.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

// The positions of a channel's elements.
std::vector<size_t> ElementsOf(const ChannelView& view, int64_t channel) {
  std::vector<size_t> elements;
  elements.reserve(static_cast<size_t>(view.outer * view.inner));
  for (int64_t o = 0; o < view.outer; ++o)
    for (int64_t i = 0; i < view.inner; ++i)
      elements.push_back(
          static_cast<size_t>((o * view.channels + channel) * view.inner + i));
  return elements;
}

float Scaled(float w, float scale, int32_t levels) {
  return w / scale * static_cast<float>(levels);
}

int32_t Rounded(float scaled, int32_t levels) {
  const float n = static_cast<float>(levels);
  return static_cast<int32_t>(
      std::max(std::min(std::nearbyint(scaled), n), -n - 1));
}

float BestScale(const float* w, const std::vector<size_t>& elements,
                int32_t levels, float most) {
  float best = most;
  double least = std::numeric_limits<double>::infinity();
  for (int percent = 100; percent >= 50; --percent) {
    const float scale = most * static_cast<float>(percent) / 100;
    double error = 0;
    for (const size_t i : elements) {
      const double d = w[i] - static_cast<double>(Rounded(
                                  Scaled(w[i], scale, levels), levels)) *
                                  scale / levels;
      error += d * d;
    }
    if (error >= least) continue;
    least = error;
    best = scale;
  }
  return best;
}

// Turns roundings over until the channel's mean error is below half a step.
void KeepMean(const float* w, float scale, const std::vector<size_t>& elements,
              int32_t levels, std::vector<int32_t>* values) {
  double sum = 0;
  std::vector<std::pair<double, size_t>> rests;
  for (const size_t i : elements) {
    const double rest =
        static_cast<double>(Scaled(w[i], scale, levels)) - (*values)[i];
    sum += rest;
    rests.emplace_back(rest, i);
  }
  const int32_t step = sum > 0 ? 1 : -1;
  std::sort(rests.begin(), rests.end(), [step](const auto& a, const auto& b) {
    return a.first * step != b.first * step ? a.first * step > b.first * step
                                            : a.second < b.second;
  });
  auto left = static_cast<int64_t>(std::nearbyint(std::fabs(sum)));
  for (const auto& [rest, i] : rests) {
    // Only what was rounded against the error can go the other way.
    if (left == 0 || rest * step <= 0) break;
    const int32_t value = (*values)[i] + step;
    if (value > levels || value < -levels - 1) continue;
    (*values)[i] = value;
    --left;
  }
}

template <typename T>
Array Converted(const QuantizedWeight& w) {
  std::vector<T> values;
  for (const int32_t v : w.values) values.push_back(static_cast<T>(v));
  return MakeArray<T>(w.shape, values);
}

}  // namespace

ChannelView ViewOf(const Shape& shape, int axis) {
  ChannelView view;
  view.inner = NumElements(shape);
  if (axis < 0) return view;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  view.outer = NumElements(Shape(shape.begin(), shape.begin() + at));
  view.channels = shape[static_cast<size_t>(axis)];
  view.inner = NumElements(Shape(shape.begin() + at + 1, shape.end()));
  return view;
}

Array QuantizedWeight::AsIntegers() const {
  return bits <= 8 ? Converted<int8_t>(*this) : Converted<int16_t>(*this);
}

Array QuantizedWeight::AsFloats() const { return Converted<float>(*this); }

Array QuantizedWeight::AsDequantized() const {
  const ChannelView view = ViewOf(shape, axis);
  std::vector<float> out(values.size());
  for (int64_t c = 0; c < view.channels; ++c)
    for (const size_t i : ElementsOf(view, c))
      out[i] = Dequantized(i, static_cast<size_t>(c));
  return MakeArray<float>(shape, out);
}

absl::StatusOr<QuantizedWeight> QuantizeWeight(const Array& w, int axis,
                                               const WeightOptions& options) {
  if (w.dtype != DType::kFloat32)
    return InvalidArgument("it is %s; expected float32", Name(w.dtype));
  const float* x = w.data<float>();
  for (int64_t i = 0, n = w.size(); i < n; ++i)
    if (!std::isfinite(x[i]))
      return InvalidArgument("element %d is %g; expected a finite number", i,
                             x[i]);
  QuantizedWeight result;
  result.shape = w.shape;
  result.bits = options.bits;
  result.axis = options.per_channel ? axis : -1;
  result.values.resize(static_cast<size_t>(w.size()));
  const int32_t levels = result.levels();
  const ChannelView view = ViewOf(w.shape, result.axis);
  result.scales.resize(static_cast<size_t>(view.channels));
  const auto quantize = [&](int64_t c) {
    const std::vector<size_t> elements = ElementsOf(view, c);
    float most = 0;
    for (const size_t i : elements) most = std::max(most, std::fabs(x[i]));
    // As PaddlePaddle has it: a channel of zeros has a scale too.
    float scale = most == 0 ? 1e-8f : most;
    if (options.mse && most > 0) scale = BestScale(x, elements, levels, most);
    result.scales[static_cast<size_t>(c)] = scale;
    for (const size_t i : elements)
      result.values[i] = Rounded(Scaled(x[i], scale, levels), levels);
    if (options.keep_mean) KeepMean(x, scale, elements, levels, &result.values);
  };
  ParallelFor(view.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) quantize(c);
  });
  return result;
}

}  // namespace pd
