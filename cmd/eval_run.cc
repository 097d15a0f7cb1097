// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/nan_report.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/processes.h"
#include "cmd/common/text.h"
#include "cmd/compare.h"
#include "cmd/eval_derivatives.h"
#include "cmd/eval_job.h"
#include "cmd/eval_predict.h"
#include "cmd/eval_serve.h"
#include "cmd/eval_session.h"
#include "cmd/run_network.h"
#include "formats/npz.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_finder.h"
#include "libcore/dist/rings.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "libcore/program/prune.h"
#include "libcore/train/bench.h"
#include "libcore/train/job_amp.h"
#include "libcore/train/preprocess.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

// The results under the names that asked for them.
NamedArrays Called(const NamedFetches& fetches, const NamedArrays& results) {
  NamedArrays called;
  for (size_t i = 0; i < fetches.names.size(); ++i)
    called[fetches.names[i]] = results.at(fetches.variables[i]);
  return called;
}

std::vector<std::string> WithoutRepeats(const std::vector<std::string>& names) {
  std::vector<std::string> once;
  for (const std::string& name : names)
    if (std::count(once.begin(), once.end(), name) == 0) once.push_back(name);
  return once;
}

// The gradients that are called otherwise than their variables.
ResultVariables VariablesOf(const EvalOptions& options,
                            const NamedFetches& fetches) {
  ResultVariables variables;
  for (size_t i = 0; !options.grads.empty() && i < fetches.names.size(); ++i) {
    const std::string& variable = fetches.variables[i];
    if (fetches.names[i] == variable) continue;
    variables[fetches.names[i]] = variable;
    LogInfo("'%s' is the program's variable '%s'", fetches.names[i], variable);
  }
  return variables;
}

absl::StatusOr<std::vector<std::string>> NamesToFetch(
    const EvalOptions& options, const LoadedModel& model,
    const NamedArrays& expected) {
  if (!options.fetch.empty()) return SplitNames(options.fetch);
  if (model.kind == LoadedModel::Kind::kInference && expected.empty())
    return model.fetches;
  std::vector<std::string> names;
  for (const auto& [name, array] : expected) names.push_back(name);
  // One of several processes may only send.
  if (names.empty() && options.common.world == nullptr)
    return CommandLineError(
        "this model names no outputs: say which variables to give with "
        "--fetch");
  return names;
}

// The finding that a run stopped at, from variables that it has not touched.
absl::StatusOr<std::optional<NanFinding>> FindAgain(
    const EvalOptions& options, const OpRegistry& registry,
    const LoadedModel& model, const NamedArrays& feeds,
    const std::vector<std::string>& fetches) {
  Session session(&registry,
                  static_cast<uint64_t>(options.common.seed.value_or(0)));
  PD_RETURN_IF_ERROR(SetVariables(model, options.startup, &session));
  PD_ASSIGN_OR_RETURN(NanQuery query,
                      QueryOf(&session, &model.program, feeds, fetches));
  query.context.seed = static_cast<uint64_t>(options.common.seed.value_or(0));
  return FindNan(query);
}

absl::Status RunFeed(const EvalOptions& options, const OpRegistry& registry,
                     LoadedModel model, const NetworkOfJob& network,
                     NamedArrays feeds, std::ostream& out) {
  NamedArrays expected;
  if (!options.expect.empty()) {
    PD_ASSIGN_OR_RETURN(expected, ReadNpz(options.expect));
  }
  Session session(&registry,
                  static_cast<uint64_t>(options.common.seed.value_or(0)));
  PrepareSession(options, &session);
  PD_RETURN_IF_ERROR(SetVariables(model, options.startup, &session));
  if (AsksMatrix(options)) {
    const auto matrices =
        ComputeMatrices(options, {registry, network, &model, &feeds}, &session);
    if (!matrices.ok())
      return ReportNan(matrices.status(), std::nullopt, options.common.json(),
                       out);
    return DeliverResults(options, *matrices, "", out);
  }
  NamedFetches fetches;
  if (options.wrt.empty()) {
    PD_ASSIGN_OR_RETURN(fetches.names, NamesToFetch(options, model, expected));
    auto found = VariablesNamed(fetches.names, model.program, network);
    if (!found.ok()) return OfModel(model, found.status());
    fetches.variables = *std::move(found);
    PD_RETURN_IF_ERROR(
        FitFeedsOf(model, fetches.variables, options.feed, &feeds));
  } else {
    PD_ASSIGN_OR_RETURN(fetches, AppendDerivatives(options, {registry, network,
                                                             &model, &feeds}));
  }
  const std::vector<std::string> variables = WithoutRepeats(fetches.variables);
  const absl::StatusOr<NamedArrays> results =
      session.Run(model.program, feeds, variables);
  if (!results.ok()) {
    std::optional<NanFinding> finding;
    if (IsNanFound(results.status())) {
      PD_ASSIGN_OR_RETURN(
          finding, FindAgain(options, registry, model, feeds, variables));
    }
    return ReportNan(OfModel(model, results.status()), finding,
                     options.common.json(), out);
  }
  return DeliverResults(options, Called(fetches, *results), "", out,
                        VariablesOf(options, fetches));
}

