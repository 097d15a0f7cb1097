// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/job_amp.h"

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"

namespace pd {

absl::StatusOr<std::optional<JobAmp>> AmpOf(const LoadedJob& job) {
  const job::Amp& amp = job.proto().amp();
  if (!job.proto().has_amp() || amp.level() == job::Amp::O0)
    return std::nullopt;
  JobAmp result;
  AmpSpec& precision = result.precision;
  const bool brain = amp.dtype() == job::Amp::bfloat16;
  precision.level =
      amp.level() == job::Amp::O2 ? AmpSpec::Level::kO2 : AmpSpec::Level::kO1;
  precision.dtype = brain ? DType::kBFloat16 : DType::kFloat16;
  precision.custom_white_list = {amp.custom_white_list().begin(),
                                 amp.custom_white_list().end()};
  precision.custom_black_list = {amp.custom_black_list().begin(),
                                 amp.custom_black_list().end()};
  precision.custom_black_varnames = {amp.custom_black_varnames().begin(),
                                     amp.custom_black_varnames().end()};
  if (brain && amp.use_dynamic_loss_scaling())
    return job.At(
        InvalidArgument("bfloat16 has the range of float32 and takes no "
                        "dynamic loss scaling; expected dtype: float16"),
        amp, "use_dynamic_loss_scaling");
  LossScalingSpec& scaling = result.scaling;
  scaling.use_dynamic_loss_scaling = amp.has_use_dynamic_loss_scaling()
                                         ? amp.use_dynamic_loss_scaling()
                                         : !brain;
  if (amp.has_init_loss_scaling())
    scaling.init_loss_scaling = amp.init_loss_scaling();
  else if (brain)
    scaling.init_loss_scaling = 1;
  scaling.incr_every_n_steps = amp.incr_every_n_steps();
  scaling.decr_every_n_nan_or_inf = amp.decr_every_n_nan_or_inf();
  scaling.incr_ratio = amp.incr_ratio();
  scaling.decr_ratio = amp.decr_ratio();
  return std::optional<JobAmp>(std::move(result));
}

void WarnOfSlowHalves(const OpRegistry& registry, DType dtype) {
  if (registry.device() != nullptr) return;
  if (dtype == DType::kFloat16)
    LogWarning(
        "float16 is computed through float32 here, which is slower than "
        "float32 alone; CPUs with avx512_bf16 are fast in bfloat16");
  else if (!__builtin_cpu_supports("avx512bf16"))
    LogWarning(
        "this CPU has no bfloat16 (avx512_bf16, amx_bf16): it is computed "
        "through float32, which is slower than float32 alone");
}

void ScaleWatch::AfterStep(int64_t step, float now) {
  if (now == last_) return;
  if (now > last_)
    LogInfo("step %d%s: the loss is scaled by %g", step, what_, now);
  else
    LogInfo(
        "step %d%s: NaN or Inf in the gradients again; the loss is scaled by "
        "%g",
        step, what_, now);
  if (now <= 1 && now < last_)
    LogWarning(
        "step %d%s: the loss scale has fallen to %g: what overflows is not the "
        "gradients' scale; try bfloat16, O1, or custom_black_list",
        step, what_, now);
  last_ = now;
}

}  // namespace pd
