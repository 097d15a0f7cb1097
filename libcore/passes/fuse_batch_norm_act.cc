// SPDX-License-Identifier: Apache-2.0
// batch_norm -> relu or relu6 -> fused_batch_norm_act
//
//   forward:   batch_norm -> relu                 fused_batch_norm_act
//   backward:  relu_grad -> batch_norm_grad       fused_batch_norm_act_grad
//
// In a training program both sides change together, or neither does. What lies
// between is computed no more, so nobody else may need it.
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

struct Chain {
  size_t norm = 0, act = 0;
  int norm_grad = kNone, act_grad = kNone;
};

// The gradient op of `op`, told by the variable that it reads in `slot`; kNone
// for none or several.
int GradOf(const OpGraph& graph, const OpDesc& op, const std::string& name,
           const char* slot) {
  return graph.ReaderOf(name, (op.type + "_grad").c_str(), slot);
}

bool FindForward(const OpGraph& graph, Chain* c) {
  const OpDesc& norm = graph.op(c->norm);
  if (norm.type != "batch_norm" || norm.Input("Scale").empty() ||
      norm.Input("Bias").empty())
    return false;
  const int act = graph.OnlyReader(norm.Out("Y"));
  if (act == kNone) return false;
  c->act = At(act);
  const OpDesc& found = graph.op(c->act);
  return IsRelu(found) && graph.OnlyWriter(found.Out("Out")) == act;
}

// False where there is half of a backward side, or somebody between.
bool FindBackward(const OpGraph& graph, Chain* c) {
  const OpDesc& norm = graph.op(c->norm);
  const OpDesc& act = graph.op(c->act);
  c->act_grad = GradOf(graph, act, act.Out("Out"), "Out");
  const std::string saved =
      norm.Output("SavedMean").empty() ? "" : norm.Out("SavedMean");
  c->norm_grad = GradOf(graph, norm, saved, "SavedMean");
  if (c->act_grad == kNone && c->norm_grad == kNone) return true;
  if (c->act_grad == kNone || c->norm_grad == kNone) return false;
  const OpDesc& act_grad = graph.op(At(c->act_grad));
  const OpDesc& norm_grad = graph.op(At(c->norm_grad));
  const std::string& between = norm_grad.In("Y@GRAD");
  return act_grad.Out("X@GRAD") == between &&
         graph.OnlyReader(between) == c->norm_grad &&
         !graph.IsWrittenBetween({act_grad.In("Out@GRAD"), act.Out("Out")},
                                 At(c->act_grad), At(c->norm_grad));
}

OpDesc Fused(const OpDesc& norm, const OpDesc& act, const std::string& type) {
  OpDesc fused = norm;
  fused.type = type;
  const bool relu6 = act.type == "relu6" || act.type == "relu6_grad";
  fused.attrs["act_type"] = std::string(relu6 ? "relu6" : "relu");
  if (relu6) fused.attrs["fuse_alpha"] = act.AttrOr("threshold", 6.0f);
  // The attribute's default is another than that of batch_norm.
  fused.attrs["data_layout"] = norm.AttrOr<std::string>("data_layout", "NCHW");
  return fused;
}

void Fuse(const Chain& c, OpGraph* graph) {
  const OpDesc& act = graph->op(c.act);
  if (c.norm_grad != kNone) {
    const OpDesc& act_grad = graph->op(At(c.act_grad));
    OpDesc fused = Fused(graph->op(At(c.norm_grad)), act_grad,
                         "fused_batch_norm_act_grad");
    fused.SetInput("Y", act.Output("Out"));
    fused.SetInput("Y@GRAD", act_grad.Input("Out@GRAD"));
    graph->Replace(At(c.norm_grad), std::move(fused), {At(c.act_grad)});
  }
  // At the place of the norm: its other results may be read before the
  // activation.
  OpDesc fused = Fused(graph->op(c.norm), act, "fused_batch_norm_act");
  fused.SetOutput("Y", act.Output("Out"));
  graph->Replace(c.norm, std::move(fused), {c.act});
}

}  // namespace

absl::Status FuseBatchNormAct(const PassContext& context,
                              ProgramDesc* program) {
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.IsRemoved(i)) continue;
    Chain chain;
    chain.norm = i;
    if (FindForward(graph, &chain) && FindBackward(graph, &chain))
      Fuse(chain, &graph);
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
