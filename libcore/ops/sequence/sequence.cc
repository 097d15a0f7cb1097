// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/sequence/sequence.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

Offsets Signed(const std::vector<uint64_t>& level) {
  return Offsets(level.begin(), level.end());
}

}  // namespace

absl::Status CheckLoD(const LoD& lod, int64_t rows, absl::string_view slot) {
  for (size_t i = 0; i < lod.size(); ++i) {
    const std::vector<uint64_t>& level = lod[i];
    if (level.empty() || level.front() != 0)
      return InvalidArgument("level %d of the LoD of '%s' does not start at 0",
                             i, slot);
    for (size_t k = 1; k < level.size(); ++k)
      if (level[k] < level[k - 1])
        return InvalidArgument(
            "level %d of the LoD of '%s' falls from %d to %d at %d", i, slot,
            level[k - 1], level[k], k);
    const bool last = i + 1 == lod.size();
    if (last && rows < 0) continue;
    const uint64_t end = last
                             ? static_cast<uint64_t>(rows)
                             : lod[i + 1].size() - (lod[i + 1].empty() ? 0 : 1);
    if (level.back() != end)
      return InvalidArgument(
          "level %d of the LoD of '%s' ends at %d; expected %d, the number of "
          "%s",
          i, slot, level.back(), end, last ? "rows" : "sequences");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Offsets>> KnownSequences(const TensorMeta& meta,
                                                      absl::string_view slot,
                                                      size_t max_levels) {
  if (meta.shape.empty())
    return InvalidArgument("'%s' is a scalar; expected rows", slot);
  if (meta.lod.empty()) return std::optional<Offsets>();
  if (meta.lod.size() > max_levels)
    return InvalidArgument("the LoD of '%s' has %d levels; expected at most %d",
                           slot, meta.lod.size(), max_levels);
  PD_RETURN_IF_ERROR(CheckLoD(meta.lod, meta.shape[0], slot));
  return std::optional<Offsets>(Signed(meta.lod.back()));
}

absl::StatusOr<Offsets> SequencesOf(const Tensor* tensor,
                                    absl::string_view slot) {
  if (tensor == nullptr) return InvalidArgument("'%s' is missing", slot);
  if (tensor->lod().empty() || tensor->rank() == 0)
    return InvalidArgument("'%s' has no LoD; expected a sequence", slot);
  PD_RETURN_IF_ERROR(CheckLoD(tensor->lod(), tensor->dim(0), slot));
  return Signed(tensor->lod().back());
}

LoD OneLevel(const Offsets& offsets) {
  return {std::vector<uint64_t>(offsets.begin(), offsets.end())};
}

TensorMeta WithRows(const TensorMeta& meta, int64_t rows) {
  TensorMeta out;
  out.dtype = meta.dtype;
  out.shape = meta.shape;
  if (!out.shape.empty()) out.shape[0] = rows;
  return out;
}

int64_t RowWidth(const Shape& shape) {
  return shape.empty() ? 1 : NumElements(shape, 1, shape.size());
}

void GatherRows(const RowMap& map, const Tensor& in, Tensor* out) {
  const size_t width =
      static_cast<size_t>(RowWidth(out->shape())) * SizeOf(out->dtype());
  const char* from = in.data<char>();
  char* to = out->data<char>();
  if (width == 0) return;
  const int64_t grain = static_cast<int64_t>(65536 / width) + 1;
  ParallelFor(static_cast<int64_t>(map.size()), grain,
              [&](int64_t begin, int64_t end) {
                for (int64_t r = begin; r < end; ++r) {
                  const int64_t row = map[static_cast<size_t>(r)];
                  if (row >= 0)
                    std::memcpy(to + static_cast<size_t>(r) * width,
                                from + static_cast<size_t>(row) * width, width);
                }
              });
}

absl::Status ScatterAddRows(const RowMap& map, const Tensor& from, Tensor* to) {
  const int64_t width = RowWidth(to->shape());
  return DispatchTypes<float, double, int32_t, int64_t>(
      to->dtype(), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        const T* source = from.data<T>();
        T* sums = to->data<T>();
        // Each thread owns columns, so none writes into another's sums.
        ParallelFor(width, 64, [&](int64_t begin, int64_t end) {
          for (int64_t r = 0; r < to->dim(0); ++r)
            std::fill(sums + r * width + begin, sums + r * width + end, T(0));
          for (size_t r = 0; r < map.size(); ++r) {
            if (map[r] < 0) continue;
            const T* in = source + static_cast<int64_t>(r) * width;
            T* sum = sums + map[r] * width;
            for (int64_t j = begin; j < end; ++j) sum[j] += in[j];
          }
        });
        return absl::OkStatus();
      });
}

Step GatherStep(RowMap map, const Tensor* in, Tensor* out) {
  return [map = std::move(map), in, out](const RunContext&) {
    GatherRows(map, *in, out);
    return absl::OkStatus();
  };
}

Step ScatterAddStep(RowMap map, const Tensor* from, Tensor* to) {
  return [map = std::move(map), from, to](const RunContext&) {
    return ScatterAddRows(map, *from, to);
  };
}

}  // namespace pd
