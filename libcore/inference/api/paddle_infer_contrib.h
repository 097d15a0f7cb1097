// SPDX-License-Identifier: Apache-2.0
// Helpers beside the prediction API: copies between tensors, and calls whose
// exceptions become a Status.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_INFER_CONTRIB_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_INFER_CONTRIB_H_

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "paddle_inference_api.h"

namespace paddle_infer {
namespace contrib {

class PD_INFER_DECL TensorUtils {
 public:
  /// Memory for copies from and to GPUs; that of the host where there is none.
  static void* CudaMallocPinnedMemory(size_t size);
  static void CudaFreePinnedMemory(void* mem);
  /// Shape, type, LoD and elements of `src` become those of `p_dst`.
  static void CopyTensor(Tensor* p_dst, const Tensor& src);
  static void CopyTensorAsync(Tensor* p_dst, const Tensor& src,
                              void* exec_stream);
  static void CopyTensorAsync(Tensor* p_dst, const Tensor& src, CallbackFunc cb,
                              void* cb_params);
};

/// The end of a call: OK, or the code and message of what it threw.
class PD_INFER_DECL Status {
 public:
  using Code = int;

  Status();
  explicit Status(const std::exception& error);
  static Status OK() { return Status(); }
  bool ok() const noexcept { return code_ == 0; }
  /// 0 is OK; else PaddlePaddle's number of the error's kind.
  Code code() const noexcept { return code_; }
  const std::string& error_message() const { return message_; }
  bool operator==(const Status& other) const noexcept {
    return code_ == other.code_;
  }
  bool operator!=(const Status& other) const noexcept {
    return !(*this == other);
  }

 private:
  Code code_ = 0;
  std::string message_;
};

/// A function that calls `func` and gives a Status instead of an exception.
template <typename Func>
struct StatusWrapper {
  explicit StatusWrapper(Func func) : func_(std::move(func)) {}
  template <typename... Args>
  Status operator()(Args&&... args) noexcept {
    try {
      func_(std::forward<Args>(args)...);
      return Status::OK();
    } catch (const std::exception& error) {
      return Status(error);
    }
  }

 private:
  Func func_;
};

template <typename Func>
StatusWrapper<Func> get_status(Func func) {
  return StatusWrapper<Func>(std::move(func));
}

}  // namespace contrib
}  // namespace paddle_infer

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_INFER_CONTRIB_H_
