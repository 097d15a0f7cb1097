// SPDX-License-Identifier: Apache-2.0
// The layout that vector kernels of images share with oneDNN: [N, C / block,
// spatial axes..., block], with blocks of VectorFloats() channels.
#ifndef PD_LIBCORE_KERNELS_CPU_BLOCKED_CHANNELS_H_
#define PD_LIBCORE_KERNELS_CPU_BLOCKED_CHANNELS_H_

#include "libcore/base/shape.h"
#include "libcore/tensor/layout.h"

namespace pd {
namespace cpu {

/// That of a tensor [N, C, spatial axes...], the last block padded.
LayoutPtr BlockedChannels(const Shape& shape);

/// Weights [O, I, spatial axes...] as oneDNN's direct convolutions want them:
/// [O / block, I / block, spatial axes..., block of I, block of O].
LayoutPtr BlockedWeights(const Shape& shape);

/// The same with two blocks of O beside each other:
/// [O / (2 block), I / block, spatial axes..., block of I, 2 blocks of O].
LayoutPtr PanelWeights(const Shape& shape);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_BLOCKED_CHANNELS_H_
