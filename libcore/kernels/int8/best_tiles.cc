// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>

#include <cstdlib>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "libcore/kernels/int8/tiles.h"

namespace pd {
namespace int8 {
namespace {

// ONEDNN_MAX_CPU_ISA as a mask of what it allows beyond AVX2.
struct Allowed {
  bool avxvnni = true, avx512 = true, avx512vnni = true, amx = true;
};

Allowed ReadAllowed() {
  const char* variable = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (variable == nullptr) variable = std::getenv("DNNL_MAX_CPU_ISA");
  const std::string isa =
      absl::AsciiStrToUpper(variable != nullptr ? variable : "");
  Allowed a;
  if (isa.empty() || isa == "ALL" || isa == "DEFAULT") return a;
  a.amx = absl::StrContains(isa, "AMX");
  a.avx512vnni = a.amx || absl::StrContains(isa, "AVX512_CORE_VNNI") ||
                 absl::StrContains(isa, "AVX512_CORE_BF16");
  a.avx512 = a.avx512vnni || absl::StrContains(isa, "AVX512");
  a.avxvnni = absl::StrContains(isa, "AVX2_VNNI") || a.avx512vnni;
  return a;
}

// CPUID leaf 7, subleaf 1: GCC 12 knows no name for it.
bool HasAvxVnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & (1u << 4)) != 0;
}

// CPUID leaf 7: AMX-TILE and AMX-INT8.
bool HasAmxInt8() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d & (1u << 24)) != 0 && (d & (1u << 25)) != 0;
}

const Tiles* Choose() {
  const Allowed a = ReadAllowed();
  const bool wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  const bool vnni = wide && __builtin_cpu_supports("avx512vnni");
  if (vnni && a.amx && HasAmxInt8())
    if (const Tiles* tiles = AmxTiles(); tiles != nullptr) return tiles;
  if (vnni && a.avx512vnni) return Avx512VnniTiles();
  if (a.avxvnni && HasAvxVnni()) return AvxVnniTiles();
  if (wide && a.avx512) return Avx512Tiles();
  return Avx2Tiles();
}

}  // namespace

const Tiles& BestTiles() {
  static const Tiles* const kTiles = Choose();
  return *kTiles;
}

const Tiles& BestTiles(int64_t depth) {
  constexpr int64_t kWorthAmx = 48;
  const Tiles& best = BestTiles();
  return best.gemm != Avx512VnniTiles()->gemm && best.vnni &&
                 best.columns == Avx512VnniTiles()->columns && depth < kWorthAmx
             ? *Avx512VnniTiles()
             : best;
}

}  // namespace int8
}  // namespace pd
