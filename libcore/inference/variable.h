// SPDX-License-Identifier: Apache-2.0
// An input or output of a predictor. Handles (paddle_infer::Tensor) share it
// with the predictor, which takes the value away when it goes.
#ifndef PD_LIBCORE_INFERENCE_VARIABLE_H_
#define PD_LIBCORE_INFERENCE_VARIABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/ir/array.h"
#include "libcore/tensor/tensor.h"

namespace pd {
namespace inference {

class Variable {
 public:
  Variable(std::string name, bool is_input, DType declared)
      : name_(std::move(name)), is_input_(is_input), dtype_(declared) {}

  const std::string& name() const { return name_; }
  bool is_input() const { return is_input_; }
  DType dtype() const { return dtype_; }
  const LoD& lod() const { return lod_; }
  /// False before Reshape and before the first run.
  bool has_shape() const { return has_shape_; }
  const Shape& shape() const { return shape_; }
  bool has_value() const { return data_ != nullptr; }
  /// Rises when type, shape or LoD change.
  uint64_t version() const { return version_; }
  const void* data() const { return data_; }

  /// For inputs. PermissionDenied for an output, InvalidArgument for a
  /// negative extent, OutOfRange for too many elements.
  absl::Status Reshape(const std::vector<int>& shape);
  /// The bytes of a value of this type; an input gets memory of its own where
  /// it has none. FailedPrecondition before Reshape and of an output without a
  /// value of that type.
  absl::StatusOr<void*> Mutable(DType dtype);
  /// The value; InvalidArgument when it has another type.
  absl::StatusOr<const void*> Value(DType dtype) const;
  /// Uses the caller's memory: an input reads from it, an output is copied
  /// there by Deliver.
  absl::Status Share(const void* data, DType dtype,
                     const std::vector<int>& shape);
  /// Offsets; InvalidArgument where they fall or do not begin at 0.
  absl::Status SetLoD(LoD lod);
  /// Type, shape, LoD and elements of another variable.
  absl::Status CopyFrom(const Variable& other);

  /// Of an output: the value is what a plan computed, until TakeAway.
  absl::Status Deliver(const Tensor& tensor);
  /// Of an output: a copy of the value, before its plan goes.
  absl::Status Keep();
  void TakeAway() { data_ = nullptr; }

 private:
  size_t bytes() const {
    return static_cast<size_t>(NumElements(shape_)) * SizeOf(dtype_);
  }

  const std::string name_;
  const bool is_input_;
  DType dtype_;
  Shape shape_;
  LoD lod_;
  bool has_shape_ = false;
  uint64_t version_ = 1;
  const void* data_ = nullptr;
  Array own_;            // the memory of an input, or a kept output
  size_t capacity_ = 0;  // of `own_`, in bytes
  std::byte* own_bytes_ = nullptr;
  // Memory of the caller for an output.
  void* shared_ = nullptr;
  DType shared_dtype_ = DType::kFloat32;
  Shape shared_shape_;
};

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_VARIABLE_H_
