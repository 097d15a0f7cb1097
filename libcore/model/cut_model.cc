// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/cut_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/model/model_files.h"
#include "libcore/model/widen_halves.h"
#include "libcore/program/match_params.h"
#include "libcore/program/outer_names.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

using Names = std::set<std::string>;

// How many candidates an error lists.
constexpr size_t kMostCandidates = 6;

// Calls `see` for every variable of a list of slots.
template <typename See>
void EachName(const SlotList& slots, const See& see) {
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) see(name);
}

// A network that is looked through for cuts.
class Network {
 public:
  Network(const ProgramDesc& program, const std::vector<std::string>& fetches)
      : program_(program),
        block_(program.global()),
        read_(fetches.begin(), fetches.end()) {
    for (const OpDesc& op : block_.ops) {
      for (const std::string& name : OuterNamesOf(program, op).reads)
        read_.insert(name);
      EachName(op.outputs, [&](const std::string& name) {
        if (IsValue(name) && made_.insert(name).second) order_.push_back(name);
      });
    }
  }

  bool Makes(const std::string& name) const { return made_.count(name) > 0; }

  // Tensors that are read before an op has made them.
  std::vector<std::string> Unmade() const {
    std::vector<std::string> unmade;
    Names known;
    for (const OpDesc& op : block_.ops) {
      for (const std::string& name : OuterNamesOf(program_, op).reads)
        if (IsValue(name) && IsTensor(name) && known.insert(name).second)
          unmade.push_back(name);
      EachName(op.outputs,
               [&](const std::string& name) { known.insert(name); });
    }
    return unmade;
  }

  absl::StatusOr<std::string> Find(const std::string& cut) const {
    if (Makes(cut)) return cut;
    const std::string layer = ResultOf(cut);
    if (!layer.empty()) return layer;
    const VarDesc* var = block_.FindVar(cut);
    if (var != nullptr)
      return InvalidArgument(
          "'%s' is %s, which no operator computes; it has %s", cut,
          var->persistable ? "a parameter" : "an input", Candidates());
    std::vector<std::string> known = order_;
    for (const OpDesc& op : block_.ops) known.push_back(LayerOf(op));
    const std::string nearest = Nearest(cut, known);
    return InvalidArgument(
        "there is no variable or layer '%s'%s; it has %s", cut,
        nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"),
        Candidates());
  }

 private:
  bool IsValue(const std::string& name) const {
    const VarDesc* var = block_.FindVar(name);
    return var == nullptr || !var->persistable;
  }

  bool IsTensor(const std::string& name) const {
    const VarDesc* var = block_.FindVar(name);
    return var == nullptr || var->kind == VarKind::kLodTensor;
  }

  // "stage1.conv1" of an op that a job's layer made; "" of others.
  static std::string LayerOf(const OpDesc& op) {
    const std::string scope = NameScopeOf(op);
    if (scope.size() < 3) return "";
    return absl::StrReplaceAll(scope.substr(1, scope.size() - 2), {{"/", "."}});
  }

  // The last variable that the layer makes and that is more than a help for
  // gradients; "" where there is no such layer.
  std::string ResultOf(const std::string& layer) const {
    const std::string wanted = absl::StrReplaceAll(layer, {{"/", "."}});
    std::string result;
    for (const OpDesc& op : block_.ops) {
      if (wanted.empty() || LayerOf(op) != wanted) continue;
      bool first = true;
      EachName(op.outputs, [&](const std::string& name) {
        if (Makes(name) && (first || read_.count(name) > 0)) result = name;
        first = false;
      });
    }
    return result;
  }

  // The last values that are read: "..., 'flatten_0.tmp_0' [-1, 1280]".
  std::string Candidates() const {
    std::vector<std::string> shown;
    for (size_t i = order_.size(); i-- > 0 && shown.size() < kMostCandidates;) {
      if (read_.count(order_[i]) == 0) continue;
      const VarDesc* var = block_.FindVar(order_[i]);
      shown.push_back(
          absl::StrCat("'", order_[i], "'",
                       var == nullptr ? "" : " " + ToString(var->shape)));
    }
    std::reverse(shown.begin(), shown.end());
    return shown.empty()
               ? "no values"
               : absl::StrCat(order_.size() > shown.size() ? "..., " : "",
                              absl::StrJoin(shown, ", "));
  }

