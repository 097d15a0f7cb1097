// SPDX-License-Identifier: Apache-2.0
#include "formats/proto_fields.h"

namespace pd {
namespace {

bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>((*bytes)[0]);
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

bool TakeField(absl::string_view* bytes, ProtoField* field) {
  uint64_t tag = 0, size = 0;
  if (!TakeVarint(bytes, &tag) || tag >> 3 == 0 || tag >> 3 > 1000)
    return false;
  field->number = static_cast<uint32_t>(tag >> 3);
  field->wire_type = static_cast<uint32_t>(tag & 7);
  switch (field->wire_type) {
    case 0:
      return TakeVarint(bytes, &size);
    case 1:
      size = 8;
      break;
    case 5:
      size = 4;
      break;
    case 2:
      if (!TakeVarint(bytes, &size)) return false;
      break;
    default:
      return false;
  }
  if (size > bytes->size()) return false;
  field->payload = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

}  // namespace pd
