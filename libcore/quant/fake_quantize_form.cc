// SPDX-License-Identifier: Apache-2.0
// The form with fake_quantize ops. Names are PaddlePaddle's: `x.quantized`,
// `x@scale`, `y.dequantized`, `channel_scale_0`, `x.quant_dequant`.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libcore/deploy/weight_ops.h"
#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/quant/op_table.h"
#include "libcore/quant/quantized_model.h"
#include "libcore/quant/rewriter.h"

namespace pd {
namespace {

constexpr float kLevels = 127;

OpDesc NewOp(const std::string& type) {
  OpDesc op;
  op.type = type;
  op.attrs[std::string(kOpRoleAttr)] = int32_t{kRoleForward};
  return op;
}

class FakeForm {
 public:
  FakeForm(const InferenceModel& model, const Quantization& q)
      : rewriter_(model), q_(q) {
    for (const QuantOp& op : q.plan.ops) chosen_[op.op] = &op;
  }

  InferenceModel Run() {
    const std::vector<OpDesc>& ops = rewriter_.ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto chosen = chosen_.find(i);
      OpDesc op = ops[i];
      NoteThresholds(&op, chosen != chosen_.end());
      if (chosen == chosen_.end()) {
        rewriter_.Rename({}, &op);
        rewriter_.Append(std::move(op));
      } else if (chosen->second->weight.empty()) {
        AddProduct(std::move(op));
      } else {
        AddWeighted(*chosen->second, std::move(op));
      }
    }
    return rewriter_.Finish();
  }

 private:
  void NoteThresholds(OpDesc* op, bool chosen) const {
    const QuantSlots* slots = FindQuantSlots(op->type);
    if (slots == nullptr) return;
    for (const std::string& slot : slots->outputs) {
      const std::vector<std::string>& names = op->Output(slot);
      for (size_t i = 0; i < names.size(); ++i) {
        const auto it = q_.thresholds.find(names[i]);
        if (it == q_.thresholds.end()) continue;
        const auto threshold = static_cast<float>(it->second);
        op->attrs["out_threshold"] = threshold;
        op->attrs[absl::StrCat(slot, i, "_threshold")] = threshold;
        op->attrs["with_quant_attr"] = true;
      }
    }
    if (!chosen) return;
    op->attrs["quantization_type"] =
        q_.algorithm == "qat"
            ? std::string("qat")
            : absl::StrCat("post_", absl::AsciiStrToLower(q_.algorithm));
    op->attrs["with_quant_attr"] = true;
  }

  // The quantized activation, made where it is first asked for.
  std::string Quantized(const std::string& name, bool and_back) {
    const std::string out =
        absl::StrCat(name, and_back ? ".quant_dequant" : ".quantized");
    if (!made_.insert(out).second) return out;
    const std::string scale = ScaleName(and_back ? out : name);
    const auto threshold = static_cast<float>(q_.thresholds.at(name));
    rewriter_.AddParam(scale, MakeArray<float>({1}, {threshold}));
    rewriter_.AddLike(name, out);
    OpDesc op =
        NewOp(and_back ? "fake_quantize_dequantize_moving_average_abs_max"
                       : "fake_quantize_moving_average_abs_max");
    op.SetInput("InScale", {scale});
    op.SetInput("X", {rewriter_.Now(name)});
    op.SetOutput("Out", {out});
    op.SetOutput("OutScale", {scale});
    op.attrs["bit_length"] = int32_t{8};
    op.attrs["is_test"] = true;
    op.attrs["moving_rate"] = 0.9f;
    op.attrs["round_type"] = int32_t{1};
    rewriter_.Append(std::move(op));
    return out;
  }

  void AddProduct(OpDesc op) {
    for (auto& [slot, names] : op.inputs)
      for (std::string& name : names) name = Quantized(name, true);
    rewriter_.Append(std::move(op));
  }

