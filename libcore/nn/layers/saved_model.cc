// SPDX-License-Identifier: Apache-2.0
// model: the ops of a saved network, put into the job's program one by one, so
// that their shapes are inferred for what the layer reads. In block 0 whatever
// an op makes is a new variable; an op of a sub-block writes variables around
// it under their own names. A loop is built again where the extents of its
// variables change from run to run, with those open (-1).
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/loop.h"
#include "libcore/nn/saved_networks.h"
#include "libcore/program/outer_names.h"
#include "libcore/program/test_mode.h"

namespace pd {
namespace {

// Deeper blocks, and more ops in them than this, loops that are built again
// counted each time, are of a file that nobody has made for use.
constexpr int kMaxBlocksDeep = 32;
constexpr int kMaxInnerOps = 1 << 18;

constexpr int32_t kNoBlock = std::numeric_limits<int32_t>::max();

// The number of the block that `op` runs; null where it runs none. Operators of
// a file may have an attribute of this name and another type.
const BlockRef* BlockOf(const OpDesc& op) {
  const Attribute* block = op.FindAttr("sub_block");
  return block == nullptr ? nullptr : std::get_if<BlockRef>(block);
}

class SavedLayer {
 public:
  SavedLayer(LayerContext* context, const SavedNetwork& network)
      : c_(context), model_(c_->layer().model()), network_(network) {}

  absl::StatusOr<std::string> Build() {
    PD_RETURN_IF_ERROR(ReadInputs());
    for (const VarDesc& var : network_.program.global().vars) {
      if (!var.persistable) continue;
      PD_ASSIGN_OR_RETURN(names_[var.name],
                          c_->Saved(var, network_.params.at(var.name)));
      learns_ |= Learns(names_[var.name]);
    }
    PD_RETURN_IF_ERROR(AppendBlock(0));
    for (size_t i = 0; i < network_.outputs.size(); ++i)
      c_->AddOutput(model_.cut_size() > 0 ? model_.cut(static_cast<int>(i))
                                          : network_.outputs[i],
                    names_.at(network_.outputs[i]));
    return names_.at(network_.outputs[0]);
  }

 private:
  // Which of the saved network's inputs the layer's inputs are.
  absl::Status ReadInputs() {
    std::vector<std::string> feeds(model_.feed().begin(), model_.feed().end());
    for (const std::string& feed : feeds)
      if (std::count(network_.feeds.begin(), network_.feeds.end(), feed) == 0)
        return InvalidArgument("'feed' names '%s'; '%s' needs %s", feed,
                               model_.file(), Inputs());
    if (feeds.empty()) feeds = network_.feeds;
    if (feeds.size() != network_.feeds.size() ||
        feeds.size() != c_->input_count())
      return InvalidArgument(
          "%s names %d inputs%s; '%s' needs %s", c_->Called(),
          c_->input_count(),
          model_.feed_size() > 0
              ? absl::StrCat(" and ", model_.feed_size(), " in 'feed'")
              : "",
          model_.file(), Inputs());
    for (size_t i = 0; i < feeds.size(); ++i) {
      const VarDesc& wanted = *network_.program.global().FindVar(feeds[i]);
      if (c_->dtype(i) != wanted.dtype ||
          (!wanted.shape.empty() && c_->shape(i).size() != wanted.shape.size()))
        return c_->Misfit(
            absl::StrCat(Name(wanted.dtype), ToString(wanted.shape), " for '",
                         feeds[i], "' of '", model_.file(), "', not ",
                         Name(c_->dtype(i))),
            i);
      names_[feeds[i]] = c_->input(i);
      given_.insert(c_->input(i));
    }
    return absl::OkStatus();
  }

  // "'x' float32[-1, 3, 224, 224] and 'size' int64[2]".
  std::string Inputs() const {
    std::vector<std::string> inputs;
    for (const std::string& feed : network_.feeds) {
      const VarDesc& var = *network_.program.global().FindVar(feed);
      inputs.push_back(
          absl::StrCat("'", feed, "' ", Name(var.dtype), ToString(var.shape)));
    }
    return inputs.empty() ? "none" : absl::StrJoin(inputs, " and ");
  }

