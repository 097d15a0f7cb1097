// SPDX-License-Identifier: Apache-2.0
// Names of variables that an op's attribute says where they are not
// PaddlePaddle's.
#ifndef PD_LIBCORE_OPS_CONTROL_FLOW_GRADIENT_NAMES_H_
#define PD_LIBCORE_OPS_CONTROL_FLOW_GRADIENT_NAMES_H_

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/error.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Replaces `names` by those of the op's attribute, where it has that one.
/// InvalidArgument where these are not as many, or no names.
inline absl::Status NamesByAttr(const OpDesc& op, const char* attr,
                                std::vector<std::string>* names) {
  const Attribute* found = op.FindAttr(attr);
  if (found == nullptr) return absl::OkStatus();
  const auto* given = std::get_if<std::vector<std::string>>(found);
  if (given == nullptr || given->size() != names->size())
    return InvalidArgument("'%s' holds %d names; expected %d", attr,
                           given == nullptr ? 0 : given->size(), names->size());
  *names = *given;
  return absl::OkStatus();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONTROL_FLOW_GRADIENT_NAMES_H_
