// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/grad_ops.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Attrs = std::map<std::string, Attribute>;

// Appends an op from X (and Y) to one new variable, or to `out` when it is
// given; gives the variable's name.
absl::StatusOr<std::string> Append(const char* type, SlotList inputs,
                                   Attrs attrs, const ParamGrad& pair,
                                   BlockBuilder* main, std::string out = "") {
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

absl::Status ClipEach(const GradClip& clip, std::vector<ParamGrad>* pairs,
                      BlockBuilder* main) {
  for (ParamGrad& pair : *pairs) {
    if (!pair.need_clip) continue;
    std::string clipped;
    if (clip.kind == GradClip::Kind::kValue) {
      PD_ASSIGN_OR_RETURN(clipped,
                          Append("clip", {{"X", {pair.grad}}},
                                 {{"min", static_cast<float>(clip.min)},
                                  {"max", static_cast<float>(clip.max)}},
                                 pair, main));
    } else {
      PD_ASSIGN_OR_RETURN(
          clipped, Append("clip_by_norm", {{"X", {pair.grad}}},
                          {{"max_norm", static_cast<float>(clip.clip_norm)}},
                          pair, main));
    }
    pair.grad = clipped;
  }
  return absl::OkStatus();
}

// Every gradient times clip_norm / max(clip_norm, the norm of all).
absl::Status ClipGlobalNorm(double clip_norm, std::vector<ParamGrad>* pairs,
                            BlockBuilder* main) {
  std::vector<std::string> squares;
  const ParamGrad* last = nullptr;
  for (const ParamGrad& pair : *pairs) {
    if (!pair.need_clip) continue;
    PD_ASSIGN_OR_RETURN(
        squares.emplace_back(),
        Append("squared_l2_norm", {{"X", {pair.grad}}}, {}, pair, main));
    last = &pair;
  }
  if (last == nullptr) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const std::string sum,
                      Append("sum", {{"X", squares}}, {}, *last, main));
  PD_ASSIGN_OR_RETURN(const std::string norm,
                      Append("sqrt", {{"X", {sum}}}, {}, *last, main));
  const VarDesc* var = main->FindVar(norm);
  PD_INVARIANT(var != nullptr);
  PD_ASSIGN_OR_RETURN(const std::string limit,
                      Append("fill_constant", {},
                             {{"shape", std::vector<int64_t>{1}},
                              {"dtype", static_cast<int32_t>(var->dtype)},
                              {"value", static_cast<float>(clip_norm)}},
                             *last, main));
  PD_ASSIGN_OR_RETURN(const std::string larger,
                      Append("elementwise_max", {{"X", {limit}}, {"Y", {norm}}},
                             {{"axis", int32_t{-1}}}, *last, main));
  PD_ASSIGN_OR_RETURN(
      const std::string factor,
      Append("elementwise_div", {{"X", {limit}}, {"Y", {larger}}},
             {{"axis", int32_t{-1}}}, *last, main));
  for (const ParamGrad& pair : *pairs)
    if (pair.need_clip)
      PD_RETURN_IF_ERROR(Append("elementwise_mul",
                                {{"X", {pair.grad}}, {"Y", {factor}}},
                                {{"axis", int32_t{-1}}}, pair, main, pair.grad)
                             .status());
  return absl::OkStatus();
}

}  // namespace

void MarkOptimize(const ParamGrad& pair, OpDesc* op) {
  op->attrs[std::string(kOpRoleAttr)] = int32_t{kRoleOptimize};
  op->attrs[std::string(kOpRoleVarAttr)] =
      std::vector<std::string>{pair.param, pair.grad};
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

absl::Status AppendWeightDecay(const WeightDecay& decay, const ParamGrad& pair,
                               BlockBuilder* main) {
  if (decay.kind == WeightDecay::Kind::kNone) return absl::OkStatus();
  std::string base = pair.param;
  if (decay.kind == WeightDecay::Kind::kL1) {
    PD_ASSIGN_OR_RETURN(base,
                        Append("sign", {{"X", {pair.param}}}, {}, pair, main));
  }
  PD_ASSIGN_OR_RETURN(const std::string term,
                      Append("scale", {{"X", {base}}},
                             {{"scale", static_cast<float>(decay.coeff)},
                              {"bias", 0.0f},
                              {"bias_after_scale", true}},
                             pair, main));
  return Append("sum", {{"X", {pair.grad, term}}}, {}, pair, main, pair.grad)
      .status();
}

}  // namespace pd
