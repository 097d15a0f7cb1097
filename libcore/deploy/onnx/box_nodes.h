// SPDX-License-Identifier: Apache-2.0
// Nodes that converters of detectors share: arithmetic, and rows of many images
// one after the other.
#ifndef PD_LIBCORE_DEPLOY_ONNX_BOX_NODES_H_
#define PD_LIBCORE_DEPLOY_ONNX_BOX_NODES_H_

#include <limits>
#include <string>

#include "libcore/deploy/onnx/op.h"

namespace pd {

/// Scores of what is not to be found.
constexpr double kLowest = std::numeric_limits<float>::lowest();
/// More boxes than there are, for NonMaxSuppression without a limit.
constexpr int64_t kAllBoxes = 1000000000;

std::string Mul(OnnxOp* op, const std::string& a, const std::string& b);
std::string Add(OnnxOp* op, const std::string& a, const std::string& b);
std::string Sub(OnnxOp* op, const std::string& a, const std::string& b);
std::string Div(OnnxOp* op, const std::string& a, const std::string& b);

/// An extent of `x`, whose shape the program declares to be `shape`, as a
/// scalar.
std::string Extent(OnnxOp* op, const std::string& x, const Shape& shape,
                   size_t axis);
/// Scalars as a vector.
std::string Vector(OnnxOp* op, const OnnxValues& scalars);
/// The lesser of a number and a scalar; the scalar where the number is
/// negative.
std::string AtMost(OnnxOp* op, int64_t most, const std::string& scalar);
/// The k largest and their places.
OnnxValues TopK(OnnxOp* op, const std::string& x, const std::string& k,
                int64_t axis);
std::string Column(OnnxOp* op, const std::string& rows, int64_t column);

/// The image of each of `rows` rows, of which each image has `counts`: as many
/// as are done before the row.
std::string ImageOfRows(OnnxOp* op, const std::string& counts,
                        const std::string& rows);
/// The reverse: how many of the rows, of which `image` has the images, belong
/// to each of `images`, as the variable in `slot`.
void GiveCounts(OnnxOp* op, const std::string& image, const std::string& images,
                const char* slot);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_BOX_NODES_H_
