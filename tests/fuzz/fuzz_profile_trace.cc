// SPDX-License-Identifier: Apache-2.0
#include "formats/chrome_trace.h"
#include "formats/paddle_trace.h"
#include "formats/profile_trace.h"
#include "tests/fuzz/fuzz_target.h"

// A trace that is read can be written, and is read again.
PD_FUZZ_TARGET(profile_trace) {
  const auto chrome = pd::ParseChromeTrace(file.view());
  if (chrome.ok())
    pd::fuzz::Check(pd::ParseChromeTrace(pd::ChromeTraceText(*chrome)).ok());
  const auto paddle = pd::ParsePaddleTrace(file.view());
  if (paddle.ok())
    pd::fuzz::Check(pd::ParsePaddleTrace(pd::PaddleTraceBytes(*paddle)).ok());
}
