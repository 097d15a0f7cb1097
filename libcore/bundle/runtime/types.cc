// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/types.h"

#include <algorithm>

namespace pd_run {

size_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return 8;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kUint8:
    case DType::kBool:
      break;
  }
  return 1;
}

const char* Name(DType dtype) {
  static const char* const kNames[] = {"float32", "int64", "int32", "uint8",
                                       "bool"};
  return kNames[static_cast<uint32_t>(dtype)];
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims);
}

std::string ToString(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

int64_t Elements(const Shape& shape, int begin, int end) {
  int64_t count = 1;
  for (int i = begin; i < end; ++i) count *= shape[i];
  return count;
}

bool Multiply(std::initializer_list<int64_t> factors, int64_t* product) {
  constexpr int64_t kLimit = int64_t{1} << 48;
  *product = 1;
  bool fits = true;
  for (const int64_t factor : factors) {
    if (factor < 0) return false;
    if (factor > 0 && *product > kLimit / factor) fits = false;
    if (fits) *product *= factor;
    // An extent of zero is no excuse for the others: loops run over these.
    if (factor > kLimit) return false;
  }
  return fits;
}

bool CountElements(const Shape& shape, int64_t* count) {
  *count = 1;
  for (int i = 0; i < shape.rank; ++i)
    if (!Multiply({*count, shape[i]}, count)) return false;
  return true;
}

}  // namespace pd_run
