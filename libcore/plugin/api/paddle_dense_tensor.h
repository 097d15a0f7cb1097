// SPDX-License-Identifier: Apache-2.0
// phi::DenseTensor and the contexts of kernels in the C++ form
// (<paddle/phi/extension.h>).
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_

#include <memory>
#include <string>
#include <vector>

#include "paddle_place.h"
#include "paddle_scalar.h"
#include "paddle_tensor_handle.h"

namespace phi {

using paddle::experimental::IntArray;
using paddle::experimental::Scalar;
using ScalarArray = IntArray;
using LoD = std::vector<std::vector<size_t>>;

namespace detail {

/// The element types and layouts of both sides of the border.
struct TypePair {
  DataType cpp;
  C_DataType c;
};
inline const TypePair* TypePairs() {
  static const TypePair pairs[] = {{DataType::BOOL, ::BOOL},
                                   {DataType::UINT8, ::UINT8},
                                   {DataType::INT8, ::INT8},
                                   {DataType::UINT16, ::UINT16},
                                   {DataType::INT16, ::INT16},
                                   {DataType::UINT32, ::UINT32},
                                   {DataType::INT32, ::INT32},
                                   {DataType::UINT64, ::UINT64},
                                   {DataType::INT64, ::INT64},
                                   {DataType::FLOAT32, ::FLOAT32},
                                   {DataType::FLOAT64, ::FLOAT64},
                                   {DataType::COMPLEX64, ::COMPLEX64},
                                   {DataType::COMPLEX128, ::COMPLEX128},
                                   {DataType::FLOAT16, ::FLOAT16},
                                   {DataType::BFLOAT16, ::BFLOAT16},
                                   {DataType::UNDEFINED, ::UNDEFINED}};
  return pairs;
}
inline C_DataType ToC(DataType dtype) {
  const TypePair* pair = TypePairs();
  while (pair->cpp != dtype && pair->cpp != DataType::UNDEFINED) ++pair;
  return pair->c;
}
inline DataType FromC(C_DataType dtype) {
  const TypePair* pair = TypePairs();
  while (pair->c != dtype && pair->c != ::UNDEFINED) ++pair;
  return pair->cpp;
}
inline PD_DataLayout ToC(DataLayout layout) {
  switch (layout) {
    case DataLayout::NHWC:
      return ::NHWC;
    case DataLayout::NCHW:
      return ::NCHW;
    case DataLayout::NDHWC:
      return ::NDHWC;
    case DataLayout::NCDHW:
      return ::NCDHW;
    default:
      return ::ANY;
  }
}
inline DataLayout FromC(PD_DataLayout layout) {
  switch (layout) {
    case ::NHWC:
      return DataLayout::NHWC;
    case ::NCHW:
      return DataLayout::NCHW;
    case ::NDHWC:
      return DataLayout::NDHWC;
    case ::NCDHW:
      return DataLayout::NCDHW;
    default:
      return DataLayout::ANY;
  }
}

/// The place of a context; null: the host.
inline Place PlaceOf(const PD_DeviceContext* context) {
  int id = 0;
  const std::string type = PD_PluginContextDevice(context, &id);
  return type == "cpu" ? Place(CPUPlace()) : Place(CustomPlace(type, id));
}

}  // namespace detail

/// Shape, type and layout of a tensor.
struct DenseTensorMeta {
  DenseTensorMeta() = default;
  DenseTensorMeta(DataType type, DDim extents,
                  DataLayout order = DataLayout::NCHW)
      : dims(std::move(extents)), dtype(type), layout(order) {}
  DDim dims;
  DataType dtype = DataType::UNDEFINED;
  DataLayout layout = DataLayout::NCHW;
  LoD lod;
  size_t offset = 0;
};

/// A dense tensor. A default one has memory of its own once it is allocated.
class DenseTensor : public detail::TensorHandle {
 public:
  DenseTensor() = default;
  explicit DenseTensor(PD_Tensor* lent) : TensorHandle(lent) {}

  static const char* name() { return "DenseTensor"; }
  const DDim& dims() const {
    dims_ = DDim(extents());
    return dims_;
  }
  DDim strides() const { return DDim(steps()); }
  DataType dtype() const { return detail::FromC(Type()); }
  DataType type() const { return dtype(); }
  DataLayout layout() const { return detail::FromC(Layout()); }
  size_t capacity() const { return static_cast<size_t>(memory_size()); }
  DenseTensorMeta meta() const {
    DenseTensorMeta meta(dtype(), dims(), layout());
    meta.lod = lod();
    meta.offset = offset();
    return meta;
  }
  void set_meta(const DenseTensorMeta& meta) {
    Resize(meta.dims);
    set_type(meta.dtype);
    set_layout(meta.layout);
    ResetLoD(meta.lod);
    set_offset(static_cast<int64_t>(meta.offset));
  }
  /// InvalidArgument where T is not the element type.
  template <typename T>
  const T* data() const {
    return static_cast<const T*>(
        Elements(detail::ToC(CppTypeToDataType<T>::Type())));
  }
  template <typename T>
  T* data() {
    return static_cast<T*>(Elements(detail::ToC(CppTypeToDataType<T>::Type())));
  }
  const void* data() const { return Bytes(); }
  void* data() { return Bytes(); }
  void Resize(const DDim& dims) { SetExtents(dims.extents()); }
  void set_type(DataType dtype) { SetType(detail::ToC(dtype)); }
  void set_layout(DataLayout layout) { SetLayout(detail::ToC(layout)); }
  bool IsSharedWith(const DenseTensor& other) const {
    return Holder() != nullptr && Holder() == other.Holder();
  }
  bool IsSharedBufferWith(const DenseTensor& other) const {
    return IsSharedWith(other);
  }
  DenseTensor& ShareBufferWith(const DenseTensor& other) {
    const DDim before = dims();
    ShareDataWith(other);
    Resize(before);
    return *this;
  }

 private:
  mutable DDim dims_;
};

/// The place of a kernel, with its memory.
class DeviceContext {
 public:
  DeviceContext() : DeviceContext(nullptr) {}
  explicit DeviceContext(PD_DeviceContext* context)
      : context_(context), place_(detail::PlaceOf(context)) {}

  const Place& GetPlace() const { return place_; }
  /// Memory for a tensor; its element type becomes T. `bytes` 0: as many as
  /// its shape needs.
  template <typename T>
  T* Alloc(DenseTensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(Alloc(tensor, CppTypeToDataType<T>::Type(), bytes));
  }
  void* Alloc(DenseTensor* tensor, DataType dtype, size_t bytes = 0) const {
    return detail::AllocateTensor(context_, *tensor, bytes, detail::ToC(dtype));
  }
  /// The same in the host's memory.
  template <typename T>
  T* HostAlloc(DenseTensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(
        HostAlloc(tensor, CppTypeToDataType<T>::Type(), bytes));
  }
  void* HostAlloc(DenseTensor* tensor, DataType dtype, size_t bytes = 0) const {
    return detail::AllocateTensor(nullptr, *tensor, bytes, detail::ToC(dtype));
  }
  /// Work of this device's stream is started in order, so nothing is awaited.
  void Wait() const {}

 protected:
  void* Stream() const {
    PD_Status status = C_FAILED;
    void* stream = PD_DeviceContextGetStream(context_, &status);
    detail::CheckStatus(status);
    return stream;
  }

 private:
  PD_DeviceContext* context_;
  Place place_;
};

/// A device of a plug-in.
class CustomContext : public DeviceContext {
 public:
  using DeviceContext::DeviceContext;
  void* stream() const { return Stream(); }
};

}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_
