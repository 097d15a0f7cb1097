// SPDX-License-Identifier: Apache-2.0
// Basic types of the C API.
#ifndef PD_LIBCORE_INFERENCE_API_PD_COMMON_H_
#define PD_LIBCORE_INFERENCE_API_PD_COMMON_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define PADDLE_CAPI_EXPORT
#else
#define PADDLE_CAPI_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define PD_C_BEGIN extern "C" {
#define PD_C_END }
#else
#define PD_C_BEGIN
#define PD_C_END
#endif

typedef int8_t PD_Bool;
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#define PD_ENUM(type)   \
  typedef int32_t type; \
  enum

PD_ENUM(PD_PrecisionType){PD_PRECISION_FLOAT32 = 0, PD_PRECISION_INT8,
                          PD_PRECISION_HALF};

PD_ENUM(PD_PlaceType){PD_PLACE_UNK = -1, PD_PLACE_CPU, PD_PLACE_GPU,
                      PD_PLACE_XPU, PD_PLACE_CUSTOM};

PD_ENUM(PD_DataType){PD_DATA_UNK = -1, PD_DATA_FLOAT32, PD_DATA_INT32,
                     PD_DATA_INT64,    PD_DATA_UINT8,   PD_DATA_INT8};

#endif  // PD_LIBCORE_INFERENCE_API_PD_COMMON_H_
