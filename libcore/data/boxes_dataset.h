// SPDX-License-Identifier: Apache-2.0
// Pictures in files with the boxes around the objects in them. Fields: "image";
// "gt_box", float32 [max_boxes, 4]; "gt_label" and "difficult", int64
// [max_boxes]; zeros follow the last box. Pictures are decoded when they are
// read.
#ifndef PD_LIBCORE_DATA_BOXES_DATASET_H_
#define PD_LIBCORE_DATA_BOXES_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/data/datasets.h"
#include "libcore/data/picture.h"

namespace pd {

struct BoxesOptions {
  BoxForm form;
  int64_t max_boxes = 50;   ///< more are left out
  bool background = false;  ///< class 0, and the others count from 1
  bool skip_difficult = false;
  bool skip_bad = false;  ///< pictures that cannot be read are left out
};

/// Pascal VOC's files: pictures, and an XML file for each.
struct VocDetectionOptions {
  std::string images, annotations;  ///< folders
  std::string list;                 ///< a file of names; "": all XML files
  /// The classes, without a background; empty: those of all files, sorted.
  std::vector<std::string> classes;
  BoxesOptions boxes;
};
/// NotFound for a name without XML file or picture, and for a class that is
/// none of `classes`, with file and line.
absl::StatusOr<DatasetPtr> OpenVocDetection(const VocDetectionOptions& options);

/// COCO's files: pictures, and one JSON file.
struct CocoDetectionOptions {
  std::string images;       ///< where names of pictures start
  std::string annotations;  ///< the JSON file
  BoxesOptions boxes;
};
absl::StatusOr<DatasetPtr> OpenCocoDetection(
    const CocoDetectionOptions& options);

/// One box of a file.
struct LabelledBox {
  PixelBox box;
  int64_t label = 0;  ///< its class, a background not counted
  bool difficult = false;
};

/// The data set that both kinds of files become.
class BoxesDataset : public Dataset {
 public:
  /// Messages name `source`.
  BoxesDataset(std::string source, const BoxesOptions& options)
      : source_(std::move(source)), options_(options) {}

  /// Adds a picture, whose file is looked for now; width and height as its
  /// boxes' file has them, 0 where it does not. Boxes are cut at its edges;
  /// those without an area, and those above max_boxes, are left out.
  absl::Status Add(const std::string& path, int64_t height, int64_t width,
                   const std::vector<LabelledBox>& boxes);
  void LeaveOut(const absl::Status& why) { left_out_.Add(why); }
  /// After the last picture: DataLoss when there is none.
  absl::Status Finish(std::vector<std::string> classes);

  absl::Status Read(int64_t index, Record* record) const override;
  std::string Describe(int64_t index) const override;
  RecordPlace Place(int64_t index) const override;

 private:
  struct File {
    std::string path;
    int64_t height = 0, width = 0;  // 0: not said
    size_t end = 0;                 // of its boxes
  };
  std::string source_;
  BoxesOptions options_;
  std::vector<File> files_;
  std::vector<LabelledBox> boxes_;
  int64_t flat_ = 0, surplus_ = 0, crowded_ = 0, most_ = 0;
  std::string first_flat_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_BOXES_DATASET_H_
