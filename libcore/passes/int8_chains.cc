// SPDX-License-Identifier: Apache-2.0
// A quantized program, which PaddlePaddle writes as rounding in floating point
// around ordinary ops, becomes one that computes with integers of 8 bits
// (ops/int8.h says which, to the bit):
//
//   x -> quantize -> dequantize -> conv2d -> + bias -> relu -> quantize -> ...
//   x -> int8_quantize -> int8_conv2d -> ...
//
// Five parts, each a sweep over the program:
//   1 lower     quantizing ops of all forms become int8_quantize (float -> u8)
//               and int8_dequantize (u8 -> float)         (int8_lower.cc)
//   2 move      int8_quantize moves ahead of maxima, reshape, nearest resizing,
//               concat and the like, which commute with it, and int8_dequantize
//               behind split; one right behind an int8_dequantize joins it
//               (int8_joins.cc)
//   3 products  convolutions and products by constant 8-bit weights read u8,
//               and take what follows them: scales, bias, batch norm, residual,
//               activation, int8_quantize                 (int8_products.cc)
//   4 others    the same for sums and products of two u8 tensors, averages, and
//               activations between an int8_dequantize and an int8_quantize
//   5 offsets   a tensor that is no less than 0 is kept as q, not as q + 128:
//               its products then saturate no 16-bit sum
// An op that no part knows stays in floating point, between an int8_dequantize
// and an int8_quantize. Scales and weights must be constant, so
// this is for programs that only infer; others, and programs without quantizing
// ops, stay as they are.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/ir/op_names.h"
#include "libcore/passes/int8_program.h"

namespace pd {
namespace {

// Ops that only move bytes, or repeat and leave out some, with the slots X and
// Out.
bool OnlyMoves(const OpDesc& op) {
  static const auto* const kTypes =
      new std::set<std::string>{"reshape2",   "flatten_contiguous_range",
                                "flatten2",   "squeeze2",
                                "unsqueeze2", "reshape",
                                "transpose2"};
  const bool nearest =
      (op.type == "nearest_interp" || op.type == "nearest_interp_v2") &&
      op.Attr<std::string>("interp_method") == "nearest";
  return nearest || kTypes->count(op.type) > 0;
}

bool IsMaxPool(const OpDesc& op) {
  return op.type == "pool2d" && op.Attr<std::string>("pooling_type") == "max" &&
         op.Attr<std::string>("data_format") != "NHWC";
}

}  // namespace

void CopyAttrs(const OpDesc& from, const std::vector<const char*>& names,
               OpDesc* to) {
  for (const char* name : names)
    if (const Attribute* a = from.FindAttr(name)) to->attrs[name] = *a;
}

const Tensor* Int8Program::Constant(const std::string& name) const {
  const VarDesc* var = graph_->Var(name);
  return var != nullptr && var->persistable && graph_->IsUnwritten(name)
             ? context_.value(name)
             : nullptr;
}

int Int8Program::WriterOf(const std::string& name, const char* type) const {
  const int writer = graph_->OnlyWriter(name);
  return writer != kNone && op(writer).type == type ? writer : kNone;
}

const Shape* Int8Program::ShapeOf(const std::string& name) const {
  const auto it = made_.find(name);
  if (it != made_.end()) return &it->second.shape;
  const VarDesc* var = graph_->Var(name);
  return var != nullptr ? &var->shape : nullptr;
}

std::string Int8Program::NewBytes(const std::string& like) {
  std::string name = absl::StrCat(like, "@int8");
  while (made_.count(name) > 0 || graph_->Var(name) != nullptr) name += "_";
  VarDesc var;
  var.name = name;
  var.dtype = DType::kUInt8;
  var.shape = *ShapeOf(like);
  made_[name] = var;
  MakeBytes(name);
  return name;
}

void Int8Program::DropUnread(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const int writer = graph_->OnlyWriter(name);
    if (writer == kNone || graph_->IsWanted(name) ||
        !graph_->Readers(name).empty())
      continue;
    const OpDesc& from = op(writer);
    if (from.type == "int8_dequantize" || from.type == "dequantize_linear" ||
        from.type == "reshape2") {
      const std::vector<std::string> read = NamesOf(from.inputs);
      graph_->Remove(At(writer));
      DropUnread(read);
    }
  }
}

