// SPDX-License-Identifier: Apache-2.0
#include "formats/json_line.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(json_line) {
  pd::JsonLine line;
  if (!line.Parse(file.view()).ok()) return;
  std::string buffer;
  for (size_t i = 0; i < line.nodes().size(); ++i) {
    const pd::JsonNode& node = line.nodes()[i];
    pd::fuzz::Check(node.end > i && node.end <= line.nodes().size());
    if (node.kind == pd::JsonNode::Kind::kString)
      line.Text(i, &buffer).status().IgnoreError();
  }
}
