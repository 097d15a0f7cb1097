// SPDX-License-Identifier: Apache-2.0
// Stages after Stockham: each takes a factor p of the length, m of what is left
// and s of what is done; what one stage writes is in the order that the next
// one reads, so nothing is rearranged at the end.
#include "libcore/kernels/cpu/fft_vectors.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/fft_vectors.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kLines;
using V = hn::Vec<decltype(kLines)>;
HWY_INLINE int64_t LineCount() {
  return static_cast<int64_t>(hn::Lanes(kLines));
}

// Numbers [k][line]: real and imaginary parts.
struct FftRows {
  float *re, *im;
};

// The transform of p numbers; roots of p as [cos, sin] of 2 pi k / p.
template <int p>
HWY_INLINE void Butterfly(const V* cosine, const V* sine, V* re, V* im) {
  constexpr int kHalf = (p - 1) / 2;
  V sum_re[kHalf + 1], sum_im[kHalf + 1], gap_re[kHalf + 1], gap_im[kHalf + 1];
  const V first_re = re[0], first_im = im[0];
  for (int j = 1; j <= kHalf; ++j) {
    sum_re[j] = hn::Add(re[j], re[p - j]);
    sum_im[j] = hn::Add(im[j], im[p - j]);
    gap_re[j] = hn::Sub(re[j], re[p - j]);
    gap_im[j] = hn::Sub(im[j], im[p - j]);
    re[0] = hn::Add(re[0], sum_re[j]);
    im[0] = hn::Add(im[0], sum_im[j]);
  }
  for (int r = 1; r <= kHalf; ++r) {
    V even_re = first_re, even_im = first_im;
    V odd_re = hn::Zero(kLines), odd_im = hn::Zero(kLines);
    for (int j = 1; j <= kHalf; ++j) {
      const int k = j * r % p;
      even_re = hn::MulAdd(cosine[k], sum_re[j], even_re);
      even_im = hn::MulAdd(cosine[k], sum_im[j], even_im);
      odd_re = hn::MulAdd(sine[k], gap_re[j], odd_re);
      odd_im = hn::MulAdd(sine[k], gap_im[j], odd_im);
    }
    re[r] = hn::Add(even_re, odd_im);
    im[r] = hn::Sub(even_im, odd_re);
    re[p - r] = hn::Sub(even_re, odd_im);
    im[p - r] = hn::Add(even_im, odd_re);
  }
}
template <>
HWY_INLINE void Butterfly<2>(const V*, const V*, V* re, V* im) {
  const V re1 = re[1], im1 = im[1];
  re[1] = hn::Sub(re[0], re1);
  im[1] = hn::Sub(im[0], im1);
  re[0] = hn::Add(re[0], re1);
  im[0] = hn::Add(im[0], im1);
}
template <>
HWY_INLINE void Butterfly<4>(const V*, const V*, V* re, V* im) {
  const V a_re = hn::Add(re[0], re[2]), a_im = hn::Add(im[0], im[2]);
  const V b_re = hn::Sub(re[0], re[2]), b_im = hn::Sub(im[0], im[2]);
  const V c_re = hn::Add(re[1], re[3]), c_im = hn::Add(im[1], im[3]);
  const V d_re = hn::Sub(re[1], re[3]), d_im = hn::Sub(im[1], im[3]);
  re[0] = hn::Add(a_re, c_re);
  im[0] = hn::Add(a_im, c_im);
  re[1] = hn::Add(b_re, d_im);
  im[1] = hn::Sub(b_im, d_re);
  re[2] = hn::Sub(a_re, c_re);
  im[2] = hn::Sub(a_im, c_im);
  re[3] = hn::Sub(b_re, d_im);
  im[3] = hn::Add(b_im, d_re);
}

