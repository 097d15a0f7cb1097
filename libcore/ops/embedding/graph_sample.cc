// SPDX-License-Identifier: Apache-2.0
// Neighbours of nodes of a graph in CSC form: those of node v are Row from
// Col_Ptr[v] to Col_Ptr[v + 1].
//   graph_sample_neighbors: of each node of X up to sample_size of them,
//     uniformly and without repetition (-1: all); Out_Count says how many
//   weighted_sample_neighbors: the same with probabilities in proportion to
//     edge_weight (P. Efraimidis and P. Spirakis, 2006)
//   graph_khop_sampler: of X up to sample_sizes[0] neighbours each, of those
//     that were not asked before up to sample_sizes[1], and so on. Edge i goes
//     from node Out_Src[i] to node Out_Dst[i], numbers of places in
//     Sample_Index, which names all nodes, those asked first; Reindex_X are X's
// Out_Eids are the numbers of the edges, from Eids, where return_eids. The
// choice follows from the run's seed, the step and the name of the output.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct GraphSlots {
  const char *row, *offsets, *nodes, *edges, *out, *count, *out_edges;
};

GraphSlots GraphSlotsOf(const OpDesc& op) {
  if (op.type == "weighted_sample_neighbors")
    return {"row",           "colptr",    "input_nodes", "eids",
            "out_neighbors", "out_count", "out_eids"};
  return {"Row", "Col_Ptr", "X", "Eids", "Out", "Out_Count", "Out_Eids"};
}

absl::Status InferGraphSample(InferContext* context) {
  const GraphSlots slots = GraphSlotsOf(context->op());
  const TensorMeta& nodes = context->Input(slots.nodes);
  const DType dtype = nodes.dtype;
  PD_RETURN_IF_ERROR(CheckIndexType(slots.nodes, dtype));
  for (const char* slot : {slots.row, slots.offsets})
    if (context->Input(slot).dtype != dtype)
      return InvalidArgument("'%s' is %s, '%s' is %s; expected one dtype", slot,
                             Name(context->Input(slot).dtype), slots.nodes,
                             Name(dtype));
  if (context->Attr<bool>("return_eids") && !context->HasInput(slots.edges))
    return InvalidArgument("attr 'return_eids' is true without '%s'",
                           slots.edges);
  context->SetOutput(slots.out, {-1}, dtype);
  context->SetOutput(slots.count,
                     {IsDynamic(nodes.shape) ? -1 : NumElements(nodes.shape)},
                     DType::kInt32);
  context->SetOutput(slots.out_edges, {-1}, dtype);
  return absl::OkStatus();
}

// The places of up to `most` of n edges from `first`, in rising order. Number
// i of `numbers` decides about the draws.
std::vector<int64_t> ChooseEdges(int64_t first, int64_t n, int64_t most,
                                 const float* weights, const Philox& numbers,
                                 uint64_t* drawn) {
  std::vector<int64_t> places(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) places[static_cast<size_t>(i)] = first + i;
  if (most < 0 || n <= most) return places;
  const auto keep = static_cast<size_t>(most);
  if (weights == nullptr) {
    // The first `keep` of a shuffle.
    for (size_t i = 0; i < keep; ++i) {
      const double u = OpenUniform(numbers, static_cast<int64_t>((*drawn)++));
      const auto left = static_cast<double>(places.size() - i);
      std::swap(places[i], places[i + static_cast<size_t>(u * left)]);
    }
  } else {
    // The greatest log(u) / weight; an edge without weight comes last.
    std::vector<std::pair<double, int64_t>> keys;
    for (const int64_t place : places) {
      const double u = OpenUniform(numbers, static_cast<int64_t>((*drawn)++));
      const float w = weights[place];
      keys.emplace_back(w > 0 ? std::log(u) / static_cast<double>(w)
                              : -std::numeric_limits<double>::infinity(),
                        place);
    }
    std::partial_sort(keys.begin(), keys.begin() + most, keys.end(),
                      [](const auto& a, const auto& b) {
                        return a.first != b.first ? a.first > b.first
                                                  : a.second < b.second;
                      });
    for (size_t i = 0; i < keep; ++i) places[i] = keys[i].second;
  }
  places.resize(keep);
  std::sort(places.begin(), places.end());
  return places;
}

