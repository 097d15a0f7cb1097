// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/int8/packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libcore/base/status_macros.h"

namespace pd {
namespace int8 {

std::shared_ptr<int8_t[]> ZeroedWeights(size_t bytes) {
  constexpr size_t kLine = 64;
  const size_t whole = (bytes + 2 * kLine - 1) / kLine * kLine;
  void* p = std::aligned_alloc(kLine, whole);
  PD_INVARIANT(p != nullptr);
  std::memset(p, 0, whole);
  return std::shared_ptr<int8_t[]>(static_cast<int8_t*>(p), std::free);
}

void ShareWeights(size_t bytes, std::shared_ptr<int8_t[]>* weights) {
  struct Held {
    std::weak_ptr<int8_t[]> weights;
    size_t bytes = 0;
  };
  static auto* const mutex = new std::mutex;
  static auto* const table = new std::unordered_multimap<size_t, Held>;
  const size_t hash = std::hash<std::string_view>()(
      {reinterpret_cast<const char*>(weights->get()), bytes});
  const std::lock_guard<std::mutex> lock(*mutex);
  const auto [begin, end] = table->equal_range(hash);
  for (auto it = begin; it != end;) {
    const std::shared_ptr<int8_t[]> held = it->second.weights.lock();
    if (held != nullptr && it->second.bytes == bytes &&
        std::memcmp(held.get(), weights->get(), bytes) == 0) {
      *weights = held;
      return;
    }
    it = held == nullptr ? table->erase(it) : std::next(it);
  }
  // Entries of models that are gone would fill the table.
  for (auto it = table->begin(); it != table->end();)
    it = it->second.weights.expired() ? table->erase(it) : std::next(it);
  table->emplace(hash, Held{*weights, bytes});
}

absl::Status FillChannels(BindContext* context, const Int8Weights& w,
                          const std::vector<int64_t>& order, Packed* packed) {
  const OpDesc& op = context->op();
  PD_ASSIGN_OR_RETURN(static_cast<Int8Epilogue&>(packed->finish),
                      ReadInt8Epilogue(op));
  const Int8In in = ReadInt8In(op, "x");
  packed->zero = in.zero;
  PD_ASSIGN_OR_RETURN(const Int8Channels channels,
                      ReadInt8Channels(context, w));
  for (const char* slot : {"Filter", "FilterScale", "FilterZero", "Bias",
                           "NormScale", "NormBias", "NormMean", "NormVariance"})
    if (Tensor* read = context->Input(slot)) context->NoBuffer(read);
  const int64_t depth = w.taps * w.channels;
  for (const int64_t o : order) {
    int64_t sum = 0;
    if (o >= 0)
      for (int64_t i = 0; i < depth; ++i)
        sum += w.values[static_cast<size_t>(o * depth + i)];
    packed->offsets.push_back(static_cast<int32_t>(-sum * in.zero));
    const auto at = static_cast<size_t>(o);
    packed->scales.push_back(o >= 0 ? channels.scales[at] : 0.0f);
    packed->bias.push_back(o >= 0 ? channels.bias[at] : 0.0f);
  }
  return absl::OkStatus();
}

void PrepareFinish(const Int8Weights& w, Packed* packed) {
  Finish& f = packed->finish;
  f.clamps = false;
  f.low = static_cast<int16_t>(f.out.low);
  f.high = static_cast<int16_t>(f.out.high);
  const bool floats =
      packed->floats != nullptr || (packed->residual != nullptr &&
                                    packed->residual->dtype() != DType::kUInt8);
  const bool relu = f.act.kind == Int8Act::Kind::kRelu;
  const bool clip = f.act.kind == Int8Act::Kind::kClip;
  if (floats || !f.out.quantized() ||
      (f.act.kind != Int8Act::Kind::kNone && !relu && !clip))
    return;
  double most = 0;
  const double sums = 255.0 * static_cast<double>(w.LargestSum());
  for (size_t i = 0; i < packed->scales.size(); ++i) {
    const double z = std::fabs(double{packed->scales[i]}) * sums +
                     std::fabs(double{packed->bias[i]});
    if (!(z <= most)) most = z;  // NaN too
  }
  if (packed->residual != nullptr) most += 255 * std::fabs(double{f.y.scale});
  constexpr double kFits = 1 << 30;
  if (!(most * f.out.factor < kFits)) return;
  // Multiplying by the factor and rounding keep an order: the activation's
  // bounds are bounds of the integers, where they meet those of the output.
  double low = f.out.low, high = f.out.high;
  if (relu || clip) {
    const float from = relu ? 0 : f.act.a * f.out.factor;
    const double to =
        relu ? high : std::nearbyint(f.act.b * f.out.factor) + f.out.zero;
    const double least = std::nearbyint(from) + f.out.zero;
    if (!(least <= high && to >= low && least <= to)) return;
    low = std::max(low, least);
    high = std::min(high, to);
  }
  f.low = static_cast<int16_t>(low);
  f.high = static_cast<int16_t>(high);
  f.clamps = true;
}

bool NoPairSaturates(const int8_t* weights, size_t count, int32_t high) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t a = weights[2 * i], b = weights[2 * i + 1];
    const int32_t up = std::max(a, 0) + std::max(b, 0);
    const int32_t down = std::min(a, 0) + std::min(b, 0);
    if (up * high > std::numeric_limits<int16_t>::max() ||
        down * high < std::numeric_limits<int16_t>::min())
      return false;
  }
  return true;
}

