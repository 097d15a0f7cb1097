// SPDX-License-Identifier: Apache-2.0
// Ops that compute each element by itself: functions of one and of two numbers,
// casts, choices.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"

namespace pd {
namespace {

using pd_run::Binary;
using pd_run::Function;

// A function and the attributes that its numbers a, b and c are; "": 0.
struct FunctionRow {
  const char* op_type;
  Function function;
  const char *a = "", *b = "", *c = "";
};

const std::vector<FunctionRow>& FunctionRows() {
  static const auto* rows = new std::vector<FunctionRow>{
      {"abs", Function::kAbs},
      {"brelu", Function::kClamp, "t_min", "t_max"},
      {"ceil", Function::kCeil},
      {"celu", Function::kCelu, "alpha"},
      {"cos", Function::kCos},
      {"elu", Function::kElu, "alpha"},
      {"erf", Function::kErf},
      {"exp", Function::kExp},
      {"floor", Function::kFloor},
      {"hard_shrink", Function::kHardShrink, "threshold"},
      {"hard_sigmoid", Function::kHardSigmoid, "slope", "offset"},
      {"hard_swish", Function::kHardSwish, "threshold", "scale", "offset"},
      {"leaky_relu", Function::kLeakyRelu, "alpha"},
      {"log", Function::kLog},
      {"log10", Function::kLog10},
      {"log1p", Function::kLog1p},
      {"log2", Function::kLog2},
      {"logsigmoid", Function::kLogSigmoid},
      {"mish", Function::kMish, "threshold"},
      {"reciprocal", Function::kReciprocal},
      {"relu", Function::kRelu},
      {"relu6", Function::kClamp, "", "threshold"},
      {"round", Function::kRound},
      {"rsqrt", Function::kRsqrt},
      {"selu", Function::kSelu, "scale", "alpha"},
      {"sigmoid", Function::kSigmoid},
      {"sign", Function::kSign},
      {"silu", Function::kSilu},
      {"sin", Function::kSin},
      {"softplus", Function::kSoftplus, "beta", "threshold"},
      {"softshrink", Function::kSoftShrink, "lambda"},
      {"softsign", Function::kSoftsign},
      {"sqrt", Function::kSqrt},
      {"square", Function::kSquare},
      {"stanh", Function::kStanh, "scale_a", "scale_b"},
      {"swish", Function::kSilu},  // PaddlePaddle does not read its beta
      {"tanh", Function::kTanh},
      {"tanh_shrink", Function::kTanhShrink},
      {"thresholded_relu", Function::kThresholdedRelu, "threshold"},
  };
  return *rows;
}

void LowerFunction(BundleOp* op) {
  op->ExpectFloat("X");
  for (const FunctionRow& row : FunctionRows()) {
    if (op->type() != row.op_type) continue;
    const auto number = [&](const char* name) {
      return *name == '\0' ? 0.0f : static_cast<float>(op->Float(name));
    };
    op->Alias("Out", op->Unary(row.function, op->In("X"), number(row.a),
                               number(row.b), number(row.c)));
  }
}

void LowerGelu(BundleOp* op) {
  op->ExpectFloat("X");
  op->Alias("Out", op->Unary(op->Bool("approximate") ? Function::kGeluTanh
                                                     : Function::kGelu,
                             op->In("X")));
}

void LowerClip(BundleOp* op) {
  op->ExpectFloat("X");
  op->Alias("Out", op->Unary(Function::kClamp, op->In("X"),
                             static_cast<float>(op->Float("min")),
                             static_cast<float>(op->Float("max"))));
}

void LowerPow(BundleOp* op) {
  op->ExpectFloat("X");
  op->Alias("Out", op->Unary(Function::kPow, op->In("X"),
                             static_cast<float>(op->Float("factor"))));
}

void LowerScale(BundleOp* op) {
  const auto scale = static_cast<float>(op->Float("scale"));
  const auto bias = static_cast<float>(op->Float("bias"));
  const bool after = op->Bool("bias_after_scale");
  const uint32_t x = op->In("X");
  const DType dtype = op->TypeOf("X");
  if (dtype == DType::kInt64 || dtype == DType::kInt32) {
    // Integers are scaled by the whole part.
    if (!(std::fabs(scale) < 9e18f && std::fabs(bias) < 9e18f))
      return op->Refuse("its numbers are no integers");
    const auto by = static_cast<int64_t>(scale);
    const auto plus = static_cast<int64_t>(bias);
    const auto product = static_cast<int64_t>(
        static_cast<uint64_t>(by) * static_cast<uint64_t>(after ? 1 : plus));
    return op->Give("Out", "scale", {x}, {by, after ? plus : product});
  }
  op->ExpectFloat("X");
  if (after || bias == 0.0f)
    return op->Alias("Out", op->Unary(Function::kScale, x, scale, bias));
  const uint32_t sum = op->Unary(Function::kScale, x, 1, bias);
  op->Alias("Out", op->Unary(Function::kScale, sum, scale, 0));
}

// In a model that answers, nothing is dropped; the older form scales.
void LowerDropout(BundleOp* op) {
  const uint32_t x = op->In("X");
  if (!op->Bool("is_test")) op->Refuse("it drops elements at random");
  if (op->Str("dropout_implementation") == "upscale_in_train")
    return op->Alias("Out", x);
  const auto kept = static_cast<float>(1.0 - op->Float("dropout_prob"));
  op->Alias("Out", op->Unary(Function::kScale, x, kept, 0));
}

struct BinaryRow {
  const char* op_type;
  Binary operation;
};

const std::vector<BinaryRow>& BinaryRows() {
  static const auto* rows = new std::vector<BinaryRow>{
      {"elementwise_add", Binary::kAdd},
      {"elementwise_div", Binary::kDiv},
      {"elementwise_floordiv", Binary::kFloorDiv},
      {"elementwise_max", Binary::kMax},
      {"elementwise_min", Binary::kMin},
      {"elementwise_mod", Binary::kMod},
      {"elementwise_mul", Binary::kMul},
      {"elementwise_pow", Binary::kPow},
      {"elementwise_sub", Binary::kSub},
      {"equal", Binary::kEqual},
      {"greater_equal", Binary::kGreaterEqual},
      {"greater_than", Binary::kGreater},
      {"less_equal", Binary::kLessEqual},
      {"less_than", Binary::kLess},
      {"logical_and", Binary::kAnd},
      {"logical_or", Binary::kOr},
      {"logical_xor", Binary::kXor},
      {"not_equal", Binary::kNotEqual},
  };
  return *rows;
}

void LowerBinary(BundleOp* op) {
  const DType x = op->TypeOf("X"), y = op->TypeOf("Y");
  if (x != y)
    op->Refuse(absl::StrCat("'X' is ", Name(x), " and 'Y' ", Name(y)));
  const int64_t axis =
      op->desc().FindAttr("axis") == nullptr ? -1 : op->Int("axis");
  for (const BinaryRow& row : BinaryRows()) {
    if (op->type() != row.op_type) continue;
    const bool truth = row.operation >= Binary::kEqual;
    if (!truth && x != DType::kFloat32 && x != DType::kInt64 &&
        x != DType::kInt32)
      op->Refuse(absl::StrCat("it is computed for numbers, not for ", Name(x)));
    if (truth && op->OutType("Out") != DType::kBool)
      op->Refuse("its result is not bool");
    op->Alias("Out",
              op->BinaryOf(row.operation, op->In("X"), op->In("Y"), axis));
  }
}

// x == false.
void LowerNot(BundleOp* op) {
  const uint32_t no = op->Constant(MakeArray({1}, std::vector<uint8_t>{0}));
  const uint32_t x = op->In("X");
  if (op->TypeOf("X") != DType::kBool) op->Refuse("'X' is not bool");
  // Truth is compared as bytes.
  op->Alias("Out", op->BinaryOf(Binary::kEqual, x,
                                op->Cast(no, pd_run::DType::kBool)));
}

void LowerSum(BundleOp* op) {
  const BundleOp::Inputs inputs = op->Ins("X");
  if (inputs.empty()) return op->Refuse("it has no inputs");
  uint32_t sum = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i)
    sum = op->BinaryOf(Binary::kAdd, sum, inputs[i]);
  op->Alias("Out", sum);
}

void LowerPrelu(BundleOp* op) {
  const std::string mode = op->Str("mode");
  op->ExpectFloat("X");
  const Array* alpha = op->Param("Alpha");
  if (alpha == nullptr) return;
  if (op->Str("data_format") != "NCHW") op->Refuse("its channels come last");
  const uint32_t x = op->In("X");
  Array flat = *alpha;
  if (mode == "element") {
    flat.shape = alpha->shape;
  } else {
    flat.shape = {alpha->size()};
  }
  op->Alias("Out", op->BinaryOf(Binary::kPrelu, x, op->Constant(flat),
                                mode == "channel" ? 1 : -1));
}

void LowerCast(BundleOp* op) {
  const auto to = BundleType(op->OutType("Out"));
  op->Fail(to.status());
  op->Fail(BundleType(op->TypeOf("X")).status());
  if (to.ok()) op->Alias("Out", op->Cast(op->In("X"), *to));
}

void LowerWhere(BundleOp* op) {
  op->Give("Out", "where", {op->In("Condition"), op->In("X"), op->In("Y")});
}

void LowerSame(BundleOp* op) { op->Alias("Out", op->In("X")); }

}  // namespace

Lowerings ElementLowerings() {
  Lowerings all = {
      {"assign", LowerSame}, {"cast", LowerCast},
      {"clip", LowerClip},   {"dropout", LowerDropout},
      {"gelu", LowerGelu},   {"logical_not", LowerNot},
      {"pow", LowerPow},     {"prelu", LowerPrelu},
      {"scale", LowerScale}, {"sum", LowerSum},
      {"where", LowerWhere},
  };
  for (const FunctionRow& row : FunctionRows())
    all.push_back({row.op_type, LowerFunction});
  for (const BinaryRow& row : BinaryRows())
    all.push_back({row.op_type, LowerBinary});
  return all;
}

}  // namespace pd