  const ProgramDesc& program_;
  const BlockDesc& block_;
  Names read_, made_;
  std::vector<std::string> order_;  // what ops make, in their order
};

// The operators whose blocks a layer can run.
bool RunsOneBlock(const OpDesc& op) {
  return op.type == "while" || op.type == "conditional_block" ||
         op.type == "conditional_block_infer";
}

// Each block is run by one operator: what is made of a program by walking its
// blocks is not larger than the file.
absl::Status CheckBlocks(const ProgramDesc& program) {
  std::set<int32_t> run;
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      for (const auto& [name, value] : op.attrs) {
        std::vector<int32_t> indices;
        if (const auto* ref = std::get_if<BlockRef>(&value))
          indices = {ref->index};
        else if (const auto* refs = std::get_if<BlockRefs>(&value))
          indices = refs->indices;
        for (const int32_t index : indices)
          if (!run.insert(index).second)
            return InvalidArgument("two operators run block %d", index);
      }
  return absl::OkStatus();
}

// A layer's values are tensors; within it there are arrays of them too.
absl::Status CheckLayerOps(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops) {
      for (const auto& [name, value] : op.attrs)
        if (TypeOf(value) == AttrType::kBlocks ||
            (TypeOf(value) == AttrType::kBlock && !RunsOneBlock(op)))
          return InvalidArgument(
              "operator '%s' runs blocks, and a job goes on from while and "
              "conditional_block only; cut the network before it",
              op.type);
      absl::Status status;
      const auto check = [&](const std::string& name) {
        const VarDesc* var = program.FindVar(block.idx, name);
        if (var != nullptr && var->kind != VarKind::kLodTensor &&
            (var->persistable || (var->kind != VarKind::kLodTensorArray &&
                                  var->kind != VarKind::kStepScopes)))
          status.Update(
              InvalidArgument("operator '%s' works on '%s', which is no tensor",
                              op.type, name));
      };
      EachName(op.inputs, check);
      EachName(op.outputs, check);
      PD_RETURN_IF_ERROR(status);
    }
  return absl::OkStatus();
}

// Parameters that an inner block declares, as branches of ONNX files do, become
// those of the first, where layers look for them.
absl::Status GatherParameters(ProgramDesc* program) {
  for (size_t i = 1; i < program->blocks.size(); ++i) {
    std::vector<VarDesc>& vars = program->blocks[i].vars;
    const auto kept = std::stable_partition(
        vars.begin(), vars.end(),
        [](const VarDesc& var) { return !var.persistable; });
    for (auto var = kept; var != vars.end(); ++var) {
      if (program->global().FindVar(var->name) != nullptr)
        return InvalidArgument("two blocks declare the parameter '%s'",
                               var->name);
      program->global().vars.push_back(std::move(*var));
    }
    vars.erase(kept, vars.end());
  }
  return absl::OkStatus();
}

// Training goes on in float32, as with parameters that a job's `init` takes.
absl::Status Widen(SavedNetwork* network) {
  int64_t halves = 0;
  DType dtype = DType::kFloat32;
  for (const auto& [name, value] : network->params) {
    if (!IsFloating(value.dtype) || SizeOf(value.dtype) != 2) continue;
    dtype = value.dtype;
    ++halves;
  }
  if (halves == 0) return absl::OkStatus();
  LogInfo(
      "'%s': %d parameters of %s are taken as float32, in which the layer "
      "computes",
      network->path, halves, Name(dtype));
  return WidenHalves(&network->program, &network->params);
}

