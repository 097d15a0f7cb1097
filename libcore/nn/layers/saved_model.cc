// SPDX-License-Identifier: Apache-2.0
// model: the ops of a saved network, put into the job's program one by one, so
// that their shapes are inferred for what the layer reads.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/saved_networks.h"
#include "libcore/program/test_mode.h"

namespace pd {
namespace {

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
    for (const OpDesc& op : network_.program.global().ops)
      PD_RETURN_IF_ERROR(AppendOp(op));
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

  // The name of what an op makes. The layer may be built again in one program,
  // as the cell of a recurrence is; its ops may overwrite what they read.
  std::string Made(const std::string& name, const std::string& type) {
    const VarDesc* var = network_.program.global().FindVar(name);
    if (var != nullptr && var->persistable) return names_.at(name);
    std::string made = c_->Inner(name);
    if (c_->main()->FindVar(made) != nullptr)
      made = c_->main()->UniqueTemporary(type);
    return names_[name] = made;
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

  absl::Status AppendOp(OpDesc op) {
    for (auto& [slot, names] : op.inputs)
      for (std::string& name : names) PD_RETURN_IF_ERROR(Rename(&name));
    for (auto& [slot, names] : op.outputs)
      for (std::string& name : names)
        if (name != kEmptyVar) name = Made(name, op.type);
    for (auto& [attr, value] : op.attrs) {
      if (auto* ref = std::get_if<VarRef>(&value))
        PD_RETURN_IF_ERROR(Rename(&ref->name));
      if (auto* refs = std::get_if<VarRefs>(&value))
        for (std::string& name : refs->names) PD_RETURN_IF_ERROR(Rename(&name));
    }
    for (const char* attr : {"op_callstack", "op_device", "op_namescope",
                             "op_role", "op_role_var"})
      op.attrs.erase(attr);
    if (HasTestMode(op)) SetMode(&op);
    const absl::Status status = c_->main()->Append(std::move(op));
    return Annotate(status,
                    absl::StrCat(c_->Described(), ": '", model_.file(), "'"));
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
