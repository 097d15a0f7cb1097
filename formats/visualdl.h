// SPDX-License-Identifier: Apache-2.0
// VisualDL's log files, `vdlrecords.TIME.log`: each record is its length as
// uint64, little endian, and a protobuf message. VisualDL shows one file a
// folder, the one with the largest name.
#ifndef PD_FORMATS_VISUALDL_H_
#define PD_FORMATS_VISUALDL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/log_record.h"

namespace pd {

/// The record as the file holds it; "" for what VisualDL has no record of (a
/// graph, which it reads from a model's file, and an end).
std::string EncodeVisualDl(const LogRecord& record);

/// VisualDL looks for hyper-parameters here, whatever the record says.
inline constexpr char kHyperTag[] = "hparam";
inline constexpr int64_t kHyperStep = 1;

/// The first record of a file.
std::string VisualDlHead(double seconds);

/// The records of a file. An end in the middle of a record is where they end.
/// DataLoss names the place of a record that is damaged.
absl::StatusOr<std::vector<LogMark>> ScanVisualDl(absl::string_view bytes);

}  // namespace pd

#endif  // PD_FORMATS_VISUALDL_H_
