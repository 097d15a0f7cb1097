// SPDX-License-Identifier: Apache-2.0
// The loops of tiles.h for one instruction set. A file that includes this has
// defined PD_INT8_NAMESPACE, PD_INT8_TARGET (as in GCC's attribute), and as 0
// or 1 PD_INT8_WIDE (512 bits, else 256) and PD_INT8_VNNI. No guard: each
// includes it once. Nothing of the standard library is used below: an inline
// function compiled here could replace the one of all others.
#include <immintrin.h>

#include "hwy/base.h"
#include "libcore/kernels/int8/tiles.h"

// GCC 12 takes the undefined upper halves of its own intrinsics for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
HWY_PUSH_ATTRIBUTES(PD_INT8_TARGET)
namespace pd {
namespace int8 {
namespace PD_INT8_NAMESPACE {

#if PD_INT8_WIDE
using Ints = __m512i;
using Floats = __m512;
constexpr int kLanes = 16;
constexpr int kRows = 12;
#define PD_INT8_OP(name) _mm512_##name
#define PD_INT8_BITS(name) _mm512_##name##_si512
inline Ints Load(const void* p) { return _mm512_loadu_si512(p); }
inline void Store(Ints v, void* p) { _mm512_storeu_si512(p, v); }
inline Floats NegativeTo(Floats z, Floats other) {
  return _mm512_mask_mov_ps(
      z, _mm512_cmp_ps_mask(z, _mm512_setzero_ps(), _CMP_NGT_UQ), other);
}
inline Ints BytesToInts(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
// The integers are within [0, 255].
inline void StoreBytes(Ints v, uint8_t* p) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
}
#else
using Ints = __m256i;
using Floats = __m256;
constexpr int kLanes = 8;
constexpr int kRows = 6;
#define PD_INT8_OP(name) _mm256_##name
#define PD_INT8_BITS(name) _mm256_##name##_si256
inline Ints Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const Ints*>(p));
}
inline void Store(Ints v, void* p) {
  _mm256_storeu_si256(static_cast<Ints*>(p), v);
}
inline Floats NegativeTo(Floats z, Floats other) {
  return _mm256_blendv_ps(z, other,
                          _mm256_cmp_ps(z, _mm256_setzero_ps(), _CMP_NGT_UQ));
}
inline Ints BytesToInts(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(
      _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
inline void StoreBytes(Ints v, uint8_t* p) {
  const __m128i low = _mm256_castsi256_si128(v);
  const __m128i high = _mm256_extracti128_si256(v, 1);
  const __m128i words = _mm_packus_epi32(low, high);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(words, words));
}
#endif

constexpr int kColumns = 2 * kLanes;

inline Ints Broadcast(const uint8_t* p) {
  int32_t four;
  __builtin_memcpy(&four, p, sizeof(four));
  return PD_INT8_OP(set1_epi32)(four);
}

// sum + the four products of each lane (two of kWords).
template <DotKind kKind>
inline Ints Dot(Ints sum, Ints bytes, Ints weights) {
#if PD_INT8_VNNI && PD_INT8_WIDE
  return _mm512_dpbusd_epi32(sum, bytes, weights);
#elif PD_INT8_VNNI
  return _mm256_dpbusd_avx_epi32(sum, bytes, weights);
#else
  if (kKind == DotKind::kPairs) {
    const Ints words = PD_INT8_OP(maddubs_epi16)(bytes, weights);
    return PD_INT8_OP(add_epi32)(
        sum, PD_INT8_OP(madd_epi16)(words, PD_INT8_OP(set1_epi16)(1)));
  }
  if (kKind == DotKind::kWords)
    return PD_INT8_OP(add_epi32)(sum, PD_INT8_OP(madd_epi16)(bytes, weights));
  const Ints even = PD_INT8_BITS(and)(bytes, PD_INT8_OP(set1_epi16)(0xff));
  const Ints odd = PD_INT8_OP(srli_epi16)(bytes, 8);
  const Ints weights_even =
      PD_INT8_OP(srai_epi16)(PD_INT8_OP(slli_epi16)(weights, 8), 8);
  const Ints weights_odd = PD_INT8_OP(srai_epi16)(weights, 8);
  sum = PD_INT8_OP(add_epi32)(sum, PD_INT8_OP(madd_epi16)(even, weights_even));
  return PD_INT8_OP(add_epi32)(sum, PD_INT8_OP(madd_epi16)(odd, weights_odd));
#endif
}

template <int kCount, int kVectors, DotKind kKind>
void Gemm(const GemmTile& g) {
  Ints sums[kCount][kVectors];
  for (int r = 0; r < kCount; ++r)
    for (int v = 0; v < kVectors; ++v) sums[r][v] = PD_INT8_BITS(setzero)();
  const int8_t* weights = g.weights;
  const uint8_t* const* rows = g.rows;
  for (int64_t t = 0; t < g.taps; ++t, rows += kMaxRows) {
    for (int64_t k = 0; k < 4 * g.quads; k += 4, weights += 4 * kColumns) {
      Ints w[kVectors];
      for (int v = 0; v < kVectors; ++v) w[v] = Load(weights + 4 * kLanes * v);
#pragma GCC unroll 16
      for (int r = 0; r < kCount; ++r) {
        const Ints bytes = Broadcast(rows[r] + k);
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v)
          sums[r][v] = Dot<kKind>(sums[r][v], bytes, w[v]);
      }
    }
  }
  for (int r = 0; r < kCount; ++r)
    for (int v = 0; v < kVectors; ++v)
      Store(sums[r][v], g.tile + r * kColumns + v * kLanes);
}

template <int kCount, DotKind kKind>
void GemmOfKind(const GemmTile& g) {
  g.columns > kLanes ? Gemm<kCount, 2, kKind>(g) : Gemm<kCount, 1, kKind>(g);
}

template <int kCount>
void GemmOfCount(const GemmTile& g) {
#if PD_INT8_VNNI
  GemmOfKind<kCount, DotKind::kQuads>(g);
#else
  if (g.kind == DotKind::kPairs)
    GemmOfKind<kCount, DotKind::kPairs>(g);
  else
    GemmOfKind<kCount, DotKind::kWords>(g);
#endif
}

void GemmAny(const GemmTile& g) {
  switch (g.count) {
    case 1:
      return GemmOfCount<1>(g);
    case 2:
      return GemmOfCount<2>(g);
    case 3:
      return GemmOfCount<3>(g);
    case 4:
      return GemmOfCount<4>(g);
    case 5:
      return GemmOfCount<5>(g);
    case 6:
      return GemmOfCount<6>(g);
#if PD_INT8_WIDE
    case 7:
      return GemmOfCount<7>(g);
    case 8:
      return GemmOfCount<8>(g);
    case 9:
      return GemmOfCount<9>(g);
    case 10:
      return GemmOfCount<10>(g);
    case 11:
      return GemmOfCount<11>(g);
    default:
      return GemmOfCount<12>(g);
#endif
  }
}

inline Floats Max(Floats z, Floats low) {  // NaN becomes low
  return PD_INT8_OP(max_ps)(z, low);
}
inline Floats Min(Floats z, Floats high) { return PD_INT8_OP(min_ps)(z, high); }

// Int8Epilogue in vectors.
struct Vectors {
  Int8Act::Kind kind;
  Floats a, b, c, zero_float;
  Floats factor, least, most;
  Ints zero;

