// SPDX-License-Identifier: Apache-2.0
// COCO's files of boxes, instances_train2017.json: pictures, categories and
// boxes in three lists. Masks and everything else are passed over, and no
// document is built: the file of the training set has 450 MB.
#ifndef PD_FORMATS_COCO_JSON_H_
#define PD_FORMATS_COCO_JSON_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct CocoImage {
  int64_t id = 0;
  std::string file_name;          ///< not empty
  int64_t width = 0, height = 0;  ///< 0 where it is not said
};
struct CocoCategory {
  int64_t id = 0;
  std::string name;  ///< not empty
};
struct CocoAnnotation {
  size_t image = 0, category = 0;   ///< places in the lists
  std::array<double, 4> bbox = {};  ///< x, y, width, height in pixels; finite
  bool crowd = false;
};

struct CocoFile {
  std::vector<CocoImage> images;            ///< as the file has them
  std::vector<CocoCategory> categories;     ///< in the order of their ids
  std::vector<CocoAnnotation> annotations;  ///< as the file has them
};

/// DataLoss with the byte, or the list and the place in it
/// ("annotations[17]"), for anything that is no such file: ids that come twice
/// or name nothing included.
absl::StatusOr<CocoFile> ParseCocoJson(absl::string_view text);

}  // namespace pd

#endif  // PD_FORMATS_COCO_JSON_H_
