// SPDX-License-Identifier: Apache-2.0
// WebP by libwebp, lossy and lossless. Of an animation the first picture on its
// canvas, which is black; alpha is dropped.
#include "formats/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

const uint8_t* Bytes(absl::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

absl::string_view Name(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "the file is truncated";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "no memory for the decoder";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not know";
    default:
      return "its bits make no picture";
  }
}

absl::StatusOr<WebPBitstreamFeatures> Features(absl::string_view bytes) {
  WebPBitstreamFeatures features;
  const VP8StatusCode code =
      WebPGetFeatures(Bytes(bytes), bytes.size(), &features);
  if (code != VP8_STATUS_OK) return DataLoss("%s", Name(code));
  return features;
}

// Into RGB rows of `stride` bytes, which hold height x width pixels.
absl::Status Decode(absl::string_view bytes, int64_t height, int64_t width,
                    int64_t stride, uint8_t* rows) {
  PD_ASSIGN_OR_RETURN(const WebPBitstreamFeatures features, Features(bytes));
  if (features.width != width || features.height != height)
    return DataLoss("the picture is %d x %d pixels; its frame is %d x %d",
                    features.width, features.height, width, height);
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return Unimplemented("libwebp is of another version");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = rows;
  config.output.u.RGBA.stride = static_cast<int>(stride);
  config.output.u.RGBA.size =
      static_cast<size_t>(stride * (height - 1) + 3 * width);
  const VP8StatusCode code = WebPDecode(Bytes(bytes), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (code != VP8_STATUS_OK) return DataLoss("%s", Name(code));
  return absl::OkStatus();
}

// The first frame, at its place on the canvas.
absl::Status DecodeFirst(absl::string_view bytes, Image* image) {
  const WebPData data = {Bytes(bytes), bytes.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> demuxer(
      WebPDemux(&data), WebPDemuxDelete);
  WebPIterator frame;
  if (demuxer == nullptr || WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0)
    return DataLoss("the file is truncated or damaged");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> free(
      &frame, WebPDemuxReleaseIterator);
  if (frame.x_offset < 0 || frame.y_offset < 0 || frame.width <= 0 ||
      frame.height <= 0 || frame.width > image->width - frame.x_offset ||
      frame.height > image->height - frame.y_offset)
    return DataLoss("a frame lies outside of the canvas");
  std::fill(image->pixels.begin(), image->pixels.end(), uint8_t{0});
  const int64_t stride = 3 * image->width;
  return Decode(
      {reinterpret_cast<const char*>(frame.fragment.bytes),
       frame.fragment.size},
      frame.height, frame.width, stride,
      image->pixels.data() + frame.y_offset * stride + 3 * frame.x_offset);
}

}  // namespace

bool IsWebp(absl::string_view bytes) {
  return absl::StartsWith(bytes, "RIFF") && bytes.substr(0, 12).size() == 12 &&
         bytes.substr(8, 4) == "WEBP";
}

absl::StatusOr<ImageHeader> ParseWebpHeader(absl::string_view bytes) {
  PD_ASSIGN_OR_RETURN(const WebPBitstreamFeatures features, Features(bytes));
  ImageHeader header;
  header.width = features.width;
  header.height = features.height;
  header.bits = 8;
  header.channels = features.has_alpha != 0 ? 4 : 3;
  header.colour = features.has_alpha != 0 ? "RGB and alpha" : "RGB";
  return header;
}

absl::Status DecodeWebp(absl::string_view bytes, const ImageOptions& options,
                        Image* image) {
  PD_ASSIGN_OR_RETURN(const WebPBitstreamFeatures features, Features(bytes));
  PD_RETURN_IF_ERROR(
      PrepareImage(features.height, features.width, options, image));
  PD_RETURN_IF_ERROR(features.has_animation != 0
                         ? DecodeFirst(bytes, image)
                         : Decode(bytes, image->height, image->width,
                                  3 * image->width, image->pixels.data()));
  if (options.channels == 1) RgbToGrey(image);
  image->pixels.resize(
      static_cast<size_t>(image->height * image->width * options.channels));
  return absl::OkStatus();
}

}  // namespace pd
