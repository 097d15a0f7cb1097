// SPDX-License-Identifier: Apache-2.0
// Pictures out of an archive, kept as they are packed and decoded when a
// record is read; beside each a label, or a mask of the same size.
#ifndef PD_LIBCORE_DATA_PACKED_IMAGES_H_
#define PD_LIBCORE_DATA_PACKED_IMAGES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/image.h"
#include "formats/tar.h"
#include "libcore/data/dataset.h"

namespace pd {

class PackedImages : public Dataset {
 public:
  /// Fields "image" and one of those that follow.
  explicit PackedImages(std::string path) : path_(std::move(path)) {
    fields_ = {{"image", DType::kUInt8, {-1, -1, 3}, true}};
  }
  /// "label", int64 [1].
  void AddLabel() { fields_.push_back({"label", DType::kInt64, {1}}); }
  /// "label", a picture of the pixels' classes, uint8 [height, width, 1].
  /// `classes`: their names, by number, which all pixels but those of 255 must
  /// have; empty where they are not known.
  void AddMask(std::vector<std::string> classes) {
    FieldSpec mask = {"label", DType::kUInt8, {-1, -1, 1}};
    mask.is_mask = true;
    mask.classes = std::move(classes);
    fields_.push_back(std::move(mask));
  }

  /// Counts a record that is not there.
  void LeaveOut(const absl::Status& why) { left_out_.Add(why); }
  /// After the last Add: DataLoss when every record was left out.
  absl::Status Finish() const;

  void Add(TarFile image, int64_t label) {
    images_.push_back(std::move(image));
    labels_.push_back(label);
    ++size_;
  }
  void Add(TarFile image, TarFile mask) {
    images_.push_back(std::move(image));
    masks_.push_back(std::move(mask));
    ++size_;
  }

  absl::Status Read(int64_t index, Record* record) const override;
  std::string Describe(int64_t index) const override;

 private:
  absl::Status Decode(const TarFile& file, bool mask, int64_t index,
                      size_t field, Record* record) const;
  absl::Status CheckMask(int64_t index, const FieldView& mask) const;

  std::string path_;
  std::vector<TarFile> images_, masks_;
  std::vector<int64_t> labels_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PACKED_IMAGES_H_
