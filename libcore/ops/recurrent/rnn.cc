// SPDX-License-Identifier: Apache-2.0
// rnn: the recurrent layers of paddle.nn (SimpleRNN, LSTM, GRU) over Input
// [time, batch, input]. `mode` is RNN_TANH, RNN_RELU, LSTM or GRU (rnn_cell.h);
// is_bidirec adds a second direction whose output is put after the first one's.
// PreState and State: [layers * directions, batch, hidden], for LSTM two each.
// SequenceLength: steps at or after it leave the state alone and give zeros.
// While training, dropout_prob drops elements between layers, and the rest is
// multiplied by 1 / (1 - dropout_prob); DropoutState is the mask.
// Reserve is what rnn_grad needs (rnn_dims.h); it is empty with is_test.
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/recurrent/rnn_bind.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<RnnMode> ModeOf(const OpDesc& op) {
  const std::string mode = op.Attr<std::string>("mode");
  if (mode == "RNN_TANH") return RnnMode::kTanh;
  if (mode == "RNN_RELU") return RnnMode::kRelu;
  if (mode == "LSTM") return RnnMode::kLstm;
  if (mode == "GRU") return RnnMode::kGru;
  return InvalidArgument(
      "attr 'mode' is '%s'; expected RNN_TANH, RNN_RELU, LSTM or GRU", mode);
}

// Extents from the attributes and Input's shape; -1 where that has one.
absl::StatusOr<RnnDims> DimsOf(const OpDesc& op, const Shape& input) {
  RnnDims d;
  PD_ASSIGN_OR_RETURN(d.mode, ModeOf(op));
  d.hidden = op.Attr<int32_t>("hidden_size");
  d.layers = op.Attr<int32_t>("num_layers");
  d.directions = op.Attr<bool>("is_bidirec") ? 2 : 1;
  if (d.hidden < 1 || d.layers < 1)
    return InvalidArgument(
        "attr 'hidden_size' is %d, 'num_layers' is %d; expected 1 or more",
        d.hidden, d.layers);
  if (input.size() != 3)
    return InvalidArgument("'Input' has shape %s; expected [time, batch, n]",
                           ToString(input));
  d.time = input[0];
  d.batch = input[1];
  d.input = input[2];
  if (op.Input("WeightList").size() != d.weights() ||
      op.Input("PreState").size() != d.states())
    return InvalidArgument(
        "there are %d weights and %d states; expected %d and %d for %d layers "
        "of %d directions",
        op.Input("WeightList").size(), op.Input("PreState").size(), d.weights(),
        d.states(), d.layers, d.directions);
  if (!IsDynamic(input))  // everything below is at most this
    PD_RETURN_IF_ERROR(
        CheckedBytes({d.layers * d.directions, d.time + 1, d.batch + 1,
                      std::max(d.input, d.out_width()) + 1, 16},
                     sizeof(double))
            .status());
  return d;
}

double DropoutProb(const OpDesc& op, const RnnDims& d) {
  if (op.Attr<bool>("is_test") || d.layers < 2) return 0;
  return op.Attr<float>("dropout_prob");
}

}  // namespace

absl::Status InferRnn(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(const RnnDims d, DimsOf(context->op(), x.shape));
  const bool known = d.time >= 0 && d.batch >= 0;
  context->SetOutput("Out", {d.time, d.batch, d.out_width()}, x.dtype);
  for (size_t i = 0; i < context->OutputCount("State"); ++i)
    context->SetOutput("State", {d.layers * d.directions, d.batch, d.hidden},
                       x.dtype, i);
  const bool is_test = context->Attr<bool>("is_test");
  context->SetOutput("Reserve",
                     {is_test ? 0
                      : known ? d.reserve()
                              : -1},
                     x.dtype);
  const bool drops = DropoutProb(context->op(), d) > 0;
  context->SetOutput("DropoutState",
                     {!drops  ? 0
                      : known ? (d.layers - 1) * d.layer_out()
                              : -1},
                     DType::kUInt8);
  return absl::OkStatus();
}

std::vector<int64_t> RnnInputs::Lengths() const {
  std::vector<int64_t> steps;
  for (int64_t b = 0; lengths != nullptr && b < dims.batch; ++b)
    steps.push_back(LabelAt(*lengths, b));
  return steps;
}

absl::Status ExpectRnnInput(const Tensor* tensor, const char* slot, size_t i,
                            const Tensor& like, int64_t elements) {
  if (tensor == nullptr) return InvalidArgument("'%s' %d is missing", slot, i);
  if (tensor->dtype() != like.dtype() || tensor->size() != elements)
    return InvalidArgument("'%s' %d is %s %s; expected %s of %d elements", slot,
                           i, Name(tensor->dtype()), ToString(tensor->shape()),
                           Name(like.dtype()), elements);
  return absl::OkStatus();
}

