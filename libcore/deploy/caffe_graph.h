// SPDX-License-Identifier: Apache-2.0
// Caffe's networks on their way to Programs: as graphs whose nodes are the
// layers, in the domain "caffe", which FromOnnx imports like any other
// (onnx_import/caffe_*.cc have an importer for each type of layer).
#ifndef PD_LIBCORE_DEPLOY_CAFFE_GRAPH_H_
#define PD_LIBCORE_DEPLOY_CAFFE_GRAPH_H_

#include "absl/status/statusor.h"
#include "formats/caffe_file.h"
#include "formats/onnx_file.h"

namespace pd {

/// The graph of `net`, for the phase TEST. Layers that have no weights take
/// those of the layer of the same name in `weights`, unless that is null.
/// Inputs and outputs are called as their blobs, an output is a blob that no
/// layer reads, and the first extent of an input, the batch, is left open. A
/// BatchNorm and the Scale behind it are one node. Unimplemented names every
/// type of layer that is not supported at once, FailedPrecondition a layer that
/// only trains or reads data.
absl::StatusOr<OnnxFile> CaffeAsOnnx(const CaffeNet& net,
                                     const CaffeNet* weights);

/// The weights of all layers as the file has them, by names such as
/// "conv1.weight": "LAYER.0" of a layer whose type is not known.
NamedArrays CaffeWeights(const CaffeNet& net);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_CAFFE_GRAPH_H_
