// SPDX-License-Identifier: Apache-2.0
// Contents of files of parameters and models, free of a format: reading any
// format gives a Content, writing any format takes one. Arrays are views of the
// mapped input (at any address), so a file of any size is never held in memory.
// Whatever a target cannot hold is an error that names it, unless the caller
// gives it up.
#ifndef PD_LIBCORE_CONVERT_CONTENT_H_
#define PD_LIBCORE_CONVERT_CONTENT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/detect.h"
#include "formats/pickle.h"
#include "formats/tensor_stream.h"
#include "libcore/ir/program_desc.h"

namespace pd {

struct Content {
  std::string path;  ///< of the input
  FileKind kind = FileKind::kUnknown;
  std::string stem;  ///< the file's name without ending: of a lone array
  std::optional<ProgramDesc> program;
  bool state_files = false;  ///< the program's values came from .pdparams
  /// The arrays: a dict by name, one array, or any other tree. None when there
  /// is nothing but a program.
  PickleValue object;
  std::optional<SelectedRowsArray> rows;  ///< instead of `object`
  PickleValue info;                       ///< of .pdiparams.info; None
  bool numbered = false;  ///< a joint file gave no names: they are numbers
};

struct ReadOptions {
  std::string from;     ///< one of SourceNames(); "": the bytes decide
  std::string program;  ///< a program whose variables name a joint file's
};

/// The values of --from: "pdmodel", "pickle", "npz", ...
std::vector<std::string> SourceNames();

/// Reads a file, a model with the parameters beside it, a folder of either, or
/// a run's newest checkpoint; "-" is standard input. Errors name the file.
absl::StatusOr<Content> ReadContent(const std::string& path,
                                    const ReadOptions& options);

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

#endif  // PD_LIBCORE_CONVERT_CONTENT_H_
