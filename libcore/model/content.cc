// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/content.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/caffe_file.h"
#include "formats/keras_file.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "formats/tensorflow_file.h"
#include "formats/tflite.h"
#include "formats/torch.h"
#include "formats/torch_export.h"
#include "libcore/base/error.h"
#include "libcore/base/file_target.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/caffe_graph.h"
#include "libcore/deploy/keras_graph.h"
#include "libcore/deploy/tensorflow_graph.h"
#include "libcore/deploy/tflite_graph.h"
#include "libcore/deploy/torch_graph.h"
#include "libcore/model/model_files.h"
#include "libcore/model/saved_model.h"
#include "libcore/model/tree.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

// One kind of file: bytes of the content into its other members.
using Read = absl::Status(const ReadOptions& options, Content* out);

absl::Status ReadPickleObject(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->object, ParsePickle(out->bytes, options.alignment));
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
absl::StatusOr<std::vector<std::string>> NamesFor(const ReadOptions& options,
                                                  size_t count, Content* out) {
  const std::string from =
      options.program.empty() ? ProgramBeside(out->path) : options.program;
  absl::StatusOr<ProgramDesc> program =
      NotFound("no program beside it gives the tensors their names");
  if (!from.empty()) program = ReadProgram(from);
  if (!program.ok() && !options.program.empty()) return program.status();
  out->unnamed = program.status();
  if (program.ok()) {
    std::vector<std::string> names = PersistableTensors(*program);
    if (names.size() == count) {
      out->named_by = *std::move(program);
      return names;
    }
    out->unnamed =
        InvalidArgument("'%s' has %d parameters; the file holds %d tensors",
                        from, names.size(), count);
  }
  std::vector<std::string> names;
  const size_t digits = absl::StrCat(count).size();
  for (size_t i = 0; i < count; ++i)
    names.push_back(absl::StrFormat("tensor_%0*d", digits, i));
  return names;
}

absl::Status ReadStreamAs(bool joint, const ReadOptions& options,
                          Content* out) {
  PD_ASSIGN_OR_RETURN(std::vector<Array> arrays,
                      ParseTensorList(out->bytes, options.alignment));
  joint |= arrays.size() != 1 || absl::EndsWith(out->path, ".pdiparams") ||
           absl::EndsWith(out->path, "__params__") || !options.program.empty();
  if (!joint) {
    out->object.value = std::move(arrays[0]);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const auto names, NamesFor(options, arrays.size(), out));
  PickleDict dict;
  for (size_t i = 0; i < arrays.size(); ++i)
    dict.Add(names[i], PickleValue{std::move(arrays[i])});
  out->object.value = std::move(dict);
  return absl::OkStatus();
}

absl::Status ReadStream(const ReadOptions& options, Content* out) {
  return ReadStreamAs(false, options, out);
}

absl::Status ReadJointStream(const ReadOptions& options, Content* out) {
  return ReadStreamAs(true, options, out);
}

// The tree that the arrays belong to, as pd-convert wrote it.
absl::Status ReadTree(absl::string_view json, const NamedArrays& arrays,
                      Content* out) {
  PD_ASSIGN_OR_RETURN(out->object, TreeFromJson(json, arrays));
  if (arrays.size() == 1) out->stem = arrays.begin()->first;
  return absl::OkStatus();
}

absl::Status ReadNpzObject(const ReadOptions& options, Content* out) {
  if (!options.whole) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(NamedArrays arrays, ParseNpz(out->bytes));
  const auto side = arrays.extract(std::string(kNpzSideName));
  if (side.empty()) {
    out->object = DictOf(arrays);
    return absl::OkStatus();
  }
  const Array& text = side.mapped();
  if (text.dtype != DType::kUInt8)
    return DataLoss("'%s' is no text", kNpzSideName);
  return ReadTree({text.data<char>(), text.size_bytes()}, arrays, out);
}

