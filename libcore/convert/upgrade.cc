// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/upgrade.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

constexpr int64_t kVersion2 = 2000000;

// Attributes of every op, which say where it comes from and runs.
constexpr const char* kCommonAttrs[] = {"op_callstack", "op_device",
                                        "op_namescope", "op_role",
                                        "op_role_var",  "with_quant_attr"};

// The ops that take the place of those of one block.
class Rewriter {
 public:
  Rewriter(const OpRegistry* registry, ProgramDesc* program, int32_t block)
      : registry_(registry), program_(program), block_(block) {}

  // The op that is being replaced from now on; normalized.
  void Begin(const OpDesc* op) { op_ = op; }

  // The shape that the program declares; empty for a variable without one.
  Shape ShapeOf(const std::string& name) const {
    const VarDesc* var = program_->FindVar(block_, name);
    return var != nullptr ? var->shape : Shape();
  }

  // A new name, for a value between two new ops.
  std::string Temporary(const std::string& of) {
    for (;;) {
      std::string name = absl::StrCat(of, ".upgrade_", made_++);
      if (program_->FindVar(block_, name) == nullptr) return name;
    }
  }

  // Appends an op with every attribute of its schema, and infers its outputs.
  absl::Status Emit(OpDesc op) {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_->Get(op.type));
    if (def->FindOutput("XShape") != nullptr)
      op.SetOutput("XShape", {Temporary(op.In("X"))});
    for (const char* name : kCommonAttrs)
      if (const Attribute* value = op_->FindAttr(name))
        op.attrs.emplace(name, *value);
    PD_RETURN_IF_ERROR(def->Normalize(&op));
    PD_RETURN_IF_ERROR(InferOp(*registry_, op, block_, program_));
    ops_.push_back(std::move(op));
    return absl::OkStatus();
  }

  // Emit for one input "X" and one output "Out".
  absl::Status Unary(const char* type, const std::string& x,
                     const std::string& out,
                     std::map<std::string, Attribute> attrs = {}) {
    OpDesc op;
    op.type = type;
    op.attrs = std::move(attrs);
    op.SetInput("X", {x});
    op.SetOutput("Out", {out});
    return Emit(std::move(op));
  }

  absl::Status Binary(const char* type, const std::string& x,
                      const std::string& y, const std::string& out,
                      std::map<std::string, Attribute> attrs = {}) {
    OpDesc op;
    op.type = type;
    op.attrs = std::move(attrs);
    op.SetInput("X", {x});
    op.SetInput("Y", {y});
    op.SetOutput("Out", {out});
    return Emit(std::move(op));
  }

  void Keep(OpDesc op) { ops_.push_back(std::move(op)); }
  // Takes back the ops that were appended after `count`.
  void Drop(size_t count) { ops_.resize(count); }
  size_t count() const { return ops_.size(); }
  std::vector<OpDesc> Take() { return std::move(ops_); }

 private:
  const OpRegistry* registry_;
  ProgramDesc* program_;
  int32_t block_;
  const OpDesc* op_ = nullptr;
  std::vector<OpDesc> ops_;
  int made_ = 0;
};

// The status of an op that stays, with the reason.
absl::Status Stays(std::string reason) {
  return absl::FailedPreconditionError(std::move(reason));
}

using Renames = std::vector<std::pair<const char*, const char*>>;

// The op with another type, whose slots and attributes have other names too.
OpDesc Retyped(const OpDesc& op, const char* type, const Renames& slots = {},
               const Renames& attrs = {}) {
  OpDesc made = op;
  made.type = type;
  for (const auto& [from, to] : slots)
    for (SlotList* list : {&made.inputs, &made.outputs})
      for (auto& [slot, names] : *list)
        if (slot == from) slot = to;
  for (const auto& [from, to] : attrs) {
    auto node = made.attrs.extract(from);
    if (node.empty()) continue;
    node.key() = to;
    made.attrs.insert(std::move(node));
  }
  return made;
}

