// SPDX-License-Identifier: Apache-2.0
// paddle::Tensor in the host's memory: a value that its copies share. Its
// methods that compute are defined in paddle_functions.h.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_HOST_TENSOR_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_HOST_TENSOR_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "paddle_error.h"
#include "paddle_memory.h"
#include "paddle_methods.h"
#include "paddle_place.h"
#include "paddle_scalar.h"

#ifdef PADDLE_WITH_CUDA
#include <cuda_runtime.h>
using gpuStream_t = cudaStream_t;
#endif

namespace paddle {

namespace detail {
struct TensorAccess;
}  // namespace detail

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
    value_->memory = detail::Borrow(
        data, Bytes(), std::shared_ptr<void>(data, [deleter](void* memory) {
          if (deleter) deleter(memory);
        }));
  }

  using DDim = phi::DDim;

  int64_t numel() const { return value_ == nullptr ? 0 : phi::product(dims()); }
  int64_t size() const { return numel(); }
  const DDim& dims() const {
    static const DDim none;
    return value_ == nullptr ? none : value_->dims;
  }
  std::vector<int64_t> shape() const { return dims().extents(); }
  /// Elements from one index to the next, by axis.
  std::vector<int64_t> strides() const {
    std::vector<int64_t> steps = shape();
    int64_t step = 1;
    for (size_t i = steps.size(); i-- > 0;) {
      const int64_t extent = steps[i];
      steps[i] = step;
      step *= extent;
    }
    return steps;
  }
  DataType dtype() const {
    return value_ == nullptr ? DataType::UNDEFINED : value_->dtype;
  }
  DataType type() const { return dtype(); }
  DataLayout layout() const { return DataLayout::NCHW; }
  /// Every tensor is.
  bool is_contiguous() const { return defined(); }
  Tensor contiguous() const { return *this; }
#ifdef PADDLE_WITH_CUDA
  /// Unavailable: operators of plug-ins compute on the host.
  gpuStream_t stream() const {
    Throw("UnavailableError", "a tensor of the host has no stream");
  }
#endif
  bool is_dense_tensor() const { return defined(); }
  bool is_selected_rows() const { return false; }
  bool is_sparse_coo_tensor() const { return false; }
  bool is_sparse_csr_tensor() const { return false; }
  bool is_string_tensor() const { return false; }
  bool is_dist_tensor() const { return false; }
  Place place() const { return defined() ? Place(CPUPlace()) : Place(); }
  bool is_cpu() const { return defined(); }
  bool is_gpu() const { return false; }
  bool is_gpu_pinned() const { return false; }
  bool is_xpu() const { return false; }
  bool is_custom_device() const { return false; }

  bool defined() const { return value_ != nullptr; }
  bool initialized() const {
    return defined() && (value_->memory != nullptr || numel() == 0);
  }
  bool is_initialized() const { return initialized(); }
  void reset() { value_.reset(); }
  const std::string& name() const { return name_; }
  void set_name(const std::string& name) { name_ = name; }
  void bump_inplace_version() {
    if (defined()) ++value_->version;
  }
  uint32_t current_inplace_version() const {
    return defined() ? value_->version : 0;
  }

  /// A tensor with a value keeps its number of elements.
  void reshape(const std::vector<int64_t>& shape) {
    if (!defined()) value_ = std::make_shared<Value>();
    const DDim before = value_->dims;
    const int64_t elements = numel();
    value_->dims = DDim(shape);
    if (value_->memory == nullptr || numel() == elements) return;
    value_->dims = before;
    Throw("InvalidArgumentError", "reshape of a tensor of " +
                                      std::to_string(elements) +
                                      " elements to another number of them");
  }

  /// InvalidArgument when T is not the element type.
  template <typename T>
  const T* data() const {
    CheckType(phi::CppTypeToDataType<T>::Type());
    return static_cast<const T*>(Raw());
  }
  template <typename T>
  T* data() {
    CheckType(phi::CppTypeToDataType<T>::Type());
    return static_cast<T*>(Raw());
  }
  const void* data() const { return Raw(); }
  void* data() { return Raw(); }
  /// Memory for the shape; the element type becomes T.
  template <typename T>
  T* mutable_data() {
    if (!defined()) Throw("PreconditionNotMetError", "it has no shape");
    value_->dtype = phi::CppTypeToDataType<T>::Type();
    Allocate();
    return static_cast<T*>(Raw());
  }
  template <typename T>
  T* mutable_data(const Place& place) {
    CheckPlace(place);
    return mutable_data<T>();
  }
  /// Indices [begin, end) of the first axis, in the same memory.
  Tensor slice(int64_t begin, int64_t end) const {
    if (!initialized()) Throw("PreconditionNotMetError", "it has no value");
    if (dims().size() == 0 || begin < 0 || begin > end || end > dims()[0])
      Throw("InvalidArgumentError", "slice(" + std::to_string(begin) + ", " +
                                        std::to_string(end) +
                                        ") is not within its first axis");
    const int64_t row = dims()[0] == 0 ? 0 : numel() / dims()[0];
    Tensor part;
    part.value_ = std::make_shared<Value>(*value_);
    part.value_->dims[0] = end - begin;
    part.value_->offset +=
        static_cast<size_t>(begin * row) * phi::SizeOf(dtype());
    return part;
  }

  /// A copy with memory of its own.
  Tensor copy_to(const Place& place, bool /*blocking*/ = true) const {
    CheckPlace(place);
    if (!initialized()) Throw("PreconditionNotMetError", "it has no value");
    Tensor copy(dtype(), shape());
    if (Bytes() > 0) std::memcpy(copy.Raw(), Raw(), Bytes());
    copy.name_ = name_;
    return copy;
  }
  void copy_(const Tensor& src, const Place& place, bool blocking = true) {
    value_ = src.copy_to(place, blocking).value_;
  }
  /// The form of 2.0. InvalidArgument when T is not the element type.
  template <typename T>
  Tensor copy_to(const Place& place) const {
    CheckType(phi::CppTypeToDataType<T>::Type());
    return copy_to(place, true);
  }

  // Operators as methods; see paddle_functions.h.
