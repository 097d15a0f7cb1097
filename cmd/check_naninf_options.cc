// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_options.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/feed_options.h"
#include "cmd/common/plugin_option.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_guard.h"
#include "libcore/exec/nan_rules.h"

namespace pd {
namespace {

Manual CheckNaninfManual() {
  Manual m;
  m.name = "pd-check-naninf";
  m.summary = "find the first NaN or Inf of a training, a model or a file";
  m.synopsis = {
      "-c JOB [-o PATH=VALUE]... [--steps N] [--init-from MODEL] [--dump DIR]",
      "--bisect RUN [--steps N] [--dump DIR]",
      "-m MODEL [-c JOB] --feed FILE [--lod FILE] [--startup FILE] [--fetch "
      "NAMES] [--dump DIR]",
      "FILE..."};
  m.description = {
      "With a job it trains as pd-train does, writes nothing, and looks at "
      "every number that an operator makes: outputs, gradients, parameters, "
      "the optimizer's state, tensors in the blocks of loops and branches, the "
      "evaluation set. At the first NaN or Inf the step is undone and run "
      "again operator by operator, so that the report names the operator as "
      "the program has it, also where a pass has joined several: operator, "
      "tensor, numbers of NaN, Inf and finite elements and the first of each "
      "in the form of PaddlePaddle's manual; then step, layer, range of each "
      "input, whether the inputs were clean, the index of the first bad "
      "element, the records of the batch, and the likely cause.",
      "With a model and `--feed` it runs the model on the arrays of an npz "
      "file. With files it looks at every tensor of them: checkpoints, runs, "
      "`.pdparams`, `.pdopt`, `.pdiparams` with the program beside it, npz, "
      "safetensors, ONNX.",
      "float16, bfloat16, float32, float64 and complex numbers are looked at, "
      "integers are not; denormal numbers are good. Of selected rows the value "
      "is looked at. Constants of -inf that a program makes on purpose, and "
      "masks computed from them, are let pass; `--allow-inf` lets others "
      "pass.",
      "pd-train and pd-eval do the same with `--check-nan-inf` or "
      "`FLAGS_check_nan_inf=1`."};
  m.environment = {
      {"PADDLE_INF_NAN_SKIP_OP", "As `--skip-op`, where that is not given."},
      {"PADDLE_INF_NAN_SKIP_ROLE",
       "As `--skip-role`, where that is not given."},
      {"PADDLE_INF_NAN_SKIP_VAR", "As `--skip-var`, where that is not given."}};
  m.files = {
      {"DIR/op.pdmodel",
       "What `--dump` writes: a program of the operator alone, its inputs as "
       "feeds."},
      {"DIR/inputs.npz, DIR/inputs.lod.json",
       "What it read; the lengths where those are sequences."},
      {"DIR/outputs.npz", "What it wrote."}};
  m.answer_no = "there is NaN or Inf";
  m.stops_by_signal = true;
  m.examples = {
      {"Is this training sound?",
       "pd-check-naninf -c testdata/jobs/lenet_mnist.pbtxt --steps 20"},
      {"Find the operator that a learning rate drives to infinity, and keep it",
       "pd-check-naninf -c testdata/jobs/lenet_mnist.pbtxt --steps 20 -o "
       "optimizer.lr.linear_warmup.end_lr=1e31 -o "
       "optimizer.lr.linear_warmup.start_lr=1e30 --dump culprit",
       1},
      {"Run that operator again, alone",
       "pd-eval -m culprit/op.pdmodel --feed culprit/inputs.npz --expect "
       "culprit/outputs.npz --equal-nan"},
      {"Look at every fifth step only, and say how gradients grow",
       "pd-check-naninf -c testdata/jobs/lenet_mnist.pbtxt --steps 20 --watch "
       "gradients,loss --every 5"},
      {"Would it survive float16?",
       "pd-check-naninf -c testdata/jobs/lenet_mnist.pbtxt --steps 2 --half"},
      {"Train with the check, then look at what was saved",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 20 "
       "--check-nan-inf && pd-check-naninf RUN"},
      {"Go on from the newest good checkpoint of a run to the step that spoils "
       "it",
       "pd-check-naninf --bisect RUN --steps 30"}};
  m.see_also = {"pd-convert 1", "pd-eval 1", "pd-train 1", "pd-job 5"};
  return m;
}

void BindWhat(CheckNaninfOptions* o, OptionTable* table) {
  table->Group("Training");
  table->Text({"-c,--config", "JOB",
               "the job to train; with -m, whose network takes the parameters "
               "of a `.pdparams`"},
              &o->config);
  table->Texts({"-o", "PATH=VALUE", "changes a field of the job"},
               &o->overrides);
  table->Integer({"--steps", "N",
                  "stops after N steps, counted from the start of training"},
                 {1, INT64_MAX}, &o->steps);
  table->DescribeDefault("--steps", "as many as the job says");
  table->Text(
      {"--init-from", "MODEL",
       "takes parameters by name from a model, a run (`RUN`, `RUN@best`, "
       "`RUN@step-N`) or a `.pdparams`"},
      &o->init_from);
  table->Switch({"--bisect", "",
                 "FILE is a run: trains on from its newest checkpoint without "
                 "NaN and Inf, or from its start, and writes nothing there"},
                &o->bisect);
  table->Group("Model");
  table->Text(
      {"-m,--model,--model_file", "MODEL", "the model to run, see `pd-eval`"},
      &o->model);
  BindParamsFile(table, &o->params_file);
  BindFeedOptions(table, &o->feed, &o->lod);
  BindStartupOption(table, &o->startup);
  table->Text({"--fetch", "NAMES", "variables to compute, separated by commas"},
              &o->fetch);
  table->DescribeDefault("--fetch", "the model's outputs; else everything");
  table->Group("Files");
  table->Positional({"", "FILE", "what to look through"}, 1 << 20, &o->files);
  table->TakesStream("--config", StandardStream::kInput);
  table->TakesStream("FILE", StandardStream::kInput);
}

void BindHow(CheckNaninfOptions* o, OptionTable* table) {
  table->Group("What is looked at");
  table->Texts({"--watch", "KINDS",
                "confines the steps that are looked at to these kinds of "
                "values, separated by commas, and says how they grow. A bad "
                "one is traced back to the first bad value of any kind"},
               &o->watch);
  table->Suggest("--watch", WatchKinds());
  table->Integer({"--every", "N",
                  "looks at every Nth step; what is bad then is traced back to "
                  "the very step"},
                 {1, INT64_MAX}, &o->every);
  table->Text({"--skip-op", "OP,...",
               "operators whose outputs are let pass, by their whole type"},
              &o->skip_ops);
  table->Text({"--skip-role", "ROLE,...",
               "roles whose operators are let pass: forward, backward, "
               "optimize, rpc, dist, lrsched, loss, default"},
              &o->skip_roles);
  table->Text(
      {"--skip-var", "OP:VAR,...",
       "outputs of OP that are let pass, where VAR is any part of their "
       "name"},
      &o->skip_variables);
  table->Text(
      {"--allow-inf", "OP[:VAR],...",
       "outputs that may hold infinities, such as masks; OP may be `*`. "
       "NaN is not let pass"},
      &o->allow_infinities);
  table->Group("Report");
  table->Switch({"--half", "",
                 "adds the range of each tensor, and how much of it would "
                 "overflow or vanish in float16 and bfloat16"},
                &o->half);
  table->Text({"--dump", "DIR",
               "saves the operator that was found as a program of its own, "
               "with its inputs, for pd-eval"},
              &o->dump);
}

absl::Status ValidateCheck(const CheckNaninfOptions& o,
                           const OptionTable& table) {
  if (o.bisect && o.files.size() != 1)
    return CommandLineError("--bisect wants one RUN");
  const bool job = !o.config.empty() && o.model.empty();
  const int modes =
      (job ? 1 : 0) + (o.model.empty() ? 0 : 1) + (o.files.empty() ? 0 : 1);
  if (modes == 0)
    return CommandLineError(
        "say what to look at: -c JOB, -m MODEL --feed FILE, or FILE...");
  if (modes > 1)
    return CommandLineError(
        "-c JOB, -m MODEL and FILE exclude each other: one at a time");
  if (!o.model.empty() && o.feed.empty())
    return CommandLineError("--feed FILE is missing: what to run MODEL on");
  for (const char* name :
       {"--params_file", "--feed", "--lod", "--startup", "--fetch"})
    PD_RETURN_IF_ERROR(table.Needs(name, "--model"));
  PD_RETURN_IF_ERROR(table.Needs("-o", "--config"));
  PD_RETURN_IF_ERROR(table.Needs("--init-from", "--config"));
  const bool trains = job || o.bisect;
  for (const char* name : {"--steps", "--watch", "--every", "--init-from"})
    if (table.Given(name) && !trains)
      return CommandLineError(absl::StrCat(name, " is for a training"));
  const bool runs = trains || !o.model.empty();
  for (const char* name :
       {"--dump", "--skip-op", "--skip-role", "--skip-var", "--allow-inf"})
    if (table.Given(name) && !runs)
      return CommandLineError(
          absl::StrCat(name, " is for operators; files have none"));
  if (table.Given("--skip-role"))
    PD_RETURN_IF_ERROR(UsageError(
        Annotate(NanRules().SkipRoles(o.skip_roles), "--skip-role")));
  if (table.Given("--skip-var"))
    PD_RETURN_IF_ERROR(UsageError(
        Annotate(NanRules().SkipVariables(o.skip_variables), "--skip-var")));
  return absl::OkStatus();
}

}  // namespace

Tool CheckNaninfTool(CheckNaninfOptions* options) {
  Tool tool;
  tool.manual = CheckNaninfManual();
  tool.common = &options->common;
  tool.takes_gpu = true;
  tool.computes = [options] {
    return options->files.empty() || options->bisect;
  };
  tool.bind = [options](OptionTable* table) {
    BindWhat(options, table);
    BindHow(options, table);
    BindPluginOption(table, &options->common);
  };
  tool.validate = [options](const OptionTable& table) {
    return ValidateCheck(*options, table);
  };
  return tool;
}

}  // namespace pd
