// SPDX-License-Identifier: Apache-2.0
// WHILE and IF, which run other graphs of the file: Loop and If of ONNX. What a
// round hands on as it is, weights mostly, is no state of the loop.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

constexpr int kIf = 118, kWhile = 119;
// Graphs that run themselves end here.
constexpr int kMostGraphsDeep = 16;

const TfliteGraph* GraphOf(const TfliteFile& file, const TfliteOperator& op,
                           size_t field) {
  const int64_t i =
      field < op.options.size() ? int64_t{op.options[field].word} : 0;
  if (i < 1 || i > static_cast<int64_t>(file.others.size())) return nullptr;
  return &file.others[static_cast<size_t>(i - 1)];
}

// The graph that a field of the options names; an error unless it takes and
// gives as many tensors.
const TfliteGraph* RunGraph(TfliteCall* call, size_t field, size_t inputs,
                            size_t outputs) {
  const TfliteGraph* graph = GraphOf(*call->build().whole, call->op(), field);
  if (graph == nullptr) {
    call->Fail(DataLoss("it runs a graph that the file has not"));
  } else if (graph->inputs.size() != inputs ||
             graph->outputs.size() != outputs) {
    call->Fail(
        DataLoss("a graph of %d inputs and %d outputs; expected %d and "
                 "%d",
                 graph->inputs.size(), graph->outputs.size(), inputs, outputs));
  }
  return call->ok() ? graph : nullptr;
}

// A value that a graph is run with, and its numbers where they are known.
struct Given {
  LayoutTensor value;
  const Array* known = nullptr;
};

Given GivenBy(TfliteCall* call, size_t i) {
  Given given;
  call->X(i);
  given.value = call->In(i);
  given.known = call->Known(i);
  // The form that is made inside of a graph is not there outside of it.
  given.value.front.clear();
  return given;
}

// Runs `graph` in `build`, whose values then have its outputs.
std::vector<LayoutTensor> RunIn(TfliteBuild* build, const TfliteGraph& graph,
                                const std::string& prefix,
                                const std::vector<Given>& inputs) {
  if (!build->graph.ok())
    return std::vector<LayoutTensor>(graph.outputs.size());
  TfliteBuild inner;
  inner.file = &graph;
  inner.whole = build->whole;
  inner.ran = build->ran;
  inner.depth = build->depth + 1;
  inner.prefix = prefix;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inner.values[graph.inputs[i]] = inputs[i].value;
    if (inputs[i].known != nullptr)
      inner.made[graph.inputs[i]] = *inputs[i].known;
  }
  std::swap(inner.graph, build->graph);
  const absl::Status status =
      inner.depth > kMostGraphsDeep
          ? Unimplemented("graphs run more than %d deep", kMostGraphsDeep)
          : ImportTfliteOperators(&inner);
  std::vector<LayoutTensor> outputs;
  TfliteOperator ends;  // gives constants that are outputs their names
  ends.inputs = graph.outputs;
  TfliteCall last(ends, "", &inner);
  for (size_t i = 0; i < graph.outputs.size() && status.ok(); ++i) {
    last.X(i);
    outputs.push_back(last.In(i));
  }
  std::swap(inner.graph, build->graph);
  build->graph.Fail(status);
  outputs.resize(graph.outputs.size());
  return outputs;
}

OnnxFileValue EndNamed(const std::string& name) {
  OnnxFileValue end;
  end.name = name;
  end.is_tensor = true;
  return end;
}

OnnxFileAttr GraphIn(LayoutGraph* graph) {
  OnnxFileAttr attr;
  attr.kind = OnnxFileAttr::Kind::kGraph;
  attr.graph.push_back(std::move(graph->graph));
  return attr;
}

// A build for the graph in a node.
TfliteBuild InNode(TfliteCall* call, const std::string& prefix) {
  TfliteBuild build;
  build.whole = call->build().whole;
  build.ran = call->build().ran;
  build.depth = call->build().depth;
  build.graph.Begin(absl::StrCat(prefix, "graph"));
  build.graph.NumberAfter(call->graph());
  return build;
}

OnnxFileAttr BranchOf(TfliteCall* call, size_t field, const char* part) {
  const TfliteGraph* graph =
      RunGraph(call, field, call->inputs() - 1, call->outputs());
  std::vector<Given> inputs;
  for (size_t i = 1; i < call->inputs() && call->ok(); ++i)
    inputs.push_back(GivenBy(call, i));
  if (!call->ok()) return {};
  const std::string prefix = absl::StrCat(call->graph().name(), "/", part, "/");
  TfliteBuild inner = InNode(call, prefix);
  for (LayoutTensor& value : RunIn(&inner, *graph, prefix, inputs)) {
    // A branch that hands a value on has a node for it.
    const std::string name =
        inner.graph.Emit("Identity", {inner.graph.Plain(&value)});
    inner.graph.graph.outputs.push_back(EndNamed(name));
  }
  call->Fail(inner.graph.status());
  return GraphIn(&inner.graph);
}

