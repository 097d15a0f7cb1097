// SPDX-License-Identifier: Apache-2.0
// Which variables around a block an op with sub-blocks uses.
#ifndef PD_LIBCORE_PROGRAM_OUTER_NAMES_H_
#define PD_LIBCORE_PROGRAM_OUTER_NAMES_H_

#include <set>
#include <string>

#include "libcore/ir/program_desc.h"

namespace pd {

/// The names of variables around a block that an op reads or writes: those in
/// its slots and those that its sub-blocks use without declaring them.
struct OuterNames {
  std::set<std::string> reads, writes;
};
OuterNames OuterNamesOf(const ProgramDesc& program, const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_OUTER_NAMES_H_
