// SPDX-License-Identifier: Apache-2.0
// The descriptors of cuDNN's graphs, and how a graph gets an engine: what
// convolutions (cudnn_convolution.cc) and attention (cudnn_attention.cc) share.
#ifndef PD_LIBCORE_DEVICE_CUDNN_NODES_H_
#define PD_LIBCORE_DEVICE_CUDNN_NODES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/error.h"
#include "libcore/device/cuda_device.h"
#include "libcore/device/cudnn.h"
#include "libcore/device/cudnn_graph.h"

namespace pd {

/// A descriptor. What the library refuses is a part of the graph that it does
/// not know: Unimplemented, told at the end by Finalize.
class CudnnNode {
 public:
  CudnnNode(const CudnnGraph* functions, int kind) : functions_(functions) {
    void* made = nullptr;
    status_ = functions->CreateDescriptor(kind, &made);
    handle_ = std::shared_ptr<void>(made, [functions](void* handle) {
      if (handle != nullptr) functions->DestroyDescriptor(handle);
    });
  }

  void* get() const { return handle_.get(); }

  template <typename T>
  CudnnNode& Set(int attribute, int type, const std::vector<T>& values) {
    if (status_ == 0)
      status_ = functions_->SetAttribute(get(), attribute, type,
                                         static_cast<int64_t>(values.size()),
                                         values.data());
    return *this;
  }
  template <typename T>
  CudnnNode& Set(int attribute, int type, T value) {
    return Set(attribute, type, std::vector<T>{value});
  }
  CudnnNode& SetNode(int attribute, const CudnnNode& node) {
    return Set<void*>(attribute, cudnn_graph::kTypeDescriptor, node.get());
  }

  /// How many elements `values` got.
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

/// A tensor of a graph.
struct GraphTensor {
  std::vector<int64_t> extents, strides;
  int type = 0;             ///< cuDNN's number
  int64_t id = 0;           ///< its name in the graph, above 0
  bool is_virtual = false;  ///< it is between two operations, not in memory
  bool by_value = false;    ///< one number, on the host while Run is called
};

/// Demands that an engine must meet to be taken.
struct EngineDemands {
  bool exact = false;          ///< rounds no input
  bool deterministic = false;  ///< the same bits in every run
  size_t most_workspace = 0;   ///< bytes
};

/// An engine with its settings, ready to run a graph.
struct GraphEngine {
  CudnnNode config, plan;
  size_t workspace = 0;  ///< bytes
  int position = 0;      ///< among cuDNN's recommendations for the graph
  int number = 0;        ///< the engine's
};

/// A graph while it is made, and then with its engine.
class GraphPlan {
 public:
  explicit GraphPlan(CudaDevice* device) : device_(device) {}
  /// Unavailable when the library is missing. Comes before all others.
  absl::Status Open();

  CudnnNode Make(int kind) const { return {functions_, kind}; }
  absl::StatusOr<CudnnNode> Tensor(const GraphTensor& tensor);
  /// Finalizes a part that operations name.
  absl::Status Keep(CudnnNode part, const char* what);
  /// The same of the graph's next operation.
  absl::Status Add(CudnnNode operation, const char* what);
  /// y = mode(x), or of x and b. `mode` is not finalized.
  absl::Status AddPointwise(CudnnNode mode, const CudnnNode& x,
                            const CudnnNode* b, const CudnnNode& y);
  size_t operations() const { return operations_.size(); }

  /// Finalizes the graph. Comes after all operations and before the engines.
  absl::Status Finish();
  /// Takes the engine that cuDNN recommends first of those that do as demanded,
  /// ones that it has to compile after the others. Unimplemented for none:
  /// "cuDNN has no engine for `what`".
  absl::Status Choose(const EngineDemands& demands, const char* what);
  /// Engines that do as demanded, `most` of them at most, as recommended.
  /// Unimplemented for none.
  absl::StatusOr<std::vector<GraphEngine>> Engines(const EngineDemands& demands,
                                                   size_t most) const;
  /// The engine at a position, if it has this number and does as demanded.
  absl::StatusOr<GraphEngine> EngineAt(int position, int number,
                                       const EngineDemands& demands) const;
  void Take(GraphEngine engine) { engine_ = std::move(engine); }

  const GraphEngine& engine() const { return *engine_; }
  size_t workspace() const { return engine_->workspace; }
  /// On the device's stream; `pointers` of the tensors with these ids.
  absl::Status Run(const std::vector<int64_t>& ids,
                   const std::vector<const void*>& pointers, void* workspace,
                   const char* what) const;

 private:
  struct Recommended;
  absl::StatusOr<std::vector<Recommended>> Ask(size_t mode) const;
  absl::StatusOr<GraphEngine> Prepare(const EngineDemands& demands,
                                      const Recommended& one) const;

  CudaDevice* device_;
  const Cudnn* cudnn_ = nullptr;
  const CudnnGraph* functions_ = nullptr;
  // They stay while the plan is there.
  std::vector<CudnnNode> nodes_, operations_;
  std::optional<CudnnNode> graph_;
  std::optional<GraphEngine> engine_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDNN_NODES_H_
