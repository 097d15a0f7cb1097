// SPDX-License-Identifier: Apache-2.0
// An inference that reads an input which its op does not have: the schema calls
// the input optional, and the rest of the op needs it all the same.
#ifndef PD_LIBCORE_OPS_MISSING_INPUT_H_
#define PD_LIBCORE_OPS_MISSING_INPUT_H_

#include <string>

namespace pd {

/// Thrown by InferContext::Input, caught by OpDef::InferOutputs alone.
struct MissingInput {
  std::string slot;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_MISSING_INPUT_H_