absl::Status UpgradeDiag(const OpDesc& op, Rewriter* to) {
  return to->Emit(Retyped(op, "diag_v2", {{"Diagonal", "X"}}));
}
absl::Status UpgradeExpand(const OpDesc& op, Rewriter* to) {
  return to->Emit(Retyped(op, "tile",
                          {{"ExpandTimes", "RepeatTimes"},
                           {"expand_times_tensor", "repeat_times_tensor"}},
                          {{"expand_times", "repeat_times"}}));
}

// The class numbers of lookup_table and one_hot have a last extent of 1, which
// the newer types do not.
absl::StatusOr<std::string> Squeezed(const std::string& ids, Rewriter* to) {
  const Shape shape = to->ShapeOf(ids);
  if (shape.empty() || shape.back() != 1)
    return Stays(absl::StrCat("'", ids, "' is declared with shape ",
                              ToString(shape),
                              "; expected a last extent of 1"));
  std::string name = to->Temporary(ids);
  PD_RETURN_IF_ERROR(
      to->Unary("squeeze2", ids, name, {{"axes", std::vector<int32_t>{-1}}}));
  return name;
}

absl::Status UpgradeLookupTable(const OpDesc& op, Rewriter* to) {
  OpDesc made = Retyped(op, "lookup_table_v2");
  PD_ASSIGN_OR_RETURN(const std::string ids, Squeezed(op.In("Ids"), to));
  made.SetInput("Ids", {ids});
  return to->Emit(std::move(made));
}

absl::Status UpgradeOneHot(const OpDesc& op, Rewriter* to) {
  OpDesc made = Retyped(op, "one_hot_v2");
  PD_ASSIGN_OR_RETURN(const std::string ids, Squeezed(op.In("X"), to));
  made.SetInput("X", {ids});
  return to->Emit(std::move(made));
}

// A vector is a matrix of one row or one column to matmul.
absl::Status UpgradeMatmul(const OpDesc& op, Rewriter* to) {
  if (op.AttrOr<int32_t>("head_number", 1) > 1)
    return Stays("matrices of several heads have no newer operator");
  for (const char* slot : {"X", "Y"})
    if (to->ShapeOf(op.In(slot)).size() < 2)
      return Stays(absl::StrCat("'", op.In(slot), "' is declared with shape ",
                                ToString(to->ShapeOf(op.In(slot))),
                                "; expected a matrix or a stack of them"));
  OpDesc made =
      Retyped(op, "matmul_v2", {},
              {{"transpose_X", "trans_x"}, {"transpose_Y", "trans_y"}});
  const float alpha = op.AttrOr<float>("alpha", 1.0f);
  if (alpha == 1.0f) return to->Emit(std::move(made));
  const std::string product = to->Temporary(op.Out("Out"));
  made.SetOutput("Out", {product});
  PD_RETURN_IF_ERROR(to->Emit(std::move(made)));
  return to->Unary("scale", product, op.Out("Out"), {{"scale", alpha}});
}

// The older types compute from the extents of input and output, the newer ones
// from the factor, where there is one.
absl::Status UpgradeInterp(const OpDesc& op, Rewriter* to) {
  OpDesc made = Retyped(op, "");
  made.type = absl::StrCat(op.type, "_v2");
  const float factor = op.AttrOr<float>("scale", 0.0f);
  const bool sized =
      !op.Input("OutSize").empty() || !op.Input("SizeTensor").empty();
  std::vector<float> scale;
  if (!sized) {
    if (!op.Input("Scale").empty()) return Stays("the factor is a tensor");
    const bool whole = factor == std::floor(factor);
    if (factor > 0 && !whole && !op.AttrOr<bool>("align_corners", true))
      return Stays(absl::StrCat("the factor ", factor, " is no integer"));
    const size_t rank = to->ShapeOf(op.In("X")).size();
    if (rank < 3) return Stays("the rank of 'X' is not declared");
    if (factor > 0) scale.assign(rank - 2, factor);
  }
  made.attrs["scale"] = std::move(scale);
  return to->Emit(std::move(made));
}

