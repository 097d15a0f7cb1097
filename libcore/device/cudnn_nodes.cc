// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn_nodes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {

using namespace cudnn_graph;  // NOLINT: its numbers

namespace {

// Configurations that are looked at in each mode.
constexpr int kMostConfigs = 64;
// The second is asked for graphs that the first has no engine for.
constexpr int kModes[] = {kModeA, kModeFallback};
constexpr int64_t kAlignment = 16;  // bytes, of every tensor

absl::StatusOr<std::unique_ptr<CudnnGraph>> Load() {
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library, OpenCudnn());
  auto functions = std::make_unique<CudnnGraph>();
#define PD_BIND(member, parameters) \
  PD_RETURN_IF_ERROR(library.Bind("cudnnBackend" #member, &functions->member));
  PD_CUDNN_GRAPH(PD_BIND)
#undef PD_BIND
  return functions;
}

absl::StatusOr<const CudnnGraph*> LoadCudnnGraph() {
  static const auto* const kFunctions =
      new absl::StatusOr<std::unique_ptr<CudnnGraph>>(Load());
  if (!kFunctions->ok()) return kFunctions->status();
  return kFunctions->value().get();
}

}  // namespace

absl::Status GraphPlan::Open() {
  PD_ASSIGN_OR_RETURN(cudnn_, LoadCudnn());
  PD_ASSIGN_OR_RETURN(functions_, LoadCudnnGraph());
  return absl::OkStatus();
}

absl::StatusOr<CudnnNode> GraphPlan::Tensor(const GraphTensor& tensor) {
  CudnnNode node = Make(kTensor);
  node.Set(kTensorType, kTypeDataType, tensor.type)
      .Set(kTensorDims, kTypeInt64, tensor.extents)
      .Set(kTensorStrides, kTypeInt64, tensor.strides)
      .Set(kTensorId, kTypeInt64, tensor.id)
      .Set(kTensorAlignment, kTypeInt64, kAlignment)
      .Set(kTensorIsVirtual, kTypeBoolean,
           static_cast<uint8_t>(tensor.is_virtual ? 1 : 0));
  if (tensor.by_value) node.Set(kTensorIsByValue, kTypeBoolean, uint8_t{1});
  PD_RETURN_IF_ERROR(Keep(node, "a tensor"));
  return node;
}

absl::Status GraphPlan::Keep(CudnnNode part, const char* what) {
  PD_RETURN_IF_ERROR(part.Finalize(what));
  nodes_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status GraphPlan::Add(CudnnNode operation, const char* what) {
  PD_RETURN_IF_ERROR(operation.Finalize(what));
  operations_.push_back(std::move(operation));
  return absl::OkStatus();
}

absl::Status GraphPlan::AddPointwise(CudnnNode mode, const CudnnNode& x,
                                     const CudnnNode* b, const CudnnNode& y) {
  mode.Set(kPointwiseMathType, kTypeDataType, kCudnnFloat32);
  CudnnNode operation = Make(kPointwiseOperation);
  PD_RETURN_IF_ERROR(Keep(mode, "a function of elements"));
  operation.SetNode(kOperationPointwise, mode)
      .SetNode(kOperationX, x)
      .SetNode(kOperationY, y);
  if (b != nullptr) operation.SetNode(kOperationB, *b);
  return Add(std::move(operation), "a function's tensors");
}

absl::Status GraphPlan::Finish() {
  std::vector<void*> operations;
  for (const CudnnNode& node : operations_) operations.push_back(node.get());
  CudnnNode graph = Make(kOperationGraph);
  graph.Set(kGraphHandle, kTypeHandle, cudnn_->handle)
      .Set(kGraphOperations, kTypeDescriptor, operations);
  PD_RETURN_IF_ERROR(graph.Finalize("a graph of operations"));
  graph_ = std::move(graph);
  return absl::OkStatus();
}

// An engine with its settings, and what cuDNN says about it.
struct GraphPlan::Recommended {
  CudnnNode config;
  int position = 0, number = 0;
  bool compiles = false;  // its kernels, which takes up to a second
  std::vector<int> notes;
};

// Recommendations of one of kModes, without engines that do not tell about
// themselves.
absl::StatusOr<std::vector<GraphPlan::Recommended>> GraphPlan::Ask(
    size_t mode) const {
  CudnnNode heuristics = Make(kHeuristics);
  heuristics.SetNode(kHeuristicsGraph, *graph_)
      .Set(kHeuristicsMode, kTypeHeuristicsMode, kModes[mode]);
  PD_RETURN_IF_ERROR(heuristics.Finalize("cuDNN's recommendations"));
  std::vector<CudnnNode> configs;
  std::vector<void*> handles;
  for (int i = 0; i < kMostConfigs; ++i) {
    configs.push_back(Make(kEngineConfig));
    handles.push_back(configs.back().get());
  }
  PD_ASSIGN_OR_RETURN(const int64_t count,
                      heuristics.Get(kHeuristicsResults, kTypeDescriptor,
                                     kMostConfigs, handles.data()));
  std::vector<Recommended> all;
  for (int i = 0; i < std::min<int64_t>(count, kMostConfigs); ++i) {
    Recommended one{configs[static_cast<size_t>(i)]};
    CudnnNode engine = Make(kEngine);
    void* handle = engine.get();
    int64_t number = 0;
    int notes[kNotes] = {}, behaviors[kBehaviors] = {};
    const auto known =
        one.config.Get(kConfigEngine, kTypeDescriptor, 1, &handle);
    const auto numbers = engine.Get(kEngineNumber, kTypeInt64, 1, &number);
    const auto noted =
        engine.Get(kEngineNotes, kTypeNumericalNote, kNotes, notes);
    if (!known.ok() || !numbers.ok() || !noted.ok()) continue;
    const auto behaves =
        engine.Get(kEngineBehavior, kTypeBehaviorNote, kBehaviors, behaviors);
    one.position = static_cast<int>(mode) * kMostConfigs + i;
    one.number = static_cast<int>(number);
    one.notes.assign(notes, notes + std::min<int64_t>(*noted, kNotes));
    for (int64_t b = 0;
         behaves.ok() && b < std::min<int64_t>(*behaves, kBehaviors); ++b)
      one.compiles |= behaviors[b] == kBehaviorCompiles;
    all.push_back(std::move(one));
  }
  return all;
}

// Makes a plan of a configuration that computes as it should and fits.
absl::StatusOr<GraphEngine> GraphPlan::Prepare(const EngineDemands& demands,
                                               const Recommended& one) const {
  for (const int note : one.notes)
    if ((demands.exact &&
         (note == kNoteTensorCore || note == kNoteDownConvert)) ||
        (demands.deterministic && note == kNoteNondeterministic) ||
        note == kNoteReducedReduction)
      return Unimplemented("an engine with numerical note %d", note);
  CudnnNode plan = Make(kPlan);
  plan.Set(kPlanHandle, kTypeHandle, cudnn_->handle)
      .SetNode(kPlanConfig, one.config);
  PD_RETURN_IF_ERROR(plan.Finalize("a plan"));
  int64_t bytes = 0;
  PD_RETURN_IF_ERROR(plan.Get(kPlanWorkspace, kTypeInt64, 1, &bytes).status());
  if (bytes < 0 || static_cast<uint64_t>(bytes) > demands.most_workspace)
    return Unimplemented("an engine that wants %d bytes; %d are allowed", bytes,
                         demands.most_workspace);
  return GraphEngine{one.config, std::move(plan), static_cast<size_t>(bytes),
                     one.position, one.number};
}

absl::Status GraphPlan::Choose(const EngineDemands& demands, const char* what) {
  absl::Status last = Unimplemented("cuDNN recommends nothing");
  for (size_t mode = 0; mode < std::size(kModes); ++mode) {
    auto all = Ask(mode);
    if (!all.ok()) {
      last = all.status();
      continue;
    }
    std::stable_partition(all->begin(), all->end(),
                          [](const auto& one) { return !one.compiles; });
    for (const Recommended& one : *all) {
      auto engine = Prepare(demands, one);
      last = engine.status();
      if (!engine.ok()) continue;
      Take(*std::move(engine));
      return absl::OkStatus();
    }
  }
  return Annotate(last, absl::StrCat("cuDNN has no engine for ", what));
}

absl::StatusOr<std::vector<GraphEngine>> GraphPlan::Engines(
    const EngineDemands& demands, size_t most) const {
  std::vector<GraphEngine> engines;
  for (size_t mode = 0; mode < std::size(kModes); ++mode) {
    const auto all = Ask(mode);
    for (size_t i = 0; all.ok() && i < all->size() && engines.size() < most;
         ++i) {
      auto engine = Prepare(demands, (*all)[i]);
      if (engine.ok()) engines.push_back(*std::move(engine));
    }
  }
  if (engines.empty()) return Unimplemented("cuDNN has none that fits");
  return engines;
}

absl::StatusOr<GraphEngine> GraphPlan::EngineAt(
    int position, int number, const EngineDemands& demands) const {
  const size_t mode = static_cast<size_t>(position / kMostConfigs);
  if (position < 0 || mode >= std::size(kModes))
    return Unimplemented("no position %d", position);
  PD_ASSIGN_OR_RETURN(const std::vector<Recommended> all, Ask(mode));
  for (const Recommended& one : all)
    if (one.position == position && one.number == number)
      return Prepare(demands, one);
  return Unimplemented("no engine %d at position %d", number, position);
}

absl::Status GraphPlan::Run(const std::vector<int64_t>& ids,
                            const std::vector<const void*>& pointers,
                            void* workspace, const char* what) const {
  CudnnNode pack = Make(kVariantPack);
  pack.Set(kPackIds, kTypeInt64, ids)
      .Set(kPackPointers, kTypePointer, pointers)
      .Set(kPackWorkspace, kTypePointer, workspace);
  PD_RETURN_IF_ERROR(pack.Finalize("the tensors of a graph"));
  CudnnStatus status = cudnn_->SetStream(cudnn_->handle, device_->stream());
  if (status == 0)
    status =
        functions_->Execute(cudnn_->handle, engine_->plan.get(), pack.get());
  if (status == 0) return absl::OkStatus();
  return Unknown("%s: cuDNN status %d", what, status);
}

}  // namespace pd
