// SPDX-License-Identifier: Apache-2.0
#define PD_INT8_NAMESPACE avx2
#define PD_INT8_TARGET "avx2,fma"
#define PD_INT8_WIDE 0
#define PD_INT8_VNNI 0
#include "libcore/kernels/int8/tiles.inc"

namespace pd {
namespace int8 {

const Tiles* Avx2Tiles() {
  namespace isa = avx2;
  static constexpr Tiles kTiles = {
      "avx2",         isa::kRows,        isa::kColumns,
      isa::kChannels, PD_INT8_VNNI != 0, 1,
      isa::GemmAny,   isa::FinishAny,    isa::DepthwiseAny,
      isa::MapAny,    isa::TurnThree};
  return &kTiles;
}

}  // namespace int8
}  // namespace pd
