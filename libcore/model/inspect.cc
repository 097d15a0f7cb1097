// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/inspect.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/detect.h"
#include "formats/gzip.h"
#include "formats/idx.h"
#include "formats/image.h"
#include "formats/image_header.h"
#include "formats/npz.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/content.h"
#include "libcore/model/inspect_internal.h"
#include "libcore/model/model_files.h"
#include "libcore/model/tree.h"

namespace pd {
namespace {

// The arrays of a content that is a dict of them, or one.
void AddArrays(const Content& content, Inspection* out) {
  if (const auto* array = content.object.As<Array>())
    out->tensors.push_back(InfoOf("", *array, *out));
  else if (const auto* dict = content.object.As<PickleDict>())
    for (const auto& [key, array] : dict->items)
      out->tensors.push_back(InfoOf(content.numbered() ? "" : TreeKey(key),
                                    *array.As<Array>(), *out));
}

absl::Status InspectStream(const Content& content, Inspection* out) {
  out->content =
      content.object.As<Array>() != nullptr ? "tensor" : "parameters";
  if (content.named_by.has_value())
    out->producer = ProducerOf(*content.named_by);
  if (content.numbered()) out->notes.emplace_back(content.unnamed.message());
  AddArrays(content, out);
  return absl::OkStatus();
}

absl::Status InspectSelectedRows(const Content& content, Inspection* out) {
  out->facts.push_back({"height", content.rows->height});
  out->facts.push_back(
      {"rows", static_cast<int64_t>(content.rows->rows.size())});
  out->tensors.push_back(InfoOf("", content.rows->value, *out));
  return absl::OkStatus();
}

// InfoOf for an array that comes in blocks.
class BlockInfo {
 public:
  BlockInfo(const std::string& name, DType dtype, const Shape& shape,
            bool with_stats) {
    info_.name = name;
    info_.dtype = dtype;
    info_.shape = shape;
    info_.bytes = NumElements(shape) * static_cast<int64_t>(SizeOf(dtype));
    if (with_stats) stats_.emplace(dtype, NumElements(shape));
  }
  void Add(const Array& values) {
    if (stats_.has_value()) stats_->Add(values);
  }
  TensorInfo Finish() {
    if (stats_.has_value()) info_.stats = stats_->Finish();
    return std::move(info_);
  }

