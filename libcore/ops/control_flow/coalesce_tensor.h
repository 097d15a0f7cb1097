// SPDX-License-Identifier: Apache-2.0
// Where coalesce_tensor puts its parts.
#ifndef PD_LIBCORE_OPS_CONTROL_FLOW_COALESCE_TENSOR_H_
#define PD_LIBCORE_OPS_CONTROL_FLOW_COALESCE_TENSOR_H_

#include <cstdint>

#include "libcore/ir/program_desc.h"

namespace pd {

/// Elements that a part of `elements` elements takes up in the flat tensor of
/// coalesce_tensor op `op`.
int64_t CoalescedRoom(const OpDesc& op, int64_t elements, DType dtype);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONTROL_FLOW_COALESCE_TENSOR_H_
