// SPDX-License-Identifier: Apache-2.0
// A nested Python object seen as a list of named arrays and the rest, and back:
// the formats that hold only arrays by name take the tree along as text.
#ifndef PD_LIBCORE_MODEL_TREE_H_
#define PD_LIBCORE_MODEL_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pickle.h"
#include "libcore/ir/array.h"

namespace pd {

/// The entry of a safetensors file's metadata that is a tree as JSON. That of
/// an npz is kNpzSideName of formats/npz.h.
inline constexpr absl::string_view kMetadataSideName = "pdkit.tree";

/// An array of a tree.
struct TreeArray {
  std::string name;              ///< the way to it: "model/fc.weight", "list/0"
  const Array* array = nullptr;  ///< lives as long as the tree
  std::string variable;  ///< the name that a saved Tensor carries, or ""
};

/// A tree as a list of arrays, for formats that hold only arrays.
struct FlatTree {
  std::vector<TreeArray> arrays;  ///< in the tree's order
  /// Everything else, as "'epoch' (int)", but for the table of parameter
  /// names.
  std::vector<std::string> others;
  bool nested = false;  ///< more than one array, or a dict of arrays
  bool has_lod = false;
};

/// Walks the tree. An array that is the whole tree is called `alone`.
/// InvalidArgument when two arrays have one name.
absl::StatusOr<FlatTree> Flatten(const PickleValue& root,
                                 const std::string& alone);

/// The name of what lies under `key` of a list or dict called `path`.
std::string TreePath(const std::string& path, const std::string& key);

/// The key of a dict as part of a name.
std::string TreeKey(const PickleValue& key);

/// The tree as JSON, its arrays by their flat names. Every value and type of
/// the tree is in it but the arrays' bytes.
std::string TreeToJson(const PickleValue& root, const std::string& alone);

/// The tree again. DataLoss when the text is none, or names an array that
/// `arrays` lacks.
absl::StatusOr<PickleValue> TreeFromJson(absl::string_view text,
                                         const NamedArrays& arrays);

/// A dict of `arrays` in their order, and back: the entries of a dict that are
/// arrays.
PickleValue DictOf(const NamedArrays& arrays);
NamedArrays ArraysIn(const PickleValue& dict);

/// The (name, array) that a saved Tensor is; null for other values.
const PickleTuple* AsTensor(const PickleValue& value);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_TREE_H_
