// SPDX-License-Identifier: Apache-2.0
// FLAGS_check_nan_inf on a GPU: the outputs of a step in one kernel.
#include <algorithm>
#include <cstddef>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {
namespace {

absl::StatusOr<NonFiniteArgs::Kind> KindOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return NonFiniteArgs::kFloat;
    case DType::kFloat64:
      return NonFiniteArgs::kDouble;
    case DType::kFloat16:
      return NonFiniteArgs::kHalf;
    case DType::kBFloat16:
      return NonFiniteArgs::kBrainFloat;
    default:
      return Unimplemented("no look at dtype %s", Name(dtype));
  }
}

}  // namespace

absl::Status FindNonFinite(Device* gpu, const NonFiniteRequest& request) {
  auto* const device = static_cast<CudaDevice*>(gpu);
  static_assert(NonFiniteRequest::kMost == NonFiniteArgs::kMost);
  static_assert(offsetof(NonFinite, nan) == 4 &&
                offsetof(NonFinite, inf) == 8 &&
                offsetof(NonFinite, plus) == 12);
  NonFiniteArgs args{};
  int64_t most = 0;
  for (; args.count < request.count; ++args.count) {
    const NonFiniteRequest::Value& value = request.values[args.count];
    PD_ASSIGN_OR_RETURN(const NonFiniteArgs::Kind kind, KindOf(value.dtype));
    args.values[args.count] = {value.numbers, value.n, &value.found->largest,
                               kind, 0};
    most = std::max(most, value.n);
  }
  PD_ASSIGN_OR_RETURN(const CudaFunction kernel,
                      device->Kernel("find_non_finite"));
  const int64_t busy = int64_t{device->info().multiprocessors} * 8;
  return device->Launch(kernel,
                        std::min((most + kThreads - 1) / kThreads, busy),
                        kThreads, &args);
}

}  // namespace pd::cuda