absl::Status ReadSafetensorsObject(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(Safetensors content,
                      ParseSafetensors(out->bytes, options.alignment));
  out->metadata = std::move(content.metadata);
  const auto side = out->metadata.find(std::string(kMetadataSideName));
  if (options.whole && side != out->metadata.end())
    return ReadTree(side->second,
                    NamedArrays(content.tensors.begin(), content.tensors.end()),
                    out);
  PickleDict dict;
  for (auto& [name, array] : content.tensors)
    dict.Add(name, PickleValue{std::move(array)});
  out->object.value = std::move(dict);
  return absl::OkStatus();
}

absl::Status ReadTorchObject(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->object, ParseTorch(out->bytes, options.alignment));
  return absl::OkStatus();
}

absl::Status ReadOnnxObject(const ReadOptions&, Content* out) {
  const std::string folder = fs::path(out->file).parent_path().string();
  PD_ASSIGN_OR_RETURN(
      out->onnx, ParseOnnx(out->bytes.view(), folder.empty() ? "." : folder));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

// Caffe keeps a network as text and its weights in another file; the graph of
// both is as one of ONNX.
absl::Status TakeCaffe(const CaffeNet& net, const CaffeNet* weights,
                       Content* out) {
  PD_ASSIGN_OR_RETURN(out->onnx, CaffeAsOnnx(net, weights));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadCaffeModel(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(const CaffeNet net, ParseCaffeModel(out->bytes.view()));
  if (options.program.empty()) {
    const absl::Status whole = TakeCaffe(net, nullptr, out);
    if (whole.ok()) return whole;
    LogWarning("'%s': only its weights are read: %s", out->file,
               whole.message());
    out->object = DictOf(CaffeWeights(net));
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const FileBytes text, ReadFile(options.program));
  PD_ASSIGN_OR_RETURN(const CaffeNet layers,
                      OfFile(options.program, ParseCaffeText(text.view())));
  return TakeCaffe(layers, &net, out);
}

absl::Status ReadCaffeText(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(const CaffeNet net, ParseCaffeText(out->bytes.view()));
  std::string path = options.params;
  if (path.empty()) {
    PD_ASSIGN_OR_RETURN(path, CaffeModelBeside(out->file));
  }
  if (path.empty()) return TakeCaffe(net, nullptr, out);
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(path));
  PD_ASSIGN_OR_RETURN(const CaffeNet weights,
                      OfFile(path, ParseCaffeModel(bytes.view())));
  return TakeCaffe(net, &weights, out);
}

absl::Status ReadTorchExport(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const TorchExport exported, ParseTorchExport(out->bytes));
  PD_ASSIGN_OR_RETURN(out->onnx, TorchAsOnnx(exported));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadTorchScript(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(out->script, ParseTorchScript(out->bytes));
  out->object = DictOf(TorchScriptWeights(*out->script));
  return absl::OkStatus();
}

absl::Status ReadTensorflow(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const TfGraph graph,
                      ParseTensorflowGraph(out->bytes.view()));
  PD_ASSIGN_OR_RETURN(out->onnx, TensorflowAsOnnx(graph));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status TakeKeras(const KerasFile& keras, Content* out) {
  PD_ASSIGN_OR_RETURN(out->onnx, KerasAsOnnx(keras));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadSaved(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(out->onnx, ReadSavedModel(out->file, out->bytes));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadBundle(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const NamedArrays tensors,
                      ReadTensorBundle(out->file, out->bytes));
  out->object = DictOf(tensors);
  return absl::OkStatus();
}

absl::Status ReadKeras(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const KerasFile keras, ParseKeras(out->bytes));
  return TakeKeras(keras, out);
}

// A network of Keras, or the datasets of any other HDF5 file.
absl::Status ReadHdf5(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const KerasFile keras, ParseKerasHdf5(out->bytes));
  if (keras.model.has_value()) return TakeKeras(keras, out);
  out->object = DictOf(keras.arrays);
  return absl::OkStatus();
}

absl::Status ReadTflite(const ReadOptions&, Content* out) {
  PD_ASSIGN_OR_RETURN(const TfliteFile tflite, ParseTflite(out->bytes));
  PD_ASSIGN_OR_RETURN(out->onnx, TfliteAsOnnx(tflite));
  out->object = DictOf(out->onnx->graph.initializers);
  return absl::OkStatus();
}

