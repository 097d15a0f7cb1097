// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention: products of queries, keys and values in several heads.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

// A kernel of several axes as a matrix whose first `rows` axes are its rows.
Array MatrixOf(Array kernel, size_t rows) {
  const int64_t first = NumElements(kernel.shape, 0, rows);
  const int64_t rest = NumElements(kernel.shape, rows, kernel.shape.size());
  kernel.shape = {first, rest};
  return kernel;
}

struct Projection {
  const char *kernel, *bias;  // names of weights
  size_t at;                  // the number of the kernel
};

// x [batch, steps, width] as [batch, heads, steps, extent].
std::string Heads(KerasCall* call, KerasTensor* x, const Projection& part,
                  bool biased) {
  LayoutGraph& graph = call->graph();
  const Array& kernel = call->Weight(part.at, 3);
  if (call->ok() && kernel.shape[0] != x->shape.back())
    call->Fail(DataLoss("a kernel of %s for an input of %s",
                        ToString(kernel.shape), ToString(x->shape)));
  if (!call->ok()) return "";
  std::string y = graph.Emit(
      "MatMul",
      {graph.Plain(x), call->Param(part.kernel, MatrixOf(kernel, 1))});
  if (biased) {
    Array bias = call->Weight(part.at + 1, 2);
    bias.shape = {bias.size()};
    y = graph.Emit("Add", {y, call->Param(part.bias, bias)});
  }
  return graph.Transpose(
      graph.Reshape(y, {0, 0, kernel.shape[1], kernel.shape[2]}), {0, 2, 1, 3});
}

// 0 where a step may look, far below where it comes later.
std::string CausalMask(KerasCall* call, int64_t rows, int64_t columns) {
  if (rows < 0 || columns < 0 || rows > kMaxMade || columns > kMaxMade ||
      rows * columns > kMaxMade)
    call->Fail(Unimplemented("a causal mask of %d x %d", rows, columns));
  if (!call->ok()) return "";
  std::vector<float> mask(static_cast<size_t>(rows * columns), 0);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = i + 1; j < columns; ++j)
      mask[static_cast<size_t>(i * columns + j)] = -1e9f;
  return call->graph().Constant(MakeArray<float>({rows, columns}, mask));
}

// Scores of steps that do not count, of queries and of what they look at, are
// far below the others.
std::string Padded(KerasCall* call, const std::string& scores,
                   const KerasTensor& query,
                   std::initializer_list<const KerasTensor*> looked_at) {
  constexpr double kFarBelow = -1e9;
  LayoutGraph& graph = call->graph();
  std::string all = scores;
  std::string before;
  const auto apply = [&](const std::string& mask, const KerasCall::Ints& axes) {
    all = graph.Emit(
        "Where", {graph.Emit("Unsqueeze", {mask, graph.ConstInts(axes)}), all,
                  graph.Scalar(kFarBelow)});
  };
  for (const KerasTensor* x : looked_at)
    if (!x->mask.empty() && x->mask != before) {
      apply(x->mask, {1, 2});
      before = x->mask;
    }
  if (!query.mask.empty()) apply(query.mask, {1, 3});
  return all;
}

void ImportMultiHead(KerasCall* call) {
  KerasTensor* query = &call->In(0);
  KerasTensor* value = call->inputs() > 1 ? &call->In(1) : call->Named("value");
  if (value == nullptr) return call->Fail(InvalidArgument("it has no 'value'"));
  KerasTensor* key = call->inputs() > 2 ? &call->In(2) : call->Named("key");
  if (key == nullptr) key = value;
  const KerasCall::Ints over = call->IntList("attention_axes");
  for (const auto& [name, tensors] : call->arguments().named)
    if (name != "value" && name != "key" && name != "query")
      call->Fail(Unimplemented("argument '%s'", name));
  if (call->Option("return_attention_scores"))
    call->Fail(Unimplemented("return_attention_scores"));
  if (query->rank() != 3 || value->rank() != 3 || key->rank() != 3 ||
      over.size() > 1 || (over.size() == 1 && over[0] != 1) ||
      call->inputs() > 3)
    call->Fail(Unimplemented("queries of %s, values of %s",
                             ToString(query->shape), ToString(value->shape)));
  const bool biased = call->Flag("use_bias", true);
  const size_t each = biased ? 2 : 1;
  call->WantWeights(4 * each);
  const Array& last = call->Weight(3 * each, 3);
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const std::string q =
      Heads(call, query, {"query/kernel", "query/bias", 0}, biased);
  const std::string k =
      Heads(call, key, {"key/kernel", "key/bias", each}, biased);
  const std::string v =
      Heads(call, value, {"value/kernel", "value/bias", 2 * each}, biased);
  if (!call->ok()) return;
  const double width =
      static_cast<double>(std::max<int64_t>(call->Weight(0, 3).shape[2], 1));
  std::string scores = graph.Emit(
      "MatMul", {graph.Emit("Mul", {q, graph.Scalar(1 / std::sqrt(width))}),
                 graph.Transpose(k, {0, 1, 3, 2})});
  if (call->Option("use_causal_mask"))
    scores = graph.Emit(
        "Add", {scores, CausalMask(call, query->shape[1], value->shape[1])});
  scores = Padded(call, scores, *query, {value, key});
  const std::string weights =
      graph.Emit("Softmax", {scores}, {{"axis", OnnxInt(-1)}});
  const std::string mixed =
      graph.Transpose(graph.Emit("MatMul", {weights, v}), {0, 2, 1, 3});
  const Array matrix = MatrixOf(last, 2);
  std::string y =
      graph.Emit("MatMul", {graph.Reshape(mixed, {0, 0, matrix.shape[0]}),
                            call->Param("attention_output/kernel", matrix)});
  if (biased)
    y = graph.Emit("Add", {y, call->Param("attention_output/bias",
                                          call->Weight(4 * each - 1, 1))});
  call->Give(y, {query->shape[0], query->shape[1], matrix.shape[1]});
  call->outputs().back().mask = query->mask;
}

}  // namespace

KerasImportEntries KerasAttentionImports() {
  return {{"MultiHeadAttention", ImportMultiHead}};
}

}  // namespace pd
