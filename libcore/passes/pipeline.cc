// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/pipeline.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/passes/int8_dynamic.h"

namespace pd {

namespace {

bool Runs(const Pass& pass, const PassContext& context, bool gradients) {
  return !context.on_gpu || pass.on_gpu == OnGpu::kAlways ||
         (pass.on_gpu == OnGpu::kWithoutGradients && !gradients);
}

}  // namespace

const std::vector<Pass>& AllPasses() {
  static const std::vector<Pass>* const kPasses = new std::vector<Pass>{
      {"flatten_biases", FlattenBiases, OnGpu::kWithoutGradients,
       "first: what follows knows biases as vectors"},
      {"fold_batch_norms", FoldBatchNorms, OnGpu::kWithoutGradients,
       "before what fuses: it makes biases of norms"},
      {"int8_chains", Int8Chains, OnGpu::kAlways,
       "before what fuses: it knows chains of plain ops"},
      {"int8_dynamic", Int8Dynamic, OnGpu::kAlways,
       "before what fuses: it knows plain ops"},
      {"fuse_conv_bias_act", FuseConvBiasAct, OnGpu::kWithoutGradients, ""},
      {"fuse_conv_residual", FuseConvResidual, OnGpu::kWithoutGradients,
       "after fuse_conv_bias_act: it reads fused_conv2d"},
      {"fuse_batch_norm_act", FuseBatchNormAct, OnGpu::kNever, ""},
      {"fuse_attention", FuseAttention, OnGpu::kWithoutGradients,
       "before fuse_gemm_epilogue: it knows products as plain ops"},
      {"fuse_gemm_epilogue", FuseGemmEpilogue, OnGpu::kNever, ""},
      {"fuse_lookup_concat", FuseLookupConcat, OnGpu::kNever, ""},
      {"advance_updates", AdvanceUpdates, OnGpu::kNever,
       "after what fuses gradient ops"},
      {"merge_updates", MergeUpdates, OnGpu::kAlways,
       "after advance_updates, which leaves small updates to it"},
  };
  return *kPasses;
}

absl::Status RunPasses(const PassContext& context, const PassOptions& options,
                       ProgramDesc* program) {
  std::set<std::string> names;
  for (const Pass& pass : AllPasses()) names.insert(pass.name);
  for (const std::string& name : options.disabled) {
    if (names.count(name) > 0) continue;
    const std::string nearest = Nearest(name, names);
    return NotFound(
        "there is no pass '%s'%s", name,
        nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
  }
  const auto show = [&](const std::string& pass) {
    return options.observer == nullptr
               ? absl::OkStatus()
               : options.observer(context.label, pass, *program);
  };
  PD_RETURN_IF_ERROR(show(""));
  // No pass looks into sub-blocks for who reads a variable.
  if (program->blocks.size() != 1) return absl::OkStatus();
  const auto& ops = program->global().ops;
  const bool gradients = std::any_of(
      ops.begin(), ops.end(),
      [](const OpDesc& op) { return absl::EndsWith(op.type, "_grad"); });
  for (const Pass& pass : AllPasses()) {
    if (options.disabled.count(pass.name) > 0 ||
        !Runs(pass, context, gradients))
      continue;
    const absl::Status status = pass.run(context, program);
    if (!status.ok())
      return Annotate(status, absl::StrCat("pass '", pass.name, "'"));
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