struct GraphTensors {
  Tensor *row, *offsets, *nodes, *edges, *weights;
  Tensor *out, *count, *out_edges;
};

template <typename T>
absl::Status SampleAll(const GraphTensors& t, int64_t most,
                       const Philox& numbers) {
  const int64_t n = t.nodes->size();
  PD_RETURN_IF_ERROR(
      CheckIndices("the nodes", *t.nodes, 0, t.offsets->size() - 1));
  PD_RETURN_IF_ERROR(
      CheckIndices("the offsets", *t.offsets, 0, t.row->size() + 1));
  PD_RETURN_IF_ERROR(t.count->Resize(DType::kInt32, {n}));
  std::vector<int64_t> chosen;
  uint64_t drawn = 0;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t node = LabelAt(*t.nodes, i);
    const int64_t begin = LabelAt(*t.offsets, node);
    const int64_t degree = LabelAt(*t.offsets, node + 1) - begin;
    if (degree < 0)
      return InvalidArgument("the offsets fall behind node %d", node);
    const std::vector<int64_t> places =
        ChooseEdges(begin, degree, most,
                    t.weights != nullptr ? t.weights->data<float>() : nullptr,
                    numbers, &drawn);
    chosen.insert(chosen.end(), places.begin(), places.end());
    t.count->data<int32_t>()[i] = static_cast<int32_t>(places.size());
  }
  const auto total = static_cast<int64_t>(chosen.size());
  PD_RETURN_IF_ERROR(t.out->Resize(t.nodes->dtype(), {total}));
  for (int64_t i = 0; i < total; ++i)
    t.out->data<T>()[i] = t.row->data<T>()[chosen[static_cast<size_t>(i)]];
  if (t.out_edges == nullptr) return absl::OkStatus();
  const int64_t edges = t.edges != nullptr ? total : 0;
  PD_RETURN_IF_ERROR(t.out_edges->Resize(t.nodes->dtype(), {edges}));
  for (int64_t i = 0; i < edges; ++i)
    t.out_edges->data<T>()[i] =
        t.edges->data<T>()[chosen[static_cast<size_t>(i)]];
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGraphSample(BindContext* context) {
  const GraphSlots slots = GraphSlotsOf(context->op());
  GraphTensors t;
  t.row = context->Input(slots.row);
  t.offsets = context->Input(slots.offsets);
  t.nodes = context->Input(slots.nodes);
  t.edges = context->Attr<bool>("return_eids") ? context->Input(slots.edges)
                                               : nullptr;
  t.weights = context->op().type == "weighted_sample_neighbors"
                  ? context->Input("edge_weight")
                  : nullptr;
  t.out = context->Output(slots.out);
  t.count = context->Output(slots.count);
  t.out_edges = context->Output(slots.out_edges);
  if (t.edges != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slots.edges, t.nodes->dtype(), t.row->size()));
  if (t.weights != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "edge_weight", DType::kFloat32,
                                      t.row->size()));
  const int64_t most = context->Attr<int32_t>("sample_size");
  const RandomSource source = RandomSourceOf(*context, slots.out);
  return DispatchTypes<int32_t, int64_t>(
      t.nodes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext& run) {
          return SampleAll<T>(t, most, source.Numbers(run));
        });
      });
}

// The edges of some rounds of questions, and the nodes asked.
struct Hops {
  std::vector<int64_t> asked, counts;  // of each node asked, its edges
  std::vector<int64_t> places;         // of the edges, in Row
};