  bool Learns(const std::string& variable) const {
    const VarDesc* var = c_->main()->FindVar(variable);
    return var != nullptr && var->is_parameter && !var->stop_gradient;
  }

  const BlockDesc& FileBlock() const {
    return network_.program.blocks[static_cast<size_t>(at_)];
  }

  // Whether the op that is appended writes a variable around its block.
  bool IsAround(const std::string& name) const {
    return at_ > 0 && FileBlock().FindVar(name) == nullptr &&
           names_.count(name) > 0;
  }

  // The name of what an op makes. The layer may be built again in one program,
  // as the cell of a recurrence is; its ops may overwrite what they read.
  std::string Made(const std::string& name, const std::string& type) {
    const VarDesc* var = network_.program.FindVar(at_, name);
    // The parent of a damaged block may be another than the one that runs it.
    const auto known = names_.find(name);
    const bool stays =
        var != nullptr &&
        (var->persistable || var->kind == VarKind::kLodTensorArray);
    if (known != names_.end() && (stays || IsAround(name)))
      return known->second;
    return names_[name] = NewName(name, type);
  }

  std::string NewName(const std::string& name, const std::string& type) {
    std::string made = c_->Inner(name);
    if (c_->main()->FindVar(made) != nullptr)
      made = c_->main()->UniqueTemporary(type);
    return made;
  }

  // Replaces a name of the file with the job's. A damaged program may read what
  // nothing makes.
  absl::Status Rename(std::string* name) const {
    if (*name == kEmptyVar) return absl::OkStatus();
    const auto it = names_.find(*name);
    if (it == names_.end())
      return InvalidArgument(
          "'%s': variable '%s' is read, and nothing makes it", model_.file(),
          *name);
    *name = it->second;
    return absl::OkStatus();
  }

  // The ops of a block of the file, and its tensor arrays, which no op creates.
  absl::Status AppendBlock(int32_t block) {
    if (++deep_ > kMaxBlocksDeep)
      return InvalidArgument("'%s': its blocks are more than %d deep",
                             model_.file(), kMaxBlocksDeep);
    const int32_t around = at_;
    at_ = block;
    for (const VarDesc& var : FileBlock().vars) {
      if (block > 0) names_.erase(var.name);
      if (var.kind == VarKind::kLodTensorArray) Declare(var);
    }
    absl::Status status;
    for (const OpDesc& op : FileBlock().ops) {
      if (block > 0 && ++inner_ops_ > kMaxInnerOps)
        status =
            InvalidArgument("'%s': its loops come to more than %d operators",
                            model_.file(), kMaxInnerOps);
      if (status.ok())
        status = BlockOf(op) != nullptr ? AppendLoop(op) : AppendOp(op);
      if (!status.ok()) break;
    }
    at_ = around;
    --deep_;
    return status;
  }

  // A variable as the file declares it, in the current block.
  void Declare(const VarDesc& var) {
    VarDesc made = var;
    made.name = names_[var.name] = NewName(var.name, "array");
    made.need_check_feed = false;
    c_->main()->AddVar(std::move(made));
  }

