// SPDX-License-Identifier: Apache-2.0
// read_file: Out are the bytes of the file `filename`, one that
//   program_files.h allows.
// decode_jpeg: Out [channels, height, width] is the picture whose JPEG file has
//   the bytes X: as it is stored (mode "unchanged"), grey ("gray", as Pillow
//   converts) or in colours ("rgb").
#include <cstdint>
#include <cstring>
#include <string>

#include "formats/jpeg.h"
#include "libcore/base/file.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/file/program_files.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferReadFile(InferContext* context) {
  context->SetOutput("Out", {-1}, DType::kUInt8);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReadFile(BindContext* context) {
  Tensor* out = context->Output("Out");
  return Step([out, path = context->Attr<std::string>("filename")](
                  const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const std::string place, ProgramFile(path));
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(place));
    PD_RETURN_IF_ERROR(
        out->Resize(DType::kUInt8, {static_cast<int64_t>(file.size)}));
    if (file.size > 0) std::memcpy(out->raw(), file.data.get(), file.size);
    return absl::OkStatus();
  });
}

// The channels of a mode; -1: those that the file has.
absl::StatusOr<int64_t> ChannelsOfMode(const std::string& mode) {
  if (mode == "unchanged") return -1;
  if (mode == "gray") return 1;
  if (mode == "rgb") return 3;
  return InvalidArgument("attr 'mode' is '%s'; expected unchanged, gray or rgb",
                         mode);
}

absl::Status InferDecodeJpeg(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      ChannelsOfMode(context->Attr<std::string>("mode")));
  if (x.dtype != DType::kUInt8 || x.shape.size() != 1)
    return InvalidArgument("'X' is %s %s; expected the bytes of a file, uint8",
                           Name(x.dtype), ToString(x.shape));
  context->SetOutput("Out", {channels, -1, -1}, DType::kUInt8);
  return absl::OkStatus();
}

absl::Status DecodeJpegTo(const Tensor& x, int64_t channels, Tensor* out) {
  const absl::string_view bytes(static_cast<const char*>(x.raw()), x.bytes());
  if (!IsJpeg(bytes))
    return DataLoss("the %d bytes of 'X' are no JPEG file", x.bytes());
  const absl::StatusOr<ImageHeader> header = ParseJpegHeader(bytes);
  if (!header.ok()) return Annotate(header.status(), "JPEG");
  if (channels < 0) channels = header->channels == 1 ? 1 : 3;
  PD_RETURN_IF_ERROR(
      CheckTensorSize(DType::kUInt8, {header->height, header->width, 3}));
  ImageOptions options;
  options.channels = static_cast<int>(channels);
  Image image;
  PD_RETURN_IF_ERROR(Annotate(DecodeJpeg(bytes, options, &image), "JPEG"));
  PD_RETURN_IF_ERROR(
      out->Resize(DType::kUInt8, {channels, image.height, image.width}));
  const int64_t plane = image.height * image.width;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < plane; ++i)
      out->data<uint8_t>()[c * plane + i] =
          image.pixels[static_cast<size_t>(i * channels + c)];
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDecodeJpeg(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      ChannelsOfMode(context->Attr<std::string>("mode")));
  return Step(
      [=](const RunContext&) { return DecodeJpegTo(*x, channels, out); });
}

}  // namespace

absl::Status RegisterReadFile(OpRegistry* registry) {
  OpDef read("read_file");
  read.Output("Out").Attr("filename", std::string()).ShapeFromData();
  read.Infer(InferReadFile).NoGrad().Reference(BindReadFile);
  PD_RETURN_IF_ERROR(registry->Add(std::move(read)));

  OpDef decode("decode_jpeg");
  decode.Input("X").Output("Out").Attr("mode", std::string("unchanged"));
  decode.ShapeFromData().Infer(InferDecodeJpeg).NoGrad();
  return registry->Add(std::move(decode.Reference(BindDecodeJpeg)));
}

}  // namespace pd
