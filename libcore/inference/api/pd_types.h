// SPDX-License-Identifier: Apache-2.0
// Arrays that the C API gives; pd_utils.h frees them.
#ifndef PD_LIBCORE_INFERENCE_API_PD_TYPES_H_
#define PD_LIBCORE_INFERENCE_API_PD_TYPES_H_

#include "pd_common.h"

typedef struct PD_OneDimArrayInt32 {
  size_t size;
  int32_t* data;
} PD_OneDimArrayInt32;

typedef struct PD_OneDimArraySize {
  size_t size;
  size_t* data;
} PD_OneDimArraySize;

typedef struct PD_OneDimArrayInt64 {
  size_t size;
  int64_t* data;
} PD_OneDimArrayInt64;

typedef struct PD_OneDimArrayCstr {
  size_t size;
  char** data;
} PD_OneDimArrayCstr;

// `size` counts the 0 at the end; an empty one has size 0 and null.
typedef struct PD_Cstr {
  size_t size;
  char* data;
} PD_Cstr;

typedef struct PD_TwoDimArraySize {
  size_t size;
  PD_OneDimArraySize** data;
} PD_TwoDimArraySize;

typedef struct PD_IOInfo {
  PD_Cstr* name;
  PD_OneDimArrayInt64* shape;  // -1: any extent
  PD_DataType dtype;
} PD_IOInfo;

typedef struct PD_IOInfos {
  size_t size;
  PD_IOInfo** io_info;
} PD_IOInfos;

#endif  // PD_LIBCORE_INFERENCE_API_PD_TYPES_H_