// "x=1,3,224,224"
absl::StatusOr<std::pair<std::string, Shape>> ParseShape(
    const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos)
    return CommandLineError(
        absl::StrCat("--shape '", text, "' is not of the form NAME=1,3,224"));
  Shape shape;
  for (const std::string& extent : SplitNames(text.substr(at + 1))) {
    PD_ASSIGN_OR_RETURN(const int64_t n, ParseInteger(extent, 0, 1 << 30));
    shape.push_back(n);
  }
  return std::make_pair(text.substr(0, at), shape);
}

absl::Status RunBench(const EvalOptions& options, const OpRegistry& registry,
                      const LoadedModel& model, std::ostream& out) {
  if (model.kind != LoadedModel::Kind::kInference)
    return InvalidArgument(
        "--bench needs an inference model; '%s' is none: "
        "export it with pd-export first",
        options.model);
  std::map<std::string, Shape> shapes;
  for (const std::string& text : options.shapes) {
    PD_ASSIGN_OR_RETURN(const auto shape, ParseShape(text));
    shapes.insert(shape);
  }
  std::vector<FeedSpec> feeds;
  for (const std::string& name : model.feeds) {
    const VarDesc* var = model.program.global().FindVar(name);
    FeedSpec feed{name, DType::kFloat32, {}};
    if (var != nullptr) feed.dtype = var->dtype, feed.shape = var->shape;
    if (shapes.count(name) > 0) feed.shape = shapes[name];
    feeds.push_back(std::move(feed));
  }
  BenchOptions bench;
  bench.seconds = *options.bench;
  bench.batch = options.batch;
  bench.passes = MakePassOptions(options.passes);
  bench.amp = AmpSpecOf(options.amp);
  bench.times = GetLogLevel() >= LogLevel::kVerbose;
  const auto report = BenchInference(registry, model, feeds, bench);
  if (!report.ok()) return OfModel(model, report.status());
  LogTimes(*report);
  out << BenchLine(*report) << "\n";
  return absl::OkStatus();
}

// Names, types and shapes of what was computed.
void PrintShapes(const NamedArrays& results, const ResultVariables& variables,
                 bool json, std::ostream& out) {
  Json object = Json::object();
  for (const auto& [name, array] : results) {
    const auto variable = variables.find(name);
    const bool renamed = variable != variables.end();
    if (!json)
      out << name << " " << Name(array.dtype) << ToString(array.shape)
          << (renamed ? absl::StrCat(" = ", variable->second) : "") << "\n";
    object[name] = {{"dtype", Name(array.dtype)}, {"shape", array.shape}};
    if (renamed) object[name]["variable"] = variable->second;
  }
  if (json) out << DumpJson(object) << "\n";
}

// The files of this process among several, which run a network that was made
// for as many.
absl::StatusOr<EvalOptions> OptionsFor(const EvalOptions& asked) {
  const World* world = asked.common.world.get();
  EvalOptions options = asked;
  if (!asked.models.empty()) options.model = asked.models.front();
  if (world == nullptr) return options;
  const bool serves = !asked.serve.address.empty();
  if (asked.predict || serves || asked.bench.has_value())
    return UsageError(Unimplemented(
        "%d processes run a network on --feed or evaluate it; start one for %s",
        world->size(),
        asked.predict ? "--predict" : (serves ? "--serve" : "--bench")));
  if (world->rank() > 0 && options.out.find("%r") == std::string::npos)
    options.out.clear();
  for (std::string* path :
       {&options.model, &options.params_file, &options.feed, &options.lod,
        &options.startup, &options.expect, &options.out})
    *path = ForRank(*path, world);
  return options;
}

