// SPDX-License-Identifier: Apache-2.0
// lstm, fusion_lstm and lstm_grad: as libcore/ops/recurrent/lstm.cc, a step at
// a time for all sequences that are running, with the products by cuBLASLt and
// the rest in lstm.cu. Rows are put into the order of the batches as they are
// read.
#include "libcore/ops/recurrent/lstm.h"

#include <memory>
#include <vector>

#include "libcore/kernels/cuda/lod_rnn.h"
#include "libcore/kernels/cuda/lod_rnn_arguments.h"
#include "libcore/kernels/cuda/rnn_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Members that the forward and the backward pass share.
class LstmSteps {
 public:
  absl::Status Read(BindContext* context, DeviceBinding* binding) {
    PD_ASSIGN_OR_RETURN(lstm_, ReadLstm(context));
    device_ = CudaOf(binding);
    PD_RETURN_IF_ERROR(OnlyFloat32({lstm_.x}));
    if (lstm_.rows == 0 || n() == 0) return Unimplemented("no elements");
    form_.n = n();
    form_.gate = static_cast<int32_t>(lstm_.cell.gate);
    form_.cell = static_cast<int32_t>(lstm_.cell.cell);
    form_.node = static_cast<int32_t>(lstm_.cell.node);
    PD_ASSIGN_OR_RETURN(rows_, KeepTable(binding, batches().rows));
    PD_ASSIGN_OR_RETURN(h0_,
                        StartState::Make(binding, batches(), lstm_.h0, n()));
    PD_ASSIGN_OR_RETURN(c0_,
                        StartState::Make(binding, batches(), lstm_.c0, n()));
    first_h_ = ScratchFloats(context, batches().sequences() * n());
    first_c_ = ScratchFloats(context, batches().sequences() * n());
    return absl::OkStatus();
  }

 protected:
  const SequenceBatches& batches() const { return lstm_.batches; }
  int64_t n() const { return lstm_.cell.hidden; }
  size_t StateBytes() const {
    return static_cast<size_t>(batches().sequences() * n()) * sizeof(float);
  }
  absl::Status Begin() const {
    PD_RETURN_IF_ERROR(h0_.Begin(first_h_, StateBytes()));
    return c0_.Begin(first_c_, StateBytes());
  }
  LstmForm FormOf(int64_t t) const {
    LstmForm form = form_;
    form.m = batches().count(t);
    form.rows = rows_ + batches().start(t);
    form.peepholes = lstm_.Peepholes<float>();
    return form;
  }

  Lstm lstm_;
  CudaDevice* device_ = nullptr;
  const int64_t* rows_ = nullptr;
  LstmForm form_{};
  StartState h0_, c0_;
  Tensor *first_h_ = nullptr, *first_c_ = nullptr;
};

