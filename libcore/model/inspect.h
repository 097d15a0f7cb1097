// SPDX-License-Identifier: Apache-2.0
// The kind and contents of a file or folder, for people and scripts that ask
// before they convert or run it. Whatever formats/ reads is read whole, so an
// Inspection is also the answer that the file is not damaged.
#ifndef PD_LIBCORE_MODEL_INSPECT_H_
#define PD_LIBCORE_MODEL_INSPECT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"
#include "libcore/program/count_flops.h"
#include "libcore/tensor/tensor_stats.h"

namespace pd {

struct TensorInfo {
  std::string name;  ///< "" where the file gives none
  Shape shape;
  DType dtype = DType::kFloat32;
  std::optional<int64_t> bytes;  ///< nothing when extents are unknown
  size_t lod_levels = 0;
  std::string parameter_name;  ///< of a structured name, where the file says it
  /// Nothing for a variable that a program declares and no file gives.
  std::optional<TensorStats> stats;
};

/// A variable that goes into or comes out of a program.
struct VariableInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::kFloat32;
};

/// Something else that is worth knowing, such as the step of a run.
struct Fact {
  std::string name;
  std::variant<bool, int64_t, double, std::string> value;
};

/// An entry of a pickle that is no tensor.
struct EntryInfo {
  std::string name, type, value;  ///< `value` as Python shows it, abridged
};

/// Facts that only models have.
struct ModelInfo {
  ProgramDesc program;  ///< as the file holds it; no blocks for ONNX
  std::vector<VariableInfo> inputs, outputs;
  std::map<std::string, int64_t> ops;  ///< type -> count, in all blocks
  FlopCount flops;
};

/// Sees every tensor of a file while its bytes are there, at any address.
using TensorLook =
    std::function<void(const std::string& name, const Array& array)>;

struct Inspection {
  std::string path;        ///< the inspected path
  bool with_stats = true;  ///< whether the values were looked at
  TensorLook look;         ///< may be null
  std::string kind;        ///< the format: Name(FileKind), "model folder", ...
  std::string content;     ///< "parameters", "training program", ...; or ""
  std::string producer;    ///< "PaddlePaddle 2.6.2", "pdkit", "unknown"
  std::vector<Fact> facts;
  std::vector<TensorInfo> tensors;
  std::vector<EntryInfo> entries;
  std::optional<ModelInfo> model;
  std::vector<std::string> notes;  ///< parts not read, and why
  /// Not OK for a whole program that this build cannot run: an op that it does
  /// not know.
  absl::Status cannot_run;
};

/// Looks at a file, a folder with `__model__`, a run directory, the folder of
/// one checkpoint, or a prefix of a .pdmodel. A program brings the parameters
/// beside it, a .pdiparams the names of the program beside it. NotFound when
/// there is no such thing, InvalidArgument when its kind is not known, the
/// reader's error, with the path, when it is damaged.
/// Without `with_stats` values are not read, only what describes them.
absl::StatusOr<Inspection> Inspect(const OpRegistry& registry,
                                   const std::string& path,
                                   bool with_stats = true,
                                   TensorLook look = nullptr);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_INSPECT_H_
