// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <map>

#include "libcore/base/error.h"
#include "libcore/inference/api/paddle_infer_contrib.h"
#include "libcore/inference/border.h"
#include "libcore/inference/settings.h"

namespace paddle_infer {
namespace contrib {

using pd::inference::Border;
using pd::inference::Check;

void* TensorUtils::CudaMallocPinnedMemory(size_t size) {
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr)
    Check(pd::ResourceExhausted("no memory is left for %d bytes", size));
  return memory;
}

void TensorUtils::CudaFreePinnedMemory(void* mem) { std::free(mem); }

void TensorUtils::CopyTensor(Tensor* p_dst, const Tensor& src) {
  Border([&]() -> absl::Status {
    if (p_dst == nullptr)
      return pd::InvalidArgument("CopyTensor: the destination is null");
    return p_dst->variable_->CopyFrom(*src.variable_);
  });
}

void TensorUtils::CopyTensorAsync(Tensor* p_dst, const Tensor& src,
                                  void* /*exec_stream*/) {
  CopyTensor(p_dst, src);
}

void TensorUtils::CopyTensorAsync(Tensor* p_dst, const Tensor& src,
                                  CallbackFunc cb, void* cb_params) {
  CopyTensor(p_dst, src);
  if (cb != nullptr) cb(cb_params);
}

namespace {

// PaddlePaddle's numbers of the kinds (phi::ErrorCode).
int CodeOf(const std::string& kind) {
  static const auto* const codes =
      new std::map<std::string, int>{{"InvalidArgumentError", 1},
                                     {"NotFoundError", 2},
                                     {"OutOfRangeError", 3},
                                     {"AlreadyExistsError", 4},
                                     {"ResourceExhaustedError", 5},
                                     {"PreconditionNotMetError", 6},
                                     {"PermissionDeniedError", 7},
                                     {"ExecutionTimeoutError", 8},
                                     {"UnimplementedError", 9},
                                     {"UnavailableError", 10},
                                     {"FatalError", 11},
                                     {"ExternalError", 12}};
  const auto found = codes->find(kind);
  return found == codes->end() ? 12 : found->second;
}

}  // namespace

Status::Status() = default;
Status::Status(const std::exception& error)
    : code_(12), message_(error.what()) {
  const auto* ours = dynamic_cast<const phi::enforce::EnforceNotMet*>(&error);
  if (ours != nullptr) code_ = CodeOf(ours->kind());
}

}  // namespace contrib
}  // namespace paddle_infer
