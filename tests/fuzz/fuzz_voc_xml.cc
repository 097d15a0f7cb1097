// SPDX-License-Identifier: Apache-2.0
#include "formats/voc_xml.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(voc_xml) {
  const auto annotation = pd::ParseVocXml(file.view());
  if (!annotation.ok()) return;
  for (const pd::VocObject& object : annotation->objects)
    pd::fuzz::Check(!object.name.empty() && object.line > 0);
}
