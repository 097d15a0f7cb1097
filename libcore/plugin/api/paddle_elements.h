// SPDX-License-Identifier: Apache-2.0
// Elements of tensors as numbers, and numbers as elements.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_ELEMENTS_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_ELEMENTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "paddle_dispatch.h"
#include "paddle_host_tensor.h"
#include "paddle_scalar.h"

// Every type of elements.
#define PD_DISPATCH_ALL_TYPES(TYPE, name, ...)                                 \
  PD_DISPATCH_SWITCH(                                                          \
      TYPE, name,                                                              \
      PD_CASE(BOOL, bool, __VA_ARGS__) PD_CASES_FLOATING(__VA_ARGS__)          \
          PD_CASES_HALF(__VA_ARGS__) PD_CASE(BFLOAT16, ::phi::dtype::bfloat16, \
                                             __VA_ARGS__)                      \
              PD_CASES_INTEGRAL(__VA_ARGS__) PD_CASES_COMPLEX(__VA_ARGS__))

namespace paddle {
namespace detail {

/// Writes `value` into every element.
inline void Fill(const Scalar& value, Tensor* tensor) {
  PD_DISPATCH_ALL_TYPES(tensor->dtype(), "full", [&] {
    data_t* elements = tensor->data<data_t>();
    std::fill(elements, elements + tensor->numel(), value.to<data_t>());
  });
}

/// The element of a tensor that has one.
inline Scalar ElementOf(const Tensor& tensor) {
  PD_CHECK(tensor.numel() == 1, "a Scalar is made of a tensor of one element; ",
           "this one has ", tensor.numel());
  return PD_DISPATCH_ALL_TYPES(tensor.dtype(), "Scalar",
                               [&] { return Scalar(*tensor.data<data_t>()); });
}

inline std::vector<int64_t> IntegersOf(const Tensor& tensor) {
  std::vector<int64_t> values;
  if (tensor.dtype() == DataType::INT32)
    values.assign(tensor.data<int32_t>(),
                  tensor.data<int32_t>() + tensor.numel());
  else
    values.assign(tensor.data<int64_t>(),
                  tensor.data<int64_t>() + tensor.numel());
  return values;
}

}  // namespace detail

namespace experimental {

inline Scalar::Scalar(const Tensor& tensor)
    : Scalar(detail::ElementOf(tensor)) {
  from_tensor_ = true;
}
inline IntArray::IntArray(const Tensor& tensor)
    : values_(detail::IntegersOf(tensor)), from_tensor_(true) {}
inline IntArray::IntArray(const std::vector<Tensor>& tensors)
    : from_tensor_(true) {
  for (const Tensor& tensor : tensors)
    values_.push_back(detail::ElementOf(tensor).to<int64_t>());
}

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_ELEMENTS_H_