  explicit Vectors(const Int8Epilogue& e)
      : kind(e.act.kind),
        a(PD_INT8_OP(set1_ps)(e.act.a)),
        b(PD_INT8_OP(set1_ps)(e.act.b)),
        c(PD_INT8_OP(set1_ps)(e.act.c)),
        zero_float(PD_INT8_OP(setzero_ps)()),
        factor(PD_INT8_OP(set1_ps)(e.out.factor)),
        zero(PD_INT8_OP(set1_epi32)(e.out.zero)) {
    float low = static_cast<float>(e.out.low - e.out.zero);
    float high = static_cast<float>(e.out.high - e.out.zero);
    // Multiplying by the factor keeps an order, rounding included: bounds of
    // the activation are bounds of the product, where the two ranges meet.
    const bool relu = kind == Int8Act::Kind::kRelu;
    const float from = relu ? 0 : e.act.a * e.out.factor;
    const float to = relu ? high : e.act.b * e.out.factor;
    if (e.out.factor > 0 && (relu || kind == Int8Act::Kind::kClip) &&
        from <= high && to >= low && from <= to) {
      low = low > from ? low : from;
      high = high < to ? high : to;
      kind = Int8Act::Kind::kNone;
    }
    least = PD_INT8_OP(set1_ps)(low);
    most = PD_INT8_OP(set1_ps)(high);
  }