void ImportTfliteIf(TfliteCall* call) {
  if (call->inputs() < 1)
    return call->Fail(InvalidArgument("it has no condition"));
  const std::string condition = call->X(0);
  OnnxFileAttr then = BranchOf(call, 0, "then");
  OnnxFileAttr otherwise = BranchOf(call, 1, "else");
  if (!call->ok()) return;
  const auto names =
      call->graph().EmitMany("If", {condition}, call->outputs(),
                             {{"then_branch", std::move(then)},
                              {"else_branch", std::move(otherwise)}});
  for (size_t i = 0; i < names.size(); ++i) call->Give(names[i], false, i);
}

// The extents of a state in all rounds: open where the graph of a round says
// another than the first value has.
Shape StateShape(const Shape& first, const Shape& round) {
  if (round.size() != first.size()) return first;
  Shape shape = first;
  for (size_t i = 0; i < shape.size(); ++i)
    if (round[i] != shape[i]) shape[i] = -1;
  return shape;
}

void ImportTfliteWhile(TfliteCall* call) {
  const size_t count = call->inputs();
  if (call->outputs() != count)
    return call->Fail(
        DataLoss("it has %d inputs and %d outputs", count, call->outputs()));
  const TfliteGraph* test = RunGraph(call, 0, count, 1);
  const TfliteGraph* body = RunGraph(call, 1, count, count);
  std::vector<Given> first;
  for (size_t i = 0; i < count && call->ok(); ++i)
    first.push_back(GivenBy(call, i));
  if (!call->ok()) return;
  const std::string prefix = absl::StrCat(call->graph().name(), "/");
  LayoutTensor go_on =
      RunIn(&call->build(), *test, absl::StrCat(prefix, "first/"), first)[0];
  LayoutGraph::Names inputs = {"", call->graph().Plain(&go_on)};
  TfliteBuild inner = InNode(call, prefix);
  for (const char* name : {"round", "going_on"})
    inner.graph.graph.inputs.push_back(EndNamed(absl::StrCat(prefix, name)));
  std::vector<Given> round = first;
  std::vector<size_t> states;
  for (size_t i = 0; i < count; ++i) {
    if (body->outputs[i] == body->inputs[i]) continue;
    states.push_back(i);
    inputs.push_back(first[i].value.plain);
    round[i].known = nullptr;
    round[i].value.plain = absl::StrCat(prefix, "state_", i);
    const auto input = static_cast<size_t>(body->inputs[i]);
    round[i].value.shape =
        StateShape(round[i].value.shape, body->tensors[input].shape);
    inner.graph.graph.inputs.push_back(EndNamed(round[i].value.plain));
  }
  std::vector<LayoutTensor> next =
      RunIn(&inner, *body, absl::StrCat(prefix, "body/"), round);
  std::vector<Given> after = round;
  for (const size_t i : states) {
    inner.graph.Plain(&next[i]);
    after[i].value = next[i];
  }
  go_on = RunIn(&inner, *test, absl::StrCat(prefix, "cond/"), after)[0];
  const auto output = [&](LayoutTensor* value) {
    const std::string name =
        inner.graph.Emit("Identity", {inner.graph.Plain(value)});
    inner.graph.graph.outputs.push_back(EndNamed(name));
  };
  inner.graph.Begin(absl::StrCat(prefix, "next"));
  output(&go_on);
  for (const size_t i : states) output(&next[i]);
  call->Fail(inner.graph.status());
  if (!call->ok()) return;
  const auto names = call->graph().EmitMany("Loop", inputs, states.size(),
                                            {{"body", GraphIn(&inner.graph)}});
  for (size_t k = 0; k < states.size(); ++k)
    call->Give(names[k], false, states[k]);
  for (size_t i = 0; i < count; ++i)
    if (std::count(states.begin(), states.end(), i) == 0)
      call->GiveAs(first[i].value, i);
}

}  // namespace

std::vector<const TfliteGraph*> TfliteGraphsOf(const TfliteFile& file,
                                               const TfliteOperator& op) {
  std::vector<const TfliteGraph*> graphs;
  for (size_t field = 0; field < 2; ++field)
    if (op.code == kIf || op.code == kWhile)
      if (const TfliteGraph* graph = GraphOf(file, op, field))
        graphs.push_back(graph);
  return graphs;
}

TfliteImportEntries TfliteControlFlowImports() {
  return {
      {kIf, "IF", ImportTfliteIf},
      {kWhile, "WHILE", ImportTfliteWhile},
  };
}

}  // namespace pd