// One value for the whole tensor. From 2.5 on, the reduction of all axes has no
// axis, so the shape [1] is made.
absl::Status UpgradeWhole(const OpDesc& op, Rewriter* to) {
  const bool all = op.type == "isfinite";
  const std::string each = to->Temporary(op.Out("Out"));
  const std::string whole = to->Temporary(op.Out("Out"));
  const std::string newer = absl::StrCat(op.type, "_v2");
  PD_RETURN_IF_ERROR(to->Unary(newer.c_str(), op.In("X"), each));
  PD_RETURN_IF_ERROR(to->Unary(all ? "reduce_all" : "reduce_any", each, whole,
                               {{"reduce_all", true}}));
  return to->Unary("reshape2", whole, op.Out("Out"),
                   {{"shape", std::vector<int32_t>{1}}});
}

// expand_as repeats by the quotients of the extents, expand_as_v2 only along
// axes of 1.
absl::Status UpgradeExpandAs(const OpDesc& op, Rewriter* to) {
  const std::string& target = op.In("target_tensor");
  const Shape x = to->ShapeOf(op.In("X")), y = to->ShapeOf(target);
  bool broadcast = x.size() == y.size() && !x.empty(), known = broadcast;
  std::vector<int32_t> times;
  for (size_t i = 0; known && i < x.size(); ++i) {
    broadcast &= x[i] == 1 || (x[i] == y[i] && x[i] > 0);
    known &= x[i] > 0 && y[i] > 0 && y[i] % x[i] == 0;
    times.push_back(known ? static_cast<int32_t>(y[i] / x[i]) : 1);
  }
  if (!broadcast && !known)
    return Stays(absl::StrCat("the repeats are not known: shapes ", ToString(x),
                              " and ", ToString(y)));
  if (!broadcast)
    return to->Unary("tile", op.In("X"), op.Out("Out"),
                     {{"repeat_times", std::move(times)}});
  return to->Binary("expand_as_v2", op.In("X"), target, op.Out("Out"));
}

// sum(x * y) / (|x| |y|) of each row.
absl::Status UpgradeCosSim(const OpDesc& op, Rewriter* to) {
  const std::string& out = op.Out("Out");
  const Shape x = to->ShapeOf(op.In("X"));
  if (x.size() != 2)
    return Stays(absl::StrCat("'", op.In("X"), "' is declared with shape ",
                              ToString(x), "; expected a matrix"));
  const auto reduced = [&](const std::string& from, const std::string& sum) {
    return to->Unary("reduce_sum", from, sum,
                     {{"dim", std::vector<int32_t>{1}}, {"keep_dim", true}});
  };
  std::string norms[2];
  for (const bool of_y : {false, true}) {
    const std::string& of = op.In(of_y ? "Y" : "X");
    std::string& norm = norms[of_y ? 1 : 0];
    norm = op.Out(of_y ? "YNorm" : "XNorm");
    if (norm.empty()) norm = to->Temporary(out);
    const std::string squares = to->Temporary(out), sum = to->Temporary(out);
    PD_RETURN_IF_ERROR(to->Unary("square", of, squares));
    PD_RETURN_IF_ERROR(reduced(squares, sum));
    PD_RETURN_IF_ERROR(to->Unary("sqrt", sum, norm));
  }
  const std::string products = to->Temporary(out), sum = to->Temporary(out),
                    by_x = to->Temporary(out);
  PD_RETURN_IF_ERROR(
      to->Binary("elementwise_mul", op.In("X"), op.In("Y"), products));
  PD_RETURN_IF_ERROR(reduced(products, sum));
  PD_RETURN_IF_ERROR(to->Binary("elementwise_div", sum, norms[0], by_x));
  return to->Binary("elementwise_div", by_x, norms[1], out);
}

