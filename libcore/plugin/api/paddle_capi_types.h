// SPDX-License-Identifier: Apache-2.0
// The types of kernels in the C form (<paddle/phi/capi/all.h>): what the C
// functions of paddle_capi.h give, as classes. A source includes either this
// form or <paddle/phi/extension.h>, since some names stand for other types.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_TYPES_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_TYPES_H_

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "paddle_complex.h"
#include "paddle_declared_kernel.h"
#include "paddle_half.h"
#include "paddle_kernel_call.h"
#include "paddle_tensor_handle.h"

/// Here alone: the prediction API in C has another type of this name.
typedef C_DataType PD_DataType;

namespace phi {
namespace capi {

using DataType = C_DataType;
using DataLayout = PD_DataLayout;
using LoD = std::vector<std::vector<size_t>>;

/// The DataType of a type of C++.
template <typename T>
struct CppTypeToPDType;
#define PD_CAPI_TYPE(T, name)                             \
  template <>                                             \
  struct CppTypeToPDType<T> {                             \
    static constexpr C_DataType Type() { return ::name; } \
  }
PD_CAPI_TYPE(bool, BOOL);
PD_CAPI_TYPE(uint8_t, UINT8);
PD_CAPI_TYPE(uint16_t, UINT16);
PD_CAPI_TYPE(uint32_t, UINT32);
PD_CAPI_TYPE(uint64_t, UINT64);
PD_CAPI_TYPE(int8_t, INT8);
PD_CAPI_TYPE(int16_t, INT16);
PD_CAPI_TYPE(int32_t, INT32);
PD_CAPI_TYPE(int64_t, INT64);
PD_CAPI_TYPE(float, FLOAT32);
PD_CAPI_TYPE(double, FLOAT64);
PD_CAPI_TYPE(::phi::dtype::float16, FLOAT16);
PD_CAPI_TYPE(::phi::dtype::bfloat16, BFLOAT16);
PD_CAPI_TYPE(::phi::dtype::complex<float>, COMPLEX64);
PD_CAPI_TYPE(::phi::dtype::complex<double>, COMPLEX128);
#undef PD_CAPI_TYPE

class Place {
 public:
  explicit Place(PD_Place* place) : place_(place) {}
  bool is_host() const { return PD_PlaceIsHost(place_); }
  int8_t GetDeviceID() const { return PD_PlaceGetDeviceId(place_); }

 private:
  PD_Place* place_;
};

/// A dense tensor. A default one has memory of its own once it is allocated.
class DenseTensor : public detail::TensorHandle {
 public:
  DenseTensor() = default;
  explicit DenseTensor(PD_Tensor* lent) : TensorHandle(lent) {}

  std::vector<int64_t> dims() const { return extents(); }
  std::vector<int64_t> strides() const { return steps(); }
  DataType dtype() const { return Type(); }
  DataLayout layout() const { return Layout(); }
  /// InvalidArgument where T is of another size than the elements.
  template <typename T>
  T* data() const {
    return static_cast<T*>(ElementsOf(sizeof(T)));
  }
  void Resize(const std::vector<int64_t>& dims) { SetExtents(dims); }
  void set_dtype(DataType dtype) { SetType(dtype); }
  void set_layout(DataLayout layout) { SetLayout(layout); }
};

/// The device of a kernel, or the host.
class DeviceContext {
 public:
  explicit DeviceContext(PD_DeviceContext* context) : context_(context) {}

