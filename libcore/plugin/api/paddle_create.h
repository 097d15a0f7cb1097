// SPDX-License-Identifier: Apache-2.0
// Functions that make tensors. The notes of paddle_math.h hold here too.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CREATE_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CREATE_H_

#include "paddle_elements.h"
#include "paddle_op_call.h"

namespace paddle {
namespace experimental {

/// Memory of this shape, whose contents are undefined.
inline Tensor empty(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                    const Place& place = CPUPlace()) {
  Tensor tensor(place);  // refuses a place that is not here
  return Tensor(dtype, shape.GetData());
}
inline Tensor empty_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                         const Place& place = {}) {
  return empty(x.shape(), dtype == DataType::UNDEFINED ? x.dtype() : dtype,
               place);
}
inline Tensor full(const IntArray& shape, const Scalar& value,
                   DataType dtype = DataType::FLOAT32,
                   const Place& place = CPUPlace()) {
  Tensor tensor = empty(shape, dtype, place);
  detail::Fill(value, &tensor);
  return tensor;
}
inline Tensor full_like(const Tensor& x, const Scalar& value,
                        DataType dtype = DataType::UNDEFINED,
                        const Place& place = {}) {
  return full(x.shape(), value,
              dtype == DataType::UNDEFINED ? x.dtype() : dtype, place);
}
/// As full_like: a new tensor, x stays as it is.
inline Tensor fill(const Tensor& x, const Scalar& value) {
  return full_like(x, value);
}
inline Tensor ones(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                   const Place& place = CPUPlace()) {
  return full(shape, 1, dtype, place);
}
inline Tensor zeros(const IntArray& shape, DataType dtype = DataType::FLOAT32,
                    const Place& place = CPUPlace()) {
  return full(shape, 0, dtype, place);
}
inline Tensor ones_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                        const Place& place = {}) {
  return full_like(x, 1, dtype, place);
}
inline Tensor zeros_like(const Tensor& x, DataType dtype = DataType::UNDEFINED,
                         const Place& place = {}) {
  return full_like(x, 0, dtype, place);
}
inline Tensor cast(const Tensor& x, DataType dtype) {
  return detail::Op("cast")
      .In("X", x)
      .Attr("in_dtype", x.dtype())
      .Attr("out_dtype", dtype)
      .Out("Out")
      .One();
}

}  // namespace experimental

/// A tensor over the caller's memory, without a copy.
inline Tensor from_blob(void* data, const IntArray& shape, DataType dtype,
                        DataLayout /*layout*/ = DataLayout::NCHW,
                        const Place& place = Place(),
                        const Deleter& deleter = nullptr) {
  Tensor tensor(place);  // refuses a place that is not here
  return Tensor(data, dtype, shape.GetData(), deleter);
}

}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CREATE_H_
