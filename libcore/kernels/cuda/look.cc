// SPDX-License-Identifier: Apache-2.0
// FLAGS_check_nan_inf on a GPU: the outputs of a step in one kernel.
#include <algorithm>
#include <cstddef>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {
namespace {

absl::StatusOr<LookArgs::Kind> KindOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return LookArgs::kFloat;
    case DType::kFloat64:
      return LookArgs::kDouble;
    case DType::kFloat16:
      return LookArgs::kHalf;
    case DType::kBFloat16:
      return LookArgs::kBrainFloat;
    default:
      return Unimplemented("no look at dtype %s", Name(dtype));
  }
}

}  // namespace

absl::Status Look(CudaDevice* device, const LookRequest& request) {
  static_assert(LookRequest::kMost == LookArgs::kMost);
  static_assert(offsetof(BadNumbers, nan) == 4 &&
                offsetof(BadNumbers, inf) == 8 &&
                offsetof(BadNumbers, plus) == 12);
  LookArgs args{};
  int64_t most = 0;
  for (; args.count < request.count; ++args.count) {
    const LookRequest::Value& value = request.values[args.count];
    PD_ASSIGN_OR_RETURN(const LookArgs::Kind kind, KindOf(value.dtype));
    args.values[args.count] = {value.numbers, value.n, &value.found->largest,
                               kind, 0};
    most = std::max(most, value.n);
  }
  PD_ASSIGN_OR_RETURN(const CudaFunction kernel,
                      device->Kernel("look_at_values"));
  const int64_t busy = int64_t{device->info().multiprocessors} * 8;
  return device->Launch(kernel,
                        std::min((most + kThreads - 1) / kThreads, busy),
                        kThreads, &args);
}

}  // namespace pd::cuda
