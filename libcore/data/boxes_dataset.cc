// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/boxes_dataset.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/box_fields.h"
#include "libcore/data/read_picture.h"

namespace pd {
namespace {

// False where nothing of the box lies in the picture; a side of 0 is not known.
bool CutToPicture(int64_t height, int64_t width, PixelBox* box) {
  box->xmin = std::max(box->xmin, 0.0);
  box->ymin = std::max(box->ymin, 0.0);
  if (width > 0) box->xmax = std::min(box->xmax, static_cast<double>(width));
  if (height > 0) box->ymax = std::min(box->ymax, static_cast<double>(height));
  return box->xmin < box->xmax && box->ymin < box->ymax;
}

}  // namespace

absl::Status BoxesDataset::Add(const std::string& path, int64_t height,
                               int64_t width,
                               const std::vector<LabelledBox>& boxes) {
  struct stat info;
  if (path.find('\0') != std::string::npos)
    return DataLoss("the name of a picture holds a byte 0");
  if (::stat(path.c_str(), &info) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot open '", path, "'"));
  const size_t begin = boxes_.size();
  int64_t count = 0;
  for (LabelledBox box : boxes) {
    if (options_.skip_difficult && box.difficult) continue;
    if (!CutToPicture(height, width, &box.box)) {
      if (flat_++ == 0) first_flat_ = path;
      continue;
    }
    if (++count > options_.max_boxes) continue;
    boxes_.push_back(box);
  }
  const auto kept = static_cast<int64_t>(boxes_.size() - begin);
  crowded_ += count > kept ? 1 : 0;
  surplus_ += count - kept;
  most_ = std::max(most_, count);
  files_.push_back({path, height, width, boxes_.size()});
  ++size_;
  return absl::OkStatus();
}

absl::Status BoxesDataset::Finish(std::vector<std::string> classes) {
  if (size_ == 0 && left_out_.count > 0)
    return DataLoss("'%s': none of the %d pictures could be read: %s", source_,
                    left_out_.count, left_out_.first.front());
  if (size_ == 0) return DataLoss("'%s' holds no pictures", source_);
  if (flat_ > 0)
    notes_.push_back(absl::StrFormat(
        "'%s': boxes without width or height in their picture, which are left "
        "out: %d; the first belongs to '%s'",
        source_, flat_, first_flat_));
  if (surplus_ > 0)
    notes_.push_back(absl::StrFormat(
        "'%s': pictures with more than %d boxes: %d; boxes left out: %d "
        "(max_boxes: %d takes all)",
        source_, options_.max_boxes, crowded_, surplus_, most_));
  if (options_.background) classes.insert(classes.begin(), "background");
  FieldSpec box{"gt_box", DType::kFloat32, {options_.max_boxes, 4}};
  box.boxes = options_.form;
  FieldSpec label{"gt_label", DType::kInt64, {options_.max_boxes}};
  label.classes = std::move(classes);
  FieldSpec difficult{"difficult", DType::kInt64, {options_.max_boxes}};
  label.beside_boxes = difficult.beside_boxes = true;
  fields_ = {{"image", DType::kUInt8, {-1, -1, 3}, true},
             std::move(box),
             std::move(label),
             std::move(difficult)};
  return absl::OkStatus();
}

absl::Status BoxesDataset::Read(int64_t index, Record* record) const {
  const size_t i = static_cast<size_t>(index);
  const File& file = files_[i];
  record->fields.resize(fields_.size());
  record->bytes.resize(fields_.size());
  FieldView& picture = record->fields[0];
  PD_RETURN_IF_ERROR(ReadPicture(file.path, {}, &record->bytes[0], &picture));
  if ((file.width > 0 && file.width != picture.width) ||
      (file.height > 0 && file.height != picture.height))
    return DataLoss(
        "'%s' is %d x %d pixels; '%s' says that it is %d x %d, so the boxes "
        "are of another picture",
        file.path, picture.width, picture.height, source_, file.width,
        file.height);
  const size_t rows = static_cast<size_t>(options_.max_boxes);
  for (size_t f = 1; f < fields_.size(); ++f) {
    record->bytes[f].assign(
        f == 1 ? rows * 4 * sizeof(float) : rows * sizeof(int64_t), 0);
    record->fields[f] = {
        reinterpret_cast<const std::byte*>(record->bytes[f].data())};
  }
  auto* box = reinterpret_cast<float*>(record->bytes[1].data());
  auto* label = reinterpret_cast<int64_t*>(record->bytes[2].data());
  auto* difficult = reinterpret_cast<int64_t*>(record->bytes[3].data());
  for (size_t b = i == 0 ? 0 : files_[i - 1].end; b < file.end; ++b) {
    LabelledBox entry = boxes_[b];
    if (!CutToPicture(picture.height, picture.width, &entry.box)) continue;
    WriteBox(options_.form, entry.box, picture.height, picture.width, box);
    box += 4;
    *label++ = entry.label + (options_.background ? 1 : 0);
    *difficult++ = entry.difficult ? 1 : 0;
  }
  return absl::OkStatus();
}

std::string BoxesDataset::Describe(int64_t index) const {
  return absl::StrFormat("'%s' (record %d)",
                         files_[static_cast<size_t>(index)].path, index);
}

RecordPlace BoxesDataset::Place(int64_t index) const {
  return {files_[static_cast<size_t>(index)].path, index, ""};
}

}  // namespace pd
