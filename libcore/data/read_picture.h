// SPDX-License-Identifier: Apache-2.0
// Pictures and masks as fields of records: decoded into a record's buffers.
#ifndef PD_LIBCORE_DATA_READ_PICTURE_H_
#define PD_LIBCORE_DATA_READ_PICTURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "formats/image.h"
#include "libcore/data/dataset.h"

namespace pd {

/// Decodes the bytes of a picture's file into `room`, whose memory is reused,
/// and makes `view` one of it. Errors of DecodeImage.
absl::Status DecodePicture(absl::string_view bytes, const ImageOptions& options,
                           std::vector<uint8_t>* room, FieldView* view);

/// DecodePicture of a file; errors name it.
absl::Status ReadPicture(const std::string& path, const ImageOptions& options,
                         std::vector<uint8_t>* room, FieldView* view);

/// OutOfRange with row and column where a mask holds a class of `classes` or
/// above other than 255, which stands for none. The message begins with `what`
/// and gives the classes as `expected`.
absl::Status CheckMaskClasses(const FieldView& mask, int64_t classes,
                              const std::string& what,
                              const std::string& expected);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_READ_PICTURE_H_
