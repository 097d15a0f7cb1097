// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/saved_amp.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/nn/job.pb.h"
#include "libcore/optim/loss_scaling.h"
#include "libcore/passes/amp.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/prune.h"
#include "libcore/program/rename_variables.h"
#include "libcore/train/job_amp.h"

namespace pd {
namespace {

// The operators of a training program by what they are for, each in its order.
struct Parts {
  std::vector<OpDesc> forward, backward, updates;
};

Parts PartsOf(const ProgramDesc& program) {
  Parts parts;
  for (const OpDesc& op : program.global().ops) {
    const int32_t role = RoleOf(op);
    ((role & kRoleBackward) != 0                    ? parts.backward
     : (role & (kRoleOptimize | kRoleLRSched)) != 0 ? parts.updates
                                                    : parts.forward)
        .push_back(op);
  }
  return parts;
}

// The program with the forward operators alone.
ProgramDesc ForwardOf(const ProgramDesc& program, const Parts& parts,
                      const std::vector<std::string>& keep) {
  ProgramDesc forward = program;
  forward.global().ops = parts.forward;
  DropUnused(keep, &forward);
  return forward;
}

// Gradient operators and the variables of the forward part that each reads, in
// no order: sums and first gradients differ in how they are written.
std::multiset<std::string> Signature(const std::vector<OpDesc>& ops,
                                     const ProgramDesc& forward) {
  std::multiset<std::string> signature;
  for (const OpDesc& op : ops) {
    if (!IsGradientOp(op.type)) continue;
    std::set<std::string> reads;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (forward.global().FindVar(name) != nullptr)
          reads.insert(slot + "=" + name);
    std::string text = op.type;
    for (const std::string& read : reads) text += " " + read;
    signature.insert(std::move(text));
  }
  return signature;
}

// Whether the program's gradients are those that its loss alone gives.
absl::Status CheckGradients(const OpRegistry& registry,
                            const TrainProgram& program, const Parts& parts,
                            ProgramDesc forward) {
  const ProgramDesc bare = forward;
  BackwardOptions options;
  options.targets[program.loss] = "";
  PD_RETURN_IF_ERROR(AppendBackward(registry, options, &forward).status());
  const auto begin = forward.global().ops.begin() +
                     static_cast<std::ptrdiff_t>(parts.forward.size());
  const std::vector<OpDesc> made(begin, forward.global().ops.end());
  if (Signature(made, bare) == Signature(parts.backward, bare))
    return absl::OkStatus();
  return Unimplemented(
      "the gradients of the saved program are not those of its loss alone, and "
      "mixed precision would make them anew; save it with "
      "paddle.static.amp.decorate instead");
}

// Behind the gradients: scales them back and has the updates use them. Where
// they overflow, updates that can leave out a step do, as in PaddlePaddle; the
// others see gradients of 0.
absl::Status AppendSavedUpdates(const JobAmp& amp,
                                const std::optional<LossScalingVars>& scaling,
                                const std::vector<ParamGrad>& pairs,
                                std::vector<OpDesc> updates,
                                BlockBuilder* main) {
  std::string skip;
  if (scaling.has_value()) {
    PD_ASSIGN_OR_RETURN(skip,
                        UnscaleGradients(amp.scaling, *scaling, pairs, main));
  }
  for (OpDesc& op : updates) {
    const OpDef* def = main->registry().Find(op.type);
    if (!skip.empty() && def->FindInput("SkipUpdate") != nullptr)
      op.SetInput("SkipUpdate", {skip});
    main->block().ops.push_back(std::move(op));
  }
  return absl::OkStatus();
}

absl::Status Mix(const OpRegistry& registry, const JobAmp& amp,
                 TrainProgram* program) {
  if (program->main.blocks.size() > 1)
    return Unimplemented("the saved program runs blocks (while, cond)");
  const Parts parts = PartsOf(program->main);
  std::vector<std::string> feeds;
  for (const FeedSpec& feed : program->feeds) feeds.push_back(feed.name);
  ProgramDesc mixed = ForwardOf(program->main, parts, feeds);
  PD_RETURN_IF_ERROR(CheckGradients(registry, *program, parts, mixed));
  PD_RETURN_IF_ERROR(MixPrecision(registry, amp.precision, &mixed));
  BlockBuilder main(&registry, &mixed), startup(&registry, &program->startup);
  std::string loss = program->loss;
  const VarDesc* var = main.FindVar(loss);
  if (var->dtype != DType::kFloat32) {
    const std::string wide = main.UniqueTemporary("cast");
    PD_RETURN_IF_ERROR(
        main.Append(CastOp(loss, var->dtype, wide, DType::kFloat32)));
    program->loss = loss = wide;
  }
  std::optional<LossScalingVars> scaling;
  if (amp.scaling.IsOn()) {
    PD_ASSIGN_OR_RETURN(scaling,
                        ScaleLoss(amp.scaling, &main, &startup, &loss));
    program->loss_scaling = scaling->scale;
  }
  BackwardOptions options;
  options.targets[loss] = "";
  PD_ASSIGN_OR_RETURN(const auto gradients,
                      AppendBackward(registry, options, &mixed));
  std::vector<ParamGrad> pairs;
  Renames renames;
  for (auto& [param, grad] : program->gradients) {
    const auto made = gradients.find(param);
    if (made == gradients.end())
      return Unimplemented(
          "the saved program updates '%s', which its loss "
          "does not depend on",
          param);
    if (made->second != grad) renames[grad] = made->second;
    grad = made->second;
    ParamGrad pair;
    pair.param = param;
    pair.grad = grad;
    pairs.push_back(std::move(pair));
  }
  // What the updates use besides: rates, moments, clipped gradients.
  ProgramDesc rest = program->main;
  rest.global().ops = parts.updates;
  RenameInOps(renames, &rest);
  BlockBuilder tail(&registry, &mixed);
  for (const VarDesc& other : rest.global().vars)
    if (tail.FindVar(other.name) == nullptr) tail.AddVar(other);
  PD_RETURN_IF_ERROR(AppendSavedUpdates(amp, scaling, pairs,
                                        std::move(rest.global().ops), &tail));
  DropUnused(feeds, &mixed);
  program->main = std::move(mixed);
  return absl::OkStatus();
}

}  // namespace

absl::Status ApplySavedAmp(const OpRegistry& registry, const LoadedJob& job,
                           TrainProgram* program) {
  PD_ASSIGN_OR_RETURN(const auto amp, AmpOf(job));
  if (!amp.has_value()) return absl::OkStatus();
  return job.At(Mix(registry, *amp, program), job.proto().amp());
}

}  // namespace pd
