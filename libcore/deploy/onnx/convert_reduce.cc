// SPDX-License-Identifier: Apache-2.0
// Reductions, arg_max and top_k.
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

std::vector<int64_t> Normalized(OnnxOp* op, std::vector<int64_t> axes) {
  const int64_t rank = op->Rank("X");
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) {
      op->Fail(
          InvalidArgument("axis %d for X of rank %d; it must be in [%d, %d]",
                          axis, rank, -rank, rank - 1));
      return {};
    }
    if (axis < 0) axis += rank;
  }
  return axes;
}

// Gives Out as `y`, in the program's shape where that has the [1] that
// PaddlePaddle before 2.5 made of a scalar.
void GiveReduced(OnnxOp* op, const std::string& y, bool scalar) {
  if (scalar && op->OutVar("Out").shape.size() == 1)
    op->Give("Out", "Reshape", {y, op->ConstInts({1})});
  else
    op->Alias("Out", y);
}

// X reduced over the axes that the attributes name.
void GiveReduction(OnnxOp* op, const std::string& x, const char* onnx_type,
                   const char* dims_attr, const char* keep_attr, DType back) {
  std::vector<int64_t> axes = Normalized(op, op->Ints(dims_attr));
  if (op->Bool("reduce_all")) axes.clear();
  const bool keep = op->Bool(keep_attr);
  const bool all =
      axes.empty() || static_cast<int64_t>(axes.size()) == op->Rank("X");
  std::string y =
      op->Reduce(onnx_type, x, all ? std::vector<int64_t>{} : axes, keep);
  if (back == DType::kBool) y = op->Cast(y, back);
  GiveReduced(op, y, all && !keep);
}

void ConvertReduce(OnnxOp* op) {
  std::string x = op->In("X");
  const DType to = op->OutVar("Out").dtype;
  if (to != op->TypeOf("X")) x = op->Cast(x, to);
  GiveReduction(op, x, op->onnx_type(), "dim", "keep_dim", to);
}

// All and any are the least and the greatest of 0 and 1.
void ConvertReduceBool(OnnxOp* op) {
  GiveReduction(op, op->Cast(op->In("X"), DType::kInt32), op->onnx_type(),
                "dim", "keep_dim", DType::kBool);
}

void ConvertLogSumExp(OnnxOp* op) {
  GiveReduction(op, op->In("X"), "ReduceLogSumExp", "axis", "keepdim",
                op->TypeOf("X"));
}

void ConvertMean(OnnxOp* op) {
  GiveReduced(op, op->Reduce("ReduceMean", op->In("X"), {}, false), true);
}

void ConvertArg(OnnxOp* op) {
  std::string x = op->In("X");
  int64_t axis = op->Int("axis");
  const bool flatten = op->Bool("flatten");
  const bool keep = op->Bool("keepdims");
  if (flatten) {
    x = op->Reshape(x, {-1});
    axis = 0;
  } else if (!Normalized(op, {axis}).empty() && axis < 0) {
    axis += op->Rank("X");
  }
  std::string y =
      op->Emit(op->onnx_type(), {x},
               {{"axis", axis}, {"keepdims", int64_t{keep && !flatten}}});
  const VarDesc& out = op->OutVar("Out");
  if (out.dtype != DType::kInt64) y = op->Cast(y, out.dtype);
  if (flatten && keep)
    y = op->Reshape(
        y, std::vector<int64_t>(static_cast<size_t>(op->Rank("X")), 1));
  GiveReduced(op, y, !keep && (flatten || op->Rank("X") == 1));
}

void ConvertTopK(OnnxOp* op) {
  const bool largest = op->Bool("largest");
  int64_t axis = op->Int("axis");
  if (axis < 0) axis += op->Rank("X");
  const std::string x = op->In("X");
  std::string k;
  if (op->Has("K")) k = op->Reshape(op->Cast(op->In("K"), DType::kInt64), {1});
  OnnxAttrs attrs = {{"axis", axis}};
  if (op->opset() >= 11) {
    attrs.emplace_back("largest", int64_t{largest});
    attrs.emplace_back("sorted", int64_t{op->Bool("sorted")});
  } else if (!largest) {
    op->Fail(Unimplemented("attr 'largest' is false"));
  }
  OnnxValues inputs = {x};
  if (op->opset() >= 10)
    inputs.push_back(k.empty() ? op->ConstInts({op->Int("k")}) : k);
  else if (k.empty())
    attrs.emplace_back("k", op->Int("k"));
  else
    op->Fail(Unimplemented("input 'K' is a tensor"));
  OnnxValues outputs = op->NewOuts("Out");
  for (const std::string& index : op->NewOuts("Indices"))
    outputs.push_back(index);
  op->EmitTo(outputs, "TopK", inputs, attrs);
}

