// SPDX-License-Identifier: Apache-2.0
// MODEL arguments and files of parameters, opened: the only way from a name on
// a command line to what it stands for. LoadModel makes a Content ready to run,
// Inspect describes it, pd-convert writes it in another form. Arrays are views
// of the mapped file, so a file of any size is never held in memory.
#ifndef PD_LIBCORE_MODEL_CONTENT_H_
#define PD_LIBCORE_MODEL_CONTENT_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/detect.h"
#include "formats/onnx_file.h"
#include "formats/pickle.h"
#include "formats/raw_array.h"
#include "formats/tensor_stream.h"
#include "formats/torch_script.h"
#include "libcore/base/file.h"
#include "libcore/ir/program_desc.h"
#include "libcore/model/checkpoint.h"
#include "libcore/model/run_checkpoint.h"

namespace pd {

struct Content {
  enum class Form {
    kFile,          ///< a file, with the parameters beside it where it is a
                    ///< program
    kFolder,        ///< a folder with a program and its parameters
    kTensorFolder,  ///< a folder of files of a tensor each
    kCheckpoint,    ///< of a run
  };
  Form form = Form::kFile;
  std::string path;  ///< of the argument: the file of a prefix, else as given
  std::string
      file;  ///< that was read: the program of a folder; else the folder
  std::string stem;  ///< the file's name without ending: of a lone array
  FileKind kind = FileKind::kUnknown;
  std::string format;  ///< its name: "npz"
  FileBytes bytes;     ///< of `file`, where it is one
  /// Of kCheckpoint.
  std::optional<RunCheckpoint> checkpoint;
  TrainState state;

  std::optional<ProgramDesc> program;  ///< with feed and fetch ops
  bool state_files = false;  ///< the program's values came from .pdparams
  PickleValue info;          ///< of .pdiparams.info; None
  std::optional<OnnxFile> onnx;
  /// A network whose graph hangs on the shapes of its inputs.
  std::optional<TorchScript> script;

  /// The arrays: a dict by name, one array, or any other tree. None where there
  /// is nothing but a program.
  PickleValue object;
  std::optional<SelectedRowsArray> rows;        ///< instead of `object`
  std::map<std::string, std::string> metadata;  ///< of safetensors
  /// The names of a joint file's tensors are those of this program; without one
  /// they are numbers, and `unnamed` says why.
  std::optional<ProgramDesc> named_by;
  absl::Status unnamed;

  bool numbered() const { return !unnamed.ok(); }
};

struct ReadOptions {
  std::string from = "";     ///< one of SourceNames(); "": the bytes decide
  std::string program = "";  ///< a program whose variables name a joint file's
  /// The file of the parameters of a program (or of a .prototxt); "": the one
  /// beside it.
  std::string params = "";
  Alignment alignment = Alignment::kAny;
  /// False where the arrays of an npz, which have no views, are not to be read,
  /// and formats of arrays by name as they are: without the tree that
  /// pd-convert wrote beside them.
  bool whole = true;
};

/// The values of --from: "pdmodel", "pickle", "npz", ...
std::vector<std::string> SourceNames();

/// Opens what `argument` names: a file, a prefix of .pdmodel, .pdparams or
/// .pdopt, a checkpoint of a run as run_checkpoint.h has them, a folder of a
/// model or of tensors; "-" is standard input. A file of a kind that holds
/// neither program nor arrays is opened and nothing more. NotFound says what
/// was looked for; the reader's errors, in one line, name the file.
absl::StatusOr<Content> OpenContent(const std::string& argument,
                                    const ReadOptions& options);

/// OpenContent, but InvalidArgument for a file of such a kind, and an error for
/// a joint file whose names the program beside it should give and does not.
absl::StatusOr<Content> ReadContent(const std::string& argument,
                                    const ReadOptions& options);

/// The error for a file whose kind is not of use.
absl::Status NoModel(const Content& content);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_CONTENT_H_
