// SPDX-License-Identifier: Apache-2.0
// fused_conv2d + residual [+ relu] -> fused_conv2d with ResidualData
//
//   fused_conv2d -> elementwise_add(x, shortcut) -> relu
//
// Also with relu6, and from a conv2d or depthwise_conv2d that has no bias. For
// inference: where a gradient op reads the convolution's output, it stays.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

bool MayTakeResidual(const OpDesc& op) {
  if (op.type == "conv2d" || op.type == "depthwise_conv2d") return true;
  return op.type == "fused_conv2d" && op.Input("ResidualData").empty() &&
         op.AttrOr<std::string>("fuse_activation", "").empty();
}

struct Chain {
  size_t conv = 0, add = 0;
  int relu = kNone;
  std::string residual;
};

// Both terms have the same known shape, but for extents that the data decides.
bool FindChain(const OpGraph& graph, Chain* c) {
  const OpDesc& conv = graph.op(c->conv);
  if (!MayTakeResidual(conv)) return false;
  const std::string& out = conv.Out("Output");
  const int add = graph.OnlyReader(out);
  if (add == kNone || graph.op(At(add)).type != "elementwise_add") return false;
  c->add = At(add);
  const OpDesc& sum = graph.op(c->add);
  c->residual = sum.In(sum.In("X") == out ? "Y" : "X");
  const VarDesc *one = graph.Var(out), *other = graph.Var(c->residual);
  if (c->residual == out || one == nullptr || other == nullptr ||
      one->shape.size() != 4 || one->shape != other->shape)
    return false;
  const int relu = graph.OnlyReader(sum.Out("Out"));
  if (relu != kNone && IsRelu(graph.op(At(relu)))) c->relu = relu;
  return true;
}

// Nobody writes what the convolution reads before it runs at its new place.
bool IsSafe(const Chain& c, const OpGraph& graph) {
  const size_t last = c.relu != kNone ? At(c.relu) : c.add;
  const std::vector<std::string> read = NamesOf(graph.op(c.conv).inputs);
  for (size_t i = c.conv + 1; i < last; ++i) {
    if (graph.IsRemoved(i)) continue;
    for (const std::string& written : NamesOf(graph.op(i).outputs))
      if ((i > c.add && written == c.residual) ||
          std::find(read.begin(), read.end(), written) != read.end())
        return false;
  }
  return true;
}

OpDesc Fused(const Chain& c, const OpGraph& graph) {
  OpDesc fused = graph.op(c.conv);
  fused.type = "fused_conv2d";
  fused.SetInput("ResidualData", {c.residual});
  fused.SetOutput("Output", {graph.op(c.add).Out("Out")});
  fused.attrs["fuse_activation"] = std::string();
  if (c.relu == kNone) return fused;
  const OpDesc& relu = graph.op(At(c.relu));
  fused.SetOutput("Output", {relu.Out("Out")});
  fused.attrs["fuse_activation"] = relu.type;
  if (relu.type == "relu6")
    fused.attrs["fuse_alpha"] = relu.AttrOr("threshold", 6.0f);
  return fused;
}

}  // namespace

absl::Status FuseConvResidual(const PassContext& context,
                              ProgramDesc* program) {
  OpGraph graph(context, program);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (graph.IsRemoved(i)) continue;
    Chain chain;
    chain.conv = i;
    if (!FindChain(graph, &chain) || !IsSafe(chain, graph)) continue;
    std::vector<size_t> others = {chain.conv};
    if (chain.relu != kNone) others.push_back(chain.add);
    graph.Replace(chain.relu != kNone ? At(chain.relu) : chain.add,
                  Fused(chain, graph), others);
  }
  graph.Finish();
  return absl::OkStatus();
}

}  // namespace pd
