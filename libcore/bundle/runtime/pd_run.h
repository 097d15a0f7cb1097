// SPDX-License-Identifier: Apache-2.0
// Runs a bundle, the file that `pd-export --to bundle` writes: ten functions
// in C, without any other library.
//
//   pd_run_model* model = NULL;
//   pd_run_tensor x, y;
//   int64_t shape[] = {1, 1, 28, 28};
//   if (pd_run_open("lenet.pdb", NULL, &model) != PD_RUN_OK ||
//       pd_run_set_shape(model, 0, 4, shape) != PD_RUN_OK ||
//       pd_run_get(model, PD_RUN_INPUT, 0, &x) != PD_RUN_OK)
//     die(pd_run_error());
//   memcpy(x.data, pixels, x.bytes);
//   if (pd_run_run(model) != PD_RUN_OK ||
//       pd_run_get(model, PD_RUN_OUTPUT, 0, &y) != PD_RUN_OK)
//     die(pd_run_error());
//   use((const float*)y.data, y.bytes / sizeof(float));
//   pd_run_close(model);
//
// Every function says by its result whether it worked; pd_run_error gives the
// reason in words. One that fails leaves the model as it was, but for what a
// run has written to the outputs.
//
// Threads: a model is used by one thread at a time. Several threads have each a
// clone, which shares the weights. pd_run_error is each thread's own.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_PD_RUN_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_PD_RUN_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PD_RUN_API __attribute__((visibility("default")))
#else
#define PD_RUN_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pd_run_model pd_run_model;

typedef enum pd_run_status {
  PD_RUN_OK = 0,
  PD_RUN_INVALID_ARGUMENT = 1,  // a null pointer, no such input, a wrong shape
  PD_RUN_NO_FILE = 2,           // the file cannot be opened
  PD_RUN_BAD_FILE = 3,          // it is no bundle, or a damaged one
  PD_RUN_UNSUPPORTED = 4,       // a kernel or a version that is not built in
  PD_RUN_NO_MEMORY = 5,
  PD_RUN_BAD_DATA = 6  // the model refuses what its inputs hold
} pd_run_status;

typedef enum pd_run_dtype {
  PD_RUN_FLOAT32 = 0,
  PD_RUN_INT64 = 1,
  PD_RUN_INT32 = 2,
  PD_RUN_UINT8 = 3,
  PD_RUN_BOOL = 4  // a byte, 0 or 1
} pd_run_dtype;

typedef enum pd_run_side { PD_RUN_INPUT = 0, PD_RUN_OUTPUT = 1 } pd_run_side;

enum { PD_RUN_MAX_RANK = 8 };

// An input or an output. Elements lie in row-major order.
typedef struct pd_run_tensor {
  const char* name;
  pd_run_dtype dtype;
  int32_t rank;
  int64_t dims[PD_RUN_MAX_RANK];  // -1: pd_run_set_shape has yet to say it
  void* data;                     // null while an extent of an input is -1
  size_t bytes;
} pd_run_tensor;

typedef struct pd_run_options {
  int32_t threads;      // 0: one
  size_t memory_limit;  // bytes besides the weights; 0: no limit
} pd_run_options;

// The version of the library, "0.1.0".
PD_RUN_API const char* pd_run_version(void);

// Why the last function that failed in this thread did so; "" before.
PD_RUN_API const char* pd_run_error(void);

// Opens a bundle; `options` may be null. The weights are mapped, not read: a
// page of the file is loaded when a kernel first needs it. The file must not
// change while a model is open.
PD_RUN_API pd_run_status pd_run_open(const char* path,
                                     const pd_run_options* options,
                                     pd_run_model** model);

// The same for a bundle in memory, which stays where it is until the model and
// its clones are closed, at an address that is a multiple of 64.
PD_RUN_API pd_run_status pd_run_open_memory(const void* bytes, size_t size,
                                            const pd_run_options* options,
                                            pd_run_model** model);

// A second model over the same weights, with memory of its own.
PD_RUN_API pd_run_status pd_run_clone(const pd_run_model* model,
                                      pd_run_model** clone);

// The number of inputs or outputs; 0 for a null model.
PD_RUN_API size_t pd_run_count(const pd_run_model* model, pd_run_side side);

// Describes an input or an output. The caller writes inputs and reads outputs
// at `data`. An input keeps its memory and elements until its own shape is set
// anew; outputs lie elsewhere after any pd_run_set_shape. Shapes of outputs
// follow from the inputs', whose extents have to be known all.
PD_RUN_API pd_run_status pd_run_get(pd_run_model* model, pd_run_side side,
                                    size_t index, pd_run_tensor* tensor);

// Sets the shape of an input, for example another batch. Extents that the
// bundle fixes must be given as they are.
PD_RUN_API pd_run_status pd_run_set_shape(pd_run_model* model, size_t input,
                                          int32_t rank, const int64_t* dims);

// Computes all outputs.
PD_RUN_API pd_run_status pd_run_run(pd_run_model* model);

// Frees a model; null is no error.
PD_RUN_API void pd_run_close(pd_run_model* model);

#ifdef __cplusplus
}
#endif

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_PD_RUN_H_
