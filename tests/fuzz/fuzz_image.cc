// SPDX-License-Identifier: Apache-2.0
// A target for every format of pictures, by the name in its row (png, jpeg,
// ...), and one for all of them, which tells them apart first.
#include "formats/format_table.h"
#include "formats/image.h"
#include "formats/image_header.h"
#include "tests/fuzz/fuzz_target.h"

namespace pd {
namespace {

template <typename Decode>
void DecodeBothWays(const FileBytes& file, const Decode& decode) {
  ImageOptions options;
  options.max_pixels = 1 << 18;
  for (const int channels : {1, 3}) {
    options.channels = channels;
    Image image;
    if (!decode(file.view(), options, &image).ok()) continue;
    fuzz::Check(
        image.channels == channels &&
        image.pixels.size() ==
            static_cast<size_t>(image.height * image.width * image.channels));
  }
}

bool RegisterFormats() {
  for (const FileFormat& format : FileFormats()) {
    if (format.kind != FileKind::kImage) continue;
    const auto target = [&format](const FileBytes& file) {
      if (!format.begins(file.view())) return;  // as its functions demand
      format.image.header(file.view()).status().IgnoreError();
      DecodeBothWays(file, format.image.decode);
    };
    fuzz::Targets().emplace(format.name, target);
  }
  return true;
}

const bool registered = RegisterFormats();

}  // namespace
}  // namespace pd

PD_FUZZ_TARGET(image) {
  pd::ParseImageHeader(file.view()).status().IgnoreError();
  pd::DecodeBothWays(file, pd::DecodeImage);
}
