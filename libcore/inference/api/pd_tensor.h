// SPDX-License-Identifier: Apache-2.0
// Handles of inputs and outputs. An error goes to the log; the function then
// does nothing and gives null or 0. A handle may outlive its predictor.
#ifndef PD_LIBCORE_INFERENCE_API_PD_TENSOR_H_
#define PD_LIBCORE_INFERENCE_API_PD_TENSOR_H_

#include "pd_types.h"

typedef struct PD_Tensor PD_Tensor;

PD_C_BEGIN

PADDLE_CAPI_EXPORT extern void PD_TensorDestroy(PD_Tensor* pd_tensor);
PADDLE_CAPI_EXPORT extern void PD_TensorReshape(PD_Tensor* pd_tensor,
                                                size_t shape_size,
                                                int32_t* shape);

// The memory of an input's value, after PD_TensorReshape.
PADDLE_CAPI_EXPORT extern float* PD_TensorMutableDataFloat(PD_Tensor* pd_tensor,
                                                           PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int64_t* PD_TensorMutableDataInt64(
    PD_Tensor* pd_tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int32_t* PD_TensorMutableDataInt32(
    PD_Tensor* pd_tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern uint8_t* PD_TensorMutableDataUint8(
    PD_Tensor* pd_tensor, PD_PlaceType place);
PADDLE_CAPI_EXPORT extern int8_t* PD_TensorMutableDataInt8(PD_Tensor* pd_tensor,
                                                           PD_PlaceType place);

// The value, its place and its number of elements.
PADDLE_CAPI_EXPORT extern float* PD_TensorDataFloat(PD_Tensor* pd_tensor,
                                                    PD_PlaceType* place,
                                                    int32_t* size);
PADDLE_CAPI_EXPORT extern int64_t* PD_TensorDataInt64(PD_Tensor* pd_tensor,
                                                      PD_PlaceType* place,
                                                      int32_t* size);
PADDLE_CAPI_EXPORT extern int32_t* PD_TensorDataInt32(PD_Tensor* pd_tensor,
                                                      PD_PlaceType* place,
                                                      int32_t* size);
PADDLE_CAPI_EXPORT extern uint8_t* PD_TensorDataUint8(PD_Tensor* pd_tensor,
                                                      PD_PlaceType* place,
                                                      int32_t* size);
PADDLE_CAPI_EXPORT extern int8_t* PD_TensorDataInt8(PD_Tensor* pd_tensor,
                                                    PD_PlaceType* place,
                                                    int32_t* size);

PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuFloat(PD_Tensor* pd_tensor,
                                                         const float* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt64(PD_Tensor* pd_tensor,
                                                         const int64_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt32(PD_Tensor* pd_tensor,
                                                         const int32_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuUint8(PD_Tensor* pd_tensor,
                                                         const uint8_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyFromCpuInt8(PD_Tensor* pd_tensor,
                                                        const int8_t* data);

PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuFloat(PD_Tensor* pd_tensor,
                                                       float* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt64(PD_Tensor* pd_tensor,
                                                       int64_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt32(PD_Tensor* pd_tensor,
                                                       int32_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuUint8(PD_Tensor* pd_tensor,
                                                       uint8_t* data);
PADDLE_CAPI_EXPORT extern void PD_TensorCopyToCpuInt8(PD_Tensor* pd_tensor,
                                                      int8_t* data);

// The caller's own.
PADDLE_CAPI_EXPORT extern PD_OneDimArrayInt32* PD_TensorGetShape(
    PD_Tensor* pd_tensor);
PADDLE_CAPI_EXPORT extern void PD_TensorSetLod(PD_Tensor* pd_tensor,
                                               PD_TwoDimArraySize* lod);
// The caller's own.
PADDLE_CAPI_EXPORT extern PD_TwoDimArraySize* PD_TensorGetLod(
    PD_Tensor* pd_tensor);
// Lives as long as the handle.
PADDLE_CAPI_EXPORT extern const char* PD_TensorGetName(PD_Tensor* pd_tensor);
PADDLE_CAPI_EXPORT extern PD_DataType PD_TensorGetDataType(
    PD_Tensor* pd_tensor);

PD_C_END

#endif  // PD_LIBCORE_INFERENCE_API_PD_TENSOR_H_