  absl::Status AppendOp(OpDesc op) {
    PD_RETURN_IF_ERROR(RenameInputs(&op));
    std::vector<std::pair<std::string, std::string>> around;
    for (auto& [slot, names] : op.outputs)
      for (std::string& name : names) {
        if (name == kEmptyVar) continue;
        const bool is_around = IsAround(name);
        name = Made(name, op.type);
        const VarDesc* var = c_->main()->FindVar(name);
        // A counter or an array that an op changes keeps its type.
        if (!is_around || var == nullptr || var->persistable ||
            var->kind != VarKind::kLodTensor || Reads(op, name))
          continue;
        around.emplace_back(c_->main()->UniqueTemporary(op.type), name);
        name = around.back().first;
      }
    for (auto& [attr, value] : op.attrs) {
      if (auto* ref = std::get_if<VarRef>(&value))
        PD_RETURN_IF_ERROR(Rename(&ref->name));
      if (auto* refs = std::get_if<VarRefs>(&value))
        for (std::string& name : refs->names) PD_RETURN_IF_ERROR(Rename(&name));
    }
    DropMarks(&op);
    if (HasTestMode(op)) SetMode(&op);
    const VarDesc* x = c_->main()->FindVar(op.In("X"));
    if (op.type == "assign" && around.size() == 1 && x != nullptr) {
      PD_RETURN_IF_ERROR(Widen(*x, around[0].second));
      op.SetOutput("Out", {around[0].second});
      return Append(std::move(op));
    }
    const OpDesc appended = op;
    PD_RETURN_IF_ERROR(Append(std::move(op)));
    if (appended.type == "select_input") Select(appended);
    for (const auto& [from, to] : around) {
      OpDesc assign;
      assign.type = "assign";
      assign.SetInput("X", {from});
      assign.SetOutput("Out", {to});
      PD_RETURN_IF_ERROR(Widen(*c_->main()->FindVar(from), to));
      PD_RETURN_IF_ERROR(Append(std::move(assign)));
    }
    return absl::OkStatus();
  }

  // The operator's inference leaves all extents open, also the ones that its
  // inputs have in common.
  void Select(const OpDesc& op) {
    VarDesc* out = c_->main()->MutableVar(op.Out("Out"));
    const std::vector<std::string>& inputs = op.Input("X");
    if (out == nullptr || out->persistable || inputs.empty()) return;
    Shape common = c_->ShapeOf(inputs[0]);
    for (const std::string& input : inputs) {
      const Shape& shape = c_->ShapeOf(input);
      if (shape.size() != common.size()) return;
      for (size_t i = 0; i < shape.size(); ++i)
        if (shape[i] != common[i]) common[i] = -1;
    }
    out->shape = common;
  }

  absl::Status RenameInputs(OpDesc* op) const {
    for (auto& [slot, names] : op->inputs)
      for (std::string& name : names) PD_RETURN_IF_ERROR(Rename(&name));
    return absl::OkStatus();
  }

  static bool Reads(const OpDesc& op, const std::string& name) {
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const auto& s) {
      return std::count(s.second.begin(), s.second.end(), name) > 0;
    });
  }

  static void DropMarks(OpDesc* op) {
    for (const char* attr :
         {"op_callstack", "op_device", "op_namescope", "op_role", "op_role_var",
          "skip_eager_deletion_vars"})
      op->attrs.erase(attr);
  }

  absl::Status Append(OpDesc op) {
    const absl::Status status = c_->main()->Append(std::move(op));
    return Annotate(status,
                    absl::StrCat(c_->Described(), ": '", model_.file(), "'"));
  }

  // A variable of a block around the current one, which is given a value like
  // `value`: it gets its shape with the first, and what later ones have
  // otherwise becomes open.
  absl::Status Widen(const VarDesc& value, const std::string& name) {
    ProgramDesc* program = c_->main()->program();
    int32_t block = c_->main()->block_index();
    VarDesc* var = nullptr;
    do {
      block = program->blocks[static_cast<size_t>(block)].parent_idx;
      if (block < 0) return absl::OkStatus();  // a variable of another's
      var = program->blocks[static_cast<size_t>(block)].FindVar(name);
    } while (var == nullptr);
    const Shape shape = value.shape;
    if (unset_.erase(name) > 0) {
      var->dtype = value.dtype;
      var->shape = shape;
      var->kind = value.kind;
      return absl::OkStatus();
    }
    if (var->dtype != value.dtype || var->shape.size() != shape.size())
      return InvalidArgument(
          "'%s': a block gives '%s', %s%s, a value %s%s; it keeps its element "
          "type and rank",
          model_.file(), name, Name(var->dtype), ToString(var->shape),
          Name(value.dtype), ToString(shape));
    for (size_t i = 0; i < shape.size(); ++i) {
      if (var->shape[i] < 0 || var->shape[i] == shape[i]) continue;
      var->shape[i] = -1;
      opened_ = std::min(opened_, block);
    }
    return absl::OkStatus();
  }

