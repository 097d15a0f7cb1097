// SPDX-License-Identifier: Apache-2.0
// Mixed precision: casts, gradients freed of the loss's scale, and the scale.
// The rules are those of libcore/ops (cast, loss_scaling).
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {
namespace {

PD_DEVICE void StoreNumber(const CastArgs& p, int64_t i, float value) {
  if (p.truncates && p.to_type == NumberType::kFloat16)
    static_cast<uint16_t*>(p.to)[i] = ToTruncatedFloat16(value);
  else if (p.truncates && p.to_type == NumberType::kBFloat16)
    static_cast<uint16_t*>(p.to)[i] = ToTruncatedBFloat16(value);
  else
    StoreFloat(p.to_type, p.to, i, value);
}

// A number that was truncated is one of its type: storing rounds it no more.
PD_DEVICE float TruncatedTo(NumberType type, float value) {
  return type == NumberType::kFloat16 ? FromFloat16(ToTruncatedFloat16(value))
         : type == NumberType::kBFloat16
             ? FromBFloat16(ToTruncatedBFloat16(value))
             : value;
}

struct CastFloats {
  PD_DEVICE static void Run(const Block& block, const CastArgs& p) {
    FloatsIn from;
    from.at = p.from;
    from.type = p.from_type;
    FloatsOut to;
    to.at = p.to;
    to.type = p.to_type;
    const int64_t packs =
        IsAligned<kPack>(from) && IsAligned<kPack>(to) ? p.n / kPack : 0;
    block.Spread(packs, [&](int64_t i) {
      auto pack = LoadPack<kPack>(from, i * kPack);
      if (p.truncates) {
        PD_UNROLL
        for (int j = 0; j < kPack; ++j)
          pack[j] = TruncatedTo(p.to_type, pack[j]);
      }
      StorePack(to, i * kPack, pack);
    });
    const int64_t first = packs * kPack;
    block.Spread(p.n - first, [&](int64_t i) {
      StoreNumber(p, first + i, from[first + i]);
    });
  }
};

template <typename T>
PD_DEVICE void StoreAny(const CastArgs& p, int64_t i, T value) {
  switch (p.to_type) {
    case NumberType::kFloat64:
      static_cast<double*>(p.to)[i] = static_cast<double>(value);
      break;
    case NumberType::kInt64:
      static_cast<int64_t*>(p.to)[i] = static_cast<int64_t>(value);
      break;
    case NumberType::kInt32:
      static_cast<int32_t*>(p.to)[i] = static_cast<int32_t>(value);
      break;
    case NumberType::kUInt8:
      static_cast<uint8_t*>(p.to)[i] = static_cast<uint8_t>(value);
      break;
    case NumberType::kBool:
      static_cast<bool*>(p.to)[i] = value != 0;
      break;
    default:
      StoreNumber(p, i, static_cast<float>(value));
  }
}

// Integers go by int64, others by double, which holds them exactly.
struct CastAny {
  PD_DEVICE static void Run(const Block& block, const CastArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      switch (p.from_type) {
        case NumberType::kInt64:
          return StoreAny(p, i, static_cast<const int64_t*>(p.from)[i]);
        case NumberType::kInt32:
          return StoreAny<int64_t>(p, i,
                                   static_cast<const int32_t*>(p.from)[i]);
        case NumberType::kUInt8:
        case NumberType::kBool:
          return StoreAny<int64_t>(p, i,
                                   static_cast<const uint8_t*>(p.from)[i]);
        case NumberType::kFloat64:
          return StoreAny(p, i, static_cast<const double*>(p.from)[i]);
        default:
          return StoreAny<double>(p, i, LoadFloat(p.from_type, p.from, i));
      }
    });
  }
};

// A block for each tensor and kUpdateChunk elements of it.
struct Part {
  int32_t tensor;
  int64_t first, last;
};
PD_DEVICE Part PartOf(const ScalingArgs& p, int64_t block) {
  int low = 0, high = p.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (p.tensors[middle].first_block <= block)
      low = middle;
    else
      high = middle;
  }
  const ScaledTensor& t = p.tensors[low];
  const int64_t first = (block - t.first_block) * kUpdateChunk;
  return {low, first, first + kUpdateChunk < t.n ? first + kUpdateChunk : t.n};
}

// bad[i] = 1 where tensor i has a number that is not finite. They are 0 before.
struct LookForInfinite {
  PD_DEVICE static void Run(const Block& block, const ScalingArgs& p) {
    const Part part = PartOf(p, block.index());
    const ScaledTensor& t = p.tensors[part.tensor];
    block.Each([&](int thread) {
      for (int64_t i = part.first + thread; i < part.last; i += block.threads())
        if (!(fabsf(LoadFloat(t.type, t.in, i)) < HUGE_VALF))
          p.bad[part.tensor] = 1;
    });
  }
};

// A bad tensor, and every tensor after it in the list, is multiplied by 0.
struct Unscale {
  PD_DEVICE static void Run(const Block& block, const ScalingArgs& p) {
    const Part part = PartOf(p, block.index());
    const ScaledTensor& t = p.tensors[part.tensor];
    bool bad = false;
    for (int32_t i = 0; i <= part.tensor; ++i) bad = bad || p.bad[i] != 0;
    const float factor = bad ? 0.0f : 1 / *p.scale;
    block.Each([&](int thread) {
      for (int64_t i = part.first + thread; i < part.last; i += block.threads())
        StoreFloat(t.type, t.out, i, LoadFloat(t.type, t.in, i) * factor);
      if (block.index() != 0 || thread != 0) return;
      bool found = false;
      for (int32_t i = 0; i < p.count; ++i) found = found || p.bad[i] != 0;
      *p.found = found;
    });
  }
};

struct ClearIfFound {
  PD_DEVICE static void Run(const Block& block, const ScalingArgs& p) {
    const Part part = PartOf(p, block.index());
    const ScaledTensor& t = p.tensors[part.tensor];
    const bool found = *p.found;
    if (!found && t.in == t.out) return;
    block.Each([&](int thread) {
      for (int64_t i = part.first + thread; i < part.last; i += block.threads())
        StoreFloat(t.type, t.out, i, found ? 0.0f : LoadFloat(t.type, t.in, i));
    });
  }
};

struct MoveScale {
  PD_DEVICE static void Run(const Block& block, const ScalingArgs& p) {
    block.Spread(1, [&](int64_t) {
      const bool found = *p.found;
      const float before = *p.scale;
      int32_t good = found ? 0 : *p.good + 1;
      int32_t bad = found ? *p.bad_steps + 1 : 0;
      float scale = before;
      if (found && bad == p.shrink_after) {
        scale = fmaxf(1.0f, before * p.shrink);
        bad = 0;
      } else if (!found && good == p.grow_after) {
        scale = before * p.grow;
        if (!(fabsf(scale) < HUGE_VALF)) scale = before;
        good = 0;
      }
      if (p.stops) {
        scale = before;
        good = *p.good;
        bad = *p.bad_steps;
      }
      *p.scale_out = scale;
      *p.good_out = good;
      *p.bad_steps_out = bad;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(cast_floats, CastFloats, CastArgs)
PD_KERNEL(cast_any, CastAny, CastArgs)
PD_KERNEL(look_for_infinite, LookForInfinite, ScalingArgs)
PD_KERNEL(unscale, Unscale, ScalingArgs)
PD_KERNEL(clear_if_found, ClearIfFound, ScalingArgs)
PD_KERNEL(move_scale, MoveScale, ScalingArgs)
