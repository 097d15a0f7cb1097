// SPDX-License-Identifier: Apache-2.0
#include "cmd/check_naninf_run.h"

#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cmd/check_naninf_files.h"
#include "cmd/check_naninf_job.h"
#include "cmd/check_naninf_text.h"
#include "cmd/common/engine.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/plugin_option.h"
#include "cmd/common/text.h"
#include "cmd/run_network.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/check/nan_finder.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"

namespace pd {
namespace {

// Variables to compute so that every op runs: those that none reads.
std::vector<std::string> LastVariables(const ProgramDesc& program) {
  std::set<std::string> read;
  std::vector<std::string> last;
  const std::vector<OpDesc>& ops = program.global().ops;
  for (size_t i = ops.size(); i-- > 0;) {
    for (const auto& [slot, names] : ops[i].outputs)
      for (const std::string& name : names) {
        const VarDesc* var = program.FindVar(0, name);
        if (name != kEmptyVar && var != nullptr &&
            var->kind == VarKind::kLodTensor && read.insert(name).second)
          last.push_back(name);
      }
    for (const auto& [slot, names] : ops[i].inputs)
      read.insert(names.begin(), names.end());
  }
  return last;
}

absl::Status CheckModel(const CheckNaninfOptions& options,
                        const OpRegistry& registry, std::ostream& out) {
  PD_ASSIGN_OR_RETURN(const NanRules rules, RulesOf(options));
  PD_ASSIGN_OR_RETURN(NamedArrays feeds, ReadFeeds(options.feed, options.lod));
  LoadOptions reading;
  reading.feeds = &feeds;
  reading.alignment = Alignment::kAny;
  reading.params = options.params_file;
  PD_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(options.model, reading));
  NetworkOfJob network;
  PD_RETURN_IF_ERROR(
      UseNetworkOfJob(registry, options.config, &model, &network));
  auto named =
      VariablesNamed(SplitNames(options.fetch), model.program, network);
  if (!named.ok()) return OfModel(model, named.status());
  std::vector<std::string> fetches = *std::move(named);
  if (fetches.empty()) fetches = model.fetches;
  if (fetches.empty()) fetches = LastVariables(model.program);
  PD_RETURN_IF_ERROR(FitFeedsOf(model, fetches, options.feed, &feeds));
  Session session(&registry,
                  static_cast<uint64_t>(options.common.seed.value_or(0)));
  PD_RETURN_IF_ERROR(SetVariables(model, options.startup, &session));
  auto made = QueryOf(&session, &model.program, feeds, std::move(fetches));
  if (!made.ok()) return OfModel(model, made.status());
  NanQuery& query = *made;
  query.context.seed = static_cast<uint64_t>(options.common.seed.value_or(0));
  query.rules = std::make_shared<const NanRules>(rules);
  query.layers = &network.layers;
  HalfRanges ranges;
  int64_t ops = 0;
  std::string last;
  const auto found_nan = FindNan(query);
  if (!found_nan.ok()) return OfModel(model, found_nan.status());
  const std::optional<NanFinding>& finding = *found_nan;
  if (options.half || !finding.has_value()) {
    for (const auto& [name, array] : model.params)
      if (options.half) ranges.Add(name, "parameter", array);
    const auto look = [&](const OpDesc& op, const std::string& variable,
                          const Tensor& value) {
      ++ops;
      if (options.half && value.raw() != nullptr && !value.is_array())
        ranges.Add(variable, op.type, ToArray(value));
    };
    PD_RETURN_IF_ERROR(OfModel(model, ObserveValues(query, look)));
  }
  const absl::Status found =
      finding.has_value() ? NanFound(finding->output.name) : absl::OkStatus();
  return ReportCheck(options, found, finding, {ops, "tensors"}, ranges, out);
}

}  // namespace

absl::Status RunCheckNaninf(const CheckNaninfOptions& options,
                            std::ostream& out) {
  PD_ASSIGN_OR_RETURN(auto registry, RegistryFor(options.common));
  if (!options.model.empty()) return CheckModel(options, *registry, out);
  if (!options.config.empty() || options.bisect)
    return CheckJob(options, *registry, out);
  return CheckFiles(options, *registry, out);
}

}  // namespace pd
