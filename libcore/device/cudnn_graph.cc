// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {
namespace {

using namespace cudnn_graph;  // NOLINT: its numbers

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

// A descriptor. What the library refuses is a part of the graph that it does
// not know: Unimplemented, told at the end by Finalize.
class Node {
 public:
  Node(const CudnnGraph* functions, int kind) : functions_(functions) {
    void* made = nullptr;
    status_ = functions->CreateDescriptor(kind, &made);
    handle_ = std::shared_ptr<void>(made, [functions](void* handle) {
      if (handle != nullptr) functions->DestroyDescriptor(handle);
    });
  }

  void* get() const { return handle_.get(); }

  template <typename T>
  Node& Set(int attribute, int type, const std::vector<T>& values) {
    if (status_ == 0)
      status_ = functions_->SetAttribute(get(), attribute, type,
                                         static_cast<int64_t>(values.size()),
                                         values.data());
    return *this;
  }
  template <typename T>
  Node& Set(int attribute, int type, T value) {
    return Set(attribute, type, std::vector<T>{value});
  }
  Node& SetNode(int attribute, const Node& node) {
    return Set<void*>(attribute, kTypeDescriptor, node.get());
  }

  // How many elements `values` got.
  template <typename T>
  absl::StatusOr<int64_t> Get(int attribute, int type, int64_t most,
                              T* values) const {
    int64_t count = 0;
    const CudnnStatus status =
        functions_->GetAttribute(get(), attribute, type, most, &count, values);
    if (status != 0)
      return Unimplemented("attribute %d: cuDNN status %d", attribute, status);
    return count;
  }

  absl::Status Finalize(const char* what) {
    if (status_ == 0) status_ = functions_->Finalize(get());
    if (status_ == 0) return absl::OkStatus();
    return Unimplemented("%s: cuDNN status %d", what, status_);
  }

 private:
  const CudnnGraph* functions_;
  CudnnStatus status_ = 0;
  std::shared_ptr<void> handle_;
};

// Names of the tensors in a graph; virtual ones follow.
enum Id : int64_t { kX = 1, kW, kR, kB, kY, kFirstVirtual };

class Bound : public BoundGraph {
 public:
  Bound(const Cudnn* cudnn, const CudnnGraph* functions, CudaDevice* device)
      : cudnn_(cudnn), functions_(functions), device_(device) {}

  absl::Status Prepare(const Convolution& c, const ConvolutionTail& tail) {
    tail_ = tail;
    PD_ASSIGN_OR_RETURN(type_, CudnnTypeOf(c.dtype));
    PD_RETURN_IF_ERROR(AddConvolution(c));
    if (tail.residual) PD_RETURN_IF_ERROR(AddSum(c, kR, c.output));
    if (tail.bias) PD_RETURN_IF_ERROR(AddSum(c, kB, BiasExtents(c.output)));
    if (tail.relu) PD_RETURN_IF_ERROR(AddRelu(c));
    std::vector<void*> operations;
    for (const Node& node : operations_) operations.push_back(node.get());
    Node graph(functions_, kOperationGraph);
    graph.Set(kGraphHandle, kTypeHandle, cudnn_->handle)
        .Set(kGraphOperations, kTypeDescriptor, operations);
    PD_RETURN_IF_ERROR(graph.Finalize("a graph of operations"));
    PD_RETURN_IF_ERROR(Choose(c, graph));
    nodes_.push_back(std::move(graph));
    return absl::OkStatus();
  }

  size_t workspace() const override { return workspace_; }

  absl::Status Run(const ConvolutionData& data,
                   void* workspace) const override {
    std::vector<int64_t> ids = {kX, kW, kY};
    std::vector<const void*> pointers = {data.input, data.filter, data.output};
    if (tail_.residual) ids.push_back(kR), pointers.push_back(data.residual);
    if (tail_.bias) ids.push_back(kB), pointers.push_back(data.bias);
    Node pack(functions_, kVariantPack);
    pack.Set(kPackIds, kTypeInt64, ids)
        .Set(kPackPointers, kTypePointer, pointers)
        .Set(kPackWorkspace, kTypePointer, workspace);
    PD_RETURN_IF_ERROR(pack.Finalize("the tensors of a graph"));
    CudnnStatus status = cudnn_->SetStream(cudnn_->handle, device_->stream());
    if (status == 0)
      status = functions_->Execute(cudnn_->handle, plan_->get(), pack.get());
    if (status == 0) return absl::OkStatus();
    return Unknown("a convolution's graph: cuDNN status %d", status);
  }

