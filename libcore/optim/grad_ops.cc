// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/grad_ops.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// From this version on PaddlePaddle's learning rate has shape [] instead of
// [1].
constexpr int64_t kScalarsVersion = 2005000;

absl::Status ClipEach(const GradClip& clip, std::vector<ParamGrad>* pairs,
                      BlockBuilder* main) {
  for (ParamGrad& pair : *pairs) {
    if (!pair.need_clip) continue;
    std::string clipped;
    if (clip.kind == GradClip::Kind::kValue) {
      PD_ASSIGN_OR_RETURN(
          clipped, AppendOptimizeOp("clip", {{"X", {pair.grad}}},
                                    {{"min", static_cast<float>(clip.min)},
                                     {"max", static_cast<float>(clip.max)}},
                                    pair, main));
    } else {
      PD_ASSIGN_OR_RETURN(
          clipped,
          AppendOptimizeOp("clip_by_norm", {{"X", {pair.grad}}},
                           {{"max_norm", static_cast<float>(clip.clip_norm)}},
                           pair, main));
    }
    pair.grad = clipped;
  }
  return absl::OkStatus();
}

// The gradient, or the values of its rows, each there once.
absl::StatusOr<std::string> DenseRows(const ParamGrad& pair,
                                      BlockBuilder* main) {
  if (!IsRows(pair.grad, *main)) return pair.grad;
  PD_ASSIGN_OR_RETURN(const std::string merged,
                      AppendOptimizeOp("merge_selected_rows",
                                       {{"X", {pair.grad}}}, {}, pair, main));
  return AppendOptimizeOp("get_tensor_from_selected_rows", {{"X", {merged}}},
                          {}, pair, main);
}

// Every gradient times clip_norm / max(clip_norm, the norm of all).
absl::Status ClipGlobalNorm(double clip_norm, std::vector<ParamGrad>* pairs,
                            BlockBuilder* main) {
  std::vector<std::string> squares;
  const ParamGrad* last = nullptr;
  for (const ParamGrad& pair : *pairs) {
    if (!pair.need_clip) continue;
    PD_ASSIGN_OR_RETURN(const std::string grad, DenseRows(pair, main));
    PD_ASSIGN_OR_RETURN(
        squares.emplace_back(),
        AppendOptimizeOp("squared_l2_norm", {{"X", {grad}}}, {}, pair, main));
    last = &pair;
  }
  if (last == nullptr) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      const std::string sum,
      AppendOptimizeOp("sum", {{"X", squares}}, {}, *last, main));
  PD_ASSIGN_OR_RETURN(
      const std::string norm,
      AppendOptimizeOp("sqrt", {{"X", {sum}}}, {}, *last, main));
  const VarDesc* var = main->FindVar(norm);
  PD_INVARIANT(var != nullptr);
  PD_ASSIGN_OR_RETURN(
      const std::string limit,
      AppendOptimizeOp("fill_constant", {},
                       {{"shape", std::vector<int64_t>{1}},
                        {"dtype", static_cast<int32_t>(var->dtype)},
                        {"value", static_cast<float>(clip_norm)}},
                       *last, main));
  PD_ASSIGN_OR_RETURN(
      const std::string larger,
      AppendOptimizeOp("elementwise_max", {{"X", {limit}}, {"Y", {norm}}},
                       {{"axis", int32_t{-1}}}, *last, main));
  PD_ASSIGN_OR_RETURN(
      const std::string factor,
      AppendOptimizeOp("elementwise_div", {{"X", {limit}}, {"Y", {larger}}},
                       {{"axis", int32_t{-1}}}, *last, main));
  for (const ParamGrad& pair : *pairs)
    if (pair.need_clip)
      PD_RETURN_IF_ERROR(AppendOptimizeOp("elementwise_mul",
                                          {{"X", {pair.grad}}, {"Y", {factor}}},
                                          {{"axis", int32_t{-1}}}, pair, main,
                                          pair.grad)
                             .status());
  return absl::OkStatus();
}

// As Python prints it: the shortest digits that give the number back.
std::string Repr(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  std::string digits(text, end);
  if (digits.find_first_of(".en") == std::string::npos) digits += ".0";
  return digits;
}

}  // namespace

bool IsRows(const std::string& name, const BlockBuilder& main) {
  const VarDesc* var = main.FindVar(name);
  return var != nullptr && var->kind == VarKind::kSelectedRows;
}

void MarkOptimize(const ParamGrad& pair, OpDesc* op) {
  op->attrs[std::string(kOpRoleAttr)] = int32_t{kRoleOptimize};
  op->attrs[std::string(kOpRoleVarAttr)] =
      std::vector<std::string>{pair.param, pair.grad};
}

