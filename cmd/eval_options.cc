// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/feed_options.h"
#include "cmd/common/plugin_option.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::vector<std::string> EvalDescription() {
  return {
      "A `MODEL` is a prefix or file of `.pdmodel` with `.pdiparams` or "
      "`.pdparams`, a folder with `__model__`, a run directory of pd-train "
      "(its newest checkpoint), `RUN@best` or `RUN@step-N` for another of its "
      "checkpoints, a checkpoint's folder, an `.onnx` file, a `.pt2` of "
      "PyTorch's "
      "`torch.export.save`, an archive of its `torch.jit.save` (traced, or "
      "with `--feed`, which says the shapes), an `.h5` or `.keras` of Keras, a "
      "`.tflite`, a "
      "`.prototxt` of "
      "Caffe with its `.caffemodel` beside it, a SavedModel (its folder) or a "
      "frozen `.pb` of TensorFlow, or, with `-c`, "
      "parameters of the network that the job describes: a `.pdparams` of "
      "PaddlePaddle's, an `.npz`, a `.safetensors`, a folder of a file for "
      "each variable.",
      "With a job it prints loss and metrics of the job's evaluation set and, "
      "for classes, a confusion table. For a run directory the job may be left "
      "out: the run's own is taken. Several processes (`--processes`, "
      "`mpirun`) "
      "share the batches and print what one would.",
      "With `--feed` it runs the program on the arrays of an npz file, and "
      "writes or compares what it gives. Any variable of the program may be "
      "fetched, such as `x@GRAD`. `--grad` differentiates the program first: "
      "it gives `NAME@GRAD` for each name in `--wrt`, the gradient of the sum "
      "of output times cotangent, where cotangents are arrays of the feed. "
      "Given again, it differentiates what is there then, the gradients before "
      "it included. In a program that has gradients already, new ones are "
      "variables with PaddlePaddle's names for them, `grad/grad/x@GRAD`, and "
      "the next `grad/grad/grad/x@GRAD`; such a result is also called "
      "`NAME@GRAD` unless another result of the command is. `--jvp` gives "
      "`OUT@JVP`, how an output changes along tangents, which `--wrt` names, "
      "`--jacobian` `OUT@JACOBIAN` [M, N] for M elements of the output and N "
      "of all names in `--wrt` together, and `--hessian` `OUT@HESSIAN` [N, N]: "
      "what paddle.incubate.autograd makes, zeros included where an output "
      "does not depend on a name, which `--grad` refuses. A matrix takes a run "
      "for each row.",
      "With `--predict` it answers new records: rows of tables, lines of text "
      "or JSON, pictures, arrays. They need no labels. The run's job says how "
      "records are read: its evaluation set's fields, words and transforms, "
      "with the classes and columns that the run has learned; an exported "
      "model has that beside it, in `OUT.preprocess.pbtxt`, and for one that "
      "has not `-c RUN/job.pbtxt` says it. A record's answer is a class with "
      "its probability, a number, a text, or a "
      "picture of classes, as the job's label is. Streams are read and "
      "answered piece by piece.",
      "With `--serve` it answers requests over HTTP in the KServe v2 protocol: "
      "JSON, or tensors as bytes; an input of pictures also takes their files "
      "as BYTES, where the model has its preprocessing with it. Each `-m` is "
      "an inference model or a run under the name of its file or `NAME`, a "
      "folder whose folders `1`, `2`, ... are "
      "versions of one, or a folder of models. The newest version answers, and "
      "`/versions/N` addresses another. New folders are loaded while requests "
      "are answered; SIGHUP also loads files that have changed. Requests whose "
      "inputs agree but for the first axis are joined where a trial has shown "
      "that this changes no answer. `/metrics` is for Prometheus. SIGTERM ends "
      "it when all that came is answered."};
}

