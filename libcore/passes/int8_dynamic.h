// SPDX-License-Identifier: Apache-2.0
// The pass int8_dynamic; its file says what it does.
#ifndef PD_LIBCORE_PASSES_INT8_DYNAMIC_H_
#define PD_LIBCORE_PASSES_INT8_DYNAMIC_H_

#include "libcore/passes/pipeline.h"

namespace pd {

absl::Status Int8Dynamic(const PassContext& context, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_INT8_DYNAMIC_H_
