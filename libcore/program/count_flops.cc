// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/count_flops.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/ir/op_names.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

// How the multiply-adds of an op follow from its shapes.
enum class Family {
  kConv,            // Output elements times the elements of one filter
  kTransposedConv,  // Input elements times the elements of one filter
  kMatmul,          // Out elements times the columns of X
  kMul,             // the same, X taken as a matrix
  kFc,              // Out elements times the rows of W
};

struct Countable {
  const char* type;
  Family family;
};

constexpr Countable kCountables[] = {
    {"conv2d", Family::kConv},
    {"depthwise_conv2d", Family::kConv},
    {"conv3d", Family::kConv},
    {"fused_conv2d", Family::kConv},
    {"conv2d_fusion", Family::kConv},
    {"conv2d_transpose", Family::kTransposedConv},
    {"depthwise_conv2d_transpose", Family::kTransposedConv},
    {"conv3d_transpose", Family::kTransposedConv},
    {"matmul", Family::kMatmul},
    {"matmul_v2", Family::kMatmul},
    {"bmm", Family::kMatmul},
    {"mv", Family::kMatmul},
    {"fused_matmul", Family::kMatmul},
    {"fused_gemm_epilogue", Family::kMatmul},
    {"mul", Family::kMul},
    {"fc", Family::kFc},
    {"fused_fc_elementwise_layernorm", Family::kFc},
};

const Countable* FindCountable(absl::string_view type) {
  for (const Countable& countable : kCountables)
    if (type == countable.type) return &countable;
  return nullptr;
}

// The product of extents of `shape`, times `factor`. Nothing on overflow and
// where an extent is unknown.
std::optional<int64_t> Times(int64_t factor, const Shape& shape,
                             size_t begin = 0, size_t end = SIZE_MAX) {
  for (size_t i = begin; i < std::min(end, shape.size()); ++i)
    if (shape[i] < 0 || __builtin_mul_overflow(factor, shape[i], &factor))
      return std::nullopt;
  return factor;
}

// Gradients of factors, of which each is a product as large as the forward
// one; that of a bias is none.
int64_t GradientsMade(const OpDesc& op) {
  int64_t made = 0;
  for (const auto& [slot, names] : op.outputs)
    for (const char* factor : {"Input@GRAD", "Filter@GRAD", "X@GRAD", "Y@GRAD",
                               "W@GRAD", "DX", "DY"})
      made += slot == factor && !names.empty() && names[0] != kEmptyVar;
  return made;
}

// The shape of the forward output, which the gradient op reads a gradient of.
const Shape* OutputOf(const OpDesc& op, bool gradient,
                      const ShapeOf& shape_of) {
  if (!gradient)
    return shape_of(op.Out(op.Output("Output").empty() ? "Out" : "Output"));
  for (const char* slot : {"Output@GRAD", "Out@GRAD", "DOut"})
    if (!op.Input(slot).empty()) return shape_of(op.In(slot));
  return nullptr;
}

std::optional<int64_t> Flops(const Countable& countable, const OpDesc& op,
                             bool gradient, int64_t factor,
                             const ShapeOf& shape_of) {
  const bool conv = countable.family == Family::kConv ||
                    countable.family == Family::kTransposedConv;
  const bool fc = countable.family == Family::kFc;
  const Shape* x =
      shape_of(op.In(conv || !op.Input("Input").empty() ? "Input" : "X"));
  if (fc && x == nullptr) x = shape_of(op.In("X"));
  const Shape* y = shape_of(op.In(conv ? "Filter" : fc ? "W" : "Y"));
  if (y == nullptr && op.type == "mv") y = shape_of(op.In("Vec"));
  const Shape* out = OutputOf(op, gradient, shape_of);
  if (x == nullptr || y == nullptr || out == nullptr) return std::nullopt;
  const auto outputs =
      Times(factor, countable.family == Family::kTransposedConv ? *x : *out);
  if (!outputs.has_value()) return std::nullopt;
  switch (countable.family) {
    case Family::kConv:
    case Family::kTransposedConv:
      return Times(*outputs, *y, 1);
    case Family::kMatmul: {
      const bool transposed =
          op.AttrOr("trans_x", false) || op.AttrOr("transpose_X", false);
      const size_t rank = x->size();
      if (rank == 0) return std::nullopt;
      const size_t at = rank - (transposed && rank > 1 ? 2 : 1);
      if ((*x)[at] >= 0) return Times(*outputs, *x, at, at + 1);
      // The same extent as Y has it.
      const bool y_transposed =
          op.AttrOr("trans_y", false) || op.AttrOr("transpose_Y", false);
      const size_t y_rank = y->size();
      if (y_rank == 0) return std::nullopt;
      const size_t y_at = y_rank - (y_transposed || y_rank == 1 ? 1 : 2);
      return Times(*outputs, *y, y_at, y_at + 1);
    }
    case Family::kMul:
      return Times(*outputs, *x,
                   static_cast<size_t>(
                       std::max(op.AttrOr<int32_t>("x_num_col_dims", 1), 0)));
    case Family::kFc:
      return Times(*outputs, *y, 0, 1);
  }
  return std::nullopt;
}

