// SPDX-License-Identifier: Apache-2.0
// <paddle/phi/core/kernel_registry.h>: kernels in the C++ form.
//   PD_REGISTER_BUILTIN_KERNEL(dot, CPU, ALL_LAYOUT, Dot, int8_t) {}
// Dot is a template of an element type and a context,
//   template <typename T, typename Context>
//   void Dot(const Context&, const phi::DenseTensor& x,
//            const phi::DenseTensor& y, phi::DenseTensor* out);
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_REGISTRY_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_REGISTRY_H_

#include <string>
#include <vector>

#include "paddle_context_pool.h"
#include "paddle_declared_kernel.h"
#include "paddle_dense_tensor.h"
#include "paddle_enforce.h"
#include "paddle_extension.h"
#include "paddle_kernel_call.h"

namespace phi {

enum class Backend {
  UNDEFINED = 0,
  ALL_BACKEND = 0,
  CPU,
  GPU,
  XPU,
  ONEDNN,
  GPUDNN,
  CUSTOM,
};

/// An argument, as the body of a declaration may change it.
class TensorArgDef {
 public:
  explicit TensorArgDef(PD_TensorArgDef* def) : def_(def) {}
  /// CPU: the host has the bytes, whatever the backend of the kernel.
  TensorArgDef& SetBackend(Backend backend) {
    PD_PluginArgDefSetOnHost(def_, backend == Backend::CPU);
    return *this;
  }
  TensorArgDef& SetDataLayout(DataLayout layout) {
    PD_Status status = C_FAILED;
    PD_TensorArgDefSetDataLayout(def_, detail::ToC(layout), &status);
    detail::CheckStatus(status);
    return *this;
  }
  TensorArgDef& SetDataType(DataType dtype) {
    PD_Status status = C_FAILED;
    PD_TensorArgDefSetDataType(def_, detail::ToC(dtype), &status);
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
    return detail::FromC(PD_KernelKeyGetLayout(key_, &status));
  }
  DataType dtype() const {
    PD_Status status = C_FAILED;
    return detail::FromC(PD_KernelKeyGetDataType(key_, &status));
  }

 private:
  const PD_KernelKey* key_;
};

using Kernel = detail::DeclaredKernel<TensorArgDef>;

namespace detail {

template <typename Context>
struct ContextParameter {
  static constexpr Role kRole = Role::kContext;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_CONTEXT;
  ContextParameter(const Source& at)  // NOLINT
      : context(PD_KernelContextGetDeviceContext(at.context)) {}
  const Context& Get() { return context; }
  Context context;
};
template <>
struct KernelParameter<CPUContext> : ContextParameter<CPUContext> {
  using ContextParameter::ContextParameter;
};
template <>
struct KernelParameter<CustomContext> : ContextParameter<CustomContext> {
  using ContextParameter::ContextParameter;
};
template <>
struct KernelParameter<DeviceContext> : ContextParameter<DeviceContext> {
  using ContextParameter::ContextParameter;
};

inline Scalar ScalarOf(PD_Scalar* scalar) {
  switch (PD_ScalarGetDataType(scalar)) {
    case ::BOOL:
      return Scalar(PD_ScalarGetBoolData(scalar));
    case ::INT32:
      return Scalar(PD_ScalarGetInt32Data(scalar));
    case ::FLOAT32:
      return Scalar(PD_ScalarGetFloat32Data(scalar));
    case ::FLOAT64:
      return Scalar(PD_ScalarGetFloat64Data(scalar));
    default:
      return Scalar(PD_ScalarGetInt64Data(scalar));
  }
}
inline Place PlaceFrom(PD_Place* place, PD_KernelContext* context) {
  return PD_PlaceIsHost(place)
             ? Place(CPUPlace())
             : PlaceOf(PD_KernelContextGetDeviceContext(context));
}
/// A Scalar that is made of the library's.
struct LentScalar : Scalar {
  explicit LentScalar(PD_Scalar* scalar) : Scalar(ScalarOf(scalar)) {}
};
inline std::vector<Scalar> ScalarsOf(const PD_List& list) {
  const auto values = Wrapped<LentScalar, PD_Scalar>(list);
  return std::vector<Scalar>(values.begin(), values.end());
}
PD_KERNEL_ATTRIBUTE(Scalar, SCALAR, ScalarOf(PD_AT(Scalar)));
PD_KERNEL_ATTRIBUTE(
    IntArray, INT_ARRAY,
    Numbers<int64_t>(PD_IntArrayGetDataPointer(PD_AT(IntArray))));
PD_KERNEL_ATTRIBUTE(DataType, DATA_TYPE, FromC(PD_AT(DataType)));
PD_KERNEL_ATTRIBUTE(DataLayout, DATA_LAYOUT, FromC(PD_AT(DataLayout)));
PD_KERNEL_ATTRIBUTE(Place, PLACE, PlaceFrom(PD_AT(Place), at.context));
PD_KERNEL_ATTRIBUTE(std::vector<Scalar>, LIST_SCALAR,
                    ScalarsOf(PD_AT(ListScalar)));
PD_KERNEL_TENSORS(DenseTensor);

}  // namespace detail
}  // namespace phi

