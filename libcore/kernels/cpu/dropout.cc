// SPDX-License-Identifier: Apache-2.0
// dropout in training, and its gradient: the same numbers of Philox4x32-10 as
// libcore/base/rng.h gives, many blocks of four at a time. A uniform number is
// the upper 24 bits of a word, so that they are compared as integers; the four
// words of a block make four bytes of the mask, one word of it.
#include "libcore/kernels/cpu/dropout.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/ops/common/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/dropout.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<uint32_t> kWords;
const hn::Repartition<uint64_t, decltype(kWords)> kWide;
const hn::RebindToSigned<decltype(kWords)> kSigned;
using W = hn::Vec<decltype(kWords)>;

struct Product {
  W high, low;
};

HWY_INLINE Product Multiply(W a, W b) {
  const auto even = hn::MulEven(a, b);
  const W odd_a =
      hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(kWide, a)));
  const auto odd = hn::MulEven(odd_a, b);
  return {hn::OddEven(hn::BitCast(kWords, odd),
                      hn::BitCast(kWords, hn::ShiftRight<32>(even))),
          hn::Mul(a, b)};
}

// 1 where the upper 24 bits are `least` or more, else 0, `by` bits to the left.
template <int by>
HWY_INLINE W KeepBit(W word, hn::Vec<decltype(kSigned)> least) {
  const auto bits = hn::BitCast(kSigned, hn::ShiftRight<8>(word));
  const auto dropped = hn::Lt(bits, least);
  return hn::ShiftLeft<by>(
      hn::IfThenZeroElse(hn::RebindMask(kWords, dropped), hn::Set(kWords, 1)));
}

// Four bytes of the mask for each of the blocks [begin, end), all below 2^32.
void MaskBlocks(uint64_t seed, uint64_t stream, uint32_t least, int64_t begin,
                int64_t end, uint8_t* mask) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kWords));
  const W m0 = hn::Set(kWords, 0xD2511F53u), m1 = hn::Set(kWords, 0xCD9E8D57u);
  const auto limit = hn::Set(kSigned, static_cast<int32_t>(least));
  for (int64_t i = begin; i < end; i += lanes) {
    W c0 = hn::Iota(kWords, static_cast<uint32_t>(i));
    W c1 = hn::Zero(kWords);
    W c2 = hn::Set(kWords, static_cast<uint32_t>(stream));
    W c3 = hn::Set(kWords, static_cast<uint32_t>(stream >> 32));
    uint32_t k0 = static_cast<uint32_t>(seed);
    uint32_t k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const Product p0 = Multiply(c0, m0), p1 = Multiply(c2, m1);
      c0 = hn::Xor(hn::Xor(p1.high, c1), hn::Set(kWords, k0));
      c2 = hn::Xor(hn::Xor(p0.high, c3), hn::Set(kWords, k1));
      c1 = p1.low;
      c3 = p0.low;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const W bytes =
        hn::Or(hn::Or(KeepBit<0>(c0, limit), KeepBit<8>(c1, limit)),
               hn::Or(KeepBit<16>(c2, limit), KeepBit<24>(c3, limit)));
    uint32_t* to = reinterpret_cast<uint32_t*>(mask + 4 * i);
    if (end - i >= lanes)
      hn::StoreU(bytes, kWords, to);
    else
      hn::BlendedStore(bytes, hn::FirstN(kWords, static_cast<size_t>(end - i)),
                       kWords, to);
  }
}

void MaskFloats(const float* x, const uint8_t* mask, float factor, int64_t n,
                float* out) {
  const hn::RebindToFloat<decltype(kSigned)> floats;
  const hn::Rebind<uint8_t, decltype(kSigned)> bytes;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(floats));
  const auto scale = hn::Set(floats, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto kept = hn::PromoteTo(kSigned, hn::LoadU(bytes, mask + i));
    const auto dropped =
        hn::RebindMask(floats, hn::Eq(kept, hn::Zero(kSigned)));
    hn::StoreU(
        hn::IfThenZeroElse(dropped, hn::Mul(hn::LoadU(floats, x + i), scale)),
        floats, out + i);
  }
  for (; i < n; ++i) out[i] = mask[i] != 0 ? x[i] * factor : 0.0f;
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(MaskBlocks);
HWY_EXPORT(MaskFloats);