  void AddWeighted(const QuantOp& chosen, OpDesc op) {
    const QuantizedWeight& weight = q_.weights.at(chosen.weight);
    if (weights_.insert(chosen.weight).second)
      rewriter_.AddParam(chosen.weight, weight.AsFloats());
    const std::string& activation = chosen.activations[0];
    const std::string scale = ScaleName(activation);
    const std::string quantized = Quantized(activation, false);
    for (auto& [slot, names] : op.inputs)
      for (std::string& name : names) {
        if (name == activation)
          name = quantized;
        else if (name != chosen.weight)
          name = rewriter_.Now(name);
      }
    // A fetch of the result by its name shall get it.
    const bool fetched = IsFetched(chosen.output);
    const std::string product =
        fetched ? absl::StrCat(chosen.output, ".quantized") : chosen.output;
    const std::string result =
        fetched ? chosen.output : absl::StrCat(product, ".dequantized");
    rewriter_.AddLike(chosen.output, fetched ? product : result);
    for (auto& [slot, names] : op.outputs)
      for (std::string& name : names)
        if (name == chosen.output) name = product;
    const OpDesc back = weight.axis >= 0
                            ? ByChannel(op, weight, product, scale, result)
                            : AsWhole(weight, product, scale, result);
    rewriter_.Append(std::move(op));
    rewriter_.Append(back);
    if (!fetched) rewriter_.Replace(chosen.output, result);
  }

  OpDesc ByChannel(const OpDesc& op, const QuantizedWeight& weight,
                   const std::string& product, const std::string& scale,
                   const std::string& result) {
    const std::string scales =
        absl::StrCat("channel_scale_", channel_scales_++);
    // A grouped transposed filter holds the outputs of one group.
    std::vector<float> all;
    const int32_t groups =
        op.type == "conv2d_transpose" ? op.Attr<int32_t>("groups") : 1;
    for (int32_t g = 0; g < groups; ++g)
      all.insert(all.end(), weight.scales.begin(), weight.scales.end());
    rewriter_.AddParam(
        scales, MakeArray<float>({static_cast<int64_t>(all.size())}, all));
    OpDesc back = NewOp("fake_channel_wise_dequantize_max_abs");
    back.SetInput("Scales", {scales, scale});
    back.SetInput("X", {product});
    back.SetOutput("Out", {result});
    back.attrs["quant_bits"] = std::vector<int32_t>{weight.bits, 8};
    back.attrs["quant_axis"] = int32_t{weight.axis};
    int32_t columns = 1;
    if (IsProduct(op.type)) {
      const VarDesc* out = rewriter_.FindVar(result);
      columns = op.type == "mul" ? ProductAttrsOf(op).x_num_col_dims
                                 : static_cast<int32_t>(out->shape.size()) - 1;
    }
    back.attrs["x_num_col_dims"] = columns;
    return back;
  }

  static OpDesc AsWhole(const QuantizedWeight& weight,
                        const std::string& product, const std::string& scale,
                        const std::string& result) {
    OpDesc back = NewOp("fake_dequantize_max_abs");
    back.SetInput("Scale", {scale});
    back.SetInput("X", {product});
    back.SetOutput("Out", {result});
    back.attrs["max_range"] = static_cast<float>(
        static_cast<double>(weight.levels()) / weight.scales[0] * kLevels);
    return back;
  }

  bool IsFetched(const std::string& name) {
    for (const std::string& fetch : rewriter_.model().names.fetches)
      if (fetch == name) return true;
    return false;
  }

  Rewriter rewriter_;
  const Quantization& q_;
  std::map<size_t, const QuantOp*> chosen_;
  std::set<std::string> made_, weights_;
  int channel_scales_ = 0;
};

}  // namespace

InferenceModel WithFakeQuantize(const InferenceModel& model,
                                const Quantization& quantization) {
  return FakeForm(model, quantization).Run();
}

}  // namespace pd
