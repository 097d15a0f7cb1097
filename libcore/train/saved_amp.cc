// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/saved_amp.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
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

// The program with the forward operators alone. What the updates make and read,
// but for gradients, stays declared: its names are taken.
ProgramDesc ForwardOf(const TrainProgram& program, const Parts& parts) {
  std::set<std::string> gradients;
  for (const auto& [param, grad] : program.gradients) gradients.insert(grad);
  std::vector<std::string> keep;
  for (const FeedSpec& feed : program.feeds) keep.push_back(feed.name);
  for (const OpDesc& op : parts.updates)
    for (const SlotList* slots : {&op.inputs, &op.outputs})
      for (const auto& [slot, names] : *slots)
        for (const std::string& name : names)
          if (gradients.count(name) == 0) keep.push_back(name);
  ProgramDesc forward = program.main;
  forward.global().ops = parts.forward;
  DropUnused(keep, &forward);
  return forward;
}

// Gradient operators with the parameters and feeds that each reads, in no
// order: sums, first gradients and what else is read differ in how they are
// written.
std::multiset<std::string> Signature(const std::vector<OpDesc>& ops,
                                     const std::set<std::string>& leaves) {
  std::multiset<std::string> signature;
  for (const OpDesc& op : ops) {
    if (!IsGradientOp(op.type)) continue;
    std::set<std::string> reads;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (leaves.count(name) > 0) reads.insert(name);
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
  std::set<std::string> leaves;
  for (const auto& [param, grad] : program.gradients) leaves.insert(param);
  for (const FeedSpec& feed : program.feeds) leaves.insert(feed.name);
  BackwardOptions options;
  options.targets[program.loss] = "";
  PD_RETURN_IF_ERROR(AppendBackward(registry, options, &forward).status());
  const auto begin = forward.global().ops.begin() +
                     static_cast<std::ptrdiff_t>(parts.forward.size());
  const std::vector<OpDesc> made(begin, forward.global().ops.end());
  if (Signature(made, leaves) == Signature(parts.backward, leaves))
    return absl::OkStatus();
  return Unimplemented(
      "the gradients of the saved program are not those of its loss alone, and "
      "mixed precision would make them anew; save it with "
      "paddle.static.amp.decorate instead");
}

// Whether the saved programs have mixed precision of their own: its operators,
// or the names of its variables.
bool IsMixed(const TrainProgram& program) {
  for (const OpDesc& op : program.main.global().ops)
    if (op.type == "check_finite_and_unscale" ||
        op.type == "update_loss_scaling")
      return true;
  for (const ProgramDesc* each : {&program.main, &program.startup})
    for (const VarDesc& var : each->global().vars)
      for (const char* stem :
           {"loss_scaling", "num_good_steps", "num_bad_steps"})
        if (absl::StartsWith(var.name, stem)) return true;
  return false;
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
  if (IsMixed(*program))
    return Unimplemented("the saved program has mixed precision already");
  const Parts parts = PartsOf(program->main);
  ProgramDesc mixed = ForwardOf(*program, parts);
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
  // Variables that the updates use besides: rates, moments, clipped gradients.
  ProgramDesc rest = program->main;
  rest.global().ops = parts.updates;
  RenameInOps(renames, &rest);
  BlockBuilder tail(&registry, &mixed);
  for (const VarDesc& other : rest.global().vars)
    if (tail.FindVar(other.name) == nullptr) tail.AddVar(other);
  PD_RETURN_IF_ERROR(AppendSavedUpdates(amp, scaling, pairs,
                                        std::move(rest.global().ops), &tail));
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
