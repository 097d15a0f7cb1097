// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/op_formula.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace pd {

std::string Present(const std::string& variable) {
  return variable == kEmptyVar ? std::string() : variable;
}

std::string CotangentOf(const OpDesc& grad, absl::string_view slot) {
  const std::string made = Present(grad.Out(slot));
  return made.empty() ? made : GradName(made);
}

OpFormula::OpFormula(const OpDesc& grad) {
  for (const auto& [slot, names] : grad.outputs)
    for (const std::string& name : names)
      if (base_.empty()) base_ = Present(name);
  // With "@GRAD" in them names are made new where they are taken; they do not
  // end with it, as those of gradients do.
  base_ = absl::StrCat(GradName(base_), "@");
}

std::string OpFormula::Temporary() {
  return absl::StrCat(base_, temporaries_++);
}

std::string OpFormula::Apply(OpDesc op, absl::string_view slot) {
  const std::string out = Temporary();
  op.SetOutput(std::string(slot), {out});
  Add(std::move(op));
  return out;
}

std::string OpFormula::Unary(absl::string_view type, const std::string& x) {
  OpDesc op;
  op.type = std::string(type);
  op.SetInput("X", {x});
  return Apply(std::move(op));
}

std::string OpFormula::Binary(absl::string_view type, const std::string& x,
                              const std::string& y, int32_t axis) {
  OpDesc op;
  op.type = std::string(type);
  op.SetInput("X", {x});
  op.SetInput("Y", {y});
  op.attrs["axis"] = axis;
  return Apply(std::move(op));
}

std::string OpFormula::Scale(const std::string& x, double scale, double bias) {
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {x});
  op.attrs["scale"] = static_cast<float>(scale);
  op.attrs["bias"] = static_cast<float>(bias);
  op.attrs["bias_after_scale"] = true;
  return Apply(std::move(op));
}

std::string OpFormula::Like(const std::string& x, double value) {
  OpDesc op;
  op.type = "fill_any_like";
  op.SetInput("X", {x});
  op.attrs["value"] = static_cast<float>(value);
  op.attrs["dtype"] = static_cast<int32_t>(-1);
  return Apply(std::move(op));
}

std::string OpFormula::SumAlong(const std::string& x, int32_t axis) {
  OpDesc op;
  op.type = "reduce_sum";
  op.SetInput("X", {x});
  op.attrs["dim"] = std::vector<int32_t>{axis};
  op.attrs["keep_dim"] = true;
  return Apply(std::move(op));
}

void OpFormula::Give(const std::string& value, const std::string& variable) {
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {value});
  op.SetOutput("Out", {GradName(variable)});
  Add(std::move(op));
}

std::vector<OpDesc> OpFormula::Take() {
  for (OpDesc& op : ops_) op.attrs[kRealNumbersAttr] = true;
  return std::move(ops_);
}

}  // namespace pd
