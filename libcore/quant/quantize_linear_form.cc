// SPDX-License-Identifier: Apache-2.0
// The form with quantize_linear and dequantize_linear. Names are
// PaddlePaddle's: `x.quantized`, `x.quantized.dequantized`, `x@scale`,
// `...@zero_point`.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/quant/op_table.h"
#include "libcore/quant/quantized_model.h"
#include "libcore/quant/rewriter.h"

namespace pd {
namespace {

class LinearForm {
 public:
  LinearForm(const InferenceModel& model, const Quantization& q, bool observers)
      : rewriter_(model), q_(q), observers_(observers) {
    for (const QuantOp& op : q.plan.ops) {
      chosen_[op.op] = &op;
      for (const std::string& name : op.activations) real_.insert(name);
    }
  }

  InferenceModel Run() {
    const std::vector<OpDesc>& ops = rewriter_.ops();
    for (const std::string& feed : rewriter_.model().names.feeds)
      if (real_.count(feed) > 0) AddPair(feed, true);
    for (size_t i = 0; i < ops.size(); ++i) {
      OpDesc op = ops[i];
      const auto chosen = chosen_.find(i);
      if (chosen != chosen_.end()) {
        if (!chosen->second->weight.empty()) {
          AddWeight(chosen->second->weight);
          op.attrs["quantization_type"] = std::string("qat_with_weight");
        }
      }
      if (const QuantSlots* slots = FindQuantSlots(op.type))
        if (!slots->inputs.empty()) RenameInputs(slots->inputs, i, &op);
      rewriter_.Append(std::move(op));
      for (const std::string& name : QuantOutputs(ops[i])) AddPairAfter(name);
    }
    return rewriter_.Finish();
  }

 private:
  // An op that is left in float reads what it read, so that leaving it out
  // costs nothing; other ops read the observed twin.
  void RenameInputs(const std::vector<std::string>& slots, size_t i,
                    OpDesc* op) const {
    if (MayHoldWeight(op->type) && chosen_.count(i) == 0) return;
    rewriter_.Rename(slots, op);
  }

  void AddPairAfter(const std::string& name) {
    const auto it = q_.thresholds.find(name);
    if (it == q_.thresholds.end() || !(it->second > 0)) return;
    if (!IsRead(name)) return;
    if (!observers_ && IsBetween(name)) return;
    AddPair(name, real_.count(name) > 0 || !observers_);
  }

  // A value that another runtime computes together with what reads it: a
  // product before its bias is added, a sum before its relu, and whatever
  // comes of parameters alone.
  bool IsBetween(const std::string& name) const {
    const OpDesc *maker = nullptr, *reader = nullptr;
    int readers = 0;
    for (const OpDesc& op : rewriter_.ops()) {
      for (const std::string& out : QuantOutputs(op))
        if (out == name) maker = &op;
      for (const auto& [slot, names] : op.inputs)
        for (const std::string& input : names)
          if (input == name) reader = &op, ++readers;
    }
    if (maker != nullptr && ComesOfParams(*maker)) return true;
    if (maker == nullptr || readers != 1) return false;
    if (reader->type == "relu" || reader->type == "relu6") return true;
    return MayHoldWeight(maker->type) && reader->type == "elementwise_add" &&
           reader->In("X") == name && ReadsOfParams(reader->In("Y"));
  }

  bool ReadsOfParams(const std::string& name) const {
    if (rewriter_.IsParam(name)) return true;
    for (const OpDesc& op : rewriter_.ops())
      for (const std::string& out : QuantOutputs(op))
        if (out == name) return ComesOfParams(op);
    return false;
  }

  bool ComesOfParams(const OpDesc& op) const {
    const std::vector<std::string> inputs = QuantInputs(op);
    return !inputs.empty() &&
           std::all_of(inputs.begin(), inputs.end(),
                       [&](const auto& n) { return rewriter_.IsParam(n); });
  }