// All elements in order; equal ones keep theirs.
void ConvertArgsort(OnnxOp* op) {
  if (op->opset() < 11) {
    op->Fail(Unimplemented("ONNX's TopK takes the least since opset 11"));
    return;
  }
  const std::string x = op->In("X");
  const std::vector<int64_t> axis = Normalized(op, {op->Int("axis")});
  if (!op->status().ok()) return;
  const std::string count =
      op->Slice(op->Emit("Shape", {x}), {0}, {axis[0]}, {axis[0] + 1});
  OnnxValues outputs = op->NewOuts("Out");
  for (const std::string& index : op->NewOuts("Indices"))
    outputs.push_back(index);
  op->EmitTo(outputs, "TopK", {x, count},
             {{"axis", axis[0]}, {"largest", int64_t{op->Bool("descending")}}});
}

void ConvertCumsum(OnnxOp* op) {
  std::string x = op->In("X");
  int64_t axis = op->Int("axis");
  if (op->Bool("flatten")) {
    x = op->Reshape(x, {-1});
    axis = 0;
  }
  op->Give(
      "Out", "CumSum", {x, op->ConstInt(axis)},
      {{"exclusive", op->Int("exclusive")}, {"reverse", op->Int("reverse")}});
}

// (sum |x|^p)^(1/p) along an axis.
void ConvertPNorm(OnnxOp* op) {
  const double p = op->Float("porder");
  const DType dtype = op->TypeOf("X");
  const bool all = op->Bool("asvector");
  const bool keep = op->Bool("keepdim");
  const auto axes =
      all ? std::vector<int64_t>{} : Normalized(op, {op->Int("axis")});
  const std::string x = op->In("X");
  std::string y;
  if (p == 1 || p == 2) {
    y = op->Reduce(p == 1 ? "ReduceL1" : "ReduceL2", x, axes, keep);
  } else if (std::isinf(p)) {
    y = op->Reduce(p > 0 ? "ReduceMax" : "ReduceMin", op->Emit("Abs", {x}),
                   axes, keep);
  } else if (p == 0) {  // how many are not 0
    const std::string some = op->Cast(op->Cast(x, DType::kBool), dtype);
    y = op->Reduce("ReduceSum", some, axes, keep);
  } else {
    const std::string powers =
        op->Emit("Pow", {op->Emit("Abs", {x}), op->Const(p, dtype)});
    y = op->Emit("Pow", {op->Reduce("ReduceSum", powers, axes, keep),
                         op->Const(1 / p, dtype)});
  }
  GiveReduced(op, y, !keep && (all || op->Rank("X") == 1));
}

}  // namespace

OnnxConverters ReduceConverters() {
  return {
      {"arg_max", ConvertArg, "ArgMax"},
      {"arg_min", ConvertArg, "ArgMin"},
      {"argsort", ConvertArgsort},
      {"cumsum", ConvertCumsum},
      {"frobenius_norm", ConvertReduce, "ReduceL2"},
      {"logsumexp", ConvertLogSumExp},
      {"mean", ConvertMean},
      {"p_norm", ConvertPNorm},
      {"reduce_all", ConvertReduceBool, "ReduceMin"},
      {"reduce_any", ConvertReduceBool, "ReduceMax"},
      {"reduce_max", ConvertReduce, "ReduceMax"},
      {"reduce_mean", ConvertReduce, "ReduceMean"},
      {"reduce_min", ConvertReduce, "ReduceMin"},
      {"reduce_prod", ConvertReduce, "ReduceProd"},
      {"reduce_sum", ConvertReduce, "ReduceSum"},
      {"top_k_v2", ConvertTopK},
  };
}

}  // namespace pd