 private:
  static std::vector<int64_t> BiasExtents(const std::vector<int64_t>& output) {
    std::vector<int64_t> extents(output.size(), 1);
    extents[1] = output[1];
    return extents;
  }

  // Those in between are floats that are nowhere in memory.
  absl::StatusOr<Node> Tensor(const std::vector<int64_t>& extents, bool last,
                              int64_t id) {
    const bool is_virtual = id >= kFirstVirtual;
    Node node(functions_, kTensor);
    node.Set(kTensorType, kTypeDataType, is_virtual ? kCudnnFloat32 : type_)
        .Set(kTensorDims, kTypeInt64, extents)
        .Set(kTensorStrides, kTypeInt64, CudnnStrides(extents, last))
        .Set(kTensorId, kTypeInt64, id)
        .Set(kTensorAlignment, kTypeInt64, kAlignment)
        .Set(kTensorIsVirtual, kTypeBoolean,
             static_cast<uint8_t>(is_virtual ? 1 : 0));
    PD_RETURN_IF_ERROR(node.Finalize("a tensor"));
    nodes_.push_back(node);
    return node;
  }

  // What the next operation writes: the output, when it is the last one.
  absl::StatusOr<Node> Result(const Convolution& c) {
    const size_t all = size_t{1} + tail_.residual + tail_.bias + tail_.relu;
    const bool last = operations_.size() + 1 == all;
    return Tensor(
        c.output, c.channels_last,
        last ? int64_t{kY}
             : kFirstVirtual + static_cast<int64_t>(operations_.size()));
  }

  absl::Status AddConvolution(const Convolution& c) {
    PD_ASSIGN_OR_RETURN(const Node x, Tensor(c.input, c.channels_last, kX));
    PD_ASSIGN_OR_RETURN(const Node w, Tensor(c.filter, false, kW));
    PD_ASSIGN_OR_RETURN(const Node y, Result(c));
    Node work(functions_, kConvolution);
    work.Set(kConvolutionType, kTypeDataType, kCudnnFloat32)
        .Set(kConvolutionMode, kTypeConvolutionMode, kCudnnCrossCorrelation)
        .Set(kConvolutionDims, kTypeInt64,
             static_cast<int64_t>(c.paddings.size()))
        .Set(kConvolutionPrePaddings, kTypeInt64, c.paddings)
        .Set(kConvolutionPostPaddings, kTypeInt64, c.paddings)
        .Set(kConvolutionStrides, kTypeInt64, c.strides)
        .Set(kConvolutionDilations, kTypeInt64, c.dilations);
    PD_RETURN_IF_ERROR(work.Finalize("a convolution"));
    Node forward(functions_, kConvolutionForward);
    forward.SetNode(kForwardX, x)
        .SetNode(kForwardW, w)
        .SetNode(kForwardY, y)
        .SetNode(kForwardConvolution, work)
        .Set(kForwardAlpha, kTypeFloat, 1.0f)
        .Set(kForwardBeta, kTypeFloat, 0.0f);
    PD_RETURN_IF_ERROR(forward.Finalize("a convolution's tensors"));
    nodes_.push_back(std::move(work));
    operations_.push_back(std::move(forward));
    last_.push_back(y);
    return absl::OkStatus();
  }

  absl::Status AddPointwise(const Convolution& c, Node mode, const Node* b) {
    mode.Set(kPointwiseMathType, kTypeDataType, kCudnnFloat32);
    PD_RETURN_IF_ERROR(mode.Finalize("a function of elements"));
    PD_ASSIGN_OR_RETURN(const Node y, Result(c));
    Node operation(functions_, kPointwiseOperation);
    operation.SetNode(kOperationPointwise, mode)
        .SetNode(kOperationX, last_.back())
        .SetNode(kOperationY, y);
    if (b != nullptr) operation.SetNode(kOperationB, *b);
    PD_RETURN_IF_ERROR(operation.Finalize("a function's tensors"));
    nodes_.push_back(std::move(mode));
    operations_.push_back(std::move(operation));
    last_.push_back(y);
    return absl::OkStatus();
  }

