// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/policy.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

constexpr char kObservation[] = "observation";

// The variable of the layer that chooses.
absl::StatusOr<std::string> VariableOf(const TrainProgram& program,
                                       const std::string& layer) {
  std::vector<std::string> names;
  for (const LayerInfo& info : program.test_layers) {
    names.push_back(absl::StrReplaceAll(info.name, {{"/", "."}}));
    if (names.back() == layer &&
        program.test.global().FindVar(info.output) != nullptr)
      return info.output;
  }
  return InvalidArgument("the network has no layer '%s'; there are %s", layer,
                         QuotedList(names));
}

// The input of the network for the observations of so many environments.
absl::StatusOr<FeedSpec> FeedOf(const TrainProgram& program,
                                const Loader& loader, int64_t environments) {
  for (const FeedSpec& feed : program.feeds) {
    if (feed.name != kObservation) continue;
    PD_ASSIGN_OR_RETURN(const std::vector<size_t> match,
                        MatchFields({feed}, loader.fields()));
    FeedSpec fed = feed;
    const Shape& seen = loader.fields()[match[0]].shape;
    if (seen.size() == fed.shape.size()) fed.shape = seen;
    fed.shape[0] = environments;
    return fed;
  }
  return InvalidArgument("the network has no input '%s' to choose from",
                         kObservation);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> Policy::Attach(
    const LoadedJob& job, const job::DataSet& set, const TrainProgram& program,
    Session* session, Loader* loader) {
  if (!set.has_environment()) return nullptr;
  const job::Environment& environment = set.environment();
  const job::Action& action = environment.action();
  const auto placed = [&](const absl::Status& status) {
    return job.At(status, action, "layer");
  };
  const auto variable = VariableOf(program, action.layer());
  if (!variable.ok()) return placed(variable.status());
  const auto feed = FeedOf(program, *loader, environment.environments());
  if (!feed.ok()) return placed(feed.status());
  const auto acting = Prune(program.test, {feed->name}, {*variable});
  if (!acting.ok())
    return placed(Annotate(
        acting.status(), absl::StrCat("layer '", action.layer(),
                                      "' chooses from the observation alone")));
  const DType gives = program.test.global().FindVar(*variable)->dtype;
  const auto wanted = static_cast<DType>(action.dtype());
  if (gives != wanted)
    return placed(InvalidArgument("layer '%s' gives %s; 'dtype' says %s",
                                  action.layer(), Name(gives), Name(wanted)));
  std::unique_ptr<Policy> policy(new Policy);
  auto plan = session->Compile(*acting, {*feed}, {*variable}, "policy");
  if (!plan.ok()) return placed(plan.status());
  policy->plan_ = *std::move(plan);
  policy->layer_ = action.layer();
  policy->dtype_ = wanted;
  policy->elements_ = environment.environments();
  for (int64_t extent : action.shape()) policy->elements_ *= extent;
  loader->set_actor(policy.get());
  return policy;
}

absl::Status Policy::Act(const std::byte* observations, uint64_t seed,
                         uint64_t call, std::byte* actions) {
  plan_->SetFeed(0, observations);
  RunContext context;
  context.seed = seed;
  context.step = call;
  PD_RETURN_IF_ERROR(plan_->Run(context));
  const Tensor& chosen = plan_->fetch(0);
  if (chosen.dtype() != dtype_ || chosen.size() != elements_)
    return InvalidArgument(
        "layer '%s' gives %s%s; the actions of all environments are %s, %d "
        "numbers",
        layer_, Name(chosen.dtype()), ToString(chosen.shape()), Name(dtype_),
        elements_);
  std::memcpy(actions, chosen.raw(),
              static_cast<size_t>(elements_) * SizeOf(dtype_));
  return absl::OkStatus();
}

}  // namespace pd
