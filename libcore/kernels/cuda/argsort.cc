// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/argsort.h"

#include <limits>

namespace pd::cuda {
namespace {

// The number of keys that a block sorts on its own.
constexpr int64_t kPart = 4096;

}  // namespace

absl::StatusOr<KeySort> KeySort::Make(DeviceBinding* binding, int64_t lines,
                                      int64_t n) {
  using Start = Starter<SortArgs>;
  PD_ASSIGN_OR_RETURN(const auto parts, Start::Find(binding, "sort_parts"));
  PD_ASSIGN_OR_RETURN(const auto step, Start::Find(binding, "sort_step"));
  KeySort sort(parts, step);
  if (n > std::numeric_limits<uint32_t>::max())
    return Unimplemented("an order of %d elements", n);
  sort.args_.line = 1;
  while (sort.args_.line < n) sort.args_.line *= 2;
  sort.args_.total = lines * sort.args_.line;
  sort.args_.part = std::min(sort.args_.line, kPart);
  return sort;
}

absl::Status KeySort::Run(uint64_t* keys) const {
  SortArgs run = args_;
  run.keys = keys;
  const int64_t parts = run.total / run.part;
  run.first = 2;
  run.last = run.part;
  if (run.line > 1) PD_RETURN_IF_ERROR(parts_.Items(parts, run));
  for (run.first = 2 * run.part; run.first <= run.line; run.first *= 2) {
    run.last = run.first;
    for (run.distance = run.last / 2; run.distance >= run.part;
         run.distance /= 2)
      PD_RETURN_IF_ERROR(step_.Elements(run.total / 2, run));
    PD_RETURN_IF_ERROR(parts_.Items(parts, run));
  }
  return absl::OkStatus();
}

}  // namespace pd::cuda
