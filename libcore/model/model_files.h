// SPDX-License-Identifier: Apache-2.0
// Which files belong together: the parameters beside a program, the program
// beside parameters, by the names that PaddlePaddle and its users give them.
#ifndef PD_LIBCORE_MODEL_MODEL_FILES_H_
#define PD_LIBCORE_MODEL_MODEL_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/pickle.h"
#include "formats/raw_array.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The values that were found for a program.
struct FoundParams {
  enum class Form {
    kNone,      ///< no file
    kJoint,     ///< .pdiparams, `__params__`: tensors without names
    kSeparate,  ///< a file for each variable in the program's folder
    kState,     ///< .pdparams and .pdopt
  };
  Form form = Form::kNone;
  NamedArrays values;  ///< by the variables' names
  std::string path;    ///< of the file or folder, for messages
  PickleValue info;    ///< of .pdiparams.info; None without it
};

/// Looks for the parameters of the program in file `path`. Separate files may
/// be fewer than the variables; a joint file must fit. Errors name the file.
absl::StatusOr<FoundParams> FindParams(
    const std::string& path, const ProgramDesc& program,
    Alignment alignment = Alignment::kNatural);

/// The parameters of `program` in the file `params`: a joint file, which must
/// fit, or a .pdparams. InvalidArgument for a file of another kind.
absl::StatusOr<FoundParams> ReadParams(
    const std::string& params, const ProgramDesc& program,
    Alignment alignment = Alignment::kNatural);

/// The file of the program whose parameters the joint file `path` holds; ""
/// when there is none.
std::string ProgramBeside(const std::string& path);

/// The program of a model's folder: `__model__`, or the only file there that
/// holds a program. NotFound when there is none, InvalidArgument when there are
/// several.
absl::StatusOr<std::string> ProgramInFolder(const std::string& folder);

/// The file with the weights of the network in the .prototxt `path`: the
/// .caffemodel of its name, or the only one in its folder; "" when there is
/// none, InvalidArgument when there are several.
absl::StatusOr<std::string> CaffeModelBeside(const std::string& path);

/// The tensors of a file of one variable each in `folder`, under the files'
/// names. InvalidArgument names a file that is none.
absl::StatusOr<NamedArrays> ReadTensorFolder(
    const std::string& folder, Alignment alignment = Alignment::kNatural);

/// True when `name` is the name of a file in a folder, or in folders below it:
/// one that cannot lead out.
bool StaysInside(const std::string& name);

/// `status`, with the path before its message unless that names the file, or
/// one beside it, already.
absl::Status OfFile(const std::string& path, const absl::Status& status);
template <typename T>
absl::StatusOr<T> OfFile(const std::string& path, absl::StatusOr<T> result) {
  if (!result.ok()) return OfFile(path, result.status());
  return result;
}

/// `status` with its message in one line: line breaks that came out of a file
/// are escaped.
absl::Status InOneLine(const absl::Status& status);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_MODEL_FILES_H_
