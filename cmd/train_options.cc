// SPDX-License-Identifier: Apache-2.0
#include "cmd/train_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/link_option.h"
#include "cmd/common/plugin_option.h"
#include "cmd/starter.h"
#include "cmd/train_preview.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/name_patterns.h"

namespace pd {
namespace {

std::vector<Manual::Example> TrainExamples() {
  return {
      {"Train LeNet on MNIST for 20 steps",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 20"},
      {"Go on for another 20 steps",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN --steps 40 "
       "--resume"},
      {"Change a field of the job",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN2 --steps 5 "
       "-o optimizer.adamw.learning_rate=0.001"},
      {"See what a job would need, without a step of it",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --dry-run"},
      {"Write a page that shows the run, and files for TensorBoard",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN3 --steps 20 "
       "--report --log tensorboard"},
      {"Time the training step for half a second",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --bench 0.5"},
      {"See what each pass makes of the training step",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --bench 0 --dump-passes "
       "passes && ! cmp passes/train-00-original.txt "
       "passes/train-01-fuse_conv_bias_act.txt"},
      {"Train without one of them",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN4 --steps 5 "
       "--disable-pass fuse_conv_bias_act"},
      {"Train a new head on weights that were trained before",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN5 --steps 5 "
       "--init-from RUN --init-skip 'fc3.*'"},
      {"Keep the checkpoint with the best result of evaluation, and judge it",
       "pd-train -c testdata/jobs/lenet_mnist.pbtxt --out RUN6 --steps 20 "
       "-o train.checkpoint.best.metric=acc_top1 "
       "-o train.evaluation.every_steps=10 && pd-eval -m RUN6@best"},
      {"Train a program that PaddlePaddle saved",
       "pd-train -c testdata/saved_training/job.pbtxt --out RUN7 && "
       "pd-eval -m RUN7 && pd-export -m RUN7 -o lenet"},
      {"Train the programs of two processes that PaddlePaddle's fleet wrote",
       "pd-train --processes 2 --program "
       "testdata/fleet/example/rank%r/main.pdmodel "
       "--startup testdata/fleet/example/rank%r/startup.pdmodel "
       "--batches testdata/fleet/example/rank%r/batches.npz --loss "
       "mean_1.tmp_0"},
      {"Train a job with shards in two processes, to the bits of one",
       "pd-train -c testdata/fleet/shards/picture.pbtxt --processes 2 --out "
       "RUN8 && pd-train -c testdata/fleet/shards/picture.pbtxt --out RUN9 && "
       "cmp RUN8/checkpoints/step-10/model.pdparams "
       "RUN9/checkpoints/step-10/model.pdparams"},
      {"Begin with a job of one's own",
       "pd-train --new tabular-regression houses && cd houses && "
       "mkdir data && cp ../testdata/friedman/*.csv data && "
       "make TRAINFLAGS='--steps 20'"},
      {"See that this installation computes", "pd-train --run-check"},
      {"Have a job made for a table",
       "pd-train --new tabular-regression friedman --data "
       "testdata/friedman/train.csv --target y && "
       "pd-train -c friedman/job.pbtxt --out friedman/run --steps 20"}};
}

Manual TrainManual() {
  Manual m;
  m.name = "pd-train";
  m.summary = "train a model from a job file or a saved program";
  m.synopsis = {
      "-c JOB --out RUN [-o PATH=VALUE]... [--resume [--weights-only]] "
      "[--init-from MODEL [--init-skip PATTERN]... [--init-rename A=>B]... "
      "[--init-transpose PATTERN]... [--init-missing WHAT]] "
      "[--steps N]",
      "-c JOB --bench SECONDS [-o PATH=VALUE]...",
      "-c JOB --summary [-o PATH=VALUE]...",
      "-c JOB --dry-run [-o PATH=VALUE]...",
      "--program FILE... [--startup FILE] [--init PREFIX] --batches FILE "
      "--loss NAMES [--fetch NAMES] [--save PREFIX]",
      "--new KIND DIR [--data PATH [--target COLUMN]]",
      "--run-check"};
  m.description = {
      "Trains the network that the job file describes, evaluates it when the "
      "job says so, and saves checkpoints that PaddlePaddle can load. The same "
      "job, seed and thread count give the same bits; a run that was stopped "
      "and resumed ends in the same bits as one that was not.",
      "A run keeps the job that it was begun with. `--resume` takes other "
      "epochs, evaluations, logs, checkpoints and another learning rate; for "
      "anything else give another `--out`, with `--init-from RUN` to begin "
      "with its weights. A finished run is never written to.",
      "Progress and messages go to standard error. The log of the training "
      "goes to `RUN/log.jsonl`, one JSON object a line.",
      "With `--program` it runs training programs that were saved elsewhere, "
      "such as PaddlePaddle's `main_program`, as they are: several in turn in "
      "every step over one set of variables. `--batches` is an npz file with "
      "an array of shape [steps, batch, ...] for each variable that is fed; "
      "a persistable variable, such as `learning_rate_0`, is set from it "
      "before each step. A job's `program` trains such a program on any data, "
      "as a run: see pd-job(5).",
      "Programs of several processes, as PaddlePaddle's fleet writes them, run "
      "in as many: `mpirun -n 2 pd-train --program rank%r.pdmodel ...`, where "
      "`%r` in a file's name is the process's rank, from 0. Their rings are "
      "those of `--startup`, or of `--ring`. Rank 0 prints and writes; a name "
      "with `%r` is written by each.",
      "Several processes train a job that says `distributed { shards: S }` "
      "together, on one machine (`--processes N`) or on many (`mpirun -n N "
      "pd-train ...`, and what the section ENVIRONMENT names), and end in the "
      "bits of one; see pd-job(5). Rank 0 writes RUN and prints.",
      "With `--new` it writes a commented job of a KIND to begin with into "
      "DIR, and a Makefile that trains, evaluates and exports; the job's first "
      "lines say what goes where. With `--data` the job is for these data and "
      "runs as it stands. `--new list` prints the kinds. Nothing is "
      "overwritten."};
  m.files = {
      {"RUN/job.pbtxt", "The job as it was run, with its overrides."},
      {"RUN/log.jsonl", "Losses and results of evaluations."},
      {"RUN/vocabularies/FIELD.txt",
       "The words or classes that the training set gave numbers, a line each: "
       "`--resume` and pd-eval number by them."},
      {"RUN/networks/",
       "The saved networks that layers `model` of the job go on from, or the "
       "programs that its `program` names."},
      {"RUN/checkpoints/step-N/",
       "A checkpoint: `model.pdmodel`, `model.pdparams`, `model.pdopt`, "
       "`experience.npz` where the network acts in environments, and "
       "`state.json` with sizes and checksums."},
      {"RUN/latest", "The name of the newest checkpoint."},
      {"RUN/report.html", "What `--report` writes."},
      {"RUN/times.jsonl",
       "Speed and memory by step, where `--log` or `--report` is given."},
      {"RUN/vdlrecords.TIME.log, RUN/vdlgraph.pdmodel, "
       "RUN/events.out.tfevents.TIME.HOST",
       "What `--log` writes: open RUN with `visualdl --logdir` or `tensorboard "
       "--logdir`."},
      {"RUN/log/workerlog.N", "The lines of rank N of `--processes`."},
      {"RUN/summary.json",
       "What the run came to: steps, times, the last evaluation, and the step "
       "with the best result, which `RUN@best` names."}};
  m.environment = ProcessEnvironment();
  m.answer_no = "a result is not what `--require` says";
  m.stops_by_signal = true;
  m.examples = TrainExamples();
  m.see_also = {"pd-convert 1", "pd-eval 1", "pd-export 1", "pd-job 5"};
  return m;
}

void BindNew(TrainOptions* o, OptionTable* table) {
  std::vector<std::string> kinds = StarterKinds();
  kinds.push_back("list");
  table->Group("A new job");
  table->Choice({"--new", "KIND",
                 "writes a job to begin with: one of " +
                     absl::StrJoin(StarterKinds(), ", ") +
                     "; `list` says what they are for"},
                kinds, &o->new_kind);
  table->Text({"--data", "PATH",
               "with --new, reads a table (.csv, or between tabs), a text, or "
               "a folder with one for each class, and writes a job for it that "
               "runs as it stands"},
              &o->new_data);
  table->Text({"--target", "COLUMN",
               "with --data, the column that is predicted: its name in the "
               "first line, or its number from 0 where no names stand there"},
              &o->new_target);
  table->Switch({"--networks", "",
                 "lists the networks that a job may use by name: "
                 "`layer { block { use: \"resnet50\" } }`"},
                &o->networks);
  table->Positional({"", "DIR", "where --new writes; made if absent"}, 1,
                    &o->new_folder);
}

void BindLook(TrainOptions* o, OptionTable* table) {
  table->Group("Looking");
  table->Texts({"--log", "KIND[,...]",
                "writes the run's numbers, pictures and graph into RUN for "
                "`visualdl` or `tensorboard`; the job's `train.log` says how "
                "often"},
               &o->logs);
  table->Suggest("--log", {"visualdl", "tensorboard"});
  table->Text({"--log-audio", "INPUT=HERTZ",
               "makes the samples of `--log` audible, 30 seconds of each: "
               "INPUT of the network is sound between -1 and 1, `[records, "
               "samples]` or `[records, channels, samples]`"},
              &o->log_audio);
  table->Switch({"--report", "",
                 "writes `RUN/report.html`, a page of curves, predictions and "
                 "the job, at each evaluation and at the end"},
                &o->report);
  table->Switch({"--summary", "",
                 "trains nothing: prints the network layer by layer, as "
                 "paddle.summary does, for one record"},
                &o->summary);
  table->Switch({"--dry-run", "",
                 "trains nothing: checks job and data and prints the memory "
                 "and the work that training would take"},
                &o->dry_run);
  table->Text(
      {"--link", "RATE[,LATENCY]",
       "with --dry-run of a job with `distributed`, trains for a second "
       "to learn what a step computes, and predicts it in several "
       "processes on such a link, as `10Gb,50us`; see pd-profile "
       "--simulate"},
      &o->link);
}

void BindChecks(TrainOptions* o, OptionTable* table) {
  table->Group("This installation");
  table->Switch({"--run-check", "",
                 "trains three steps of a small network on the CPU, on each "
                 "GPU and in two processes, holds the losses against the "
                 "formula's, and exits 1 where one does not work"},
                &o->run_check);
}

void BindPrograms(TrainOptions* o, OptionTable* table) {
  table->Group("Saved programs");
  table->Texts({"--program", "FILE", "a training program to run as it is"},
               &o->programs);
  table->TakesStream("--program", StandardStream::kInput);
  table->Text({"--startup", "FILE", "a startup program that is run first"},
              &o->startup);
  table->Text({"--init", "PREFIX",
               "initial values: `PREFIX.pdparams` and `PREFIX.pdopt`"},
              &o->init);
  table->Text({"--batches", "FILE",
               "an npz file with an array [steps, batch, ...] for each feed"},
              &o->batches);
  table->Text({"--lod", "FILE",
               "a JSON file with the sequence lengths of feeds: "
               "`[{\"word\": [[2, 3, 1]]}, ...]`, one object a step"},
              &o->lod);
  table->Text({"--loss", "NAMES",
               "variables to log, separated by commas; with as many programs, "
               "one of each"},
              &o->loss);
  table->Text(
      {"--fetch", "NAMES", "more variables to log, separated by commas"},
      &o->fetch);
  table->Text({"--save", "PREFIX",
               "writes `PREFIX.pdmodel`, `PREFIX.pdparams` and "
               "`PREFIX.pdopt` at the end"},
              &o->save);
  table->Integer({"--micro-batches", "N",
                  "the parts of a batch that the stages of a pipeline run one "
                  "after the other"},
                 {1, 1 << 20}, &o->micro_batches);
  table->DescribeDefault("--micro-batches", "what the last stage tells");
  table->TakesStream("--startup", StandardStream::kInput);
  table->TakesStream("--batches", StandardStream::kInput);
  table->TakesStream("--lod", StandardStream::kInput);
}

void BindTrain(TrainOptions* o, OptionTable* table) {
  table->Group("Job");
  table->Text({"-c,--config", "JOB", "the job file, see `pd-job`"}, &o->config);
  table->Texts({"-o", "PATH=VALUE",
                "changes a field of the job: "
                "`optimizer.adamw.learning_rate=0.001`, "
                "`model.layer[fc1].linear.out_features=64`"},
               &o->overrides);
  table->Integer({"--steps", "N",
                  "stops after N steps, counted from the start of training"},
                 {1, INT64_MAX}, &o->steps);
  table->Group("Run");
  table->Text({"--out", "RUN", "the run directory; made if absent"}, &o->out);
  table->Switch({"--resume", "",
                 "goes on from the newest checkpoint of RUN, or starts when "
                 "there is none; says what the job says otherwise than the "
                 "run's, and exits 2 where a run cannot go on with that"},
                &o->resume);
  table->Switch({"--weights-only", "",
                 "with --resume, takes only the network's weights from the "
                 "checkpoint: the optimizer starts anew"},
                &o->weights_only);
  table->Integer(
      {"--max-restarts", "N",
       "with --processes, when one fails, starts those that are left again "
       "from the newest checkpoint, up to N times: without the processes that "
       "a signal ended, so with fewer, and to the same bits"},
      {0, INT64_MAX}, &o->processes.max_restarts);
  table->Text({"--init-from", "MODEL",
               "takes parameters by name from a model, a run (`RUN`, "
               "`RUN@best`, `RUN@step-N`), a `.pdparams`, a PyTorch file or "
               "others that pd-convert reads, and says which it took; in place "
               "of the job's `init`"},
              &o->init_from);
  table->Texts({"--init-skip", "PATTERN",
                "with --init-from, parameters of these names keep their "
                "initial values: `classifier.*`. May be given again"},
               &o->init_skip);
  table->Texts({"--init-rename", "A=>B",
                "with --init-from, gives the model's parameters other names; "
                "each `*` in B is what that of A stood for: `backbone.*=>*`. "
                "May be given again: the first that matches counts"},
               &o->init_rename);
  table->Texts({"--init-transpose", "PATTERN",
                "with --init-from, transposes matrices of these names, as the "
                "network calls them: PyTorch's linear layers keep their "
                "weights so. May be given again"},
               &o->init_transpose);
  table->Choice({"--init-missing", "WHAT",
                 "with --init-from, what is done about parameters that the "
                 "model lacks and no --init-skip names: `fail` exits, `warn` "
                 "names them, `ignore` says nothing"},
                {"fail", "warn", "ignore"}, &o->init_missing);
  table->Switch({"--check-nan-inf", "",
                 "stops at the first operator that makes NaN or Inf, says all "
                 "that is known of it, and exits 1"},
                &o->check_nan_inf);
  table->Texts({"--require", "NAME>=NUMBER",
                "exits 1 when the last evaluation's result is another; also >, "
                "<=, < and ==. May be given again"},
               &o->requirements);
  BindPrograms(o, table);
  table->Group("Output");
  table->Text({"--log-json", "FILE", "writes the lines of log.jsonl there too"},
              &o->log_json);
  table->Real({"--bench", "SECONDS",
               "trains nothing: times the step on random data and prints one "
               "JSON line; -v: and what each kind of op took"},
              {0, 86400}, &o->bench);
  table->TakesStream("--config", StandardStream::kInput);
  table->TakesStream("--log-json", StandardStream::kOutput);
}

absl::Status ValidateNew(const TrainOptions& o, const OptionTable& table) {
  for (const char* other :
       {"-o", "--out", "--resume", "--init-from", "--bench", "--steps",
        "--log-json", "--log", "--log-audio", "--report", "--summary",
        "--dry-run", "--amp", "--disable-pass", "--dump-passes"})
    if (table.Given(other))
      return CommandLineError(absl::StrCat(other, " does not go with --new"));
  const bool list = o.new_kind == "list";
  if (list && !o.new_folder.empty())
    return CommandLineError("--new list takes no DIR");
  if (!list && o.new_folder.empty()) return CommandLineError("DIR is missing");
  if (o.new_data.empty()) return table.Needs("--target", "--data");
  if (!TakesData(o.new_kind))
    return CommandLineError(
        absl::StrCat("--new ", o.new_kind,
                     " takes no --data; the first lines of its job say what "
                     "goes where"));
  if (TakesTarget(o.new_kind) && o.new_target.empty())
    return CommandLineError(absl::StrCat(
        "--target COLUMN is missing: what --new ", o.new_kind, " predicts"));
  if (!TakesTarget(o.new_kind) && !o.new_target.empty())
    return CommandLineError(
        absl::StrCat("--new ", o.new_kind, " takes no --target"));
  return absl::OkStatus();
}

// A run keeps its processes' lines, once it is there.
void FileLinesIn(const std::string& run, ProcessOptions* processes) {
  if (run.empty() || !processes->log_dir.empty()) return;
  processes->log_dir = absl::StrCat(run, "/log");
  processes->log_needs = run;
}

absl::Status ValidatePrograms(const TrainOptions& o, const OptionTable& table) {
  for (const char* job : {"-o", "--out", "--resume", "--init-from", "--bench",
                          "--log", "--log-audio", "--report", "--summary",
                          "--dry-run", "--amp", "--max-restarts"})
    if (table.Given(job))
      return CommandLineError(
          absl::StrCat(job,
                       " is for a job; --program runs without one, a job's "
                       "'program' with one"));
  if (o.batches.empty()) return CommandLineError("--batches FILE is missing");
  if (o.loss.empty()) return CommandLineError("--loss NAMES is missing");
  if (o.startup.empty() && o.init.empty())
    return CommandLineError(
        "variables have no values: give --startup FILE or --init PREFIX");
  return absl::OkStatus();
}

}  // namespace

std::vector<InitialParameters> InitialSources(const TrainOptions& options) {
  if (options.init_from.empty()) return {};
  using Missing = InitialParameters::Missing;
  InitialParameters source;
  source.model = options.init_from;
  source.rename = options.init_rename;
  source.skip = options.init_skip;
  source.transpose = options.init_transpose;
  source.missing = options.init_missing == "fail"     ? Missing::kFail
                   : options.init_missing == "ignore" ? Missing::kIgnore
                                                      : Missing::kWarn;
  return {std::move(source)};
}

Tool TrainTool(TrainOptions* options) {
  Tool tool;
  tool.manual = TrainManual();
  tool.common = &options->common;
  tool.takes_gpu = true;
  tool.processes = &options->processes;
  tool.computes = [options] {
    return options->new_kind.empty() && !options->networks &&
           !options->summary && !options->run_check;
  };
  tool.bind = [options](OptionTable* table) {
    BindTrain(options, table);
    BindLook(options, table);
    BindAmpOptions(table, &options->amp);
    BindPassOptions(PassNames(), table, &options->passes);
    BindPluginOption(table, &options->common);
    BindNew(options, table);
    BindChecks(options, table);
  };
  tool.validate = [options](const OptionTable& table) -> absl::Status {
    PD_RETURN_IF_ERROR(table.Needs("--require", "--config"));
    PD_RETURN_IF_ERROR(table.Needs("--data", "--new"));
    PD_RETURN_IF_ERROR(table.Needs("--target", "--new"));
    for (const char* name :
         {"--init-skip", "--init-rename", "--init-transpose", "--init-missing"})
      PD_RETURN_IF_ERROR(table.Needs(name, "--init-from"));
    for (const std::string& text : options->init_rename) {
      const absl::Status status = NameChange::Parse(text).status();
      if (!status.ok())
        return CommandLineError(
            absl::StrCat("--init-rename: ", status.message()));
    }
    PD_RETURN_IF_ERROR(ValidateAmp(table));
    PD_RETURN_IF_ERROR(table.AtMostOne(
        {"--config", "--program", "--new", "--networks", "--run-check"}));
    if (!options->new_kind.empty()) return ValidateNew(*options, table);
    if (!options->new_folder.empty())
      return CommandLineError(absl::StrCat("unexpected argument '",
                                           options->new_folder[0],
                                           "': only --new takes a DIR"));
    if (options->networks || options->run_check) return absl::OkStatus();
    if (!options->programs.empty()) return ValidatePrograms(*options, table);
    for (const char* name :
         {"--startup", "--init", "--batches", "--lod", "--loss", "--fetch",
          "--save", "--micro-batches", "--ring"})
      PD_RETURN_IF_ERROR(table.Needs(name, "--program"));
    if (options->config.empty())
      return CommandLineError("-c JOB or --program FILE is missing");
    PD_RETURN_IF_ERROR(table.AtMostOne({"--bench", "--summary", "--dry-run"}));
    PD_RETURN_IF_ERROR(table.AtMostOne({"--summary", "--disable-pass"}));
    PD_RETURN_IF_ERROR(table.AtMostOne({"--summary", "--dump-passes"}));
    const bool looks = options->summary || options->dry_run;
    PD_RETURN_IF_ERROR(table.Needs("--log", "--out"));
    PD_RETURN_IF_ERROR(table.Needs("--report", "--out"));
    PD_RETURN_IF_ERROR(table.Needs("--log-audio", "--log"));
    PD_RETURN_IF_ERROR(LogKindsOf(options->logs).status());
    PD_RETURN_IF_ERROR(SoundInputOf(options->log_audio).status());
    if (!options->bench.has_value() && !looks && options->out.empty())
      return CommandLineError("--out RUN is missing");
    if (options->bench.has_value() && table.Given("--out"))
      return CommandLineError("--bench writes no RUN: leave out --out");
    PD_RETURN_IF_ERROR(table.Needs("--max-restarts", "--processes"));
    PD_RETURN_IF_ERROR(table.Needs("--link", "--dry-run"));
    if (!options->link.empty())
      PD_RETURN_IF_ERROR(ParseLink(options->link).status());
    FileLinesIn(options->out, &options->processes);
    PD_RETURN_IF_ERROR(table.Needs("--weights-only", "--resume"));
    PD_RETURN_IF_ERROR(table.Needs("--require", "--out"));
    if (options->resume && !options->init_from.empty())
      return CommandLineError(
          "--resume and --init-from exclude each other: a checkpoint brings "
          "its own parameters");
    return absl::OkStatus();
  };
  return tool;
}

}  // namespace pd
