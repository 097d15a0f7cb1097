// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/dataset.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/json_text.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/vocabulary.h"

namespace pd {

const FieldSpec* Dataset::FindField(const std::string& name) const {
  for (const FieldSpec& field : fields_)
    if (field.name == name) return &field;
  return nullptr;
}

absl::StatusOr<std::unique_ptr<RecordStream>> Dataset::Start(
    const StreamPass&) const {
  return FailedPrecondition("%s: records are read by number", Describe(0));
}

void BadRecords::Add(const absl::Status& status) {
  ++count;
  if (first.size() < kMostPlaces) first.emplace_back(status.message());
}

void BadRecords::Add(const BadRecords& more) {
  count += more.count;
  for (const std::string& place : more.first)
    if (first.size() < kMostPlaces) first.push_back(place);
}

absl::StatusOr<std::vector<int64_t>> Dataset::Lengths(size_t field) const {
  const FieldSpec& spec = fields_[field];
  if (spec.shape.empty() || spec.is_image || spec.is_mask)
    return InvalidArgument("field '%s' has no axis to take a length from",
                           spec.name);
  if (is_stream())
    return FailedPrecondition(
        "the lengths of a stream's records are not known before they are read");
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(size_));
  Record record;
  for (int64_t i = 0; i < size_; ++i) {
    if (spec.shape[0] >= 0) {
      lengths.push_back(spec.shape[0]);
      continue;
    }
    PD_RETURN_IF_ERROR(Read(i, &record));
    lengths.push_back(record.fields[field].extents[0]);
  }
  return lengths;
}

absl::Status CheckLabel(int64_t label, int64_t classes, const std::string& path,
                        int64_t record) {
  if (classes == 0 || (label >= 0 && label < classes)) return absl::OkStatus();
  return OutOfRange("'%s' record %d: label is %d; expected 0 to %d", path,
                    record, label, classes - 1);
}

std::string ClassName(const std::vector<std::string>& classes, int64_t number) {
  if (number < 0 || number >= static_cast<int64_t>(classes.size()))
    return absl::StrCat(number);
  const std::string& name = classes[static_cast<size_t>(number)];
  return IsUtf8(name) ? PrintableToken(name) : absl::CHexEscape(name);
}

std::string ClassesText(const std::vector<std::string>& classes) {
  constexpr size_t kMostShown = 10;
  if (classes.empty()) return "not named";
  std::string text;
  for (size_t i = 0; i < std::min(classes.size(), kMostShown); ++i)
    absl::StrAppend(&text, i > 0 ? ", '" : "'",
                    ClassName(classes, static_cast<int64_t>(i)), "'");
  if (classes.size() > kMostShown)
    absl::StrAppend(&text, ", ... (", classes.size(), " classes)");
  return text;
}

}  // namespace pd
