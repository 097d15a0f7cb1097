// SPDX-License-Identifier: Apache-2.0
#include "cmd/convert_options.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/convert_upgrade.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write.h"
#include "libcore/model/name_patterns.h"

namespace pd {
namespace {

std::vector<std::string> Description() {
  return {
      "Reads parameters, models and nested objects in any form that "
      "PaddlePaddle writes or has written, or its neighbours, and writes them "
      "in another one, bit for bit. `--inspect` says what FILE is and holds.",
      "IN is a file, a model with the parameters beside it (`.pdmodel` or its "
      "prefix), a folder with `__model__` and a joint file or a file for each "
      "variable, a folder of variables alone, a run directory of `pd-train`, "
      "`RUN@best` or `RUN@step-N` for one of its checkpoints, or `-`, standard "
      "input. Its bytes decide what it is; `--from` overrules them. What is "
      "read: pickles of protocol 0 to 5 (`.pdparams`, `.pdopt`, nested "
      "objects, `.pdiparams.info`; big parameters in slices are joined), "
      "programs, tensor files, joint files, SelectedRows, `.npy`, `.npz`, "
      "`.safetensors`, `.onnx` models, networks of Caffe (a `.prototxt` with "
      "the `.caffemodel` of its name, or the only one, beside it; a "
      "`.caffemodel` whose network `--program` names), networks of PyTorch's "
      "`torch.export.save` (`.pt2` of PyTorch 2.15 and 2.2 to 2.5), weights of "
      "its `torch.jit.save` (`pd-export` writes the network), of TensorFlow "
      "(a SavedModel's folder, with the signature `serving_default` or only "
      "one; a frozen `.pb`; the `.index` of a checkpoint), of Keras 2 and 3 "
      "(`.h5`, `.keras`; of other HDF5 files the datasets, by their paths) and "
      "of TFLite (`.tflite`), and what PyTorch's `torch.save` writes (`.pt`, "
      "`.pth`: tensors and nested objects of them, read as data; a file that "
      "calls anything else is refused).",
      "OUT is a file, a folder, a prefix or `-`, standard output. The ending "
      "of its name decides what is written, or `--to` does: `pdparams` "
      "(`pdopt`, `pickle`), `paddle` (`.pdmodel` and `.pdiparams`), "
      "`paddle-static` (`.pdmodel`, `.pdparams`, `.pdopt`), `paddle-legacy` (a "
      "folder, one file for each variable), `paddle-legacy-joint`, `pdmodel` "
      "(the program alone), `pdiparams`, `vars` (a folder, one file for each "
      "tensor), `tensor`, `selected-rows`, `info`, `npy`, `npz`, "
      "`safetensors`, `text` (the program for people).",
      "npz and safetensors take lists, tuples, dicts in dicts, numbers, "
      "strings and LoD along as JSON (the array `__pdkit_tree__`, the metadata "
      "`pdkit.tree`), and pd-convert makes the same object of them again; "
      "there an array's name is the way to it, `model/fc.weight` or `list/0`. "
      "An npz of a plain state dict holds its arrays and nothing else, so the "
      "order of the names and the table of parameter names are lost. What a "
      "form cannot hold is an error that names it; `--arrays-only` leaves it "
      "out. When values are written with a program, missing and misshapen ones "
      "are named.",
      "With `--upgrade`, operator types of PaddlePaddle 1.x that a model uses "
      "are replaced by those of 2.x, which newer versions need: `lookup_table` "
      "by `squeeze2` and `lookup_table_v2`. An op that cannot be replaced "
      "stays, with a warning that says the reason. A Python source, whose name "
      "ends in `.py`, gets the names and arguments of 2.0 where these do the "
      "same, and a warning with the place of any other call. `pd-upgrade`(7) "
      "has the tables.",
      "On the way tensors are averaged with those of other files, kept, "
      "dropped, renamed, transposed and set, in this order. A pattern is a "
      "name in which `*` stands for any characters, and must match a tensor. "
      "Of a nested object the tensors alone are written then, called by the "
      "way to them (`model/fc.weight`).",
      "Of an inspected file every tensor is shown with shape, element type, "
      "bytes, smallest and largest value, mean, and the numbers of NaN and "
      "infinite elements, which the other three leave out. FILE is read to its "
      "end, so a damaged one is an error; `--no-stats` reads only what "
      "describes the values. Beyond what can be converted, FILE may be an idx "
      "file (also gzip), an image, or the folder of a checkpoint. Of "
      "tar, TensorBoard, zip, JSON and other texts only the kind is said.",
      "Of a program it also prints inputs, outputs, the number of ops by type, "
      "and FLOPs: two for each multiply-add of convolutions and matrix "
      "products, which are `conv2d`, `depthwise_conv2d`, `matmul`, "
      "`matmul_v2`, `mul`, `fc`, their fused and transposed forms and their "
      "gradients. Other ops count nothing. The batch is 1 where the program "
      "leaves it open, any other open extent of an input 224, which is said; "
      "`pd-export --input` sets them. With `-v` the program follows as text. "
      "When the program has an op that pdkit does not know, it is shown, and "
      "that is an error.",
      "With `--format json` one object is printed. Of an inspection it has "
      "`kind`, `content`, "
      "`producer`, `details` and `tensors`, a list of objects with `name`, "
      "`shape`, `dtype`, `bytes`, `min`, `max`, `mean`, `nan` and `inf`; for "
      "models `inputs` and `outputs`, lists of `name`, `shape`, `dtype`, "
      "`ops`, "
      "`flops`, `flops_by_op` and `flops_assume`; where they are not empty "
      "`entries` of a "
      "pickle that are no tensors, and `notes`. What is not known is null. Of "
      "a conversion it has `in`, `files`, `tensors`, `bytes` and `left_out`."};
}

Manual ConvertManual() {
  Manual m;
  m.name = "pd-convert";
  m.summary = "convert model and parameter files, or say what is in one";
  m.synopsis = {
      "IN OUT [--from FORM] [--to FORM] [--protocol N] [--program FILE] "
      "[--names WHICH] [--arrays-only] [--upgrade] [--average FILE]... "
      "[--keep PATTERN]... "
      "[--drop PATTERN]... [--rename A=>B]... [--transpose PATTERN]... [--set "
      "NAME=VALUE]...",
      "--inspect FILE [--no-stats] [--format text|json] [-v]"};
  m.description = Description();
  m.examples = {
      {"What is in a model",
       "pd-convert --inspect testdata/formats/models/inference.pdmodel"},
      {"The model as text",
       "pd-convert testdata/formats/models/inference.pdmodel - --to text | "
       "grep batch_norm"},
      {"Names of the parameters in a training checkpoint",
       "pd-convert --inspect testdata/formats/pickles/model.p4.pdparams "
       "--format json | grep -o '\"name\":\"[^\"]*\"'"},
      {"Parameters for PyTorch or Hugging Face, and back",
       "pd-convert testdata/formats/pickles/model.p4.pdparams w.safetensors && "
       "pd-convert w.safetensors w.pdparams && "
       "cmp w.pdparams testdata/formats/pickles/model.p4.pdparams"},
      {"A network of Caffe, whose weights stand beside it",
       "pd-convert testdata/caffe/resnet.prototxt resnet.pdmodel"},
      {"A SavedModel of TensorFlow",
       "pd-convert testdata/tensorflow/convnet net.pdmodel"},
      {"A network that PyTorch has exported",
       "pd-convert testdata/torch_export/resnet.pt2 net.pdmodel"},
      {"A network that Keras has saved",
       "pd-convert testdata/keras/unet.keras net.pdmodel"},
      {"The network in a checkpoint of PyTorch's, under PaddlePaddle's names "
       "and with its layout of linear weights",
       "pd-convert testdata/formats/torch/checkpoint.pth net.pdparams --keep "
       "'model/*' --drop '*.num_batches_tracked' "
       "--rename 'model/module.*.running_mean=>*._mean' "
       "--rename 'model/module.*.running_var=>*._variance' "
       "--rename 'model/module.*=>*' --transpose '*.weight'"},
      {"The mean of the weights of two checkpoints, the biases of a head zero",
       "pd-convert net.pdparams mean.npz --average net.pdparams "
       "--set fc.bias=0"},
      {"A pattern that matches nothing is refused with the nearest name",
       "pd-convert net.pdparams x.npz --drop fc.bais", 2},
      {"A model of today as PaddlePaddle 1.x wrote it",
       "pd-convert testdata/formats/models/inference.pdmodel old --to "
       "paddle-legacy"},
      {"And back",
       "pd-convert old new.pdmodel && "
       "cmp new.pdiparams testdata/formats/models/inference.pdiparams"},
      {"For a Python 2 that reads protocol 2",
       "pd-convert testdata/formats/pickles/nested.p4.pd old.pd --protocol 2"},
      {"Other values for a model",
       "pd-convert testdata/formats/models/inference.pdiparams w.npz && "
       "pd-convert w.npz changed.pdmodel --to paddle --program "
       "testdata/formats/models/inference.pdmodel"},
      {"A model of PaddlePaddle 1.x with the operators of 2.x",
       "pd-convert testdata/upgrade/classes new2.pdmodel --upgrade && "
       "pd-eval -m new2 --feed testdata/upgrade/classes.feed.npz --expect "
       "testdata/upgrade/classes.expect.npz"},
      {"A training script of PaddlePaddle 1.x; a warning for each name that "
       "needs a look",
       "pd-convert testdata/upgrade/mnist.py mnist2.py --upgrade"},
      {"The range of the pixels of a data set",
       "pd-convert --inspect testdata/mnist/t10k-images-idx3-ubyte.gz"},
      {"A damaged file is refused with a reason",
       "pd-convert --inspect testdata/formats/malformed/npz_cut.npz", 3}};
  m.see_also = {"pd-eval 1", "pd-export 1", "pd-train 1", "pd-upgrade 7"};
  return m;
}

void BindConvert(ConvertOptions* o, OptionTable* table) {
  table->Group("Conversion");
  table->Positional({"", "IN", "what to read"}, 1, &o->in);
  table->Positional({"", "OUT", "what to write"}, 1, &o->out);
  table->Choice({"--from", "FORM", "what IN is"}, SourceNames(), &o->from);
  table->DescribeDefault("--from", "what its bytes say");
  table->Choice({"--to", "FORM", "what to write"}, TargetNames(), &o->to);
  table->DescribeDefault("--to", "what the ending of OUT says");
  table->Integer({"--protocol", "N", "of pickles that are written"}, {2, 4},
                 &o->protocol);
  table->Text(
      {"--program", "FILE",
       "a .pdmodel whose variables name the tensors of a joint file, "
       "and which is written with the values where OUT is a model; of a "
       "`.caffemodel`, the `.prototxt` of its network"},
      &o->program);
  table->DescribeDefault("--program", "the program beside IN");
  table->Choice({"--names", "WHICH",
                 "names tensors as the network's layers (`fc.weight`) or as "
                 "the program's variables (`linear_0.w_0`), where IN has both"},
                {"structured", "parameter"}, &o->names);
  table->DescribeDefault("--names", "as in IN");
  table->Switch(
      {"--arrays-only", "", "leaves out what the form written cannot hold"},
      &o->arrays_only);
  table->Switch({"--upgrade", "",
                 "replaces operator types of PaddlePaddle 1.x by those of 2.x; "
                 "of a Python source (`.py`), names below `paddle.fluid` and "
                 "the arguments of their calls, see "
                 "`pd-upgrade`(7)"},
                &o->upgrade);
  table->Group("Editing");
  table->Texts({"--average", "FILE",
                "writes the mean of IN's floating tensors and FILE's, which "
                "must be the same but for their values. May be given again"},
               &o->edits.average);
  table->Texts({"--keep", "PATTERN",
                "writes only tensors of these names: `backbone.*`. May be "
                "given again"},
               &o->edits.keep);
  table->Texts({"--drop", "PATTERN",
                "leaves tensors of these names out. May be given again"},
               &o->edits.drop);
  table->Texts({"--rename", "A=>B",
                "gives tensors other names; each `*` in B is what that of A "
                "stood for: `module.*=>*`. May be given again: the first that "
                "matches counts"},
               &o->edits.rename);
  table->Texts({"--transpose", "PATTERN",
                "transposes the matrices of these names, which are the new "
                "ones. May be given again"},
               &o->edits.transpose);
  table->Texts({"--set", "NAME=VALUE",
                "VALUE is a .npy file, whose array becomes the tensor, or a "
                "number that fills it. May be given again"},
               &o->edits.set);
  table->Group("Inspection");
  table->Text({"--inspect", "FILE", "says what FILE is and what it holds"},
              &o->inspect);
  table->Switch({"--no-stats", "", "does not look at the values"},
                &o->no_stats);
  table->TakesStream("IN", StandardStream::kInput);
  table->TakesStream("--inspect", StandardStream::kInput);
  table->TakesStream("OUT", StandardStream::kOutput);
}

constexpr absl::string_view kUpgrade = "--upgrade";
constexpr const char* kOfConversions[] = {
    "--from",        "--to",        "--protocol", "--program", "--names",
    "--arrays-only", "--upgrade",   "--average",  "--keep",    "--drop",
    "--rename",      "--transpose", "--set"};

absl::Status ValidateConvert(const ConvertOptions& options,
                             const OptionTable& table) {
  PD_RETURN_IF_ERROR(table.Needs("--no-stats", "--inspect"));
  if (!options.inspect.empty()) {
    if (!options.in.empty())
      return CommandLineError("--inspect takes the place of IN and OUT");
    for (const char* name : kOfConversions)
      if (table.Given(name))
        return CommandLineError(
            absl::StrCat(name, " is for conversions, not for --inspect"));
    return absl::OkStatus();
  }
  if (options.in.empty())
    return CommandLineError("IN and OUT are missing, or --inspect FILE");
  if (options.out.empty()) return CommandLineError("OUT is missing");
  if (IsSource(options))
    for (const char* name : kOfConversions)
      if (name != kUpgrade && table.Given(name))
        return CommandLineError(
            absl::StrCat(name, " is for models, and '", options.in.front(),
                         "' is a Python source by its name"));
  for (const std::string& text : options.edits.rename) {
    const absl::Status status = NameChange::Parse(text).status();
    if (!status.ok())
      return CommandLineError(absl::StrCat("--rename: ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace

Tool ConvertTool(ConvertOptions* options) {
  Tool tool;
  tool.manual = ConvertManual();
  tool.common = &options->common;
  tool.computes = [] { return false; };
  tool.bind = [options](OptionTable* table) { BindConvert(options, table); };
  tool.validate = [options](const OptionTable& table) {
    return ValidateConvert(*options, table);
  };
  return tool;
}

}  // namespace pd
