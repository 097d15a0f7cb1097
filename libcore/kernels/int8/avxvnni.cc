// SPDX-License-Identifier: Apache-2.0
#define PD_INT8_NAMESPACE avxvnni
#define PD_INT8_TARGET "avx2,fma,avxvnni"
#define PD_INT8_WIDE 0
#define PD_INT8_VNNI 1
#include "libcore/kernels/int8/tiles.inc"

namespace pd {
namespace int8 {

const Tiles* AvxVnniTiles() {
  namespace isa = avxvnni;
  static constexpr Tiles kTiles = {
      "avxvnni",         isa::kRows,  isa::kColumns, isa::kChannels,
      PD_INT8_VNNI != 0, 1,           isa::GemmAny,  isa::FinishAny,
      isa::DepthwiseAny, isa::MapAny, isa::TurnThree};
  return &kTiles;
}

}  // namespace int8
}  // namespace pd
