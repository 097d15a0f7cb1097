// SPDX-License-Identifier: Apache-2.0
// Deep gradient compression (Y. Lin et al., 2018) for one trainer:
//   g = Grad and the decay. Before rampup_begin_step Grad_out is g; then u sums
//   g with momentum, v sums u, Grad_out has the k elements of v that are
//   largest and zeros elsewhere, and u and v are zero where those k stand.
// PaddlePaddle adds the selected elements up over trainers (EncodeGrad,
// GatherBuff). The updates are in dgc.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// As PaddlePaddle, in float.
size_t DgcCount(const std::vector<float>& sparsity, float step, float steps,
                int64_t n) {
  const auto values = static_cast<float>(sparsity.size());
  const float index = step * values / steps;
  const float part =
      index < values ? sparsity[static_cast<size_t>(index)] : sparsity.back();
  return static_cast<size_t>(static_cast<float>(n) * (1 - part));
}

// Moves the k elements of `v` with the largest sizes to `out`; of equal ones
// the first. `sizes` is scratch. What is no number is as large as infinity.
template <typename T>
void TakeLargest(int64_t n, size_t k, T* u, T* v, T* out, T* sizes) {
  std::fill_n(out, n, T(0));
  if (k == 0) return;
  const auto size_of = [](T value) {
    return std::isnan(value) ? std::numeric_limits<T>::infinity()
                             : std::abs(value);
  };
  for (int64_t i = 0; i < n; ++i) sizes[i] = size_of(v[i]);
  std::nth_element(sizes, sizes + k - 1, sizes + n, std::greater<T>());
  const T least = sizes[k - 1];
  const auto larger =
      std::count_if(sizes, sizes + k, [&](T s) { return s > least; });
  size_t ties = k - static_cast<size_t>(larger);
  for (int64_t i = 0; i < n; ++i) {
    const T size = size_of(v[i]);
    if (!(size >= least) || (size == least && ties == 0)) continue;
    if (size == least) --ties;
    out[i] = v[i];
    u[i] = v[i] = T(0);
  }
}

struct DgcAttrs {
  float m = 0, begin = 0, steps = 1, decay = 0;
  int32_t decay_kind = 0;
  bool nesterov = false;
  std::vector<float> sparsity;
};

absl::StatusOr<DgcAttrs> ReadDgcAttrs(const BindContext& context) {
  DgcAttrs a;
  a.m = context.Attr<float>("m");
  a.begin = context.Attr<float>("rampup_begin_step");
  a.steps = context.Attr<float>("rampup_step");
  a.decay = context.Attr<float>("regular_coeff");
  a.decay_kind = context.Attr<int32_t>("regular_type");
  a.nesterov = context.Attr<bool>("use_nesterov");
  a.sparsity = context.Attr<std::vector<float>>("sparsity");
  if (!(a.steps > 0))
    return InvalidArgument("attr 'rampup_step' is %g; expected more than 0",
                           a.steps);
  if (a.decay_kind < 0 || a.decay_kind > 2)
    return InvalidArgument("attr 'regular_type' is %d; expected 0, 1 or 2",
                           a.decay_kind);
  if (a.sparsity.empty())
    return InvalidArgument("attr 'sparsity' is empty; expected values");
  for (const float part : a.sparsity)
    if (!(part > 0 && part <= 1))
      return InvalidArgument(
          "attr 'sparsity' has %g; expected more than 0 and at most 1", part);
  return a;
}

absl::StatusOr<Step> BindDgc(BindContext* context) {
  Tensor* grad = context->Input("Grad");
  for (const char* slot : {"U", "V", "Param"})
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, slot, grad->dtype(), grad->shape()));
  for (const char* slot : {"current_step", "nranks"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, 1));
  for (const char* slot : {"EncodeGrad", "GatherBuff"})
    if (context->Output(slot) != nullptr)
      return Unimplemented(
          "'%s' is given, which trainers exchange; expected one trainer", slot);
  PD_ASSIGN_OR_RETURN(const DgcAttrs a, ReadDgcAttrs(*context));
  Tensor* step = context->Input("current_step");
  Tensor* ranks = context->Input("nranks");
  Tensor* param = context->Input("Param");
  Tensor* u_in = context->Input("U");
  Tensor* v_in = context->Input("V");
  Tensor* u_out = context->Output("U_out");
  Tensor* v_out = context->Output("V_out");
  Tensor* out = context->Output("Grad_out");
  Tensor* sizes = context->Scratch(static_cast<size_t>(grad->size()) *
                                   SizeOf(grad->dtype()));
  return DispatchFloat(grad->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = grad->size()](const RunContext&) -> absl::Status {
      if (*ranks->data<float>() != 1)
        return Unimplemented("'nranks' is %g; expected 1, one trainer",
                             *ranks->data<float>());
      const float now = *step->data<float>();
      const bool early = now < a.begin;
      T *u = u_out->data<T>(), *v = v_out->data<T>(), *g = out->data<T>();
      const T m = static_cast<T>(a.m), decay = static_cast<T>(a.decay);
      for (int64_t i = 0; i < n; ++i) {
        const T p = param->data<T>()[i];
        T sum = grad->data<T>()[i];
        if (a.decay_kind == 1)
          sum += decay * static_cast<T>((p > T(0)) - (p < T(0)));
        else if (a.decay_kind == 2)
          sum += decay * p;
        T u_now = u_in->data<T>()[i], v_now = v_in->data<T>()[i];
        if (!early) {
          u_now = a.nesterov ? m * (u_now + sum) : m * u_now + sum;
          v_now += a.nesterov ? u_now + sum : u_now;
        }
        u[i] = u_now;
        v[i] = v_now;
        g[i] = sum;
      }
      if (!early)
        TakeLargest(n, DgcCount(a.sparsity, now - a.begin, a.steps, n), u, v, g,
                    sizes->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferDgc(InferContext* context) {
  context->Share("U", "U_out");
  context->Share("V", "V_out");
  context->Share("Grad", "Grad_out");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterDgcCompress(OpRegistry* registry) {
  OpDef op("dgc");
  for (const char* slot : {"U", "V", "Grad", "Param", "current_step", "nranks"})
    op.Input(slot);
  op.Output("U_out").Output("V_out").Output("Grad_out");
  op.OptionalOutput("EncodeGrad").OptionalOutput("GatherBuff");
  op.Attr("m", 0.9f).Attr("use_nesterov", false);
  op.RequiredAttr("sparsity", AttrType::kFloats);
  op.Attr("rampup_begin_step", 0.0f).Attr("rampup_step", 0.0f);
  op.Attr("regular_coeff", 0.0f).Attr("regular_type", int32_t{0});
  op.Infer(InferDgc).NoGrad().Reference(BindDgc);
  return registry->Add(std::move(op));
}

}  // namespace pd