namespace {

constexpr int64_t kGrain = 4096;  // blocks, or vectors of them, a thread

}  // namespace

void ApplyMask(const float* x, const uint8_t* mask, float factor, int64_t n,
               float* out) {
  HWY_DYNAMIC_DISPATCH(MaskFloats)(x, mask, factor, n, out);
}

void DrawMaskHere(DropoutSource::Numbers numbers, double probability,
                  int64_t begin, int64_t end, uint8_t* mask) {
  const uint32_t least = static_cast<uint32_t>(std::ceil(
      static_cast<double>(static_cast<float>(probability)) * (1 << 24)));
  const Philox random(numbers.seed, numbers.stream);
  const auto one_by_one = [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i)
      mask[i] = random.U32(static_cast<uint64_t>(i)) >> 8 >= least;
  };
  const int64_t first = (begin + 3) / 4, last = end / 4;  // whole blocks
  if (first >= last) return one_by_one(begin, end);
  one_by_one(begin, 4 * first);
  HWY_DYNAMIC_DISPATCH(MaskBlocks)
  (numbers.seed, numbers.stream, least, first, last, mask);
  one_by_one(4 * last, end);
}

absl::StatusOr<Step> BindDropout(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Dropout d, ReadDropout(*context));
  if (d.is_test) return Unimplemented("it is for training");
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x->size() >= kMostDraws)
    return Unimplemented("it is for less than 2^33 elements");
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  Tensor* mask = context->Output("Mask");
  if (mask == nullptr)
    mask = context->Scratch(static_cast<size_t>(x->size()));
  else if (mask->shape() != x->shape())
    return Unimplemented("it has no mask of another shape");
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const DropoutSource source, ReadDropoutSource(*context));
  return Step(
      [=, factor = static_cast<float>(d.KeptFactor())](const RunContext& run) {
        const DropoutSource::Numbers numbers = source.At(run);
        const float* in = x->data<float>();
        uint8_t* kept = mask->data<uint8_t>();
        float* result = out->data<float>();
        const int64_t n = x->size();
        // Parts begin at blocks; pieces of a part stay in the first cache.
        ParallelFor((n + 3) / 4, kGrain, [&](int64_t begin, int64_t end) {
          constexpr int64_t kPiece = 1024;
          for (int64_t b = begin; b < end; b += kPiece) {
            const int64_t from = 4 * b;
            const int64_t to = std::min(4 * std::min(end, b + kPiece), n);
            DrawMaskHere(numbers, d.probability, from, to, kept);
            ApplyMask(in + from, kept + from, factor, to - from, result + from);
          }
        });
        return absl::OkStatus();
      });
}

absl::StatusOr<Step> BindDropoutGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Dropout d, ReadDropout(*context));
  Tensor* mask = context->Input("Mask");
  if (d.is_test || mask == nullptr) return Unimplemented("it is for training");
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input("Out@GRAD"), nullptr));
  if (dout->dtype() != DType::kFloat32 || mask->shape() != dout->shape())
    return Unimplemented("it is for float32 with a mask of the same shape");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Mask", DType::kUInt8, dout->shape()));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), nullptr));
  context->MayShare(dout, dx);
  return Step([=,
               factor = static_cast<float>(d.KeptFactor())](const RunContext&) {
    const float* g = dout->data<float>();
    const uint8_t* kept = mask->data<uint8_t>();
    float* result = dx->data<float>();
    ParallelFor(dout->size(), 4 * kGrain, [&](int64_t begin, int64_t end) {
      ApplyMask(g + begin, kept + begin, factor, end - begin, result + begin);
    });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
