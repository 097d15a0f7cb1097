// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in gather_tree.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_GATHER_TREE_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_GATHER_TREE_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/spans_arguments.h"

namespace pd::cuda {

/// gather_tree over [steps, batch, beams]; all numbers are of one type.
struct GatherTreeArgs {
  const void *ids, *parents;
  void* out;
  int64_t steps, batch, beams;
  int32_t wide;
  int32_t* bad;  ///< set to 1 by a parent that is no beam
};

/// edit_distance. rows: [sequences, 3, width] to work in.
struct EditDistanceArgs {
  SpanArgs hyps, refs;
  const void *hyp, *ref;
  float* out;
  int64_t* number;  ///< of sequences; or null
  int32_t* rows;
  int64_t width;  ///< longer than any of Hyps
  int32_t hyp_wide, ref_wide, normalized;
  int32_t* empty;  ///< set to 1 by an empty divisor
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_GATHER_TREE_ARGUMENTS_H_
