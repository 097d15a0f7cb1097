// SPDX-License-Identifier: Apache-2.0
// COCO's boxes: the JSON file is read when the set is opened, each picture when
// its record is.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/coco_json.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/boxes_dataset.h"

namespace pd {

absl::StatusOr<DatasetPtr> OpenCocoDetection(
    const CocoDetectionOptions& options) {
  PD_ASSIGN_OR_RETURN(const FileBytes text, ReadInput(options.annotations));
  const auto file = ParseCocoJson(text.view());
  const std::string place = absl::StrCat("'", options.annotations, "'");
  if (!file.ok()) return Annotate(file.status(), place);
  std::vector<std::vector<LabelledBox>> boxes(file->images.size());
  for (const CocoAnnotation& annotation : file->annotations) {
    LabelledBox box;
    box.box.xmin = annotation.bbox[0];
    box.box.ymin = annotation.bbox[1];
    box.box.xmax = annotation.bbox[0] + annotation.bbox[2];
    box.box.ymax = annotation.bbox[1] + annotation.bbox[3];
    box.label = static_cast<int64_t>(annotation.category);
    box.difficult = annotation.crowd;
    boxes[annotation.image].push_back(box);
  }
  auto dataset =
      std::make_shared<BoxesDataset>(options.annotations, options.boxes);
  for (size_t i = 0; i < file->images.size(); ++i) {
    const CocoImage& image = file->images[i];
    const std::string path = absl::StrCat(options.images, "/", image.file_name);
    absl::Status status =
        dataset->Add(path, image.height, image.width, boxes[i]);
    if (status.ok()) continue;
    status = Annotate(status, absl::StrCat(place, ": images[", i, "]"));
    if (!options.boxes.skip_bad) return status;
    dataset->LeaveOut(status);
  }
  std::vector<std::string> classes;
  for (const CocoCategory& category : file->categories)
    classes.push_back(category.name);
  PD_RETURN_IF_ERROR(dataset->Finish(std::move(classes)));
  return dataset;
}

}  // namespace pd
