// SPDX-License-Identifier: Apache-2.0
// A MODEL argument of the tools, ready to run: a program and its parameters.
#ifndef PD_LIBCORE_MODEL_LOAD_MODEL_H_
#define PD_LIBCORE_MODEL_LOAD_MODEL_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/exec/scope.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

struct LoadedModel {
  enum class Kind {
    kInference,  ///< .pdmodel + .pdiparams, `__model__`, .onnx: feeds, fetches
                 ///< known
    kProgram,    ///< a bare program, or one with .pdparams: run by names
    kRun,        ///< a checkpoint of a run: a training program
    kParameters  ///< arrays by name alone: a job's network takes them
  };
  Kind kind = Kind::kProgram;
  std::string path;    ///< the program's file, for messages
  std::string format;  ///< of that file, as format_table.h calls it: "torch"
  /// Of another framework (ONNX, PyTorch, Caffe): numbers that no training is
  /// to change are parameters too, and files often say one record for a batch.
  bool imported = false;
  ProgramDesc program;  ///< without feed and fetch ops
  std::vector<std::string> feeds,
      fetches;  ///< of an inference model, by column
  /// By fetch: the names of classes, where the model or its run has them.
  std::map<std::string, std::vector<std::string>> classes = {};
  NamedArrays params;  ///< every value that was found
  /// Of kParameters, where the file has the table: name in `params`, as in
  /// PaddlePaddle's state_dict -> the parameter's name in programs.
  std::vector<std::pair<std::string, std::string>> parameter_names;
  /// Of kRun: the run directory; "" for a checkpoint that lies in none.
  std::string run;
};

struct LoadOptions {
  /// Where they are known already, these settle what in an .onnx file hangs on
  /// inputs: their extents, and values that are axes or sizes.
  const NamedArrays* feeds = nullptr;
  std::map<std::string, Shape> shapes = {};
  /// The alignment of the parameters' bytes: a caller that only puts them into
  /// a scope takes any, and gets views of the file.
  Alignment alignment = Alignment::kNatural;
  /// The file of a program's parameters; "": the one beside it.
  std::string params = "";
};

/// Makes what OpenContent (content.h) finds under the name MODEL ready to run.
/// InvalidArgument for one that holds neither a program nor parameters by name.
absl::StatusOr<LoadedModel> LoadModel(const std::string& model,
                                      const LoadOptions& options = {});

/// An inference model of two files: a program, and the joint file of its
/// parameters ("": where PaddlePaddle looks for them). InvalidArgument for a
/// program without feed and fetch ops; the readers' errors name the file.
absl::StatusOr<LoadedModel> LoadModelFiles(const std::string& program,
                                           const std::string& params,
                                           Alignment alignment);

/// The same from the bytes of such files; `params` may be empty.
absl::StatusOr<LoadedModel> LoadModelBytes(const FileBytes& program,
                                           const FileBytes& params,
                                           Alignment alignment);

/// Puts the model's parameters into a scope. InvalidArgument names the
/// persistable variables of the program without a value, and those whose shape
/// the program declares otherwise.
absl::Status FillScope(const LoadedModel& model, Scope* scope);

/// Renames the values of a kParameters to what `program` calls them, where it
/// knows fewer of the state_dict's names than of the programs'. A parameter
/// that the file holds under several names is left with one that `program`
/// knows.
void FitNames(const ProgramDesc& program, LoadedModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_LOAD_MODEL_H_
