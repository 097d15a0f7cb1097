// SPDX-License-Identifier: Apache-2.0
#include "formats/coco_json.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(coco_json) {
  const auto boxes = pd::ParseCocoJson(file.view());
  if (!boxes.ok()) return;
  for (const pd::CocoAnnotation& annotation : boxes->annotations)
    pd::fuzz::Check(annotation.image < boxes->images.size() &&
                    annotation.category < boxes->categories.size());
}
