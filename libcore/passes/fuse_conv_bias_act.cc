// SPDX-License-Identifier: Apache-2.0
// conv2d [+ elementwise_add of a bias per channel] [+ relu] -> fused_conv2d
// The same with depthwise_conv2d, and with relu6.
//
//   forward:   conv2d -> elementwise_add -> relu      fused_conv2d
//   backward:  relu_grad -> elementwise_add_grad      fused_conv2d_grad
//                -> conv2d_grad
// In a training program both sides change together, or neither does. What lies
// between the fused ops is computed no more, so nobody else may need it.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

// Numbers of ops; kNone where the chain has none.
struct Chain {
  size_t conv = 0;
  int add = kNone, relu = kNone;
  int conv_grad = kNone, add_grad = kNone, relu_grad = kNone;
  std::string out;       // of the last forward op
  std::string out_grad;  // the gradient that comes in
};

bool IsConv(const OpDesc& op) {
  return op.type == "conv2d" || op.type == "depthwise_conv2d";
}

bool IsBias(const OpGraph& graph, const OpDesc& conv, const OpDesc& add) {
  if (add.In("X") != conv.Out("Output")) return false;
  const VarDesc* bias = graph.Var(add.In("Y"));
  const VarDesc* filter = graph.Var(conv.In("Filter"));
  if (bias == nullptr || filter == nullptr || filter->shape.size() != 4 ||
      bias->shape != Shape{filter->shape[0]})
    return false;
  const bool last = conv.AttrOr<std::string>("data_format", "NCHW") == "NHWC";
  const int32_t axis = add.AttrOr<int32_t>("axis", -1);
  return last ? axis == -1 || axis == 3 : axis == 1;
}

// The gradient op of a forward op that writes `out`; its slot of the gradient
// is `slot`. kNone also when several ops read the gradient in.
int GradOf(const OpGraph& graph, const OpDesc& op, const char* slot,
           const std::string& out) {
  const std::string type = op.type + "_grad";
  const std::string& own = op.In(IsConv(op) ? "Input" : "X");
  const std::string& read = IsRelu(op) ? out : own;
  const char* read_slot = IsRelu(op) ? "Out" : IsConv(op) ? "Input" : "X";
  int found = kNone;
  for (size_t i : graph.Readers(read)) {
    const OpDesc& grad = graph.op(i);
    if (grad.type != type || grad.Input(slot).size() != 1 ||
        grad.Input(read_slot).empty() || grad.In(read_slot) != read)
      continue;
    if (IsConv(op) && grad.In("Filter") != op.In("Filter")) continue;
    if (op.type == "elementwise_add" && grad.In("Y") != op.In("Y")) continue;
    if (found != kNone) return kNone;
    found = static_cast<int>(i);
  }
  return found;
}

// Follows the forward ops from a convolution.
bool FindForward(const OpGraph& graph, Chain* c) {
  const OpDesc& conv = graph.op(c->conv);
  if (!IsConv(conv)) return false;
  c->out = conv.Out("Output");
  std::set<size_t> grads;  // they read what the chain keeps for them
  for (size_t i : graph.Readers(c->out))
    if (graph.op(i).type == "elementwise_add_grad") grads.insert(i);
  int next = graph.OnlyReader(c->out, grads);
  if (next != kNone && graph.op(At(next)).type == "elementwise_add" &&
      IsBias(graph, conv, graph.op(At(next)))) {
    c->add = next;
    c->out = graph.op(At(next)).Out("Out");
    next = graph.OnlyReader(c->out);
  } else if (!grads.empty()) {
    return false;
  }
  if (next != kNone && IsRelu(graph.op(At(next)))) {
    c->relu = next;
    c->out = graph.op(At(next)).Out("Out");
  }
  return c->add != kNone || c->relu != kNone;
}

// A gradient between two fused ops has one reader, the next of them.
bool Leads(const OpGraph& graph, const std::string& gradient, int to) {
  return graph.OnlyReader(gradient) == to;
}

// Finds the gradient ops: all of them, or false when only some are there.
bool FindBackward(const OpGraph& graph, Chain* c) {
  c->conv_grad = GradOf(graph, graph.op(c->conv), "Output@GRAD",
                        graph.op(c->conv).Out("Output"));
  if (c->add != kNone)
    c->add_grad = GradOf(graph, graph.op(At(c->add)), "Out@GRAD",
                         graph.op(At(c->add)).Out("Out"));
  if (c->relu != kNone)
    c->relu_grad = GradOf(graph, graph.op(At(c->relu)), "Out@GRAD", c->out);
  const bool any =
      c->conv_grad != kNone || c->add_grad != kNone || c->relu_grad != kNone;
  if (!any) return true;
  if (c->conv_grad == kNone || (c->add != kNone && c->add_grad == kNone) ||
      (c->relu != kNone && c->relu_grad == kNone))
    return false;
  std::string gradient = graph.op(At(c->conv_grad)).In("Output@GRAD");
  int reader = c->conv_grad;
  if (c->add_grad != kNone) {
    const OpDesc& add = graph.op(At(c->add_grad));
    if (add.Output("X@GRAD").empty() || add.Out("X@GRAD") != gradient ||
        !Leads(graph, gradient, reader))
      return false;
    gradient = add.In("Out@GRAD");
    reader = c->add_grad;
  }
  if (c->relu_grad != kNone) {
    const OpDesc& relu = graph.op(At(c->relu_grad));
    if (relu.Out("X@GRAD") != gradient || !Leads(graph, gradient, reader))
      return false;
    gradient = relu.In("Out@GRAD");
  }
  c->out_grad = gradient;
  return true;
}