#define PD_ONE(name) Tensor name() const;
#define PD_TWO(name) Tensor name(const Tensor& y) const;
  PD_TENSOR_METHODS(PD_ONE, PD_TWO)
#undef PD_ONE
#undef PD_TWO
  Tensor cast(DataType dtype) const;
  Tensor pow(const Scalar& y) const;
  Tensor matmul(const Tensor& y, bool transpose_x = false,
                bool transpose_y = false) const;
  Tensor sum(const IntArray& axis = {}, DataType dtype = DataType::UNDEFINED,
             bool keepdim = false) const;
  Tensor scale(const Scalar& scale = 1.0f, float bias = 0.0f,
               bool bias_after_scale = true) const;
  Tensor tile(const IntArray& repeat_times) const;
  Tensor expand(const IntArray& shape) const;
  Tensor assign() const;
  Tensor max(const IntArray& axis = {}, bool keepdim = false) const;
  Tensor roll(const IntArray& shifts,
              const std::vector<int64_t>& axis = {}) const;
  Tensor scatter(const Tensor& index, const Tensor& updates,
                 bool overwrite = true) const;
  Tensor scatter_nd_add(const Tensor& index, const Tensor& updates) const;

 private:
  friend struct detail::TensorAccess;

  struct Value {
    DDim dims;
    DataType dtype = DataType::UNDEFINED;
    detail::MemoryPtr memory;
    size_t offset = 0;  // bytes
    uint32_t version = 0;
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
  void* Raw() const {
    return !defined() || value_->memory == nullptr ||
                   value_->memory->data == nullptr
               ? nullptr
               : static_cast<char*>(value_->memory->data) + value_->offset;
  }
  size_t Bytes() const {
    size_t bytes = phi::SizeOf(dtype());
    for (const int64_t extent : value_->dims.extents()) {
      if (extent < 0)
        Throw("InvalidArgumentError", "its shape has a negative extent");
      if (__builtin_mul_overflow(bytes, static_cast<size_t>(extent), &bytes))
        Throw("ResourceExhaustedError", "its shape is larger than any memory");
    }
    return bytes;
  }
  void Allocate() {
    const size_t bytes = Bytes();
    if (value_->memory != nullptr &&
        value_->memory->bytes >= value_->offset + bytes)
      return;
    value_->memory = detail::NewMemory(bytes);
    value_->offset = 0;
  }

  std::shared_ptr<Value> value_;
  std::string name_;
};

namespace detail {

/// How the library makes tensors of memory that it has.
struct TensorAccess {
  static Tensor Make(DataType dtype, std::vector<int64_t> shape,
                     MemoryPtr memory) {
    Tensor tensor(CPUPlace(), {});
    tensor.value_->dims = phi::DDim(std::move(shape));
    tensor.value_->dtype = dtype;
    tensor.value_->memory = std::move(memory);
    return tensor;
  }
};

}  // namespace detail

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_HOST_TENSOR_H_
