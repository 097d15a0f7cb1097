// SPDX-License-Identifier: Apache-2.0
// The C functions that give a running kernel its arguments.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/kernel_objects.h"

namespace pd {
namespace {

[[noreturn]] void Refuse(const char* what, size_t index) {
  throw ErrorOf(InvalidArgument(
      "the kernel reads %s %d, which it did not declare so", what, index));
}

template <typename T>
T& AttrAt(PD_KernelContext* context, size_t index) {
  if (context->attrs == nullptr || index >= context->attrs->size() ||
      !std::holds_alternative<T>((*context->attrs)[index]))
    Refuse("attribute", index);
  return std::get<T>((*context->attrs)[index]);
}

const std::vector<PD_Tensor*>& TensorsAt(
    const std::vector<std::vector<PD_Tensor*>>& all, const char* what,
    size_t index) {
  if (index >= all.size()) Refuse(what, index);
  return all[index];
}

PD_Tensor* OneOf(const std::vector<PD_Tensor*>& tensors) {
  return tensors.empty() ? nullptr : tensors[0];
}

template <typename T>
PD_List PointersTo(std::vector<T>& things) {
  void** data = new void*[things.size()];
  for (size_t i = 0; i < things.size(); ++i) data[i] = &things[i];
  return {things.size(), data};
}

PD_List Copied(const std::vector<PD_Tensor*>& tensors) {
  void** data = new void*[tensors.size()];
  std::copy(tensors.begin(), tensors.end(), data);
  return {tensors.size(), data};
}

template <typename T>
PD_List Lent(std::vector<T>& values) {
  return {values.size(), values.data()};
}

// A number that an integer type does not hold becomes its nearest one, NaN 0.
template <typename T>
T NumberOf(const PD_Scalar* scalar) {
  if (scalar->dtype != FLOAT32 && scalar->dtype != FLOAT64)
    return static_cast<T>(scalar->integer);
  if constexpr (std::is_same_v<T, bool>) {
    return scalar->real != 0;
  } else if constexpr (std::is_integral_v<T>) {
    using Limits = std::numeric_limits<T>;
    if (!(scalar->real > static_cast<double>(Limits::min())))
      return scalar->real != scalar->real ? T(0) : Limits::min();
    if (scalar->real >= static_cast<double>(Limits::max()))
      return Limits::max();
  }
  return static_cast<T>(scalar->real);
}

}  // namespace
}  // namespace pd

using pd::AttrAt;
using pd::NumberOf;

extern "C" {

PD_DeviceContext* PD_KernelContextGetDeviceContext(PD_KernelContext* context) {
  return context->device;
}
PD_Tensor* PD_KernelContextInputAt(PD_KernelContext* context, size_t index) {
  return pd::OneOf(pd::TensorsAt(context->inputs, "input", index));
}
PD_List PD_KernelContextMultiInputAt(PD_KernelContext* context, size_t index) {
  return pd::Copied(pd::TensorsAt(context->inputs, "input", index));
}
PD_Tensor* PD_KernelContextOutputAt(PD_KernelContext* context, size_t index) {
  return pd::OneOf(pd::TensorsAt(context->outputs, "output", index));
}
PD_List PD_KernelContextMultiOutputAt(PD_KernelContext* context, size_t index) {
  return pd::Copied(pd::TensorsAt(context->outputs, "output", index));
}

#define PD_VALUE_AT(name, T)                                                  \
  T PD_KernelContext##name##AttrAt(PD_KernelContext* context, size_t index) { \
    return AttrAt<T>(context, index);                                         \
  }
PD_VALUE_AT(Bool, bool)
PD_VALUE_AT(Int32, int32_t)
PD_VALUE_AT(Int64, int64_t)
PD_VALUE_AT(Float, float)
PD_VALUE_AT(Double, double)
PD_VALUE_AT(DataType, C_DataType)
PD_VALUE_AT(DataLayout, PD_DataLayout)
#undef PD_VALUE_AT

