// SPDX-License-Identifier: Apache-2.0
// cudnn_lstm: the layers of an LSTM over Input [time, batch, n], as cuDNN has
// them: an `rnn` of mode LSTM whose states are InitH and InitC. Its weights are
// WeightList, in the order of rnn's, or W, where cuDNN lays the same ones end
// to end: the input's and the recurrent weights of each layer and direction,
// then the biases. StateOut and Reserve, cuDNN's own notes, are empty here.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/recurrent/rnn_dims.h"

namespace pd {
namespace {

using Extents = std::vector<int32_t>;

// The shapes of the weights in their order.
absl::StatusOr<std::vector<Extents>> LstmWeightShapes(
    const Composition& parts) {
  const Shape& x = parts.Meta("Input").shape;
  const auto hidden = parts.Attr<int32_t>("hidden_size");
  const auto layers = parts.Attr<int32_t>("num_layers");
  const int64_t directions = parts.Attr<bool>("is_bidirec") ? 2 : 1;
  if (x.size() != 3 || x[2] < 1 || hidden < 1 || layers < 1)
    return InvalidArgument(
        "'Input' has shape %s, attr 'hidden_size' is %d and 'num_layers' %d; "
        "expected [time, batch, n], and 1 or more",
        ToString(x), hidden, layers);
  const Shape& w = parts.Meta("W").shape;
  if (IsDynamic(w))
    return Unimplemented("'W' has shape %s; its extents must be known",
                         ToString(w));
  PD_RETURN_IF_ERROR(CheckedBytes({layers, directions, 8, hidden,
                                   std::max<int64_t>(x[2], hidden)},
                                  sizeof(double))
                         .status());
  const int64_t rows = 4 * int64_t{hidden};
  const int64_t own = rows * (x[2] + hidden + 2);
  const int64_t later = rows * (directions * hidden + hidden + 2);
  const int64_t all = directions * (own + (layers - 1) * later);
  if (NumElements(w) != all)  // which bounds the number of weights
    return InvalidArgument("'W' has shape %s; expected %d numbers", ToString(w),
                           all);
  std::vector<Extents> shapes;
  for (int64_t pair = 0; pair < layers * directions; ++pair) {
    const int64_t width = pair < directions ? x[2] : directions * hidden;
    shapes.push_back({static_cast<int32_t>(rows), static_cast<int32_t>(width)});
    shapes.push_back({static_cast<int32_t>(rows), hidden});
  }
  const size_t matrices = shapes.size();
  shapes.insert(shapes.end(), matrices, {static_cast<int32_t>(rows)});
  return shapes;
}

// The parts of W.
absl::StatusOr<Composition::Names> AddLstmWeights(Composition* parts) {
  if (!parts->HasInput("W"))
    return InvalidArgument("neither 'W' nor 'WeightList' is there");
  PD_ASSIGN_OR_RETURN(const std::vector<Extents> shapes,
                      LstmWeightShapes(*parts));
  const std::string flat = parts->Apply("reshape2", {{"X", {parts->In("W")}}},
                                        {{"shape", Extents{-1}}});
  Composition::Names names;
  int64_t begin = 0;
  for (const Extents& shape : shapes) {
    int64_t end = begin;
    end += shape.size() == 2 ? int64_t{shape[0]} * shape[1] : shape[0];
    if (end > std::numeric_limits<int32_t>::max())
      return OutOfRange("'W' ends at %d; a slice can end at 2^31 - 1", end);
    const std::string part =
        parts->Apply("slice", {{"Input", {flat}}},
                     {{"axes", Extents{0}},
                      {"starts", Extents{static_cast<int32_t>(begin)}},
                      {"ends", Extents{static_cast<int32_t>(end)}}});
    names.push_back(
        parts->Apply("reshape2", {{"X", {part}}}, {{"shape", shape}}));
    begin = end;
  }
  return names;
}

absl::Status ComposeCudnnLstm(Composition* parts) {
  Composition::Names weights;
  if (parts->HasInput("WeightList")) {
    weights = parts->Ins("WeightList");
  } else {
    PD_ASSIGN_OR_RETURN(weights, AddLstmWeights(parts));
  }
  Composition::Slots in = {
      {"Input", {parts->In("Input")}},
      {"PreState", {parts->In("InitH"), parts->In("InitC")}},
      {"WeightList", std::move(weights)}};
  if (parts->HasInput("SequenceLength"))
    in.push_back({"SequenceLength", {parts->In("SequenceLength")}});
  // The mask follows from a name, which the gradient has to find again.
  const OpDesc& op = parts->op();
  const std::string mask = absl::StrCat(
      op.type == "cudnn_lstm" ? op.Out("Out") : op.In("Out"), "/dropout");
  Composition::Attrs attrs;
  for (const char* name : {"hidden_size", "num_layers", "seed"})
    attrs[name] = parts->Attr<int32_t>(name);
  for (const char* name : {"is_bidirec", "is_test"})
    attrs[name] = parts->Attr<bool>(name);
  attrs["dropout_prob"] = parts->Attr<float>("dropout_prob");
  attrs["mode"] = std::string("LSTM");
  parts->Add("rnn", in,
             {{"Out", {parts->Out("Out")}},
              {"State", {parts->Out("LastH"), parts->Out("LastC")}},
              {"DropoutState", {mask}},
              {"Reserve", {parts->Temp()}}},
             std::move(attrs));
  return absl::OkStatus();
}

void AddCudnnLstmSlots(OpDef* op) {
  op->Input("Input").Input("InitH").Input("InitC").OptionalInput("W");
  op->OptionalInputs("WeightList").OptionalInput("SequenceLength");
  op->Attr("dropout_prob", 0.0f).Attr("is_bidirec", false);
  op->Attr("input_size", int32_t{10}).Attr("hidden_size", int32_t{100});
  op->Attr("num_layers", int32_t{1}).Attr("is_test", false);
  op->Attr("seed", int32_t{0});
}

}  // namespace

absl::Status RegisterCudnnLstm(OpRegistry* registry) {
  OpDef op("cudnn_lstm");
  AddCudnnLstmSlots(&op);
  op.IntermediateOutput("Reserve").IntermediateOutput("StateOut");
  op.Output("Out").Output("LastH").Output("LastC");
  op.Infer(InferComposed<ComposeCudnnLstm>);
  op.Reference(BindComposed<ComposeCudnnLstm>);
  op.Grad(
      GradSpec{"cudnn_lstm_grad",
               {"Input", "InitH", "InitC", "W", "WeightList", "SequenceLength"},
               {"Out"},
               {"Out", "LastH", "LastC"},
               {"Input", "InitH", "InitC", "W", "WeightList"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("cudnn_lstm_grad");
  AddCudnnLstmSlots(&grad);
  grad.OptionalInput("Reserve").OptionalInput("StateOut").Input("Out");
  for (const char* slot : {"Out@GRAD", "LastH@GRAD", "LastC@GRAD"})
    grad.OptionalInput(slot);
  for (const char* slot : {"Input@GRAD", "InitH@GRAD", "InitC@GRAD", "W@GRAD"})
    grad.OptionalOutput(slot);
  grad.OptionalOutputs("WeightList@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad();
  return registry->Add(
      std::move(grad.Reference(BindComposedGrad<ComposeCudnnLstm>)));
}

}  // namespace pd