absl::Status UpgradeSquaredL2Distance(const OpDesc& op, Rewriter* to) {
  const Shape x = to->ShapeOf(op.In("X"));
  if (x.size() != 2)
    return Stays(absl::StrCat("'", op.In("X"), "' is declared with shape ",
                              ToString(x), "; expected a matrix"));
  const std::string& out = op.Out("Out");
  std::string difference = op.Out("sub_result");
  if (difference.empty()) difference = to->Temporary(out);
  const std::string squares = to->Temporary(out);
  PD_RETURN_IF_ERROR(
      to->Binary("elementwise_sub", op.In("X"), op.In("Y"), difference));
  PD_RETURN_IF_ERROR(to->Unary("square", difference, squares));
  return to->Unary("reduce_sum", squares, out,
                   {{"dim", std::vector<int32_t>{1}}, {"keep_dim", true}});
}

// Y with the extents of X: padded behind.
absl::Status UpgradePadConstantLike(const OpDesc& op, Rewriter* to) {
  const Shape x = to->ShapeOf(op.In("X")), y = to->ShapeOf(op.In("Y"));
  bool known = x.size() == y.size() && !x.empty();
  std::vector<int32_t> paddings;
  for (size_t i = 0; known && i < x.size(); ++i) {
    known = y[i] >= 0 && y[i] <= x[i];
    paddings.push_back(0);
    paddings.push_back(static_cast<int32_t>(x[i] - y[i]));
  }
  if (!known)
    return Stays(absl::StrCat("the padding is not known: shapes ", ToString(x),
                              " and ", ToString(y)));
  return to->Unary("pad", op.In("Y"), op.Out("Out"),
                   {{"paddings", std::move(paddings)},
                    {"pad_value", op.AttrOr<float>("pad_value", 0.0f)}});
}

constexpr const char* kLastOne = "the last extent of the ids is declared as 1";
constexpr const char* kFactor =
    "a size is given, or a factor that is an integer or between aligned "
    "corners";
constexpr const char* kMatrices = "X and Y are declared as matrices";

struct Rule {
  const char* from;
  const char* to;
  const char* condition;
  /// Null: the op gets the type `to`, and all else stays.
  absl::Status (*rewrite)(const OpDesc& op, Rewriter* to);
};

// By name.
constexpr Rule kRules[] = {
    {"bicubic_interp", "bicubic_interp_v2", kFactor, UpgradeInterp},
    {"bilinear_interp", "bilinear_interp_v2", kFactor, UpgradeInterp},
    {"cos_sim",
     "square, reduce_sum, sqrt, elementwise_mul, reduce_sum, elementwise_div",
     "X is declared as a matrix", UpgradeCosSim},
    {"diag", "diag_v2", "", UpgradeDiag},
    {"expand", "tile", "", UpgradeExpand},
    {"expand_as", "expand_as_v2 or tile", "the extents are declared",
     UpgradeExpandAs},
    {"fill_zeros_like", "fill_any_like", "", nullptr},
    {"flatten", "flatten2", "", nullptr},
    {"isfinite", "isfinite_v2, reduce_all, reshape2", "", UpgradeWhole},
    {"isinf", "isinf_v2, reduce_any, reshape2", "", UpgradeWhole},
    {"isnan", "isnan_v2, reduce_any, reshape2", "", UpgradeWhole},
    {"linear_interp", "linear_interp_v2", kFactor, UpgradeInterp},
    {"lookup_table", "squeeze2, lookup_table_v2", kLastOne, UpgradeLookupTable},
    {"matmul", "matmul_v2, and scale for an alpha", kMatrices, UpgradeMatmul},
    {"nearest_interp", "nearest_interp_v2", kFactor, UpgradeInterp},
    {"one_hot", "squeeze2, one_hot_v2", kLastOne, UpgradeOneHot},
    {"pad_constant_like", "pad", "the extents are declared",
     UpgradePadConstantLike},
    {"reshape", "reshape2", "", nullptr},
    {"squared_l2_distance", "elementwise_sub, square, reduce_sum",
     "X is declared as a matrix", UpgradeSquaredL2Distance},
    {"squeeze", "squeeze2", "", nullptr},
    {"top_k", "top_k_v2", "", nullptr},
    {"transpose", "transpose2", "", nullptr},
    {"trilinear_interp", "trilinear_interp_v2", kFactor, UpgradeInterp},
    {"unsqueeze", "unsqueeze2", "", nullptr},
};

