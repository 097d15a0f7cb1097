// SPDX-License-Identifier: Apache-2.0
// The protobuf in which PaddlePaddle's profiler keeps a trace
// (export_protobuf, load_profiler_result). Ours have more fields, which
// PaddlePaddle passes over.
#ifndef PD_FORMATS_PADDLE_TRACE_H_
#define PD_FORMATS_PADDLE_TRACE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/profile_trace.h"

namespace pd {

std::string PaddleTraceBytes(const ProfileTrace& trace);

/// Reads ours and PaddlePaddle's; of the latter the events on CPUs. Times begin
/// with the first event.
absl::StatusOr<ProfileTrace> ParsePaddleTrace(absl::string_view bytes);

}  // namespace pd

#endif  // PD_FORMATS_PADDLE_TRACE_H_
