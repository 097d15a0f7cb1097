// SPDX-License-Identifier: Apache-2.0
// Tensors of a Content renamed, left out, transposed, set and averaged, between
// reading and writing it.
#ifndef PD_LIBCORE_CONVERT_EDIT_H_
#define PD_LIBCORE_CONVERT_EDIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/model/content.h"

namespace pd {

/// Edits in the order in which they are made. Patterns are those of
/// name_patterns.h; each must match a tensor.
struct TensorEdits {
  /// MODELs: each floating tensor becomes the mean of its values in the content
  /// and in all of these; other tensors stay as they are.
  std::vector<std::string> average;
  std::vector<std::string> keep;  ///< with any, all others are dropped
  std::vector<std::string> drop;
  std::vector<std::string> rename;  ///< "A=>B", the first that matches counts
  std::vector<std::string> transpose;  ///< matrices, by their new names
  /// "NAME=FILE.npy", a new tensor or other values for one of the same shape;
  /// "NAME=NUMBER" fills one that is there.
  std::vector<std::string> set;

  bool any() const {
    return !average.empty() || !keep.empty() || !drop.empty() ||
           !rename.empty() || !transpose.empty() || !set.empty();
  }
};

/// Edits the tensors of `content`. One whose tensors lie in dicts or lists
/// becomes a plain dict of them, named by the way to them ("model/fc.weight");
/// `left_out` then gets what is none. InvalidArgument for a pattern that
/// matches nothing, with the nearest name, for two tensors with one name, and
/// for what does not fit together.
absl::Status EditTensors(const TensorEdits& edits, Content* content,
                         std::vector<std::string>* left_out);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_EDIT_H_
