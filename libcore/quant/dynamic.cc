// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/dynamic.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/quant/op_table.h"
#include "libcore/quant/quantize.h"
#include "libcore/quant/rewriter.h"

namespace pd {
namespace {

// The matrices of an rnn op; biases follow them.
std::vector<std::string> RnnMatrices(const OpDesc& op) {
  std::vector<std::string> names = op.Input("WeightList");
  names.resize(names.size() / 2);
  return names;
}

// Why the op stays in float; "" where it need not.
std::string WhyFloat(const InferenceModel& model, const SkipList& skips,
                     const OpDesc& op) {
  const std::string skip = SkippedBy(skips, op);
  if (!skip.empty()) return absl::StrCat("skipped by '", skip, "'");
  for (const std::string& name : RnnMatrices(op)) {
    const auto it = model.params.find(name);
    if (it == model.params.end() || it->second.dtype != DType::kFloat32 ||
        it->second.shape.size() != 2)
      return absl::StrCat("'", name, "' is no float32 matrix");
    size_t readers = 0;
    for (const OpDesc& other : model.program.global().ops)
      for (const auto& [slot, names] : other.inputs)
        for (const std::string& read : names) readers += read == name;
    if (readers != 1)
      return absl::StrCat("its weight '", name, "' is read elsewhere too");
  }
  return "";
}

}  // namespace

absl::Status PlanDynamic(const InferenceModel& model, const SkipList& skips,
                         const WeightOptions& options, Quantization* q) {
  PD_ASSIGN_OR_RETURN(q->plan, PlanQuantization(model, skips));
  q->algorithm = "dynamic";
  q->plan.observed.clear();
  const std::vector<OpDesc>& ops = model.program.global().ops;
  std::vector<QuantOp> kept;
  for (QuantOp& op : q->plan.ops) {
    op.activations.clear();
    if (IsProduct(ops[op.op].type) && op.axis >= 0)
      kept.push_back(std::move(op));
    else
      q->plan.left.push_back(
          {ops[op.op].type, op.output, "it is no linear layer"});
  }
  q->plan.ops = std::move(kept);
  PD_RETURN_IF_ERROR(QuantizeWeights(model, options, q));
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].type != "rnn") continue;
    const std::string why = WhyFloat(model, skips, ops[i]);
    if (!why.empty()) {
      q->plan.left.push_back({"rnn", ops[i].Out("Out"), why});
      continue;
    }
    QuantOp found;
    found.op = i;
    found.output = ops[i].Out("Out");
    for (const std::string& name : RnnMatrices(ops[i])) {
      auto weight = QuantizeWeight(model.params.at(name), 0, options);
      if (!weight.ok())
        return Annotate(weight.status(),
                        absl::StrCat("parameter '", name, "'"));
      q->weights[name] = *std::move(weight);
    }
    q->plan.ops.push_back(std::move(found));
  }
  if (q->plan.ops.empty())
    return FailedPrecondition(
        "the model has no linear and no recurrent layer to quantize%s",
        q->plan.left.empty()
            ? ""
            : absl::StrCat(": '", q->plan.left[0].output, "' stays in float (",
                           q->plan.left[0].why, ")"));
  return absl::OkStatus();
}

InferenceModel WithDynamic(const InferenceModel& model, const Quantization& q) {
  Rewriter rewriter(WithQuantizeLinear(model, q));
  for (const OpDesc& from : rewriter.ops()) {
    OpDesc op = from;
    bool whole = op.type == "rnn";
    if (whole)
      for (const std::string& name : RnnMatrices(op))
        whole = whole && q.weights.count(name) > 0;
    if (whole) {
      std::vector<std::string> weights = op.Input("WeightList");
      for (size_t i = 0; i < weights.size() / 2; ++i)
        weights[i] = rewriter.AddWeight(weights[i], q.weights.at(weights[i]));
      op.SetInput("WeightList", weights);
      op.attrs["quantization_type"] = std::string("dynamic");
    }
    rewriter.Append(std::move(op));
  }
  return rewriter.Finish();
}

}  // namespace pd
