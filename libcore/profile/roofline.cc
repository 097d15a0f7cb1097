// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/roofline.h"

#include <immintrin.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/clock.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/zeroed.h"

namespace pd {
namespace {

constexpr int kChains = 12;  // of dependent multiply-adds: latency is hidden
constexpr char kPeakFact[] = "peak GFLOP/s", kTriadFact[] = "triad GB/s",
               kBytesFact[] = "triad bytes";

// Operations done in `rounds` rounds, so that nothing is optimised away.
double Fma256(int64_t rounds, float* sink) {
  __m256 sum[kChains];
  const __m256 a = _mm256_set1_ps(0.999f), b = _mm256_set1_ps(0.001f);
  for (int i = 0; i < kChains; ++i)
    sum[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, b);
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  *sink = _mm256_cvtss_f32(sum[0]);
  return 2.0 * 8 * kChains * static_cast<double>(rounds);
}

__attribute__((target("avx512f"))) double Fma512(int64_t rounds, float* sink) {
  __m512 sum[kChains];
  const __m512 a = _mm512_set1_ps(0.999f), b = _mm512_set1_ps(0.001f);
  for (int i = 0; i < kChains; ++i)
    sum[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, b);
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  *sink = _mm512_cvtss_f32(sum[0]);
  return 2.0 * 16 * kChains * static_cast<double>(rounds);
}

double MeasurePeak(double seconds) {
  const bool wide = __builtin_cpu_supports("avx512f") > 0;
  constexpr int64_t kRounds = 200000;
  std::vector<float> sinks(static_cast<size_t>(Threads()) * 16);
  std::vector<double> flops(sinks.size());
  double best = 0;
  const double end = SteadySeconds() + seconds;
  do {
    const double begin = SteadySeconds();
    ParallelParts([&](int part, int) {
      const size_t at = static_cast<size_t>(part) * 16;  // a cache line each
      flops[at] =
          wide ? Fma512(kRounds, &sinks[at]) : Fma256(kRounds, &sinks[at]);
    });
    double done = 0;
    for (double f : flops) done += f;
    best = std::max(best, done / (SteadySeconds() - begin));
  } while (SteadySeconds() < end);
  return best / 1e9;
}

absl::StatusOr<double> MeasureTriad(double seconds, size_t bytes) {
  const auto n = static_cast<int64_t>(bytes / 3 / sizeof(float));
  const size_t each = static_cast<size_t>(n) * sizeof(float);
  PD_ASSIGN_OR_RETURN(const auto memory, ZeroedBytes(3 * each, 4096));
  auto* a = static_cast<float*>(memory.get());
  float *b = a + n, *c = b + n;
  double best = 0;
  const double end = SteadySeconds() + seconds;
  int rounds = 0;
  do {
    const double begin = SteadySeconds();
    ParallelFor(n, 4096, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) a[i] = b[i] + 3.0f * c[i];
    });
    // The first round only makes the pages; a line that is written is read
    // before, which STREAM does not count either.
    if (rounds++ > 0)
      best = std::max(
          best, static_cast<double>(3 * each) / (SteadySeconds() - begin));
    // Pages that were never written all show the same zeros.
    if (rounds == 1)
      ParallelFor(n, 4096, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) b[i] = c[i] = 1;
      });
  } while (SteadySeconds() < end || rounds < 3);
  return best / 1e9;
}

}  // namespace

double Roofline::Attainable(double flops_a_byte) const {
  return std::min(gflops, gbytes * flops_a_byte);
}

absl::StatusOr<Roofline> MeasureRoofline(double seconds) {
  constexpr size_t kTriadBytes = size_t{192} << 20;
  Roofline roofline;
  roofline.gflops = MeasurePeak(seconds / 2);
  roofline.triad_bytes = kTriadBytes;
  PD_ASSIGN_OR_RETURN(roofline.gbytes, MeasureTriad(seconds / 2, kTriadBytes));
  return roofline;
}

std::vector<std::pair<std::string, std::string>> RooflineFacts(
    const Roofline& roofline) {
  return {{kPeakFact, absl::StrFormat("%.6g", roofline.gflops)},
          {kTriadFact, absl::StrFormat("%.6g", roofline.gbytes)},
          {kBytesFact, absl::StrCat(roofline.triad_bytes)}};
}

std::optional<Roofline> RooflineOf(const ProfileTrace& trace) {
  Roofline roofline;
  if (!absl::SimpleAtod(trace.Fact(kPeakFact), &roofline.gflops) ||
      !absl::SimpleAtod(trace.Fact(kTriadFact), &roofline.gbytes) ||
      !(roofline.gflops > 0) || !(roofline.gbytes > 0))
    return std::nullopt;
  if (!absl::SimpleAtoi(trace.Fact(kBytesFact), &roofline.triad_bytes))
    roofline.triad_bytes = 0;
  return roofline;
}

}  // namespace pd