class Counter {
 public:
  Counter(const OpRegistry& registry, ProgramDesc program)
      : registry_(registry), program_(std::move(program)) {}

  FlopCount Count() {
    FixInputs();
    count_.total = 0;
    for (size_t b = 0; b < program_.blocks.size(); ++b) {
      block_ = static_cast<int32_t>(b);
      // Inference adds variables to the block, never ops.
      for (const OpDesc& op : program_.blocks[b].ops) {
        Infer(op);
        CountOp(op);
      }
    }
    if (!count_.why_unknown.empty()) count_.total.reset();
    return std::move(count_);
  }

 private:
  static void FixBatch(VarDesc* var) {
    if (!var->shape.empty() && var->shape[0] < 0) var->shape[0] = 1;
  }

  void FixOpenExtents(VarDesc* var) {
    if (!IsDynamic(var->shape)) return;
    for (int64_t& extent : var->shape)
      if (extent < 0) extent = kOpenExtent;
    count_.assumed[var->name] = var->shape;
  }

  // A batch of 1 in what comes from outside: what no op makes, and what `feed`
  // makes.
  void FixInputs() {
    for (BlockDesc& block : program_.blocks) {
      absl::flat_hash_set<absl::string_view> made;
      for (const OpDesc& op : block.ops)
        if (op.type != "feed")
          for (const auto& slot : op.outputs)
            made.insert(slot.second.begin(), slot.second.end());
      for (VarDesc& var : block.vars)
        if (!var.persistable && made.count(var.name) == 0) {
          FixBatch(&var);
          FixOpenExtents(&var);
        }
    }
  }

  // Inference indexes what required slots hold, so those must hold something.
  bool CanInfer(const OpDesc& op) const {
    const OpDef* def = registry_.Find(op.type);
    if (def == nullptr || !def->infers()) return false;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (name == kEmptyVar) {
          const SlotDef* wanted = def->FindInput(slot);
          if (wanted == nullptr || !wanted->optional) return false;
        }
    return true;
  }

  void Infer(const OpDesc& op) {
    if (IsFeedOrFetch(op)) return;
    if (CanInfer(op))
      InferOp(registry_, op, block_, &program_).IgnoreError();  // as declared
    // A first extent that stays open is the batch.
    BlockDesc& block = program_.blocks[static_cast<size_t>(block_)];
    for (const auto& slot : op.outputs)
      for (const std::string& name : slot.second) {
        if (name == kEmptyVar) continue;  // a look for it is a long one
        if (VarDesc* var = block.FindVar(name); var != nullptr) FixBatch(var);
      }
  }

  const Shape* FindShape(const std::string& name) const {
    const VarDesc* var = program_.FindVar(block_, name);
    return var != nullptr ? &var->shape : nullptr;
  }

  void CountOp(const OpDesc& op) {
    if (FindCountable(absl::StripSuffix(op.type, "_grad")) == nullptr) return;
    const auto flops = OpFlops(
        op, [this](const std::string& name) { return FindShape(name); });
    int64_t& of_type = count_.by_type[op.type];
    if (!flops.has_value() ||
        __builtin_add_overflow(*count_.total, *flops, &*count_.total)) {
      if (count_.why_unknown.empty())
        count_.why_unknown =
            absl::StrCat("op '", op.type, "' has ", ShapesOf(op));
      return;
    }
    of_type += *flops;
  }

  std::string ShapesOf(const OpDesc& op) const {
    std::string text;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (const Shape* shape = FindShape(name); shape != nullptr)
          absl::StrAppend(&text, text.empty() ? "" : ", ", slot, " ",
                          ToString(*shape));
    return text.empty() ? "no shapes" : text;
  }

  const OpRegistry& registry_;
  ProgramDesc program_;
  int32_t block_ = 0;
  FlopCount count_;
};

}  // namespace

std::optional<int64_t> OpFlops(const OpDesc& op, const ShapeOf& shape_of) {
  absl::string_view type = op.type;
  const bool gradient = absl::ConsumeSuffix(&type, "_grad");
  const Countable* countable = FindCountable(type);
  if (countable == nullptr) return 0;
  const int64_t factor = gradient ? 2 * GradientsMade(op) : 2;
  return Flops(*countable, op, gradient, factor, shape_of);
}

FlopCount CountFlops(const OpRegistry& registry, ProgramDesc program) {
  return Counter(registry, std::move(program)).Count();
}

}  // namespace pd
