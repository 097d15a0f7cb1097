// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx_attrs.h"

#include <utility>

#include "libcore/base/error.h"

namespace pd {
namespace {

OnnxFileAttr OfKind(OnnxFileAttr::Kind kind) {
  OnnxFileAttr attr;
  attr.kind = kind;
  return attr;
}

}  // namespace

std::vector<int64_t> ChannelsFirst(int64_t rank) {
  std::vector<int64_t> perm = {0, rank - 1};
  for (int64_t i = 1; i < rank - 1; ++i) perm.push_back(i);
  return perm;
}

std::vector<int64_t> ChannelsLast(int64_t rank) {
  std::vector<int64_t> perm = {0};
  for (int64_t i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

OnnxFileAttr OnnxInt(int64_t value) {
  OnnxFileAttr attr = OfKind(OnnxFileAttr::Kind::kInt);
  attr.i = value;
  return attr;
}

OnnxFileAttr OnnxInts(std::vector<int64_t> values) {
  OnnxFileAttr attr = OfKind(OnnxFileAttr::Kind::kInts);
  attr.ints = std::move(values);
  return attr;
}

OnnxFileAttr OnnxFloat(double value) {
  OnnxFileAttr attr = OfKind(OnnxFileAttr::Kind::kFloat);
  attr.f = static_cast<float>(value);
  return attr;
}

OnnxFileAttr OnnxText(std::string value) {
  OnnxFileAttr attr = OfKind(OnnxFileAttr::Kind::kString);
  attr.s = std::move(value);
  return attr;
}

absl::StatusOr<int32_t> OnnxElementType(DType dtype) {
  for (int32_t type = 1; type < 17; ++type)
    if (DTypeFromOnnx(type) == dtype) return type;
  return Unimplemented("a tensor of %s", Name(dtype));
}

}  // namespace pd
