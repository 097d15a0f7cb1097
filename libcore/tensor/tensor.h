// SPDX-License-Identifier: Apache-2.0
// A tensor at run time: shape, dtype, layout, and where the bytes are. The
// address of a Tensor is stable while a plan lives, so kernels keep pointers to
// Tensors and read data() when they run.
#ifndef PD_LIBCORE_TENSOR_TENSOR_H_
#define PD_LIBCORE_TENSOR_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/tensor/layout.h"

namespace pd {

class Frame;

/// COO or CSR.
inline bool IsSparse(VarKind kind) {
  return kind == VarKind::kSparseCoo || kind == VarKind::kSparseCsr;
}
/// Values that consist of tensors: arrays, and sparse tensors.
inline bool HasParts(VarKind kind) {
  return kind == VarKind::kLodTensorArray || IsSparse(kind);
}

/// A variable's value: a tensor; some rows of a tall tensor (kSelectedRows, the
/// gradient of an embedding); a list of tensors (kLodTensorArray); a sparse
/// tensor, whose elements are its parts (kSparseCoo, kSparseCsr:
/// libcore/ops/sparse); the variables that a block left behind (kStepScopes).
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

  /// kLodTensor, kSelectedRows, kLodTensorArray, kSparseCoo, kSparseCsr or
  /// kStepScopes.
  VarKind kind() const { return kind_; }
  void set_kind(VarKind kind) { kind_ = kind; }
  bool is_array() const { return kind_ == VarKind::kLodTensorArray; }
  bool is_sparse() const { return IsSparse(kind_); }
  /// Selected rows: the row numbers, as many as dim(0), and the extent of the
  /// first axis of the tensor that they are rows of.
  std::vector<int64_t>& rows() { return rows_; }
  const std::vector<int64_t>& rows() const { return rows_; }
  int64_t height() const { return height_; }
  void set_height(int64_t height) { height_ = height; }
  /// A tensor array's, of which one that was never written has no bytes; the
  /// parts of a sparse tensor, which has no bytes itself.
  std::vector<Tensor>& elements() { return elements_; }
  const std::vector<Tensor>& elements() const { return elements_; }
  /// Step scopes: one frame for each run of the block.
  std::vector<std::shared_ptr<Frame>>& frames() { return frames_; }

  /// New shape and dtype; forgets layout, LoD and bytes.
  void Reset(DType dtype, Shape shape);
  /// Gets bytes() of its own, 64-byte aligned and zeroed. An error, and no
  /// bytes, for a shape that CheckedBytes refuses or above the memory limit.
  absl::Status Allocate();
  /// A row-major tensor of this shape, without LoD, in bytes of its own that
  /// are kept where they suffice; their contents are undefined. For steps of
  /// ops whose result has a shape that is known only now. Errors are
  /// Allocate's; the tensor is then empty.
  absl::Status Resize(DType dtype, Shape shape);
  absl::Status Resize(Shape shape) { return Resize(dtype_, std::move(shape)); }
  /// True when it has a value: bytes, or an array's elements.
  bool has_value() const { return data_ != nullptr || !elements_.empty(); }
  /// Uses somebody else's bytes (an arena, a batch); `owner` may keep them.
  void Attach(void* data, std::shared_ptr<void> owner = nullptr) {
    data_ = data;
    owner_ = std::move(owner);
    capacity_ = 0;
  }

 private:
  DType dtype_ = DType::kFloat32;
  Shape shape_;
  LoD lod_;
  LayoutPtr layout_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  size_t capacity_ = 0;  // bytes of its own
  VarKind kind_ = VarKind::kLodTensor;
  std::vector<int64_t> rows_;
  int64_t height_ = 0;
  std::vector<Tensor> elements_;
  std::vector<std::shared_ptr<Frame>> frames_;
};

/// A row-major copy as an Array. Copies have sizes that were accepted before;
/// where no memory is left for one, they throw std::bad_alloc, which RunTool
/// and the executor catch.
Array ToArray(const Tensor& tensor);

/// A row-major Tensor with a copy of the array's bytes.
Tensor ToTensor(const Array& array);

/// A copy with bytes of its own; an array's elements share theirs with the
/// original until they are written anew.
Tensor CloneOf(const Tensor& tensor);

/// Copies all elements between two tensors of one shape and dtype, whatever
/// their layouts; zeroes the padding of `to`. For borders; steps have reorders.
void CopyElements(const Tensor& from, Tensor* to);

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_TENSOR_H_
