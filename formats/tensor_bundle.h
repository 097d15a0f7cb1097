// SPDX-License-Identifier: Apache-2.0
// TensorFlow's variables: NAME.index, a sorted table in LevelDB's format whose
// values say where each tensor lies, and NAME.data-00000-of-00001 and so on,
// which are the tensors' bytes.
#ifndef PD_FORMATS_TENSOR_BUNDLE_H_
#define PD_FORMATS_TENSOR_BUNDLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

struct BundleEntry {
  int32_t dtype = 0;  ///< TensorFlow's number
  Shape shape;
  int64_t shard = 0;              ///< number of the data file
  uint64_t offset = 0, size = 0;  ///< in it
  uint32_t checksum = 0;          ///< masked crc32c of the bytes
  bool sliced = false;            ///< its parts are entries of their own
};

struct TensorBundle {
  int64_t shards = 1;
  std::map<std::string, BundleEntry> entries;
};

/// Whether bytes end as an index does.
bool IsTensorBundle(absl::string_view bytes);

/// DataLoss when the table is damaged, Unimplemented for compressed blocks.
absl::StatusOr<TensorBundle> ParseTensorBundle(absl::string_view index);

/// The name of a data file beside NAME.index: "NAME.data-00000-of-00002".
std::string BundleShardName(const std::string& name, int64_t shard,
                            int64_t shards);

/// The tensor of an entry as a view of its data file. DataLoss where the file
/// is too short or the bytes are not those that were saved, Unimplemented for a
/// dtype that the tree lacks and for variables in slices.
absl::StatusOr<Array> BundleTensor(const BundleEntry& entry,
                                   const FileBytes& data);

}  // namespace pd

#endif  // PD_FORMATS_TENSOR_BUNDLE_H_
