// SPDX-License-Identifier: Apache-2.0
// Predictors. An error goes to the log; the function then gives null, 0 or
// FALSE. One thread at a time uses a predictor.
#ifndef PD_LIBCORE_INFERENCE_API_PD_PREDICTOR_H_
#define PD_LIBCORE_INFERENCE_API_PD_PREDICTOR_H_

#include "pd_config.h"
#include "pd_tensor.h"
#include "pd_types.h"

typedef struct PD_Predictor PD_Predictor;

PD_C_BEGIN

// The config is spent. It needs no PD_ConfigDestroy, which is allowed.
PADDLE_CAPI_EXPORT extern PD_Predictor* PD_PredictorCreate(
    PD_Config* pd_config);
// Shares the parameters.
PADDLE_CAPI_EXPORT extern PD_Predictor* PD_PredictorClone(
    PD_Predictor* pd_predictor);
// The caller's own, as are the following ones.
PADDLE_CAPI_EXPORT extern PD_OneDimArrayCstr* PD_PredictorGetInputNames(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern PD_OneDimArrayCstr* PD_PredictorGetOutputNames(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern PD_IOInfos* PD_PredictorGetInputInfos(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern PD_IOInfos* PD_PredictorGetOutputInfos(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern size_t PD_PredictorGetInputNum(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern size_t PD_PredictorGetOutputNum(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern PD_Tensor* PD_PredictorGetInputHandle(
    PD_Predictor* pd_predictor, const char* name);
PADDLE_CAPI_EXPORT extern PD_Tensor* PD_PredictorGetOutputHandle(
    PD_Predictor* pd_predictor, const char* name);
PADDLE_CAPI_EXPORT extern PD_Bool PD_PredictorRun(PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern void PD_PredictorClearIntermediateTensor(
    PD_Predictor* pd_predictor);
// Bytes that were freed.
PADDLE_CAPI_EXPORT extern uint64_t PD_PredictorTryShrinkMemory(
    PD_Predictor* pd_predictor);
PADDLE_CAPI_EXPORT extern void PD_PredictorDestroy(PD_Predictor* pd_predictor);
// Static: "version: ...", "commit: ...", "branch: ...", a line each.
PADDLE_CAPI_EXPORT extern const char* PD_GetVersion();

PD_C_END

#endif  // PD_LIBCORE_INFERENCE_API_PD_PREDICTOR_H_