  Floats Clip(Floats z, Floats low, Floats high) const {
    return Min(Max(z, low), high);
  }
  Floats Activated(Floats z) const {
    const Floats one = PD_INT8_OP(set1_ps)(1.0f);
    switch (kind) {
      case Int8Act::Kind::kNone:
        return z;
      case Int8Act::Kind::kRelu:
        return Max(z, zero_float);
      case Int8Act::Kind::kClip:
        return Clip(z, a, b);
      case Int8Act::Kind::kLeaky:
        return NegativeTo(z, PD_INT8_OP(mul_ps)(z, a));
      case Int8Act::Kind::kHardSwish:
        return PD_INT8_OP(mul_ps)(
            PD_INT8_OP(mul_ps)(z,
                               Clip(PD_INT8_OP(add_ps)(z, c), zero_float, a)),
            b);
      case Int8Act::Kind::kHardSigmoid:
        return Clip(PD_INT8_OP(fmadd_ps)(z, a, b), zero_float, one);
    }
    return z;
  }
  Ints Quantized(Floats z) const {
    return PD_INT8_OP(add_epi32)(
        PD_INT8_OP(cvtps_epi32)(
            Clip(PD_INT8_OP(mul_ps)(z, factor), least, most)),
        zero);
  }
};

// The numbers of 8-bit v.
inline Floats Real(const uint8_t* v, Ints zero) {
  return PD_INT8_OP(cvtepi32_ps)(PD_INT8_OP(sub_epi32)(BytesToInts(v), zero));
}

// f(out, i) for whole vectors, the last into and out of a buffer.
template <typename F>
void Whole(int64_t n, void* out, bool floats, const F& f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    f(floats ? static_cast<void*>(static_cast<float*>(out) + i)
             : static_cast<void*>(static_cast<uint8_t*>(out) + i),
      i);
  if (i == n) return;
  alignas(64) float buffer[kLanes];
  f(buffer, i);
  const auto rest = static_cast<unsigned long>(n - i);
  if (floats)
    __builtin_memcpy(static_cast<float*>(out) + i, buffer, 4 * rest);
  else
    __builtin_memcpy(static_cast<uint8_t*>(out) + i, buffer, rest);
}

void FinishAny(const FinishTile& f) {
  const Int8Epilogue& e = *f.epilogue;
  const Vectors vectors(e);
  const Ints y_zero = PD_INT8_OP(set1_epi32)(e.y.zero);
  const Floats y_scale = PD_INT8_OP(set1_ps)(e.y.scale);
  const bool quantized = e.out.quantized();
  for (int first = 0; first < f.columns; first += kLanes) {
    const Ints offset = Load(f.offsets + first);
    const Floats scale = PD_INT8_OP(loadu_ps)(f.scales + first);
    const Floats bias = PD_INT8_OP(loadu_ps)(f.bias + first);
    const int left = f.columns - first < kLanes ? f.columns - first : kLanes;
    for (int r = 0; r < f.count; ++r) {
      const int64_t at = r * f.out_stride + first;
      const Ints sum =
          PD_INT8_OP(add_epi32)(Load(f.tile + r * f.stride + first), offset);
      Floats z =
          PD_INT8_OP(fmadd_ps)(PD_INT8_OP(cvtepi32_ps)(sum), scale, bias);
      if (f.residual != nullptr && f.residual_floats) {
        alignas(64) float y[kLanes] = {};
        const float* from = static_cast<const float*>(f.residual) + at;
        if (left < kLanes) {
          __builtin_memcpy(y, from, 4 * static_cast<unsigned long>(left));
          from = y;
        }
        z = PD_INT8_OP(add_ps)(z, PD_INT8_OP(loadu_ps)(from));
      } else if (f.residual != nullptr) {
        // Behind the last byte there is room (MemoryPlan's tail).
        z = PD_INT8_OP(fmadd_ps)(
            Real(static_cast<const uint8_t*>(f.residual) + at, y_zero), y_scale,
            z);
      }
      z = vectors.Activated(z);
      if (quantized) {
        uint8_t* out = static_cast<uint8_t*>(f.out) + at;
        const Ints u = vectors.Quantized(z);
        if (left == kLanes) {
          StoreBytes(u, out);
        } else {
          uint8_t bytes[kLanes];
          StoreBytes(u, bytes);
          __builtin_memcpy(out, bytes, static_cast<unsigned long>(left));
        }
      } else {
        float* out = static_cast<float*>(f.out) + at;
        if (left == kLanes) {
          PD_INT8_OP(storeu_ps)(out, z);
        } else {
          float floats[kLanes];
          PD_INT8_OP(storeu_ps)(floats, z);
          __builtin_memcpy(out, floats, 4 * static_cast<unsigned long>(left));
        }
      }
    }
  }
}

// Four rows of bytes, side by side byte by byte: vector i of the result has in
// its lane 4 l + r the channel 16 l + 4 i + r.
struct Four {
  Ints v[4];
};
inline Four Interleave(Ints a, Ints b, Ints c, Ints d) {
  const Ints ab_low = PD_INT8_OP(unpacklo_epi8)(a, b);
  const Ints ab_high = PD_INT8_OP(unpackhi_epi8)(a, b);
  const Ints cd_low = PD_INT8_OP(unpacklo_epi8)(c, d);
  const Ints cd_high = PD_INT8_OP(unpackhi_epi8)(c, d);
  return {{PD_INT8_OP(unpacklo_epi16)(ab_low, cd_low),
           PD_INT8_OP(unpackhi_epi16)(ab_low, cd_low),
           PD_INT8_OP(unpacklo_epi16)(ab_high, cd_high),
           PD_INT8_OP(unpackhi_epi16)(ab_high, cd_high)}};
}

constexpr int kChannels = 4 * kLanes;  // of a block
constexpr int kColumnBytes = 4 * kChannels;

// The columns of the input that a row of the output reads, padding included,
// interleaved: scratch[group][column][kColumnBytes].
void InterleaveRows(const DepthwiseRow& d, int64_t columns) {
  const Ints none = PD_INT8_OP(set1_epi8)(static_cast<char>(d.zero));
  uint8_t* to = d.scratch;
  for (int64_t k = 0; k < d.h->kernel; k += 4) {
    const uint8_t* rows[4] = {};
    bool any = false;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t y =
          d.row * d.h->stride - d.h->pad_before + (k + i) * d.h->dilation;
      if (k + i >= d.h->kernel || y < 0 || y >= d.h->in) continue;
      rows[i] = d.in + y * d.w->in * d.channels + d.channel;
      any = true;
    }
    for (int64_t x = 0; x < columns; ++x, to += kColumnBytes) {
      const int64_t from = x - d.w->pad_before;
      const bool inside = any && from >= 0 && from < d.w->in;
      Ints bytes[4];
      for (int i = 0; i < 4; ++i)
        bytes[i] = inside && rows[i] != nullptr
                       ? Load(rows[i] + from * d.channels)
                       : none;
      const Four four = Interleave(bytes[0], bytes[1], bytes[2], bytes[3]);
      for (int i = 0; i < 4; ++i) Store(four.v[i], to + 4 * kLanes * i);
    }
  }
}

