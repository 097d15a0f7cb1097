// SPDX-License-Identifier: Apache-2.0
// The header of an image file.
#ifndef PD_FORMATS_IMAGE_HEADER_H_
#define PD_FORMATS_IMAGE_HEADER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct ImageHeader {
  int64_t height = 0, width = 0;
  int64_t channels = 0;  ///< as the file stores them; 1 for a palette
  int64_t bits = 0;      ///< of a channel, or of a palette index
  /// "grey", "RGB" (a JPEG's YCbCr too), "palette", "grey and alpha", "RGB and
  /// alpha", "CMYK".
  absl::string_view colour;
};

/// The header of the image in `bytes`, told apart by their first bytes.
/// DataLoss when it is damaged or has no pixels, Unimplemented for other
/// formats; errors name the format.
absl::StatusOr<ImageHeader> ParseImageHeader(absl::string_view bytes);

/// The error of bytes that are no image of a format that is read.
absl::Status UnknownImage();

}  // namespace pd

#endif  // PD_FORMATS_IMAGE_HEADER_H_