class LstmForward : public LstmSteps {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding) {
    PD_RETURN_IF_ERROR(Read(context, binding));
    const bool fused = lstm_.weight_x != nullptr;
    const int64_t size = lstm_.rows * n();
    gates_ = OutputOrScratch(context, fused ? "BatchedInput" : "BatchGate",
                             4 * size);
    active_ = OutputOrScratch(context, "BatchCellPreAct", size);
    batch_hidden_ = OutputOrScratch(context, "BatchedHidden", size);
    batch_cell_ = OutputOrScratch(context, "BatchedCell", size);
    hidden_ = context->Output("Hidden");
    cell_ = context->Output("Cell");
    from_h_ = ScratchFloats(context, batches().sequences() * lstm_.gates);
    xx_ = lstm_.x;
    if (fused) {
      xx_ = OutputOrScratch(context, "XX", 4 * size);
      PD_ASSIGN_OR_RETURN(by_input_,
                          BoundAt::Make(context, binding,
                                        MatrixProduct{lstm_.rows, lstm_.gates,
                                                      lstm_.x->dim(1)}));
    }
    PD_ASSIGN_OR_RETURN(
        by_state_,
        BoundByRows::Make(context, binding, MatrixProduct{0, lstm_.gates, n()},
                          CountsOf(batches())));
    PD_ASSIGN_OR_RETURN(step_, Starter<LstmArgs>::Find(binding, "lstm_step"));
    return absl::OkStatus();
  }

  absl::Status Run() const {
    if (lstm_.weight_x != nullptr)
      PD_RETURN_IF_ERROR(
          by_input_.Run(At(lstm_.x), At(lstm_.weight_x), At(xx_)));
    PD_RETURN_IF_ERROR(Begin());
    const float *h = At(first_h_), *c = At(first_c_);
    for (int64_t t = 0; t < batches().steps(); ++t) {
      const int64_t m = batches().count(t), at = batches().start(t) * n();
      PD_RETURN_IF_ERROR(by_state_.Run(m, h, At(lstm_.weight), At(from_h_)));
      LstmArgs args{};
      args.form = FormOf(t);
      args.x = At(xx_);
      args.bias = At(lstm_.bias);
      args.from_h = At(from_h_);
      args.c = c;
      args.gates = At(gates_) + 4 * at;
      args.active = At(active_) + at;
      args.batch_hidden = At(batch_hidden_) + at;
      args.batch_cell = At(batch_cell_) + at;
      args.hidden = At(hidden_);
      args.cell = At(cell_);
      PD_RETURN_IF_ERROR(step_.Elements(m * n(), args));
      h = args.batch_hidden;
      c = args.batch_cell;
    }
    return absl::OkStatus();
  }

 private:
  Tensor *xx_ = nullptr, *gates_ = nullptr, *active_ = nullptr;
  Tensor *batch_hidden_ = nullptr, *batch_cell_ = nullptr;
  Tensor *hidden_ = nullptr, *cell_ = nullptr, *from_h_ = nullptr;
  BoundAt by_input_;
  BoundByRows by_state_;
  Starter<LstmArgs> step_;
};

