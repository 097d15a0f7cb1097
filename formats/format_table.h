// SPDX-License-Identifier: Apache-2.0
// The formats of files, a row each: how they are told apart and, for pictures,
// how they are read. A format is its file pair and its row in format_table.cc;
// detection, endings, image readers, messages and fuzz targets of pictures
// follow from the row.
#ifndef PD_FORMATS_FORMAT_TABLE_H_
#define PD_FORMATS_FORMAT_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct Image;
struct ImageHeader;
struct ImageOptions;

/// The kinds that code tells apart. Pictures are one: their formats differ in
/// their rows alone.
enum class FileKind {
  kUnknown,
  kPdModel,       ///< a ProgramDesc
  kTensorStream,  ///< one or many PaddlePaddle tensors
  kSelectedRows,  ///< PaddlePaddle's SelectedRows
  kTorch,         ///< what torch.save writes
  kTorchExport,   ///< what torch.export.save writes
  kTorchScript,   ///< what torch.jit.save writes
  kKeras,         ///< a network as Keras 3 saves it
  kTflite,
  kPickle,  ///< a state dict or another pickle
  kNpy,
  kNpz,
  kZip,  ///< a zip that is not an npz
  kOnnx,
  kCaffeModel,    ///< a network of Caffe with its weights
  kCaffeText,     ///< a network of Caffe as text
  kTensorflow,    ///< a graph of TensorFlow with its weights
  kSavedModel,    ///< saved_model.pb of TensorFlow
  kTensorBundle,  ///< the index of TensorFlow's variables
  kSafetensors,
  kHdf5,   ///< among them networks as Keras 2 saves them
  kIdx,    ///< MNIST's idx
  kImage,  ///< a picture
  kGzip,
  kTar,
  kTensorBoard,  ///< event records
  kJson,
  kText,
};

/// How the pictures of a format are read. Both functions are given bytes that
/// begin as the format does; their errors do not name it.
struct ImageCodec {
  absl::string_view name = "";  ///< as messages have it: "TIFF"
  absl::StatusOr<ImageHeader> (*header)(absl::string_view bytes) = nullptr;
  absl::Status (*decode)(absl::string_view bytes, const ImageOptions& options,
                         Image* image) = nullptr;
  bool masks = false;  ///< whether `decode` knows ImageOptions::mask
};

struct FileFormat {
  FileKind kind = FileKind::kUnknown;
  absl::string_view name = "unknown";  ///< as pd-convert prints it: "npz"
  /// Ends of file names (".npz", "__model__"), for files whose bytes say
  /// nothing certain.
  std::vector<absl::string_view> endings = {};
  /// Whether bytes begin as files of this format do; null: nothing tells.
  bool (*begins)(absl::string_view bytes) = nullptr;
  ImageCodec image = {};  ///< of pictures
};

/// All formats, in the order in which bytes are compared with them: certain
/// beginnings come before those that other files may have by chance.
const std::vector<FileFormat>& FileFormats();

/// The format of a picture that begins with `bytes`; null when no row has it.
const FileFormat* ImageFormatOf(absl::string_view bytes);

/// The endings of the pictures' formats.
std::vector<absl::string_view> ImageEndings();

/// "PNG, JPEG, ...": the pictures that are read, of which masks if `masks`.
std::string ImageFormatNames(bool masks = false);

}  // namespace pd

#endif  // PD_FORMATS_FORMAT_TABLE_H_