PD_Scalar* PD_KernelContextScalarAttrAt(PD_KernelContext* context,
                                        size_t index) {
  return AttrAt<std::unique_ptr<PD_Scalar>>(context, index).get();
}
PD_IntArray* PD_KernelContextIntArrayAttrAt(PD_KernelContext* context,
                                            size_t index) {
  return AttrAt<std::unique_ptr<PD_IntArray>>(context, index).get();
}
PD_Place* PD_KernelContextPlaceAttrAt(PD_KernelContext* context, size_t index) {
  return AttrAt<std::unique_ptr<PD_Place>>(context, index).get();
}
char* PD_KernelContextStringAttrAt(PD_KernelContext* context, size_t index) {
  return AttrAt<std::string>(context, index).data();
}
PD_List PD_KernelContextListBoolAttrAt(PD_KernelContext* context,
                                       size_t index) {
  const auto& values = AttrAt<std::vector<uint8_t>>(context, index);
  uint8_t* data = new uint8_t[values.size()];
  std::copy(values.begin(), values.end(), data);
  return {values.size(), data};
}
PD_List PD_KernelContextListInt32AttrAt(PD_KernelContext* context,
                                        size_t index) {
  return pd::Lent(AttrAt<std::vector<int32_t>>(context, index));
}
PD_List PD_KernelContextListInt64AttrAt(PD_KernelContext* context,
                                        size_t index) {
  return pd::Lent(AttrAt<std::vector<int64_t>>(context, index));
}
PD_List PD_KernelContextListFloatAttrAt(PD_KernelContext* context,
                                        size_t index) {
  return pd::Lent(AttrAt<std::vector<float>>(context, index));
}
PD_List PD_KernelContextListDoubleAttrAt(PD_KernelContext* context,
                                         size_t index) {
  return pd::Lent(AttrAt<std::vector<double>>(context, index));
}
PD_List PD_KernelContextListStringAttrAt(PD_KernelContext* context,
                                         size_t index) {
  auto& texts = AttrAt<std::vector<std::string>>(context, index);
  void** data = new void*[texts.size()];
  for (size_t i = 0; i < texts.size(); ++i) data[i] = texts[i].data();
  return {texts.size(), data};
}
PD_List PD_KernelContextListScalarAttrAt(PD_KernelContext* context,
                                         size_t index) {
  return pd::PointersTo(AttrAt<std::vector<PD_Scalar>>(context, index));
}

#define PD_SCALAR_AS(name, T) \
  T PD_ScalarGet##name##Data(PD_Scalar* scalar) { return NumberOf<T>(scalar); }
PD_SCALAR_AS(Bool, bool)
PD_SCALAR_AS(Int8, int8_t)
PD_SCALAR_AS(Int16, int16_t)
PD_SCALAR_AS(Int32, int32_t)
PD_SCALAR_AS(Int64, int64_t)
PD_SCALAR_AS(UInt8, uint8_t)
PD_SCALAR_AS(UInt16, uint16_t)
PD_SCALAR_AS(UInt32, uint32_t)
PD_SCALAR_AS(UInt64, uint64_t)
PD_SCALAR_AS(Float32, float)
PD_SCALAR_AS(Float64, double)
#undef PD_SCALAR_AS
C_DataType PD_ScalarGetDataType(PD_Scalar* scalar) { return scalar->dtype; }

PD_List PD_IntArrayGetDataPointer(PD_IntArray* array) {
  return pd::Lent(array->values);
}
size_t PD_IntArrayGetElementCount(PD_IntArray* array) {
  return array->values.size();
}
bool PD_PlaceIsHost(PD_Place* place) { return place->host; }
int8_t PD_PlaceGetDeviceId(PD_Place* place) { return place->id; }

void PD_DeletePointerList(PD_List list) {
  delete[] static_cast<void**>(list.data);
}
void PD_DeleteUInt8List(PD_List list) {
  delete[] static_cast<uint8_t*>(list.data);
}
void PD_DeleteUInt64List(PD_List list) {
  delete[] static_cast<size_t*>(list.data);
}

void PD_DeleteInt64List(PD_List list) {
  delete[] static_cast<int64_t*>(list.data);
}
void PD_DeleteInt32List(PD_List list) {
  delete[] static_cast<int32_t*>(list.data);
}
void PD_DeleteFloat64List(PD_List list) {
  delete[] static_cast<double*>(list.data);
}
void PD_DeleteFloat32List(PD_List list) {
  delete[] static_cast<float*>(list.data);
}

}  // extern "C"
