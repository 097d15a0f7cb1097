// SPDX-License-Identifier: Apache-2.0
// spectral_norm and its gradient; the kernels are in spectral_norm.cu.
#include "libcore/ops/norm/spectral_norm.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

using StartSpectralNorm = Starter<SpectralArgs>;

// Each iteration is four kernels.
constexpr int32_t kMostIterations = 256;

struct Kernels {
  StartSpectralNorm start, columns, unit_v, rows, unit_u, results, out;

  static absl::StatusOr<Kernels> Find(DeviceBinding* binding,
                                      const char* name) {
    Kernels k;
    for (const auto& [starter, kernel] :
         {std::pair<StartSpectralNorm*, const char*>{&k.start,
                                                     "spectral_start"},
          {&k.columns, "spectral_columns"},
          {&k.unit_v, "spectral_unit_v"},
          {&k.rows, "spectral_rows"},
          {&k.unit_u, "spectral_unit_u"},
          {&k.results, "spectral_results"},
          {&k.out, name}}) {
      PD_ASSIGN_OR_RETURN(*starter, StartSpectralNorm::Find(binding, kernel));
    }
    return k;
  }

  absl::Status Run(const SpectralArgs& args, int32_t iterations) const {
    PD_RETURN_IF_ERROR(start.Elements(std::max(args.h, args.w), args));
    for (int32_t i = 0; i < iterations; ++i) {
      PD_RETURN_IF_ERROR(columns.Elements(args.w, args));
      PD_RETURN_IF_ERROR(unit_v.Blocks(1, args));
      PD_RETURN_IF_ERROR(rows.Items(args.h, args));
      PD_RETURN_IF_ERROR(unit_u.Blocks(1, args));
    }
    // The last W v is sigma's, unless there was none.
    if (iterations == 0) PD_RETURN_IF_ERROR(rows.Items(args.h, args));
    PD_RETURN_IF_ERROR(results.Blocks(1, args));
    return out.Elements(args.h * args.w, args);
  }
};

absl::StatusOr<Step> BindSpectral(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *weight = context->Input("Weight"), *u = context->Input("U"),
         *v = context->Input("V"), *dout = context->Input("Out@GRAD");
  Tensor* to = context->Output(dout != nullptr ? "Weight@GRAD" : "Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({weight, u, v, dout, to}));
  PD_ASSIGN_OR_RETURN(const SpectralMatrix m, ReadSpectralMatrix(*context));
  if (dout != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "Out@GRAD", weight->dtype(), weight->shape()));
  if (m.iterations > kMostIterations || weight->size() == 0)
    return Unimplemented("%d iterations over %s", m.iterations,
                         ToString(weight->shape()));
  SpectralArgs args{};
  args.h = m.h;
  args.w = m.w;
  args.inner = m.view.inner;
  args.eps = m.eps;
  PD_ASSIGN_OR_RETURN(const Kernels kernels,
                      Kernels::Find(binding, dout != nullptr ? "spectral_grad"
                                                             : "spectral_out"));
  Tensor* const room =
      context->Scratch(static_cast<size_t>(3 * m.h + m.w + 2) * sizeof(double));
  return Step([=, iterations = m.iterations](const RunContext&) {
    SpectralArgs run = args;
    run.weight = At(weight);
    run.first_u = At(u);
    run.first_v = At(v);
    run.dout = At(dout);
    run.to = At(to);
    run.u = room->data<double>();
    run.products = run.u + run.h;
    run.sums = run.products + run.h;
    run.v = run.sums + run.h;
    run.results = run.v + run.w;
    return kernels.Run(run, iterations);
  });
}

}  // namespace

void AddSpectralNorm(KernelTable* kernels) {
  kernels->Add("spectral_norm", {"cuda", BindSpectral});
  kernels->Add("spectral_norm_grad", {"cuda", BindSpectral});
}

}  // namespace pd::cuda