class LstmBackward : public LstmSteps {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding) {
    PD_RETURN_IF_ERROR(Read(context, binding));
    const int64_t size = lstm_.rows * n();
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "BatchGate", DType::kFloat32, 4 * size));
    for (const char* slot :
         {"BatchCellPreAct", "Hidden", "Cell", "Hidden@GRAD"})
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, size));
    gates_ = context->Input("BatchGate");
    active_ = context->Input("BatchCellPreAct");
    hidden_ = context->Input("Hidden");
    cell_ = context->Input("Cell");
    dhidden_ = context->Input("Hidden@GRAD");
    dx_ = context->Output("Input@GRAD");
    dh0_ = context->Output("H0@GRAD");
    dc0_ = context->Output("C0@GRAD");
    dweight_ = context->Output("Weight@GRAD");
    dbias_ = context->Output("Bias@GRAD");
    const int64_t states = batches().sequences() * n();
    dlast_ = ScratchFloats(context, states);
    dc_ = ScratchFloats(context, states);
    dgates_ = ScratchFloats(context, 4 * size);
    before_h_ = ScratchFloats(context, size);
    before_c_ = ScratchFloats(context, size);
    return BindWork(context, binding);
  }

  absl::Status Run() const {
    PD_RETURN_IF_ERROR(Begin());
    PD_RETURN_IF_ERROR(device_->Clear(dlast_->raw(), StateBytes()));
    PD_RETURN_IF_ERROR(device_->Clear(dc_->raw(), StateBytes()));
    for (int64_t t = batches().steps(); t-- > 0;) {
      const LstmGradArgs args = ArgsOf(t);
      const int64_t m = args.form.m;
      PD_RETURN_IF_ERROR(step_.Elements(m * n(), args));
      PD_RETURN_IF_ERROR(
          by_gates_.Run(m, args.dgates, At(lstm_.weight), At(dlast_)));
    }
    PD_RETURN_IF_ERROR(h0_.End(*dlast_, dh0_));
    PD_RETURN_IF_ERROR(c0_.End(*dc_, dc0_));
    if (dweight_ != nullptr)
      PD_RETURN_IF_ERROR(weight_.Run(At(before_h_), At(dgates_), At(dweight_)));
    return dbias_ == nullptr ? absl::OkStatus() : BiasGrad();
  }

 private:
  absl::Status BindWork(BindContext* context, DeviceBinding* binding) {
    PD_ASSIGN_OR_RETURN(
        by_gates_,
        BoundByRows::Make(context, binding,
                          MatrixProduct{0, n(), lstm_.gates, false, true},
                          CountsOf(batches())));
    PD_ASSIGN_OR_RETURN(
        weight_,
        BoundAt::Make(context, binding,
                      MatrixProduct{n(), lstm_.gates, lstm_.rows, true}));
    PD_ASSIGN_OR_RETURN(step_,
                        Starter<LstmGradArgs>::Find(binding, "lstm_step_grad"));
    PD_ASSIGN_OR_RETURN(sums_,
                        Starter<RnnSumArgs>::Find(binding, "rnn_bias_grad"));
    PD_ASSIGN_OR_RETURN(peepholes_, Starter<PeepholeGradArgs>::Find(
                                        binding, "lstm_peephole_grad"));
    // As the steps go.
    std::vector<int64_t> order;
    for (int64_t t = batches().steps(); t-- > 0;)
      for (int64_t r = batches().start(t); r < batches().start(t + 1); ++r)
        order.push_back(r);
    PD_ASSIGN_OR_RETURN(order_, KeepTable(binding, order));
    return absl::OkStatus();
  }

  LstmGradArgs ArgsOf(int64_t t) const {
    const int64_t at = batches().start(t) * n();
    LstmGradArgs args{};
    args.form = FormOf(t);
    if (t > 0) args.rows_before = rows_ + batches().start(t - 1);
    args.gates = At(gates_) + 4 * at;
    args.active = At(active_) + at;
    args.hidden = At(hidden_);
    args.cell = At(cell_);
    args.h0 = At(first_h_);
    args.c0 = At(first_c_);
    args.dhidden = At(dhidden_);
    args.dlast = At(dlast_);
    args.dc = At(dc_);
    args.dgates = At(dgates_) + 4 * at;
    args.before_h = At(before_h_) + at;
    args.before_c = At(before_c_) + at;
    args.dx = At(dx_);
    return args;
  }

  absl::Status BiasGrad() const {
    const int64_t width = lstm_.gates;
    PD_RETURN_IF_ERROR(
        sums_.Elements(width, {At(dgates_), At(dbias_), lstm_.rows, width}));
    if (!lstm_.peepholes) return absl::OkStatus();
    PeepholeGradArgs args{};
    args.dgates = At(dgates_);
    args.before_c = At(before_c_);
    args.cell = At(cell_);
    args.rows = rows_;
    args.order = order_;
    args.to = At(dbias_) + width;
    args.count = lstm_.rows;
    args.n = n();
    return peepholes_.Elements(3 * n(), args);
  }

  Tensor *gates_ = nullptr, *active_ = nullptr, *hidden_ = nullptr;
  Tensor *cell_ = nullptr, *dhidden_ = nullptr;
  Tensor *dx_ = nullptr, *dh0_ = nullptr, *dc0_ = nullptr;
  Tensor *dweight_ = nullptr, *dbias_ = nullptr;
  Tensor *dlast_ = nullptr, *dc_ = nullptr, *dgates_ = nullptr;
  Tensor *before_h_ = nullptr, *before_c_ = nullptr;
  const int64_t* order_ = nullptr;
  BoundByRows by_gates_;
  BoundAt weight_;
  Starter<LstmGradArgs> step_;
  Starter<RnnSumArgs> sums_;
  Starter<PeepholeGradArgs> peepholes_;
};

}  // namespace

void AddLstm(KernelTable* kernels) {
  kernels->Add("lstm", {"cublaslt", BindDirection<LstmForward>});
  kernels->Add("fusion_lstm", {"cublaslt", BindDirection<LstmForward>});
  kernels->Add("lstm_grad", {"cublaslt", BindDirection<LstmBackward>});
}

}  // namespace pd::cuda