// The sums of kPixels output pixels from `x` on.
template <int kPixels, DotKind kKind>
inline void DepthwiseSums(const DepthwiseRow& d, int64_t columns, int64_t x,
                          Ints sums[kPixels][4]) {
  for (int p = 0; p < kPixels; ++p)
    for (int i = 0; i < 4; ++i) sums[p][i] = PD_INT8_BITS(setzero)();
  const int8_t* w = d.weights;
  const int64_t step = d.w->stride * kColumnBytes;
  for (int64_t g = 0; g < (d.h->kernel + 3) / 4; ++g) {
    const uint8_t* in =
        d.scratch + (g * columns + x * d.w->stride) * kColumnBytes;
    for (int64_t k = 0; k < d.w->kernel; ++k, w += kColumnBytes) {
      const uint8_t* at = in + k * d.w->dilation * kColumnBytes;
      for (int i = 0; i < 4; ++i) {
        const Ints weights = Load(w + 4 * kLanes * i);
        for (int p = 0; p < kPixels; ++p)
          sums[p][i] = Dot<kKind>(
              sums[p][i], Load(at + p * step + 4 * kLanes * i), weights);
      }
    }
  }
}

// Writes the block's channels of one pixel; `at` is the offset of its first.
inline void FinishPixel(const DepthwiseRow& d, const Vectors& vectors,
                        const Ints sums[4], int64_t at) {
  const int64_t left = d.channels - d.channel;
  Floats z[4];
  for (int i = 0; i < 4; ++i)
    z[i] = PD_INT8_OP(fmadd_ps)(PD_INT8_OP(cvtepi32_ps)(PD_INT8_OP(add_epi32)(
                                    sums[i], Load(d.offsets + i * kLanes))),
                                PD_INT8_OP(loadu_ps)(d.scales + i * kLanes),
                                PD_INT8_OP(loadu_ps)(d.bias + i * kLanes));
  Ints u[4];
  for (int i = 0; i < 4; ++i) u[i] = vectors.Quantized(vectors.Activated(z[i]));
  const Ints low = PD_INT8_OP(packs_epi32)(u[0], u[1]);
  const Ints high = PD_INT8_OP(packs_epi32)(u[2], u[3]);
  const Ints bytes = PD_INT8_OP(packus_epi16)(low, high);
  uint8_t* out = static_cast<uint8_t*>(d.out) + at;
  if (left >= kChannels) return Store(bytes, out);
  uint8_t buffer[kChannels];
  Store(bytes, buffer);
  __builtin_memcpy(out, buffer, static_cast<unsigned long>(left));
}

