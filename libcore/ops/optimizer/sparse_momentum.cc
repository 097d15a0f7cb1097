// SPDX-License-Identifier: Apache-2.0
// sparse_momentum: momentum where Grad [n, width] holds some rows of the
// gradient (axis 0), or some columns of it (axis 1), whose numbers are Index
// [n] or [n, 1]. Rows of one number add up; all others have gradient 0. Grad is
// multiplied by rescale_grad before.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/common/int_tensors.h"

namespace pd {
namespace {

absl::Status ComposeSparseMomentum(Composition* parts) {
  int64_t axis = parts->Attr<int32_t>("axis");
  if (parts->HasInput("Axis")) {
    const TensorMeta& given = parts->Meta("Axis");
    if (given.value == nullptr || given.value->size() != 1)
      return Unimplemented("input 'Axis' is no constant of one element");
    axis = IntsOf(*given.value)[0];
  }
  if (axis != 0 && axis != 1)
    return InvalidArgument("axis is %d; expected 0 or 1", axis);
  const std::string zeros =
      parts->Apply("fill_any_like", {{"X", {parts->In("Param")}}});
  const std::string scaled =
      parts->Apply("scale", {{"X", {parts->In("Grad")}}},
                   {{"scale", parts->Attr<float>("rescale_grad")}});
  const std::string index =
      parts->Apply("reshape2", {{"X", {parts->In("Index")}}},
                   {{"shape", std::vector<int32_t>{-1}}});
  const std::string gradient = parts->Apply(
      "index_add", {{"X", {zeros}}, {"Index", {index}}, {"AddValue", {scaled}}},
      {{"axis", static_cast<int32_t>(axis)}});
  Composition::Slots inputs = {{"Param", {parts->In("Param")}},
                               {"Grad", {gradient}},
                               {"Velocity", {parts->In("Velocity")}},
                               {"LearningRate", {parts->In("LearningRate")}}};
  Composition::Slots outputs = {{"ParamOut", {parts->Out("ParamOut")}},
                                {"VelocityOut", {parts->Out("VelocityOut")}}};
  if (parts->HasInput("MasterParam")) {
    inputs.push_back({"MasterParam", {parts->In("MasterParam")}});
    outputs.push_back({"MasterParamOut", {parts->Out("MasterParamOut")}});
  }
  Composition::Attrs attrs;
  for (const char* name : {"mu", "use_nesterov", "regularization_method",
                           "regularization_coeff", "multi_precision"})
    attrs[name] = *parts->op().FindAttr(name);
  parts->Add("momentum", inputs, outputs, std::move(attrs));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSparseMomentum(OpRegistry* registry) {
  OpDef op("sparse_momentum");
  op.Input("Param").Input("Grad").Input("Velocity").Input("Index");
  op.OptionalInput("Axis").Input("LearningRate").OptionalInput("MasterParam");
  op.Output("ParamOut").Output("VelocityOut").OptionalOutput("MasterParamOut");
  op.RequiredAttr("mu", AttrType::kFloat);
  op.Attr("use_nesterov", false);
  op.Attr("regularization_method", std::string());
  op.Attr("regularization_coeff", 0.0f).Attr("multi_precision", false);
  op.Attr("rescale_grad", 1.0f).Attr("axis", int32_t{0});
  return AddComposed<ComposeSparseMomentum>(registry, std::move(op));
}

}  // namespace pd