absl::Status ReadModel(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->program, ParseProgram(out->bytes.view()));
  PD_ASSIGN_OR_RETURN(
      FoundParams found,
      options.params.empty()
          ? FindParams(out->file, *out->program, options.alignment)
          : ReadParams(options.params, *out->program, options.alignment));
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

absl::Status ReadRows(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->rows,
                      ParseSelectedRows(out->bytes, options.alignment));
  return absl::OkStatus();
}

absl::Status ReadNpyObject(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->object.value,
                      ParseNpy(out->bytes, options.alignment));
  return absl::OkStatus();
}

struct Source {
  const char* name;
  FileKind kind;
  Read* read;
};

// The first source of a kind is that of files whose bytes say the kind.
constexpr Source kSources[] = {
    {"pickle", FileKind::kPickle, ReadPickleObject},
    {"pdparams", FileKind::kPickle, ReadPickleObject},
    {"pdmodel", FileKind::kPdModel, ReadModel},
    {"tensor", FileKind::kTensorStream, ReadStream},
    {"pdiparams", FileKind::kTensorStream, ReadJointStream},
    {"selected-rows", FileKind::kSelectedRows, ReadRows},
    {"npy", FileKind::kNpy, ReadNpyObject},
    {"npz", FileKind::kNpz, ReadNpzObject},
    {"safetensors", FileKind::kSafetensors, ReadSafetensorsObject},
    {"onnx", FileKind::kOnnx, ReadOnnxObject},
    {"torch", FileKind::kTorch, ReadTorchObject},
    {"torch-export", FileKind::kTorchExport, ReadTorchExport},
    {"torchscript", FileKind::kTorchScript, ReadTorchScript},
    {"keras", FileKind::kKeras, ReadKeras},
    {"hdf5", FileKind::kHdf5, ReadHdf5},
    {"tflite", FileKind::kTflite, ReadTflite},
    {"caffemodel", FileKind::kCaffeModel, ReadCaffeModel},
    {"prototxt", FileKind::kCaffeText, ReadCaffeText},
    {"tensorflow", FileKind::kTensorflow, ReadTensorflow},
    {"saved-model", FileKind::kSavedModel, ReadSaved},
    {"tensor-bundle", FileKind::kTensorBundle, ReadBundle},
};

absl::Status OpenFile(const ReadOptions& options, Content* out) {
  PD_ASSIGN_OR_RETURN(out->bytes, ReadFile(out->file));
  out->stem = fs::path(out->file).stem().string();
  const FileFormat& format = DetectFormat(out->bytes.view(), out->file);
  out->kind = format.kind;
  out->format = std::string(format.name);
  for (const Source& source : kSources) {
    if (options.from.empty() ? source.kind != out->kind
                             : source.name != options.from)
      continue;
    out->kind = source.kind;
    if (!options.params.empty() && out->kind != FileKind::kPdModel &&
        out->kind != FileKind::kCaffeText)
      return InvalidArgument(
          "'%s' is of kind '%s', whose parameters lie in it; only a program "
          "takes those of '%s'",
          out->file, out->format, options.params);
    return OfFile(out->file, source.read(options, out));
  }
  return absl::OkStatus();
}

absl::Status OpenCheckpoint(const ReadOptions& options, Content* out) {
  if (!options.params.empty())
    return InvalidArgument(
        "'%s' is a checkpoint, which has its parameters; only a program takes "
        "those of '%s'",
        out->path, options.params);
  PD_ASSIGN_OR_RETURN(Checkpoint checkpoint,
                      ReadRunCheckpoint(*out->checkpoint));
  out->kind = FileKind::kPdModel;
  out->state = std::move(checkpoint.state);
  out->program = std::move(checkpoint.program);
  out->state_files = true;
  NamedArrays values = std::move(checkpoint.params);
  values.merge(checkpoint.opt);
  out->object = DictOf(values);
  return absl::OkStatus();
}

