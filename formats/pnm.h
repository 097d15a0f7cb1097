// SPDX-License-Identifier: Apache-2.0
// PBM, PGM and PPM: the functions of its row in format_table.cc.
#ifndef PD_FORMATS_PNM_H_
#define PD_FORMATS_PNM_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/image.h"
#include "formats/image_header.h"

namespace pd {

/// Whether bytes begin as a PNM file does.
bool IsPnm(absl::string_view bytes);

/// Errors of ParseImageHeader, for bytes that begin so.
absl::StatusOr<ImageHeader> ParsePnmHeader(absl::string_view bytes);

/// Errors of DecodeImage, for bytes that begin so.
absl::Status DecodePnm(absl::string_view bytes, const ImageOptions& options,
                       Image* image);

}  // namespace pd

#endif  // PD_FORMATS_PNM_H_
