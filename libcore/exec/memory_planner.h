// SPDX-License-Identifier: Apache-2.0
// Places buffers with known lifetimes in one arena.
#ifndef PD_LIBCORE_EXEC_MEMORY_PLANNER_H_
#define PD_LIBCORE_EXEC_MEMORY_PLANNER_H_

#include <cstddef>
#include <vector>

namespace pd {

/// A buffer that is needed in steps [first, last].
struct BufferRequest {
  size_t bytes = 0;
  int first = 0;
  int last = 0;
  size_t offset = 0;  ///< set by PlanMemory
};

/// Sets the offsets (multiples of 64) so that buffers alive in the same step do
/// not overlap; gives the bytes of the arena. Greedy by size: the largest
/// first, each at the lowest gap that is free during its life (Pisarchyk and
/// Lee, "Efficient memory management for deep neural net inference", 2020).
size_t PlanMemory(std::vector<BufferRequest>* buffers);

/// Before PlanMemory: buffers, the smallest ones, keep their bytes to step
/// `end`, so that those of the others are at most the share `reused` of all.
void KeepToTheEnd(double reused, int end, std::vector<BufferRequest>* buffers);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_MEMORY_PLANNER_H_