// One round: asks `nodes` and gives the neighbours that are new.
absl::StatusOr<std::vector<int64_t>> AskNeighbors(const GraphTensors& t,
                                                  std::vector<int64_t> nodes,
                                                  int64_t most,
                                                  const Philox& numbers,
                                                  uint64_t* drawn, Hops* hops) {
  const size_t first = hops->places.size();
  for (const int64_t node : nodes) {
    const int64_t begin = LabelAt(*t.offsets, node);
    const int64_t degree = LabelAt(*t.offsets, node + 1) - begin;
    if (degree < 0)
      return InvalidArgument("the offsets fall behind node %d", node);
    // Nodes that are asked twice may make more edges than the graph has.
    PD_RETURN_IF_ERROR(CheckTensorSize(
        DType::kInt64,
        {static_cast<int64_t>(hops->places.size()) + std::min(degree, most)}));
    const std::vector<int64_t> chosen =
        ChooseEdges(begin, degree, most, nullptr, numbers, drawn);
    hops->places.insert(hops->places.end(), chosen.begin(), chosen.end());
    hops->asked.push_back(node);
    hops->counts.push_back(static_cast<int64_t>(chosen.size()));
  }
  std::vector<int64_t> reached, fresh;
  for (size_t i = first; i < hops->places.size(); ++i)
    reached.push_back(LabelAt(*t.row, hops->places[i]));
  std::sort(nodes.begin(), nodes.end());
  std::sort(reached.begin(), reached.end());
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  std::set_difference(reached.begin(), reached.end(), nodes.begin(),
                      nodes.end(), std::back_inserter(fresh));
  return fresh;
}

// The outputs of graph_khop_sampler.
struct HopTensors {
  Tensor *from, *to, *index, *nodes, *edges;
};

template <typename T>
absl::Status WriteNumbers(const std::vector<int64_t>& values, Shape shape,
                          Tensor* out) {
  PD_RETURN_IF_ERROR(out->Resize(DTypeOf<T>(), std::move(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    out->data<T>()[i] = static_cast<T>(values[i]);
  return absl::OkStatus();
}

// Gives the nodes the numbers of their places and writes all.
template <typename T>
absl::Status WriteHops(const GraphTensors& t, const Hops& hops,
                       const HopTensors& out) {
  std::unordered_map<int64_t, int64_t> number_of;
  std::vector<int64_t> index = hops.asked, from, to, nodes, edges;
  for (size_t i = 0; i < index.size(); ++i)
    number_of[index[i]] = static_cast<int64_t>(i);
  for (const int64_t place : hops.places) {
    const int64_t node = LabelAt(*t.row, place);
    const auto [at, fresh] =
        number_of.emplace(node, static_cast<int64_t>(index.size()));
    if (fresh) index.push_back(node);
    from.push_back(at->second);
    if (t.edges != nullptr) edges.push_back(LabelAt(*t.edges, place));
  }
  for (size_t i = 0; i < hops.asked.size(); ++i)
    to.insert(to.end(), static_cast<size_t>(hops.counts[i]),
              number_of[hops.asked[i]]);
  for (int64_t i = 0; i < t.nodes->size(); ++i)
    nodes.push_back(number_of[LabelAt(*t.nodes, i)]);
  const auto n = static_cast<int64_t>(from.size());
  PD_RETURN_IF_ERROR(WriteNumbers<T>(from, {n, 1}, out.from));
  PD_RETURN_IF_ERROR(WriteNumbers<T>(to, {n, 1}, out.to));
  PD_RETURN_IF_ERROR(
      WriteNumbers<T>(index, {static_cast<int64_t>(index.size())}, out.index));
  PD_RETURN_IF_ERROR(WriteNumbers<T>(nodes, {t.nodes->size()}, out.nodes));
  if (out.edges == nullptr) return absl::OkStatus();
  return WriteNumbers<T>(edges, {static_cast<int64_t>(edges.size())},
                         out.edges);
}

template <typename T>
absl::Status SampleHops(const GraphTensors& t, const std::vector<int32_t>& most,
                        const HopTensors& out, const Philox& numbers) {
  const int64_t nodes = t.offsets->size() - 1;
  PD_RETURN_IF_ERROR(CheckIndices("X", *t.nodes, 0, nodes));
  PD_RETURN_IF_ERROR(CheckIndices("Col_Ptr", *t.offsets, 0, t.row->size() + 1));
  PD_RETURN_IF_ERROR(CheckIndices("Row", *t.row, 0, nodes));
  std::vector<int64_t> asked;
  for (int64_t i = 0; i < t.nodes->size(); ++i)
    asked.push_back(LabelAt(*t.nodes, i));
  // As PaddlePaddle: one that is asked again later counts twice.
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  Hops hops;
  uint64_t drawn = 0;
  for (size_t hop = 0; hop < most.size() && !asked.empty(); ++hop) {
    PD_ASSIGN_OR_RETURN(asked, AskNeighbors(t, std::move(asked), most[hop],
                                            numbers, &drawn, &hops));
    if (hops.places.empty())
      return InvalidArgument("no node of 'X' has a neighbour");
  }
  return WriteHops<T>(t, hops, out);
}

absl::Status InferHops(InferContext* context) {
  const TensorMeta& nodes = context->Input("X");
  PD_RETURN_IF_ERROR(CheckIndexType("X", nodes.dtype));
  for (const char* slot : {"Row", "Col_Ptr"})
    if (context->Input(slot).dtype != nodes.dtype)
      return InvalidArgument("'%s' is %s, 'X' is %s; expected one dtype", slot,
                             Name(context->Input(slot).dtype),
                             Name(nodes.dtype));
  const auto& most = context->Attr<std::vector<int32_t>>("sample_sizes");
  if (most.empty() || *std::min_element(most.begin(), most.end()) < 0)
    return InvalidArgument(
        "attr 'sample_sizes' has %d numbers; expected 1 or more, none below 0",
        most.size());
  if (context->Attr<bool>("return_eids") && !context->HasInput("Eids"))
    return InvalidArgument("attr 'return_eids' is true without 'Eids'");
  for (const char* slot : {"Out_Src", "Out_Dst"})
    context->SetOutput(slot, {-1, 1}, nodes.dtype);
  for (const char* slot : {"Sample_Index", "Out_Eids"})
    context->SetOutput(slot, {-1}, nodes.dtype);
  context->SetOutput("Reindex_X",
                     {IsDynamic(nodes.shape) ? -1 : NumElements(nodes.shape)},
                     nodes.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindHops(BindContext* context) {
  GraphTensors t = {};
  t.row = context->Input("Row");
  t.offsets = context->Input("Col_Ptr");
  t.nodes = context->Input("X");
  if (context->Attr<bool>("return_eids")) {
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, "Eids", t.nodes->dtype(), t.row->size()));
    t.edges = context->Input("Eids");
  }
  const HopTensors out = {
      context->Output("Out_Src"), context->Output("Out_Dst"),
      context->Output("Sample_Index"), context->Output("Reindex_X"),
      context->Output("Out_Eids")};
  const RandomSource source = RandomSourceOf(*context, "Out_Src");
  return DispatchTypes<int32_t, int64_t>(
      t.nodes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, most = context->Attr<std::vector<int32_t>>(
                            "sample_sizes")](const RunContext& run) {
          return SampleHops<T>(t, most, out, source.Numbers(run));
        });
      });
}

}  // namespace

