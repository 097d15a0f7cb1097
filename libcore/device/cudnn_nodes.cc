// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn_nodes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {

using namespace cudnn_graph;  // NOLINT: its numbers

namespace {

// Configurations that are looked at.
constexpr int64_t kMostConfigs = 32;
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

absl::Status GraphPlan::Choose(const EngineDemands& demands, const char* what) {
  std::vector<void*> operations;
  for (const CudnnNode& node : operations_) operations.push_back(node.get());
  CudnnNode graph = Make(kOperationGraph);
  graph.Set(kGraphHandle, kTypeHandle, cudnn_->handle)
      .Set(kGraphOperations, kTypeDescriptor, operations);
  PD_RETURN_IF_ERROR(Keep(graph, "a graph of operations"));
  const absl::Status chosen = ChooseFor(demands, graph);
  return chosen.ok()
             ? chosen
             : Annotate(chosen, absl::StrCat("cuDNN has no engine for ", what));
}

absl::Status GraphPlan::ChooseFor(const EngineDemands& demands,
                                  const CudnnNode& graph) {
  absl::Status last = Unimplemented("cuDNN recommends nothing");
  for (const int mode : {kModeA, kModeFallback}) {
    CudnnNode heuristics = Make(kHeuristics);
    heuristics.SetNode(kHeuristicsGraph, graph)
        .Set(kHeuristicsMode, kTypeHeuristicsMode, mode);
    const absl::Status asked = heuristics.Finalize("cuDNN's recommendations");
    if (!asked.ok()) {
      last = asked;
      continue;
    }
    std::vector<CudnnNode> configs;
    std::vector<void*> handles;
    for (int64_t i = 0; i < kMostConfigs; ++i) {
      configs.push_back(Make(kEngineConfig));
      handles.push_back(configs.back().get());
    }
    PD_ASSIGN_OR_RETURN(const int64_t count,
                        heuristics.Get(kHeuristicsResults, kTypeDescriptor,
                                       kMostConfigs, handles.data()));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      last = Take(demands, configs[i]);
      if (last.ok()) return last;
    }
  }
  return last;
}

// Makes a plan of a configuration that computes as it should and fits.
absl::Status GraphPlan::Take(const EngineDemands& demands,
                             const CudnnNode& config) {
  CudnnNode engine = Make(kEngine);
  void* handle = engine.get();
  PD_RETURN_IF_ERROR(
      config.Get(kConfigEngine, kTypeDescriptor, 1, &handle).status());
  int notes[kNotes] = {};
  PD_ASSIGN_OR_RETURN(
      const int64_t count,
      engine.Get(kEngineNotes, kTypeNumericalNote, kNotes, notes));
  for (int64_t i = 0; i < count; ++i)
    if ((demands.exact &&
         (notes[i] == kNoteTensorCore || notes[i] == kNoteDownConvert)) ||
        (demands.deterministic && notes[i] == kNoteNondeterministic) ||
        notes[i] == kNoteReducedReduction)
      return Unimplemented("an engine with numerical note %d", notes[i]);
  CudnnNode plan = Make(kPlan);
  plan.Set(kPlanHandle, kTypeHandle, cudnn_->handle)
      .SetNode(kPlanConfig, config);
  PD_RETURN_IF_ERROR(plan.Finalize("a plan"));
  int64_t bytes = 0;
  PD_RETURN_IF_ERROR(plan.Get(kPlanWorkspace, kTypeInt64, 1, &bytes).status());
  if (bytes < 0 || static_cast<uint64_t>(bytes) > demands.most_workspace)
    return Unimplemented("an engine that wants %d bytes; %d are allowed", bytes,
                         demands.most_workspace);
  workspace_ = static_cast<size_t>(bytes);
  plan_ = std::make_unique<CudnnNode>(std::move(plan));
  nodes_.push_back(config);
  return absl::OkStatus();
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
    status = functions_->Execute(cudnn_->handle, plan_->get(), pack.get());
  if (status == 0) return absl::OkStatus();
  return Unknown("%s: cuDNN status %d", what, status);
}

}  // namespace pd
