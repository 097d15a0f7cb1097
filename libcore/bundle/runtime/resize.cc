// SPDX-License-Identifier: Apache-2.0
// Pictures of other extents, [N, C, H, W]: the nearest element, or a mean of
// the four around by distance. With r the input's extent by the output's, or
// 1 / scale where coordinates follow the scale, or with aligned corners
// (in - 1) / (out - 1), output position o reads
//   nearest: floor(r o), with aligned corners floor(r o + 1/2)
//   linear:  s = r o, or r (o + 1/2) - 1/2, at least 0, between centers;
//            floor(s) and the next, by what s lies between the two
#include <algorithm>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

// The extents of the result.
bool ReadExtents(Call* call, int64_t* extents) {
  const Shape& x = call->In(0).shape;
  std::vector<int64_t> given;
  if (call->Has(1)) {
    if (!call->KnownInts(1, &given)) return false;
    if (given.size() != 2) return call->Fail("%zu extents", given.size());
  }
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<size_t>(i);
    const float scale = call->Float(ResizeFloats::kHeight + at);
    constexpr float kMost = 16777216.0f;
    if (!given.empty()) {
      extents[i] = given[at];
    } else if (scale == 0.0f) {
      extents[i] = call->Int(ResizeInts::kHeight + at);
    } else {
      const float scaled = static_cast<float>(x[2 + i]) * scale;
      if (!(scaled > 0.0f && scaled < kMost))
        return call->Fail("extent %lld times %g",
                          static_cast<long long>(x[2 + i]),
                          static_cast<double>(scale));
      extents[i] = static_cast<int64_t>(scaled);
    }
    if (extents[i] < 1 || extents[i] > static_cast<int64_t>(kMost) ||
        x[2 + i] < 1)
      return call->Fail("extent %lld cannot become %lld",
                        static_cast<long long>(x[2 + i]),
                        static_cast<long long>(extents[i]));
  }
  return true;
}

bool PrepareResize(Call* call) {
  int64_t extents[2] = {};
  if (!call->ExpectFloats(0, 4) || !ReadExtents(call, extents)) return false;
  const Shape& x = call->In(0).shape;
  return call->Give(0, DType::kFloat32,
                    {4, {x[0], x[1], extents[0], extents[1]}});
}

// Two input positions for each output position, and the second's weight.
struct Taps {
  std::vector<int64_t> low, high;
  std::vector<float> weight;
};

Taps TapsOf(const Call& call, int axis) {
  const int64_t in = call.In(0).shape[axis], out = call.Out(0).shape[axis];
  const bool corners = call.Int(ResizeInts::kAlignCorners) != 0;
  const float scale =
      call.Float(ResizeFloats::kHeight + static_cast<size_t>(axis - 2));
  float ratio = 0;
  if (out > 1) {
    ratio = static_cast<float>(in) / static_cast<float>(out);
    if (scale > 0 && call.Float(ResizeFloats::kCoordinates) != 0.0f)
      ratio = static_cast<float>(1.0 / static_cast<double>(scale));
    if (corners)
      ratio = static_cast<float>(in - 1) / static_cast<float>(out - 1);
  }
  const Shape &x = call.In(0).shape, &y = call.Out(0).shape;
  if (x[2] == y[2] && x[3] == y[3]) ratio = 1;  // a copy
  const bool copy = ratio == 1.0f && x == y;
  Taps taps;
  for (int64_t o = 0; o < out; ++o) {
    float source = ratio * static_cast<float>(o);
    if (call.Int(ResizeInts::kLinear) == 0) {
      if (corners && !copy)
        source = static_cast<float>(static_cast<double>(source) + 0.5);
    } else if (call.Int(ResizeInts::kCenters) != 0 && !copy) {
      source = static_cast<float>(
          static_cast<double>(ratio) * (static_cast<double>(o) + 0.5) - 0.5);
      source = std::max(source, 0.0f);
    }
    const int64_t low =
        std::clamp<int64_t>(static_cast<int64_t>(source), 0, in - 1);
    const bool linear = call.Int(ResizeInts::kLinear) != 0;
    taps.low.push_back(low);
    taps.high.push_back(linear ? std::min(low + 1, in - 1) : low);
    taps.weight.push_back(
        linear ? std::clamp(source - static_cast<float>(low), 0.0f, 1.0f)
               : 0.0f);
  }
  return taps;
}

bool RunResize(Call* call) {
  const Shape &x = call->In(0).shape, &out = call->Out(0).shape;
  const Taps rows = TapsOf(*call, 2), columns = TapsOf(*call, 3);
  const int64_t in_plane = x[2] * x[3], out_plane = out[2] * out[3];
  call->threads()->For(x[0] * x[1], [&](int64_t begin, int64_t end, int) {
    for (int64_t p = begin; p < end; ++p) {
      const float* plane = call->In(0).as<float>() + p * in_plane;
      float* to = call->Out(0).as<float>() + p * out_plane;
      for (size_t i = 0; i < rows.low.size(); ++i) {
        const float *top = plane + rows.low[i] * x[3],
                    *bottom = plane + rows.high[i] * x[3];
        const float down = rows.weight[i];
        for (size_t j = 0; j < columns.low.size(); ++j) {
          const int64_t left = columns.low[j], right = columns.high[j];
          const float over = columns.weight[j];
          *to++ = (1 - down) * ((1 - over) * top[left] + over * top[right]) +
                  down * ((1 - over) * bottom[left] + over * bottom[right]);
        }
      }
    }
  });
  return true;
}

}  // namespace

const Kernel kResize = {"resize",
                        {1, 2},
                        {1, 1},
                        {ResizeInts::kAll, ResizeInts::kAll},
                        {ResizeFloats::kAll, ResizeFloats::kAll},
                        PrepareResize,
                        RunResize};

}  // namespace pd_run
