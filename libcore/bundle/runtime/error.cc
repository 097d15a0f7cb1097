// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/error.h"

#include <cstdarg>
#include <cstdio>

namespace pd_run {

bool Error::Fail(pd_run_status status, const char* format, ...) {
  if (status_ != PD_RUN_OK) return false;
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  status_ = status;
  text_ = text;
  return false;
}

bool Error::Locate(const std::string& place) {
  text_ = place + ": " + text_;
  return false;
}

}  // namespace pd_run
