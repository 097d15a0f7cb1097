// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's prediction API in C. Programs link with -lpaddle_inference_c,
// which is libpaddle_inference.
#ifndef PD_LIBCORE_INFERENCE_API_PD_INFERENCE_API_H_
#define PD_LIBCORE_INFERENCE_API_PD_INFERENCE_API_H_

#include "pd_common.h"
#include "pd_config.h"
#include "pd_predictor.h"
#include "pd_tensor.h"
#include "pd_types.h"
#include "pd_utils.h"

#endif  // PD_LIBCORE_INFERENCE_API_PD_INFERENCE_API_H_
