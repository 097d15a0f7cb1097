// SPDX-License-Identifier: Apache-2.0
// First every op is given a precision, in the order of the program, because a
// gray op follows the ops before it; then casts go where an input is of another
// one. A cast is used again by later ops until its variable is written anew.
#include "libcore/passes/amp.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"

namespace pd {
namespace {

bool IsMixable(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

// Of the norms only the data are halves: statistics, scale and bias are not.
bool KeepsFullInput(const OpDesc& op, const std::string& slot) {
  const bool norm = op.type == "batch_norm" || op.type == "layer_norm" ||
                    op.type == "instance_norm";
  return norm && slot != "X";
}
bool KeepsFullOutput(const OpDesc& op, const std::string& slot) {
  const bool norm = op.type == "batch_norm" || op.type == "layer_norm" ||
                    op.type == "instance_norm" || op.type == "group_norm";
  return norm && slot != "Y";
}

// Slots by name, as PaddlePaddle walks them.
std::vector<std::pair<std::string, std::vector<std::string>>> ByName(
    const SlotList& slots) {
  SlotList sorted = slots;
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return sorted;
}

const char* SuffixOf(DType dtype) {
  if (dtype == DType::kFloat32) return ".cast_fp32";
  return dtype == DType::kBFloat16 ? ".cast_bf16" : ".cast_fp16";
}

class Mixer {
 public:
  Mixer(const AmpSpec& spec, AmpLists lists, ProgramDesc* program)
      : spec_(spec),
        lists_(std::move(lists)),
        program_(program),
        block_(program->global()) {
    for (size_t i = 0; i < block_.vars.size(); ++i)
      index_[block_.vars[i].name] = i;
  }

  void Run();

 private:
  enum class Use { kAsItIs, kFull, kHalf };

  VarDesc* Var(const std::string& name) {
    const auto it = index_.find(name);
    return it == index_.end() ? nullptr : &block_.vars[it->second];
  }
  // A variable that mixed precision may see in another precision.
  VarDesc* MixableVar(const std::string& name) {
    VarDesc* var = Var(name);
    const bool tensor = var != nullptr && (var->kind == VarKind::kLodTensor ||
                                           var->kind == VarKind::kSelectedRows);
    return tensor && IsMixable(var->dtype) ? var : nullptr;
  }

  void FindSeenByBlocks();
  bool IsLeftAlone(const OpDesc& op);
  bool IsKeptFull(const OpDesc& op) const;
  Use UseOf(size_t i);
  Use UseOfGray(size_t i) const;
  void TakeCast(OpDesc* cast);
  void SetOutputs(const OpDesc& op, Use use);
  void SetAttrs(Use use, OpDesc* op) const;
  void CastInputs(Use use, OpDesc* op, std::vector<OpDesc>* ops);
  std::string Cast(const std::string& name, DType to, const OpDesc& reader,
                   std::vector<OpDesc>* casts);

  const AmpSpec& spec_;
  const AmpLists lists_;
  ProgramDesc* program_;
  BlockDesc& block_;
  std::map<std::string, size_t> index_;  // variable -> block_.vars
  std::set<std::string> seen_by_blocks_;
  std::vector<Use> uses_;
  std::map<std::string, std::vector<size_t>> writers_;  // so far
  std::set<std::string> casts_;  // names that hold what they should now
};

void Mixer::FindSeenByBlocks() {
  for (size_t b = 1; b < program_->blocks.size(); ++b)
    for (const OpDesc& op : program_->blocks[b].ops)
      for (const SlotList* slots : {&op.inputs, &op.outputs})
        for (const auto& [slot, names] : *slots)
          seen_by_blocks_.insert(names.begin(), names.end());
}

// An op without floats, or whose attribute says what it makes.
bool Mixer::IsLeftAlone(const OpDesc& op) {
  if (HasBlocks(op)) return true;
  bool has_input = false, has_float = false;
  for (const auto& [slot, names] : op.inputs) {
    for (const std::string& name : names) {
      has_input = true;
      has_float = has_float || Var(name) == nullptr || MixableVar(name);
    }
  }
  if (has_input && !has_float) return true;
  if (op.type == "set_value" || op.FindAttr("in_dtype") != nullptr)
    return false;
  for (const char* attr : {"out_dtype", "dtype"}) {
    const auto dtype = DTypeFromCode(op.AttrOr<int32_t>(attr, -1));
    if (dtype.has_value() && (IsMixable(*dtype) || *dtype == DType::kFloat64))
      return true;
  }
  return false;
}

bool Mixer::IsKeptFull(const OpDesc& op) const {
  if (lists_.black.count(op.type) > 0 || FindsRanges(op.type)) return true;
  for (const SlotList* slots : {&op.inputs, &op.outputs})
    for (const auto& [slot, names] : *slots)
      for (const std::string& name : names)
        if (absl::StrContains(name, "learning_rate") ||
            seen_by_blocks_.count(name) > 0 ||
            spec_.custom_black_varnames.count(name) > 0)
          return true;
  return false;
}

// As the last of its inputs that a full or half op has made; half where none
// is.
Mixer::Use Mixer::UseOfGray(size_t i) const {
  const OpDesc& op = block_.ops[i];
  Use use = Use::kHalf;
  for (const auto& [slot, names] : ByName(op.inputs)) {
    for (const std::string& name : names) {
      const auto writers = writers_.find(name);
      if (writers == writers_.end()) continue;
      const size_t writer = writers->second.back();
      const std::string& type = block_.ops[writer].type;
      if (uses_[writer] == Use::kFull || lists_.black.count(type) > 0)
        use = Use::kFull;
      else if (uses_[writer] == Use::kHalf || lists_.white.count(type) > 0)
        use = Use::kHalf;
    }
  }
  return use;
}

Mixer::Use Mixer::UseOf(size_t i) {
  const OpDesc& op = block_.ops[i];
  if (IsLeftAlone(op)) return Use::kAsItIs;
  if (IsKeptFull(op)) return Use::kFull;
  if (lists_.white.count(op.type) > 0) return Use::kHalf;
  if (op.type == "cast") return Use::kAsItIs;
  if (spec_.level == AmpSpec::Level::kO2) return Use::kHalf;
  return lists_.gray.count(op.type) > 0 ? UseOfGray(i) : Use::kFull;
}

// A cast of the program itself makes what it made and reads what it is given.
void Mixer::TakeCast(OpDesc* cast) {
  if (const VarDesc* in = Var(cast->In("X")))
    cast->attrs["in_dtype"] = static_cast<int32_t>(in->dtype);
}

void Mixer::SetOutputs(const OpDesc& op, Use use) {
  if (use == Use::kAsItIs) return;
  for (const auto& [slot, names] : op.outputs) {
    if (KeepsFullOutput(op, slot)) continue;
    for (const std::string& name : names) {
      VarDesc* var = MixableVar(name);
      // Persistable variables keep their type.
      if (var == nullptr || var->persistable) continue;
      var->dtype = use == Use::kHalf ? spec_.dtype : DType::kFloat32;
    }
  }
}

void Mixer::SetAttrs(Use use, OpDesc* op) const {
  const DType dtype = use == Use::kHalf ? spec_.dtype : DType::kFloat32;
  for (const char* name : {"in_dtype", "out_dtype", "dtype"}) {
    const auto now = DTypeFromCode(op->AttrOr<int32_t>(name, -1));
    if (now.has_value() && IsFloating(*now))
      op->attrs[name] = static_cast<int32_t>(dtype);
  }
  if (use == Use::kHalf) op->attrs["use_mkldnn"] = true;
}

std::string Mixer::Cast(const std::string& name, DType to, const OpDesc& reader,
                        std::vector<OpDesc>* casts) {
  std::string cast_name = absl::StrCat(name, SuffixOf(to));
  const DType from = Var(name)->dtype;
  if (Var(cast_name) == nullptr) {
    VarDesc var = *Var(name);
    var.name = cast_name;
    var.dtype = to;
    var.persistable = var.is_parameter = var.need_check_feed = false;
    var.attrs.clear();
    index_[cast_name] = block_.vars.size();
    block_.vars.push_back(std::move(var));
  }
  if (!casts_.insert(cast_name).second) return cast_name;
  OpDesc op = CastOp(name, from, cast_name, to);
  op.attrs[std::string(kOpRoleAttr)] = RoleOf(reader);
  for (const char* attr : {"op_device", kNameScopeAttr})
    if (const Attribute* value = reader.FindAttr(attr)) op.attrs[attr] = *value;
  // PaddlePaddle puts each before those of the same op that came earlier.
  casts->insert(casts->begin(), std::move(op));
  return cast_name;
}

void Mixer::CastInputs(Use use, OpDesc* op, std::vector<OpDesc>* ops) {
  const DType to = use == Use::kHalf ? spec_.dtype : DType::kFloat32;
  std::map<std::string, std::string> renamed;
  std::set<std::string> written;
  for (const auto& [slot, names] : op->outputs)
    written.insert(names.begin(), names.end());
  std::vector<OpDesc> casts;
  std::set<std::string> slots;
  for (const auto& [slot, names] : ByName(op->inputs)) {
    if (use == Use::kHalf && KeepsFullInput(*op, slot)) continue;
    slots.insert(slot);
    for (const std::string& name : names) {
      const VarDesc* var = MixableVar(name);
      if (var == nullptr || var->dtype == to || renamed.count(name) > 0 ||
          (var->persistable && written.count(name) > 0))
        continue;
      renamed[name] = Cast(name, to, *op, &casts);
    }
  }
  for (auto& [slot, names] : op->inputs) {
    if (slots.count(slot) == 0) continue;
    for (std::string& name : names) {
      const auto it = renamed.find(name);
      if (it != renamed.end()) name = it->second;
    }
  }
  ops->insert(ops->end(), std::make_move_iterator(casts.begin()),
              std::make_move_iterator(casts.end()));
}

void Mixer::Run() {
  FindSeenByBlocks();
  for (size_t i = 0; i < block_.ops.size(); ++i) {
    uses_.push_back(UseOf(i));
    OpDesc& op = block_.ops[i];
    if (op.type == "cast" && uses_[i] == Use::kAsItIs) TakeCast(&op);
    SetOutputs(op, uses_[i]);
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names) writers_[name].push_back(i);
  }
  std::vector<OpDesc> ops;
  for (size_t i = 0; i < block_.ops.size(); ++i) {
    OpDesc op = std::move(block_.ops[i]);
    if (uses_[i] != Use::kAsItIs) {
      CastInputs(uses_[i], &op, &ops);
      SetAttrs(uses_[i], &op);
    }
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names)
        for (const char* suffix : {".cast_fp32", ".cast_bf16", ".cast_fp16"})
          casts_.erase(absl::StrCat(name, suffix));
    ops.push_back(std::move(op));
  }
  block_.ops = std::move(ops);
}

}  // namespace

