// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn_graph.h"

#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/device/cudnn_nodes.h"

namespace pd {
namespace {

using namespace cudnn_graph;  // NOLINT: its numbers

// Names of the tensors in a graph; virtual ones follow.
enum Id : int64_t { kX = 1, kW, kR, kB, kY, kFirstVirtual };

class Bound : public BoundGraph {
 public:
  explicit Bound(CudaDevice* device) : plan_(device) {}

  absl::Status Prepare(const Convolution& c, const ConvolutionTail& tail) {
    tail_ = tail;
    PD_RETURN_IF_ERROR(plan_.Open());
    PD_ASSIGN_OR_RETURN(type_, CudnnTypeOf(c.dtype));
    PD_RETURN_IF_ERROR(AddConvolution(c));
    if (tail.residual) PD_RETURN_IF_ERROR(AddSum(c, kR, c.output));
    if (tail.bias) PD_RETURN_IF_ERROR(AddSum(c, kB, BiasExtents(c.output)));
    if (tail.relu) PD_RETURN_IF_ERROR(AddRelu(c));
    EngineDemands demands;
    demands.exact = c.dtype == DType::kFloat32 && !c.tf32;
    demands.deterministic = c.deterministic;
    demands.most_workspace = c.most_workspace;
    return plan_.Choose(demands, "a convolution's graph");
  }

  size_t workspace() const override { return plan_.workspace(); }

  absl::Status Run(const ConvolutionData& data,
                   void* workspace) const override {
    std::vector<int64_t> ids = {kX, kW, kY};
    std::vector<const void*> pointers = {data.input, data.filter, data.output};
    if (tail_.residual) ids.push_back(kR), pointers.push_back(data.residual);
    if (tail_.bias) ids.push_back(kB), pointers.push_back(data.bias);
    return plan_.Run(ids, pointers, workspace, "a convolution's graph");
  }

 private:
  static std::vector<int64_t> BiasExtents(const std::vector<int64_t>& output) {
    std::vector<int64_t> extents(output.size(), 1);
    extents[1] = output[1];
    return extents;
  }

  // Tensors between two operations are float32 and are not in memory.
  absl::StatusOr<CudnnNode> Tensor(const std::vector<int64_t>& extents,
                                   bool last, int64_t id) {
    const bool is_virtual = id >= kFirstVirtual;
    return plan_.Tensor({extents, CudnnStrides(extents, last),
                         is_virtual ? kCudnnFloat32 : type_, id, is_virtual});
  }

  // The result of the next operation: the output, when it is the last one.
  absl::StatusOr<CudnnNode> Result(const Convolution& c) {
    const size_t all = size_t{1} + tail_.residual + tail_.bias + tail_.relu;
    const bool last = plan_.operations() + 1 == all;
    return Tensor(
        c.output, c.channels_last,
        last ? int64_t{kY}
             : kFirstVirtual + static_cast<int64_t>(plan_.operations()));
  }

  absl::Status AddConvolution(const Convolution& c) {
    PD_ASSIGN_OR_RETURN(const CudnnNode x,
                        Tensor(c.input, c.channels_last, kX));
    PD_ASSIGN_OR_RETURN(const CudnnNode w, Tensor(c.filter, false, kW));
    PD_ASSIGN_OR_RETURN(const CudnnNode y, Result(c));
    CudnnNode work = plan_.Make(kConvolution);
    work.Set(kConvolutionType, kTypeDataType, kCudnnFloat32)
        .Set(kConvolutionMode, kTypeConvolutionMode, kCudnnCrossCorrelation)
        .Set(kConvolutionDims, kTypeInt64,
             static_cast<int64_t>(c.paddings.size()))
        .Set(kConvolutionPrePaddings, kTypeInt64, c.paddings)
        .Set(kConvolutionPostPaddings, kTypeInt64, c.paddings)
        .Set(kConvolutionStrides, kTypeInt64, c.strides)
        .Set(kConvolutionDilations, kTypeInt64, c.dilations);
    PD_RETURN_IF_ERROR(plan_.Keep(work, "a convolution"));
    CudnnNode forward = plan_.Make(kConvolutionForward);
    forward.SetNode(kForwardX, x)
        .SetNode(kForwardW, w)
        .SetNode(kForwardY, y)
        .SetNode(kForwardConvolution, work)
        .Set(kForwardAlpha, kTypeFloat, 1.0f)
        .Set(kForwardBeta, kTypeFloat, 0.0f);
    last_ = {y};
    return plan_.Add(std::move(forward), "a convolution's tensors");
  }

  absl::Status AddPointwise(const Convolution& c, CudnnNode mode,
                            const CudnnNode* b) {
    PD_ASSIGN_OR_RETURN(const CudnnNode y, Result(c));
    PD_RETURN_IF_ERROR(plan_.AddPointwise(std::move(mode), last_.back(), b, y));
    last_ = {y};
    return absl::OkStatus();
  }

  absl::Status AddSum(const Convolution& c, int64_t id,
                      const std::vector<int64_t>& extents) {
    PD_ASSIGN_OR_RETURN(const CudnnNode b,
                        Tensor(extents, c.channels_last, id));
    CudnnNode mode = plan_.Make(kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kAdd);
    return AddPointwise(c, std::move(mode), &b);
  }

  absl::Status AddRelu(const Convolution& c) {
    CudnnNode mode = plan_.Make(kPointwise);
    mode.Set(kPointwiseMode, kTypePointwiseMode, kReluForward);
    if (tail_.top > 0)
      mode.Set(kPointwiseReluUpper, kTypeDouble,
               static_cast<double>(tail_.top));
    return AddPointwise(c, std::move(mode), nullptr);
  }

  GraphPlan plan_;
  ConvolutionTail tail_;
  int type_ = 0;
  std::vector<CudnnNode> last_;  // the last result
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundGraph>> BindConvolutionGraph(
    CudaDevice* device, const Convolution& convolution,
    const ConvolutionTail& tail) {
  auto bound = std::make_shared<Bound>(device);
  PD_RETURN_IF_ERROR(bound->Prepare(convolution, tail));
  return std::shared_ptr<const BoundGraph>(std::move(bound));
}

}  // namespace pd
