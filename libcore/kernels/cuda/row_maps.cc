// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/row_maps.h"

#include <vector>

#include "libcore/kernels/cuda/device_tables.h"

namespace pd::cuda {

absl::StatusOr<RowGather> RowGather::Make(DeviceBinding* binding,
                                          const RowMap& map, int64_t width,
                                          DType dtype) {
  RowGather gather;
  const size_t bytes = SizeOf(dtype);
  if (bytes > 8) return Unimplemented("no kernel for dtype %s", Name(dtype));
  gather.args_.rows = static_cast<int64_t>(map.size());
  gather.args_.width = width;
  gather.args_.bytes = static_cast<int32_t>(bytes);
  PD_ASSIGN_OR_RETURN(gather.args_.map, KeepTable(binding, map));
  PD_ASSIGN_OR_RETURN(gather.start_,
                      Starter<RowGatherArgs>::Find(binding, "gather_rows"));
  return gather;
}

absl::Status RowGather::Run(const void* from, void* to) const {
  RowGatherArgs run = args_;
  run.from = from;
  run.to = to;
  return start_.Elements(run.rows * run.width, run);
}

absl::Status RowGather::Run(const void* from, void* to,
                            const Tensor& padding) const {
  RowGatherArgs run = args_;
  run.from = from;
  run.to = to;
  run.padding = padding.raw();
  run.padding_width = padding.size();
  return start_.Elements(run.rows * run.width, run);
}

absl::StatusOr<RowSums> RowSums::Make(DeviceBinding* binding, const RowMap& map,
                                      int64_t rows, int64_t width) {
  RowSums sums;
  std::vector<int64_t> begins(static_cast<size_t>(rows) + 1, 0);
  for (const int64_t row : map)
    if (row >= 0) ++begins[static_cast<size_t>(row) + 1];
  for (size_t r = 1; r < begins.size(); ++r) begins[r] += begins[r - 1];
  std::vector<int64_t> members(static_cast<size_t>(begins.back()));
  std::vector<int64_t> next = begins;
  for (size_t r = 0; r < map.size(); ++r)
    if (map[r] >= 0)
      members[static_cast<size_t>(next[static_cast<size_t>(map[r])]++)] =
          static_cast<int64_t>(r);
  sums.args_.rows = rows;
  sums.args_.width = width;
  PD_ASSIGN_OR_RETURN(sums.args_.begins, KeepTable(binding, begins));
  PD_ASSIGN_OR_RETURN(sums.args_.members, KeepTable(binding, members));
  PD_ASSIGN_OR_RETURN(sums.start_,
                      Starter<RowSumArgs>::Find(binding, "sum_rows"));
  return sums;
}

absl::Status RowSums::Run(const float* from, float* to) const {
  RowSumArgs run = args_;
  run.from = from;
  run.to = to;
  return start_.Elements(run.rows * run.width, run);
}

RowMap InverseOf(const RowMap& places) {
  RowMap map(places.size());
  for (size_t r = 0; r < places.size(); ++r)
    map[static_cast<size_t>(places[r])] = static_cast<int64_t>(r);
  return map;
}

}  // namespace pd::cuda
