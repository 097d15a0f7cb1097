// SPDX-License-Identifier: Apache-2.0
// Functions of one number, applied to rows of numbers.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_FUNCTIONS_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_FUNCTIONS_H_

#include <cstdint>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/kernel.h"

namespace pd_run {

/// A function with its numbers.
struct Activation {
  Function function = Function::kNone;
  float a = 0, b = 0, c = 0;

  /// to[i] = f(from[i]); the two may be the same.
  void Apply(int64_t count, const float* from, float* to) const;
};

/// Whether number `i` of the node is a function.
bool ExpectFunction(Call* call, size_t i);
/// The function that number `i` of the node says, with the node's floats.
Activation FunctionOf(const Call& call, size_t i);

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_FUNCTIONS_H_