DotKind KindOf(const Tiles& tiles, const Int8Weights& w, int32_t high) {
  if (tiles.vnni) return DotKind::kQuads;
  // Neighbours in a row: channels of a tap, or of two where rows are copied.
  const auto depth = static_cast<size_t>(w.taps * w.channels);
  for (size_t o = 0; o < static_cast<size_t>(w.outputs); ++o)
    if (!NoPairSaturates(w.values.data() + o * depth, depth / 2, high))
      return DotKind::kWords;
  return DotKind::kPairs;
}

namespace {

// Bounds of the sums of a quad's pairs in 16 bits, up and down, for an input of
// 1: one number for each lane and sign.
constexpr int kReaches = 4 * kMaxColumns;
using Reach = std::array<int16_t, kReaches>;

Reach ReachOf(const int8_t* quad, int64_t columns) {
  Reach reach = {};
  for (int64_t i = 0; i < 2 * columns; ++i) {
    const int a = quad[2 * i], b = quad[2 * i + 1];
    reach[static_cast<size_t>(i)] =
        static_cast<int16_t>(std::max(a, 0) + std::max(b, 0));
    reach[static_cast<size_t>(i) + kReaches / 2] =
        static_cast<int16_t>(-std::min(a, 0) - std::min(b, 0));
  }
  return reach;
}

int16_t LargestSum(const Reach& a, const Reach& b) {
  int16_t most = 0;
  for (size_t i = 0; i < kReaches; ++i) {
    const auto sum = static_cast<int16_t>(a[i] + b[i]);
    most = sum > most ? sum : most;
  }
  return most;
}

// Of the quads of one tap, groups[n - 1] are those of n. Each quad takes the
// one next to it that makes the smallest sum, and so on.
using Groups = std::array<std::vector<int32_t>, kMaxGroup>;
Groups GroupsOf(const std::vector<Reach>& reaches, int16_t most) {
  constexpr size_t kNext = 64;  // all would take too long
  Groups groups;
  std::vector<int32_t> left(reaches.size());
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    std::vector<int32_t> group;
    Reach sum = {};
    for (size_t best = 0; group.size() < kMaxGroup;) {
      const Reach& reach = reaches[static_cast<size_t>(left[best])];
      for (size_t i = 0; i < kReaches; ++i)
        sum[i] = static_cast<int16_t>(sum[i] + reach[i]);
      group.push_back(left[best]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
      int16_t least = std::numeric_limits<int16_t>::max();
      for (size_t i = 0; i < std::min(left.size(), kNext); ++i) {
        const int16_t largest =
            LargestSum(sum, reaches[static_cast<size_t>(left[i])]);
        if (largest >= least) continue;
        least = largest;
        best = i;
      }
      if (least > most || left.empty()) break;
    }
    std::vector<int32_t>& same = groups[group.size() - 1];
    same.insert(same.end(), group.begin(), group.end());
  }
  return groups;
}

}  // namespace

void GroupQuads(const PanelShape& shape, int32_t high, int8_t* panel,
                std::vector<int32_t>* order) {
  const int64_t quad_bytes = 4 * shape.columns;
  const auto tap_bytes = static_cast<size_t>(shape.quads * quad_bytes);
  const auto most = static_cast<int16_t>(std::numeric_limits<int16_t>::max() /
                                         std::max(high, 1));
  std::vector<Reach> reaches(static_cast<size_t>(shape.quads));
  std::vector<int8_t> turned(tap_bytes);
  for (int64_t t = 0; t < shape.taps; ++t, panel += tap_bytes) {
    for (int64_t q = 0; q < shape.quads; ++q)
      reaches[static_cast<size_t>(q)] =
          ReachOf(panel + q * quad_bytes, shape.columns);
    const Groups groups = GroupsOf(reaches, most);
    for (size_t n = 0; n < kMaxGroup; ++n)
      order->push_back(static_cast<int32_t>(groups[n].size() / (n + 1)));
    int8_t* to = turned.data();
    for (size_t n = kMaxGroup; n-- > 0;)
      for (const int32_t quad : groups[n]) {
        order->push_back(4 * quad);
        to = std::copy_n(panel + quad * quad_bytes, quad_bytes, to);
      }
    std::copy(turned.begin(), turned.end(), panel);
  }
}

absl::StatusOr<Tensor*> BindResidual(BindContext* context, const Tensor* src,
                                     Tensor* out) {
  Tensor* residual = context->Input("ResidualData");
  if (residual == nullptr) return residual;
  if (residual->shape() != out->shape() ||
      (residual->dtype() != DType::kUInt8 &&
       residual->dtype() != DType::kFloat32))
    return Unimplemented("the residual is %s of shape %s",
                         Name(residual->dtype()), ToString(residual->shape()));
  PD_ASSIGN_OR_RETURN(residual, context->In(residual, out->layout()));
  if (residual != src && residual->dtype() == out->dtype())
    context->MayShare(residual, out);
  return residual;
}

absl::StatusOr<Tensor*> BindFloats(BindContext* context, const Tensor& out) {
  Tensor* floats = context->Output("OutputFloat");
  if (floats == nullptr) return floats;
  return context->Out(floats, out.layout());
}

}  // namespace int8
}  // namespace pd
