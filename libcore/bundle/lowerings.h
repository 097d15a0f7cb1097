// SPDX-License-Identifier: Apache-2.0
// The table of lowerings: an op type of the program -> the function that writes
// its nodes. Each family of ops is a file with its part of it.
#ifndef PD_LIBCORE_BUNDLE_LOWERINGS_H_
#define PD_LIBCORE_BUNDLE_LOWERINGS_H_

#include <string>
#include <vector>

#include "libcore/bundle/bundle_op.h"

namespace pd {

struct Lowering {
  const char* op_type;
  /// Errors go to BundleOp::Fail.
  void (*lower)(BundleOp* op);
  /// For functions that serve several ops: which of them.
  const char* word = "";
};

/// Null when there is none for the type.
const Lowering* FindLowering(const std::string& op_type);

/// The op types that have a lowering, in name order.
std::vector<std::string> BundleOpTypes();

using Lowerings = std::vector<Lowering>;

/// A matrix [depth, columns], or its transpose, times `by`, in panels.
Array PackColumns(const Array& matrix, int64_t depth, int64_t columns,
                  bool transposed, float by);

// The parts, by family.
Lowerings ElementLowerings();
Lowerings ProductLowerings();
Lowerings RecurrentLowerings();
Lowerings ReduceLowerings();
Lowerings ShapeLowerings();
Lowerings WindowLowerings();

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_LOWERINGS_H_
