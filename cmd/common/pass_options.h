// SPDX-License-Identifier: Apache-2.0
// --disable-pass and --dump-passes, of every tool that rewrites programs.
#ifndef PD_CMD_COMMON_PASS_OPTIONS_H_
#define PD_CMD_COMMON_PASS_OPTIONS_H_

#include <string>
#include <vector>

#include "cmd/common/option_table.h"
#include "libcore/passes/pipeline.h"

namespace pd {

struct PassFlags {
  std::vector<std::string> all;       ///< the tool's passes, in their order
  std::vector<std::string> disabled;  ///< of them
  std::string dump;                   ///< a folder; "" where none is asked for
};

/// The passes of the executor, which tools that run programs have.
std::vector<std::string> PassNames();

/// Adds the two options for the passes `all`, under the title "Passes".
void BindPassOptions(std::vector<std::string> all, OptionTable* table,
                     PassFlags* flags);

/// How programs are rewritten, with DumpAfterPasses (pass_dump.h) as observer
/// where a folder is given.
PassOptions MakePassOptions(const PassFlags& flags);

}  // namespace pd

#endif  // PD_CMD_COMMON_PASS_OPTIONS_H_
