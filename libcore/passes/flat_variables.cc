// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/flat_variables.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/ops/control_flow/coalesce_tensor.h"

namespace pd {
namespace {

using Names = std::set<std::string>;

constexpr char kCoalesce[] = "coalesce_tensor";
constexpr char kShare[] = "share_data";

// The variables that an op reads and writes, with the blocks that it runs.
struct Touched {
  Names reads, writes;
  bool runs_blocks = false;
};

void AddTouched(const ProgramDesc& program, const OpDesc& op, Touched* touched);

void AddBlock(const ProgramDesc& program, int32_t block, Touched* touched) {
  touched->runs_blocks = true;
  for (const OpDesc& op : program.blocks[static_cast<size_t>(block)].ops)
    AddTouched(program, op, touched);
}

void AddTouched(const ProgramDesc& program, const OpDesc& op,
                Touched* touched) {
  for (const auto& [slot, names] : op.inputs)
    touched->reads.insert(names.begin(), names.end());
  for (const auto& [slot, names] : op.outputs)
    touched->writes.insert(names.begin(), names.end());
  for (const auto& [name, value] : op.attrs) {
    if (const auto* ref = std::get_if<BlockRef>(&value))
      AddBlock(program, ref->index, touched);
    if (const auto* refs = std::get_if<BlockRefs>(&value))
      for (const int32_t block : refs->indices)
        AddBlock(program, block, touched);
  }
}

// The flat variable that an op makes; none where it makes no such thing.
std::optional<FlatVariable> MadeBy(const OpDesc& op,
                                   const ProgramDesc& program) {
  const bool coalesces = op.type == kCoalesce;
  if (!coalesces && op.type != kShare) return std::nullopt;
  FlatVariable flat;
  flat.name = op.Out(coalesces ? "FusedOutput" : "Out");
  flat.aliased = !coalesces;
  const std::vector<std::string>& parts =
      coalesces ? op.Output("Output") : op.Input("X");
  if (flat.name.empty() || parts.empty()) return std::nullopt;
  for (const std::string& name : parts) {
    const VarDesc* var = program.FindVar(0, name);
    if (var == nullptr) return std::nullopt;
    flat.dtype = var->dtype;
    flat.parts.push_back({name, var->shape, flat.size});
    const auto elements = CheckedBytes(var->shape, 1);
    if (flat.size < 0 || !elements.ok())
      flat.size = -1;
    else
      flat.size +=
          coalesces ? CoalescedRoom(op, *elements, var->dtype) : *elements;
  }
  return flat;
}

// A flat variable while the program is walked through.
struct Walked {
  FlatVariable flat;
  bool stale = true;  // a part was written since it was put together
};

class Separation {
 public:
  Separation(std::vector<FlatVariable>* known, ProgramDesc* program)
      : known_(known), program_(program) {
    for (const FlatVariable& flat : *known) walked_.push_back({flat, true});
  }

  absl::Status Run(const std::set<std::string>& fetches) {
    std::vector<OpDesc> ops = std::move(program_->global().ops);
    program_->global().ops.clear();
    for (OpDesc& op : ops) PD_RETURN_IF_ERROR(Take(std::move(op)));
    const int32_t role = kRoleForward;
    for (Walked& w : walked_)
      if (w.stale && fetches.count(w.flat.name) > 0)
        PD_RETURN_IF_ERROR(PutTogether(role, &w));
    return absl::OkStatus();
  }

 private:
  absl::Status Take(OpDesc op) {
    Touched touched;
    AddTouched(*program_, op, &touched);
    const auto role = RoleOf(op);
    for (Walked& w : walked_) {
      if (touched.runs_blocks) PD_RETURN_IF_ERROR(CheckBlocks(touched, w));
      if (w.stale && touched.reads.count(w.flat.name) > 0)
        PD_RETURN_IF_ERROR(PutTogether(role, &w));
    }
    std::optional<FlatVariable> made = MadeBy(op, *program_);
    const std::string maker = made.has_value() ? made->name : "";
    program_->global().ops.push_back(std::move(op));
    for (size_t i = 0; i < walked_.size(); ++i) {
      Walked& w = walked_[i];
      if (w.flat.name == maker) continue;
      if (touched.writes.count(w.flat.name) > 0) {
        PD_RETURN_IF_ERROR(TakeApart(role, &w));
        // Parts that two flat variables share were written in both.
        for (Walked& other : walked_)
          if (&other != &w && Overlap(other.flat, w.flat)) other.stale = true;
      }
      for (const FlatVariable::Part& part : w.flat.parts)
        w.stale |= touched.writes.count(part.name) > 0;
    }
    if (made.has_value()) Add(*std::move(made));
    return absl::OkStatus();
  }

