// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/model_ends.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"
#include "libcore/program/rename_variables.h"

namespace pd {
namespace {

bool HasVar(const ProgramDesc& program, const std::string& name) {
  return std::any_of(
      program.blocks.begin(), program.blocks.end(),
      [&](const BlockDesc& b) { return b.FindVar(name) != nullptr; });
}

// Whether `made` can stand where `declared` is expected; -1 fits all.
bool Fits(const Shape& made, const Shape& declared) {
  return std::equal(
      made.begin(), made.end(), declared.begin(), declared.end(),
      [](int64_t a, int64_t b) { return a == b || a < 0 || b < 0; });
}

// A name that no variable has, and that says what it is.
std::string FreeName(const ProgramDesc& program, const std::string& wanted) {
  std::string name = wanted;
  for (int i = 1; HasVar(program, name); ++i)
    name = absl::StrCat(wanted, "_", i);
  return name;
}

// Ops in front of those that the block has.
class Prefix {
 public:
  Prefix(const OpRegistry& registry, std::string input, InferenceModel* model)
      : input_(std::move(input)),
        model_(model),
        builder_(&registry, &model->program) {}

  BlockBuilder& builder() { return builder_; }

  absl::Status Apply(const InputStep& step, std::string* now);
  absl::Status Reshape(const Shape& shape, std::string* now);

 private:
  // An op that only moves elements.
  absl::Status Move(const char* type, const char* attr,
                    std::vector<int32_t> value, std::string* now);
  // A parameter with a step's numbers.
  std::string Constant(const InputStep& step, const char* what);
  absl::StatusOr<std::string> WithConstant(const InputStep& step,
                                           const char* op, const char* what,
                                           const std::string& x);

  const std::string input_;
  InferenceModel* model_;
  BlockBuilder builder_;
};

std::string Prefix::Constant(const InputStep& step, const char* what) {
  VarDesc var;
  var.name = FreeName(model_->program, absl::StrCat(input_, ".", what));
  var.dtype = DType::kFloat32;
  var.shape = step.shape;
  var.persistable = true;
  var.stop_gradient = true;
  const std::string name = var.name;
  model_->params[name] = MakeArray<float>(step.shape, step.numbers);
  builder_.AddVar(std::move(var));
  return name;
}

absl::StatusOr<std::string> Prefix::WithConstant(const InputStep& step,
                                                 const char* type,
                                                 const char* what,
                                                 const std::string& x) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.SetInput("Y", {Constant(step, what)});
  std::string out = builder_.UniqueTemporary(type);
  op.SetOutput("Out", {out});
  PD_RETURN_IF_ERROR(builder_.Append(std::move(op)));
  return out;
}

absl::Status Prefix::Apply(const InputStep& step, std::string* now) {
  const auto unary = [&](const char* type,
                         std::map<std::string, Attribute> attrs) {
    return builder_.Unary(type, *now, std::move(attrs));
  };
  switch (step.kind) {
    case InputStep::Kind::kScale: {
      PD_ASSIGN_OR_RETURN(*now, unary("scale", {{"scale", step.numbers[0]}}));
      break;
    }
    case InputStep::Kind::kSubtract: {
      PD_ASSIGN_OR_RETURN(*now,
                          WithConstant(step, "elementwise_sub", "mean", *now));
      break;
    }
    case InputStep::Kind::kDivide: {
      PD_ASSIGN_OR_RETURN(*now,
                          WithConstant(step, "elementwise_div", "std", *now));
      break;
    }
    case InputStep::Kind::kLog1p: {
      PD_ASSIGN_OR_RETURN(*now, unary("relu", {}));
      PD_ASSIGN_OR_RETURN(*now, unary("scale", {{"bias", 1.0f}}));
      PD_ASSIGN_OR_RETURN(*now, unary("log", {}));
      break;
    }
    case InputStep::Kind::kReverse: {
      PD_ASSIGN_OR_RETURN(*now, unary("reverse", {{"axis", step.axes}}));
      break;
    }
    case InputStep::Kind::kTranspose: {
      PD_RETURN_IF_ERROR(Move("transpose2", "axis", step.axes, now));
      break;
    }
    case InputStep::Kind::kFit: {
      PD_ASSIGN_OR_RETURN(
          *now, AppendPictureFit(step.fit, input_, *now, &builder_, model_));
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status Prefix::Reshape(const Shape& shape, std::string* now) {
  return Move("reshape2", "shape", {shape.begin(), shape.end()}, now);
}

absl::Status Prefix::Move(const char* type, const char* attr,
                          std::vector<int32_t> value, std::string* now) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {*now});
  *now = builder_.UniqueTemporary(type);
  op.SetOutput("Out", {*now});
  op.SetOutput("XShape", {absl::StrCat(*now, ".shape")});
  op.attrs[attr] = std::move(value);
  return builder_.Append(std::move(op));
}

// Gives the variables `ends`, each an `end` ("output"), the names; none of them
// may be among `others` too, each of which is `other` ("an input").
absl::Status RenameEnds(const char* end, const char* other,
                        const std::vector<std::string>& others,
                        const std::vector<std::string>& ends,
                        const std::vector<std::string>& names,
                        InferenceModel* model) {
  if (names.size() != ends.size())
    return InvalidArgument("%d names are given for %d %ss, '%s'", names.size(),
                           ends.size(), end, absl::StrJoin(ends, "', '"));
  Renames renames;
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) > 1)
      return InvalidArgument("two %ss are named '%s'", end, names[i]);
    if (names[i] != ends[i]) renames[ends[i]] = names[i];
  }
  for (const auto& [old_name, name] : renames) {
    if (HasVar(model->program, name) && renames.count(name) == 0)
      return InvalidArgument(
          "%s '%s' cannot be named '%s': another variable of the model has "
          "this name",
          end, old_name, name);
    if (std::count(others.begin(), others.end(), old_name) > 0 ||
        model->params.count(old_name) > 0)
      return InvalidArgument(
          "%s '%s' cannot be renamed: it is %s or a parameter too", end,
          old_name, other);
  }
  RenameVariables(renames, &model->program);
  return absl::OkStatus();
}

}  // namespace

