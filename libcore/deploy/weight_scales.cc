// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/weight_scales.h"

#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/weight_ops.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd {
namespace {

absl::Status CheckSteps(const OpDesc& op, const std::string& name,
                        const Array& weight, const std::vector<float>& steps) {
  const auto bits = op.AttrOr<int32_t>(kWeightBitsAttr, 0);
  const bool fits = (bits == 8 && weight.dtype == DType::kInt8) ||
                    (bits == 16 && weight.dtype == DType::kInt16);
  if (!fits)
    return InvalidArgument("op '%s': its weight '%s' is %s; attr '%s' says %d",
                           op.type, name, Name(weight.dtype), kWeightBitsAttr,
                           bits);
  const auto count = static_cast<int64_t>(steps.size());
  const int axis = WeightStepsAxis(op);
  if (count > 1 && axis < 0)
    return Unimplemented(
        "op '%s': attr '%s' holds %d scales; expected 1, or an op of conv2d, "
        "depthwise_conv2d and mul",
        op.type, WeightStepsAttr(name), count);
  const auto at = static_cast<size_t>(axis);
  if (count > 1 && (at >= weight.shape.size() || weight.shape[at] != count))
    return InvalidArgument(
        "op '%s': attr '%s' holds %d scales; '%s' has the shape %s", op.type,
        WeightStepsAttr(name), count, name, ToString(weight.shape));
  for (const float step : steps)
    if (!std::isfinite(step) || step < 0)
      return InvalidArgument(
          "op '%s': attr '%s' holds %g; expected a number >= 0", op.type,
          WeightStepsAttr(name), step);
  return absl::OkStatus();
}

class Reader {
 public:
  Reader(ProgramDesc* program, NamedArrays* params)
      : program_(program), params_(params) {}

  absl::Status Run() {
    for (BlockDesc& block : program_->blocks) {
      done_.clear();
      std::vector<OpDesc> ops = std::move(block.ops);
      block.ops.clear();
      for (OpDesc& op : ops) {
        if (op.FindAttr(kWeightBitsAttr) != nullptr)
          PD_RETURN_IF_ERROR(ReadOp(&block, &op));
        block.ops.push_back(std::move(op));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status ReadOp(BlockDesc* block, OpDesc* op) {
    for (auto& [slot, names] : op->inputs)
      for (std::string& name : names) {
        const auto weight = params_->find(name);
        const Attribute* attr = op->FindAttr(WeightStepsAttr(name));
        // Their form for tests has its weights in float32.
        if (weight == params_->end() || attr == nullptr ||
            weight->second.dtype == DType::kFloat32)
          continue;
        const auto* steps = std::get_if<std::vector<float>>(attr);
        if (steps == nullptr || steps->empty())
          return InvalidArgument("op '%s': attr '%s' holds no scales", op->type,
                                 WeightStepsAttr(name));
        PD_RETURN_IF_ERROR(CheckSteps(*op, name, weight->second, *steps));
        PD_ASSIGN_OR_RETURN(const std::string back,
                            Back(block, *op, name, *steps));
        op->attrs.erase(WeightStepsAttr(name));
        name = back;
      }
    op->attrs.erase(kWeightBitsAttr);
    return absl::OkStatus();
  }

  // The weight in float32, made once a block.
  absl::StatusOr<std::string> Back(BlockDesc* block, const OpDesc& op,
                                   const std::string& name,
                                   const std::vector<float>& steps) {
    const auto bits = op.AttrOr<int32_t>(kWeightBitsAttr, 8);
    std::vector<float> scales = steps;
    for (float& scale : scales) scale *= static_cast<float>(QuantLevels(bits));
    const WeightOps back = DequantizeWeight(
        name, scales, steps.size() == 1 ? -1 : WeightStepsAxis(op), bits);
    const auto [done, first] = done_.emplace(name, steps);
    if (!first && done->second != steps)
      return InvalidArgument(
          "op '%s': attr '%s' has other scales than an op before it has",
          op.type, WeightStepsAttr(name));
    if (!first) return back.back();
    const Shape shape = params_->at(name).shape;
    for (VarDesc& var : program_->global().vars)
      if (var.name == name) var.dtype = params_->at(name).dtype;
    for (const std::string& made : back.made)
      AddVar(made, DType::kFloat32, shape, false, block);
    for (const auto& [param, value] : back.params) {
      AddVar(param, value.dtype, value.shape, true, &program_->global());
      (*params_)[param] = value;
    }
    block->ops.insert(block->ops.end(), back.ops.begin(), back.ops.end());
    return back.back();
  }

  static void AddVar(const std::string& name, DType dtype, const Shape& shape,
                     bool persistable, BlockDesc* block) {
    if (block->FindVar(name) != nullptr) return;
    VarDesc var;
    var.name = name;
    var.dtype = dtype;
    var.shape = shape;
    var.persistable = persistable;
    block->vars.push_back(std::move(var));
  }

  ProgramDesc* program_;
  NamedArrays* params_;
  std::map<std::string, std::vector<float>> done_;
};

}  // namespace

std::string WeightStepsAttr(const std::string& weight) {
  return absl::StrCat(weight, "_quant_scale");
}

int WeightStepsAxis(const OpDesc& op) {
  if (op.type == "conv2d" || op.type == "depthwise_conv2d") return 0;
  return op.type == "mul" ? 1 : -1;
}

absl::Status ReadWeightScales(ProgramDesc* program, NamedArrays* params) {
  return Reader(program, params).Run();
}

}  // namespace pd