  static bool Overlap(const FlatVariable& a, const FlatVariable& b) {
    return std::any_of(a.parts.begin(), a.parts.end(),
                       [&](const auto& part) { return HasPart(b, part.name); });
  }

  void Add(FlatVariable flat) {
    AddFlatVariable(flat, known_);
    // As in `known`, with what is known of their state.
    std::vector<Walked> now;
    for (const FlatVariable& f : *known_) {
      bool stale = true;
      for (const Walked& w : walked_)
        if (w.flat.name == f.name) stale = w.stale;
      now.push_back({f, f.name == flat.name ? false : stale});
    }
    walked_ = std::move(now);
  }

  static absl::Status CheckBlocks(const Touched& touched, const Walked& w) {
    const bool writes_flat = touched.writes.count(w.flat.name) > 0;
    const bool reads_flat = touched.reads.count(w.flat.name) > 0;
    for (const FlatVariable::Part& part : w.flat.parts)
      if ((writes_flat && touched.reads.count(part.name) > 0) ||
          (reads_flat && touched.writes.count(part.name) > 0))
        return Unimplemented(
            "a sub-block uses '%s' and '%s', which share memory, and writes "
            "one of them",
            w.flat.name, part.name);
    return absl::OkStatus();
  }

  static absl::Status ExpectKnown(const FlatVariable& flat) {
    if (flat.size < 0 || flat.size > std::numeric_limits<int32_t>::max())
      return Unimplemented(
          "'%s' shares memory with '%s' and %d others, of which one was "
          "written; their shapes must be known, and below 2^31 elements",
          flat.name, flat.parts[0].name, flat.parts.size() - 1);
    return absl::OkStatus();
  }

  OpDesc NewOp(const char* type, int32_t role) {
    OpDesc op;
    op.type = type;
    op.attrs[std::string(kOpRoleAttr)] = role;
    return op;
  }

  std::string NewVar(const FlatVariable& flat, Shape shape) {
    VarDesc var;
    do {
      var.name = absl::StrCat(flat.name, "@part_", number_++);
    } while (program_->FindVar(0, var.name) != nullptr);
    var.dtype = flat.dtype;
    var.shape = std::move(shape);
    program_->global().vars.push_back(var);
    return var.name;
  }

  void Declare(const FlatVariable& flat, const std::string& name,
               const Shape& shape) {
    if (program_->FindVar(0, name) != nullptr) return;
    VarDesc var;
    var.name = name;
    var.dtype = flat.dtype;
    var.shape = shape;
    var.persistable = true;  // another program made it
    program_->global().vars.push_back(std::move(var));
  }

  absl::Status PutTogether(int32_t role, Walked* w) {
    const FlatVariable& flat = w->flat;
    w->stale = false;
    for (const FlatVariable::Part& part : flat.parts)
      Declare(flat, part.name, part.shape);
    if (flat.aliased) {
      OpDesc copy = NewOp("assign", role);
      copy.SetInput("X", {flat.parts[0].name});
      copy.SetOutput("Out", {flat.name});
      program_->global().ops.push_back(std::move(copy));
      return absl::OkStatus();
    }
    PD_RETURN_IF_ERROR(ExpectKnown(flat));
    // Elements between parts belong to the flat variable alone.
    std::vector<std::string> pieces;
    int64_t at = 0;
    for (const FlatVariable::Part& part : flat.parts) {
      if (part.begin > at) pieces.push_back(Slice(flat, at, part.begin, role));
      PD_ASSIGN_OR_RETURN(const int64_t elements, CheckedBytes(part.shape, 1));
      pieces.push_back(Reshaped(flat, part.name, {elements}, role, ""));
      at = part.begin + elements;
    }
    if (flat.size > at) pieces.push_back(Slice(flat, at, flat.size, role));
    OpDesc concat = NewOp("concat", role);
    concat.SetInput("X", std::move(pieces));
    concat.SetOutput("Out", {flat.name});
    concat.attrs["axis"] = int32_t{0};
    program_->global().ops.push_back(std::move(concat));
    return absl::OkStatus();
  }

  absl::Status TakeApart(int32_t role, Walked* w) {
    const FlatVariable& flat = w->flat;
    w->stale = false;
    for (const FlatVariable::Part& part : flat.parts)
      Declare(flat, part.name, part.shape);
    if (flat.aliased) {
      OpDesc copy = NewOp("assign", role);
      copy.SetInput("X", {flat.name});
      copy.SetOutput("Out", {flat.parts[0].name});
      program_->global().ops.push_back(std::move(copy));
      return absl::OkStatus();
    }
    PD_RETURN_IF_ERROR(ExpectKnown(flat));
    for (const FlatVariable::Part& part : flat.parts) {
      PD_ASSIGN_OR_RETURN(const int64_t elements, CheckedBytes(part.shape, 1));
      const std::string piece =
          Slice(flat, part.begin, part.begin + elements, role);
      Reshaped(flat, piece, part.shape, role, part.name);
    }
    return absl::OkStatus();
  }

