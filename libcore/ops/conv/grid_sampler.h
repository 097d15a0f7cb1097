// SPDX-License-Identifier: Apache-2.0
// The settings of grid_sampler and its gradient, read from their op. Shared by
// their implementations.
#ifndef PD_LIBCORE_OPS_CONV_GRID_SAMPLER_H_
#define PD_LIBCORE_OPS_CONV_GRID_SAMPLER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A bool that only imported ONNX models carry: PaddlePaddle's operator has no
/// such attribute, so the schema does not give it to every grid_sampler.
inline constexpr char kGridTiesToEven[] = "nearest_ties_to_even";
/// The same: convolution with cubic weights (Keys, a = -0.75) of 4 x 4 pixels,
/// each of which follows padding_mode. Images only; it has no gradient.
inline constexpr char kGridCubic[] = "cubic";

enum class GridPadding { kZeros, kBorder, kReflection };

struct GridSampler {
  size_t axes;
  int64_t images, channels, in_size, out_size;
  int64_t extent[3];  ///< x, y, z
  int64_t step[3];    ///< of the position in a channel of X
  bool nearest, align_corners;
  bool ties_to_even;  ///< of nearest; false: away from zero
  bool cubic;
  GridPadding padding;
};

/// InvalidArgument on shapes that do not fit together, and on modes that are
/// not known.
absl::StatusOr<GridSampler> ReadGridSampler(const OpDesc& op, const Shape& x,
                                            const Shape& grid);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_GRID_SAMPLER_H_
