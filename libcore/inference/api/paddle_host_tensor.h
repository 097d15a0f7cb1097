// SPDX-License-Identifier: Apache-2.0
// paddle::Tensor in the host's memory: a value that its copies share.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_HOST_TENSOR_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_HOST_TENSOR_H_

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "paddle_infer_error.h"
#include "paddle_place.h"

namespace paddle {

/// Called with the memory when the last tensor that uses it goes.
using Deleter = std::function<void(void*)>;

/// A default one is undefined. Errors are thrown as EnforceNotMet.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const std::string& name) : name_(name) {}
  /// Memory comes with mutable_data.
  explicit Tensor(const Place& place) : Tensor(place, {}) {}
  Tensor(const Place& place, const std::vector<int64_t>& shape)
      : value_(std::make_shared<Value>()) {
    CheckPlace(place);
    value_->dims = DDim(shape);
    value_->dtype = DataType::FLOAT32;
  }
  /// Of this type and shape, with memory whose contents are undefined.
  Tensor(DataType dtype, const std::vector<int64_t>& shape)
      : Tensor(CPUPlace(), shape) {
    value_->dtype = dtype;
    Allocate();
  }
  /// Uses the caller's memory.
  Tensor(void* data, DataType dtype, const std::vector<int64_t>& shape,
         const Deleter& deleter = nullptr)
      : Tensor(CPUPlace(), shape) {
    value_->dtype = dtype;
    value_->bytes = std::shared_ptr<void>(data, [deleter](void* memory) {
      if (deleter) deleter(memory);
    });
    value_->capacity = Bytes();
  }

  using DDim = phi::DDim;

  int64_t numel() const {
    int64_t product = 1;
    for (const int64_t extent : dims().extents()) product *= extent;
    return value_ == nullptr ? 0 : product;
  }
  int64_t size() const { return numel(); }
  const DDim& dims() const {
    static const DDim none;
    return value_ == nullptr ? none : value_->dims;
  }
  std::vector<int64_t> shape() const { return dims().extents(); }
  DataType dtype() const {
    return value_ == nullptr ? DataType::UNDEFINED : value_->dtype;
  }
  DataType type() const { return dtype(); }
  DataLayout layout() const { return DataLayout::NCHW; }
  bool is_dense_tensor() const { return defined(); }
  bool is_selected_rows() const { return false; }
  bool is_sparse_coo_tensor() const { return false; }
  bool is_sparse_csr_tensor() const { return false; }
  bool is_string_tensor() const { return false; }
  Place place() const { return defined() ? Place(CPUPlace()) : Place(); }
  bool is_cpu() const { return defined(); }
  bool is_gpu() const { return false; }
  bool is_gpu_pinned() const { return false; }
  bool is_xpu() const { return false; }
  bool is_custom_device() const { return false; }

  bool defined() const { return value_ != nullptr; }
  bool initialized() const {
    return defined() && (value_->bytes != nullptr || numel() == 0);
  }
  bool is_initialized() const { return initialized(); }
  void reset() { value_.reset(); }
  const std::string& name() const { return name_; }
  void set_name(const std::string& name) { name_ = name; }

  /// A tensor with a value keeps its number of elements.
  void reshape(const std::vector<int64_t>& shape) {
    if (!defined()) value_ = std::make_shared<Value>();
    const DDim before = value_->dims;
    const int64_t elements = numel();
    value_->dims = DDim(shape);
    if (value_->bytes == nullptr || numel() == elements) return;
    value_->dims = before;
    Throw("InvalidArgumentError", "reshape of a tensor of " +
                                      std::to_string(elements) +
                                      " elements to another number of them");
  }

  /// InvalidArgument when T is not the element type.
  template <typename T>
  const T* data() const {
    CheckType(phi::CppTypeToDataType<T>::Type());
    return static_cast<const T*>(value_->bytes.get());
  }
  template <typename T>
  T* data() {
    CheckType(phi::CppTypeToDataType<T>::Type());
    return static_cast<T*>(value_->bytes.get());
  }
  const void* data() const { return defined() ? value_->bytes.get() : nullptr; }
  void* data() { return defined() ? value_->bytes.get() : nullptr; }
  /// Memory for the shape; the element type becomes T.
  template <typename T>
  T* mutable_data() {
    if (!defined()) Throw("PreconditionNotMetError", "it has no shape");
    value_->dtype = phi::CppTypeToDataType<T>::Type();
    Allocate();
    return static_cast<T*>(value_->bytes.get());
  }
  template <typename T>
  T* mutable_data(const Place& place) {
    CheckPlace(place);
    return mutable_data<T>();
  }

  /// A copy with memory of its own.
  Tensor copy_to(const Place& place, bool /*blocking*/ = true) const {
    CheckPlace(place);
    if (!initialized()) Throw("PreconditionNotMetError", "it has no value");
    Tensor copy(dtype(), shape());
    if (Bytes() > 0)
      std::memcpy(copy.value_->bytes.get(), value_->bytes.get(), Bytes());
    copy.name_ = name_;
    return copy;
  }
  void copy_(const Tensor& src, const Place& place, bool blocking = true) {
    value_ = src.copy_to(place, blocking).value_;
  }

 private:
  struct Value {
    DDim dims;
    DataType dtype = DataType::UNDEFINED;
    std::shared_ptr<void> bytes;
    size_t capacity = 0;
  };

  [[noreturn]] void Throw(const char* kind, const std::string& what) const {
    throw phi::enforce::EnforceNotMet(kind, "tensor '" + name_ + "': " + what);
  }
  void CheckPlace(const Place& place) const {
    if (place.GetType() != AllocationType::CPU &&
        place.GetType() != AllocationType::UNDEFINED &&
        place.GetType() != AllocationType::GPUPINNED)
      Throw("UnavailableError", "there is no memory of " + place.DebugString());
  }
  void CheckType(DataType wanted) const {
    if (!initialized()) Throw("PreconditionNotMetError", "it has no value");
    if (wanted != dtype())
      Throw("InvalidArgumentError",
            std::string("it holds ") + phi::DataTypeToString(dtype()) +
                " and is read as " + phi::DataTypeToString(wanted));
  }
  size_t Bytes() const {
    return static_cast<size_t>(numel()) * phi::SizeOf(dtype());
  }
  void Allocate() {
    for (const int64_t extent : value_->dims.extents())
      if (extent < 0)
        Throw("InvalidArgumentError", "its shape has a negative extent");
    if (value_->bytes != nullptr && value_->capacity >= Bytes()) return;
    // Units as large as the widest element, for its alignment.
    const size_t units = Bytes() / sizeof(double) + 2;
    value_->bytes = std::shared_ptr<void>(new double[units],
                                          std::default_delete<double[]>());
    value_->capacity = Bytes();
  }

  std::shared_ptr<Value> value_;
  std::string name_;
};

/// Memory of this shape, whose contents are undefined.
inline Tensor empty(const std::vector<int64_t>& shape,
                    DataType dtype = DataType::FLOAT32,
                    const Place& place = CPUPlace()) {
  Tensor tensor(place);  // refuses a place that is not here
  return Tensor(dtype, shape);
}

/// A tensor over the caller's memory, without a copy.
inline Tensor from_blob(void* data, const std::vector<int64_t>& shape,
                        DataType dtype,
                        DataLayout /*layout*/ = DataLayout::NCHW,
                        const Place& place = Place(),
                        const Deleter& deleter = nullptr) {
  Tensor tensor(place);
  return Tensor(data, dtype, shape, deleter);
}

}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_HOST_TENSOR_H_
