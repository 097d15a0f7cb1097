// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/pipeline.h"

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/passes/int8_dynamic.h"

namespace pd {

const std::vector<Pass>& AllPasses() {
  static const std::vector<Pass>* const kPasses = new std::vector<Pass>{
      {"flatten_biases", FlattenBiases},
      // Knows biases that are vectors; what follows, biases instead of norms.
      {"fold_batch_norms", FoldBatchNorms},
      // Before what fuses: it knows chains of plain ops.
      {"int8_chains", Int8Chains},
      {"int8_dynamic", Int8Dynamic},
      {"fuse_conv_bias_act", FuseConvBiasAct},
      {"fuse_conv_residual", FuseConvResidual},
      {"fuse_batch_norm_act", FuseBatchNormAct},
      {"fuse_attention", FuseAttention},
      {"fuse_gemm_epilogue", FuseGemmEpilogue},
      {"fuse_lookup_concat", FuseLookupConcat},
      {"advance_updates", AdvanceUpdates},
      {"merge_updates", MergeUpdates},
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
  for (const Pass& pass : AllPasses()) {
    if (options.disabled.count(pass.name) > 0) continue;
    const absl::Status status = pass.run(context, program);
    if (!status.ok())
      return Annotate(status, absl::StrCat("pass '", pass.name, "'"));
    PD_RETURN_IF_ERROR(show(pass.name));
  }
  return absl::OkStatus();
}

}  // namespace pd
