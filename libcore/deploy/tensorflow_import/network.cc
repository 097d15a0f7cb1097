// SPDX-License-Identifier: Apache-2.0
// Products, normalizations, reductions and what else networks are made of.
#include <algorithm>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/deploy/tensorflow_import/call.h"

namespace pd {
namespace {

using Attrs = TfCall::Attrs;
using Ints = TfCall::Ints;

void ImportBiasAdd(TfCall* call) {
  const bool first = call->Text("data_format", "NHWC") == "NCHW";
  const std::string bias = call->In(1);
  const int64_t rank = call->Rank(0);
  if (!first && call->IsFirst(0))
    return call->GiveFirst(
        call->Emit("tensorflow:BiasAdd", {call->InFirst(0), bias}), rank);
  call->Give(
      call->Emit(first ? "tensorflow:BiasAdd" : "Add", {call->In(0), bias}),
      rank);
}

void ImportMatrixProduct(TfCall* call) {
  const bool a = call->Bool("transpose_a"), b = call->Bool("transpose_b");
  const std::string x = call->In(0), y = call->In(1);
  if (!a && !b) return call->Give(call->Emit("MatMul", {x, y}), 2);
  call->Give(call->Emit("Gemm", {x, y},
                        {{"transA", OnnxInt(a)}, {"transB", OnnxInt(b)}}),
             2);
}

void ImportBatchProduct(TfCall* call) {
  const bool a = call->Bool("adj_x"), b = call->Bool("adj_y");
  const int64_t rank = std::min(call->Rank(0), call->Rank(1)) < 0
                           ? -1
                           : std::max(call->Rank(0), call->Rank(1));
  call->Give(call->Emit("tensorflow:MatMul", {call->In(0), call->In(1)},
                        {{"adj_x", OnnxInt(a)}, {"adj_y", OnnxInt(b)}}),
             rank);
}

void ImportSumOfProducts(TfCall* call) {
  const std::string equation = call->Text("equation", "");
  TfCall::Names inputs;
  for (size_t i = 0; i < call->InputCount(); ++i) inputs.push_back(call->In(i));
  const size_t arrow = equation.find("->");
  const bool plain = arrow != std::string::npos &&
                     !absl::StrContains(equation, ".") &&
                     !absl::StrContains(equation, " ");
  call->Give(call->Emit("Einsum", inputs, {{"equation", OnnxText(equation)}}),
             plain ? static_cast<int64_t>(equation.size() - arrow - 2) : -1);
}

void ImportSoftmaxes(TfCall* call) {
  const int64_t rank = call->Rank(0);
  if (call->IsFirst(0))
    return call->GiveFirst(call->Emit(call->onnx_type(), {call->InFirst(0)},
                                      {{"axis", OnnxInt(1)}}),
                           rank);
  call->Give(
      call->Emit(call->onnx_type(), {call->In(0)}, {{"axis", OnnxInt(-1)}}),
      rank);
}

// An axis of the form with the channels last in the one with them first.
int64_t AxisOfFirst(int64_t axis, int64_t rank) {
  return axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1;
}

// f(x, axes, keepdims) over the axes that input 1 says, in the form that x
// has.
template <typename Function>
void Reduce(TfCall* call, Function f) {
  const bool keep = call->Bool("keep_dims");
  const int64_t rank = call->Rank(0);
  auto known = call->KnownInts(1);
  if (!call->ok()) return;
  if (!known.has_value() || rank < 0) {
    return call->Give(f(call->In(0), call->InInt64(1), keep), keep ? rank : -1);
  }
  Ints axes = *known;
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return call->Fail(
          InvalidArgument("axis %d of a tensor of %d dimensions", axis, rank));
    if (axis < 0) axis += rank;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  const auto count = static_cast<int64_t>(axes.size());
  const bool whole = count == rank;
  // Batch and channels are left in their order.
  const bool spatial = count == rank - 2 &&
                       std::count(axes.begin(), axes.end(), 0) == 0 &&
                       std::count(axes.begin(), axes.end(), rank - 1) == 0;
  if (!call->IsFirst(0) || !(keep || spatial || whole))
    return call->Give(f(call->In(0), call->ConstInts(axes), keep),
                      keep ? rank : rank - count);
  for (int64_t& axis : axes) axis = AxisOfFirst(axis, rank);
  const std::string y = f(call->InFirst(0), call->ConstInts(axes), keep);
  if (keep)
    call->GiveFirst(y, rank);
  else
    call->Give(y, rank - count);
}

std::string Reduced(TfCall* call, const std::string& x, const std::string& axes,
                    bool keep) {
  return call->Emit(
      call->onnx_type(), {x, axes},
      {{"keepdims", OnnxInt(keep)}, {"noop_with_empty_axes", OnnxInt(1)}});
}

void ImportReduction(TfCall* call) {
  Reduce(call, [&](const std::string& x, const std::string& axes, bool keep) {
    return Reduced(call, x, axes, keep);
  });
}

// The largest and the smallest of 0 and 1.
void ImportTruths(TfCall* call) {
  Reduce(call, [&](const std::string& x, const std::string& axes, bool keep) {
    return call->Cast(Reduced(call, call->Cast(x, DType::kInt32), axes, keep),
                      DType::kBool);
  });
}

void ImportArgument(TfCall* call) {
  const Ints axis = call->NeedInts(1);
  if (!call->ok()) return;
  if (axis.size() != 1)
    return call->Fail(InvalidArgument("%d axes", axis.size()));
  const std::string index =
      call->Emit(call->onnx_type(), {call->In(0)},
                 {{"axis", OnnxInt(axis[0])}, {"keepdims", OnnxInt(0)}});
  const DType dtype = call->Type("output_type", DType::kInt64);
  const int64_t rank = call->Rank(0) < 0 ? -1 : call->Rank(0) - 1;
  call->Give(dtype == DType::kInt64 ? index : call->Cast(index, dtype), rank);
}

void ImportLargest(TfCall* call) {
  const Ints k = call->NeedInts(1);
  if (!call->ok()) return;
  const auto out =
      call->EmitMany("TopK", {call->In(0), call->ConstInts(k)}, 2,
                     {{"sorted", OnnxInt(call->Bool("sorted", true))}});
  const DType dtype = call->Type("index_type", DType::kInt32);
  call->Give(out[0], call->Rank(0), 0);
  call->Give(call->Cast(out[1], dtype), call->Rank(0), 1);
}

void ImportRunningSum(TfCall* call) {
  call->Give(call->Emit("CumSum", {call->In(0), call->In(1)},
                        {{"exclusive", OnnxInt(call->Bool("exclusive"))},
                         {"reverse", OnnxInt(call->Bool("reverse"))}}),
             call->Rank(0));
}

}  // namespace

TfImportEntries TfNetworkImports() {
  return {
      {"All", ImportTruths, "ReduceMin"},
      {"Any", ImportTruths, "ReduceMax"},
      {"ArgMax", ImportArgument, "ArgMax"},
      {"ArgMin", ImportArgument, "ArgMin"},
      {"BatchMatMul", ImportBatchProduct},
      {"BatchMatMulV2", ImportBatchProduct},
      {"BatchMatMulV3", ImportBatchProduct},
      {"BiasAdd", ImportBiasAdd},
      {"Cumsum", ImportRunningSum},
      {"Einsum", ImportSumOfProducts},
      {"LogSoftmax", ImportSoftmaxes, "LogSoftmax"},
      {"MatMul", ImportMatrixProduct},
      {"Max", ImportReduction, "ReduceMax"},
      {"Mean", ImportReduction, "ReduceMean"},
      {"Min", ImportReduction, "ReduceMin"},
      {"Prod", ImportReduction, "ReduceProd"},
      {"Softmax", ImportSoftmaxes, "Softmax"},
      {"Sum", ImportReduction, "ReduceSum"},
      {"TopKV2", ImportLargest},
  };
}

}  // namespace pd
