// SPDX-License-Identifier: Apache-2.0
// A tool is a manual, an option table and a body. Its main is
//
//   int main(int argc, char** argv) {
//     pd::TrainOptions options;
//     return pd::RunTool(pd::TrainTool(&options), argc, argv,
//                        [&](std::ostream& out) {
//                          return pd::RunTrain(options, out);
//                        });
//   }
//
// with TrainOptions and TrainTool in train_options.{h,cc}, which the generator
// of the man pages links too, and RunTrain in train_run.{h,cc}, which tests
// call in their own process.
#ifndef PD_CMD_COMMON_TOOL_H_
#define PD_CMD_COMMON_TOOL_H_

#include <functional>
#include <iosfwd>

#include "absl/status/status.h"
#include "cmd/common/common_options.h"
#include "cmd/common/manual.h"
#include "cmd/common/option_table.h"
#include "cmd/common/processes.h"

namespace pd {

struct Tool {
  Manual manual;
  CommonOptions* common = nullptr;
  /// Adds the tool's own options, which are shown before the common ones.
  std::function<void(OptionTable*)> bind;
  /// Checks what no single option can; may be empty. Its errors are usage
  /// errors.
  std::function<absl::Status(const OptionTable&)> validate;
  bool takes_gpu = false;  ///< `--device gpu` is more than an error
  /// Asked after `validate`: false where this call computes nothing, so no word
  /// is said of a device. Empty: it always computes.
  std::function<bool()> computes;
  /// The tool can work in several processes; null: it cannot.
  ProcessOptions* processes = nullptr;
};

/// The tool's work: results go to `out`, which is standard output, or standard
/// error where an option writes a file to standard output.
using ToolBody = std::function<absl::Status(std::ostream& out)>;

/// Parses, applies the common options, runs `body`, prints its error, and
/// returns the exit status. Standard output that cannot be written is a
/// failure, whatever the body says.
int RunTool(const Tool& tool, int argc, const char* const* argv,
            const ToolBody& body);

/// Every option of the tool, its own and the common ones.
void BindAll(const Tool& tool, OptionTable* table);

}  // namespace pd

#endif  // PD_CMD_COMMON_TOOL_H_