absl::Status RegisterGraphSample(OpRegistry* registry) {
  OpDef op("graph_sample_neighbors");
  op.Input("Row").Input("Col_Ptr").Input("X").OptionalInput("Eids");
  op.OptionalInput("Perm_Buffer").Output("Out").Output("Out_Count");
  op.OptionalOutput("Out_Eids").Attr("sample_size", int32_t{-1});
  op.Attr("return_eids", false).Attr("flag_perm_buffer", false);
  op.Infer(InferGraphSample).ShapeFromData().NoGrad();
  op.Reference(BindGraphSample);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef weighted("weighted_sample_neighbors");
  for (const char* slot : {"row", "colptr", "edge_weight", "input_nodes"})
    weighted.Input(slot);
  weighted.OptionalInput("eids").Output("out_neighbors").Output("out_count");
  weighted.OptionalOutput("out_eids");
  weighted.RequiredAttr("sample_size", AttrType::kInt);
  weighted.RequiredAttr("return_eids", AttrType::kBoolean);
  weighted.Infer(InferGraphSample).ShapeFromData().NoGrad();
  weighted.Reference(BindGraphSample);
  PD_RETURN_IF_ERROR(registry->Add(std::move(weighted)));

  OpDef hops("graph_khop_sampler");
  hops.Input("Row").OptionalInput("Eids").Input("Col_Ptr").Input("X");
  for (const char* slot : {"Out_Src", "Out_Dst", "Sample_Index", "Reindex_X"})
    hops.Output(slot);
  hops.IntermediateOutput("Out_Eids");
  hops.Attr("sample_sizes", std::vector<int32_t>());
  hops.Attr("return_eids", false).ShapeFromData();
  hops.Infer(InferHops).NoGrad().Reference(BindHops);
  return registry->Add(std::move(hops));
}

}  // namespace pd