OpDesc CastOp(const std::string& from, DType from_dtype, const std::string& to,
              DType to_dtype) {
  OpDesc op;
  op.type = "cast";
  op.SetInput("X", {from});
  op.SetOutput("Out", {to});
  op.attrs["in_dtype"] = static_cast<int32_t>(from_dtype);
  op.attrs["out_dtype"] = static_cast<int32_t>(to_dtype);
  op.attrs["use_mkldnn"] = true;
  return op;
}

absl::Status MixPrecision(const OpRegistry& registry, const AmpSpec& spec,
                          ProgramDesc* program) {
  PD_ASSIGN_OR_RETURN(AmpLists lists, ListsFor(spec, registry));
  Mixer(spec, std::move(lists), program).Run();
  return absl::OkStatus();
}

Array RoundedTo(DType dtype, const Array& value) {
  std::byte* bytes = nullptr;
  Array rounded = NewCopy(dtype, value.shape, &bytes);
  const float* from = value.data<float>();
  const auto round = [&](auto* to) {
    using Half = std::remove_pointer_t<decltype(to)>;
    constexpr int64_t kGrain = 32768;  // elements per thread at least
    ParallelFor(value.size(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = Half(from[i]);
    });
  };
  if (dtype == DType::kBFloat16)
    round(reinterpret_cast<BFloat16*>(bytes));
  else
    round(reinterpret_cast<Float16*>(bytes));
  return rounded;
}

