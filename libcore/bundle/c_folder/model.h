// SPDX-License-Identifier: Apache-2.0
// The model of this folder, for the functions of pd_run.h.
#ifndef PD_LIBCORE_BUNDLE_C_FOLDER_MODEL_H_
#define PD_LIBCORE_BUNDLE_C_FOLDER_MODEL_H_

#include "libcore/bundle/runtime/pd_run.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opens the model. A small one is part of the program; `path` is where the file
// model.pdb of a large one is, null for the place at which it was built.
pd_run_status pd_model_open(const char* path, const pd_run_options* options,
                            pd_run_model** model);

#ifdef __cplusplus
}
#endif

#endif  // PD_LIBCORE_BUNDLE_C_FOLDER_MODEL_H_
