// SPDX-License-Identifier: Apache-2.0
// The exception of the prediction API. Nothing else is thrown out of it.
#ifndef PD_LIBCORE_INFERENCE_API_PADDLE_INFER_ERROR_H_
#define PD_LIBCORE_INFERENCE_API_PADDLE_INFER_ERROR_H_

#include <exception>
#include <string>

#include "paddle_infer_declare.h"

namespace phi {
namespace enforce {

/// An error with PaddlePaddle's kind and a message that says what is wrong.
class PD_INFER_DECL EnforceNotMet : public std::exception {
 public:
  EnforceNotMet(std::string kind, const std::string& message);
  ~EnforceNotMet() override;
  /// "InvalidArgumentError: " and the message.
  const char* what() const noexcept override { return text_.c_str(); }
  /// "InvalidArgumentError", "PreconditionNotMetError", ...
  const std::string& kind() const { return kind_; }
  const std::string& error_str() const { return text_; }

 private:
  std::string kind_, text_;
};

}  // namespace enforce
}  // namespace phi

namespace paddle {
namespace platform {
using EnforceNotMet = phi::enforce::EnforceNotMet;
}  // namespace platform
}  // namespace paddle

#endif  // PD_LIBCORE_INFERENCE_API_PADDLE_INFER_ERROR_H_
