// SPDX-License-Identifier: Apache-2.0
// gru, fusion_gru and gru_unit with their gradients: as
// libcore/ops/recurrent/gru.cc, a step at a time for all sequences that are
// running, with the products by cuBLASLt and the rest in gru.cu. Rows are put
// into the order of the batches as they are read; gru_unit is one step over
// rows as they lie.
#include "libcore/ops/recurrent/gru.h"

#include <memory>
#include <set>
#include <utility>

#include "libcore/kernels/cuda/lod_rnn.h"
#include "libcore/kernels/cuda/lod_rnn_arguments.h"
#include "libcore/kernels/cuda/rnn_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// One step forwards of as many sequences as `counts` says.
class GruStepper {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding,
                    const GruCell& cell, const std::set<int64_t>& counts) {
    cell_ = cell;
    const int64_t n = cell.hidden;
    products_ = ScratchFloats(context, *counts.rbegin() * 2 * n);
    PD_ASSIGN_OR_RETURN(
        by_h_, BoundByRows::Make(context, binding, MatrixProduct{0, 2 * n, n},
                                 counts));
    PD_ASSIGN_OR_RETURN(
        by_reset_,
        BoundByRows::Make(context, binding, MatrixProduct{0, n, n}, counts));
    PD_ASSIGN_OR_RETURN(gates_, Starter<GruArgs>::Find(binding, "gru_gates"));
    PD_ASSIGN_OR_RETURN(state_, Starter<GruArgs>::Find(binding, "gru_state"));
    return absl::OkStatus();
  }

  // `args` without what depends on the cell.
  absl::Status Run(GruArgs args, const float* weight) const {
    args.n = cell_.hidden;
    args.gate = static_cast<int32_t>(cell_.gate);
    args.node = static_cast<int32_t>(cell_.node);
    args.origin = cell_.origin ? 1 : 0;
    args.products = At(products_);
    PD_RETURN_IF_ERROR(by_h_.Run(args.m, args.h, weight, At(products_)));
    PD_RETURN_IF_ERROR(gates_.Elements(args.m * args.n, args));
    PD_RETURN_IF_ERROR(by_reset_.Run(
        args.m, args.reset, weight + cell_.state_weight(), At(products_)));
    return state_.Elements(args.m * args.n, args);
  }

 private:
  GruCell cell_;
  Tensor* products_ = nullptr;
  BoundByRows by_h_, by_reset_;
  Starter<GruArgs> gates_, state_;
};

// One step backwards, and the sums over all of them.
class GruGradStepper {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding,
                    const GruCell& cell, const std::set<int64_t>& counts,
                    int64_t rows) {
    cell_ = cell;
    rows_ = rows;
    device_ = CudaOf(binding);
    const int64_t n = cell.hidden;
    states_ = *counts.rbegin() * n;
    d_ur_ = ScratchFloats(context, 2 * rows * n);
    d_c_ = ScratchFloats(context, rows * n);
    dh_ = ScratchFloats(context, states_);
    products_ = ScratchFloats(context, states_);
    PD_ASSIGN_OR_RETURN(
        by_c_, BoundByRows::Make(context, binding,
                                 MatrixProduct{0, n, n, false, true}, counts));
    PD_ASSIGN_OR_RETURN(
        by_ur_,
        BoundByRows::Make(context, binding,
                          MatrixProduct{0, n, 2 * n, false, true}, counts));
    PD_ASSIGN_OR_RETURN(
        gate_weight_,
        BoundAt::Make(context, binding, MatrixProduct{n, 2 * n, rows, true}));
    PD_ASSIGN_OR_RETURN(
        state_weight_,
        BoundAt::Make(context, binding, MatrixProduct{n, n, rows, true}));
    using Start = Starter<GruGradArgs>;
    PD_ASSIGN_OR_RETURN(state_, Start::Find(binding, "gru_state_grad"));
    PD_ASSIGN_OR_RETURN(gates_, Start::Find(binding, "gru_gates_grad"));
    PD_ASSIGN_OR_RETURN(sums_,
                        Starter<RnnSumArgs>::Find(binding, "rnn_bias_grad"));
    PD_ASSIGN_OR_RETURN(add_, Starter<RnnSumArgs>::Find(binding, "rnn_add"));
    return absl::OkStatus();
  }

  // Before the last step of several.
  absl::Status Begin() const {
    const size_t bytes = static_cast<size_t>(states_) * sizeof(float);
    PD_RETURN_IF_ERROR(device_->Clear(dh_->raw(), bytes));
    return device_->Clear(products_->raw(), bytes);
  }
  // `at`: the first batch row of the step; `args` without what depends on the
  // cell.
  absl::Status Run(GruGradArgs args, int64_t at, const float* weight) const {
    const int64_t n = cell_.hidden, elements = args.m * n;
    args.n = n;
    args.gate = static_cast<int32_t>(cell_.gate);
    args.node = static_cast<int32_t>(cell_.node);
    args.origin = cell_.origin ? 1 : 0;
    args.d_ur = At(d_ur_) + at * 2 * n;
    args.d_c = At(d_c_) + at * n;
    args.dh = At(dh_);
    args.products = At(products_);
    PD_RETURN_IF_ERROR(state_.Elements(elements, args));
    PD_RETURN_IF_ERROR(by_c_.Run(args.m, args.d_c,
                                 weight + cell_.state_weight(), At(products_)));
    PD_RETURN_IF_ERROR(gates_.Elements(elements, args));
    return by_ur_.Run(args.m, args.d_ur, weight, At(products_));
  }
  // The gradient of the state before the first step.
  absl::StatusOr<Tensor*> End() const {
    PD_RETURN_IF_ERROR(
        add_.Elements(states_, {At(products_), At(dh_), 1, states_}));
    return dh_;
  }
  absl::Status Sums(const float* before, const float* reset, Tensor* dweight,
                    Tensor* dbias) const {
    const int64_t n = cell_.hidden;
    if (dweight != nullptr) {
      PD_RETURN_IF_ERROR(gate_weight_.Run(before, At(d_ur_), At(dweight)));
      PD_RETURN_IF_ERROR(state_weight_.Run(reset, At(d_c_),
                                           At(dweight) + cell_.state_weight()));
    }
    if (dbias == nullptr) return absl::OkStatus();
    PD_RETURN_IF_ERROR(
        sums_.Elements(2 * n, {At(d_ur_), At(dbias), rows_, 2 * n}));
    return sums_.Elements(n, {At(d_c_), At(dbias) + 2 * n, rows_, n});
  }

 private:
  GruCell cell_;
  int64_t rows_ = 0, states_ = 0;
  CudaDevice* device_ = nullptr;
  Tensor *d_ur_ = nullptr, *d_c_ = nullptr, *dh_ = nullptr;
  Tensor* products_ = nullptr;
  BoundByRows by_c_, by_ur_;
  BoundAt gate_weight_, state_weight_;
  Starter<GruGradArgs> state_, gates_;
  Starter<RnnSumArgs> sums_, add_;
};

