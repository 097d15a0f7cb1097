// SPDX-License-Identifier: Apache-2.0
// Caffe's networks as plain structs: `.prototxt`, which is text and has the
// layers, and `.caffemodel`, which has the weights besides. Reading checks that
// weights have as many numbers as their shapes say; whether layers make sense
// together is the importer's question.
#ifndef PD_FORMATS_CAFFE_FILE_H_
#define PD_FORMATS_CAFFE_FILE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"

namespace pd {

struct CaffeLayer {
  std::string name;
  std::string type;                        ///< "Convolution", "Pooling", ...
  std::vector<std::string> bottoms, tops;  ///< inputs, outputs
  std::vector<Array> blobs;                ///< weights, float32
  /// The numbers that the file gives for the layer, by the field's name:
  /// "kernel_size", "nms_param.top_k". Enumerators by their number, bool as 0
  /// and 1.
  std::map<std::string, std::vector<double>> params;
  /// Fields for the layer that this reader does not know: "pooling_param 14".
  std::vector<std::string> unknown;
};

struct CaffeNet {
  std::string name;
  /// Blobs that the network is given and their shapes. Without a shape where
  /// the file has none.
  std::vector<std::pair<std::string, Shape>> inputs;
  /// The layers of the phase TEST that are no inputs.
  std::vector<CaffeLayer> layers;
};

/// Whether bytes may be a .caffemodel: a message with the fields of one.
bool IsCaffeModel(absl::string_view bytes);

/// The network of a .caffemodel. DataLoss when the bytes are none or sizes
/// contradict each other.
absl::StatusOr<CaffeNet> ParseCaffeModel(absl::string_view bytes);

/// The network of a .prototxt. Errors have line and column.
absl::StatusOr<CaffeNet> ParseCaffeText(absl::string_view text);

}  // namespace pd

#endif  // PD_FORMATS_CAFFE_FILE_H_
