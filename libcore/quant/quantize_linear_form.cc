// SPDX-License-Identifier: Apache-2.0
// The form with quantize_linear and dequantize_linear. Names are
// PaddlePaddle's: `x.quantized`, `x.quantized.dequantized`, `x@scale`,
// `...@zero_point`.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/deploy/weight_ops.h"
#include "libcore/ops/linalg/product_attrs.h"
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
    for (const auto& [name, threshold] : q.thresholds)
      if (IsAnswer(model, name)) answers_.insert(name);
  }

  InferenceModel Run() {
    const std::vector<OpDesc>& ops = rewriter_.ops();
    for (const std::string& feed : rewriter_.model().names.feeds)
      AddPairs(feed);
    for (size_t i = 0; i < ops.size(); ++i) {
      OpDesc op = ops[i];
      const auto chosen = chosen_.find(i);
      if (chosen != chosen_.end())
        ReadIntegers(*chosen->second, &op);
      else if (const QuantSlots* slots = FindQuantSlots(op.type))
        ReadObserved(slots->inputs, &op);
      if (IsClipping(ops[i]))
        clipped_[op.Out("Out")] = op.In("X");
      else
        rewriter_.Append(std::move(op));
      for (const std::string& name : QuantOutputs(ops[i])) AddPairs(name);
    }
    return rewriter_.Finish();
  }

 private:
  void ReadIntegers(const QuantOp& chosen, OpDesc* op) {
    if (!chosen.weight.empty()) {
      AddWeight(chosen.weight);
      op->attrs["quantization_type"] = q_.algorithm == "dynamic"
                                           ? q_.algorithm
                                           : std::string("qat_with_weight");
    }
    for (auto& [slot, names] : op->inputs)
      for (std::string& name : names)
        if (integers_.count(name) > 0) name = integers_[name];
  }

  // An op that is left in float reads what it read, so that leaving it out
  // costs nothing; other ops read the observed twin.
  void ReadObserved(const std::vector<std::string>& slots, OpDesc* op) const {
    if (MayHoldWeight(op->type) || slots.empty()) return;
    rewriter_.Rename(slots, op);
  }

  // A relu before integers whose least one stands for 0 does nothing.
  bool IsClipping(const OpDesc& op) const {
    if (observers_ || op.type != "relu") return false;
    const std::string& out = op.Out("Out");
    const auto ends = q_.ends.find(out);
    const auto& fetches = rewriter_.model().names.fetches;
    if (ends == q_.ends.end() || ends->second.first < 0 || !HasPair(out) ||
        SourceOf(out) != out ||
        std::count(fetches.begin(), fetches.end(), out) > 0)
      return false;
    for (size_t i = 0; i < rewriter_.ops().size(); ++i) {
      const OpDesc& reader = rewriter_.ops()[i];
      const std::vector<std::string> known = QuantInputs(reader);
      for (const auto& [slot, names] : reader.inputs)
        if (std::count(names.begin(), names.end(), out) > 0 &&
            (std::count(known.begin(), known.end(), out) == 0 ||
             (MayHoldWeight(reader.type) && chosen_.count(i) == 0)))
          return false;
    }
    return true;
  }

  // For the ops of the plan that read the variable, and for the others: these
  // see it as it is, as PaddlePaddle has it.
  void AddPairs(const std::string& name) {
    const auto it = q_.thresholds.find(name);
    if (it == q_.thresholds.end() || !(it->second > 0)) return;
    const bool real = real_.count(name) > 0;
    const bool others = IsReadByOthers(name);
    if (!observers_) {
      if (!real && (!others || IsBetween(name) || IsAnswerOfProduct(name)))
        return;
      integers_[name] = AddPair(name, name, true);
      rewriter_.Replace(name, integers_[name]);
      return;
    }
    if (real) integers_[name] = AddPair(name, name, true);
    if (others)
      rewriter_.Replace(
          name,
          AddPair(name, real ? absl::StrCat(name, ".observed") : name, false));
  }

  bool IsReadByOthers(const std::string& name) const {
    for (size_t i = 0; i < rewriter_.ops().size(); ++i) {
      const OpDesc& op = rewriter_.ops()[i];
      if (MayHoldWeight(op.type)) continue;
      for (const std::string& input : QuantInputs(op))
        if (input == name) return true;
    }
    return false;
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

  // ONNX Runtime gives the answers of a product, with its bias or without, in
  // float, which costs nothing and rounds nothing.
  bool IsAnswerOfProduct(const std::string& name) const {
    std::string made = name;
    for (size_t i = rewriter_.ops().size(); i-- > 0;) {
      const OpDesc& op = rewriter_.ops()[i];
      const std::vector<std::string> outs = QuantOutputs(op);
      if (std::count(outs.begin(), outs.end(), made) == 0) continue;
      if (op.type == "elementwise_add" && ReadsOfParams(op.In("Y")))
        made = op.In("X");
      else
        return IsProduct(op.type) && chosen_.count(i) > 0 &&
               answers_.count(name) > 0;
    }
    return false;
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

  // Gives the variable that came back.
  std::string AddPair(const std::string& name, const std::string& prefix,
                      bool real) {
    const std::string quantized = absl::StrCat(prefix, ".quantized");
    const std::string back = absl::StrCat(quantized, ".dequantized");
    const auto scale = static_cast<float>(q_.thresholds.at(name));
    rewriter_.AddParam(ScaleName(name), MakeArray<float>({1}, {scale}));
    const std::string zero = absl::StrCat(name, ".quantized@zero_point");
    rewriter_.AddParam(zero, MakeArray<int32_t>({1}, {0}));
    rewriter_.AddLike(name, quantized);
    rewriter_.AddLike(name, back);
    for (const bool forth : {true, false}) {
      OpDesc op = Op(forth ? "quantize_linear" : "dequantize_linear",
                     forth ? Unclipped(name) : quantized, ScaleName(name), zero,
                     forth ? quantized : back, !real);
      if (!observers_) AddZeroPoint(name, &op);
      rewriter_.Append(std::move(op));
    }
    return back;
  }

  const std::string& Unclipped(const std::string& name) const {
    const auto it = clipped_.find(name);
    return it == clipped_.end() ? name : it->second;
  }

  // ONNX's integers lie between both ends where those are known. What only
  // moves values keeps those of its input, so that it can be left out.
  void AddZeroPoint(const std::string& name, OpDesc* op) const {
    const auto it = q_.ends.find(SourceOf(name));
    const float threshold =
        static_cast<float>(q_.thresholds.at(SourceOf(name)));
    float low = -threshold, high = threshold;
    if (it != q_.ends.end()) {
      low = std::min(it->second.first, 0.0f);
      high = std::max(it->second.second, 0.0f);
    }
    const float step =
        it == q_.ends.end() ? threshold / 127 : (high - low) / 255;
    op->attrs["onnx_scale"] = step;
    op->attrs["onnx_zero_point"] =
        it == q_.ends.end() ? 128
                            : static_cast<int32_t>(std::nearbyint(-low / step));
  }

  std::string SourceOf(const std::string& name) const {
    static const std::set<std::string>* const kMoves =
        new std::set<std::string>{"reshape",
                                  "reshape2",
                                  "flatten",
                                  "flatten2",
                                  "flatten_contiguous_range",
                                  "transpose",
                                  "transpose2",
                                  "squeeze",
                                  "squeeze2",
                                  "unsqueeze2",
                                  "slice",
                                  "split",
                                  "nearest_interp",
                                  "nearest_interp_v2",
                                  "pool2d"};
    for (const OpDesc& op : rewriter_.ops()) {
      if (kMoves->count(op.type) == 0 ||
          (op.type == "pool2d" &&
           op.Attr<std::string>("pooling_type") != "max"))
        continue;
      const std::vector<std::string> inputs = QuantInputs(op);
      for (const std::string& out : QuantOutputs(op))
        if (out == name && inputs.size() == 1 && HasPair(inputs[0]))
          return SourceOf(inputs[0]);
    }
    return name;
  }

  bool HasPair(const std::string& name) const {
    const auto it = q_.thresholds.find(name);
    return it != q_.thresholds.end() && it->second > 0 && !IsBetween(name);
  }

  void AddWeight(const std::string& name) {
    if (weights_.insert(name).second)
      integers_[name] = rewriter_.AddWeight(name, q_.weights.at(name));
  }

  static OpDesc Op(const char* type, const std::string& x,
                   const std::string& scale, const std::string& zero,
                   const std::string& y, bool observer) {
    OpDesc op;
    op.type = type;
    op.SetInput("Scale", {scale});
    op.SetInput("X", {x});
    op.SetInput("ZeroPoint", {zero});
    op.SetOutput("Y", {y});
    op.attrs = {{"quant_axis", int32_t{-1}},
                {"bit_length", int32_t{8}},
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
  std::set<std::string> answers_;
  std::set<std::string> real_;  // activations that ops of the plan read
  std::map<std::string, std::string> integers_;  // their replacements
  std::map<std::string, std::string> clipped_;   // results of relus left out
  std::set<std::string> weights_;                // done
};

}  // namespace

InferenceModel WithQuantizeLinear(const InferenceModel& model,
                                  const Quantization& quantization,
                                  bool observers) {
  return LinearForm(model, quantization, observers).Run();
}

}  // namespace pd