const Rule* RuleOf(const std::string& type) {
  for (const Rule& rule : kRules)
    if (type == rule.from) return &rule;
  return nullptr;
}

// Gradients read what the forward ops of their own types have written.
absl::Status CheckNoGradients(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      if (absl::EndsWith(op.type, "_grad") ||
          (op.AttrOr<int32_t>(std::string(kOpRoleAttr), 0) & kRoleBackward) !=
              0)
        return InvalidArgument(
            "the program has '%s', an op of its backward pass; expected one "
            "that was saved for inference, as save_inference_model writes it",
            op.type);
  return absl::OkStatus();
}

class Upgrader {
 public:
  Upgrader(const OpRegistry* registry, ProgramDesc* program)
      : registry_(registry), program_(program) {}

  absl::Status Block(int32_t index) {
    Rewriter to(registry_, program_, index);
    const std::vector<OpDesc> ops =
        std::move(program_->blocks[static_cast<size_t>(index)].ops);
    for (size_t i = 0; i < ops.size(); ++i) {
      const std::string place =
          absl::StrCat("block ", index, ", op ", i, " (", ops[i].type, ")");
      PD_RETURN_IF_ERROR(Annotate(Op(ops[i], place, &to), place));
    }
    program_->blocks[static_cast<size_t>(index)].ops = to.Take();
    return absl::OkStatus();
  }

  UpgradeReport report;

 private:
  absl::Status Op(const OpDesc& op, const std::string& place, Rewriter* to) {
    const Rule* rule = RuleOf(op.type);
    const OpDef* known = registry_->Find(op.type);
    if (rule == nullptr) {
      if (known == nullptr && op.type != "feed" && op.type != "fetch")
        report.kept.push_back(
            absl::StrCat(place, ": no operator of this type is known"));
      to->Keep(op);
      return absl::OkStatus();
    }
    OpDesc normalized = op;
    if (known != nullptr) PD_RETURN_IF_ERROR(known->Normalize(&normalized));
    to->Begin(&normalized);
    const size_t before = to->count();
    const absl::Status status = rule->rewrite != nullptr
                                    ? rule->rewrite(normalized, to)
                                    : to->Emit(Retyped(normalized, rule->to));
    if (status.ok()) {
      ++report.replaced[op.type];
      return status;
    }
    if (!absl::IsFailedPrecondition(status)) return status;
    to->Drop(before);
    to->Keep(op);
    report.kept.push_back(absl::StrCat(place, ": ", status.message()));
    return absl::OkStatus();
  }

  const OpRegistry* registry_;
  ProgramDesc* program_;
};

}  // namespace

std::vector<OpUpgrade> OpUpgrades() {
  std::vector<OpUpgrade> all;
  for (const Rule& rule : kRules)
    all.push_back({rule.from, rule.to, rule.condition});
  return all;
}

absl::StatusOr<UpgradeReport> UpgradeProgram(const OpRegistry& registry,
                                             ProgramDesc* program) {
  PD_RETURN_IF_ERROR(CheckNoGradients(*program));
  program->version = std::max(program->version, kVersion2);
  Upgrader upgrader(&registry, program);
  for (size_t i = 0; i < program->blocks.size(); ++i)
    PD_RETURN_IF_ERROR(upgrader.Block(static_cast<int32_t>(i)));
  return upgrader.report;
}

}  // namespace pd