 private:
  TensorInfo info_;
  std::optional<StatsBuilder> stats_;
};

absl::Status InspectNpy(const Content& content, Inspection* out) {
  AddArrays(content, out);
  return absl::OkStatus();
}

// A block at a time where nobody looks at whole arrays: zip packs 1000 zeros
// into a byte.
absl::Status InspectNpz(const Content& content, Inspection* out) {
  if (out->look != nullptr) {
    PD_ASSIGN_OR_RETURN(const NamedArrays arrays, ParseNpz(content.bytes));
    for (const auto& [name, array] : arrays)
      out->tensors.push_back(InfoOf(name, array, *out));
    return absl::OkStatus();
  }
  std::unique_ptr<BlockInfo> info;
  PD_RETURN_IF_ERROR(
      ScanNpz(content.bytes, kStatsBlock, [&](const ArrayBlock& block) {
        if (info == nullptr)
          info = std::make_unique<BlockInfo>(block.name, block.values.dtype,
                                             block.shape, out->with_stats);
        info->Add(block.values);
        if (block.last)
          out->tensors.push_back(std::exchange(info, {})->Finish());
        return absl::OkStatus();
      }));
  std::sort(
      out->tensors.begin(), out->tensors.end(),
      [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return absl::OkStatus();
}

absl::Status InspectImage(const Content& content, Inspection* out) {
  const absl::string_view file = content.bytes.view();
  PD_ASSIGN_OR_RETURN(const ImageHeader header, ParseImageHeader(file));
  out->facts = {{"width", header.width},
                {"height", header.height},
                {"channels", header.channels},
                {"bits", header.bits},
                {"colour", std::string(header.colour)}};
  ImageOptions options;
  options.channels = header.channels < 3 && header.colour != "palette" ? 1 : 3;
  Image image;
  const absl::Status decoded = DecodeImage(file, options, &image);
  if (absl::IsUnimplemented(decoded) || absl::IsResourceExhausted(decoded)) {
    out->notes.push_back(
        absl::StrCat("its pixels are not read: ", decoded.message()));
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(decoded);
  out->tensors.push_back(InfoOf(
      "pixels",
      MakeArray({image.height, image.width, image.channels}, image.pixels),
      *out));
  return absl::OkStatus();
}

absl::Status InspectNamedArrays(const Content& content, Inspection* out) {
  out->content = "parameters";
  constexpr size_t kMostText = 60;  // of a value that is shown
  for (const auto& [key, value] : content.metadata)
    out->facts.push_back(
        {absl::StrCat("metadata ", key),
         value.size() <= kMostText
             ? value
             : absl::StrCat(value.substr(0, kMostText), "... (", value.size(),
                            " bytes)")});
  AddArrays(content, out);
  return absl::OkStatus();
}

// Plain or gzip. Messages name the path.
absl::Status InspectIdx(const Content&, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const IdxFile idx, OpenIdxFile(out->path));
  out->kind = std::string(Name(FileKind::kIdx));
  out->facts.push_back({"gzip", idx.gzip});
  if (out->look != nullptr || !idx.gzip) {
    PD_ASSIGN_OR_RETURN(const Array array, ReadIdxData(idx));
    out->tensors.push_back(InfoOf("", array, *out));
    return absl::OkStatus();
  }
  BlockInfo info("", idx.header.dtype, idx.header.shape, out->with_stats);
  PD_RETURN_IF_ERROR(ScanIdxData(
      idx, kStatsBlock, [&info](const Array& block) { info.Add(block); }));
  out->tensors.push_back(info.Finish());
  return absl::OkStatus();
}

constexpr char kNotRead[] = "its contents are not read";

absl::Status InspectGzip(const Content& content, Inspection* out) {
  constexpr size_t kHead = 1024;  // enough for a tar's name
  PD_ASSIGN_OR_RETURN(const FileBytes head,
                      GunzipHead(content.bytes.view(), kHead));
  const FileFormat& inner =
      DetectFormat(head.view(), absl::StripSuffix(out->path, ".gz"));
  if (inner.kind == FileKind::kIdx) return InspectIdx(content, out);
  out->content = absl::StrCat("compressed ", inner.name);
  out->notes.push_back(kNotRead);
  return absl::OkStatus();
}

absl::Status InspectOther(const Content& content, Inspection* out) {
  if (content.kind == FileKind::kUnknown)
    return InvalidArgument(
        "neither its %d bytes nor its name are of a format that is known",
        content.bytes.size);
  // A name that promises what the bytes are not.
  if (const FileKind named = DetectKind("", out->path);
      named != FileKind::kUnknown && named != content.kind)
    return InvalidArgument("it is called like a %s; its bytes are of kind '%s'",
                           Name(named), content.format);
  out->notes.push_back(kNotRead);
  return absl::OkStatus();
}

// How a file without a program is described.
absl::Status InspectFile(const Content& content, Inspection* out) {
  switch (content.kind) {
    case FileKind::kTensorStream:
      return InspectStream(content, out);
    case FileKind::kSelectedRows:
      return InspectSelectedRows(content, out);
    case FileKind::kPickle:
    case FileKind::kTorch:
      return InspectPickle(content, out);
    case FileKind::kNpy:
      return InspectNpy(content, out);
    case FileKind::kNpz:
      return InspectNpz(content, out);
    case FileKind::kSafetensors:
    case FileKind::kCaffeModel:
    case FileKind::kTorchScript:
    case FileKind::kHdf5:
    case FileKind::kTensorBundle:
      return InspectNamedArrays(content, out);
    case FileKind::kIdx:
      return InspectIdx(content, out);
    case FileKind::kImage:
      return InspectImage(content, out);
    case FileKind::kGzip:
      return InspectGzip(content, out);
    default:
      return InspectOther(content, out);
  }
}

std::string KindOf(const Content& content) {
  switch (content.form) {
    case Content::Form::kFolder:
      return "model folder";
    case Content::Form::kTensorFolder:
      return "folder of tensors";
    case Content::Form::kCheckpoint:
      return content.checkpoint->newest ? "run directory" : "checkpoint";
    default:
      return content.format;
  }
}

absl::Status InspectContent(const OpRegistry& registry, Content content,
                            Inspection* out) {
  out->path = content.path;
  out->kind = KindOf(content);
  if (content.bytes.data != nullptr)
    out->facts.push_back({"bytes", static_cast<int64_t>(content.bytes.size)});
  if (content.checkpoint.has_value()) AddCheckpoint(content, out);
  if (content.onnx.has_value()) return InspectOnnx(registry, content, out);
  if (content.program.has_value())
    return InspectProgram(registry, std::move(content), out);
  return InspectFile(content, out);
}

}  // namespace

TensorInfo InfoOf(std::string name, const Array& array,
                  const Inspection& inspection) {
  TensorInfo info;
  info.name = std::move(name);
  info.shape = array.shape;
  info.dtype = array.dtype;
  info.bytes = static_cast<int64_t>(array.size_bytes());
  info.lod_levels = array.lod.size();
  if (inspection.with_stats) info.stats = StatsOf(array);
  if (inspection.look != nullptr) inspection.look(info.name, array);
  return info;
}

absl::StatusOr<Inspection> Inspect(const OpRegistry& registry,
                                   const std::string& path, bool with_stats,
                                   TensorLook look) {
  Inspection out;
  out.with_stats = with_stats;
  out.look = std::move(look);
  out.producer = "unknown";
  ReadOptions options;
  options.whole = false;
  PD_ASSIGN_OR_RETURN(Content content, OpenContent(path, options));
  const std::string file = content.file;
  PD_RETURN_IF_ERROR(InOneLine(
      OfFile(file, InspectContent(registry, std::move(content), &out))));
  return out;
}

}  // namespace pd
