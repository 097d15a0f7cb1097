// SPDX-License-Identifier: Apache-2.0
// Networks of TFLite (`.tflite`), which are FlatBuffers, as plain structs: the
// graphs with their operators, tensors and constants. Reading checks every
// offset against the file; whether operators make sense is the importer's
// question.
#ifndef PD_FORMATS_TFLITE_H_
#define PD_FORMATS_TFLITE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

struct TfliteTensor {
  std::string name;
  Shape shape;                 ///< -1: not known
  int type = 0;                ///< TFLite's number of the dtype
  std::optional<DType> dtype;  ///< nothing for those that the tree lacks
  std::optional<Array> constant;
  /// Of integers that stand for numbers, scale (i - zero point): one, or one
  /// for each place of an axis.
  std::vector<float> scales;
  std::vector<int64_t> zero_points;
  int64_t axis = 0;
};

/// A field of an operator's options, in the form that its type says.
struct TfliteField {
  bool is_set = false;
  int32_t byte = 0, word = 0;
  std::vector<int32_t> list;  ///< where it is one of at most 64 numbers
};

struct TfliteOperator {
  int code = 0;        ///< TFLite's BuiltinOperator
  std::string custom;  ///< the name of one that is not built in
  std::vector<int32_t> inputs, outputs;  ///< tensors; -1: an absent input
  std::vector<TfliteField> options;
};

struct TfliteGraph {
  std::vector<TfliteTensor> tensors;
  std::vector<TfliteOperator> operators;  ///< each after those that it reads
  std::vector<int32_t> inputs, outputs;
};

/// The first graph, and those that its operators run: graph i is others[i - 1].
struct TfliteFile : TfliteGraph {
  std::vector<TfliteGraph> others;
};

/// Whether bytes begin as a file of TFLite does.
bool IsTflite(absl::string_view bytes);

/// DataLoss when the file is damaged or sizes contradict each other;
/// Unimplemented for sparse constants.
absl::StatusOr<TfliteFile> ParseTflite(const FileBytes& file);

}  // namespace pd

#endif  // PD_FORMATS_TFLITE_H_
