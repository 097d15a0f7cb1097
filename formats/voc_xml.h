// SPDX-License-Identifier: Apache-2.0
// The boxes of one picture as Pascal VOC, and programs that draw boxes, write
// them: <annotation> with <size> and an <object> for each box.
#ifndef PD_FORMATS_VOC_XML_H_
#define PD_FORMATS_VOC_XML_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct VocObject {
  std::string name;  ///< not empty
  /// As the file has them: pixels counted from 1, the last one included.
  double xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  bool difficult = false;
  int64_t line = 0;  ///< of <object>, from 1
};

struct VocAnnotation {
  int64_t width = 0, height = 0;  ///< of the picture; 0 where it is not said
  std::vector<VocObject> objects;
};

/// DataLoss with line and column for anything that is no such file; document
/// type declarations, and with them entities, are refused.
absl::StatusOr<VocAnnotation> ParseVocXml(absl::string_view text);

}  // namespace pd

#endif  // PD_FORMATS_VOC_XML_H_
