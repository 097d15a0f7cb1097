// SPDX-License-Identifier: Apache-2.0
// The exceptions of PaddlePaddle's interfaces.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_ERROR_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_ERROR_H_

#include <exception>
#include <string>
#include <utility>

namespace phi {
namespace enforce {

/// An error with PaddlePaddle's kind and a message that says what is wrong.
class __attribute__((visibility("default"))) EnforceNotMet
    : public std::exception {
 public:
  EnforceNotMet(std::string kind, const std::string& message)
      : kind_(std::move(kind)), text_(kind_ + ": " + message) {}
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

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_ERROR_H_