  PD_DeviceContext* raw_data() const { return context_; }
  void* stream() const {
    PD_Status status = C_FAILED;
    void* stream = PD_DeviceContextGetStream(context_, &status);
    detail::CheckStatus(status);
    return stream;
  }
  /// Device memory for a tensor; its element type becomes T. `bytes` 0: as
  /// many as its shape needs.
  template <typename T>
  T* Alloc(DenseTensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(Alloc(tensor, CppTypeToPDType<T>::Type(), bytes));
  }
  void* Alloc(DenseTensor* tensor, DataType dtype, size_t bytes = 0) const {
    return detail::AllocateTensor(context_, *tensor, bytes, dtype);
  }
  /// The same in the host's memory.
  template <typename T>
  T* HostAlloc(DenseTensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(
        HostAlloc(tensor, CppTypeToPDType<T>::Type(), bytes));
  }
  void* HostAlloc(DenseTensor* tensor, DataType dtype, size_t bytes = 0) const {
    return detail::AllocateTensor(nullptr, *tensor, bytes, dtype);
  }
  uint64_t seed() const {
    PD_Status status = C_FAILED;
    const uint64_t seed = PD_DeviceContextGetSeed(context_, &status);
    detail::CheckStatus(status);
    return seed;
  }
  void seed(uint64_t seed) const {
    PD_Status status = C_FAILED;
    PD_DeviceContextSetSeed(context_, seed, &status);
    detail::CheckStatus(status);
  }
  uint64_t random() const {
    PD_Status status = C_FAILED;
    const uint64_t number = PD_DeviceContextGetRandom(context_, &status);
    detail::CheckStatus(status);
    return number;
  }

 private:
  PD_DeviceContext* context_;
};

/// A number of the library's.
class Scalar {
 public:
  explicit Scalar(PD_Scalar* scalar) : scalar_(scalar) {}
  DataType dtype() const { return PD_ScalarGetDataType(scalar_); }
  template <typename T>
  T to() const {
    return Convert<T>(std::is_integral<T>());
  }

 private:
  template <typename T>
  T Convert(std::true_type /*integral*/) const {
    const bool real = dtype() == FLOAT32 || dtype() == FLOAT64;
    return real ? static_cast<T>(PD_ScalarGetFloat64Data(scalar_))
                : static_cast<T>(PD_ScalarGetInt64Data(scalar_));
  }
  template <typename T>
  T Convert(std::false_type /*integral*/) const {
    return static_cast<T>(PD_ScalarGetFloat64Data(scalar_));
  }
  PD_Scalar* scalar_;
};

class IntArray {
 public:
  explicit IntArray(PD_IntArray* array) : array_(array) {}
  size_t size() const { return PD_IntArrayGetElementCount(array_); }
  std::vector<int64_t> GetData() const {
    return detail::Numbers<int64_t>(PD_IntArrayGetDataPointer(array_));
  }

 private:
  PD_IntArray* array_;
};

/// An argument, as the body of PD_BUILD_PHI_KERNEL may change it.
class TensorArgDef {
 public:
  explicit TensorArgDef(PD_TensorArgDef* def) : def_(def) {}
  TensorArgDef& SetDataLayout(DataLayout layout) {
    PD_Status status = C_FAILED;
    PD_TensorArgDefSetDataLayout(def_, layout, &status);
    detail::CheckStatus(status);
    return *this;
  }
  TensorArgDef& SetDataType(DataType dtype) {
    PD_Status status = C_FAILED;
    PD_TensorArgDefSetDataType(def_, dtype, &status);
    detail::CheckStatus(status);
    return *this;
  }

 private:
  PD_TensorArgDef* def_;
};

class KernelKey {
 public:
  explicit KernelKey(const PD_KernelKey* key) : key_(key) {}
  DataLayout layout() const {
    PD_Status status = C_FAILED;
    return PD_KernelKeyGetLayout(key_, &status);
  }
  DataType dtype() const {
    PD_Status status = C_FAILED;
    return PD_KernelKeyGetDataType(key_, &status);
  }

 private:
  const PD_KernelKey* key_;
};

using KernelArgsDef = detail::DeclaredArguments<TensorArgDef>;
using Kernel = detail::DeclaredKernel<TensorArgDef>;

/// A list that lends the numbers of a vector.
template <typename T>
PD_List PDListFromVector(std::vector<T>* values) {
  return {values->size(), values->data()};
}
template <typename T>
std::vector<T> PDListToVector(PD_List list) {
  return detail::Numbers<T>(list);
}

}  // namespace capi
}  // namespace phi

#define PD_CHECK_STATUS(status) ::phi::detail::CheckStatus(status)
#define PD_DATALAYOUT(layout) C_DataLayout::layout

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_TYPES_H_
