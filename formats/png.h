// SPDX-License-Identifier: Apache-2.0
// PNG: the functions of its row in format_table.cc.
#ifndef PD_FORMATS_PNG_H_
#define PD_FORMATS_PNG_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/image.h"
#include "formats/image_header.h"

namespace pd {

/// Whether bytes begin as a PNG file does.
bool IsPng(absl::string_view bytes);

/// Errors of ParseImageHeader, for bytes that begin so.
absl::StatusOr<ImageHeader> ParsePngHeader(absl::string_view bytes);

/// Errors of DecodeImage, for bytes that begin so.
absl::Status DecodePng(absl::string_view bytes, const ImageOptions& options,
                       Image* image);

}  // namespace pd

#endif  // PD_FORMATS_PNG_H_
