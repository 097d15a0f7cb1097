// SPDX-License-Identifier: Apache-2.0
// Networks that Keras saves, as plain structs: `.h5` files of Keras 2 (and of
// Keras 3) and `.keras` archives of Keras 3 (and of tf_keras). Both hold the
// layers as JSON and the weights in HDF5. Reading checks sizes; whether layers
// fit together is the importer's question. No code of a file is run.
#ifndef PD_FORMATS_KERAS_FILE_H_
#define PD_FORMATS_KERAS_FILE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// Output `tensor` of call `node` of a layer.
struct KerasRef {
  std::string layer;
  int64_t node = 0, tensor = 0;
};

/// A value of a configuration or an argument of a call.
struct KerasValue {
  enum class Kind { kNone, kBool, kInt, kFloat, kText, kList, kDict, kTensor };
  Kind kind = Kind::kNone;
  int64_t i = 0;  ///< also of kBool
  double f = 0;   ///< also of kInt
  std::string text;
  std::vector<KerasValue> list;
  std::map<std::string, KerasValue> dict;
  KerasRef ref;

  /// The member of a dict; an empty value where there is none.
  const KerasValue& operator[](const std::string& key) const;
};

/// A place where a layer is called.
struct KerasNode {
  std::vector<KerasValue> args;
  std::map<std::string, KerasValue> kwargs;  ///< those that are not None
};

struct KerasLayer {
  std::string class_name, name;
  KerasValue config;
  std::vector<KerasNode> nodes;  ///< none in a Sequential
  /// In the order in which the layer made them: those of wrapped layers, cells
  /// and heads follow its own.
  std::vector<Array> weights;

  // A network has layers, and ends unless it is a Sequential.
  std::vector<KerasLayer> layers;
  std::vector<KerasRef> inputs, outputs;
};

struct KerasFile {
  std::string version;  ///< "2.15.0"; "" where the file does not say it
  /// Nothing in files that hold weights alone.
  std::optional<KerasLayer> model;
  NamedArrays arrays;  ///< all datasets, by path
};

/// Whether bytes begin as a `.keras` archive does.
bool IsKeras(absl::string_view bytes);

/// A `.keras` archive. DataLoss when the file is damaged, Unimplemented where
/// the network is a class of its own or ParseHdf5 says so.
absl::StatusOr<KerasFile> ParseKeras(const FileBytes& file);

/// An HDF5 file: with a network where Keras wrote one into it.
absl::StatusOr<KerasFile> ParseKerasHdf5(const FileBytes& file);

}  // namespace pd

#endif  // PD_FORMATS_KERAS_FILE_H_