absl::StatusOr<RnnInputs> ReadRnnInputs(BindContext* context,
                                        bool float_matrices) {
  RnnInputs b;
  b.x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(b.dims, DimsOf(context->op(), b.x->shape()));
  const RnnDims& d = b.dims;
  for (size_t i = 0; i < d.states(); ++i) {
    b.pre_states.push_back(context->Input("PreState", i));
    PD_RETURN_IF_ERROR(
        ExpectRnnInput(b.pre_states[i], "PreState", i, *b.x,
                       d.layers * d.directions * d.batch * d.hidden));
  }
  for (size_t i = 0; i < d.weights(); ++i)
    b.weights.push_back(context->Input("WeightList", i));
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    for (int64_t direction = 0; direction < d.directions; ++direction) {
      const size_t pair = d.pair(layer, direction);
      const auto expect = [&](size_t i, int64_t n) {
        return ExpectRnnInput(b.weights[i], "WeightList", i, *b.x,
                              d.gate_width() * n);
      };
      if (float_matrices) {
        PD_RETURN_IF_ERROR(expect(d.w_ih(pair), d.input_width(layer)));
        PD_RETURN_IF_ERROR(expect(d.w_hh(pair), d.hidden));
      }
      PD_RETURN_IF_ERROR(expect(d.b_ih(pair), 1));
      PD_RETURN_IF_ERROR(expect(d.b_hh(pair), 1));
    }
  }
  b.lengths = context->Input("SequenceLength");
  if (b.lengths != nullptr) {
    PD_RETURN_IF_ERROR(CheckLabelType("SequenceLength", b.lengths->dtype()));
    if (b.lengths->size() != d.batch)
      return InvalidArgument(
          "'SequenceLength' has %d elements; 'Input' has shape %s",
          b.lengths->size(), ToString(b.x->shape()));
  }
  b.drop = DropoutProb(context->op(), d);
  if (!(b.drop >= 0 && b.drop <= 1))
    return InvalidArgument("attr 'dropout_prob' is %g; expected 0 to 1",
                           b.drop);
  return b;
}

void FillRnnMask(const Philox& random, double drop, int64_t n, uint8_t* mask) {
  ParallelFor(n, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      mask[i] = random.Uniform(static_cast<uint64_t>(i)) >= drop ? 1 : 0;
  });
}

namespace {

// The reference's arithmetic.
template <typename T>
struct ReferenceRnnMath {
  static void Product(const GemmShape& shape, const T* a, const T* b, T* c) {
    static const GemmBatch one = {{{0, 0}}};
    Gemm<T>(shape, one, T(1), a, b, c);
  }
  static void Cell(RnnMode mode, int64_t n, const T* from_h, T* gates, T* extra,
                   T* h, T* c) {
    RnnCell(mode, n, from_h, gates, extra, h, c);
  }
  static void CellGrad(RnnMode mode, int64_t n, const RnnCellState<T>& s, T* dh,
                       T* dc, T* dx, T* dgh) {
    RnnCellGrad(mode, n, s, dh, dc, dx, dgh);
  }
};

absl::StatusOr<Step> BindRnn(BindContext* context) {
  return DispatchFloat(context->Input("Input")->dtype(),
                       [&](auto tag) -> absl::StatusOr<Step> {
                         using T = typename decltype(tag)::type;
                         return BindRnnWith<T, ReferenceRnnMath<T>>(context);
                       });
}

absl::StatusOr<Step> BindRnnGrad(BindContext* context) {
  return DispatchFloat(
      context->Input("Input")->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return BindRnnGradWith<T, ReferenceRnnMath<T>>(context);
      });
}

void AddRnnAttrs(OpDef* op) {
  op->Attr("dropout_prob", 0.0f).Attr("is_bidirec", false);
  op->Attr("input_size", int32_t{10}).Attr("hidden_size", int32_t{100});
  op->Attr("num_layers", int32_t{1}).Attr("mode", std::string("RNN_TANH"));
  op->Attr("seed", int32_t{0}).Attr("is_test", false);
}

}  // namespace

absl::Status RegisterRnn(OpRegistry* registry) {
  OpDef op("rnn");
  op.Input("Input").Inputs("PreState").Inputs("WeightList");
  op.OptionalInput("SequenceLength").Output("Out").Outputs("State");
  op.OptionalOutput("DropoutState").IntermediateOutput("Reserve");
  AddRnnAttrs(&op);
  op.Infer(InferRnn).Reference(BindRnn);
  op.Grad(GradSpec{"rnn_grad",
                   {"Input", "PreState", "WeightList", "SequenceLength"},
                   {"Out", "DropoutState", "Reserve"},
                   {"Out", "State"},
                   {"Input", "PreState", "WeightList"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("rnn_grad");
  grad.Input("Input").Inputs("PreState").Inputs("WeightList");
  grad.OptionalInput("SequenceLength").Input("Out");
  grad.OptionalInput("DropoutState").Input("Reserve");
  grad.OptionalInput("Out@GRAD").OptionalInputs("State@GRAD");
  grad.Output("Input@GRAD").Outputs("PreState@GRAD");
  grad.Outputs("WeightList@GRAD");
  AddRnnAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRnnGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
