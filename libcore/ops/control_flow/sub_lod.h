// SPDX-License-Identifier: Apache-2.0
// Parts of a LoD, for ops that take a batch of sequences apart and put it
// together again.
#ifndef PD_LIBCORE_OPS_CONTROL_FLOW_SUB_LOD_H_
#define PD_LIBCORE_OPS_CONTROL_FLOW_SUB_LOD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"

namespace pd {

/// Some neighbouring sequences: the lengths of each level from theirs inwards,
/// and their rows [begin, end).
struct SubLoD {
  std::vector<std::vector<uint64_t>> lengths;
  int64_t begin = 0, end = 0;
};

/// Sequences [first, last) of `level`; rows where the LoD has no such level.
/// The LoD has been checked against `rows`, the rows of its tensor.
inline absl::StatusOr<SubLoD> SubLoDOf(const LoD& lod, size_t level,
                                       int64_t first, int64_t last,
                                       int64_t rows) {
  SubLoD sub;
  const int64_t have =
      level < lod.size() ? static_cast<int64_t>(lod[level].size()) - 1 : rows;
  if (first < 0 || first > last || last > have)
    return InvalidArgument("sequences %d to %d of %d", first, last, have);
  uint64_t begin = static_cast<uint64_t>(first);
  uint64_t end = static_cast<uint64_t>(last);
  for (; level < lod.size(); ++level) {
    auto& lengths = sub.lengths.emplace_back();
    for (uint64_t i = begin; i < end; ++i)
      lengths.push_back(lod[level][i + 1] - lod[level][i]);
    begin = lod[level][begin];
    end = lod[level][end];
  }
  sub.begin = static_cast<int64_t>(begin);
  sub.end = static_cast<int64_t>(end);
  return sub;
}

/// Puts the sequences behind those of `lod`, which has as many levels or none.
inline absl::Status AppendSubLoD(const SubLoD& sub, LoD* lod) {
  if (lod->empty()) lod->assign(sub.lengths.size(), {0});
  if (lod->size() != sub.lengths.size())
    return InvalidArgument("a LoD of %d levels is put behind one of %d",
                           sub.lengths.size(), lod->size());
  for (size_t i = 0; i < lod->size(); ++i)
    for (uint64_t n : sub.lengths[i]) (*lod)[i].push_back((*lod)[i].back() + n);
  return absl::OkStatus();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONTROL_FLOW_SUB_LOD_H_
