// SPDX-License-Identifier: Apache-2.0
// phi::DenseTensor and the context of devices, of kernels in the C++ form
// (<paddle/phi/extension.h>).
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_

#include <memory>
#include <string>
#include <vector>

#include "paddle_device_context.h"
#include "paddle_place.h"
#include "paddle_scalar.h"
#include "paddle_tensor_handle.h"

namespace phi {

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
  /// Memory of the context for its shape, which holds elements of that type.
  void* AllocateIn(const PD_DeviceContext* context, DataType dtype,
                   size_t bytes) {
    return detail::AllocateTensor(context, *this, bytes, detail::ToC(dtype));
  }
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

/// A device of a plug-in.
class CustomContext : public DeviceContext {
 public:
  using DeviceContext::DeviceContext;
  void* stream() const {
    PD_Status status = C_FAILED;
    void* stream = PD_DeviceContextGetStream(raw_data(), &status);
    detail::CheckStatus(status);
    return stream;
  }
  void* GetStream() const { return stream(); }
  /// Null: there is no Eigen for devices of plug-ins.
  Eigen::DefaultDevice* eigen_device() const { return nullptr; }
};

}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DENSE_TENSOR_H_
