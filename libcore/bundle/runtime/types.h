// SPDX-License-Identifier: Apache-2.0
// Element types, shapes and tensors.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_TYPES_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace pd_run {

inline constexpr int kMaxRank = 8;

/// Numbered as in the file and in pd_run.h.
enum class DType : uint32_t {
  kFloat32 = 0,
  kInt64 = 1,
  kInt32 = 2,
  kUint8 = 3,
  kBool = 4,
};
inline constexpr uint32_t kDTypes = 5;

size_t SizeOf(DType dtype);
const char* Name(DType dtype);

struct Shape {
  int rank = 0;
  int64_t dims[kMaxRank] = {};

  int64_t& operator[](int i) { return dims[i]; }
  int64_t operator[](int i) const { return dims[i]; }
  /// Adds an extent; the caller sees to it that one fits.
  void Append(int64_t extent) { dims[rank++] = extent; }
};

bool operator==(const Shape& a, const Shape& b);
inline bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

/// "[1, 28, 28]".
std::string ToString(const Shape& shape);

/// The product of the extents from `begin` to before `end`, which has been
/// found to fit (Multiply).
int64_t Elements(const Shape& shape, int begin, int end);
inline int64_t Elements(const Shape& shape) {
  return Elements(shape, 0, shape.rank);
}

/// The product of numbers of a file. False where one is negative or the product
/// is 2^48 or more, which no tensor of this library has bytes.
bool Multiply(std::initializer_list<int64_t> factors, int64_t* product);
bool CountElements(const Shape& shape, int64_t* count);

struct Tensor {
  DType dtype = DType::kFloat32;
  Shape shape;
  void* data = nullptr;
  /// Its elements are there before the model runs: a weight, or what follows
  /// from shapes alone.
  bool known = false;

  int64_t size() const { return Elements(shape); }
  size_t bytes() const { return static_cast<size_t>(size()) * SizeOf(dtype); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_TYPES_H_