std::vector<size_t> Present(std::initializer_list<int> ops) {
  std::vector<size_t> present;
  for (int i : ops)
    if (i != kNone) present.push_back(At(i));
  return present;
}

// The convolution's attributes and the activation's.
std::map<std::string, Attribute> AttrsOf(const Chain& c, const OpDesc& conv,
                                         const OpGraph& graph) {
  std::map<std::string, Attribute> attrs = conv.attrs;
  attrs["fuse_activation"] = std::string();
  if (c.relu == kNone) return attrs;
  const OpDesc& relu = graph.op(At(c.relu));
  attrs["fuse_activation"] = relu.type;
  if (relu.type == "relu6")
    attrs["fuse_alpha"] = relu.AttrOr("threshold", 6.0f);
  return attrs;
}

void FuseForward(const Chain& c, OpGraph* graph) {
  const OpDesc& conv = graph->op(c.conv);
  OpDesc fused;
  fused.type = "fused_conv2d";
  fused.attrs = AttrsOf(c, conv, *graph);
  fused.SetInput("Input", conv.Input("Input"));
  fused.SetInput("Filter", conv.Input("Filter"));
  if (c.add != kNone) fused.SetInput("Bias", graph->op(At(c.add)).Input("Y"));
  fused.SetOutput("Output", {c.out});
  std::vector<size_t> others = Present({static_cast<int>(c.conv), c.add});
  if (c.relu == kNone) others.pop_back();
  graph->Replace(At(c.relu != kNone ? c.relu : c.add), std::move(fused),
                 others);
}

void FuseBackward(const Chain& c, const std::string& bias, OpGraph* graph) {
  const OpDesc& conv = graph->op(At(c.conv_grad));
  OpDesc fused;
  fused.type = "fused_conv2d_grad";
  fused.attrs = AttrsOf(c, conv, *graph);
  fused.SetInput("Input", conv.Input("Input"));
  fused.SetInput("Filter", conv.Input("Filter"));
  fused.SetInput("Output", {c.out});
  fused.SetInput("Output@GRAD", {c.out_grad});
  for (const char* slot : {"Input@GRAD", "Filter@GRAD"})
    if (!conv.Output(slot).empty()) fused.SetOutput(slot, conv.Output(slot));
  std::vector<const OpDesc*> from = {&conv};
  if (c.add_grad != kNone) {
    const OpDesc& add = graph->op(At(c.add_grad));
    fused.SetInput("Bias", {bias});
    if (!add.Output("Y@GRAD").empty())
      fused.SetOutput("Bias@GRAD", add.Output("Y@GRAD"));
    from.push_back(&add);
  }
  CopyOpAttrs(from, &fused);
  graph->Replace(At(c.conv_grad), std::move(fused),
                 Present({c.add_grad, c.relu_grad}));
}

// Whether moving work to the last op of the chain changes what others see.
bool IsSafe(const Chain& c, const OpGraph& graph) {
  const OpDesc& conv = graph.op(c.conv);
  const size_t last = At(c.relu != kNone ? c.relu : c.add);
  for (const std::string& name : NamesOf(conv.inputs))
    for (size_t i = c.conv + 1; i < last; ++i)
      for (const std::string& out : NamesOf(graph.op(i).outputs))
        if (out == name && !graph.IsRemoved(i)) return false;
  if (c.add_grad == kNone) return true;
  return !graph.IsTouchedBetween(graph.op(At(c.add_grad)).Output("Y@GRAD"),
                                 At(c.add_grad), At(c.conv_grad));
}

}  // namespace

absl::Status FuseConvBiasAct(const PassContext& context, ProgramDesc* program) {
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.IsRemoved(i)) continue;
    Chain chain;
    chain.conv = i;
    if (!FindForward(graph, &chain) || !FindBackward(graph, &chain) ||
        !IsSafe(chain, graph))
      continue;
    const std::string bias =
        chain.add != kNone ? graph.op(At(chain.add)).In("Y") : "";
    // Backward first: the activation's attributes are still there.
    if (chain.conv_grad != kNone) FuseBackward(chain, bias, &graph);
    FuseForward(chain, &graph);
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
