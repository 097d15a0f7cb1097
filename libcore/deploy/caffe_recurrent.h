// SPDX-License-Identifier: Apache-2.0
// Caffe's LSTM and RNN: one Scan of ONNX over the steps, as a state begins anew
// wherever the second bottom, the layer's `cont`, is 0.
#ifndef PD_LIBCORE_DEPLOY_CAFFE_RECURRENT_H_
#define PD_LIBCORE_DEPLOY_CAFFE_RECURRENT_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "formats/caffe_file.h"
#include "formats/onnx_file.h"

namespace pd {

/// Whether the type is one of these.
bool IsCaffeRecurrent(const std::string& type);

/// A recurrent layer with the names of its values around it.
struct CaffeRecurrent {
  const CaffeLayer* layer = nullptr;
  std::vector<std::string> bottoms, tops;
  std::vector<std::string> weights;  ///< in the file's order
  std::vector<Shape> weight_shapes;  ///< of the same
};

/// Appends the layer's nodes. Names of what is between begin with the layer's
/// and are taken from `names`. DataLoss where bottoms, tops or weights do not
/// fit the layer.
absl::Status AddCaffeRecurrent(const CaffeRecurrent& recurrent,
                               std::set<std::string>* names,
                               OnnxFileGraph* graph);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_CAFFE_RECURRENT_H_
