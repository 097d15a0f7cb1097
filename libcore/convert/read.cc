// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/content.h"
#include "libcore/convert/metadata_name.h"
#include "libcore/convert/tree.h"
#include "libcore/model/checkpoint.h"
#include "libcore/model/model_files.h"
#include "libcore/model/run_checkpoint.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

absl::Status ReadPickleObject(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(out->object, ParsePickle(file, Alignment::kAny));
  auto* dict = std::get_if<PickleDict>(&out->object.value);
  if (dict == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(JoinBigParams(dict));
  // Its tables make sense where it has some.
  return dict->Find(kStructuredNamesKey) != nullptr
             ? StateDictOf(out->object).status()
             : absl::OkStatus();
}

// The names of a joint file's tensors: of the program that was given or stands
// beside it, else numbers that keep their order.
absl::StatusOr<std::vector<std::string>> NamesFor(const std::string& path,
                                                  const std::string& program,
                                                  size_t count, Content* out) {
  const std::string from = program.empty() ? ProgramBeside(path) : program;
  if (!from.empty()) {
    PD_ASSIGN_OR_RETURN(const ProgramDesc desc, ReadProgram(from));
    std::vector<std::string> names = PersistableTensors(desc);
    if (names.size() != count)
      return InvalidArgument("it holds %d tensors; '%s' has %d parameters",
                             count, from, names.size());
    return names;
  }
  out->numbered = true;
  std::vector<std::string> names;
  const size_t digits = absl::StrCat(count).size();
  for (size_t i = 0; i < count; ++i)
    names.push_back(absl::StrFormat("tensor_%0*d", digits, i));
  return names;
}

absl::Status ReadStream(const FileBytes& file, const ReadOptions& options,
                        bool joint, Content* out) {
  PD_ASSIGN_OR_RETURN(std::vector<Array> arrays,
                      ParseTensorList(file, Alignment::kAny));
  joint |= arrays.size() != 1 || absl::EndsWith(out->path, ".pdiparams") ||
           absl::EndsWith(out->path, "__params__") || !options.program.empty();
  if (!joint) {
    out->object.value = std::move(arrays[0]);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const auto names,
                      NamesFor(out->path, options.program, arrays.size(), out));
  PickleDict dict;
  for (size_t i = 0; i < arrays.size(); ++i)
    dict.Add(names[i], PickleValue{std::move(arrays[i])});
  out->object.value = std::move(dict);
  return absl::OkStatus();
}

absl::Status ReadNpzObject(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(NamedArrays arrays, ParseNpz(file));
  const auto side = arrays.find(std::string(kNpzSideName));
  if (side == arrays.end()) {
    out->object = DictOf(arrays);
    return absl::OkStatus();
  }
  const Array text = side->second;
  if (text.dtype != DType::kUInt8)
    return DataLoss("'%s' is no text", kNpzSideName);
  arrays.erase(side);
  PD_ASSIGN_OR_RETURN(
      out->object,
      TreeFromJson({text.data<char>(), text.size_bytes()}, arrays));
  if (arrays.size() == 1) out->stem = arrays.begin()->first;
  return absl::OkStatus();
}

absl::Status ReadSafetensorsObject(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(const Safetensors content,
                      ParseSafetensors(file, Alignment::kAny));
  const auto side = content.metadata.find(std::string(kMetadataSideName));
  if (side == content.metadata.end()) {
    PickleDict dict;
    for (const auto& [name, array] : content.tensors)
      dict.Add(name, PickleValue{array});
    out->object.value = std::move(dict);
    return absl::OkStatus();
  }
  const NamedArrays arrays(content.tensors.begin(), content.tensors.end());
  PD_ASSIGN_OR_RETURN(out->object, TreeFromJson(side->second, arrays));
  if (arrays.size() == 1) out->stem = arrays.begin()->first;
  return absl::OkStatus();
}

absl::Status ReadOnnxObject(const FileBytes& file, Content* out) {
  const std::string folder = fs::path(out->path).parent_path().string();
  PD_ASSIGN_OR_RETURN(const OnnxFile model,
                      ParseOnnx(file.view(), folder.empty() ? "." : folder));
  out->object = DictOf(model.graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadModel(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(out->program, ParseProgram(file.view()));
  PD_ASSIGN_OR_RETURN(FoundParams found,
                      FindParams(out->path, *out->program, Alignment::kAny));
  if (found.form == FoundParams::Form::kNone) return absl::OkStatus();
  ParamMatch match = MatchParams(*out->program, found.values);
  match.missing.clear();  // whoever needs them all says so
  PD_RETURN_IF_ERROR(
      Annotate(match.Error(), absl::StrCat("'", found.path, "'")));
  out->state_files = found.form == FoundParams::Form::kState;
  out->object = DictOf(found.values);
  out->info = std::move(found.info);
  return absl::OkStatus();
}

absl::Status ReadRows(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(out->rows, ParseSelectedRows(file, Alignment::kAny));
  return absl::OkStatus();
}

absl::Status ReadNpyObject(const FileBytes& file, Content* out) {
  PD_ASSIGN_OR_RETURN(out->object.value, ParseNpy(file, Alignment::kAny));
  return absl::OkStatus();
}

struct Source {
  const char* name;
  FileKind kind;
  std::function<absl::Status(const FileBytes&, const ReadOptions&, Content*)>
      read;
};

template <absl::Status (*Read)(const FileBytes&, Content*)>
absl::Status Plain(const FileBytes& file, const ReadOptions&, Content* out) {
  return Read(file, out);
}

template <bool kIsJoint>
absl::Status Stream(const FileBytes& file, const ReadOptions& options,
                    Content* out) {
  return ReadStream(file, options, kIsJoint, out);
}

// The first source of a kind is that of files whose bytes say the kind.
const std::vector<Source>& Sources() {
  static const auto* sources = new std::vector<Source>{
      {"pickle", FileKind::kPickle, Plain<ReadPickleObject>},
      {"pdparams", FileKind::kPickle, Plain<ReadPickleObject>},
      {"pdmodel", FileKind::kPdModel, Plain<ReadModel>},
      {"tensor", FileKind::kTensorStream, Stream<false>},
      {"pdiparams", FileKind::kTensorStream, Stream<true>},
      {"selected-rows", FileKind::kSelectedRows, Plain<ReadRows>},
      {"npy", FileKind::kNpy, Plain<ReadNpyObject>},
      {"npz", FileKind::kNpz, Plain<ReadNpzObject>},
      {"safetensors", FileKind::kSafetensors, Plain<ReadSafetensorsObject>},
      {"onnx", FileKind::kOnnx, Plain<ReadOnnxObject>},
  };
  return *sources;
}

// `status`, with the path before its message unless that names the file, or one
// beside it, already.
absl::Status At(const std::string& path, const absl::Status& status) {
  if (status.ok()) return status;
  const fs::path file(path);
  const std::string folder = file.parent_path().string();
  for (const std::string& place :
       {absl::StrCat("'", path, "'"),
        absl::StrCat("'", fs::path(path).replace_extension().string(), "."),
        folder.empty() ? std::string("'./") : absl::StrCat("'", folder, "/")})
    if (absl::StartsWith(status.message(), place)) return status;
  return Annotate(status, absl::StrCat("'", path, "'"));
}

absl::Status ReadOneFile(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(out->path));
  const FileFormat& format = DetectFormat(file.view(), out->path);
  out->kind = format.kind;
  out->stem = fs::path(out->path).stem().string();
  for (const Source& source : Sources()) {
    if (options.from.empty() ? source.kind != out->kind
                             : source.name != options.from)
      continue;
    out->kind = source.kind;
    return At(out->path, source.read(file, options, out));
  }
  return InvalidArgument("'%s' is of kind '%s', which holds no parameters",
                         out->path, format.name);
}

absl::Status ReadRun(const RunCheckpoint& chosen, Content* out) {
  PD_ASSIGN_OR_RETURN(Checkpoint checkpoint, ReadRunCheckpoint(chosen));
  out->kind = FileKind::kPdModel;
  out->program = std::move(checkpoint.program);
  out->state_files = true;
  NamedArrays values = std::move(checkpoint.params);
  values.merge(checkpoint.opt);
  out->object = DictOf(values);
  return absl::OkStatus();
}

absl::Status ReadFolder(const ReadOptions& options, Content* out) {
  const std::string folder = out->path;
  const auto program = ProgramInFolder(folder);
  if (program.ok()) {
    out->path = *program;
    PD_RETURN_IF_ERROR(ReadOneFile(options, out));
    out->path = folder;
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(program.status())) return program.status();
  out->kind = FileKind::kTensorStream;
  auto arrays = ReadTensorFolder(folder, Alignment::kAny);
  if (!arrays.ok())
    return Annotate(arrays.status(),
                    absl::StrCat("'", folder,
                                 "': no program, and not a folder of tensors"));
  out->object = DictOf(*arrays);
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> SourceNames() {
  std::vector<std::string> names;
  for (const Source& source : Sources()) names.push_back(source.name);
  return names;
}

absl::StatusOr<Content> ReadContent(const std::string& path,
                                    const ReadOptions& options) {
  Content content;
  content.path = path;
  PD_ASSIGN_OR_RETURN(const auto checkpoint, FindRunCheckpoint(path));
  if (checkpoint.has_value()) {
    content.stem = fs::path(path).filename().string();
    PD_RETURN_IF_ERROR(InOneLine(ReadRun(*checkpoint, &content)));
    return content;
  }
  if (IsFolder(path)) {
    content.stem = fs::path(path).filename().string();
    PD_RETURN_IF_ERROR(InOneLine(ReadFolder(options, &content)));
    return content;
  }
  if (path != kStandardStream && !Exists(path)) {
    for (const char* ending : {".pdmodel", ".pdparams", ".pdopt"})
      if (const auto file = absl::StrCat(path, ending); Exists(file)) {
        content.path = file;
        break;
      }
  }
  PD_RETURN_IF_ERROR(InOneLine(ReadOneFile(options, &content)));
  return content;
}

}  // namespace pd