template <int p>
void Stage(const FftPlan& plan, int64_t m, int64_t s, FftRows x, FftRows y) {
  const int64_t lanes = LineCount(), row = s * lanes;
  V cosine[p], sine[p];
  for (int k = 0; k < p; ++k) {
    const auto at = static_cast<size_t>(k * (plan.n / p));
    cosine[k] = hn::Set(kLines, plan.real[at]);
    sine[k] = hn::Set(kLines, -plan.imaginary[at]);
  }
  for (int64_t q = 0; q < m; ++q) {
    V turn_re[p], turn_im[p];
    for (int r = 0; r < p; ++r) {
      const auto at = static_cast<size_t>(r * q * s);
      turn_re[r] = hn::Set(kLines, plan.real[at]);
      turn_im[r] = hn::Set(kLines, plan.imaginary[at]);
    }
    for (int64_t i = 0; i < row; i += lanes) {
      V re[p], im[p];
      for (int j = 0; j < p; ++j) {
        re[j] = hn::Load(kLines, x.re + (q + m * j) * row + i);
        im[j] = hn::Load(kLines, x.im + (q + m * j) * row + i);
      }
      Butterfly<p>(cosine, sine, re, im);
      hn::Store(re[0], kLines, y.re + p * q * row + i);
      hn::Store(im[0], kLines, y.im + p * q * row + i);
      for (int r = 1; r < p; ++r) {
        const V out_re =
            hn::NegMulAdd(im[r], turn_im[r], hn::Mul(re[r], turn_re[r]));
        const V out_im =
            hn::MulAdd(im[r], turn_re[r], hn::Mul(re[r], turn_im[r]));
        hn::Store(out_re, kLines, y.re + (p * q + r) * row + i);
        hn::Store(out_im, kLines, y.im + (p * q + r) * row + i);
      }
    }
  }
}

// Transforms `x`; the result is in `x` or `y`, which comes back.
HWY_INLINE FftRows Transform(const FftPlan& plan, FftRows x, FftRows y) {
  int64_t s = 1;
  for (const int64_t p : plan.factors) {
    const int64_t m = plan.n / (s * p);
    switch (p) {
      case 2:
        Stage<2>(plan, m, s, x, y);
        break;
      case 3:
        Stage<3>(plan, m, s, x, y);
        break;
      case 4:
        Stage<4>(plan, m, s, x, y);
        break;
      case 5:
        Stage<5>(plan, m, s, x, y);
        break;
      case 7:
        Stage<7>(plan, m, s, x, y);
        break;
      case 11:
        Stage<11>(plan, m, s, x, y);
        break;
      default:
        Stage<13>(plan, m, s, x, y);
    }
    std::swap(x, y);
    s *= p;
  }
  return x;
}
// With exp(+...): that of the numbers with their parts exchanged.
HWY_INLINE FftRows Transform(const FftPlan& plan, bool inverse, FftRows x,
                             FftRows y) {
  if (!inverse) return Transform(plan, x, y);
  const FftRows z = Transform(plan, {x.im, x.re}, {y.im, y.re});
  return {z.im, z.re};
}

// Calls body(k, line) for n numbers of `count` lines, in an order that stays
// within a few cache lines where neighbours lie along the axis.
template <class Body>
HWY_INLINE void ForNumbers(int64_t n, int64_t count, bool along,
                           const Body& body) {
  const int64_t block = along ? 16 : 1;
  for (int64_t first = 0; first < n; first += block)
    for (int64_t l = 0; l < count; ++l)
      for (int64_t k = first; k < std::min(first + block, n); ++k) body(k, l);
}

// Up to as many lines as a vector has lanes, from line `first` on.
class LineGroup {
 public:
  LineGroup(const FftLineJob& job, int64_t length)
      : job_(job),
        length_(length),
        memory_(hwy::AllocateAligned<float>(
            static_cast<size_t>(4 * length * LineCount()))) {
    if (memory_ == nullptr) throw std::bad_alloc();
    std::fill_n(memory_.get(), 4 * length * LineCount(), 0.0f);
  }

  void Complex(const FftPlan& plan, int64_t first, int64_t count,
               const std::complex<float>* from, std::complex<float>* to) {
    SetLines(first, count);
    const FftRows x = Rows(0);
    const int64_t lanes = LineCount(), inner = job_.in.inner;
    ForNumbers(plan.n, count, inner == 1, [&](int64_t k, int64_t l) {
      const auto v = from[in_[l] + k * inner];
      x.re[k * lanes + l] = v.real();
      x.im[k * lanes + l] = v.imag();
    });
    Store(Transform(plan, job_.inverse, x, Rows(1)), plan.n, count, to);
  }

