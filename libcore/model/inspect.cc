// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/inspect.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/detect.h"
#include "formats/gzip.h"
#include "formats/idx.h"
#include "formats/image.h"
#include "formats/image_header.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/safetensors.h"
#include "formats/tensor_stream.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/inspect_internal.h"
#include "libcore/model/model_files.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Names for the tensors of a joint file from the program beside it. Without
// them the tensors stay unnamed: the file itself is whole.
absl::StatusOr<std::vector<std::string>> NamesBeside(const std::string& path,
                                                     size_t count,
                                                     Inspection* out) {
  const std::string program_path = ProgramBeside(path);
  if (program_path.empty())
    return NotFound("no program beside it gives the tensors their names");
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, ReadProgram(program_path));
  std::vector<std::string> names = PersistableTensors(program);
  if (names.size() != count)
    return InvalidArgument(
        "'%s' has %d parameters; the file holds %d tensors, which stay unnamed",
        program_path, names.size(), count);
  out->producer = ProducerOf(program);
  return names;
}

absl::Status InspectStream(const FileBytes& file, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const std::vector<Array> arrays,
                      ParseTensorList(file, Alignment::kAny));
  const bool joint = arrays.size() != 1 ||
                     absl::EndsWith(out->path, ".pdiparams") ||
                     absl::EndsWith(out->path, "__params__");
  out->content = joint ? "parameters" : "tensor";
  std::vector<std::string> names(arrays.size());
  if (joint) {
    auto found = NamesBeside(out->path, arrays.size(), out);
    if (found.ok())
      names = *std::move(found);
    else
      out->notes.emplace_back(found.status().message());
  }
  for (size_t i = 0; i < arrays.size(); ++i)
    out->tensors.push_back(InfoOf(names[i], arrays[i], *out));
  return absl::OkStatus();
}

absl::Status InspectSelectedRows(const FileBytes& file, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const SelectedRowsArray rows,
                      ParseSelectedRows(file, Alignment::kAny));
  out->facts.push_back({"height", rows.height});
  out->facts.push_back({"rows", static_cast<int64_t>(rows.rows.size())});
  out->tensors.push_back(InfoOf("", rows.value, *out));
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

absl::Status InspectNpy(const FileBytes& file, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const Array array, ParseNpy(file, Alignment::kAny));
  out->tensors.push_back(InfoOf("", array, *out));
  return absl::OkStatus();
}