absl::StatusOr<Gru> ReadGruFloat32(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Gru g, ReadGru(context));
  PD_RETURN_IF_ERROR(OnlyFloat32({g.x}));
  if (g.rows == 0 || g.cell.hidden == 0) return Unimplemented("no elements");
  return g;
}

absl::StatusOr<Step> BindGru(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Gru g, ReadGruFloat32(context));
  const bool fused = g.weight_x != nullptr;
  const int64_t n = g.cell.hidden, size = g.rows * n;
  const int64_t states = g.batches.sequences() * n;
  Tensor* const gates =
      OutputOrScratch(context, fused ? "BatchedInput" : "BatchGate", 3 * size);
  Tensor* const reset = OutputOrScratch(context, "BatchResetHiddenPrev", size);
  Tensor* const batch_hidden =
      OutputOrScratch(context, fused ? "BatchedOut" : "BatchHidden", size);
  Tensor* const hidden = context->Output("Hidden");
  Tensor* const first = ScratchFloats(context, states);
  Tensor* xx = g.x;
  BoundAt by_input;
  if (fused) {
    xx = OutputOrScratch(context, "XX", 3 * size);
    PD_ASSIGN_OR_RETURN(
        by_input, BoundAt::Make(context, binding,
                                MatrixProduct{g.rows, g.gates, g.x->dim(1)}));
  }
  PD_ASSIGN_OR_RETURN(const int64_t* const rows,
                      KeepTable(binding, g.batches.rows));
  PD_ASSIGN_OR_RETURN(const auto start,
                      StartState::Make(binding, g.batches, g.h0, n));
  GruStepper stepper;
  PD_RETURN_IF_ERROR(
      stepper.Bind(context, binding, g.cell, CountsOf(g.batches)));
  return Step([=](const RunContext&) {
    if (fused)
      PD_RETURN_IF_ERROR(by_input.Run(At(g.x), At(g.weight_x), At(xx)));
    PD_RETURN_IF_ERROR(
        start.Begin(first, static_cast<size_t>(states) * sizeof(float)));
    const float* h = At(first);
    for (int64_t t = 0; t < g.batches.steps(); ++t) {
      const int64_t at = g.batches.start(t);
      GruArgs args{};
      args.rows = rows + at;
      args.x = At(xx);
      args.bias = At(g.bias);
      args.h = h;
      args.gates = At(gates) + at * g.gates;
      args.reset = At(reset) + at * n;
      args.batch_hidden = At(batch_hidden) + at * n;
      args.hidden = At(hidden);
      args.m = g.batches.count(t);
      PD_RETURN_IF_ERROR(stepper.Run(args, At(g.weight)));
      h = args.batch_hidden;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindGruGrad(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Gru g, ReadGruFloat32(context));
  const int64_t n = g.cell.hidden, size = g.rows * n;
  const int64_t states = g.batches.sequences() * n;
  Tensor *gates = context->Input("BatchGate"),
         *reset = context->Input("BatchResetHiddenPrev"),
         *hidden = context->Input("BatchHidden"),
         *dhidden = context->Input("Hidden@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "BatchGate", DType::kFloat32, 3 * size));
  for (const char* slot :
       {"BatchResetHiddenPrev", "BatchHidden", "Hidden@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, size));
  Tensor *dx = context->Output("Input@GRAD"), *dh0 = context->Output("H0@GRAD"),
         *dweight = context->Output("Weight@GRAD"),
         *dbias = g.bias != nullptr ? context->Output("Bias@GRAD") : nullptr;
  Tensor* const first = ScratchFloats(context, states);
  Tensor* const before = ScratchFloats(context, size);
  PD_ASSIGN_OR_RETURN(const int64_t* const rows,
                      KeepTable(binding, g.batches.rows));
  // Sequences without rows have a state too, whose gradient stays 0.
  PD_ASSIGN_OR_RETURN(const auto start,
                      StartState::Make(binding, g.batches, g.h0, n));
  std::set<int64_t> counts = CountsOf(g.batches);
  GruGradStepper stepper;
  counts.insert(g.batches.sequences());
  PD_RETURN_IF_ERROR(stepper.Bind(context, binding, g.cell, counts, g.rows));
  return Step([=](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(
        start.Begin(first, static_cast<size_t>(states) * sizeof(float)));
    PD_RETURN_IF_ERROR(stepper.Begin());
    for (int64_t t = g.batches.steps(); t-- > 0;) {
      const int64_t at = g.batches.start(t);
      GruGradArgs args{};
      args.rows = rows + at;
      args.gates = At(gates) + at * g.gates;
      args.h = t == 0 ? At(first) : At(hidden) + g.batches.start(t - 1) * n;
      args.dhidden = At(dhidden);
      args.before = At(before) + at * n;
      args.dx = At(dx);
      args.m = g.batches.count(t);
      args.follows = 1;
      PD_RETURN_IF_ERROR(stepper.Run(args, at, At(g.weight)));
    }
    PD_ASSIGN_OR_RETURN(Tensor* const dh, stepper.End());
    PD_RETURN_IF_ERROR(start.End(*dh, dh0));
    return stepper.Sums(At(before), At(reset), dweight, dbias);
  });
}

absl::StatusOr<GruUnit> ReadUnit(BindContext* context) {
  PD_ASSIGN_OR_RETURN(GruUnit u, ReadGruUnit(context));
  PD_RETURN_IF_ERROR(OnlyFloat32({u.h}));
  if (u.h->size() == 0) return Unimplemented("no elements");
  return u;
}

absl::StatusOr<Step> BindUnit(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GruUnit u, ReadUnit(context));
  Tensor* const gates = OutputOrScratch(context, "Gate", u.x->size());
  Tensor* const reset =
      OutputOrScratch(context, "ResetHiddenPrev", u.h->size());
  Tensor* const hidden = context->Output("Hidden");
  GruStepper stepper;
  PD_RETURN_IF_ERROR(stepper.Bind(context, binding, u.cell, {u.batch}));
  return Step([=](const RunContext&) {
    GruArgs args{};
    args.x = At(u.x);
    args.bias = At(u.bias);
    args.h = At(u.h);
    args.gates = At(gates);
    args.reset = At(reset);
    args.hidden = At(hidden);
    args.m = u.batch;
    return stepper.Run(args, At(u.weight));
  });
}

absl::StatusOr<Step> BindUnitGrad(BindContext* context,
                                  DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GruUnit u, ReadUnit(context));
  Tensor *gates = context->Input("Gate"),
         *reset = context->Input("ResetHiddenPrev"),
         *dhidden = context->Input("Hidden@GRAD"),
         *dx = context->Output("Input@GRAD"),
         *dh = context->Output("HiddenPrev@GRAD"),
         *dweight = context->Output("Weight@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Gate", DType::kFloat32, u.x->size()));
  for (const char* slot : {"ResetHiddenPrev", "Hidden@GRAD"})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, DType::kFloat32, u.h->size()));
  GruGradStepper stepper;
  PD_RETURN_IF_ERROR(
      stepper.Bind(context, binding, u.cell, {u.batch}, u.batch));
  return Step([=, device = CudaOf(binding)](const RunContext&) -> absl::Status {
    GruGradArgs args{};
    args.gates = At(gates);
    args.h = At(u.h);
    args.dhidden = At(dhidden);
    args.dx = At(dx);
    args.m = u.batch;
    PD_RETURN_IF_ERROR(stepper.Run(args, 0, At(u.weight)));
    if (dh != nullptr) {
      PD_ASSIGN_OR_RETURN(Tensor* const sum, stepper.End());
      PD_RETURN_IF_ERROR(device->Copy(dh->raw(), sum->raw(), dh->bytes()));
    }
    return stepper.Sums(At(u.h), At(reset), dweight, dbias);
  });
}

}  // namespace

void AddGru(KernelTable* kernels) {
  kernels->Add("gru", {"cublaslt", BindGru});
  kernels->Add("fusion_gru", {"cublaslt", BindGru});
  kernels->Add("gru_grad", {"cublaslt", BindGruGrad});
  kernels->Add("gru_unit", {"cublaslt", BindUnit});
  kernels->Add("gru_unit_grad", {"cublaslt", BindUnitGrad});
}

}  // namespace pd::cuda