absl::Status RenameOutputs(const std::vector<std::string>& names,
                           InferenceModel* model) {
  auto& fetches = model->names.fetches;
  PD_RETURN_IF_ERROR(RenameEnds("output", "an input", model->names.feeds,
                                fetches, names, model));
  std::map<std::string, std::vector<std::string>> classes;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto known = model->names.classes.find(fetches[i]);
    if (known != model->names.classes.end())
      classes[names[i]] = std::move(known->second);
  }
  fetches = names;
  model->names.classes = std::move(classes);
  return absl::OkStatus();
}

absl::Status RenameInputs(const std::vector<std::string>& names,
                          InferenceModel* model) {
  auto& feeds = model->names.feeds;
  PD_RETURN_IF_ERROR(RenameEnds("input", "an output", model->names.fetches,
                                feeds, names, model));
  feeds = names;
  return absl::OkStatus();
}

absl::Status AppendProbabilities(const OpRegistry& registry,
                                 const std::string& fetch,
                                 const std::string& type, int axis,
                                 const std::string& name,
                                 InferenceModel* model) {
  if (HasVar(model->program, name))
    return InvalidArgument("the model has a variable '%s' already", name);
  BlockBuilder builder(&registry, &model->program);
  OpDesc op;
  op.type = type;
  op.SetInput("X", {fetch});
  op.SetOutput("Out", {name});
  if (type == "softmax") op.attrs["axis"] = int32_t{axis};
  PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
  auto& names = model->names;
  std::replace(names.fetches.begin(), names.fetches.end(), fetch, name);
  auto known = names.classes.extract(fetch);
  if (!known.empty()) names.classes[name] = std::move(known.mapped());
  return absl::OkStatus();
}

absl::Status PrependSteps(const OpRegistry& registry, const InputStage& stage,
                          InferenceModel* model) {
  BlockDesc& block = model->program.global();
  const VarDesc* fed = block.FindVar(stage.input);
  const auto& feeds = model->names.feeds;
  if (fed == nullptr ||
      std::count(feeds.begin(), feeds.end(), stage.input) == 0)
    return NotFound("'%s' is not an input of the model; its inputs are '%s'",
                    stage.input, absl::StrJoin(feeds, "', '"));
  const VarDesc declared = *fed;
  std::vector<OpDesc> ops = std::move(block.ops);
  block.ops.clear();
  Prefix prefix(registry, stage.input, model);
  BlockBuilder& builder = prefix.builder();
  VarDesc* input = builder.MutableVar(stage.input);
  input->dtype = stage.dtype;
  input->shape = stage.shape;
  // How many records come is the network's to say.
  if (!input->shape.empty() && !declared.shape.empty())
    input->shape[0] = declared.shape[0];
  const auto cast = [&builder](DType from, DType to,
                               std::string* now) -> absl::Status {
    if (from == to) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(*now,
                        builder.Unary("cast", *now,
                                      {{"in_dtype", static_cast<int32_t>(from)},
                                       {"out_dtype", static_cast<int32_t>(to)},
                                       // PaddlePaddle asks for it when it loads
                                       // the model to train on.
                                       {"use_mkldnn", false}}));
    return absl::OkStatus();
  };
  std::string now = stage.input;
  if (stage.steps.empty()) {  // integers stay exact
    PD_RETURN_IF_ERROR(cast(stage.dtype, declared.dtype, &now));
  } else {
    PD_RETURN_IF_ERROR(cast(stage.dtype, DType::kFloat32, &now));
    for (const InputStep& step : stage.steps)
      PD_RETURN_IF_ERROR(prefix.Apply(step, &now));
    PD_RETURN_IF_ERROR(cast(DType::kFloat32, declared.dtype, &now));
  }
  if (!Fits(builder.FindVar(now)->shape, declared.shape))
    PD_RETURN_IF_ERROR(prefix.Reshape(declared.shape, &now));
  std::vector<OpDesc> first = std::move(block.ops);
  block.ops = std::move(ops);
  RenameInOps({{stage.input, now}}, &model->program);
  block.ops.insert(block.ops.begin(), std::make_move_iterator(first.begin()),
                   std::make_move_iterator(first.end()));
  return absl::OkStatus();
}

}  // namespace pd