  void Real(const FftPlan& half, const FftPlan& whole, int64_t first,
            int64_t count, const float* from, std::complex<float>* to) {
    SetLines(first, count);
    const FftRows x = Rows(0);
    const int64_t lanes = LineCount(), inner = job_.in.inner;
    ForNumbers(half.n, count, inner == 1, [&](int64_t k, int64_t l) {
      const float* pair = from + in_[l] + 2 * k * inner;
      x.re[k * lanes + l] = pair[0];
      x.im[k * lanes + l] = pair[inner];
    });
    const FftRows z = Transform(half, x, Rows(1));
    const FftRows y = z.re == x.re ? Rows(1) : x;
    const V by = hn::Set(kLines, 0.5f);
    const V sign = hn::Set(kLines, job_.inverse ? -1.0f : 1.0f);
    for (int64_t k = 0; k <= half.n; ++k) {
      const int64_t a = k % half.n * lanes;
      const int64_t b = (half.n - k) % half.n * lanes;
      const V re = hn::Load(kLines, z.re + a), im = hn::Load(kLines, z.im + a);
      const V re2 = hn::Load(kLines, z.re + b);
      const V im2 = hn::Load(kLines, z.im + b);
      const V odd_re = hn::Add(im, im2), odd_im = hn::Sub(re2, re);
      const V turn_re = hn::Set(kLines, whole.real[static_cast<size_t>(k)]);
      const V turn_im =
          hn::Set(kLines, whole.imaginary[static_cast<size_t>(k)]);
      const V out_re = hn::NegMulAdd(
          turn_im, odd_im, hn::MulAdd(turn_re, odd_re, hn::Add(re, re2)));
      const V out_im = hn::MulAdd(
          turn_re, odd_im, hn::MulAdd(turn_im, odd_re, hn::Sub(im, im2)));
      hn::Store(hn::Mul(by, out_re), kLines, y.re + k * lanes);
      hn::Store(hn::Mul(hn::Mul(by, sign), out_im), kLines, y.im + k * lanes);
    }
    Store(y, half.n + 1, count, to);
  }

  void Hermitian(const FftPlan& half, const FftPlan& whole, int64_t first,
                 int64_t count, const std::complex<float>* from, float* to) {
    SetLines(first, count);
    const FftRows x = Rows(0), y = Rows(1);
    const int64_t lanes = LineCount(), inner = job_.in.inner;
    const int64_t given = std::min(job_.in.n, half.n + 1);
    const float sign = job_.inverse ? 1.0f : -1.0f;
    std::fill_n(x.re, (half.n + 1) * lanes, 0.0f);
    std::fill_n(x.im, (half.n + 1) * lanes, 0.0f);
    ForNumbers(given, count, inner == 1, [&](int64_t k, int64_t l) {
      const auto v = from[in_[l] + k * inner];
      x.re[k * lanes + l] = v.real();
      x.im[k * lanes + l] = k == 0 || k == half.n ? 0.0f : sign * v.imag();
    });
    for (int64_t k = 0; k < half.n; ++k) {
      const int64_t a = k * lanes, b = (half.n - k) * lanes;
      const V re = hn::Load(kLines, x.re + a), im = hn::Load(kLines, x.im + a);
      const V re2 = hn::Load(kLines, x.re + b);
      const V im2 = hn::Load(kLines, x.im + b);
      const V gap_re = hn::Sub(re, re2), gap_im = hn::Add(im, im2);
      const V turn_re = hn::Set(kLines, whole.real[static_cast<size_t>(k)]);
      const V turn_im =
          hn::Set(kLines, -whole.imaginary[static_cast<size_t>(k)]);
      const V odd_re = hn::NegMulAdd(turn_im, gap_im, hn::Mul(turn_re, gap_re));
      const V odd_im = hn::MulAdd(turn_im, gap_re, hn::Mul(turn_re, gap_im));
      hn::Store(hn::Sub(hn::Add(re, re2), odd_im), kLines, y.re + a);
      hn::Store(hn::Add(hn::Sub(im, im2), odd_re), kLines, y.im + a);
    }
    const FftRows z = Transform(half, true, y, x);
    const int64_t step = job_.out.inner;
    ForNumbers(half.n, count, step == 1, [&](int64_t k, int64_t l) {
      float* pair = to + out_[l] + 2 * k * step;
      pair[0] = job_.scale * z.re[k * lanes + l];
      pair[step] = job_.scale * z.im[k * lanes + l];
    });
  }

 private:
  FftRows Rows(int64_t which) const {
    float* at = memory_.get() + 2 * which * length_ * LineCount();
    return {at, at + length_ * LineCount()};
  }

