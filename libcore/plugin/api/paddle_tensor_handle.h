// SPDX-License-Identifier: Apache-2.0
// The part of a kernel's tensor that both forms of kernels have in common.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_TENSOR_HANDLE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_TENSOR_HANDLE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "paddle_capi.h"
#include "paddle_error.h"

namespace phi {
namespace detail {

/// Throws the reason of a status that is not C_SUCCESS.
inline void CheckStatus(PD_Status status) {
  if (status == C_SUCCESS) return;
  throw enforce::EnforceNotMet("InvalidArgumentError", PD_PluginLastError());
}

/// A tensor of the library: lent by it for the time of a call, or its own.
class TensorHandle {
 public:
  TensorHandle() : tensor_(PD_NewTensor()), owned_(true) {}
  explicit TensorHandle(PD_Tensor* lent) : tensor_(lent), owned_(false) {}
  /// The copy has the same memory.
  TensorHandle(const TensorHandle& other) : TensorHandle() {
    ShareDataWith(other);
  }
  TensorHandle(TensorHandle&& other) noexcept
      : tensor_(other.tensor_), owned_(other.owned_) {
    other.owned_ = false;
  }
  TensorHandle& operator=(const TensorHandle& other) {
    if (this != &other) ShareDataWith(other);
    return *this;
  }
  TensorHandle& operator=(TensorHandle&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~TensorHandle() {
    if (owned_) PD_DeleteTensor(tensor_);
  }

  PD_Tensor* raw_data() const { return tensor_; }
  int64_t numel() const { return Get(&PD_TensorGetElementCount); }
  int64_t memory_size() const { return Get(&PD_TensorGetByteSize); }
  bool initialized() const { return Get(&PD_TensorIsInitialized); }
  bool valid() const { return Get(&PD_TensorIsValid); }
  size_t offset() const { return Get(&PD_TensorGetOffset); }
  /// The same for tensors that share memory.
  void* Holder() const { return Get(&PD_TensorGetHolder); }
  std::vector<int64_t> extents() const {
    return ListOf(&PD_TensorGetNumDims, &PD_TensorGetDim);
  }
  std::vector<int64_t> steps() const {
    return ListOf(&PD_TensorGetNumStrides, &PD_TensorGetStride);
  }
  std::vector<std::vector<size_t>> lod() const {
    PD_List data, offset;
    PD_Status status = C_FAILED;
    PD_TensorGetLoD(tensor_, &data, &offset, &status);
    CheckStatus(status);
    const size_t* numbers = static_cast<const size_t*>(data.data);
    const size_t* begins = static_cast<const size_t*>(offset.data);
    std::vector<std::vector<size_t>> levels;
    for (size_t i = 0; i + 1 < offset.size; ++i)
      levels.emplace_back(numbers + begins[i], numbers + begins[i + 1]);
    PD_DeleteUInt64List(data);
    PD_DeleteUInt64List(offset);
    return levels;
  }

  void SetExtents(const std::vector<int64_t>& extents) {
    SetList(&PD_TensorSetDims, extents);
  }
  void set_strides(const std::vector<int64_t>& strides) {
    SetList(&PD_TensorSetStrides, strides);
  }
  void set_offset(int64_t offset) {
    PD_Status status = C_FAILED;
    PD_TensorSetOffset(tensor_, offset, &status);
    CheckStatus(status);
  }
  void ResetLoD(const std::vector<std::vector<size_t>>& levels) {
    std::vector<size_t> numbers, begins(1, 0);
    for (const auto& level : levels) {
      numbers.insert(numbers.end(), level.begin(), level.end());
      begins.push_back(numbers.size());
    }
    PD_Status status = C_FAILED;
    PD_TensorResetLoD(tensor_, {numbers.size(), numbers.data()},
                      {begins.size(), begins.data()}, &status);
    CheckStatus(status);
  }
  /// Shape, type and memory become those of the other.
  void ShareDataWith(const TensorHandle& other) {
    Share(&PD_TensorShareDataWith, other);
  }
  void share_lod(const TensorHandle& other) {
    Share(&PD_TensorShareLoDWith, other);
  }

 protected:
  void SetType(C_DataType dtype) {
    PD_Status status = C_FAILED;
    PD_TensorSetDataType(tensor_, dtype, &status);
    CheckStatus(status);
  }
  void SetLayout(PD_DataLayout layout) {
    PD_Status status = C_FAILED;
    PD_TensorSetDataLayout(tensor_, layout, &status);
    CheckStatus(status);
  }
  C_DataType Type() const { return Get(&PD_TensorGetPDDataType); }
  PD_DataLayout Layout() const { return Get(&PD_TensorGetDataLayout); }
  /// The elements, which have to be of this type.
  void* Elements(C_DataType wanted) const {
    if (wanted != Type())
      throw enforce::EnforceNotMet("InvalidArgumentError",
                                   "a tensor is read as another type than "
                                   "that of its elements");
    return Get(&PD_TensorGetDataPointer);
  }
  /// The same, of any type of that size.
  void* ElementsOf(size_t size) const {
    if (memory_size() != numel() * static_cast<int64_t>(size))
      throw enforce::EnforceNotMet("InvalidArgumentError",
                                   "a tensor is read as a type of another "
                                   "size than that of its elements");
    return Get(&PD_TensorGetDataPointer);
  }
  void* Bytes() const { return Get(&PD_TensorGetDataPointer); }

 private:
  template <typename R>
  R Get(R (*function)(const PD_Tensor*, PD_Status*)) const {
    PD_Status status = C_FAILED;
    const R value = function(tensor_, &status);
    CheckStatus(status);
    return value;
  }
  std::vector<int64_t> ListOf(int64_t (*count)(const PD_Tensor*, PD_Status*),
                              int64_t (*at)(const PD_Tensor*, size_t,
                                            PD_Status*)) const {
    std::vector<int64_t> values(static_cast<size_t>(Get(count)));
    for (size_t i = 0; i < values.size(); ++i) {
      PD_Status status = C_FAILED;
      values[i] = at(tensor_, i, &status);
      CheckStatus(status);
    }
    return values;
  }
  void SetList(void (*set)(PD_Tensor*, int64_t, const int64_t*, PD_Status*),
               const std::vector<int64_t>& values) {
    PD_Status status = C_FAILED;
    set(tensor_, static_cast<int64_t>(values.size()), values.data(), &status);
    CheckStatus(status);
  }
  void Share(void (*share)(PD_Tensor*, const PD_Tensor*, PD_Status*),
             const TensorHandle& other) {
    PD_Status status = C_FAILED;
    share(tensor_, other.tensor_, &status);
    CheckStatus(status);
  }

  PD_Tensor* tensor_;
  bool owned_;
};

/// Memory for a tensor of the context's device; a null context: of the host.
inline void* AllocateTensor(const PD_DeviceContext* context,
                            const TensorHandle& tensor, size_t bytes,
                            C_DataType dtype) {
  PD_Status status = C_FAILED;
  void* data = PD_DeviceContextAllocateTensor(context, tensor.raw_data(), bytes,
                                              dtype, &status);
  CheckStatus(status);
  return data;
}

}  // namespace detail
}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_TENSOR_HANDLE_H_
