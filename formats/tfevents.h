// SPDX-License-Identifier: Apache-2.0
// TensorBoard's event files, `events.out.tfevents.TIME.HOST`: TFRecord framing
// (length as uint64, its checksum, a protobuf message, its checksum; all little
// endian, checksums crc32c with TensorFlow's mask).
#ifndef PD_FORMATS_TFEVENTS_H_
#define PD_FORMATS_TFEVENTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/log_record.h"

namespace pd {

/// Whether bytes begin as a file of events does.
bool IsTfEvents(absl::string_view bytes);

/// The record as the file holds it; "" for what TensorBoard has no event of (an
/// embedding, which its projector reads from a table; a ROC curve).
std::string EncodeTfEvent(const LogRecord& record);

/// The tag of the event that says that training ended.
inline constexpr char kLogEndTag[] = "_hparams_/session_end_info";

/// The first event of a file.
std::string TfEventsHead(double seconds);

/// The events of a file. An end in the middle of an event is where they end.
/// DataLoss names the place of an event that is damaged.
absl::StatusOr<std::vector<LogMark>> ScanTfEvents(absl::string_view bytes);

/// The CRC-32 with Castagnoli's polynomial (RFC 3720).
uint32_t Crc32c(absl::string_view bytes);

/// The same as TensorFlow stores it beside the bytes: turned, and a constant
/// added.
uint32_t MaskedCrc32c(absl::string_view bytes);

}  // namespace pd

#endif  // PD_FORMATS_TFEVENTS_H_
