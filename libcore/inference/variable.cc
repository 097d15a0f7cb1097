// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/variable.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace inference {
namespace {

// The address of values without elements.
double g_nothing = 0;

absl::StatusOr<Shape> CheckedShape(const std::string& name,
                                   const std::vector<int>& extents) {
  const Shape shape(extents.begin(), extents.end());
  for (const int64_t extent : shape)
    if (extent < 0)
      return InvalidArgument(
          "input '%s': shape %s has a negative extent; expected 0 or more",
          name, ToString(shape));
  const auto bytes = CheckedBytes(shape, sizeof(double));
  if (!bytes.ok()) return Annotate(bytes.status(), "'" + name + "'");
  return shape;
}

}  // namespace

absl::Status Variable::Reshape(const std::vector<int>& extents) {
  if (!is_input_)
    return PermissionDenied(
        "output '%s': its shape follows from the inputs; Reshape is for inputs",
        name_);
  PD_ASSIGN_OR_RETURN(Shape shape, CheckedShape(name_, extents));
  if (has_shape_ && shape == shape_) return absl::OkStatus();
  shape_ = std::move(shape);
  has_shape_ = true;
  ++version_;
  // Elements that are there already stay where they suffice.
  if (data_ != own_bytes_ || bytes() > capacity_) data_ = nullptr;
  return absl::OkStatus();
}

absl::StatusOr<void*> Variable::Mutable(DType dtype) {
  if (!is_input_) {
    PD_ASSIGN_OR_RETURN(const void* value, Value(dtype));
    return const_cast<void*>(value);
  }
  if (!has_shape_)
    return FailedPrecondition(
        "input '%s' has no shape; call Reshape before it gets elements", name_);
  if (dtype != dtype_) {
    dtype_ = dtype;
    ++version_;
  }
  if (own_bytes_ == nullptr || capacity_ < bytes()) {
    own_bytes_ = nullptr;
    data_ = nullptr;
    PD_ASSIGN_OR_RETURN(own_, NewArray(dtype_, shape_, &own_bytes_));
    capacity_ = bytes();
  }
  data_ = own_bytes_;
  if (bytes() == 0) data_ = &g_nothing;
  return const_cast<void*>(data_);
}

absl::StatusOr<const void*> Variable::Value(DType dtype) const {
  if (data_ == nullptr)
    return FailedPrecondition(
        "%s '%s' has no %s", is_input_ ? "input" : "output", name_,
        is_input_ ? "elements; call Reshape and CopyFromCpu"
                  : "value; run the predictor first");
  if (dtype != dtype_)
    return InvalidArgument("%s '%s' holds %s; it is read as %s",
                           is_input_ ? "input" : "output", name_, Name(dtype_),
                           Name(dtype));
  return data_;
}

absl::Status Variable::Share(const void* data, DType dtype,
                             const std::vector<int>& extents) {
  PD_ASSIGN_OR_RETURN(Shape shape, CheckedShape(name_, extents));
  if (data == nullptr)
    return InvalidArgument("'%s': the memory to share is a null pointer",
                           name_);
  if (reinterpret_cast<uintptr_t>(data) % SizeOf(dtype) != 0)
    return InvalidArgument(
        "'%s': the memory to share lies at %p, no address "
        "of a %s",
        name_, data, Name(dtype));
  if (!is_input_) {
    shared_ = const_cast<void*>(data);
    shared_dtype_ = dtype;
    shared_shape_ = std::move(shape);
    return absl::OkStatus();
  }
  if (!has_shape_ || shape != shape_ || dtype != dtype_) ++version_;
  shape_ = std::move(shape);
  has_shape_ = true;
  dtype_ = dtype;
  data_ = data;
  return absl::OkStatus();
}

absl::Status Variable::SetLoD(LoD lod) {
  for (const std::vector<uint64_t>& level : lod) {
    if (level.empty() || level[0] != 0)
      return InvalidArgument(
          "'%s': a level of the LoD does not begin with 0; expected offsets",
          name_);
    if (!std::is_sorted(level.begin(), level.end()))
      return InvalidArgument("'%s': offsets of the LoD fall", name_);
  }
  if (lod == lod_) return absl::OkStatus();
  lod_ = std::move(lod);
  ++version_;
  return absl::OkStatus();
}

absl::Status Variable::CopyFrom(const Variable& other) {
  PD_ASSIGN_OR_RETURN(const void* from, other.Value(other.dtype_));
  if (&other == this) return absl::OkStatus();
  if (!is_input_)
    return PermissionDenied("output '%s' cannot be copied to", name_);
  if (!has_shape_ || shape_ != other.shape_) ++version_;
  shape_ = other.shape_;
  has_shape_ = true;
  PD_RETURN_IF_ERROR(SetLoD(other.lod_));
  PD_ASSIGN_OR_RETURN(void* to, Mutable(other.dtype_));
  if (bytes() > 0) std::memcpy(to, from, bytes());
  return absl::OkStatus();
}

absl::Status Variable::Deliver(const Tensor& tensor) {
  data_ = nullptr;
  if (tensor.kind() != VarKind::kLodTensor)
    return Unimplemented(
        "output '%s' is no plain tensor (a list of tensors or selected rows)",
        name_);
  if (tensor.raw() == nullptr && tensor.size() > 0)
    return FailedPrecondition("output '%s' got no value", name_);
  if (dtype_ != tensor.dtype()) dtype_ = tensor.dtype();
  if (shape_ != tensor.shape()) shape_ = tensor.shape();
  if (lod_ != tensor.lod()) lod_ = tensor.lod();
  has_shape_ = true;
  data_ = tensor.raw() != nullptr ? tensor.raw() : &g_nothing;
  if (shared_ != nullptr && shared_dtype_ == dtype_ &&
      shared_shape_ == shape_) {
    if (bytes() > 0) std::memcpy(shared_, data_, bytes());
    data_ = shared_;
  }
  return absl::OkStatus();
}

absl::Status Variable::Keep() {
  if (data_ == nullptr || data_ == own_bytes_ || data_ == shared_ ||
      data_ == &g_nothing)
    return absl::OkStatus();
  const void* value = data_;
  data_ = nullptr;
  own_bytes_ = nullptr;
  PD_ASSIGN_OR_RETURN(own_, NewArray(dtype_, shape_, &own_bytes_));
  if (bytes() > 0) std::memcpy(own_bytes_, value, bytes());
  data_ = own_bytes_;
  return absl::OkStatus();
}

}  // namespace inference
}  // namespace pd