Manual EvalManual() {
  Manual m;
  m.name = "pd-eval";
  m.summary = "evaluate a model, or run it on given inputs";
  m.synopsis = {
      "-m MODEL -c JOB [-o PATH=VALUE]... [--require NAME>=NUMBER]... "
      "[--out FILE] [--expect FILE]",
      "-m MODEL [-c JOB] --feed FILE [--lod FILE] [--startup FILE] [--fetch "
      "NAMES] "
      "[--out FILE] "
      "[--expect FILE]",
      "-m MODEL --feed FILE --grad OUT=COTANGENT --wrt NAMES "
      "[--grad OUT=COTANGENT --wrt NAMES]... [--out FILE] [--expect FILE]",
      "-m MODEL --feed FILE --jvp OUT --wrt NAME=TANGENT [--out FILE] "
      "[--expect FILE]",
      "-m MODEL --feed FILE --jacobian OUT --wrt NAMES [--batched] "
      "[--out FILE] [--expect FILE]",
      "-m MODEL --feed FILE --hessian OUT --wrt NAMES [--batched] "
      "[--out FILE] [--expect FILE]",
      "[--predict] -m MODEL [-c JOB] [--out FILE] [FILE]...",
      "-m MODEL --bench SECONDS [--batch N] [--shape NAME=SHAPE]...",
      "--serve HOST:PORT -m [NAME=]MODEL..."};
  m.description = EvalDescription();
  m.environment = ProcessEnvironment();
  m.answer_no =
      "an array differs from what `--expect` says, or a result from what "
      "`--require` says";
  m.examples = {
      {"Train a little to have something to evaluate",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 50"},
      {"Print metrics of the job's evaluation set",
       "pd-eval -m RUN -c testdata/jobs/lenet_mnist.pbtxt"},
      {"The same for scripts", "pd-eval -m RUN --format json -q"},
      {"The same in two processes, which share the batches",
       "pd-eval -m RUN -q --processes 2"},
      {"Fail when the model is not good enough",
       "pd-eval -m RUN -q --require 'acc_top1>=0.5' --require 'loss<2'"},
      {"Keep the predictions of all records",
       "pd-eval -m RUN --out predictions.npz"},
      {"Check that they are still the same",
       "pd-eval -m RUN --expect predictions.npz --rtol 0 --atol 0"},
      {"The same in bfloat16, which has 8 significant bits",
       "pd-eval -m RUN --amp O1 --amp-dtype bfloat16 --expect predictions.npz "
       "--rtol 0.05 --atol 0.3"},
      {"The same without a pass, to the last few bits, with the program that "
       "runs then as text",
       "pd-eval -m RUN --disable-pass fuse_conv_bias_act --dump-passes passes "
       "--expect predictions.npz --rtol 1e-4 --atol 1e-4 && "
       "grep -w conv2d passes/*-fuse_gemm_epilogue.txt"},
      {"Judge one of the run's checkpoints", "pd-eval -m RUN@step-50"},
      {"Predict: the three likeliest classes of each record, a line of JSON "
       "each",
       "pd-eval --predict -m RUN --top 3 --out answers.jsonl"},
      {"What a layer gives of each record, here LeNet's last but one",
       "pd-eval --predict -m RUN --fetch fc2 --out features.npz"},
      {"Answer rows of a table that come through a pipe",
       "pd-train -c testdata/jobs/regression_csv.pbtxt --out ROWS --steps 50 "
       "&& head -n 5 testdata/friedman/eval.csv | pd-eval --predict -m ROWS "
       "-"}};
  m.examples.push_back(
      {"Serve an exported model, ask it which inputs it has, and end it",
       "pd-export -m RUN --to paddle -o digits && "
       "{ pd-eval --serve 127.0.0.1:0 -m digits.pdmodel >address & } && "
       "until url=$(grep -o 'http.*' address); do sleep 0.1; done; "
       "curl -s -f \"$url/v2/models/digits\" && kill $! && wait $!"});
  m.examples.push_back(
      {"A model whose two files have names of their own",
       "mv digits.pdmodel program && mv digits.pdiparams weights && "
       "pd-eval --model_file program --params_file weights --bench 0.1"});
  m.see_also = {"pd-export 1", "pd-train 1", "pd-job 5"};
  return m;
}

void BindPrediction(EvalOptions* o, OptionTable* table) {
  table->Group("Prediction");
  table->Switch({"--predict", "",
                 "answers records without labels: each FILE, folder of "
                 "pictures, or standard input; without any, those of the job's "
                 "evaluation set"},
                &o->predict);
  table->Positional({"", "FILE", "what to predict; --predict may be left out"},
                    1 << 20, &o->sources);
  table->Choice({"--from", "FORM", "what each FILE holds; text: a text a line"},
                {"csv", "tsv", "jsonl", "libsvm", "text", "pictures", "npz"},
                &o->from);
  table->DescribeDefault("--from",
                         "as the name ends, else as the job's data set");
  table->Integer({"--top", "K", "gives the K likeliest classes of a record"},
                 {1, 1000}, &o->top);
  table->Text({"--masks", "FOLDER",
               "writes a picture of the classes of a record's pixels"},
              &o->masks);
  table->DescribeDefault("--masks", "beside --out, for segmentation");
}

void BindDerivatives(EvalOptions* o, OptionTable* table) {
  table->Group("Gradients");
  table->Texts(
      {"--grad", "OUT[=COTANGENT][,...]",
       "differentiates these outputs; cotangents are arrays of --feed, ones "
       "where none is named. Given again, it also takes the results of those "
       "before it"},
      &o->grads);
  table->Texts({"--wrt", "NAME[,...]",
                "by these variables; for each --grad, or once for all. With "
                "--jvp, NAME=TANGENT names an array of --feed in the place of "
                "ones"},
               &o->wrt);
  table->Text({"--jvp", "OUT[,...]",
               "gives how these outputs change along the tangents"},
              &o->jvp);
  table->Text({"--jacobian", "OUT[,...]",
               "gives the derivatives of each element of these outputs by each "
               "element of --wrt"},
              &o->jacobian);
  table->Text({"--hessian", "OUT",
               "gives the second derivatives of an output of one element"},
              &o->hessian);
  table->Switch(
      {"--batched", "",
       "for --jacobian and --hessian, a matrix for each record: first "
       "axes count records, which do not depend on each other"},
      &o->batched);
}

void BindEval(EvalOptions* o, OptionTable* table) {
  table->Group("Model");
  table->Texts({"-m,--model,--model_file", "MODEL",
                "what to run; with --serve also NAME=MODEL, a folder of "
                "versions or of models, and given again"},
               &o->models);
  table->Require("--model");
  BindParamsFile(table, &o->params_file);
  BindStartupOption(table, &o->startup);
  table->Group("Data");
  table->Text(
      {"-c,--config", "JOB",
       "the job whose evaluation set is run; with --feed or --bench, whose "
       "network takes the parameters of a `.pdparams`"},
      &o->config);
  table->Texts({"-o", "PATH=VALUE", "changes a field of the job"},
               &o->overrides);
  BindFeedOptions(table, &o->feed, &o->lod);
  table->Group("Results");
  table->Text({"--fetch", "NAMES",
               "layers or variables to give, with --feed or --predict, "
               "separated by commas"},
              &o->fetch);
  table->DescribeDefault("--fetch",
                         "the model's outputs; else the names in --expect");
  table->Text(
      {"--out", "FILE",
       "writes the results as npz; with --predict by its ending `.csv`, "
       "`.json`, `.jsonl` or `.npz`"},
      &o->out);
  table->DescribeDefault("--out",
                         "with --predict CSV on standard output, JSON lines "
                         "with --format json");
  table->Text({"--report", "FILE",
               "with a job, writes a page of curves, predictions and the job; "
               "of a run directory also what its log holds"},
              &o->report);
  table->Text({"--expect", "FILE",
               "compares the results with the arrays of an npz file"},
              &o->expect);
  table->Real({"--rtol", "R", "relative tolerance of --expect"}, {}, &o->rtol);
  table->Real({"--atol", "A", "absolute tolerance of --expect"}, {}, &o->atol);
  table->Switch({"--equal-nan", "", "for --expect, NaN equals NaN"},
                &o->equal_nan);
  table->Switch({"--check-nan-inf", "",
                 "stops at the first operator that makes NaN or Inf, says all "
                 "that is known of it, and exits 1"},
                &o->check_nan_inf);
  table->Texts({"--require", "NAME>=NUMBER",
                "with a job, exits 1 when this result is another; also >, <=, "
                "< and ==. May be given again"},
               &o->requirements);
  BindPrediction(o, table);
  BindDerivatives(o, table);
  table->Group("Benchmark");
  table->Real({"--bench", "SECONDS",
               "times inference on random data and prints one JSON line; -v: "
               "and what each kind of op took"},
              {0, 86400}, &o->bench);
  table->Integer({"--batch", "N", "records in a batch of --bench"},
                 {1, 1 << 24}, &o->batch);
  table->Texts({"--shape", "NAME=SHAPE",
                "shape of an input of --bench: `x=1,3,224,224`"},
               &o->shapes);
  BindServeOptions(table, &o->serve);
  table->TakesStream("--config", StandardStream::kInput);
  table->TakesStream("FILE", StandardStream::kInput);
  table->TakesStream("--out", StandardStream::kOutput);
  table->TakesStream("--report", StandardStream::kOutput);
}

absl::Status ValidateDerivatives(const OptionTable& table,
                                 const EvalOptions& options) {
  const std::vector<std::string> kinds = {"--grad", "--jvp", "--jacobian",
                                          "--hessian"};
  PD_RETURN_IF_ERROR(table.AtMostOne(kinds));
  bool any = false;
  for (const std::string& kind : kinds) {
    any = any || table.Given(kind);
    for (const char* needed : {"--wrt", "--feed"})
      PD_RETURN_IF_ERROR(table.Needs(kind, needed));
    for (const char* other : {"--amp", "--fetch"})
      PD_RETURN_IF_ERROR(table.AtMostOne({other, kind}));
  }
  if (table.Given("--wrt") && !any)
    return CommandLineError(
        "--wrt is for --grad, --jvp, --jacobian and --hessian");
  if (options.batched && !table.Given("--jacobian") &&
      !table.Given("--hessian"))
    return CommandLineError("--batched is for --jacobian and --hessian");
  if (options.wrt.size() > 1 && !table.Given("--grad"))
    return CommandLineError("--wrt is given twice; several are for --grad");
  return absl::OkStatus();
}

// Files are predicted; a job among them is one whose -c was forgotten.
absl::Status ValidateSources(const OptionTable& table,
                             const std::vector<std::string>& sources) {
  for (const std::string& source : sources) {
    if (absl::EndsWith(source, ".pbtxt"))
      return CommandLineError(
          absl::StrCat("'", source, "' is a job, not a record: -c ", source));
    for (const char* other :
         {"--feed", "--bench", "--serve", "--report", "--require", "--expect"})
      if (table.Given(other))
        return CommandLineError(absl::StrCat(
            "'", source, "': a FILE is for --predict, not for ", other));
  }
  return absl::OkStatus();
}

absl::Status ValidateEval(const OptionTable& table,
                          const EvalOptions& options) {
  if (options.models.size() > 1 && options.serve.address.empty())
    return CommandLineError("--model is given twice; several are for --serve");
  if (table.Given("--params_file") && table.Given("--serve"))
    return CommandLineError(
        "--params_file is for one model; --serve looks for the parameters "
        "beside each");
  PD_RETURN_IF_ERROR(ValidateServe(table, options.serve));
  PD_RETURN_IF_ERROR(ValidateSources(table, options.sources));
  PD_RETURN_IF_ERROR(table.AtMostOne({"--feed", "--bench", "--predict"}));
  for (const char* other : {"--report", "--require", "--expect"})
    PD_RETURN_IF_ERROR(table.AtMostOne({"--predict", other}));
  for (const char* other : {"--top", "--masks"})
    PD_RETURN_IF_ERROR(table.AtMostOne({"--fetch", other}));
  if (table.Given("--fetch") && !table.Given("--feed") && !options.predict)
    return CommandLineError("--fetch is for --feed and --predict");
  for (const char* own : {"--from", "--top", "--masks"})
    if (!options.predict) PD_RETURN_IF_ERROR(table.Needs(own, "--predict"));
  PD_RETURN_IF_ERROR(ValidateAmp(table));
  if (table.Given("--report") &&
      (table.Given("--feed") || table.Given("--bench")))
    return CommandLineError("--report shows a job's evaluation set");
  if (table.Given("--require") &&
      (table.Given("--feed") || table.Given("--bench")))
    return CommandLineError("--require is for results of a job's metrics");
  PD_RETURN_IF_ERROR(ValidateDerivatives(table, options));
  PD_RETURN_IF_ERROR(table.Needs("--lod", "--feed"));
  PD_RETURN_IF_ERROR(table.Needs("--batch", "--bench"));
  PD_RETURN_IF_ERROR(table.Needs("--shape", "--bench"));
  PD_RETURN_IF_ERROR(table.Needs("--rtol", "--expect"));
  PD_RETURN_IF_ERROR(table.Needs("--atol", "--expect"));
  return table.Needs("--equal-nan", "--expect");
}

}  // namespace

Tool EvalTool(EvalOptions* options) {
  Tool tool;
  tool.manual = EvalManual();
  tool.common = &options->common;
  tool.takes_gpu = true;
  tool.processes = &options->processes;
  tool.bind = [options](OptionTable* table) {
    BindEval(options, table);
    BindAmpOptions(table, &options->amp);
    BindPassOptions(PassNames(), table, &options->passes);
    BindPluginOption(table, &options->common);
  };
  tool.validate = [options](const OptionTable& table) {
    options->predict = options->predict || !options->sources.empty();
    return ValidateEval(table, *options);
  };
  return tool;
}

}  // namespace pd
