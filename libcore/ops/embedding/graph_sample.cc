// SPDX-License-Identifier: Apache-2.0
// Neighbours of nodes of a graph in CSC form: those of node v are Row from
// Col_Ptr[v] to Col_Ptr[v + 1].
//   graph_sample_neighbors: of each node of X up to sample_size of them,
//     uniformly and without repetition (-1: all); Out_Count says how many
//   weighted_sample_neighbors: the same with probabilities in proportion to
//     edge_weight (P. Efraimidis and P. Spirakis, 2006)
// Out_Eids are the numbers of the edges, from Eids, where return_eids. The
// choice follows from the run's seed, the step and the name of the output.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
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
  return registry->Add(std::move(weighted));
}

}  // namespace pd
