// SPDX-License-Identifier: Apache-2.0
// Each frees what the API gave; null is allowed.
#ifndef PD_LIBCORE_INFERENCE_API_PD_UTILS_H_
#define PD_LIBCORE_INFERENCE_API_PD_UTILS_H_

#include "pd_types.h"

PD_C_BEGIN

PADDLE_CAPI_EXPORT extern void PD_OneDimArrayInt32Destroy(
    PD_OneDimArrayInt32* array);
PADDLE_CAPI_EXPORT extern void PD_OneDimArrayInt64Destroy(
    PD_OneDimArrayInt64* array);
PADDLE_CAPI_EXPORT extern void PD_OneDimArrayCstrDestroy(
    PD_OneDimArrayCstr* array);
PADDLE_CAPI_EXPORT extern void PD_OneDimArraySizeDestroy(
    PD_OneDimArraySize* array);
PADDLE_CAPI_EXPORT extern void PD_TwoDimArraySizeDestroy(
    PD_TwoDimArraySize* array);
PADDLE_CAPI_EXPORT extern void PD_CstrDestroy(PD_Cstr* text);
PADDLE_CAPI_EXPORT extern void PD_IOInfoDestroy(PD_IOInfo* info);
PADDLE_CAPI_EXPORT extern void PD_IOInfosDestroy(PD_IOInfos* infos);

PD_C_END

#endif  // PD_LIBCORE_INFERENCE_API_PD_UTILS_H_
