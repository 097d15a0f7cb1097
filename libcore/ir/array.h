// SPDX-License-Identifier: Apache-2.0
// The arrays that tensor readers give and writers take: contiguous, row-major
// in host memory, whose bytes may be owned or a view into a mapped file.
#ifndef PD_LIBCORE_IR_ARRAY_H_
#define PD_LIBCORE_IR_ARRAY_H_

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"

namespace pd {

/// A contiguous row-major array. Copies share the bytes.
struct Array {
  DType dtype = DType::kFloat32;
  Shape shape;
  LoD lod;  ///< empty unless the file says otherwise
  /// NumElements(shape) * SizeOf(dtype) bytes, little endian. The pointer
  /// keeps alive whatever holds them (a buffer, a mapped file).
  std::shared_ptr<const std::byte> bytes;

  int64_t size() const { return NumElements(shape); }
  size_t size_bytes() const {
    return static_cast<size_t>(size()) * SizeOf(dtype);
  }
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.get());
  }
};

/// An array with its own uninitialised bytes, 64-byte aligned; `*bytes` is
/// where to write them. An error for a shape that CheckedBytes refuses and
/// above the memory limit.
absl::StatusOr<Array> NewArray(DType dtype, Shape shape, std::byte** bytes);

/// The same for a shape that was accepted before, as that of a copy: throws
/// std::bad_alloc where no memory is left.
Array NewCopy(DType dtype, Shape shape, std::byte** bytes);

/// An array that holds a copy of `values`, as many as the shape has elements.
template <typename T>
Array MakeArray(Shape shape, const std::vector<T>& values) {
  PD_INVARIANT(NumElements(shape) == static_cast<int64_t>(values.size()));
  std::byte* bytes = nullptr;
  Array array = NewCopy(DTypeOf<T>(), std::move(shape), &bytes);
  if (!values.empty())
    std::memcpy(bytes, values.data(), values.size() * sizeof(T));
  return array;
}

/// Arrays by name, in name order.
using NamedArrays = std::map<std::string, Array>;

}  // namespace pd

#endif  // PD_LIBCORE_IR_ARRAY_H_
