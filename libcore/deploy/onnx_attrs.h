// SPDX-License-Identifier: Apache-2.0
// Attributes of nodes that importers of other frameworks make.
#ifndef PD_LIBCORE_DEPLOY_ONNX_ATTRS_H_
#define PD_LIBCORE_DEPLOY_ONNX_ATTRS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/onnx_file.h"

namespace pd {

/// ONNX's number of a dtype.
absl::StatusOr<int32_t> OnnxElementType(DType dtype);

/// Tensors that an importer makes now have at most so many elements.
inline constexpr int64_t kMaxMade = int64_t{1} << 24;

/// How a Transpose brings channels from the end to axis 1, and back.
std::vector<int64_t> ChannelsFirst(int64_t rank);
std::vector<int64_t> ChannelsLast(int64_t rank);

OnnxFileAttr OnnxInt(int64_t value);
OnnxFileAttr OnnxInts(std::vector<int64_t> values);
OnnxFileAttr OnnxFloat(double value);
OnnxFileAttr OnnxText(std::string value);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_ATTRS_H_
