// SPDX-License-Identifier: Apache-2.0
// <paddle/phi/capi/all.h>: kernels in the C form.
//   PD_BUILD_PHI_KERNEL(softmax, my_device, ALL_LAYOUT, Softmax, float) {}
// Softmax is a template of one type,
//   template <typename T>
//   void Softmax(const phi::Context&, const phi::DenseTensor& x, int axis,
//                phi::DenseTensor* out);
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_KERNEL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_KERNEL_H_

// Programs rely on these, which PaddlePaddle's header brings along.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "paddle_capi_meta.h"
#include "paddle_capi_types.h"

namespace phi {

using Context = capi::DeviceContext;
using DataLayout = capi::DataLayout;
using DataType = capi::DataType;
using DenseTensor = capi::DenseTensor;
using IntArray = capi::IntArray;
using LoD = capi::LoD;
using Place = capi::Place;
using Scalar = capi::Scalar;

namespace detail {

template <>
struct KernelParameter<capi::DeviceContext> {
  static constexpr Role kRole = Role::kContext;
  static constexpr PD_KernelArgumentType kType = PD_ARG_TYPE_CONTEXT;
  KernelParameter(const Source& at)  // NOLINT
      : context(PD_KernelContextGetDeviceContext(at.context)) {}
  const capi::DeviceContext& Get() { return context; }
  capi::DeviceContext context;
};
PD_KERNEL_ATTRIBUTE(capi::Scalar, SCALAR, PD_AT(Scalar));
PD_KERNEL_ATTRIBUTE(capi::IntArray, INT_ARRAY, PD_AT(IntArray));
PD_KERNEL_ATTRIBUTE(capi::DataType, DATA_TYPE, PD_AT(DataType));
PD_KERNEL_ATTRIBUTE(capi::DataLayout, DATA_LAYOUT, PD_AT(DataLayout));
PD_KERNEL_ATTRIBUTE(capi::Place, PLACE, PD_AT(Place));
PD_KERNEL_ATTRIBUTE(std::vector<capi::Scalar>, LIST_SCALAR,
                    (Wrapped<capi::Scalar, PD_Scalar>(PD_AT(ListScalar))));
PD_KERNEL_TENSORS(capi::DenseTensor);

}  // namespace detail
}  // namespace phi

#define PD_BUILD_PHI_KERNEL(name, backend, layout, fn, ...)                   \
  static void pd_kernel_##name##_##backend##_##layout(                        \
      const ::phi::capi::KernelKey& kernel_key, ::phi::capi::Kernel* kernel); \
  static const ::phi::detail::KernelRegistrar                                 \
      pd_registrar_##name##_##backend##_##layout __attribute__((unused)) (    \
          #name, #backend, ::C_DataLayout::layout,                            \
          [](const PD_KernelKey* key, PD_Kernel* kernel) {                    \
            ::phi::capi::Kernel wrapped(kernel);                              \
            pd_kernel_##name##_##backend##_##layout(                          \
                ::phi::capi::KernelKey(key), &wrapped);                       \
          },                                                                  \
          {PD_KERNEL_TYPES(PD_CAPI_ENTRY, fn, __VA_ARGS__)});                 \
  static void pd_kernel_##name##_##backend##_##layout(                        \
      const ::phi::capi::KernelKey& kernel_key __attribute__((unused)),       \
      ::phi::capi::Kernel* kernel __attribute__((unused)))
#define PD_CAPI_ENTRY(fn, T)                                    \
  ::phi::detail::KernelCall<decltype(&fn<T>), &fn<T>>::EntryOf( \
      ::phi::capi::CppTypeToPDType<T>::Type())

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_KERNEL_H_
