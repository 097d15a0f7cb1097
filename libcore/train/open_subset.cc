// SPDX-License-Identifier: Apache-2.0
// Which records a job's `subset` leaves: a range of them, a random share, or a
// share of a range.
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

// One end of "BEGIN:END" as Python's slices have it.
absl::StatusOr<int64_t> EndOf(absl::string_view text, int64_t size,
                              int64_t otherwise) {
  if (text.empty()) return otherwise;
  int64_t value;
  if (!absl::SimpleAtoi(text, &value))
    return InvalidArgument("'%s' in a range; expected a number", text);
  if (value < 0) value += size;
  if (value < 0 || value > size)
    return OutOfRange("record %s of a range; the data set has %d records", text,
                      size);
  return value;
}

absl::StatusOr<std::vector<int64_t>> RangeOf(const std::string& text,
                                             int64_t size) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    return InvalidArgument("range '%s'; expected BEGIN:END", text);
  const absl::string_view view = text;
  PD_ASSIGN_OR_RETURN(const int64_t begin,
                      EndOf(view.substr(0, colon), size, 0));
  PD_ASSIGN_OR_RETURN(const int64_t end,
                      EndOf(view.substr(colon + 1), size, size));
  if (begin >= end)
    return InvalidArgument("range '%s' holds none of the %d records", text,
                           size);
  std::vector<int64_t> records(static_cast<size_t>(end - begin));
  std::iota(records.begin(), records.end(), begin);
  return records;
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> SubsetRecords(const job::Subset& subset,
                                                   int64_t size) {
  PD_ASSIGN_OR_RETURN(std::vector<int64_t> records,
                      RangeOf(subset.has_range() ? subset.range() : ":", size));
  if (subset.split_size() == 0) return records;
  double sum = 0;
  for (double share : subset.split()) sum += share;
  if (sum > 1 + 1e-6)
    return InvalidArgument("the shares of split add up to %g; expected 1", sum);
  if (subset.part() >= subset.split_size())
    return InvalidArgument("part is %d; split has %d parts, counted from 0",
                           subset.part(), subset.split_size());
  RandomStream random(static_cast<uint64_t>(subset.seed()),
                      StreamOf("data.split"));
  for (size_t n = records.size(); n > 1; --n)
    std::swap(records[n - 1], records[random.Below(n)]);
  // Each share rounded down; where they make the whole, what is left goes to
  // the first parts, one each.
  std::vector<size_t> counts;
  size_t given = 0;
  for (double share : subset.split()) {
    counts.push_back(static_cast<size_t>(
        share * static_cast<double>(records.size()) + 1e-9));
    given += counts.back();
  }
  for (size_t i = 0; sum > 1 - 1e-6 && given < records.size(); ++i, ++given)
    ++counts[i % counts.size()];
  size_t begin = 0;
  const auto part = static_cast<size_t>(subset.part());
  for (size_t i = 0; i < part; ++i) begin += counts[i];
  if (counts[part] == 0)
    return InvalidArgument("part %d of the split holds none of the %d records",
                           subset.part(), records.size());
  return std::vector<int64_t>(
      records.begin() + static_cast<std::ptrdiff_t>(begin),
      records.begin() + static_cast<std::ptrdiff_t>(begin + counts[part]));
}

}  // namespace pd
