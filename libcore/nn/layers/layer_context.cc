// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/layer_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layer_part.h"
#include "libcore/nn/output_names.h"
#include "libcore/nn/saved_networks.h"

namespace pd {
namespace {

// Layers of operators are named by these.
std::string OperatorOr(std::string kind, const job::Layer& layer) {
  if (layer.has_op()) return layer.op().type();
  return layer.has_custom() ? layer.custom().op() : kind;
}

}  // namespace

LayerContext::LayerContext(const job::Layer& layer, LayerName name,
                           LayerReads reads, const ModelParts& parts,
                           PartFn part, PlaceFn place)
    : layer_(layer),
      name_(std::move(name.full)),
      owner_(std::move(name.owner)),
      kind_(OperatorOr(KindOf(layer), layer)),
      reads_(std::move(reads)),
      parts_(parts),
      part_(std::move(part)),
      place_(std::move(place)) {
  scope_.structured = std::move(name.structured);
  scope_.kind = kind_;
}

LayerContext::LayerContext(const std::string& loss_kind, LayerName name,
                           const ModelParts& parts)
    : layer_(job::Layer::default_instance()),
      name_(std::move(name.full)),
      owner_(name_),
      kind_(loss_kind),
      parts_(parts) {
  scope_.structured = std::move(name.structured);
  scope_.kind = kind_;
}

const Shape& LayerContext::ShapeOf(const std::string& variable) const {
  return parts_.main->FindVar(variable)->shape;
}

DType LayerContext::TypeOf(const std::string& variable) const {
  return parts_.main->FindVar(variable)->dtype;
}

DType LayerContext::dtype(size_t i) const { return TypeOf(input(i)); }

const std::vector<LayerInput>& LayerContext::AllNamed(const char* field) const {
  static const std::vector<LayerInput>* const kNone =
      new std::vector<LayerInput>;
  const auto it = reads_.fields.find(field);
  return it == reads_.fields.end() ? *kNone : it->second;
}

const LayerInput* LayerContext::Named(const char* field) const {
  const std::vector<LayerInput>& all = AllNamed(field);
  return all.empty() ? nullptr : &all[0];
}

std::string LayerContext::Called() const {
  return absl::StrCat("layer '", name_, "'");
}

std::string LayerContext::Described() const {
  std::vector<std::string> read;
  const auto add = [&](const LayerInput& input) {
    read.push_back(
        absl::StrCat(ToString(ShapeOf(input.variable)), " of ", input.maker));
  };
  for (const LayerInput& input : reads_.inputs) add(input);
  for (const auto& [field, inputs] : reads_.fields)
    for (const LayerInput& input : inputs) add(input);
  return absl::StrCat("layer '", name_, "' (", kind_, ") reads ",
                      absl::StrJoin(read, " and "));
}

absl::Status LayerContext::Misfit(const std::string& expected,
                                  size_t input) const {
  return Misfit(expected, reads_.inputs[input]);
}

absl::Status LayerContext::Misfit(const std::string& expected,
                                  const LayerInput& input) const {
  return InvalidArgument("layer '%s' (%s) expects %s; %s gives %s", name_,
                         kind_, expected, input.maker,
                         ToString(ShapeOf(input.variable)));
}

absl::Status LayerContext::ExpectRank(size_t least, size_t most,
                                      const char* expected) const {
  const size_t rank = shape().size();
  return rank >= least && rank <= most ? absl::OkStatus() : Misfit(expected);
}

absl::StatusOr<int64_t> LayerContext::Extent(int axis, const int64_t* given,
                                             const char* what,
                                             const char* field) const {
  const int64_t rank = static_cast<int64_t>(shape().size());
  const int64_t extent =
      shape()[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
  if (given != nullptr) {
    if (extent >= 0 && extent != *given)
      return Misfit(absl::StrCat(*given, " ", what));
    return *given;
  }
  if (extent < 0)
    return Misfit(
        absl::StrCat("a known number of ", what, " or '", field, "'"));
  return extent;
}

LayerContext::Sublayer::Sublayer(LayerContext* context, const char* kind,
                                 const std::string& path)
    : context_(context), outer_(context->scope_) {
  ParameterScope& scope = context->scope_;
  scope = ParameterScope();
  scope.kind = kind;
  scope.structured = outer_.structured;
  if (!scope.structured.empty() && !path.empty())
    absl::StrAppend(&scope.structured, ".", path);
}

std::string LayerContext::NewName(const char* member, const char* suffix,
                                  int* number) {
  if (!scope_.structured.empty())
    return *member == '\0' ? scope_.structured
                           : absl::StrCat(scope_.structured, ".", member);
  if (scope_.prefix.empty())
    scope_.prefix = parts_.generated->Prefix(owner_, scope_.kind, parts_.main);
  return absl::StrCat(scope_.prefix, ".", suffix, "_", (*number)++);
}

std::string LayerContext::PaddleName(bool bias) {
  if (scope_.paddle_prefix.empty())
    scope_.paddle_prefix = parts_.generated->PaddlePrefix(owner_, scope_.kind);
  int& number = bias ? scope_.paddle_biases : scope_.paddle_weights;
  return absl::StrCat(scope_.paddle_prefix, bias ? ".b_" : ".w_", number++);
}

std::string LayerContext::CountInPaddle(const char* kind) {
  return parts_.generated->PaddlePrefix(owner_, kind);
}

VarDesc* LayerContext::FindParameter(const std::string& name) {
  return parts_.main->MutableVar(name);
}

absl::Status LayerContext::CheckSize(const std::string& name,
                                     const Shape& shape) const {
  return Annotate(CheckTensorSize(DType::kFloat32, shape),
                  absl::StrCat("layer '", name_, "' (", kind_, "): parameter '",
                               name, "'"));
}

void LayerContext::Keep(VarDesc var) {
  var.persistable = true;
  parts_.startup->AddVar(var);
  parts_.main->AddVar(std::move(var));
}

absl::Status LayerContext::Declare(VarDesc var,
                                   const job::Initializer& initializer) {
  const std::string name = var.name;
  const Shape shape = var.shape;
  const DType dtype = var.dtype;
  Keep(std::move(var));
  return AppendInitializer(initializer, name, shape, dtype, parts_.startup);
}

absl::StatusOr<std::string> LayerContext::Parameter(ParameterRequest request) {
  if (request.attr.has_weight_norm()) return WeightNorm(request);
  if (request.attr.has_spectral_norm()) return SpectralNorm(request);
  return Plain(request);
}

absl::StatusOr<std::string> LayerContext::Plain(
    const ParameterRequest& request) {
  const job::ParamAttr& written = request.attr;
  const std::string name = written.has_name() ? written.name() : request.name;
  parameters_.push_back(name);
  if (const VarDesc* shared = FindParameter(name)) {
    if (!written.has_name() && !parts_.share)
      return InvalidArgument(
          "layer '%s' (%s) would make the parameter '%s', which there is "
          "already; give the layer, or the use of its block, another name",
          name_, kind_, name);
    if (shared->is_parameter && shared->shape == request.shape) return name;
    return InvalidArgument(
        "layer '%s' (%s) needs a parameter of shape %s; '%s' is %s of shape %s",
        name_, kind_, ToString(request.shape), name,
        shared->is_parameter ? "one" : "another variable",
        ToString(shared->shape));
  }
  PD_RETURN_IF_ERROR(CheckSize(name, request.shape));
  const job::ParamAttr attr = parts_.groups->Apply(name, written);
  VarDesc var;
  var.name = name;
  var.shape = request.shape;
  var.dtype = request.dtype;
  var.is_parameter = true;
  var.stop_gradient = !attr.trainable();
  if (request.value != nullptr && !attr.has_initializer())
    parts_.built->values[name] = *request.value;
  if (request.computed || parts_.built->values.count(name) > 0) {
    Keep(std::move(var));
  } else {
    const job::Initializer* all = parts_.groups->ForAll(request.bias);
    PD_RETURN_IF_ERROR(
        Declare(std::move(var), attr.has_initializer() ? attr.initializer()
                                : all != nullptr       ? *all
                                                       : request.otherwise));
  }
  ParameterSettings settings;
  settings.name = name;
  settings.paddle_name = written.has_name() ? written.name()
                         : request.value != nullptr
                             ? name
                             : PaddleName(request.bias && !request.as_weight);
  parts_.built->paddle_names.emplace_back(name, settings.paddle_name);
  settings.layer = name_;
  settings.learning_rate = attr.learning_rate();
  settings.trainable = attr.trainable();
  settings.need_clip = attr.need_clip();
  const job::Regularizer& decay = attr.regularizer();
  if (decay.has_l1_decay()) {
    settings.regularizer =
        WeightDecay{WeightDecay::Kind::kL1, decay.l1_decay().coeff()};
  } else if (decay.has_l2_decay()) {
    settings.regularizer =
        WeightDecay{WeightDecay::Kind::kL2, decay.l2_decay().coeff()};
  }
  parts_.built->parameters.push_back(std::move(settings));
  return name;
}

absl::StatusOr<std::string> LayerContext::Weight(
    const job::ParamAttr& attr, Shape shape, const job::Initializer& otherwise,
    const char* member) {
  return Parameter({attr, NewName(member, "w", &scope_.weights),
                    std::move(shape), otherwise});
}

absl::StatusOr<std::string> LayerContext::Bias(const job::ParamAttr& attr,
                                               Shape shape,
                                               const char* member) {
  return Bias(attr, std::move(shape), ConstantInitializer(0), member);
}

absl::StatusOr<std::string> LayerContext::Bias(
    const job::ParamAttr& attr, Shape shape, const job::Initializer& otherwise,
    const char* member) {
  return Parameter({attr, NewName(member, "b", &scope_.biases),
                    std::move(shape), otherwise, true});
}

const SavedNetwork* LayerContext::Network(const job::SavedModel& model) const {
  const auto it = parts_.networks->find(NetworkKey(model));
  return it == parts_.networks->end() ? nullptr : &it->second;
}

std::string LayerContext::Inner(const std::string& variable) {
  if (!scope_.structured.empty())
    return absl::StrCat(scope_.structured, ".", variable);
  if (scope_.prefix.empty())
    scope_.prefix = parts_.generated->Prefix(owner_, scope_.kind, parts_.main);
  return absl::StrCat(scope_.prefix, ".", variable);
}

absl::StatusOr<std::string> LayerContext::Saved(const VarDesc& var,
                                                const Array& value) {
  ParameterRequest request;
  request.name = Inner(var.name);
  request.shape = value.shape;
  request.dtype = var.dtype;
  request.value = &value;
  if (var.is_parameter) return Plain(request);
  if (const VarDesc* there = main()->FindVar(request.name)) {
    if (parts_.share && there->persistable && there->shape == value.shape)
      return request.name;
    return InvalidArgument("layer '%s' (%s): there is a variable '%s' already",
                           name_, kind_, request.name);
  }
  VarDesc kept = var;
  kept.name = request.name;
  kept.shape = value.shape;
  kept.stop_gradient = true;
  parts_.built->values[request.name] = value;
  Keep(std::move(kept));
  parts_.built->paddle_names.emplace_back(request.name, request.name);
  return request.name;
}

void LayerContext::AddOutput(std::string name, std::string variable) {
  outputs_.push_back({std::move(name), std::move(variable)});
}

absl::StatusOr<std::string> LayerContext::Statistic(Shape shape, double value,
                                                    const char* member) {
  VarDesc var;
  var.name = NewName(member, "w", &scope_.weights);
  var.shape = std::move(shape);
  var.stop_gradient = true;
  const std::string name = var.name;
  const VarDesc* there = main()->FindVar(name);
  if (there != nullptr && parts_.share && there->persistable &&
      there->shape == var.shape)
    return name;
  if (there != nullptr)
    return InvalidArgument("layer '%s' (%s): there is a variable '%s' already",
                           name_, kind_, name);
  PD_RETURN_IF_ERROR(CheckSize(name, var.shape));
  PD_RETURN_IF_ERROR(Declare(std::move(var), ConstantInitializer(value)));
  parts_.built->paddle_names.emplace_back(name, PaddleName(false));
  return name;
}

absl::StatusOr<std::vector<std::string>> LayerContext::AppendAll(
    OpDesc op, const std::vector<std::string>& outputs) {
  const std::string first = main()->UniqueTemporary(op.type);
  std::vector<std::string> made;
  for (size_t i = 0; i < outputs.size(); ++i) {
    made.push_back(TemporaryBeside(first, i));
    op.SetOutput(outputs[i], {made.back()});
  }
  const absl::Status status = main()->Append(std::move(op));
  if (!status.ok()) return Annotate(status, Described());
  return made;
}

absl::StatusOr<std::string> LayerContext::Append(
    OpDesc op, const std::vector<std::string>& outputs) {
  PD_ASSIGN_OR_RETURN(std::vector<std::string> made,
                      AppendAll(std::move(op), outputs));
  return made.empty() ? std::string() : std::move(made[0]);
}

absl::StatusOr<std::string> LayerContext::Unary(
    const char* type, const std::string& x,
    std::map<std::string, Attribute> attrs) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.attrs = std::move(attrs);
  return Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> LayerContext::Binary(const char* type,
                                                 const std::string& x,
                                                 const std::string& y,
                                                 int axis) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {x});
  op.SetInput("Y", {y});
  op.attrs["axis"] = int32_t{axis};
  return Append(std::move(op), {"Out"});
}

}  // namespace pd
