// SPDX-License-Identifier: Apache-2.0
// Ops that make one number of many: sums, extrema and where these are; sums so
// far.
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"

namespace pd {
namespace {

using pd_run::Function;
using pd_run::Reduction;

Reduction ReductionOf(const std::string& word) {
  if (word == "mean") return Reduction::kMean;
  if (word == "max") return Reduction::kMax;
  if (word == "min") return Reduction::kMin;
  if (word == "prod") return Reduction::kProd;
  return Reduction::kSum;
}

void LowerReduce(BundleOp* op) {
  uint32_t x = op->In("X");
  const DType from = op->TypeOf("X"), to = op->OutType("Out");
  // A sum of bools is one of integers.
  if (from != to || from == DType::kBool) {
    const auto type = BundleType(to);
    op->Fail(type.status());
    if (type.ok()) x = op->Cast(x, *type);
  }
  if (to != DType::kFloat32 && to != DType::kInt64 && to != DType::kInt32)
    op->Refuse("it is computed for numbers");
  BundleOp::Ints axes = op->IntsOf("dim");
  const size_t rank = op->ShapeOf("X").size();
  if (op->Bool("reduce_all") || axes.size() >= rank) axes.clear();
  const bool keep = op->Bool("keep_dim");
  BundleOp::Ints ints = {static_cast<int64_t>(ReductionOf(op->word())), keep};
  ints.insert(ints.end(), axes.begin(), axes.end());
  op->AliasScalar("Out", op->Emit("reduce", {x}, std::move(ints)),
                  axes.empty() && !keep);
}

void LowerMean(BundleOp* op) {
  op->ExpectFloat("X");
  op->AliasScalar("Out",
                  op->Emit("reduce", {op->In("X")},
                           {static_cast<int64_t>(Reduction::kMean), 0}),
                  true);
}

void LowerArg(BundleOp* op) {
  const auto type = BundleType(op->OutType("Out"));
  op->Fail(type.status());
  if (!type.ok()) return;
  const bool flatten = op->Bool("flatten"), keep = op->Bool("keepdims");
  const DType from = op->TypeOf("X");
  if (from != DType::kFloat32 && from != DType::kInt64 && from != DType::kInt32)
    op->Refuse("it is computed for numbers");
  if (flatten && keep) op->Refuse("it flattens and keeps dimensions");
  op->AliasScalar("Out",
                  op->Emit("arg", {op->In("X")},
                           {op->type() == "arg_min", op->Int("axis"), keep,
                            flatten, static_cast<int64_t>(*type)}),
                  !keep && (flatten || op->ShapeOf("X").size() == 1));
}

void LowerCumsum(BundleOp* op) {
  op->Give("Out", "cumsum", {op->In("X")},
           {op->Int("axis"), op->Bool("flatten"), op->Bool("exclusive"),
            op->Bool("reverse")});
}

// The norm of order p along an axis, or of all elements.
void LowerPNorm(BundleOp* op) {
  op->ExpectFloat("X");
  const auto order = static_cast<float>(op->Float("porder"));
  const bool all = op->Bool("asvector"), keep = op->Bool("keepdim");
  if (!(order > 0)) op->Refuse("its order is not above 0");
  const bool largest = std::isinf(order), squares = order == 2.0f;
  uint32_t y = op->In("X");
  if (!squares) y = op->Unary(Function::kAbs, y);
  if (!largest)
    y = squares ? op->Unary(Function::kSquare, y)
                : op->Unary(Function::kPow, y, order);
  BundleOp::Ints ints = {
      static_cast<int64_t>(largest ? Reduction::kMax : Reduction::kSum), keep};
  if (!all) ints.push_back(op->Int("axis"));
  y = op->Emit("reduce", {y}, std::move(ints));
  if (!largest)
    y = squares ? op->Unary(Function::kSqrt, y)
                : op->Unary(Function::kPow, y, 1.0f / order);
  op->AliasScalar("Out", y, !keep && (all || op->ShapeOf("X").size() == 1));
}

// Row i is 1 before place x[i], and 0 from there on.
void LowerSequenceMask(BundleOp* op) {
  const int64_t length = op->Int("maxlen");
  const auto type = BundleType(op->OutType("Y"));
  op->Fail(type.status());
  if (!type.ok()) return;
  constexpr int64_t kMost = int64_t{1} << 24;
  if (op->Has("MaxLenTensor") || length < 1)
    return op->Refuse("its length is not known");
  if (length > kMost)
    return op->Refuse(absl::StrCat("attr 'maxlen' is ", length,
                                   "; expected at most ", kMost));
  std::vector<int64_t> places(static_cast<size_t>(length));
  std::iota(places.begin(), places.end(), 0);
  const uint32_t ends =
      op->Reshape(pd_run::ReshapeMode::kUnsqueeze,
                  op->Cast(op->In("X"), pd_run::DType::kInt64), {-1});
  op->Alias("Y",
            op->Cast(op->BinaryOf(pd_run::Binary::kGreater, ends,
                                  op->Constant(MakeArray({length}, places))),
                     *type));
}

}  // namespace

Lowerings ReduceLowerings() {
  return {
      {"arg_max", LowerArg},
      {"arg_min", LowerArg},
      {"cumsum", LowerCumsum},
      {"mean", LowerMean},
      {"p_norm", LowerPNorm},
      {"reduce_amax", LowerReduce, "max"},
      {"reduce_amin", LowerReduce, "min"},
      {"reduce_max", LowerReduce, "max"},
      {"reduce_mean", LowerReduce, "mean"},
      {"reduce_min", LowerReduce, "min"},
      {"reduce_prod", LowerReduce, "prod"},
      {"reduce_sum", LowerReduce, "sum"},
      {"sequence_mask", LowerSequenceMask},
  };
}

}  // namespace pd
