// SPDX-License-Identifier: Apache-2.0
// The mark of every symbol that libpaddle_inference.so exports.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_INFER_DECLARE_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_INFER_DECLARE_H_

#define PD_INFER_DECL __attribute__((visibility("default")))

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_INFER_DECLARE_H_
