// SPDX-License-Identifier: Apache-2.0
// lookup_table_v2, lookup_table_v2, ... -> concat along the last axis
//   -> fused_lookup_concat
//
// Other inputs of the concat stay inputs of their own. For
// inference: where a gradient op reads a lookup's output, the lookup stays.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

bool JoinsLastAxis(const OpGraph& graph, const OpDesc& concat) {
  if (concat.type != "concat" || !concat.Input("AxisTensor").empty())
    return false;
  const int64_t axis = concat.Attr<int32_t>("axis");
  const VarDesc* out = graph.Var(concat.Out("Out"));
  return axis == -1 || (out != nullptr && !out->shape.empty() &&
                        axis + 1 == static_cast<int64_t>(out->shape.size()));
}

// The lookup that makes this input of the concat `at` and may move there.
int LookupOf(const OpGraph& graph, const std::string& name, size_t at) {
  const int i = graph.OnlyWriter(name);
  if (i == kNone || At(i) > at) return kNone;
  const OpDesc& op = graph.op(At(i));
  const bool moves =
      op.type == "lookup_table_v2" &&
      graph.OnlyReader(name) == static_cast<int>(at) &&
      !graph.IsWrittenBetween({op.In("W"), op.In("Ids")}, At(i), at);
  return moves ? i : kNone;
}

void FuseIn(OpGraph* graph) {
  for (size_t i = 0; i < graph->size(); ++i) {
    if (graph->IsRemoved(i) || !JoinsLastAxis(*graph, graph->op(i))) continue;
    const OpDesc& concat = graph->op(i);
    std::vector<size_t> lookups;
    std::vector<std::string> w, ids, x;
    std::vector<bool> looked_up;
    std::vector<int64_t> padding;
    std::vector<const OpDesc*> replaced = {&concat};
    for (const std::string& name : concat.Input("X")) {
      const int at = LookupOf(*graph, name, i);
      looked_up.push_back(at != kNone);
      if (at == kNone) {
        x.push_back(name);
        continue;
      }
      const OpDesc& lookup = graph->op(At(at));
      w.push_back(lookup.In("W"));
      ids.push_back(lookup.In("Ids"));
      padding.push_back(lookup.Attr<int64_t>("padding_idx"));
      if (std::find(lookups.begin(), lookups.end(), At(at)) != lookups.end())
        continue;
      lookups.push_back(At(at));
      replaced.push_back(&lookup);
    }
    if (lookups.empty()) continue;
    OpDesc fused;
    fused.type = "fused_lookup_concat";
    fused.SetInput("W", std::move(w));
    fused.SetInput("Ids", std::move(ids));
    if (!x.empty()) fused.SetInput("X", std::move(x));
    fused.SetOutput("Out", concat.Output("Out"));
    fused.attrs["looked_up"] = std::move(looked_up);
    fused.attrs["padding_idx"] = std::move(padding);
    CopyOpAttrs(replaced, &fused);
    graph->Replace(i, std::move(fused), lookups);
  }
}

}  // namespace

absl::Status FuseLookupConcat(const PassContext& context,
                              ProgramDesc* program) {
  ForEachGraph(context, {"concat"}, FuseIn, program);
  return absl::OkStatus();
}

}  // namespace pd