  void SetLines(int64_t first, int64_t count) {
    for (int64_t l = 0; l < count; ++l) {
      in_[l] = job_.in.Start(first + l);
      out_[l] = job_.out.Start(first + l);
    }
  }

  void Store(FftRows z, int64_t n, int64_t count,
             std::complex<float>* to) const {
    const int64_t lanes = LineCount(), inner = job_.out.inner;
    ForNumbers(n, count, inner == 1, [&](int64_t k, int64_t l) {
      to[out_[l] + k * inner] = {job_.scale * z.re[k * lanes + l],
                                 job_.scale * z.im[k * lanes + l]};
    });
  }

  const FftLineJob& job_;
  int64_t length_;
  // Where the lines begin.
  int64_t in_[HWY_MAX_BYTES / sizeof(float)];
  int64_t out_[HWY_MAX_BYTES / sizeof(float)];
  hwy::AlignedFreeUniquePtr<float[]> memory_;
};

// Calls body(first line, count) for groups of lines [begin, end).
template <class Body>
HWY_INLINE void ForGroups(int64_t begin, int64_t end, const Body& body) {
  for (int64_t i = begin; i < end; i += LineCount())
    body(i, std::min(LineCount(), end - i));
}

void ComplexLines(const FftPlan& plan, const FftLineJob& job, int64_t begin,
                  int64_t end, const std::complex<float>* from,
                  std::complex<float>* to) {
  LineGroup group(job, plan.n);
  ForGroups(begin, end, [&](int64_t first, int64_t count) {
    group.Complex(plan, first, count, from, to);
  });
}

void RealLines(const FftPlan& half, const FftPlan& whole, const FftLineJob& job,
               int64_t begin, int64_t end, const float* from,
               std::complex<float>* to) {
  LineGroup group(job, half.n + 1);
  ForGroups(begin, end, [&](int64_t first, int64_t count) {
    group.Real(half, whole, first, count, from, to);
  });
}

void HermitianLines(const FftPlan& half, const FftPlan& whole,
                    const FftLineJob& job, int64_t begin, int64_t end,
                    const std::complex<float>* from, float* to) {
  LineGroup group(job, half.n + 1);
  ForGroups(begin, end, [&](int64_t first, int64_t count) {
    group.Hermitian(half, whole, first, count, from, to);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(ComplexLines);
HWY_EXPORT(RealLines);
HWY_EXPORT(HermitianLines);

namespace {

// Lines of a thread at least.
int64_t LineGrain(int64_t n) { return std::max<int64_t>(16, 8192 / n); }

}  // namespace

std::optional<FftPlan> MakeFftPlan(int64_t n) {
  FftPlan plan;
  plan.n = n;
  int64_t rest = n;
  for (const int64_t p : {4, 2, 3, 5, 7, 11, 13})
    for (; rest % p == 0; rest /= p) plan.factors.push_back(p);
  if (rest != 1) return std::nullopt;
  for (int64_t k = 0; k < n; ++k) {
    const double angle =
        2 * M_PI * static_cast<double>(k) / static_cast<double>(n);
    plan.real.push_back(static_cast<float>(std::cos(angle)));
    plan.imaginary.push_back(static_cast<float>(-std::sin(angle)));
  }
  return plan;
}

void FftComplex(const FftPlan& plan, const FftLineJob& job,
                const std::complex<float>* from, std::complex<float>* to) {
  ParallelFor(job.in.lines(), LineGrain(plan.n),
              [&](int64_t begin, int64_t end) {
                HWY_DYNAMIC_DISPATCH(ComplexLines)
                (plan, job, begin, end, from, to);
              });
}

void FftReal(const FftPlan& half, const FftPlan& whole, const FftLineJob& job,
             const float* from, std::complex<float>* to) {
  ParallelFor(job.in.lines(), LineGrain(whole.n),
              [&](int64_t begin, int64_t end) {
                HWY_DYNAMIC_DISPATCH(RealLines)
                (half, whole, job, begin, end, from, to);
              });
}

void FftHermitian(const FftPlan& half, const FftPlan& whole,
                  const FftLineJob& job, const std::complex<float>* from,
                  float* to) {
  ParallelFor(job.in.lines(), LineGrain(whole.n),
              [&](int64_t begin, int64_t end) {
                HWY_DYNAMIC_DISPATCH(HermitianLines)
                (half, whole, job, begin, end, from, to);
              });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
