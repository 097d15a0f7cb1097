// SPDX-License-Identifier: Apache-2.0
// The list of 8-bit kernels, in the order in which they are asked.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/kernels/int8/bindings.h"

namespace pd {

absl::Status AttachInt8Kernels(OpRegistry* registry) {
  struct Entry {
    const char *type, *label;
    BindFn bind;
  };
  const Entry kEntries[] = {
      {"int8_conv2d", "int8:depthwise", int8::BindDepthwise},
      {"int8_conv2d", "int8:gemm", int8::BindConv},
      {"int8_conv2d_transpose", "int8:gemm", int8::BindTranspose},
      {"int8_matmul", "int8:gemm", int8::BindMatmul},
      {"int8_dynamic_matmul", "int8:gemm", int8::BindDynamicMatmul},
      {"int8_dynamic_rnn", "int8:gemm", int8::BindDynamicRnn},
      {"int8_quantize", "int8:vectors", int8::BindMap},
      {"int8_dequantize", "int8:vectors", int8::BindMap},
      {"int8_elementwise", "int8:vectors", int8::BindElementwise},
      {"int8_pool2d", "int8:channels_last", int8::BindPool},
      {"pool2d", "int8:channels_last", int8::BindPoolFloats},
      {"concat", "int8:channels_last", int8::BindConcat},
      {"split", "int8:channels_last", int8::BindSplit},
      {"nearest_interp", "int8:channels_last", int8::BindNearest},
      {"nearest_interp_v2", "int8:channels_last", int8::BindNearest},
  };
  for (const Entry& e : kEntries)
    PD_RETURN_IF_ERROR(registry->AddImplementation(
        e.type, Implementation(e.label, e.bind).TakesLayouts()));
  return absl::OkStatus();
}

}  // namespace pd
