// SPDX-License-Identifier: Apache-2.0
// rnn and rnn_grad: as libcore/ops/recurrent/rnn_layers.h, with the products of
// all steps at once and those of single steps by cuBLASLt, the rest in rnn.cu,
// but what is dropped between layers in dropout.cu.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/bound_product.h"
#include "libcore/kernels/cuda/rnn_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/rnn_bind.h"

namespace pd::cuda {
namespace {

// Members that the forward and the backward pass share.
class RnnSteps {
 public:
  absl::Status Read(BindContext* context, DeviceBinding* binding) {
    PD_ASSIGN_OR_RETURN(inputs_, ReadRnnInputs(context));
    context_ = context;
    binding_ = binding;
    device_ = CudaOf(binding);
    if (d().rows() == 0 || d().input == 0) return Unimplemented("no elements");
    PD_RETURN_IF_ERROR(OnlyFloat32({inputs_.x}));
    if (inputs_.lengths != nullptr)
      lengths_.wide = inputs_.lengths->dtype() == DType::kInt64 ? 1 : 0;
    return absl::OkStatus();
  }

 protected:
  const RnnDims& d() const { return inputs_.dims; }

  // While training: `mask` has an element for each between two layers.
  absl::Status BindDrop(const char* kernel, Tensor* mask) {
    mask_ = mask;
    dropped_ = Scratch(d().layer_out());
    PD_ASSIGN_OR_RETURN(drop_, Starter<DropoutArgs>::Find(binding_, kernel));
    drop_args_.n = d().layer_out();
    drop_args_.factor =
        static_cast<float>(inputs_.drop < 1 ? 1 / (1 - inputs_.drop) : 0);
    return absl::OkStatus();
  }
  int64_t MaskSize() const { return (d().layers - 1) * d().layer_out(); }
  // to = from, or what is left of it in front of this layer.
  absl::Status Drop(int64_t layer, const float* from, float* to) const {
    DropoutArgs args = drop_args_;
    args.x = from;
    args.out = to;
    args.first = (layer - 1) * args.n;
    args.mask = mask_->data<uint8_t>() + args.first;
    return drop_.Elements(args.n, args);
  }

  Tensor* Scratch(int64_t floats) {
    return context_->Scratch(static_cast<size_t>(floats) * sizeof(float));
  }
  absl::StatusOr<BoundAt> Product(const MatrixProduct& product) {
    return BoundAt::Make(context_, binding_, product);
  }
  // One for the first layer, one for the others, which read what is out_width
  // wide.
  template <typename Make>
  absl::Status ByLayer(const Make& make, BoundAt (*products)[2]) {
    for (int64_t layer = 0; layer < std::min<int64_t>(d().layers, 2); ++layer) {
      PD_ASSIGN_OR_RETURN((*products)[layer],
                          Product(make(d().input_width(layer))));
    }
    return absl::OkStatus();
  }
  static const BoundAt& Of(const BoundAt (&products)[2], int64_t layer) {
    return products[layer > 0 ? 1 : 0];
  }

  RnnLengths Lengths() const {
    RnnLengths lengths = lengths_;
    if (inputs_.lengths != nullptr) lengths.steps = inputs_.lengths->raw();
    return lengths;
  }
  int32_t Mode() const { return static_cast<int32_t>(d().mode); }
  int64_t TimeOf(int64_t s, int64_t direction) const {
    return direction == 0 ? s : d().time - 1 - s;
  }
  const float* Weight(size_t i) const { return At(inputs_.weights[i]); }
  // Where a pair's part of the states begins.
  int64_t StateAt(size_t pair) const {
    return static_cast<int64_t>(pair) * d().batch * d().hidden;
  }
  size_t StateBytes() const {
    return static_cast<size_t>(d().batch * d().hidden) * sizeof(float);
  }
  float* LayerOut(int64_t layer) const {
    return layer == d().layers - 1 ? At(out_)
                                   : At(reserve_) + d().out_at(layer);
  }
  absl::StatusOr<const float*> LayerInput(int64_t layer) const {
    if (layer == 0) return At(inputs_.x);
    if (mask_ == nullptr) return LayerOut(layer - 1);
    PD_RETURN_IF_ERROR(Drop(layer, LayerOut(layer - 1), At(dropped_)));
    return At(dropped_);
  }

