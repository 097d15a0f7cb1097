// SPDX-License-Identifier: Apache-2.0
// matmul_v2 by a matrix + elementwise_add of a bias [+ relu]
//   -> fused_gemm_epilogue
// elementwise_add_grad -> matmul_v2_grad
//   -> fused_gemm_epilogue_grad (relu_grad stays ahead of it)
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/pattern.h"

namespace pd {
namespace {

// Y must be a matrix of parameters: others have gradients and layouts that a
// plain product serves better.
bool IsGemmBias(const Match& match, const OpDesc& add) {
  const OpGraph& graph = match.graph();
  const OpDesc& product = match.op("product");
  const VarDesc* x = graph.Var(product.In("X"));
  const VarDesc* y = graph.Var(product.In("Y"));
  const VarDesc* bias = graph.Var(add.In("Y"));
  if (x == nullptr || y == nullptr || bias == nullptr ||
      !graph.IsParameter(y->name) || x->shape.size() < 2 ||
      y->shape.size() != 2)
    return false;
  const int64_t n = y->shape[product.Attr<bool>("trans_y") ? 0 : 1];
  const int64_t axis = add.Attr<int32_t>("axis");
  return bias->shape == Shape{n} &&
         (axis == -1 || axis + 1 == static_cast<int64_t>(x->shape.size()));
}

OpDesc GemmEpilogueBackward(const OpDesc& product, const OpDesc& add) {
  OpDesc fused;
  fused.type = "fused_gemm_epilogue_grad";
  fused.attrs = product.attrs;
  fused.SetInput("DOut", add.Input("Out@GRAD"));
  fused.SetInput("X", product.Input("X"));
  fused.SetInput("Y", product.Input("Y"));
  const std::pair<const char*, const std::vector<std::string>*> outputs[] = {
      {"DX", &product.Output("X@GRAD")},
      {"DY", &product.Output("Y@GRAD")},
      {"DBias", &add.Output("Y@GRAD")}};
  for (const auto& [slot, names] : outputs)
    if (!names->empty()) fused.SetOutput(slot, *names);
  CopyOpAttrs({&product, &add}, &fused);
  return fused;
}

bool ReplaceGemmEpilogue(const Match& match, Fusion* fusion) {
  const OpDesc& product = match.op("product");
  OpDesc& fused = fusion->forward;
  fused.type = "fused_gemm_epilogue";
  fused.attrs = product.attrs;
  fused.attrs["activation"] = std::string(match.Has("act") ? "relu" : "none");
  fused.SetInput("X", product.Input("X"));
  fused.SetInput("Y", product.Input("Y"));
  fused.SetInput("Bias", match.op("add").Input("Y"));
  fused.SetOutput("Out", match.last().Output("Out"));
  if (!match.HasGradients()) return true;
  fusion->backward =
      GemmEpilogueBackward(*match.grad("product"), *match.grad("add"));
  // The gradient of a bias in half precision is cast at once.
  fusion->backward_at = FusedAt::kLastOrFirst;
  return true;
}

}  // namespace

absl::Status FuseGemmEpilogue(const PassContext& context,
                              ProgramDesc* program) {
  static const auto* const kPattern = new Pattern{
      PatternOp{"product", {"matmul_v2"}, {"X"}, "Out"}.Attr("trans_x", false),
      PatternOp{"add", {"elementwise_add"}, {"X"}, "Out"}.If(IsGemmBias),
      PatternOp{"act", {"relu"}, {"X"}, "Out"}.Optional().KeepsGradient()};
  return FuseMatches(context, {kPattern}, ReplaceGemmEpilogue, program);
}

}  // namespace pd
