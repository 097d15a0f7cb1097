// SPDX-License-Identifier: Apache-2.0
// A tensor at run time: shape, dtype, layout, and where the bytes are. The
// address of a Tensor is stable while a plan lives, so kernels keep pointers to
// Tensors and read data() when they run.
#ifndef PD_LIBCORE_TENSOR_TENSOR_H_
#define PD_LIBCORE_TENSOR_TENSOR_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "formats/array.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/tensor/layout.h"

namespace pd {

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(std::move(shape)) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  int64_t dim(size_t i) const { return shape_[i]; }
  int64_t size() const { return NumElements(shape_); }
  const LoD& lod() const { return lod_; }
  void set_lod(LoD lod) { lod_ = std::move(lod); }

  /// Null: row-major.
  const LayoutPtr& layout() const { return layout_; }
  /// Changes how the bytes are understood, not the bytes.
  void set_layout(LayoutPtr layout) { layout_ = std::move(layout); }

  /// Elements in memory: size(), and the layout's padding.
  int64_t physical_size() const {
    return layout_ != nullptr ? layout_->Elements() : size();
  }
  size_t bytes() const {
    return static_cast<size_t>(physical_size()) * SizeOf(dtype_);
  }

  template <typename T>
  T* data() {
    return static_cast<T*>(data_);
  }
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(data_);
  }
  void* raw() const { return data_; }

  /// New shape and dtype; forgets layout, LoD and bytes.
  void Reset(DType dtype, Shape shape);
  /// Gets bytes() of its own, 64-byte aligned and zeroed.
  void Allocate();
  /// Uses somebody else's bytes (an arena, a batch); `owner` may keep them.
  void Attach(void* data, std::shared_ptr<void> owner = nullptr) {
    data_ = data;
    owner_ = std::move(owner);
  }

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  LoD lod_;
  LayoutPtr layout_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A row-major copy as an Array.
Array ToArray(const Tensor& tensor);

/// A row-major Tensor with a copy of the array's bytes.
Tensor ToTensor(const Array& array);

/// Copies all elements between two tensors of one shape and dtype, whatever
/// their layouts; zeroes the padding of `to`. Slow: for borders, not for steps.
void CopyElements(const Tensor& from, Tensor* to);

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_TENSOR_H_