// A block at a time where nobody looks at whole arrays: zip packs 1000 zeros
// into a byte.
absl::Status InspectNpz(const FileBytes& file, Inspection* out) {
  if (out->look != nullptr) {
    PD_ASSIGN_OR_RETURN(const NamedArrays arrays, ParseNpz(file));
    for (const auto& [name, array] : arrays)
      out->tensors.push_back(InfoOf(name, array, *out));
    return absl::OkStatus();
  }
  std::unique_ptr<BlockInfo> info;
  PD_RETURN_IF_ERROR(ScanNpz(file, kStatsBlock, [&](const ArrayBlock& block) {
    if (info == nullptr)
      info = std::make_unique<BlockInfo>(block.name, block.values.dtype,
                                         block.shape, out->with_stats);
    info->Add(block.values);
    if (block.last) out->tensors.push_back(std::exchange(info, {})->Finish());
    return absl::OkStatus();
  }));
  std::sort(
      out->tensors.begin(), out->tensors.end(),
      [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  return absl::OkStatus();
}

absl::Status InspectImage(const FileBytes& file, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const ImageHeader header, ParseImageHeader(file.view()));
  out->facts = {{"width", header.width},
                {"height", header.height},
                {"channels", header.channels},
                {"bits", header.bits},
                {"colour", std::string(header.colour)}};
  ImageOptions options;
  options.channels = header.channels < 3 && header.colour != "palette" ? 1 : 3;
  Image image;
  const absl::Status decoded = DecodeImage(file.view(), options, &image);
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

absl::Status InspectSafetensors(const FileBytes& file, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const Safetensors content,
                      ParseSafetensors(file, Alignment::kAny));
  out->content = "parameters";
  constexpr size_t kMostText = 60;  // of a value that is shown
  for (const auto& [key, value] : content.metadata)
    out->facts.push_back(
        {absl::StrCat("metadata ", key),
         value.size() <= kMostText
             ? value
             : absl::StrCat(value.substr(0, kMostText), "... (", value.size(),
                            " bytes)")});
  for (const auto& [name, array] : content.tensors)
    out->tensors.push_back(InfoOf(name, array, *out));
  return absl::OkStatus();
}

// Plain or gzip. Messages name the path.
absl::Status InspectIdx(Inspection* out) {
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

absl::Status InspectGzip(const FileBytes& file, Inspection* out) {
  constexpr size_t kHead = 1024;  // enough for a tar's name
  PD_ASSIGN_OR_RETURN(const FileBytes head, GunzipHead(file.view(), kHead));
  const FileFormat& inner =
      DetectFormat(head.view(), absl::StripSuffix(out->path, ".gz"));
  if (inner.kind == FileKind::kIdx) return InspectIdx(out);
  out->content = absl::StrCat("compressed ", inner.name);
  out->notes.push_back(kNotRead);
  return absl::OkStatus();
}

absl::Status InspectBytes(const OpRegistry& registry, FileKind kind,
                          const FileBytes& file, Inspection* out) {
  switch (kind) {
    case FileKind::kPdModel:
      return InspectProgram(registry, file, out);
    case FileKind::kTensorStream:
      return InspectStream(file, out);
    case FileKind::kSelectedRows:
      return InspectSelectedRows(file, out);
    case FileKind::kPickle:
      return InspectPickle(file, out);
    case FileKind::kNpy:
      return InspectNpy(file, out);
    case FileKind::kNpz:
      return InspectNpz(file, out);
    case FileKind::kSafetensors:
      return InspectSafetensors(file, out);
    case FileKind::kOnnx:
      return InspectOnnx(registry, file, out);
    case FileKind::kIdx:
      return InspectIdx(out);
    case FileKind::kImage:
      return InspectImage(file, out);
    case FileKind::kGzip:
      return InspectGzip(file, out);
    case FileKind::kUnknown:
      return InvalidArgument(
          "neither its %d bytes nor its name are of a format that is known",
          file.size);
    default:
      // A name that promises what the bytes are not.
      if (const FileKind named = DetectKind("", out->path);
          named != FileKind::kUnknown && named != kind)
        return InvalidArgument(
            "it is called like a %s; its bytes are of kind '%s'", Name(named),
            DetectFormat(file.view(), out->path).name);
      out->notes.push_back(kNotRead);
      return absl::OkStatus();
  }
}

absl::Status InspectFile(const OpRegistry& registry, Inspection* out) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(out->path));
  const FileFormat& format = DetectFormat(file.view(), out->path);
  out->kind = std::string(format.name);
  out->facts.push_back({"bytes", static_cast<int64_t>(file.size)});
  const absl::Status status = InspectBytes(registry, format.kind, file, out);
  if (status.ok() || absl::StartsWith(status.message(), Quoted(out->path)))
    return status;
  return Annotate(status, Quoted(out->path));
}

absl::Status InspectFolder(const OpRegistry& registry, Inspection* out) {
  const std::string folder = out->path;
  const auto has = [&folder](const char* name) {
    return PathExists(absl::StrCat(folder, "/", name));
  };
  if (has("__model__")) {
    out->path = absl::StrCat(folder, "/__model__");
    PD_RETURN_IF_ERROR(InspectFile(registry, out));
    out->path = folder;
    out->kind = "model folder";
    return absl::OkStatus();
  }
  return NotFound(
      "folder '%s' is no model: it has neither '__model__' nor 'latest'",
      folder);
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

std::string Quoted(const std::string& path) {
  return absl::StrCat("'", path, "'");
}

bool PathExists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::StatusOr<Inspection> Inspect(const OpRegistry& registry,
                                   const std::string& path, bool with_stats,
                                   TensorLook look) {
  Inspection out;
  out.with_stats = with_stats;
  out.look = std::move(look);
  out.path = path;
  out.producer = "unknown";
  PD_ASSIGN_OR_RETURN(const auto checkpoint, FindRunCheckpoint(path));
  if (checkpoint.has_value()) {
    PD_RETURN_IF_ERROR(
        InOneLine(InspectCheckpoint(registry, *checkpoint, &out)));
    return out;
  }
  if (IsFolder(path)) {
    PD_RETURN_IF_ERROR(InOneLine(InspectFolder(registry, &out)));
    return out;
  }
  const std::string program = absl::StrCat(path, ".pdmodel");
  if (!PathExists(path) && PathExists(program)) out.path = program;
  PD_RETURN_IF_ERROR(InOneLine(InspectFile(registry, &out)));
  return out;
}

}  // namespace pd
