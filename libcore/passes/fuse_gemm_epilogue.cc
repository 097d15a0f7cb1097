// SPDX-License-Identifier: Apache-2.0
// matmul_v2 by a matrix + elementwise_add of a bias [+ relu]
//   -> fused_gemm_epilogue
// elementwise_add_grad -> matmul_v2_grad
//   -> fused_gemm_epilogue_grad (relu_grad stays ahead of it)
// In a training program both sides change together, or neither does.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

struct Chain {
  size_t product = 0;
  int add = kNone, relu = kNone;
  int product_grad = kNone, add_grad = kNone;
  bool at_add_grad = false;  // the gradient takes the place of the sum's
};

// Y must be a matrix of parameters: others have gradients and layouts that a
// plain product serves better.
bool IsWeightedSum(const OpGraph& graph, const OpDesc& product,
                   const OpDesc& add) {
  const VarDesc* x = graph.Var(product.In("X"));
  const VarDesc* y = graph.Var(product.In("Y"));
  const VarDesc* bias = graph.Var(add.In("Y"));
  if (x == nullptr || y == nullptr || bias == nullptr ||
      !graph.IsParameter(y->name) || x->shape.size() < 2 ||
      y->shape.size() != 2 || product.AttrOr("trans_x", false))
    return false;
  const int64_t n = y->shape[product.AttrOr("trans_y", false) ? 0 : 1];
  const int64_t axis = add.AttrOr<int32_t>("axis", -1);
  return add.In("X") == product.Out("Out") && bias->shape == Shape{n} &&
         (axis == -1 || axis + 1 == static_cast<int64_t>(x->shape.size()));
}

// The gradient op that reads these two inputs of its forward op.
int GradOf(const OpGraph& graph, const OpDesc& op) {
  int found = kNone;
  for (size_t i : graph.Readers(op.In("Y"))) {
    const OpDesc& grad = graph.op(i);
    if (grad.type != op.type + "_grad" || grad.Input("X") != op.Input("X") ||
        grad.Input("Y") != op.Input("Y"))
      continue;
    if (found != kNone) return kNone;
    found = static_cast<int>(i);
  }
  return found;
}

bool FindForward(const OpGraph& graph, Chain* c) {
  const OpDesc& product = graph.op(c->product);
  if (product.type != "matmul_v2") return false;
  std::set<size_t> grads;
  for (size_t i : graph.Readers(product.Out("Out")))
    if (graph.op(i).type == "elementwise_add_grad") grads.insert(i);
  c->add = graph.OnlyReader(product.Out("Out"), grads);
  if (c->add == kNone || graph.op(At(c->add)).type != "elementwise_add" ||
      !IsWeightedSum(graph, product, graph.op(At(c->add))))
    return false;
  for (size_t i : grads)
    if (graph.op(i).In("Y") != graph.op(At(c->add)).In("Y")) return false;
  const int next = graph.OnlyReader(graph.op(At(c->add)).Out("Out"));
  if (next != kNone && graph.op(At(next)).type == "relu") c->relu = next;
  return true;
}

bool FindBackward(const OpGraph& graph, Chain* c) {
  c->product_grad = GradOf(graph, graph.op(c->product));
  c->add_grad = GradOf(graph, graph.op(At(c->add)));
  if (c->product_grad == kNone && c->add_grad == kNone) return true;
  if (c->product_grad == kNone || c->add_grad == kNone) return false;
  const OpDesc& add = graph.op(At(c->add_grad));
  const std::string gradient = graph.op(At(c->product_grad)).In("Out@GRAD");
  if (add.Output("X@GRAD").empty() || add.Out("X@GRAD") != gradient ||
      graph.OnlyReader(gradient) != c->product_grad)
    return false;
  const size_t first = At(c->add_grad), last = At(c->product_grad);
  if (!graph.IsTouchedBetween(add.Output("Y@GRAD"), first, last)) return true;
  // The gradient of a bias in half precision is cast at once.
  c->at_add_grad = true;
  const OpDesc& product = graph.op(last);
  return !graph.IsWrittenBetween(NamesOf(product.inputs), first, last) &&
         !graph.IsTouchedBetween(NamesOf(product.outputs), first, last);
}

void FuseForward(const Chain& c, OpGraph* graph) {
  const OpDesc& product = graph->op(c.product);
  const OpDesc& add = graph->op(At(c.add));
  const OpDesc& last = graph->op(At(c.relu != kNone ? c.relu : c.add));
  OpDesc fused;
  fused.type = "fused_gemm_epilogue";
  fused.attrs = product.attrs;
  fused.attrs["activation"] = std::string(c.relu != kNone ? "relu" : "none");
  fused.SetInput("X", product.Input("X"));
  fused.SetInput("Y", product.Input("Y"));
  fused.SetInput("Bias", add.Input("Y"));
  fused.SetOutput("Out", last.Output("Out"));
  std::vector<size_t> others = {c.product};
  if (c.relu != kNone) others.push_back(At(c.add));
  graph->Replace(At(c.relu != kNone ? c.relu : c.add), std::move(fused),
                 others);
}

void FuseBackward(const Chain& c, OpGraph* graph) {
  const OpDesc& product = graph->op(At(c.product_grad));
  const OpDesc& add = graph->op(At(c.add_grad));
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
  const int at = c.at_add_grad ? c.add_grad : c.product_grad;
  const int other = c.at_add_grad ? c.product_grad : c.add_grad;
  graph->Replace(At(at), std::move(fused), {At(other)});
}

}  // namespace

absl::Status FuseGemmEpilogue(const PassContext& context,
                              ProgramDesc* program) {
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.IsRemoved(i)) continue;
    Chain chain;
    chain.product = i;
    if (!FindForward(graph, &chain) || !FindBackward(graph, &chain)) continue;
    FuseForward(chain, &graph);
    if (chain.product_grad != kNone) FuseBackward(chain, &graph);
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