#define PD_REGISTER_KERNEL_OF(name, backend, layout, M, fn, ...)           \
  static void pd_kernel_##name##_##backend##_##layout(                     \
      const ::phi::KernelKey& kernel_key, ::phi::Kernel* kernel);          \
  static const ::phi::detail::KernelRegistrar                              \
      pd_registrar_##name##_##backend##_##layout __attribute__((unused)) ( \
          #name, #backend, ::phi::detail::ToC(::phi::DataLayout::layout),  \
          [](const PD_KernelKey* key, PD_Kernel* kernel) {                 \
            ::phi::Kernel wrapped(kernel);                                 \
            pd_kernel_##name##_##backend##_##layout(::phi::KernelKey(key), \
                                                    &wrapped);             \
          },                                                               \
          {PD_KERNEL_TYPES(M, fn, __VA_ARGS__)});                          \
  static void pd_kernel_##name##_##backend##_##layout(                     \
      const ::phi::KernelKey& kernel_key __attribute__((unused)),          \
      ::phi::Kernel* kernel __attribute__((unused)))
#define PD_KERNEL_ENTRY(fn, T, Context)                                   \
  ::phi::detail::KernelCall<decltype(&fn<T, Context>), &fn<T, Context>>:: \
      EntryOf(::phi::detail::ToC(::phi::CppTypeToDataType<T>::Type()))
#define PD_KERNEL_ENTRY_CPU(fn, T) PD_KERNEL_ENTRY(fn, T, ::phi::CPUContext)
#define PD_KERNEL_ENTRY_CUSTOM(fn, T) \
  PD_KERNEL_ENTRY(fn, T, ::phi::CustomContext)

/// A kernel of the host; `backend` is CPU.
#define PD_REGISTER_BUILTIN_KERNEL(name, backend, layout, fn, ...)            \
  PD_REGISTER_KERNEL_OF(name, backend, layout, PD_KERNEL_ENTRY_##backend, fn, \
                        __VA_ARGS__)
#define PD_REGISTER_KERNEL(name, backend, layout, fn, ...) \
  PD_REGISTER_BUILTIN_KERNEL(name, backend, layout, fn, __VA_ARGS__)
#define PT_REGISTER_KERNEL PD_REGISTER_BUILTIN_KERNEL
/// A kernel of a plug-in's device; `backend` is its type.
#define PD_REGISTER_PLUGIN_KERNEL(name, backend, layout, fn, ...)          \
  PD_REGISTER_KERNEL_OF(name, backend, layout, PD_KERNEL_ENTRY_CUSTOM, fn, \
                        __VA_ARGS__)

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_KERNEL_REGISTRY_H_
