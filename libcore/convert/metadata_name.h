// SPDX-License-Identifier: Apache-2.0
// Where files that hold only arrays by name carry the tree that they belong to
// (tree.h): readers and writers share the names. That of an npz is kNpzSideName
// of formats/npz.h.
#ifndef PD_LIBCORE_CONVERT_METADATA_NAME_H_
#define PD_LIBCORE_CONVERT_METADATA_NAME_H_

#include "absl/strings/string_view.h"

namespace pd {

/// The entry of a safetensors file's metadata.
inline constexpr absl::string_view kMetadataSideName = "pdkit.tree";

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_METADATA_NAME_H_