void Int8Program::Put(int at, OpDesc op, const std::vector<size_t>& others) {
  std::vector<std::string> read = NamesOf(this->op(at).inputs);
  for (const size_t i : others)
    for (const std::string& name : NamesOf(graph_->op(i).inputs))
      read.push_back(name);
  graph_->Replace(At(at), std::move(op), others);
  DropUnread(read);
}

void Int8Program::RenameReads(const std::string& from, const std::string& to) {
  const std::vector<size_t> readers = graph_->Readers(from);
  for (const size_t i : readers) {
    OpDesc reader = graph_->op(i);
    for (auto& [slot, names] : reader.inputs)
      std::replace(names.begin(), names.end(), from, to);
    graph_->Replace(i, std::move(reader), {});
  }
}

// v -> moves -> p -> int8_quantize -> q   to   v -> int8_quantize -> moves -> q
bool Int8Program::MoveOver(size_t at) {
  const OpDesc quantize = graph_->op(at);
  const int from = graph_->OnlyWriter(quantize.In("X"));
  if (from == kNone || OnlyReader(quantize.In("X")) != static_cast<int>(at))
    return false;
  OpDesc moves = op(from);
  const bool pool = IsMaxPool(moves);
  if (!pool && !OnlyMoves(moves)) return false;
  const std::string v = moves.In("X");
  if (OnlyReader(v) != from || ShapeOf(v) == nullptr) return false;
  const std::string bytes = NewBytes(v);
  if (pool) moves.type = "int8_pool2d";
  for (auto& [slot, names] : moves.inputs)
    if (slot == "X") names = {bytes};
  moves.SetOutput("Out", quantize.Output("Out"));
  OpDesc first = quantize;
  first.SetInput("X", {v});
  first.SetOutput("Out", {bytes});
  graph_->Replace(At(from), std::move(first), {});
  graph_->Replace(at, std::move(moves), {});
  return true;
}

// u -> int8_dequantize -> int8_quantize
bool Int8Program::JoinQuantizer(size_t at) {
  OpDesc quantize = graph_->op(at);
  const int from = WriterOf(quantize.In("X"), "int8_dequantize");
  if (from == kNone) return false;
  const OpDesc dequantize = op(from);
  const std::string u = dequantize.In("X"), out = quantize.Out("Out");
  const float scale = dequantize.Attr<float>("x_scale");
  const float factor = quantize.Attr<float>("out_factor");
  const int32_t zero = dequantize.Attr<int32_t>("x_zero");
  const bool same = std::fabs(scale * factor - 1) < 1e-6f &&
                    zero == quantize.Attr<int32_t>("out_zero") &&
                    quantize.Attr<int32_t>("out_low") == 0 &&
                    !graph_->IsWanted(out);
  if (same) {
    RenameReads(out, u);
    graph_->Remove(at);
    DropUnread({dequantize.Out("Out")});
    return true;
  }
  quantize.SetInput("X", {u});
  quantize.attrs["x_scale"] = scale;
  quantize.attrs["x_zero"] = zero;
  Put(static_cast<int>(at), std::move(quantize), {});
  return true;
}

bool Int8Program::MoveQuantizersOnce() {
  bool moved = false;
  for (size_t i = 0; i < graph_->size(); ++i)
    if (!graph_->IsRemoved(i) && graph_->op(i).type == "int8_quantize")
      moved |= MoveOver(i);
  return MoveOverJoins() || moved;
}