void UpcastOutputs(const std::vector<std::string>& names,
                   ProgramDesc* program) {
  BlockDesc& block = program->global();
  for (const std::string& name : names) {
    VarDesc* var = block.FindVar(name);
    if (var == nullptr || var->persistable || var->dtype == DType::kFloat32 ||
        !IsMixable(var->dtype))
      continue;
    VarDesc half = *var;
    half.name = absl::StrCat(name, SuffixOf(half.dtype));
    var->dtype = DType::kFloat32;
    size_t last = block.ops.size();
    for (size_t i = 0; i < block.ops.size(); ++i) {
      for (SlotList* slots : {&block.ops[i].inputs, &block.ops[i].outputs}) {
        for (auto& [slot, variables] : *slots) {
          for (std::string& variable : variables) {
            if (variable != name) continue;
            variable = half.name;
            if (slots == &block.ops[i].outputs) last = i;
          }
        }
      }
    }
    PD_INVARIANT(last < block.ops.size());  // only a written one is made half
    block.ops.insert(block.ops.begin() + static_cast<ptrdiff_t>(last) + 1,
                     CastOp(half.name, half.dtype, name, DType::kFloat32));
    block.vars.push_back(std::move(half));
  }
}

std::vector<ParameterCast> TakeParameterCasts(ProgramDesc* program) {
  BlockDesc& block = program->global();
  std::set<std::string> written;
  for (const BlockDesc& b : program->blocks)
    for (const OpDesc& op : b.ops)
      for (const auto& [slot, names] : op.outputs)
        written.insert(names.begin(), names.end());
  std::vector<ParameterCast> taken;
  const auto is_taken = [&](const OpDesc& op) {
    const VarDesc* from =
        op.type == "cast" ? block.FindVar(op.In("X")) : nullptr;
    if (from == nullptr || !from->persistable || written.count(from->name) > 0)
      return false;
    VarDesc* to = block.FindVar(op.Out("Out"));
    if (to == nullptr || from->dtype != DType::kFloat32 ||
        (to->dtype != DType::kBFloat16 && to->dtype != DType::kFloat16))
      return false;
    to->persistable = true;
    taken.push_back({from->name, to->name, to->dtype});
    return true;
  };
  block.ops.erase(std::remove_if(block.ops.begin(), block.ops.end(), is_taken),
                  block.ops.end());
  return taken;
}

}  // namespace pd