// The same with a residual, or to floats: through sums in order.
void FinishPixelAny(const DepthwiseRow& d, const Ints sums[4], int64_t at) {
  int32_t tile[kChannels], offsets[kChannels];
  float scales[kChannels], bias[kChannels];
  for (int i = 0; i < 4; ++i) {
    int32_t lanes[kLanes];
    Store(sums[i], lanes);
    for (int j = 0; j < kLanes; ++j) {
      const int c = j / 4 * 16 + 4 * i + j % 4;
      tile[c] = lanes[j];
      offsets[c] = d.offsets[i * kLanes + j];
      scales[c] = d.scales[i * kLanes + j];
      bias[c] = d.bias[i * kLanes + j];
    }
  }
  const int64_t left = d.channels - d.channel;
  FinishTile f;
  f.tile = tile;
  f.stride = kChannels;
  f.count = 1;
  f.columns = static_cast<int>(left < kChannels ? left : kChannels);
  f.offsets = offsets;
  f.scales = scales;
  f.bias = bias;
  f.epilogue = d.epilogue;
  f.residual_floats = d.residual_floats;
  if (d.residual != nullptr)
    f.residual = static_cast<const uint8_t*>(d.residual) +
                 at * (d.residual_floats ? 4 : 1);
  f.out =
      static_cast<uint8_t*>(d.out) + at * (d.epilogue->out.quantized() ? 1 : 4);
  FinishAny(f);
}

