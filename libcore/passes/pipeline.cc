// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/pipeline.h"

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/passes/int8_dynamic.h"

namespace pd {

namespace {

bool Runs(const Pass& pass, const PassContext& context, size_t blocks,
          bool gradients) {
  if (blocks > 1 && pass.blocks == InBlocks::kOnly) return false;
  return !context.on_gpu || pass.on_gpu == OnGpu::kAlways ||
         (pass.on_gpu == OnGpu::kWithoutGradients && !gradients);
}

}  // namespace

const std::vector<Pass>& AllPasses() {
  static const std::vector<Pass>* const kPasses = new std::vector<Pass>{
      {"expand_fused", ExpandFused, OnGpu::kAlways, InBlocks::kAll, true,
       "first: what follows fuses the parts in its own way"},
      {"flatten_biases", FlattenBiases, OnGpu::kWithoutGradients,
       InBlocks::kAll, false,
       "before what fuses: that knows biases as vectors"},
      {"fold_batch_norms", FoldBatchNorms, OnGpu::kWithoutGradients,
       InBlocks::kFirst, false, "before what fuses: it makes biases of norms",
       "batch_norm"},
      {"int8_chains", Int8Chains, OnGpu::kAlways, InBlocks::kOnly, false,
       "before what fuses: it knows chains of plain ops"},
      {"int8_dynamic", Int8Dynamic, OnGpu::kAlways, InBlocks::kFirst, false,
       "before what fuses: it knows plain ops"},
      {"fuse_conv_bias_act", FuseConvBiasAct, OnGpu::kWithoutGradients,
       InBlocks::kAll, true,
       "after what changes biases, before fuse_conv_residual"},
      {"fuse_conv_residual", FuseConvResidual, OnGpu::kWithoutGradients,
       InBlocks::kAll, false,
       "after fuse_conv_bias_act: it reads fused_conv2d"},
      {"fuse_batch_norm_act", FuseBatchNormAct, OnGpu::kAlways, InBlocks::kAll,
       true, "after fold_batch_norms, which leaves no norm to fuse"},
      {"fuse_attention", FuseAttention, OnGpu::kWithoutGradients,
       InBlocks::kAll, true,
       "before fuse_gemm_epilogue: it knows products as plain ops"},
      {"fuse_gemm_epilogue", FuseGemmEpilogue, OnGpu::kAlways, InBlocks::kAll,
       true, "after fuse_attention, which reads plain products"},
      {"fuse_add_act", FuseAddAct, OnGpu::kAlways, InBlocks::kAll, true,
       "after fuse_conv_residual and fuse_gemm_epilogue, which take more ops"},
      {"fuse_lookup_concat", FuseLookupConcat, OnGpu::kNever, InBlocks::kAll,
       false, "anywhere: no other pass knows lookups"},
      {"advance_updates", AdvanceUpdates, OnGpu::kNever, InBlocks::kFirst, true,
       "after what fuses gradient ops"},
      {"merge_updates", MergeUpdates, OnGpu::kAlways, InBlocks::kAll, true,
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
  const bool gradients = HasGradientOps(*program);
  for (const Pass& pass : AllPasses()) {
    if (options.disabled.count(pass.name) > 0 ||
        !Runs(pass, context, program->blocks.size(), gradients))
      continue;
    const absl::Status status = pass.run(context, program);
    if (!status.ok())
      return Annotate(status, absl::StrCat("pass '", pass.name, "'"));
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
