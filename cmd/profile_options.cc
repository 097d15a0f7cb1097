// SPDX-License-Identifier: Apache-2.0
#include "cmd/profile_options.h"

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/feed_options.h"
#include "cmd/common/link_option.h"
#include "cmd/common/plugin_option.h"
#include "libcore/base/status_macros.h"
#include "libcore/profile/scheduler.h"
#include "libcore/profile/summary.h"

namespace pd {
namespace {

std::vector<Manual::Example> ProfileExamples() {
  return {
      {"See where the time of a training step goes",
       "pd-profile -c testdata/jobs/lenet_mnist.pbtxt"},
      {"Keep the trace for a browser, and a page to look at",
       "pd-profile -c testdata/jobs/lenet_mnist.pbtxt --scheduler 3,14 "
       "--trace before.json --html profile.html"},
      {"What a step costs, undisturbed",
       "pd-profile -c testdata/jobs/lenet_mnist.pbtxt --timer-only --steps 50"},
      {"Print the tables of a trace again, the slowest call first",
       "pd-profile --load before.json --sorted-by CPUMax --op-detail "
       "--time-unit us"},
      {"Which implementations run, and why others do not",
       "pd-profile --load before.json --explain"},
      {"Guard the speed in CI; a quiet machine needs no such wide limit",
       "pd-profile -q -c testdata/jobs/lenet_mnist.pbtxt --scheduler 3,14 "
       "--trace after.pb.gz && pd-profile --load before.json --load "
       "after.pb.gz --fail-if-slower 1000%"},
      {"Two processes, and what hides their communication",
       "pd-profile -c testdata/fleet/shards/picture.pbtxt --processes 2 "
       "--scheduler 1,4 --roofline 0 --trace ranks.json"},
      {"What 64 machines would do",
       "pd-profile -c testdata/fleet/shards/picture.pbtxt --steps 10 "
       "--simulate nodes=64,link=10Gb,latency=50us"},
      {"Two cycles of two steps after a warm-up",
       "pd-profile -c testdata/jobs/lenet_mnist.pbtxt --scheduler "
       "closed=1,ready=1,record=2,repeat=2 --trace cycle.json && "
       "ls cycle-1.json cycle-2.json"}};
}

Manual ProfileManual() {
  Manual m;
  m.name = "pd-profile";
  m.summary = "show where the time and the memory of a job or a model go";
  m.synopsis = {
      "-c JOB [-o PATH=VALUE]... [--scheduler STEPS] [--trace FILE] "
      "[--html FILE]",
      "-m MODEL [-c JOB] --feed FILE [--lod FILE] [--scheduler STEPS] "
      "[--trace FILE]",
      "-c JOB --timer-only [--steps N]",
      "-c JOB --simulate nodes=N,link=RATE[,latency=TIME][,overhead=TIME]",
      "--load FILE [--load FILE] [--fail-if-slower PERCENT]"};
  m.description = {
      "Runs the training steps of a job over its data, or a model on the "
      "arrays "
      "of an npz file, records what every op did, and prints PaddlePaddle's "
      "summaries: Device, Overview, Model, Distribution, Operator, Kernel, "
      "Memory Manipulation, UserDefined and Perf Summary; those without a row "
      "are left out. Nothing is saved and the job's own results are not "
      "touched.",
      "Behind them stand what the steps' time was spent on and what nothing "
      "accounts for, the speed of each op beside what this machine can do at "
      "most (its roofline, measured before the run), the tensors that are in "
      "memory when the plan needs the most, counters of the processor and "
      "energy where the machine shows them, and advice with its evidence.",
      "Steps are counted from 0. `--scheduler 3,14` records steps 3 to 13, as "
      "PaddlePaddle does; `closed=1,ready=1,record=4,repeat=2,skip_first=0` "
      "passes over `skip_first` steps and then goes `repeat` times (0: to the "
      "end) through cycles of so many steps that are left alone, that warm up, "
      "and that are recorded. Each cycle gives tables and a trace of its own. "
      "All tables are about the same steps: those recorded; with "
      "`--timer-only`, all but the first ten, or the second half where there "
      "are fewer than twenty.",
      "Of a GPU, NVIDIA's CUPTI tells single kernels, copies and clears. Each "
      "stream is a row of the trace; grid, block, registers and shared memory "
      "are arguments of a kernel's event, and an arrow comes to it from the "
      "call that started it, inside an operator. Where libcupti is missing or "
      "may not record, one line says why, and the GPU's time is shown by "
      "operators: between two events around each.",
      "Several processes (`--processes`, or those that mpirun and others have "
      "started) profile a job with `distributed` together, as pd-train trains "
      "it. The trace has the rows of all ranks, one of them the buckets of "
      "gradients that travel; the tables are rank 0's, and Ranks says of each "
      "what the Distribution Summary does: the time in which numbers travel, "
      "in which operators compute, and in which both are so, which is hidden. "
      "Rows of several machines lie by these machines' clocks.",
      "`--simulate` measures steps of such a job in this process and predicts "
      "those of up to N processes, each on a machine of its own, from when "
      "each bucket is full, the time of its update, and the figures of a link "
      "in the LogGP model: latency, overhead of each message, bytes a second. "
      "libcore/dist/step_model.h has the formula. With more processes than "
      "shards each computes one, and batches grow.",
      "Given two traces, `--load` prints for each op the median of its time in "
      "a step, the change, and a mark where the steps differ by more than "
      "chance.",
      "Programs that use libpd add ranges of their own by `pd::RecordEvent` of "
      "`libcore/trace/recorder.h`; they come under UserDefined."};
  m.files = {{"FILE.json",
              "A trace in Chrome's Trace Event Format, which "
              "`chrome://tracing` and Perfetto open."},
             {"FILE.pb",
              "The same in the protobuf of PaddlePaddle's profiler, which "
              "paddle.profiler.load_profiler_result reads."},
             {"FILE.json.gz, FILE.pb.gz", "Either, compressed by gzip."},
             {"FILE-N.json",
              "The trace of cycle N, from 1, where the scheduler has "
              "several; likewise for `--html`."}};
  m.answer_no = "the second trace is slower than `--fail-if-slower` allows";
  m.stops_by_signal = true;
  m.examples = ProfileExamples();
  m.environment = ProcessEnvironment();
  m.see_also = {"pd-eval 1", "pd-train 1", "pd-job 5"};
  return m;
}

void BindWork(ProfileOptions* o, OptionTable* table) {
  table->Group("Work");
  table->Text({"-c,--config", "JOB",
               "the job whose training steps are profiled; with -m, whose "
               "network takes the parameters of a `.pdparams`"},
              &o->config);
  table->Texts({"-o", "PATH=VALUE", "changes a field of the job"},
               &o->overrides);
  table->Text({"-m,--model,--model_file", "MODEL",
               "a model to run instead, see `pd-eval`"},
              &o->model);
  BindParamsFile(table, &o->params_file);
  BindFeedOptions(table, &o->feed, &o->lod);
  table->Integer({"--steps", "N", "runs N steps at most"}, {1, 1000000000},
                 &o->steps);
  table->DescribeDefault("--steps",
                         "as many as the scheduler needs; with --timer-only "
                         "or a scheduler without end, 100");
  table->TakesStream("--config", StandardStream::kInput);
}

void BindRecording(ProfileOptions* o, OptionTable* table) {
  table->Group("Recording");
  table->Text({"--scheduler", "STEPS",
               "which steps are recorded: `START,END`, or "
               "`closed=N,ready=N,record=N,repeat=N,skip_first=N`"},
              &o->scheduler);
  table->Switch({"--timer-only", "",
                 "records no events: prints what a step costs, which it hardly "
                 "disturbs"},
                &o->timer_only);
  table->Text({"--trace", "FILE",
               "writes the trace: Chrome's JSON, protobuf where the name ends "
               "in .pb; gzip where it ends in .gz"},
              &o->trace);
  table->Text(
      {"--html", "FILE",
       "writes a page with timeline, layers, roofline and memory, which "
       "needs no network"},
      &o->html);
  table->Integer({"--buffer", "EVENTS",
                  "what each thread's ring buffer holds; when it is full the "
                  "oldest are lost and counted"},
                 {64, 1 << 26}, &o->buffer);
  table->Text({"--counters", "NAMES",
               "counters of the processor or the kernel by their libpfm4 "
               "names, separated by commas"},
              &o->counters);
  table->DescribeDefault("--counters",
                         "cycles, instructions, cache and branch misses, page "
                         "faults, context switches, migrations");
  table->Real({"--roofline", "SECONDS",
               "how long the machine's peak and memory are measured before the "
               "run; 0: not at all"},
              {0, 60}, &o->roofline);
  table->TakesStream("--trace", StandardStream::kOutput);
  table->TakesStream("--html", StandardStream::kOutput);
}

void BindTables(ProfileOptions* o, OptionTable* table) {
  table->Group("Tables");
  table->Choice({"--sorted-by", "KEY", "what rows are sorted by"},
                SortKeyNames(), &o->sorted_by);
  table->Switch({"--op-detail", "", "shows below each op what it consists of"},
                &o->op_detail);
  table->Switch({"--thread-sep", "", "does not merge threads"}, &o->thread_sep);
  table->Choice({"--time-unit", "UNIT", "of the tables"},
                {"s", "ms", "us", "ns"}, &o->time_unit);
  table->Switch({"--explain", "",
                 "says which implementation runs each op, and why those that "
                 "were asked before refused"},
                &o->explain);
  table->Group("Traces");
  table->Texts({"--load", "FILE",
                "runs nothing: reads a trace that was written before, or "
                "PaddlePaddle's .pb; given twice, compares the two"},
               &o->load);
  table->Text({"--fail-if-slower", "PERCENT",
               "exits 1 when the second trace's step is slower by more, and "
               "not by chance: `5%`"},
              &o->fail_if_slower);
  table->TakesStream("--load", StandardStream::kInput);
  table->Group("Prediction");
  table->Text({"--simulate", "SPEC",
               "predicts the step in several processes: "
               "`nodes=1024,link=100Gb,latency=5us`, bits a second and times "
               "with their units; overhead is 10us, as of TCP, unless given"},
              &o->simulate);
}

absl::Status ValidateLoad(const ProfileOptions& o, const OptionTable& table) {
  for (const char* other :
       {"--config", "-o", "--model", "--params_file", "--feed", "--lod",
        "--steps", "--scheduler", "--timer-only", "--buffer", "--counters",
        "--roofline", "--disable-pass", "--dump-passes", "--processes"})
    if (table.Given(other))
      return CommandLineError(
          absl::StrCat(other, " does not go with --load, which runs nothing"));
  if (o.load.size() > 2)
    return CommandLineError("--load takes two traces at most");
  if (o.load.size() == 1) return absl::OkStatus();
  for (const char* other : {"--trace", "--html", "--explain", "--op-detail",
                            "--thread-sep", "--sorted-by"})
    if (table.Given(other))
      return CommandLineError(
          absl::StrCat(other, " is for one trace, not for comparing two"));
  return absl::OkStatus();
}

absl::Status ValidateSimulation(const ProfileOptions& o,
                                const OptionTable& table) {
  PD_RETURN_IF_ERROR(ParseSimulation(o.simulate).status());
  if (o.config.empty()) return CommandLineError("-c JOB is missing");
  for (const char* other :
       {"--model", "--feed", "--scheduler", "--timer-only", "--trace", "--html",
        "--buffer", "--counters", "--roofline", "--sorted-by", "--op-detail",
        "--thread-sep", "--explain", "--load", "--processes"})
    if (table.Given(other))
      return CommandLineError(
          absl::StrCat(other, " does not go with --simulate"));
  return absl::OkStatus();
}

absl::Status ValidateProfile(const ProfileOptions& o,
                             const OptionTable& table) {
  if (!o.fail_if_slower.empty() && o.load.size() != 2)
    return CommandLineError("--fail-if-slower needs two traces: --load twice");
  if (!o.simulate.empty()) return ValidateSimulation(o, table);
  if (!o.load.empty()) return ValidateLoad(o, table);
  if (o.config.empty() && o.model.empty())
    return CommandLineError(
        "say what to profile: -c JOB, -m MODEL, or --load FILE");
  if (!o.model.empty()) {
    if (o.feed.empty()) return CommandLineError("--feed FILE is missing");
    if (table.Given("-o"))
      return CommandLineError("-o changes a job that is trained: leave out -m");
  }
  PD_RETURN_IF_ERROR(table.Needs("--feed", "--model"));
  PD_RETURN_IF_ERROR(table.Needs("--params_file", "--model"));
  PD_RETURN_IF_ERROR(table.Needs("--lod", "--feed"));
  if (!o.timer_only) return Scheduler::Parse(o.scheduler).status();
  for (const char* other :
       {"--scheduler", "--trace", "--html", "--buffer", "--counters",
        "--roofline", "--sorted-by", "--op-detail", "--thread-sep",
        "--time-unit", "--explain"})
    if (table.Given(other))
      return CommandLineError(
          absl::StrCat(other, " does not go with --timer-only"));
  return absl::OkStatus();
}

}  // namespace

Tool ProfileTool(ProfileOptions* options) {
  Tool tool;
  tool.manual = ProfileManual();
  tool.common = &options->common;
  tool.takes_gpu = true;
  tool.computes = [options] { return options->load.empty(); };
  tool.processes = &options->processes;
  tool.bind = [options](OptionTable* table) {
    BindWork(options, table);
    BindRecording(options, table);
    BindTables(options, table);
    BindPassOptions(PassNames(), table, &options->passes);
    BindPluginOption(table, &options->common);
  };
  tool.validate = [options](const OptionTable& table) {
    return ValidateProfile(*options, table);
  };
  return tool;
}

}  // namespace pd
