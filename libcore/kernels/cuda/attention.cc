// SPDX-License-Identifier: Apache-2.0
// Attention of halves without gradients: one graph of cuDNN's where it has an
// engine for that, else two products by cuBLASLt and a softmax between them,
// whose scores are halves in memory.
#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/flags.h"
#include "libcore/device/cudnn_attention.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/line_starter.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/fused/attention.h"

namespace pd::cuda {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;

struct Problem {
  Attention a;
  Tensor *query, *key, *value, *bias, *output;
};

absl::StatusOr<Problem> ReadProblem(BindContext* context) {
  Problem p;
  PD_ASSIGN_OR_RETURN(p.a, ReadAttention(*context));
  p.query = context->Input("query"), p.key = context->Input("key");
  p.value = context->Input("value"), p.bias = context->Input("bias");
  p.output = context->Output("output");
  PD_RETURN_IF_ERROR(OneDType({p.query, p.key, p.value, p.bias, p.output},
                              {DType::kFloat16, DType::kBFloat16}));
  if (p.a.Drops()) return Unimplemented("attention that drops elements");
  if (context->Output("logsumexp") != nullptr)
    return Unimplemented("an output 'logsumexp'");
  if (std::min({p.a.Heads(), p.a.queries, p.a.keys, p.a.width, p.a.values}) ==
      0)
    return Unimplemented("there is nothing to multiply");
  return p;
}

absl::StatusOr<Step> BindGraph(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Problem p, ReadProblem(context));
  const Attention& a = p.a;
  if (a.dropout.KeptFactor() != 1)
    return Unimplemented("probabilities that are multiplied");
  AttentionGraph graph;
  graph.batch = a.batch, graph.heads = a.heads;
  graph.queries = a.queries, graph.keys = a.keys;
  graph.width = a.width, graph.values = a.values;
  graph.scale = static_cast<float>(a.scale);
  if (p.bias != nullptr) {
    graph.bias.assign(4 - p.bias->shape().size(), 1);
    graph.bias.insert(graph.bias.end(), p.bias->shape().begin(),
                      p.bias->shape().end());
  }
  graph.dtype = p.query->dtype();
  graph.deterministic = GetFlag<bool>("FLAGS_cudnn_deterministic");
  graph.most_workspace = kMostWorkspace;
  auto bound = BindAttentionGraph(CudaOf(binding), graph);
  // The chain does without the library.
  if (absl::IsUnavailable(bound.status()))
    return Unimplemented("%s", bound.status().message());
  PD_RETURN_IF_ERROR(bound.status());
  const size_t bytes = (*bound)->workspace();
  Tensor* workspace = bytes == 0 ? nullptr : context->Scratch(bytes);
  return Step([=, bound = *std::move(bound)](const RunContext&) {
    return bound->Run({RawOrNull(p.query), RawOrNull(p.key), RawOrNull(p.value),
                       RawOrNull(p.bias), RawOrNull(p.output)},
                      RawOrNull(workspace));
  });
}

// scores += bias
absl::StatusOr<Step> BindBias(DeviceBinding* binding, const Problem& p,
                              Tensor* scores) {
  const Attention& a = p.a;
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<BinaryArgs>::Find(binding, "binary_add"));
  BinaryArgs args{};
  const Shape shape = {a.batch, a.heads, a.queries, a.keys};
  args.n = NumElements(shape);
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  for (size_t d = 0; d < shape.size(); ++d)
    if (!AddExtent<2>(shape[d], {strides[d], a.bias[d]}, &args.walk))
      return TooManyDims();
  return Step([=](const RunContext&) {
    BinaryArgs run = args;
    run.x = {FloatTypeOf(*p.query), scores->raw()};
    run.y = Read<float>(p.bias);
    run.out = Write<float>(scores, p.query);
    return start.Elements(run.n, run);
  });
}

// scores = softmax(scores)
absl::StatusOr<Step> BindAttentionSoftmax(DeviceBinding* binding,
                                          const Problem& p, Tensor* scores) {
  PD_ASSIGN_OR_RETURN(const auto start,
                      LineStarter<float>::Find(binding, "softmax"));
  LinesArgs args{};
  args.lines = p.a.Heads() * p.a.queries;
  args.n = p.a.keys;
  args.inner = 1;
  return Step([=](const RunContext&) {
    LinesArgs run = args;
    run.x = {FloatTypeOf(*p.query), scores->raw()};
    run.out = Write<float>(scores, p.query);
    return start(run);
  });
}

absl::StatusOr<Step> BindChain(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const Problem p, ReadProblem(context));
  const Attention& a = p.a;
  Tensor* const scores =
      context->Scratch(static_cast<size_t>(a.Heads() * a.queries * a.keys) *
                       SizeOf(p.query->dtype()));
  MatrixProduct first;
  first.dtype = p.query->dtype();
  first.batch = a.Heads();
  first.m = a.queries, first.n = a.keys, first.k = a.width;
  first.trans_b = true;
  first.alpha = static_cast<float>(a.scale);
  MatrixProduct second = first;
  second.n = a.values, second.k = a.keys;
  second.trans_b = false;
  second.alpha = static_cast<float>(a.dropout.KeptFactor());
  std::vector<Step> steps(1);
  PD_ASSIGN_OR_RETURN(steps[0], BindProductStep(context, binding, first,
                                                {p.query, p.key, scores}));
  if (p.bias != nullptr) {
    PD_ASSIGN_OR_RETURN(Step bias, BindBias(binding, p, scores));
    steps.push_back(std::move(bias));
  }
  PD_ASSIGN_OR_RETURN(Step softmax, BindAttentionSoftmax(binding, p, scores));
  steps.push_back(std::move(softmax));
  PD_ASSIGN_OR_RETURN(
      Step output,
      BindProductStep(context, binding, second, {scores, p.value, p.output}));
  steps.push_back(std::move(output));
  return InOrder(std::move(steps));
}

}  // namespace

void AddAttention(KernelTable* kernels) {
  kernels->Add("scaled_dot_product_attention", {"cudnn", BindGraph});
  kernels->Add("scaled_dot_product_attention", {"cublaslt", BindChain});
}

}  // namespace pd::cuda