  RnnInputs inputs_;
  BindContext* context_ = nullptr;    // only while it is bound
  DeviceBinding* binding_ = nullptr;  // likewise
  CudaDevice* device_ = nullptr;
  RnnLengths lengths_{};
  Tensor *out_ = nullptr, *reserve_ = nullptr;
  Tensor *mask_ = nullptr, *dropped_ = nullptr;  // where elements are dropped
  DropoutArgs drop_args_{};
  Starter<DropoutArgs> drop_;
};

class RnnForward : public RnnSteps {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding) {
    PD_RETURN_IF_ERROR(Read(context, binding));
    out_ = context->Output("Out");
    reserve_ = context->Output("Reserve");
    for (size_t i = 0; i < d().states(); ++i)
      states_.push_back(context->Output("State", i));
    if (reserve_ == nullptr || reserve_->size() != d().reserve())
      reserve_ = Scratch(d().reserve());
    if (inputs_.drop > 0 && d().layers > 1) {
      Tensor* mask = context->Output("DropoutState");
      if (mask == nullptr || mask->size() != MaskSize())
        mask = context->Scratch(static_cast<size_t>(MaskSize()));
      PD_RETURN_IF_ERROR(BindDrop("dropout", mask));
      const auto seed = context->Attr<int32_t>("seed");
      drop_args_.threshold = static_cast<float>(inputs_.drop);
      drop_args_.seed = static_cast<uint64_t>(seed);
      drop_args_.stream = StreamOf(context->op().Out("Out"));
      if (seed == 0) {
        PD_ASSIGN_OR_RETURN(drop_args_.run, binding->SeedAndStep());
      }
    }
    from_h_ = Scratch(d().batch * d().gate_width());
    h_ = Scratch(d().batch * d().hidden);
    c_ = Scratch(d().batch * d().hidden);
    const int64_t rows = d().rows(), width = d().gate_width();
    PD_RETURN_IF_ERROR(ByLayer(
        [&](int64_t in) {
          return MatrixProduct{rows, width, in, false, true};
        },
        &by_input_));
    PD_ASSIGN_OR_RETURN(by_state_,
                        Product({d().batch, width, d().hidden, false, true}));
    PD_ASSIGN_OR_RETURN(cell_, Starter<RnnCellArgs>::Find(binding, "rnn_cell"));
    return absl::OkStatus();
  }

