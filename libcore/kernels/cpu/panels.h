// SPDX-License-Identifier: Apache-2.0
// Convolutions of few pixels with many weights, where to read the weights from
// memory takes as long as to compute. They are read once, in panels of two
// vectors of output channels, each while the one before it is computed with.
#ifndef PD_LIBCORE_KERNELS_CPU_PANELS_H_
#define PD_LIBCORE_KERNELS_CPU_PANELS_H_

#include <cstdint>

#include "libcore/kernels/cpu/conv_args.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace cpu {

/// Floats of the scratch memory of a call with Threads() threads.
int64_t PanelScratch(const ConvGeometry& g);

/// `g` has two axes and one group; `args.weights` lie as PanelWeights(). The
/// residual is not `y`, where sums are gathered.
void ConvPanels(const ConvGeometry& g, const ConvArgs& args);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_PANELS_H_
