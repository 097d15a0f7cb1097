// SPDX-License-Identifier: Apache-2.0
// A Content in any form of files. Whatever a form cannot hold is an error that
// names it, unless the caller gives it up.
#ifndef PD_LIBCORE_CONVERT_WRITE_H_
#define PD_LIBCORE_CONVERT_WRITE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/model/content.h"

namespace pd {

/// Forms that can be written.
enum class Target {
  kPickle,        ///< .pdparams, .pdopt, or any object
  kPaddle,        ///< .pdmodel with .pdiparams
  kPaddleStatic,  ///< .pdmodel with .pdparams and .pdopt
  kLegacy,        ///< a folder: `__model__`, a file for each variable
  kLegacyJoint,   ///< a folder: `__model__` and `__params__`
  kProgram,       ///< a .pdmodel alone
  kJoint,         ///< .pdiparams
  kSeparate,      ///< a folder of a file for each tensor
  kTensor,        ///< one tensor
  kSelectedRows,
  kInfo,  ///< .pdiparams.info
  kNpy,
  kNpz,
  kSafetensors,
  kText,  ///< the program for people
};

/// "pdparams", "paddle", ...: as --to says it.
std::vector<std::string> TargetNames();
absl::StatusOr<Target> TargetFromName(const std::string& name);

/// The form that the name of a file to be written asks for. InvalidArgument
/// when it does not say.
absl::StatusOr<Target> TargetFromPath(const std::string& path,
                                      const Content& content);

struct WriteOptions {
  int protocol = 4;          ///< of pickles
  bool arrays_only = false;  ///< leave out what the target cannot hold
  /// The program that arrays are written for, where the input has none.
  std::optional<ProgramDesc> program;
};

/// The files and arrays that were written, for a report.
struct Written {
  std::vector<std::string> files;
  size_t arrays = 0;
  uint64_t bytes = 0;                 ///< of the arrays
  std::vector<std::string> left_out;  ///< parts the target cannot hold
};

/// Writes `content` to `path`: a file, a folder or a prefix, as the target has
/// it; "-" is standard output. InvalidArgument names what the target cannot
/// hold, and for models the values that are missing, misshapen or surplus.
absl::StatusOr<Written> WriteContent(const Content& content, Target target,
                                     const std::string& path,
                                     const WriteOptions& options);

/// Gives every tensor the parameter's name for its structured name
/// ("fc.weight" -> "linear_0.w_0") or the reverse, as the table in the content
/// says. InvalidArgument when it has none.
absl::Status RenameTensors(bool to_parameter_names, Content* content);

}  // namespace pd

#endif  // PD_LIBCORE_CONVERT_WRITE_H_