// The options, with the job beside an exported model where none is given.
EvalOptions WithPreprocess(const EvalOptions& options,
                           const LoadedModel& model) {
  EvalOptions own = options;
  const std::string path = PreprocessPath(model.path);
  if (model.kind == LoadedModel::Kind::kInference && own.config.empty() &&
      IsFile(path))
    own.config = path;
  return own;
}

}  // namespace

absl::Status DeliverResults(const EvalOptions& options,
                            const NamedArrays& results,
                            const std::string& evaluation, std::ostream& out,
                            const ResultVariables& variables) {
  if (!options.out.empty()) PD_RETURN_IF_ERROR(WriteNpz(options.out, results));
  if (options.expect.empty()) {
    if (!options.out.empty()) return absl::OkStatus();
    PrintShapes(results, variables, options.common.json(), out);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const NamedArrays expected, ReadNpz(options.expect));
  const auto comparisons = CompareArrays(
      results, expected, {options.rtol, options.atol, options.equal_nan});
  int differing = 0;
  Json list = Json::array();
  for (const Comparison& c : comparisons) {
    differing += !c.ok();
    if (options.common.json())
      list.push_back({{"name", c.name},
                      {"ok", c.ok()},
                      {"mismatches", c.mismatches},
                      {"max_abs", c.max_abs},
                      {"text", c.ToString()}});
    else
      out << c.ToString() << "\n";
  }
  // One document: the evaluation and what the comparison adds to it.
  if (options.common.json() && !evaluation.empty()) {
    Json both = Json::parse(evaluation, nullptr, /*allow_exceptions=*/false);
    both["expect"] = std::move(list);
    out << DumpJson(both) << "\n";
  } else if (options.common.json()) {
    out << DumpJson(list) << "\n";
  }
  if (differing > 0)
    return AnswerNo(absl::StrCat(differing, " of ", comparisons.size(),
                                 " arrays differ from '", options.expect, "'"));
  return absl::OkStatus();
}

absl::Status RunEval(const EvalOptions& asked, std::ostream& out) {
  World* world = asked.common.world.get();
  PD_ASSIGN_OR_RETURN(const EvalOptions options, OptionsFor(asked));
  if (!options.serve.address.empty()) return ServeModels(options, out);
  if (options.check_nan_inf)
    PD_RETURN_IF_ERROR(SetFlag("FLAGS_check_nan_inf", "true"));
  PD_RETURN_IF_ERROR(NanRulesOfEnvironment().status());
  // In an .onnx file the structure may hang on what is fed.
  NamedArrays feeds;
  if (!options.feed.empty()) {
    PD_ASSIGN_OR_RETURN(feeds, ReadFeeds(options.feed, options.lod));
  }
  LoadOptions reading;
  reading.feeds = &feeds;
  reading.alignment = Alignment::kAny;
  reading.params = options.params_file;
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options.model, reading));
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  registry->SetWorld(world);
  if (world != nullptr)
    PD_RETURN_IF_ERROR(DeclareRings({&model.program}, {}, world));
  if (const auto amp = AmpSpecOf(options.amp)) {
    const auto lists = ListsFor(*amp, *registry);
    if (!lists.ok())
      return CommandLineError(
          absl::StrCat("--amp: ", lists.status().message()));
    WarnOfSlowHalves(*registry, amp->dtype);
  }
  const EvalOptions own = WithPreprocess(options, model);
  if (options.predict)
    return PredictRecords(own, *registry, std::move(model), out);
  const bool job_decides = model.kind == LoadedModel::Kind::kRun ||
                           model.kind == LoadedModel::Kind::kParameters;
  const bool given = options.bench.has_value() || !options.feed.empty();
  if (given && !options.config.empty() && !job_decides)
    return CommandLineError(absl::StrCat(
        "'", options.model, "' is a network already; leave -c out"));
  NetworkOfJob network;
  if (given)
    PD_RETURN_IF_ERROR(
        UseNetworkOfJob(*registry, options.config, &model, &network));
  if (options.bench.has_value())
    return RunBench(options, *registry, model, out);
  if (!options.feed.empty())
    return RunFeed(options, *registry, std::move(model), network,
                   std::move(feeds), out);
  if (own.config.empty() && job_decides && model.run.empty())
    return NeedsJob(model);
  if (own.config.empty() && model.kind != LoadedModel::Kind::kRun)
    return CommandLineError(
        "say what to run the model on: -c JOB, --feed FILE or --bench SECONDS");
  return EvaluateJob(own, *registry, std::move(model), out);
}

}  // namespace pd