  // Variables around the block of `op` that it writes: those that have no value
  // yet are declared, and what other layers read stays as it is.
  absl::Status PrepareWrites(const OpDesc& op) {
    for (const std::string& name : OuterNamesOf(network_.program, op).writes) {
      const VarDesc* var = network_.program.FindVar(at_, name);
      if (var == nullptr || var->kind == VarKind::kStepScopes) continue;
      const auto known = names_.find(name);
      if (known == names_.end()) {
        Declare(*var);
        unset_.insert(names_.at(name));
      } else if (given_.count(known->second) > 0) {
        PD_ASSIGN_OR_RETURN(known->second, c_->Unary("assign", known->second));
      }
    }
    return absl::OkStatus();
  }

  // while and conditional_block, with their block.
  absl::Status AppendLoop(const OpDesc& in_file) {
    const bool loops = in_file.type == "while";
    PD_RETURN_IF_ERROR(PrepareWrites(in_file));
    OpDesc op;
    op.type = loops ? "while" : "conditional_block";
    const char* condition = loops ? "Condition" : "Cond";
    op.SetInput(condition, in_file.Input(condition));
    PD_RETURN_IF_ERROR(RenameInputs(&op));
    if (loops)
      op.attrs["is_test"] = false;
    else
      op.attrs["is_scalar_condition"] =
          in_file.AttrOr<bool>("is_scalar_condition", false);
    PD_ASSIGN_OR_RETURN(const int32_t block,
                        Enter(BlockOf(in_file)->index, loops));
    return AppendBlockOp(std::move(op), block, loops ? "X" : "Input", "Out",
                         loops ? "StepScopes" : "Scope", c_);
  }

  // Builds a block of the file until the variables around it have shapes that
  // hold in all its runs; gives its number.
  absl::StatusOr<int32_t> Enter(int32_t file_block, bool loops) {
    BlockBuilder* main = c_->main();
    const int32_t opened = opened_;
    for (;;) {
      const auto names = names_;
      opened_ = kNoBlock;
      const int32_t block = main->Enter();
      const absl::Status status = AppendBlock(file_block);
      const int32_t changed = opened_;
      names_ = names;
      if (status.ok() && (!loops || changed >= block)) {
        main->Leave();
        opened_ = std::min(opened, changed);
        return block;
      }
      main->Drop();
      PD_RETURN_IF_ERROR(status);
    }
  }

  void SetMode(OpDesc* op) const {
    const bool normalizes = !op->In("Mean").empty();
    bool trains = learns_;
    if (model_.has_train_mode()) {
      trains = model_.train_mode();
    } else if (normalizes && !op->In("Scale").empty()) {
      trains = Learns(op->In("Scale")) || Learns(op->In("Bias"));
    }
    op->attrs["is_test"] = !trains;
    if (!normalizes) return;
    // A network that was saved in its evaluation mode has it.
    if (trains && op->FindAttr("use_global_stats") != nullptr)
      op->attrs["use_global_stats"] = false;
  }

  LayerContext* const c_;
  const job::SavedModel& model_;
  const SavedNetwork& network_;
  std::map<std::string, std::string> names_;  // in the file -> in the job
  std::set<std::string> given_;  // what the layer reads: not to be changed
  std::set<std::string> unset_;  // variables that blocks are to give a shape
  int32_t at_ = 0;               // the file's block that is appended
  int32_t opened_ = kNoBlock;    // the outermost where an extent has changed
  int inner_ops_ = 0, deep_ = 0;
  bool learns_ = false;
};

absl::StatusOr<std::string> BuildSavedModel(LayerContext* c) {
  const SavedNetwork* network = c->Network(c->layer().model());
  if (network == nullptr)
    return InvalidArgument(
        "%s goes on from '%s', which was not opened: a block's argument cannot "
        "say 'file' or 'cut'",
        c->Called(), c->layer().model().file());
  return SavedLayer(c, *network).Build();
}

}  // namespace

void AddSavedModelLayers(LayerTable* table) {
  (*table)[job::Layer::kModel] = {BuildSavedModel, 1, kAnyInputs};
}

}  // namespace pd
