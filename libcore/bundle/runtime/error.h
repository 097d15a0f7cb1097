// SPDX-License-Identifier: Apache-2.0
// How this library fails: a function gives false after it has said why. The
// first reason stays.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_ERROR_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_ERROR_H_

#include <string>

#include "libcore/bundle/runtime/pd_run.h"

#if defined(__GNUC__)
#define PD_RUN_PRINTF(text, arguments) \
  __attribute__((format(printf, text, arguments)))
#else
#define PD_RUN_PRINTF(text, arguments)
#endif

namespace pd_run {

class Error {
 public:
  pd_run_status status() const { return status_; }
  const std::string& text() const { return text_; }
  /// False, for `return error->Fail(...)`.
  bool Fail(pd_run_status status, const char* format, ...) PD_RUN_PRINTF(3, 4);
  /// Puts the place in front of the text.
  bool Locate(const std::string& place);

 private:
  pd_run_status status_ = PD_RUN_OK;
  std::string text_;
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_ERROR_H_
