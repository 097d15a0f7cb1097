// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/forward_amp.h"

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/passes/amp.h"
#include "libcore/program/block_builder.h"

namespace pd {

absl::StatusOr<ForwardAmp> ApplyAmp(const LoadedJob& job,
                                    const OpRegistry& registry,
                                    ProgramDesc* main, ProgramDesc* startup,
                                    std::string* loss, std::string* target) {
  ForwardAmp amp;
  *target = *loss;
  PD_ASSIGN_OR_RETURN(amp.job, AmpOf(job));
  if (!amp.job.has_value()) return amp;
  const absl::Status mixed = MixPrecision(registry, amp.job->precision, main);
  if (!mixed.ok()) return job.At(mixed, job.proto().amp());
  BlockBuilder block(&registry, main);
  BlockBuilder first(&registry, startup);
  const VarDesc* var = block.FindVar(*loss);
  PD_INVARIANT(var != nullptr);
  if (var->dtype != DType::kFloat32) {
    const std::string wide = block.UniqueTemporary("cast");
    PD_RETURN_IF_ERROR(
        block.Append(CastOp(*loss, var->dtype, wide, DType::kFloat32)));
    *loss = *target = wide;
  }
  if (amp.job->scaling.IsOn()) {
    PD_ASSIGN_OR_RETURN(amp.scaling,
                        ScaleLoss(amp.job->scaling, &block, &first, target));
  }
  return amp;
}

absl::Status Unscale(const ForwardAmp& amp, const std::vector<ParamGrad>& pairs,
                     BlockBuilder* main, OptimizerSpec* spec) {
  if (!amp.scaling.has_value()) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      spec->skip_update,
      UnscaleGradients(amp.job->scaling, *amp.scaling, pairs, main));
  return absl::OkStatus();
}

}  // namespace pd