  absl::Status AddSum(const Convolution& c, int64_t id,
                      const std::vector<int64_t>& extents) {
    PD_ASSIGN_OR_RETURN(const Node b, Tensor(extents, c.channels_last, id));
    Node mode(functions_, kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kAdd);
    return AddPointwise(c, std::move(mode), &b);
  }

  absl::Status AddRelu(const Convolution& c) {
    Node mode(functions_, kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kReluForward);
    if (tail_.top > 0)
      mode.Set(kPointwiseReluUpper, kTypeDouble,
               static_cast<double>(tail_.top));
    return AddPointwise(c, std::move(mode), nullptr);
  }

  absl::Status Choose(const Convolution& c, const Node& graph) {
    absl::Status last = Unimplemented("cuDNN recommends nothing");
    for (const int mode : {kModeA, kModeFallback}) {
      Node heuristics(functions_, kHeuristics);
      heuristics.SetNode(kHeuristicsGraph, graph)
          .Set(kHeuristicsMode, kTypeHeuristicsMode, mode);
      const absl::Status asked = heuristics.Finalize("cuDNN's recommendations");
      if (!asked.ok()) {
        last = asked;
        continue;
      }
      std::vector<Node> configs;
      std::vector<void*> handles;
      for (int64_t i = 0; i < kMostConfigs; ++i) {
        configs.emplace_back(functions_, kEngineConfig);
        handles.push_back(configs.back().get());
      }
      PD_ASSIGN_OR_RETURN(const int64_t count,
                          heuristics.Get(kHeuristicsResults, kTypeDescriptor,
                                         kMostConfigs, handles.data()));
      for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
        last = Take(c, configs[i]);
        if (last.ok()) return last;
      }
    }
    return Annotate(last, "cuDNN has no engine for a convolution's graph");
  }

  // Makes a plan of a configuration that computes as it should and fits.
  absl::Status Take(const Convolution& c, const Node& config) {
    Node engine(functions_, kEngine);
    void* handle = engine.get();
    PD_RETURN_IF_ERROR(
        config.Get(kConfigEngine, kTypeDescriptor, 1, &handle).status());
    int notes[kNotes] = {};
    PD_ASSIGN_OR_RETURN(
        const int64_t count,
        engine.Get(kEngineNotes, kTypeNumericalNote, kNotes, notes));
    const bool exact = c.dtype == DType::kFloat32 && !c.tf32;
    for (int64_t i = 0; i < count; ++i)
      if ((exact &&
           (notes[i] == kNoteTensorCore || notes[i] == kNoteDownConvert)) ||
          (c.deterministic && notes[i] == kNoteNondeterministic) ||
          notes[i] == kNoteReducedReduction)
        return Unimplemented("an engine with numerical note %d", notes[i]);
    Node plan(functions_, kPlan);
    plan.Set(kPlanHandle, kTypeHandle, cudnn_->handle)
        .SetNode(kPlanConfig, config);
    PD_RETURN_IF_ERROR(plan.Finalize("a plan"));
    int64_t bytes = 0;
    PD_RETURN_IF_ERROR(
        plan.Get(kPlanWorkspace, kTypeInt64, 1, &bytes).status());
    if (bytes < 0 || static_cast<uint64_t>(bytes) > c.most_workspace)
      return Unimplemented("an engine that wants %d bytes; %d are allowed",
                           bytes, c.most_workspace);
    workspace_ = static_cast<size_t>(bytes);
    plan_ = std::make_unique<Node>(std::move(plan));
    nodes_.push_back(config);
    return absl::OkStatus();
  }

  const Cudnn* cudnn_;
  const CudnnGraph* functions_;
  CudaDevice* device_;
  ConvolutionTail tail_;
  int type_ = 0;
  std::vector<Node> nodes_, operations_;  // they stay while the plan is there
  std::vector<Node> last_;                // results of the operations
  std::unique_ptr<Node> plan_;
  size_t workspace_ = 0;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundGraph>> BindConvolutionGraph(
    CudaDevice* device, const Convolution& convolution,
    const ConvolutionTail& tail) {
  PD_ASSIGN_OR_RETURN(const Cudnn* cudnn, LoadCudnn());
  PD_ASSIGN_OR_RETURN(const CudnnGraph* functions, LoadCudnnGraph());
  auto bound = std::make_shared<Bound>(cudnn, functions, device);
  PD_RETURN_IF_ERROR(bound->Prepare(convolution, tail));
  return std::shared_ptr<const BoundGraph>(std::move(bound));
}

}  // namespace pd
