// SPDX-License-Identifier: Apache-2.0
// The operations and their order are those of which cuDNN knows that they are
// attention; it takes the transposed keys, whatever lies in memory, and wants
// the probabilities as halves.
#include "libcore/device/cudnn_attention.h"

#include <utility>

#include "libcore/base/status_macros.h"
#include "libcore/device/cudnn_nodes.h"

namespace pd {
namespace {

using namespace cudnn_graph;  // NOLINT: its numbers

// Names of the tensors in the graph; virtual ones follow.
enum Id : int64_t { kQ = 1, kK, kV, kB, kScale, kO, kFirstVirtual };

using Extents = std::vector<int64_t>;

class Bound : public BoundAttention {
 public:
  Bound(CudaDevice* device, const AttentionGraph& a)
      : plan_(device), a_(a), next_(kFirstVirtual) {}

  absl::Status Prepare() {
    PD_RETURN_IF_ERROR(plan_.Open());
    if (a_.dtype != DType::kFloat16 && a_.dtype != DType::kBFloat16)
      return Unimplemented("attention of %s", Name(a_.dtype));
    PD_ASSIGN_OR_RETURN(type_, CudnnTypeOf(a_.dtype));
    PD_ASSIGN_OR_RETURN(const CudnnNode scores, AddScores());
    PD_ASSIGN_OR_RETURN(const CudnnNode weights, AddSoftmax(scores));
    PD_ASSIGN_OR_RETURN(const CudnnNode value,
                        InMemory({a_.batch, a_.heads, a_.keys, a_.values}, kV));
    PD_ASSIGN_OR_RETURN(
        const CudnnNode output,
        InMemory({a_.batch, a_.heads, a_.queries, a_.values}, kO));
    PD_RETURN_IF_ERROR(AddProduct(weights, value, output));
    PD_RETURN_IF_ERROR(plan_.Finish());
    EngineDemands demands;
    demands.deterministic = a_.deterministic;
    demands.most_workspace = a_.most_workspace;
    return plan_.Choose(demands, "attention");
  }

  size_t workspace() const override { return plan_.workspace(); }

  absl::Status Run(const AttentionData& data, void* workspace) const override {
    std::vector<int64_t> ids = {kQ, kK, kV, kScale, kO};
    std::vector<const void*> pointers = {data.query, data.key, data.value,
                                         &a_.scale, data.output};
    if (!a_.bias.empty()) ids.push_back(kB), pointers.push_back(data.bias);
    return plan_.Run(ids, pointers, workspace, "attention");
  }

 private:
  absl::StatusOr<CudnnNode> InMemory(const Extents& extents, int64_t id) {
    return plan_.Tensor({extents, CudnnStrides(extents, false), type_, id});
  }
  absl::StatusOr<CudnnNode> Virtual(const Extents& extents, int type) {
    return plan_.Tensor(
        {extents, CudnnStrides(extents, false), type, next_++, true});
  }
  Extents Scores() const { return {a_.batch, a_.heads, a_.queries, a_.keys}; }
  Extents Rows() const { return {a_.batch, a_.heads, a_.queries, 1}; }

  absl::Status AddProduct(const CudnnNode& a, const CudnnNode& b,
                          const CudnnNode& c) {
    CudnnNode product = plan_.Make(kMatmul);
    product.Set(kMatmulType, kTypeDataType, kCudnnFloat32);
    PD_RETURN_IF_ERROR(plan_.Keep(product, "a product"));
    CudnnNode operation = plan_.Make(kMatmulOperation);
    operation.SetNode(kMatmulA, a)
        .SetNode(kMatmulB, b)
        .SetNode(kMatmulC, c)
        .SetNode(kOperationMatmul, product);
    return plan_.Add(std::move(operation), "a product's tensors");
  }

  absl::StatusOr<CudnnNode> AddFunction(int mode, const CudnnNode& x,
                                        const CudnnNode* b,
                                        int type = kCudnnFloat32) {
    PD_ASSIGN_OR_RETURN(CudnnNode y, Virtual(Scores(), type));
    CudnnNode function = plan_.Make(kPointwise);
    function.Set(kPointwiseMode, kTypePointwiseMode, mode);
    PD_RETURN_IF_ERROR(plan_.AddPointwise(std::move(function), x, b, y));
    return y;
  }

  absl::StatusOr<CudnnNode> AddReduction(int mode, const CudnnNode& x) {
    PD_ASSIGN_OR_RETURN(CudnnNode y, Virtual(Rows(), kCudnnFloat32));
    CudnnNode reduction = plan_.Make(kReduction);
    reduction.Set(kReductionMode, kTypeReduction, mode)
        .Set(kReductionType, kTypeDataType, kCudnnFloat32);
    PD_RETURN_IF_ERROR(plan_.Keep(reduction, "a reduction"));
    CudnnNode operation = plan_.Make(kReductionOperation);
    operation.SetNode(kReductionX, x)
        .SetNode(kReductionY, y)
        .SetNode(kOperationReduction, reduction);
    PD_RETURN_IF_ERROR(
        plan_.Add(std::move(operation), "a reduction's tensors"));
    return y;
  }

  absl::StatusOr<CudnnNode> AddScores() {
    PD_ASSIGN_OR_RETURN(
        const CudnnNode query,
        InMemory({a_.batch, a_.heads, a_.queries, a_.width}, kQ));
    Extents strides =
        CudnnStrides({a_.batch, a_.heads, a_.keys, a_.width}, false);
    std::swap(strides[2], strides[3]);
    PD_ASSIGN_OR_RETURN(
        const CudnnNode key,
        plan_.Tensor(
            {{a_.batch, a_.heads, a_.width, a_.keys}, strides, type_, kK}));
    PD_ASSIGN_OR_RETURN(const CudnnNode product,
                        Virtual(Scores(), kCudnnFloat32));
    PD_RETURN_IF_ERROR(AddProduct(query, key, product));
    GraphTensor factor = {{1, 1, 1, 1}, {1, 1, 1, 1}, kCudnnFloat32, kScale};
    factor.by_value = true;
    PD_ASSIGN_OR_RETURN(const CudnnNode scale, plan_.Tensor(factor));
    PD_ASSIGN_OR_RETURN(CudnnNode scores,
                        AddFunction(kMultiply, product, &scale));
    if (a_.bias.empty()) return scores;
    PD_ASSIGN_OR_RETURN(const CudnnNode bias, InMemory(a_.bias, kB));
    return AddFunction(kAdd, scores, &bias);
  }

  absl::StatusOr<CudnnNode> AddSoftmax(const CudnnNode& scores) {
    PD_ASSIGN_OR_RETURN(const CudnnNode top, AddReduction(kReduceMax, scores));
    PD_ASSIGN_OR_RETURN(const CudnnNode below,
                        AddFunction(kSubtract, scores, &top));
    PD_ASSIGN_OR_RETURN(const CudnnNode exp, AddFunction(kExp, below, nullptr));
    PD_ASSIGN_OR_RETURN(const CudnnNode sum, AddReduction(kReduceAdd, exp));
    return AddFunction(kDivide, exp, &sum, type_);
  }

  GraphPlan plan_;
  const AttentionGraph a_;
  int type_ = 0;
  int64_t next_;  // name of a virtual tensor
};

}  // namespace

absl::StatusOr<std::shared_ptr<const BoundAttention>> BindAttentionGraph(
    CudaDevice* device, const AttentionGraph& attention) {
  auto bound = std::make_shared<Bound>(device, attention);
  PD_RETURN_IF_ERROR(bound->Prepare());
  return std::shared_ptr<const BoundAttention>(std::move(bound));
}

}  // namespace pd
