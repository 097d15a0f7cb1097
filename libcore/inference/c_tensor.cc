// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "libcore/base/error.h"
#include "libcore/inference/border.h"
#include "libcore/inference/c_border.h"

namespace {

using pd::inference::Do;
using pd::inference::OrElse;

paddle_infer::PlaceType PlaceOf(PD_PlaceType place) {
  switch (place) {
    case PD_PLACE_CPU:
      return paddle_infer::PlaceType::kCPU;
    case PD_PLACE_GPU:
      return paddle_infer::PlaceType::kGPU;
    case PD_PLACE_XPU:
      return paddle_infer::PlaceType::kXPU;
    case PD_PLACE_CUSTOM:
      return paddle_infer::PlaceType::kCUSTOM;
    default:
      return paddle_infer::PlaceType::kUNK;
  }
}

}  // namespace

namespace pd {
namespace inference {

template <typename T>
T* MutableData(const char* call, PD_Tensor* handle, PD_PlaceType place) {
  return OrElse(call, handle, static_cast<T*>(nullptr), [&](PD_Tensor& t) {
    return t.tensor->mutable_data<T>(PlaceOf(place));
  });
}

template <typename T>
T* Data(const char* call, PD_Tensor* handle, PD_PlaceType* place,
        int32_t* size) {
  if (size != nullptr) *size = 0;
  return OrElse(call, handle, static_cast<T*>(nullptr), [&](PD_Tensor& t) {
    T* data = t.tensor->data<T>(nullptr, size);
    if (place != nullptr) *place = PD_PLACE_CPU;
    return data;
  });
}

}  // namespace inference
}  // namespace pd

extern "C" {

void PD_TensorDestroy(PD_Tensor* pd_tensor) { delete pd_tensor; }

void PD_TensorReshape(PD_Tensor* pd_tensor, size_t shape_size, int32_t* shape) {
  Do(__func__, pd_tensor, [&](PD_Tensor& t) {
    if (shape == nullptr && shape_size > 0)
      pd::inference::Check(pd::InvalidArgument("the shape is a null pointer"));
    t.tensor->Reshape(std::vector<int>(shape, shape + shape_size));
  });
}

#define PD_TENSOR_FUNCTIONS(Name, T)                                           \
  T* PD_TensorMutableData##Name(PD_Tensor* pd_tensor, PD_PlaceType place) {    \
    return pd::inference::MutableData<T>(__func__, pd_tensor, place);          \
  }                                                                            \
  T* PD_TensorData##Name(PD_Tensor* pd_tensor, PD_PlaceType* place,            \
                         int32_t* size) {                                      \
    return pd::inference::Data<T>(__func__, pd_tensor, place, size);           \
  }                                                                            \
  void PD_TensorCopyFromCpu##Name(PD_Tensor* pd_tensor, const T* data) {       \
    Do(__func__, pd_tensor,                                                    \
       [&](PD_Tensor& t) { t.tensor->CopyFromCpu(data); });                    \
  }                                                                            \
  void PD_TensorCopyToCpu##Name(PD_Tensor* pd_tensor, T* data) {               \
    Do(__func__, pd_tensor, [&](PD_Tensor& t) { t.tensor->CopyToCpu(data); }); \
  }
PD_TENSOR_FUNCTIONS(Float, float)
PD_TENSOR_FUNCTIONS(Int64, int64_t)
PD_TENSOR_FUNCTIONS(Int32, int32_t)
PD_TENSOR_FUNCTIONS(Uint8, uint8_t)
PD_TENSOR_FUNCTIONS(Int8, int8_t)
#undef PD_TENSOR_FUNCTIONS

PD_OneDimArrayInt32* PD_TensorGetShape(PD_Tensor* pd_tensor) {
  return OrElse(__func__, pd_tensor, static_cast<PD_OneDimArrayInt32*>(nullptr),
                [&](PD_Tensor& t) {
                  return pd::inference::NewArrayOf<PD_OneDimArrayInt32>(
                      t.tensor->shape());
                });
}

void PD_TensorSetLod(PD_Tensor* pd_tensor, PD_TwoDimArraySize* lod) {
  Do(__func__, pd_tensor, [&](PD_Tensor& t) {
    std::vector<std::vector<size_t>> levels;
    for (size_t i = 0; lod != nullptr && i < lod->size; ++i) {
      const PD_OneDimArraySize* level = lod->data[i];
      if (level == nullptr || (level->data == nullptr && level->size > 0))
        pd::inference::Check(
            pd::InvalidArgument("level %d of the LoD is a null pointer", i));
      levels.emplace_back(level->data, level->data + level->size);
    }
    t.tensor->SetLoD(levels);
  });
}

PD_TwoDimArraySize* PD_TensorGetLod(PD_Tensor* pd_tensor) {
  return OrElse(__func__, pd_tensor, static_cast<PD_TwoDimArraySize*>(nullptr),
                [&](PD_Tensor& t) {
                  const std::vector<std::vector<size_t>> lod = t.tensor->lod();
                  auto array = std::make_unique<PD_TwoDimArraySize>();
                  array->size = lod.size();
                  array->data = lod.empty()
                                    ? nullptr
                                    : new PD_OneDimArraySize*[lod.size()];
                  for (size_t i = 0; i < lod.size(); ++i)
                    array->data[i] =
                        pd::inference::NewArrayOf<PD_OneDimArraySize>(lod[i]);
                  return array.release();
                });
}

const char* PD_TensorGetName(PD_Tensor* pd_tensor) {
  return OrElse(__func__, pd_tensor, static_cast<const char*>(nullptr),
                [](PD_Tensor& t) { return t.tensor->name().c_str(); });
}

PD_DataType PD_TensorGetDataType(PD_Tensor* pd_tensor) {
  return OrElse(
      __func__, pd_tensor, static_cast<PD_DataType>(PD_DATA_UNK),
      [](PD_Tensor& t) { return pd::inference::CTypeOf(t.tensor->type()); });
}

}  // extern "C"
