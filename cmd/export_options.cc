// SPDX-License-Identifier: Apache-2.0
#include "cmd/export_options.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/feed_options.h"
#include "cmd/common/plugin_option.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/optimize.h"

namespace pd {
namespace {

std::vector<Manual::Example> ExportExamples() {
  return {
      {"Train a little to have something to export",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 20 "
       "-o train.checkpoint.best.metric=acc_top1"},
      {"Write PaddlePaddle's inference form", "pd-export -m RUN -o out/lenet"},
      {"Write the checkpoint with the best result of evaluation",
       "pd-export -m RUN@best -o out/best"},
      {"Write ONNX", "pd-export -m RUN --to onnx --opset 13 -o out/lenet.onnx"},
      {"Draw the network, for example as a picture by `dot -Tsvg`",
       "pd-export -m RUN --to dot -o out/lenet.dot"},
      {"Draw a network that is not trained yet",
       "pd-export -c testdata/jobs/mlp_mnist.pbtxt --to dot -o out/mlp.dot"},
      {"A model that takes pixels and gives probabilities",
       "pd-export -m RUN --to onnx --with-transforms --with-softmax "
       "--output-name digit -o out/digits.onnx"},
      {"Fix the batch size",
       "pd-export -m RUN --to onnx --input image=1,1,28,28 -o "
       "out/lenet1.onnx"},
      {"Take bytes in place of float32",
       "pd-export -m RUN --to onnx --input image=:uint8 -o out/bytes.onnx"},
      {"See that the written model answers as the given one",
       "pd-export -m testdata/deploy/lenet --to onnx --verify "
       "testdata/deploy/lenet-feed.npz -o out/checked.onnx"},
      {"A bundle for libpd_run, and the answers of the two compared",
       "pd-export -m testdata/deploy/lenet --to bundle --verify "
       "testdata/deploy/lenet-feed.npz -o out/lenet.pdb"},
      {"The same as C++ sources that build anywhere",
       "pd-export -m testdata/deploy/lenet --to c -o out/lenet_c"},
      {"A model that answers records by itself, without its run",
       "pd-train -c testdata/jobs/regression_csv.pbtxt --out ROWS --steps 50 "
       "&& pd-export -m ROWS -o out/rows && pd-eval --predict -m out/rows "
       "testdata/friedman/eval.csv"},
      {"Both halves of an autoencoder as methods of one layer",
       "pd-export -c testdata/jobs/apps/vae/job.pbtxt --method encode=mean "
       "--method 'decode=reconstruction from mean' -o out/vae"},
      {"Fold batch norms, and see by `diff -y` or a pager what that changes",
       "pd-export -c testdata/jobs/resnet_cifar.pbtxt --optimize --dump-passes "
       "passes -o out/resnet && ! diff passes/00-original.txt "
       "passes/01-fold_batch_norms.txt"}};
}

std::vector<Manual::Entry> ExportFiles() {
  return {{"OUT.pdmodel, OUT.pdiparams, OUT.pdiparams.info",
           "What `--to paddle` writes: the form of PaddlePaddle's "
           "paddle.jit.save, which save_inference_model shares but for the "
           "last."},
          {"OUT.NAME.pdmodel, OUT.NAME.pdiparams", "The method NAME."},
          {"OUT.preprocess.pbtxt, OUT.preprocess",
           "How data become what the model is fed; without the ending of "
           "`OUT.onnx`, and in `paddle-legacy`'s folder as "
           "`preprocess.pbtxt`."},
          {"OUT/CMakeLists.txt, OUT/model.h, OUT/pd_run.h, OUT/main.cc",
           "What `--to c` writes, with the other sources beside them."},
          {"OUT/__model__",
           "What `--to paddle-legacy` writes, with a file "
           "for each parameter beside it."}};
}

Manual ExportManual() {
  Manual m;
  m.name = "pd-export";
  m.summary = "write the inference part of a model";
  m.synopsis = {
      "-m MODEL [-c JOB] [--to FORM] -o OUT [--opset N] [--input "
      "NAME=SHAPE:DTYPE]... "
      "[--fetch NAMES] [--method METHOD]... [--optimize] [--verify FILE]",
      "-c JOB [--to FORM] -o OUT [...]"};
  m.description = {
      "Takes the part of a model that answers, sets it to its evaluation form, "
      "and writes it with the parameters it needs. Without `--optimize` "
      "nothing is folded or reordered: the numbers stay those of pd-eval.",
      "A `MODEL` is a run directory of pd-train, `RUN@best` for its best "
      "checkpoint, `RUN@step-N`, or whatever else pd-eval takes. "
      "Inputs and outputs are those of the run's job or of the inference "
      "model; `--input` and `--fetch` name others. With `-c` alone it is the "
      "network of a job with its first values: for looking at it, and for "
      "timing it before it is trained.",
      "A network whose job says `quant` is written with integers and the "
      "scales "
      "of its training: `--to paddle` in PaddlePaddle's newer form "
      "(quantize_linear, int8 weights), `--to paddle-fake` and `--to "
      "paddle-legacy` in its older one (fake_quantize operators, integers held "
      "in float32), `--to onnx` with QuantizeLinear and DequantizeLinear. "
      "pd-eval computes all of PaddlePaddle's with 8-bit products.",
      "Outputs of a job's network are called as the layers that give them. "
      "The names of a classifier's classes go with the model: ONNX's metadata "
      "hold them as `classes`, a list in JSON, and `classes_output`, the "
      "output that they belong to; in PaddlePaddle's program they are the "
      "attribute `class_names` of the output's fetch operator.",
      "With `--with-transforms` the data set for evaluation says what is done, "
      "else the one for training. Programs have operators for to_tensor, "
      "normalize and transpose of pictures, for Resize (bilinear) and "
      "CenterCrop where they say the extents of the result, and for mean, std "
      "and log1p of columns. A model that resizes takes pictures of any size, "
      "those of one batch of the same. Other transforms and interpolations "
      "have no operator that gives the same pixels, and texts none at all: "
      "words, classes and hash_buckets are numbered before the model is fed. "
      "What stays outside is logged, with the reason.",
      "An ONNX model is written at exactly the opset asked for, after ONNX's "
      "own checker and shape inference have passed it. Operators that have no "
      "counterpart there, or only in a later opset, are an error that names "
      "all of them with their places. Loops and branches become Loop and If "
      "with their blocks, lists of tensors sequences.",
      "Beside `OUT.pdmodel` and `OUT.pdiparams` stands, as of "
      "paddle.jit.save, a table of the parameters, so that paddle.jit.load "
      "knows which are trained. A `--method` is a function of the loaded "
      "layer by its name: the halves of an autoencoder, the steps of a "
      "decoder. pd-eval opens it as `OUT.NAME`.",
      "What the network is fed is made from data as the job's data set for "
      "evaluation says, else the one for training. So that a model needs no "
      "run, this part of the job stands beside it, in `OUT.preprocess.pbtxt`, "
      "with the words and classes that the run has learned in "
      "`OUT.preprocess`: pd-eval `--predict` reads records by it, wherever the "
      "files are. It is written for the inputs and outputs of the job's "
      "network, and taken along from a model that has it; with "
      "`--with-transforms`, where the model takes what the data hold, it is "
      "not.",
      "`--to bundle` writes one small file for libpd_run, a library of ten "
      "functions in C that needs no other: `pkg-config pdkit-run` finds it, "
      "and "
      "libcore/bundle/README.md has a whole program. `--to c` writes the same "
      "as a folder of C++17 sources, with the kernels that the model needs and "
      "a CMakeLists.txt, for any compiler and processor. Both fold batch norms "
      "into convolutions. Operators that they have no kernel for are an error "
      "that names all of them.",
      "`--to dot` draws the model for Graphviz, for example `dot -Tsvg`: "
      "operators with their main attributes, shapes along the edges, the "
      "layers of a run as frames. A program that names no outputs, such as a "
      "training program, is drawn whole."};
  m.files = ExportFiles();
  m.answer_no = "`--verify` found that the written model answers otherwise";
  m.examples = ExportExamples();
  m.see_also = {"pd-eval 1", "pd-train 1"};
  return m;
}

void BindExport(ExportOptions* o, OptionTable* table) {
  table->Group("Model");
  table->Text({"-m,--model,--model_file", "MODEL", "what to export"},
              &o->model);
  BindParamsFile(table, &o->params_file);
  table->DescribeDefault("--model", "the network of JOB, untrained");
  table->Text({"-c,--config", "JOB",
               "the job whose network takes the parameters of a `.pdparams`, "
               "or of a run in place of its own job"},
              &o->config);
  table->Texts({"--input", "NAME[=[SHAPE][:DTYPE]]",
                "an input, with another shape and element type: "
                "`x=-1,3,224,224`, `x=:uint8`, `x=-1,64:int32`; -1 is known "
                "when it runs, and a cast leads to what the network takes"},
               &o->inputs);
  table->DescribeDefault("--input", "the model's inputs as they are");
  table->Text({"--fetch", "NAMES",
               "the outputs, separated by commas: variables, or layers of the "
               "job"},
              &o->fetch);
  table->DescribeDefault("--fetch", "the model's outputs");
  table->Texts({"--method", "NAME=OUTPUTS[ from INPUTS]",
                "a function of the saved layer beside `forward`, with `--to "
                "paddle`: its outputs, and where it does not begin with the "
                "model's inputs those that it takes, as `--fetch` names them"},
               &o->methods);
  table->Text({"--output-name", "NAME[,NAME]...",
               "what the outputs are called, in their order"},
              &o->output_name);
  table->DescribeDefault("--output-name",
                         "the layers of the job that give them");
  table->Switch({"--with-transforms", "",
                 "puts what the job's data do to a record in front of the "
                 "network, as far as there are operators: the model takes "
                 "pixels (uint8, channels last) and unscaled columns"},
                &o->with_transforms);
  table->Switch({"--with-softmax", "",
                 "puts a softmax behind a classifier's scores, or a sigmoid "
                 "behind a score of yes or no"},
                &o->with_softmax);
  table->Group("Result");
  table->Choice(
      {"--to", "FORM", "what to write"},
      {"paddle", "paddle-fake", "paddle-legacy", "onnx", "bundle", "c", "dot"},
      &o->to);
  table->Text(
      {"-o,--out", "OUT",
       "prefix, folder or file to write; with `--to onnx`, `--to bundle` "
       "and `--to dot`, which are one file"},
      &o->out);
  table->Require("--out");
  table->Integer({"--opset", "N", "the ONNX operator set"},
                 {kMinOnnxOpset, kMaxOnnxOpset}, &o->opset);
  table->Switch({"--optimize", "",
                 "folds batch norms into convolutions, which changes the last "
                 "bits of the answers"},
                &o->optimize);
  table->Text({"--verify", "FILE",
               "reads the written model back, runs it and the given one on "
               "these npz inputs and compares; ONNX Runtime runs an ONNX model "
               "too where the machine has it, and libpd_run runs a bundle"},
              &o->verify);
  table->TakesStream("--config", StandardStream::kInput);
  table->TakesStream("--verify", StandardStream::kInput);
  table->TakesStream("--out", StandardStream::kOutput);
}

}  // namespace

Tool ExportTool(ExportOptions* options) {
  Tool tool;
  tool.manual = ExportManual();
  tool.common = &options->common;
  tool.computes = [options] {
    return options->optimize || !options->verify.empty();
  };
  tool.bind = [options](OptionTable* table) {
    BindExport(options, table);
    BindPassOptions(ModelPassNames(), table, &options->passes);
    BindPluginOption(table, &options->common);
  };
  tool.validate = [options](const OptionTable& table) -> absl::Status {
    if (!table.Given("--model") && !table.Given("--config"))
      return CommandLineError("say with -m MODEL or -c JOB what to export");
    if (options->to == "dot")
      for (const char* name :
           {"--output-name", "--with-transforms", "--with-softmax"})
        if (table.Given(name))
          return CommandLineError(absl::StrCat(
              name, " changes the model; --to dot draws it as it is"));
    PD_RETURN_IF_ERROR(table.Needs("--params_file", "--model"));
    PD_RETURN_IF_ERROR(table.Needs("--disable-pass", "--optimize"));
    PD_RETURN_IF_ERROR(table.Needs("--dump-passes", "--optimize"));
    if (table.Given("--opset") && options->to != "onnx")
      return CommandLineError("--opset is for --to onnx");
    if (options->to == "dot" &&
        (table.Given("--verify") || options->common.json()))
      return CommandLineError(
          "--to dot writes a drawing: --verify and --format json do not go "
          "with it");
    if (table.Given("--verify") && options->to == "c")
      return CommandLineError(
          "--to c writes sources, which --verify cannot run; --to bundle "
          "writes "
          "the same model");
    if (options->out == kStandardStream && options->to != "dot" &&
        options->to != "onnx" && options->to != "bundle")
      return CommandLineError(absl::StrCat(
          "--to ", options->to,
          " writes several files; --to onnx, --to bundle and --to dot write "
          "one, which standard output takes"));
    if (table.Given("--verify") && options->out == kStandardStream)
      return CommandLineError(
          "--verify reads the model back, and standard output cannot be read");
    if (table.Given("--method") && options->to != "paddle")
      return CommandLineError(absl::StrCat(
          "--method is for --to paddle; a model of --to ", options->to,
          " has one function: --fetch and --input choose it"));
    return absl::OkStatus();
  };
  return tool;
}

}  // namespace pd
