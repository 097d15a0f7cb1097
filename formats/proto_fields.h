// SPDX-License-Identifier: Apache-2.0
// The fields of a protobuf message whose type is not known yet, for telling
// formats apart.
#ifndef PD_FORMATS_PROTO_FIELDS_H_
#define PD_FORMATS_PROTO_FIELDS_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pd {

struct ProtoField {
  uint32_t number = 0;
  uint32_t wire_type = 0;     ///< 0: a varint, 2: a message, string or bytes
  absl::string_view payload;  ///< of other fields than varints
};

/// Takes one field from the front of `bytes`. False when they do not begin with
/// a field of a number up to 1000 that ends within them.
bool TakeField(absl::string_view* bytes, ProtoField* field);

}  // namespace pd

#endif  // PD_FORMATS_PROTO_FIELDS_H_