  // Appends elements [begin, end) of the flat variable in a new one.
  std::string Slice(const FlatVariable& flat, int64_t begin, int64_t end,
                    int32_t role) {
    OpDesc slice = NewOp("slice", role);
    slice.SetInput("Input", {flat.name});
    const std::string out = NewVar(flat, {end - begin});
    slice.SetOutput("Out", {out});
    slice.attrs["axes"] = std::vector<int32_t>{0};
    slice.attrs["starts"] = std::vector<int32_t>{static_cast<int32_t>(begin)};
    slice.attrs["ends"] = std::vector<int32_t>{static_cast<int32_t>(end)};
    program_->global().ops.push_back(std::move(slice));
    return out;
  }

  // Appends x in another shape; `out` "": a new variable.
  std::string Reshaped(const FlatVariable& flat, const std::string& x,
                       const Shape& shape, int32_t role, std::string out) {
    OpDesc reshape = NewOp("reshape2", role);
    if (out.empty()) out = NewVar(flat, shape);
    reshape.SetInput("X", {x});
    reshape.SetOutput("Out", {out});
    reshape.SetOutput("XShape", {NewVar(flat, {})});
    reshape.attrs["shape"] = std::vector<int32_t>(shape.begin(), shape.end());
    program_->global().ops.push_back(std::move(reshape));
    return out;
  }

  std::vector<FlatVariable>* known_;
  ProgramDesc* program_;
  std::vector<Walked> walked_;
  int number_ = 0;
};

// paddle.nn names what a layer makes after it: "gru_0.tmp_1", "gru_0.w_0".
std::string FlatWeightOf(const OpDesc& rnn) {
  const std::string& out = rnn.Out("Out");
  const size_t dot = out.find(".tmp_");
  return dot == std::string::npos ? ""
                                  : absl::StrCat(out.substr(0, dot), ".w_0");
}

}  // namespace

bool HasPart(const FlatVariable& flat, const std::string& variable) {
  return std::any_of(
      flat.parts.begin(), flat.parts.end(),
      [&](const FlatVariable::Part& part) { return part.name == variable; });
}

void AddFlatVariable(FlatVariable flat, std::vector<FlatVariable>* known) {
  const auto gone = [&flat](const FlatVariable& old) {
    if (old.name == flat.name) return true;
    return !flat.aliased && std::any_of(old.parts.begin(), old.parts.end(),
                                        [&](const FlatVariable::Part& part) {
                                          return HasPart(flat, part.name);
                                        });
  };
  known->erase(std::remove_if(known->begin(), known->end(), gone),
               known->end());
  known->push_back(std::move(flat));
}

absl::Status SeparateFlatVariables(const std::set<std::string>& fetches,
                                   std::vector<FlatVariable>* known,
                                   ProgramDesc* program) {
  const auto& ops = program->global().ops;
  const bool makes = std::any_of(ops.begin(), ops.end(), [](const OpDesc& op) {
    return op.type == kCoalesce || op.type == kShare;
  });
  if (known->empty() && !makes) return absl::OkStatus();
  return Separation(known, program).Run(fetches);
}

std::vector<FlatVariable> FlatWeightsOfRnn(const ProgramDesc& program) {
  std::vector<FlatVariable> found;
  Touched touched;
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops) AddTouched(program, op, &touched);
  for (const BlockDesc& block : program.blocks) {
    for (const OpDesc& op : block.ops) {
      if (op.type != "rnn") continue;
      FlatVariable flat;
      flat.name = FlatWeightOf(op);
      const VarDesc* var = program.FindVar(0, flat.name);
      if (var == nullptr || !var->is_parameter ||
          touched.reads.count(flat.name) > 0 ||
          touched.writes.count(flat.name) > 0)
        continue;
      flat.dtype = var->dtype;
      for (const std::string& name : op.Input("WeightList")) {
        const VarDesc* weight = program.FindVar(0, name);
        if (weight == nullptr || weight->dtype != var->dtype) break;
        const auto elements = CheckedBytes(weight->shape, 1);
        if (!elements.ok()) break;
        flat.parts.push_back({name, weight->shape, flat.size});
        flat.size += *elements;
      }
      if (flat.parts.size() == op.Input("WeightList").size() &&
          var->shape == Shape{flat.size})
        AddFlatVariable(std::move(flat), &found);
    }
  }
  return found;
}

}  // namespace pd