// Says which variables are parameters that training may change.
absl::Status MarkParameters(const LoadedModel& model, SavedNetwork* network) {
  BlockDesc& block = network->program.global();
  Names fixed;
  for (const BlockDesc& any : network->program.blocks)
    for (const OpDesc& op : any.ops) {
      EachName(op.outputs,
               [&](const std::string& name) { fixed.insert(name); });
      fixed.insert(op.In("Mean"));
      fixed.insert(op.In("Variance"));
    }
  // PaddlePaddle's files leave the mark out.
  const bool marked = std::any_of(
      block.vars.begin(), block.vars.end(),
      [](const VarDesc& var) { return var.persistable && var.is_parameter; });
  for (VarDesc& var : block.vars) {
    if (!var.persistable) continue;
    Array& value = network->params.at(var.name);
    var.dtype = value.dtype;
    // [1] and [] are one where values are looked for.
    if (IsDynamic(var.shape))
      var.shape = value.shape;
    else
      value.shape = var.shape;
    var.is_parameter = IsFloating(var.dtype) && fixed.count(var.name) == 0 &&
                       (!marked || var.is_parameter) &&
                       !(model.imported && var.shape.empty());
    var.need_check_feed = false;
  }
  return absl::OkStatus();
}

absl::StatusOr<SavedNetwork> Cut(LoadedModel* model,
                                 const std::vector<std::string>& cuts) {
  if (model->kind == LoadedModel::Kind::kParameters)
    return InvalidArgument(
        "there are parameters only; a job goes on from a network (init { from: "
        "... } takes parameters)");
  const ProgramDesc whole = CloneForTest(model->program);
  PD_RETURN_IF_ERROR(CheckBlocks(whole));
  const Network known(whole, model->fetches);
  SavedNetwork network;
  network.path = model->path;
  for (const std::string& cut : cuts) {
    PD_ASSIGN_OR_RETURN(network.outputs.emplace_back(), known.Find(cut));
  }
  if (cuts.empty()) network.outputs = model->fetches;
  if (network.outputs.empty())
    return InvalidArgument(
        "the program does not say what its outputs are; say it with 'cut'");
  for (const std::string& output : network.outputs)
    if (!known.Makes(output))
      return InvalidArgument("no operator computes the output '%s'", output);
  std::vector<std::string> feeds;
  for (const std::string& feed : model->kind == LoadedModel::Kind::kInference
                                     ? model->feeds
                                     : known.Unmade())
    if (whole.global().FindVar(feed) != nullptr) feeds.push_back(feed);
  PD_ASSIGN_OR_RETURN(network.program, Prune(whole, feeds, network.outputs));
  PD_RETURN_IF_ERROR(CheckLayerOps(network.program));
  PD_RETURN_IF_ERROR(GatherParameters(&network.program));
  Names read;
  for (const OpDesc& op : network.program.global().ops) {
    const OuterNames names = OuterNamesOf(network.program, op);
    read.insert(names.reads.begin(), names.reads.end());
  }
  for (const std::string& output : network.outputs)
    if (network.program.global().FindVar(output)->kind != VarKind::kLodTensor)
      return InvalidArgument("'%s' is no tensor", output);
  for (const std::string& feed : feeds)
    if (read.count(feed) > 0) network.feeds.push_back(feed);
  std::vector<std::string> used = network.feeds;
  used.insert(used.end(), network.outputs.begin(), network.outputs.end());
  DropUnused(used, &network.program);
  PD_RETURN_IF_ERROR(MatchParams(network.program, model->params).Error());
  for (const std::string& name : PersistableTensors(network.program))
    network.params[name] = model->params.at(name);
  PD_RETURN_IF_ERROR(Widen(&network));
  PD_RETURN_IF_ERROR(MarkParameters(*model, &network));
  // A run that keeps the network as another file finds the same order.
  std::vector<VarDesc>& vars = network.program.global().vars;
  std::sort(vars.begin(), vars.end(),
            [](const VarDesc& a, const VarDesc& b) { return a.name < b.name; });
  return network;
}

}  // namespace

absl::StatusOr<SavedNetwork> CutModel(LoadedModel model,
                                      const std::vector<std::string>& cuts) {
  const std::string path = model.path;
  absl::StatusOr<SavedNetwork> network = Cut(&model, cuts);
  if (!network.ok()) return OfFile(path, network.status());
  return network;
}

}  // namespace pd