void Int8Program::MoveQuantizers() {
  while (MoveQuantizersOnce()) {
  }
  for (size_t i = 0; i < graph_->size(); ++i)
    if (!graph_->IsRemoved(i) && graph_->op(i).type == "int8_quantize")
      JoinQuantizer(i);
}

// Readers of a u8 variable's numbers ("x" or "y"), through ops that only move
// them; false where anything else reads them.
bool Int8Program::CollectReaders(
    const std::string& name,
    std::vector<std::pair<size_t, std::string>>* readers,
    std::vector<size_t>* pools) const {
  if (graph_->IsWanted(name)) return false;
  for (const size_t i : graph_->Readers(name)) {
    const OpDesc& reader = graph_->op(i);
    const bool pool = reader.type == "int8_pool2d" &&
                      reader.Attr<std::string>("pooling_type") == "max";
    if (pool || OnlyMoves(reader)) {
      if (!CollectReaders(reader.Out("Out"), readers, pools)) return false;
      continue;
    }
    if (!absl::StartsWith(reader.type, "int8_")) return false;
    for (const auto& [slot, names] : reader.inputs)
      for (const std::string& read : names)
        if (read == name)
          readers->emplace_back(
              i, slot == "Y" || slot == "ResidualData" ? "y" : "x");
  }
  return true;
}

void Int8Program::DropOffsets() {
  for (size_t i = 0; i < graph_->size(); ++i) {
    if (graph_->IsRemoved(i)) continue;
    OpDesc from = graph_->op(i);
    // Not every op has these attributes.
    const std::string activation = from.AttrOr<std::string>("activation", "");
    const bool positive =
        activation == "relu" || activation == "hard_sigmoid" ||
        (activation == "clip" && from.AttrOr("act_a", -1.0f) >= 0);
    if (!absl::StartsWith(from.type, "int8_") || !positive ||
        from.AttrOr("out_factor", 0.0f) == 0 ||
        from.AttrOr<int32_t>("out_zero", 0) != 128 ||
        from.AttrOr<int32_t>("out_high", 0) != 255)
      continue;
    const std::string out =
        from.Output("Output").empty() ? from.Out("Out") : from.Out("Output");
    std::vector<std::pair<size_t, std::string>> readers;
    std::vector<size_t> pools;
    if (!CollectReaders(out, &readers, &pools)) continue;
    from.attrs["out_zero"] = int32_t{0};
    from.attrs["out_low"] = int32_t{0};
    from.attrs["out_high"] = int32_t{127};
    graph_->Replace(i, std::move(from), {});
    for (const auto& [at, slot] : readers) {
      OpDesc reader = graph_->op(at);
      reader.attrs[slot + "_zero"] = int32_t{0};
      reader.attrs[slot + "_high"] = int32_t{127};
      graph_->Replace(at, std::move(reader), {});
    }
  }
}

void Int8Program::Finish() {
  graph_->Finish();
  BlockDesc& block = program_->global();
  for (VarDesc& var : block.vars)
    if (bytes_.count(var.name) > 0) var.dtype = DType::kUInt8;
  std::set<std::string> named;
  for (const OpDesc& op : block.ops) {
    for (const std::string& name : NamesOf(op.inputs)) named.insert(name);
    for (const std::string& name : NamesOf(op.outputs)) named.insert(name);
  }
  for (const auto& [name, var] : made_)
    if (named.count(name) > 0) block.vars.push_back(var);
}

absl::Status Int8Chains(const PassContext& context, ProgramDesc* program) {
  // While a network is trained, its weights and scales change between runs.
  if (context.value == nullptr || !context.label.empty() ||
      HasGradientOps(*program))
    return absl::OkStatus();
  Int8Program int8(context, program);
  if (!int8.Lower()) return absl::OkStatus();
  int8.MoveQuantizers();
  int8.TakeProducts();
  int8.TakeElementwise();
  int8.DropOffsets();
  int8.Finish();
  return absl::OkStatus();
}

}  // namespace pd
