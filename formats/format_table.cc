// SPDX-License-Identifier: Apache-2.0
#include "formats/format_table.h"

#include "absl/strings/str_join.h"
#include "formats/bmp.h"
#include "formats/caffe_file.h"
#include "formats/gzip.h"
#include "formats/hdf5.h"
#include "formats/idx.h"
#include "formats/image.h"
#include "formats/image_header.h"
#include "formats/jpeg.h"
#include "formats/keras_file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/pdmodel.h"
#include "formats/pickle.h"
#include "formats/png.h"
#include "formats/pnm.h"
#include "formats/safetensors.h"
#include "formats/tar.h"
#include "formats/tensor_bundle.h"
#include "formats/tensor_stream.h"
#include "formats/tensorflow_file.h"
#include "formats/tfevents.h"
#include "formats/tflite.h"
#include "formats/tiff.h"
#include "formats/torch.h"
#include "formats/torch_export.h"
#include "formats/torch_script.h"
#include "formats/webp.h"
#include "formats/zip_archive.h"

namespace pd {
namespace {

std::vector<FileFormat> MakeTable() {
  return {
      {FileKind::kNpy, "npy", {".npy"}, IsNpy},
      {FileKind::kGzip, "gzip", {}, IsGzip},
      {FileKind::kHdf5, "hdf5", {".h5", ".hdf5"}, IsHdf5},
      {FileKind::kNpz, "npz", {".npz"}, IsNpz},
      {FileKind::kTorchScript, "torchscript", {".torchscript"}, IsTorchScript},
      {FileKind::kTorch, "torch", {".pt", ".pth"}, IsTorch},
      {FileKind::kTorchExport, "torch export", {".pt2"}, IsTorchExport},
      {FileKind::kKeras, "keras", {".keras"}, IsKeras},
      {FileKind::kZip, "zip", {}, IsZip},
      {FileKind::kTflite, "tflite", {".tflite"}, IsTflite},
      {FileKind::kTensorStream,
       "tensor stream",
       {".pdiparams", "__params__"},
       IsTensorStream},
      {FileKind::kSelectedRows, "selected rows", {}, IsSelectedRows},
      {FileKind::kIdx, "idx", {}, IsIdx},
      {FileKind::kPickle,
       "pickle",
       {".pdparams", ".pdopt", ".pdiparams.info"},
       IsPickle},
      {FileKind::kSafetensors, "safetensors", {".safetensors"}, IsSafetensors},
      {FileKind::kTar, "tar", {}, IsTar},
      {FileKind::kPdModel, "pdmodel", {".pdmodel", "__model__"}, IsProgram},
      {FileKind::kOnnx, "onnx", {".onnx"}, IsOnnx},
      {FileKind::kTensorflow, "tensorflow", {}, IsTensorflowGraph},
      {FileKind::kSavedModel,
       "saved model",
       {"saved_model.pb"},
       IsTensorflowSavedModel},
      {FileKind::kTensorBundle, "tensor bundle", {".index"}, IsTensorBundle},
      {FileKind::kCaffeModel, "caffemodel", {".caffemodel"}, IsCaffeModel},
      {FileKind::kTensorBoard, "tensorboard", {}, IsTfEvents},
      {FileKind::kImage,
       "jpeg",
       {".jpg", ".jpeg"},
       IsJpeg,
       {"JPEG", ParseJpegHeader, DecodeJpeg}},
      {FileKind::kImage,
       "png",
       {".png"},
       IsPng,
       {"PNG", ParsePngHeader, DecodePng, /*masks=*/true}},
      // As in PaddlePaddle's folders, .pbm is no picture by its name.
      {FileKind::kImage,
       "pnm",
       {".ppm", ".pgm"},
       IsPnm,
       {"PNM", ParsePnmHeader, DecodePnm}},
      {FileKind::kImage,
       "bmp",
       {".bmp"},
       IsBmp,
       {"BMP", ParseBmpHeader, DecodeBmp}},
      {FileKind::kImage,
       "tiff",
       {".tif", ".tiff"},
       IsTiff,
       {"TIFF", ParseTiffHeader, DecodeTiff}},
      {FileKind::kImage,
       "webp",
       {".webp"},
       IsWebp,
       {"WebP", ParseWebpHeader, DecodeWebp}},
      {FileKind::kCaffeText, "prototxt", {".prototxt"}},
      {FileKind::kJson, "json"},
      {FileKind::kText, "text"},
  };
}

}  // namespace

const std::vector<FileFormat>& FileFormats() {
  static const auto* table = new std::vector<FileFormat>(MakeTable());
  return *table;
}

const FileFormat* ImageFormatOf(absl::string_view bytes) {
  for (const FileFormat& format : FileFormats())
    if (format.kind == FileKind::kImage && format.begins(bytes)) return &format;
  return nullptr;
}

std::vector<absl::string_view> ImageEndings() {
  std::vector<absl::string_view> endings;
  for (const FileFormat& format : FileFormats())
    if (format.kind == FileKind::kImage)
      endings.insert(endings.end(), format.endings.begin(),
                     format.endings.end());
  return endings;
}

std::string ImageFormatNames(bool masks) {
  std::vector<absl::string_view> names;
  for (const FileFormat& format : FileFormats())
    if (format.kind == FileKind::kImage && (format.image.masks || !masks))
      names.push_back(format.image.name);
  return absl::StrJoin(names, ", ");
}

}  // namespace pd