template <int kPixels, DotKind kKind>
void DepthwisePixels(const DepthwiseRow& d, const Vectors& vectors,
                     int64_t columns, int64_t x) {
  Ints sums[kPixels][4];
  DepthwiseSums<kPixels, kKind>(d, columns, x, sums);
  const bool plain = d.residual == nullptr && d.epilogue->out.quantized();
  for (int p = 0; p < kPixels; ++p) {
    const int64_t at = (x + p) * d.channels + d.channel;
    if (plain)
      FinishPixel(d, vectors, sums[p], at);
    else
      FinishPixelAny(d, sums[p], at);
  }
}

template <DotKind kKind>
void DepthwiseOfKind(const DepthwiseRow& d) {
  const int64_t columns =
      (d.w->out - 1) * d.w->stride + (d.w->kernel - 1) * d.w->dilation + 1;
  InterleaveRows(d, columns);
  const Vectors vectors(*d.epilogue);
  constexpr int kPixels = PD_INT8_WIDE ? 4 : 2;
  int64_t x = 0;
  for (; x + kPixels <= d.w->out; x += kPixels)
    DepthwisePixels<kPixels, kKind>(d, vectors, columns, x);
  for (; x < d.w->out; ++x) DepthwisePixels<1, kKind>(d, vectors, columns, x);
}

void DepthwiseAny(const DepthwiseRow& d) {
#if PD_INT8_VNNI
  DepthwiseOfKind<DotKind::kQuads>(d);
#else
  if (d.kind == DotKind::kPairs)
    DepthwiseOfKind<DotKind::kPairs>(d);
  else
    DepthwiseOfKind<DotKind::kExact>(d);
#endif
}

void MapAny(const MapSpan& m) {
  const Int8Epilogue& e = *m.epilogue;
  const Vectors vectors(e);
  const Ints x_zero = PD_INT8_OP(set1_epi32)(m.in.zero);
  const Floats x_scale = PD_INT8_OP(set1_ps)(m.in.scale);
  const Ints y_zero = PD_INT8_OP(set1_epi32)(e.y.zero);
  const Floats y_scale = PD_INT8_OP(set1_ps)(e.y.scale);
  const bool quantized = e.out.quantized();
  Whole(m.count, m.out, !quantized, [&](void* out, int64_t i) {
    Floats z;
    if (m.x_floats) {
      const float* x = static_cast<const float*>(m.x) + i;
      alignas(64) float last[kLanes] = {};
      if (m.count - i < kLanes) {
        __builtin_memcpy(last, x, 4 * static_cast<unsigned long>(m.count - i));
        x = last;
      }
      z = PD_INT8_OP(loadu_ps)(x);
    } else {
      z = Real(static_cast<const uint8_t*>(m.x) + i, x_zero);
      if (m.y == nullptr || !m.adds) z = PD_INT8_OP(mul_ps)(z, x_scale);
    }
    if (m.y != nullptr) {
      const Floats y = PD_INT8_OP(mul_ps)(Real(m.y + i, y_zero), y_scale);
      z = m.adds ? PD_INT8_OP(fmadd_ps)(z, x_scale, y)
                 : PD_INT8_OP(mul_ps)(z, y);
    }
    z = vectors.Activated(z);
    if (quantized)
      StoreBytes(vectors.Quantized(z), static_cast<uint8_t*>(out));
    else
      PD_INT8_OP(storeu_ps)(static_cast<float*>(out), z);
  });
}

}  // namespace PD_INT8_NAMESPACE
}  // namespace int8
}  // namespace pd
HWY_POP_ATTRIBUTES
#pragma GCC diagnostic pop