absl::Status OpenFolder(const ReadOptions& options, Content* out) {
  if (std::string saved = SavedModelIn(out->path); !saved.empty()) {
    out->form = Content::Form::kFolder;
    out->file = std::move(saved);
    return OpenFile(options, out);
  }
  const auto program = ProgramInFolder(out->path);
  if (program.ok()) {
    out->form = Content::Form::kFolder;
    out->file = *program;
    return OpenFile(options, out);
  }
  if (!absl::IsNotFound(program.status())) return program.status();
  out->form = Content::Form::kTensorFolder;
  out->kind = FileKind::kTensorStream;
  auto arrays = ReadTensorFolder(out->path, options.alignment);
  if (!arrays.ok())
    return absl::Status(
        absl::StatusCode::kNotFound,
        absl::StrCat("folder '", out->path,
                     "' is no model: it has neither '__model__' nor 'latest', "
                     "and is no folder of tensors: ",
                     arrays.status().message()));
  out->object = DictOf(*arrays);
  return absl::OkStatus();
}

// A prefix comes before a folder of its name: a model that was exported as RUN
// stands beside the folder RUN of its training, which RUN/ and RUN@best name.
absl::Status Open(const std::string& argument, const ReadOptions& options,
                  Content* out) {
  const bool there = argument == kStandardStream || Exists(argument);
  const bool folder = IsFolder(argument);
  if (there && !folder) return OpenFile(options, out);
  const std::string model = absl::StrCat(argument, ".pdmodel");
  if (Exists(model)) {
    out->path = out->file = model;
    return OpenFile(options, out);
  }
  PD_ASSIGN_OR_RETURN(out->checkpoint, FindRunCheckpoint(argument));
  if (out->checkpoint.has_value()) {
    out->form = Content::Form::kCheckpoint;
    out->file = out->checkpoint->folder;
    return OpenCheckpoint(options, out);
  }
  if (folder) return OpenFolder(options, out);
  for (const char* ending : {".pdparams", ".pdopt"}) {
    out->path = out->file = absl::StrCat(argument, ending);
    if (Exists(out->file)) return OpenFile(options, out);
  }
  const absl::Status missing = ReadFile(argument).status();
  if (!absl::IsNotFound(missing)) return missing;
  return NotFound("model '%s' not found: neither it nor '%s' exists", argument,
                  model);
}

}  // namespace

std::vector<std::string> SourceNames() {
  std::vector<std::string> names;
  for (const Source& source : kSources) names.push_back(source.name);
  return names;
}

absl::StatusOr<Content> OpenContent(const std::string& argument,
                                    const ReadOptions& options) {
  Content content;
  content.path = content.file = argument;
  content.stem = fs::path(argument).filename().string();
  PD_RETURN_IF_ERROR(InOneLine(Open(argument, options, &content)));
  return content;
}

absl::StatusOr<Content> ReadContent(const std::string& argument,
                                    const ReadOptions& options) {
  PD_ASSIGN_OR_RETURN(Content content, OpenContent(argument, options));
  if (std::none_of(
          std::begin(kSources), std::end(kSources),
          [&](const Source& source) { return source.kind == content.kind; }))
    return NoModel(content);
  if (content.numbered() && !absl::IsNotFound(content.unnamed))
    return Annotate(content.unnamed, absl::StrCat("'", content.path, "'"));
  return content;
}

absl::Status NoModel(const Content& content) {
  return InvalidArgument(
      "'%s' is no model: it is of kind '%s'; expected a .pdmodel file, a "
      "prefix of one, a folder with '__model__', a run directory, RUN@best, "
      "RUN@step-N, an .onnx file, a .pt2 or TorchScript archive of PyTorch, an "
      ".h5 or .keras of "
      "Keras, a .tflite, a .prototxt of Caffe, a SavedModel or frozen .pb of "
      "TensorFlow, or parameters (.pdparams, .npz, "
      ".safetensors, .pt)",
      content.path, content.format);
}

}  // namespace pd