  // By an op of the table: nobody else looks at an observer.
  bool IsRead(const std::string& name) const {
    for (const OpDesc& op : rewriter_.ops())
      for (const std::string& input : QuantInputs(op))
        if (input == name) return true;
    return false;
  }

  void AddPair(const std::string& name, bool real) {
    const std::string quantized = absl::StrCat(name, ".quantized");
    const std::string back = absl::StrCat(quantized, ".dequantized");
    const auto scale = static_cast<float>(q_.thresholds.at(name));
    rewriter_.AddParam(ScaleName(name), MakeArray<float>({1}, {scale}));
    const std::string zero = absl::StrCat(quantized, "@zero_point");
    rewriter_.AddParam(zero, MakeArray<int32_t>({1}, {0}));
    rewriter_.AddLike(name, quantized);
    rewriter_.AddLike(name, back);
    for (const bool forth : {true, false}) {
      OpDesc op = Op(forth ? "quantize_linear" : "dequantize_linear",
                     forth ? name : quantized, ScaleName(name), zero,
                     forth ? quantized : back, -1, 8, !real);
      if (!observers_) AddZeroPoint(name, &op);
      rewriter_.Append(std::move(op));
    }
    rewriter_.Replace(name, back);
  }

  // Where both ends are known, integers from 0 to 255 between them.
  void AddZeroPoint(const std::string& name, OpDesc* op) const {
    const auto it = q_.ends.find(name);
    if (it == q_.ends.end()) return;
    const float low = std::min(it->second.first, 0.0f);
    const float high = std::max(it->second.second, 0.0f);
    const float step = (high - low) / 255;
    op->attrs["onnx_scale"] = step;
    op->attrs["onnx_zero_point"] =
        static_cast<int32_t>(std::nearbyint(-low / step));
  }

  void AddWeight(const std::string& name) {
    if (!weights_.insert(name).second) return;
    const QuantizedWeight& weight = q_.weights.at(name);
    const std::string back = absl::StrCat(name, ".quantized.dequantized");
    const std::string zero = absl::StrCat(back, "@zero_point");
    const auto channels = static_cast<int64_t>(weight.scales.size());
    rewriter_.AddLike(name, back);
    rewriter_.AddParam(name, weight.AsIntegers());
    rewriter_.AddParam(ScaleName(name),
                       MakeArray<float>({channels}, weight.scales));
    rewriter_.AddParam(
        zero, MakeArray<int32_t>({channels},
                                 std::vector<int32_t>(weight.scales.size())));
    rewriter_.Append(Op("dequantize_linear", name, ScaleName(name), zero, back,
                        weight.axis, weight.bits, false));
    rewriter_.Replace(name, back);
  }

  static OpDesc Op(const char* type, const std::string& x,
                   const std::string& scale, const std::string& zero,
                   const std::string& y, int axis, int bits, bool observer) {
    OpDesc op;
    op.type = type;
    op.SetInput("Scale", {scale});
    op.SetInput("X", {x});
    op.SetInput("ZeroPoint", {zero});
    op.SetOutput("Y", {y});
    op.attrs = {{"quant_axis", int32_t{axis}},
                {"bit_length", int32_t{bits}},
                {"round_type", int32_t{0}},
                {"is_test", true},
                {"only_observer", observer},
                {std::string(kOpRoleAttr), int32_t{kRoleForward}}};
    return op;
  }

  Rewriter rewriter_;
  const Quantization& q_;
  const bool observers_;
  std::map<size_t, const QuantOp*> chosen_;
  std::set<std::string> real_;     // activations that ops of the plan read
  std::set<std::string> weights_;  // done
};

}  // namespace

InferenceModel WithQuantizeLinear(const InferenceModel& model,
                                  const Quantization& quantization,
                                  bool observers) {
  return LinearForm(model, quantization, observers).Run();
}

}  // namespace pd