absl::StatusOr<std::string> AppendOptimizeOp(
    const char* type, SlotList inputs, std::map<std::string, Attribute> attrs,
    const ParamGrad& pair, BlockBuilder* main, std::string out) {
  OpDesc op;
  op.type = type;
  op.inputs = std::move(inputs);
  op.attrs = std::move(attrs);
  if (out.empty()) out = main->UniqueTemporary(type);
  op.SetOutput("Out", {out});
  MarkOptimize(pair, &op);
  PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  return out;
}

absl::Status AddFilled(const std::string& name, DType dtype, const Shape& shape,
                       double fill, bool stop_gradient, BlockBuilder* main,
                       BlockBuilder* startup) {
  VarDesc var;
  var.name = name;
  var.dtype = dtype;
  var.shape = shape;
  var.persistable = true;
  var.stop_gradient = stop_gradient;
  main->AddVar(var);
  var.stop_gradient = true;
  startup->AddVar(std::move(var));
  OpDesc op;
  op.type = "fill_constant";
  op.SetOutput("Out", {name});
  op.attrs = {{"shape", shape},
              {"dtype", static_cast<int32_t>(dtype)},
              {"value", static_cast<float>(fill)},
              {"str_value", Repr(fill)}};
  return startup->Append(std::move(op));
}

std::string UniqueName(const std::string& stem, const BlockBuilder& main) {
  int number = 0;
  std::string name;
  do {
    name = absl::StrCat(stem, "_", number++);
  } while (main.FindVar(name) != nullptr);
  return name;
}

absl::StatusOr<std::string> RateOf(const ParamGrad& pair,
                                   const std::string& learning_rate,
                                   BlockBuilder* main) {
  if (pair.learning_rate == 1) return learning_rate;
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {learning_rate});
  const std::string out = main->UniqueTemporary("scale");
  op.SetOutput("Out", {out});
  op.attrs = {{"scale", static_cast<float>(pair.learning_rate)},
              {"bias", 0.0f},
              {"bias_after_scale", true}};
  MarkOptimize(pair, &op);
  op.attrs[std::string(kOpRoleAttr)] = kRoleOptimize | kRoleLRSched;
  PD_RETURN_IF_ERROR(main->Append(std::move(op)));
  return out;
}

absl::StatusOr<std::string> AddLearningRate(double rate, BlockBuilder* main,
                                            BlockBuilder* startup) {
  std::string name = UniqueName("learning_rate", *main);
  const bool scalars = main->program()->version >= kScalarsVersion;
  PD_RETURN_IF_ERROR(AddFilled(name, DType::kFloat32,
                               scalars ? Shape{} : Shape{1}, rate, true, main,
                               startup));
  return name;
}

absl::Status AppendGradClip(const GradClip& clip, std::vector<ParamGrad>* pairs,
                            BlockBuilder* main) {
  switch (clip.kind) {
    case GradClip::Kind::kNone:
      return absl::OkStatus();
    case GradClip::Kind::kValue:
      if (!(clip.min <= clip.max))
        return InvalidArgument(
            "gradients are clipped to [%g, %g]; expected "
            "min <= max",
            clip.min, clip.max);
      return ClipEach(clip, pairs, main);
    case GradClip::Kind::kNorm:
    case GradClip::Kind::kGlobalNorm:
      if (!(clip.clip_norm > 0))
        return InvalidArgument("'clip_norm' is %g; expected more than 0",
                               clip.clip_norm);
      return clip.kind == GradClip::Kind::kNorm
                 ? ClipEach(clip, pairs, main)
                 : ClipGlobalNorm(clip.clip_norm, pairs, main);
  }
  return absl::OkStatus();
}

absl::Status AppendWeightDecay(const WeightDecay& decay, ParamGrad* changed,
                               BlockBuilder* main) {
  if (decay.kind == WeightDecay::Kind::kNone) return absl::OkStatus();
  const ParamGrad pair = *changed;
  std::string base = pair.param;
  if (decay.kind == WeightDecay::Kind::kL1) {
    PD_ASSIGN_OR_RETURN(
        base, AppendOptimizeOp("sign", {{"X", {pair.param}}}, {}, pair, main));
  }
  PD_ASSIGN_OR_RETURN(
      const std::string term,
      AppendOptimizeOp("scale", {{"X", {base}}},
                       {{"scale", static_cast<float>(decay.coeff)},
                        {"bias", 0.0f},
                        {"bias_after_scale", true}},
                       pair, main));
  // Selected rows become dense by it: another variable then.
  const std::string sum = IsRows(pair.grad, *main) ? "" : pair.grad;
  PD_ASSIGN_OR_RETURN(
      changed->grad,
      AppendOptimizeOp("sum", {{"X", {pair.grad, term}}}, {}, pair, main, sum));
  return absl::OkStatus();
}

}  // namespace pd
