// SPDX-License-Identifier: Apache-2.0
// [scale ->] matmul by transposed keys [-> scale] [-> elementwise_add of a
// mask]
//   -> softmax [-> dropout] -> matmul by values
//   -> scaled_dot_product_attention
// and their gradient ops, where they are there, likewise
//   -> scaled_dot_product_attention_grad
// Products are matmul_v2 or matmul. What lies between them must be nobody
// else's, and the mask must want no gradient. Queries that are known to be one
// are trained by the chain, which is 3 % faster there. So is it where the op
// has no kernel but the reference: in float64, and without oneDNN. In a
// training program both sides change together, or neither does.
//
// On a GPU the op is one of halves: what mixed precision casts to float32
// before the softmax and to halves behind it goes with the chain, and what
// drops elements stays one.
#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/passes/pattern.h"

namespace pd {
namespace {

bool HasTrans(const OpDesc& op, bool x, bool y) {
  const ProductAttrs product = ProductAttrsOf(op);
  return product.trans_x == x && product.trans_y == y;
}

bool HasRank4(const OpGraph& graph, const std::string& name) {
  const VarDesc* var = graph.Var(name);
  return var != nullptr && var->shape.size() == 4;
}

bool IsScores(const Match& match, const OpDesc& op) {
  return HasTrans(op, false, true) && op.In("X") != op.In("Y") &&
         HasRank4(match.graph(), op.In("X")) &&
         HasRank4(match.graph(), op.In("Y"));
}

bool IsOutput(const Match& match, const OpDesc& op) {
  return HasTrans(op, false, false) && HasRank4(match.graph(), op.In("Y"));
}

bool IsSoftmax(const Match& match, const OpDesc& op) {
  const int32_t axis = op.Attr<int32_t>("axis");
  return (axis == -1 || axis == 3) && HasRank4(match.graph(), op.In("X"));
}

// Extents of a mask meet those of the scores, from the right: equal or 1.
bool Fits(const Shape& mask, const Shape& scores) {
  for (size_t i = 1; i <= mask.size(); ++i) {
    const int64_t of_mask = mask[mask.size() - i];
    if (of_mask > 1 && scores[4 - i] >= 0 && of_mask != scores[4 - i])
      return false;
    if (of_mask != 1 && scores[4 - i] == 1) return false;
  }
  return true;
}

// Whether the values added to the scores are broadcast to them.
bool AddsMask(const Match& match, const OpDesc& add) {
  const VarDesc* mask = match.graph().Var(add.In("Y"));
  return mask != nullptr && mask->shape.size() <= 4 &&
         HasRank4(match.graph(), add.In("X")) &&
         Fits(mask->shape, match.graph().Var(add.In("X"))->shape);
}

// The chain, which begins with a scale of the queries or does not; on a GPU
// with casts around the softmax, and with no dropout that drops.
Pattern Attention(bool scales_query, bool on_gpu) {
  const auto scale = [](const char* name) {
    return PatternOp{name, {"scale"}, {"X"}, "Out"}
        .Attr("bias", 0.0f)
        .Without("ScaleTensor")
        .GradientIsItself("scale");
  };
  const auto product = [](const char* name) {
    return PatternOp{name, {"matmul_v2", "matmul"}, {"X"}, "Out"};
  };
  const auto cast = [](const char* name) {
    return PatternOp{name, {"cast"}, {"X"}, "Out"}.Optional();
  };
  const auto first_narrowing = [](const Match& match, const OpDesc&) {
    return !match.Has("narrowed");
  };
  Pattern chain;
  if (scales_query) chain.push_back(scale("query scale"));
  chain.push_back(product("scores").If(IsScores));
  chain.push_back(scale("scale").Optional());
  chain.push_back(PatternOp{"add", {"elementwise_add"}, {"X"}, "Out"}
                      .Optional()
                      .Attr("axis", int32_t{-1})
                      .If(AddsMask));
  if (on_gpu) chain.push_back(cast("widened"));
  chain.push_back(
      PatternOp{"softmax", {"softmax"}, {"X"}, "Out"}.If(IsSoftmax));
  if (on_gpu) chain.push_back(cast("narrowed"));
  chain.push_back(
      PatternOp{"dropout", {"dropout"}, {"X"}, "Out"}.Optional().Without(
          "Seed"));
  if (on_gpu) {
    chain.back().Attr("is_test", true);
    chain.push_back(cast("narrowed").If(first_narrowing));
  }
  chain.push_back(product("output").Attr("alpha", 1.0f).If(IsOutput));
  return chain;
}

// Whether the op would be of float32; on a GPU of float16 or bfloat16, with a
// softmax of the same or between casts.
bool HasTypes(const Match& match, bool on_gpu) {
  const auto dtype = [&](const char* op, const char* slot) {
    const VarDesc* var = match.graph().Var(match.op(op).In(slot));
    return var == nullptr ? DType::kFloat64 : var->dtype;
  };
  const DType softmax = dtype("softmax", "X");
  if (!on_gpu) return softmax == DType::kFloat32;
  const DType half = dtype("scores", "X");
  const bool widens = match.Has("widened");
  if ((half != DType::kFloat16 && half != DType::kBFloat16) ||
      widens != match.Has("narrowed") ||
      softmax != (widens ? DType::kFloat32 : half))
    return false;
  if (widens && dtype("widened", "X") != half) return false;
  return dtype("scores", "Y") == half && dtype("output", "X") == half &&
         dtype("output", "Y") == half &&
         (!match.Has("add") || dtype("add", "Y") == half);
}

// Whether this is a chain that is better as one op, and may become one.
bool MayFuse(const Match& match, bool on_gpu) {
  if (!HasTypes(match, on_gpu)) return false;
  if (match.Has("dropout"))
    for (const std::string& mask : match.op("dropout").Output("Mask"))
      if (!match.IsPrivate(mask)) return false;
  if (!match.HasGradients()) return true;
  if (match.Has("add")) {
    const auto& of_mask = match.grad("add")->Output("Y@GRAD");
    if (!of_mask.empty() && of_mask[0] != kEmptyVar) return false;
  }
  return match.graph().Var(match.op("scores").In("X"))->shape[2] != 1;
}

float ScaleOf(const Match& match, const char* name) {
  return match.Has(name) ? match.op(name).Attr<float>("scale") : 1.0f;
}

OpDesc Forward(const Match& match) {
  const OpDesc &product = match.op("scores"), &output = match.op("output");
  const OpDesc& first =
      match.Has("query scale") ? match.op("query scale") : product;
  OpDesc fused;
  fused.type = "scaled_dot_product_attention";
  fused.SetInput("query", first.Input("X"));
  fused.SetInput("key", product.Input("Y"));
  fused.SetInput("value", output.Input("Y"));
  if (match.Has("add")) fused.SetInput("bias", match.op("add").Input("Y"));
  fused.SetOutput("output", output.Output("Out"));
  fused.attrs["scale"] = ProductAttrsOf(product).alpha *
                         ScaleOf(match, "query scale") *
                         ScaleOf(match, "scale");
  if (!match.Has("dropout")) return fused;
  const OpDesc& dropout = match.op("dropout");
  for (const char* name : {"dropout_prob", "is_test", "dropout_implementation",
                           "fix_seed", "seed"})
    if (const Attribute* a = dropout.FindAttr(name)) fused.attrs[name] = *a;
  fused.attrs["dropout_name"] = dropout.Out("Out");
  if (!dropout.Output("Mask").empty())
    fused.SetOutput("mask", dropout.Output("Mask"));
  return fused;
}

OpDesc AttentionBackward(const Match& match, const OpDesc& forward) {
  const OpDesc &output = *match.grad("output"), &scores = *match.grad("scores");
  const OpDesc* scale = match.grad("query scale");
  OpDesc fused;
  fused.type = "scaled_dot_product_attention_grad";
  fused.attrs = forward.attrs;
  for (const char* slot : {"query", "key", "value", "bias"})
    if (!forward.Input(slot).empty()) fused.SetInput(slot, forward.Input(slot));
  if (!forward.Output("mask").empty())
    fused.SetInput("mask", forward.Output("mask"));
  fused.SetInput("output", forward.Output("output"));
  fused.SetInput("output@GRAD", output.Input("Out@GRAD"));
  const std::pair<const char*, const std::vector<std::string>*> outputs[] = {
      {"query@GRAD",
       scale != nullptr ? &scale->Output("Out") : &scores.Output("X@GRAD")},
      {"key@GRAD", &scores.Output("Y@GRAD")},
      {"value@GRAD", &output.Output("Y@GRAD")}};
  for (const auto& [slot, names] : outputs)
    if (!names->empty() && names->front() != kEmptyVar)
      fused.SetOutput(slot, *names);
  std::vector<const OpDesc*> from;
  for (size_t i : match.Backward()) from.push_back(&match.graph().op(i));
  CopyOpAttrs(from, &fused);
  return fused;
}

}  // namespace

absl::Status FuseAttention(const PassContext& context, ProgramDesc* program) {
  const OpDef* op = context.registry->Find("scaled_dot_product_attention");
  if (op == nullptr || (!context.on_gpu && op->implementations().size() < 2))
    return absl::OkStatus();
  // A query that is scaled for others too stays scaled.
  const Pattern scaled = Attention(true, context.on_gpu);
  const Pattern plain = Attention(false, context.on_gpu);
  const auto fuse = [&](const Match& match, Fusion* fusion) {
    if (!MayFuse(match, context.on_gpu)) return false;
    fusion->forward = Forward(match);
    if (match.HasGradients())
      fusion->backward = AttentionBackward(match, fusion->forward);
    return true;
  };
  return FuseMatches(context, {&scaled, &plain}, fuse, program);
}

}  // namespace pd