  absl::Status Run() const {
    for (int64_t layer = 0; layer < d().layers; ++layer) {
      PD_ASSIGN_OR_RETURN(const float* const input, LayerInput(layer));
      for (int64_t direction = 0; direction < d().directions; ++direction)
        PD_RETURN_IF_ERROR(RunOne(layer, direction, input));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunOne(int64_t layer, int64_t direction,
                      const float* input) const {
    const size_t pair = d().pair(layer, direction);
    const int64_t n = d().hidden, width = d().gate_width(), batch = d().batch;
    float* const gates = At(reserve_) + d().gates_at(pair);
    PD_RETURN_IF_ERROR(
        Of(by_input_, layer).Run(input, Weight(d().w_ih(pair)), gates));
    for (size_t i = 0; i < d().states(); ++i)
      PD_RETURN_IF_ERROR(device_->Copy(
          At(i == 0 ? h_ : c_), At(inputs_.pre_states[i]) + StateAt(pair),
          StateBytes()));
    RnnCellArgs args{};
    args.from_h = At(from_h_);
    args.b_ih = Weight(d().b_ih(pair));
    args.b_hh = Weight(d().b_hh(pair));
    args.h = At(h_);
    args.c = At(c_);
    args.lengths = Lengths();
    args.batch = batch;
    args.n = n;
    args.gates_width = width;
    args.out_width = d().out_width();
    args.mode = Mode();
    for (int64_t s = 0; s < d().time; ++s) {
      args.t = TimeOf(s, direction);
      args.gates = gates + args.t * batch * width;
      args.extra = At(reserve_) + d().extra_at(pair) + args.t * batch * n;
      args.out =
          LayerOut(layer) + args.t * batch * args.out_width + direction * n;
      PD_RETURN_IF_ERROR(
          by_state_.Run(At(h_), Weight(d().w_hh(pair)), At(from_h_)));
      PD_RETURN_IF_ERROR(cell_.Elements(batch * n, args));
    }
    for (size_t i = 0; i < d().states(); ++i)
      if (states_[i] != nullptr)
        PD_RETURN_IF_ERROR(device_->Copy(At(states_[i]) + StateAt(pair),
                                         At(i == 0 ? h_ : c_), StateBytes()));
    return absl::OkStatus();
  }

  std::vector<Tensor*> states_;
  Tensor *from_h_ = nullptr, *h_ = nullptr, *c_ = nullptr;
  BoundAt by_input_[2], by_state_;
  Starter<RnnCellArgs> cell_;
};

class RnnBackward : public RnnSteps {
 public:
  absl::Status Bind(BindContext* context, DeviceBinding* binding) {
    PD_RETURN_IF_ERROR(Read(context, binding));
    out_ = context->Input("Out");
    reserve_ = context->Input("Reserve");
    dout_ = context->Input("Out@GRAD");
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Out", DType::kFloat32, d().layer_out()));
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Reserve", DType::kFloat32, d().reserve()));
    if (dout_ != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(*context, "Out@GRAD", DType::kFloat32,
                                        d().layer_out()));
    for (size_t i = 0; i < d().states(); ++i) {
      dstates_.push_back(context->Input("State@GRAD", i));
      dpre_states_.push_back(context->Output("PreState@GRAD", i));
      if (dstates_[i] != nullptr)
        PD_RETURN_IF_ERROR(ExpectRnnInput(dstates_[i], "State@GRAD", i,
                                          *inputs_.x,
                                          inputs_.pre_states[i]->size()));
    }
    for (size_t i = 0; i < d().weights(); ++i)
      dweights_.push_back(context->Output("WeightList@GRAD", i));
    dx_ = context->Output("Input@GRAD");
    if (inputs_.drop > 0 && d().layers > 1) {
      PD_RETURN_IF_ERROR(
          ExpectElements(*context, "DropoutState", DType::kUInt8, MaskSize()));
      PD_RETURN_IF_ERROR(
          BindDrop("dropout_grad", context->Input("DropoutState")));
    }
    TakeScratch();
    return BindWork();
  }

  absl::Status Run() {
    Tensor* dout = dout_;
    for (int64_t layer = d().layers; layer-- > 0;) {
      Tensor* const dx = layer == 0 ? dx_ : between_[layer % 2];
      PD_ASSIGN_OR_RETURN(input_, LayerInput(layer));
      for (int64_t direction = 0; direction < d().directions; ++direction)
        PD_RETURN_IF_ERROR(
            RunOne(layer, direction, dout,
                   direction == 0 || dx == nullptr ? dx : part_));
      if (d().directions > 1 && dx != nullptr)
        PD_RETURN_IF_ERROR(
            Add(At(part_), d().rows() * d().input_width(layer), At(dx)));
      if (layer > 0 && mask_ != nullptr)
        PD_RETURN_IF_ERROR(Drop(layer, At(dx), At(dx)));
      dout = dx;
    }
    return absl::OkStatus();
  }

 private:
  void TakeScratch() {
    const int64_t n = d().hidden, batch = d().batch;
    if (d().layers > 1)
      for (Tensor*& t : between_) t = Scratch(d().layer_out());
    if (d().directions > 1)
      part_ = Scratch(d().rows() * std::max(d().input, d().out_width()));
    dgx_ = Scratch(d().gate_size());
    dgh_ = d().mode == RnnMode::kGru ? Scratch(d().gate_size()) : dgx_;
    last_h_ = Scratch(d().rows() * n);
    dh_ = Scratch(batch * n);
    dc_ = Scratch(batch * n);
    through_ = Scratch(batch * n);
  }

  absl::Status BindWork() {
    const int64_t n = d().hidden, rows = d().rows(), width = d().gate_width();
    PD_RETURN_IF_ERROR(ByLayer(
        [&](int64_t in) {
          return MatrixProduct{rows, in, width, false, false};
        },
        &by_input_));
    PD_RETURN_IF_ERROR(ByLayer(
        [&](int64_t in) {
          return MatrixProduct{width, in, rows, true, false};
        },
        &input_weights_));
    PD_ASSIGN_OR_RETURN(state_weights_, Product({width, n, rows, true, false}));
    PD_ASSIGN_OR_RETURN(by_state_,
                        Product({d().batch, n, width, false, false}));
    PD_ASSIGN_OR_RETURN(cell_,
                        Starter<RnnGradArgs>::Find(binding_, "rnn_cell_grad"));
    PD_ASSIGN_OR_RETURN(biases_,
                        Starter<RnnSumArgs>::Find(binding_, "rnn_bias_grad"));
    PD_ASSIGN_OR_RETURN(add_, Starter<RnnSumArgs>::Find(binding_, "rnn_add"));
    return absl::OkStatus();
  }

  absl::Status Add(const float* from, int64_t n, float* to) const {
    return add_.Elements(n, {from, to, 1, n});
  }

  // The gradient of the last state, or 0.
  absl::Status StartState(size_t which, size_t pair, Tensor* gradient) const {
    if (which >= dstates_.size() || dstates_[which] == nullptr)
      return device_->Clear(gradient->raw(), StateBytes());
    return device_->Copy(At(gradient), At(dstates_[which]) + StateAt(pair),
                         StateBytes());
  }
  absl::Status EndState(size_t which, size_t pair, Tensor* gradient) const {
    if (which >= dpre_states_.size() || dpre_states_[which] == nullptr)
      return absl::OkStatus();
    return device_->Copy(At(dpre_states_[which]) + StateAt(pair), At(gradient),
                         StateBytes());
  }

  RnnGradArgs ArgsOf(int64_t layer, int64_t direction, int64_t s,
                     Tensor* dout) const {
    const size_t pair = d().pair(layer, direction);
    const int64_t n = d().hidden, width = d().gate_width(), batch = d().batch;
    RnnGradArgs args{};
    args.t = TimeOf(s, direction);
    args.before_t = direction == 0 ? args.t - 1 : args.t + 1;
    args.batch = batch;
    args.n = n;
    args.gates_width = width;
    args.out_width = d().out_width();
    args.mode = Mode();
    args.lengths = Lengths();
    const float* const extra = At(reserve_) + d().extra_at(pair);
    args.gates = At(reserve_) + d().gates_at(pair) + args.t * batch * width;
    args.extra = extra + args.t * batch * n;
    if (s > 0) {
      args.before_h = LayerOut(layer) + direction * n +
                      args.before_t * batch * args.out_width;
      args.before_c = extra + args.before_t * batch * n;
    }
    args.first_h = At(inputs_.pre_states[0]) + StateAt(pair);
    if (d().states() > 1)
      args.first_c = At(inputs_.pre_states[1]) + StateAt(pair);
    if (dout != nullptr)
      args.dy = At(dout) + args.t * batch * args.out_width + direction * n;
    args.through = s + 1 < d().time ? At(through_) : nullptr;
    args.dh = At(dh_);
    args.dc = At(dc_);
    args.dgx = At(dgx_) + args.t * batch * width;
    args.dgh = At(dgh_) + args.t * batch * width;
    args.last_h = At(last_h_) + args.t * batch * n;
    return args;
  }

  absl::Status RunOne(int64_t layer, int64_t direction, Tensor* dout,
                      Tensor* dx) const {
    const size_t pair = d().pair(layer, direction);
    const int64_t elements = d().batch * d().hidden;
    PD_RETURN_IF_ERROR(StartState(0, pair, dh_));
    PD_RETURN_IF_ERROR(StartState(1, pair, dc_));
    for (int64_t s = d().time; s-- > 0;) {
      const RnnGradArgs args = ArgsOf(layer, direction, s, dout);
      PD_RETURN_IF_ERROR(cell_.Elements(elements, args));
      PD_RETURN_IF_ERROR(
          by_state_.Run(args.dgh, Weight(d().w_hh(pair)), At(through_)));
    }
    PD_RETURN_IF_ERROR(Add(At(through_), elements, At(dh_)));
    PD_RETURN_IF_ERROR(EndState(0, pair, dh_));
    PD_RETURN_IF_ERROR(EndState(1, pair, dc_));
    PD_RETURN_IF_ERROR(WeightGrads(layer, pair));
    if (dx == nullptr) return absl::OkStatus();
    return Of(by_input_, layer).Run(At(dgx_), Weight(d().w_ih(pair)), At(dx));
  }

  absl::Status WeightGrads(int64_t layer, size_t pair) const {
    if (Tensor* dw = dweights_[d().w_ih(pair)])
      PD_RETURN_IF_ERROR(
          Of(input_weights_, layer).Run(At(dgx_), input_, At(dw)));
    if (Tensor* dw = dweights_[d().w_hh(pair)])
      PD_RETURN_IF_ERROR(state_weights_.Run(At(dgh_), At(last_h_), At(dw)));
    for (const auto& [from, at] :
         {std::pair(dgx_, d().b_ih(pair)), std::pair(dgh_, d().b_hh(pair))}) {
      if (dweights_[at] == nullptr) continue;
      const int64_t width = d().gate_width();
      PD_RETURN_IF_ERROR(biases_.Elements(
          width, {At(from), At(dweights_[at]), d().rows(), width}));
    }
    return absl::OkStatus();
  }

  Tensor *dout_ = nullptr, *dx_ = nullptr;
  const float* input_ = nullptr;  // of the layer that is computed
  std::vector<Tensor*> dstates_, dpre_states_, dweights_;
  Tensor* between_[2] = {};  // gradients of layers' inputs, in turn
  Tensor *part_ = nullptr, *dgx_ = nullptr, *dgh_ = nullptr;
  Tensor *last_h_ = nullptr, *dh_ = nullptr, *dc_ = nullptr;
  Tensor* through_ = nullptr;
  BoundAt by_input_[2], input_weights_[2], state_weights_, by_state_;
  Starter<RnnGradArgs> cell_;
  Starter<RnnSumArgs> biases_, add_;
};

}  // namespace

void AddRnn(KernelTable* kernels) {
  kernels->Add("rnn", {"cublaslt", BindDirection<RnnForward>});
  kernels->Add("rnn_grad", {"cublaslt", BindDirection<RnnBackward>});
}

}  // namespace pd::cuda
