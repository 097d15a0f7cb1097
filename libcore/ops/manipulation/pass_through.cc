// SPDX-License-Identifier: Apache-2.0
// Ops that hand elements on, which PaddlePaddle's executors, passes and
// gradients write:
//   memcpy_d2h, memcpy_h2d, npu_identity, shadow_output, fetch_v2: Out = X
//   transfer_dtype: cast;  transfer_layout: NCHW as NHWC or the other way round
//   grad_add: X + Y
//   identity_loss: X's sum, mean, or X, by `reduction` 0, 1, 2
//   fill, full_int_array: a tensor of the numbers of an attribute
//   fake_init: zeros of a shape, where a parameter server will send the values
// Where bytes lie is the executor's business here, so a copy between memories
// is a plain copy.
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

const std::string& FirstInput(const OpDesc& op) { return op.inputs[0].first; }

absl::Status ComposePass(Composition* parts) {
  parts->Add("assign", {{"X", {parts->In(FirstInput(parts->op()))}}},
             {{"Out", {parts->Out(parts->op().outputs[0].first)}}});
  return absl::OkStatus();
}

absl::Status ComposeTransferDtype(Composition* parts) {
  parts->Add("cast", {{"X", {parts->In("X")}}}, {{"Out", {parts->Out("Out")}}},
             {{"in_dtype", static_cast<int32_t>(parts->Meta("X").dtype)},
              {"out_dtype", parts->Attr<int32_t>("out_dtype")}});
  return absl::OkStatus();
}

absl::Status ComposeTransferLayout(Composition* parts) {
  constexpr int32_t kLast = 1, kFirst = 2;  // NHWC and NCHW
  const int32_t to = parts->Attr<int32_t>("dst_layout");
  int32_t from = parts->Attr<int32_t>("src_layout");
  if (from <= 0) from = kFirst;
  if ((to != kLast && to != kFirst) || (from != kLast && from != kFirst))
    return Unimplemented(
        "attrs 'src_layout' and 'dst_layout' are %d and %d; expected %d "
        "(NHWC) or %d (NCHW)",
        from, to, kLast, kFirst);
  if (from == to) return ComposePass(parts);
  if (parts->Meta("X").shape.size() != 4)
    return InvalidArgument("'X' has shape %s; expected 4 axes",
                           ToString(parts->Meta("X").shape));
  const std::vector<int32_t> axis = to == kLast
                                        ? std::vector<int32_t>{0, 2, 3, 1}
                                        : std::vector<int32_t>{0, 3, 1, 2};
  parts->Add("transpose2", {{"X", {parts->In("X")}}},
             {{"Out", {parts->Out("Out")}}}, {{"axis", axis}});
  return absl::OkStatus();
}

absl::Status ComposeGradAdd(Composition* parts) {
  parts->Add(
      "elementwise_add", {{"X", {parts->In("X")}}, {"Y", {parts->In("Y")}}},
      {{"Out", {parts->Out("Out")}}}, {{"axis", parts->Attr<int32_t>("axis")}});
  return absl::OkStatus();
}

absl::Status ComposeIdentityLoss(Composition* parts) {
  const int32_t reduction = parts->Attr<int32_t>("reduction");
  if (reduction == 2) {
    parts->Add("assign", {{"X", {parts->In("X")}}},
               {{"Out", {parts->Out("Out")}}});
    return absl::OkStatus();
  }
  if (reduction != 0 && reduction != 1)
    return InvalidArgument(
        "attr 'reduction' is %d; expected 0 (sum), 1 (mean) or 2 (none)",
        reduction);
  parts->Add(reduction == 0 ? "reduce_sum" : "reduce_mean",
             {{"X", {parts->In("X")}}}, {{"Out", {parts->Out("Out")}}},
             {{"reduce_all", true}});
  return absl::OkStatus();
}

// The attributes of assign_value for floats or integers.
absl::Status ComposeValues(Composition* parts) {
  const bool ints = parts->op().type == "full_int_array";
  const auto code = parts->Attr<int32_t>("dtype");
  Composition::Attrs attrs;
  int64_t count = 0;
  const DType made = ints ? DType::kInt64 : DType::kFloat32;
  if (ints) {
    const auto& values = parts->Attr<std::vector<int64_t>>("value");
    count = static_cast<int64_t>(values.size());
    attrs["int64_values"] = values;
    attrs["shape"] = std::vector<int32_t>{static_cast<int32_t>(count)};
  } else {
    const auto& values = parts->Attr<std::vector<float>>("value");
    count = static_cast<int64_t>(values.size());
    attrs["fp32_values"] = values;
    attrs["shape"] = parts->Attr<std::vector<int32_t>>("shape");
  }
  attrs["dtype"] = static_cast<int32_t>(made);
  const std::string out = parts->Out(parts->op().outputs[0].first);
  const std::string values = parts->Apply("assign_value", {}, attrs);
  parts->Add("cast", {{"X", {values}}}, {{"Out", {out}}},
             {{"in_dtype", static_cast<int32_t>(made)}, {"out_dtype", code}});
  return absl::OkStatus();
}

absl::Status ComposeFakeInit(Composition* parts) {
  parts->Add("fill_constant", {}, {{"Out", {parts->Out("Out")}}},
             {{"shape", parts->Attr<std::vector<int64_t>>("shape")}});
  return absl::OkStatus();
}

OpDef XToOut(const char* type) {
  OpDef op(type);
  op.Input("X").Output("Out");
  return op;
}

absl::Status AddCopies(OpRegistry* registry) {
  for (const char* type : {"memcpy_d2h", "memcpy_h2d"}) {
    OpDef op = XToOut(type);
    op.RequiredAttr("dst_place_type", AttrType::kInt);
    PD_RETURN_IF_ERROR(AddComposed<ComposePass>(registry, std::move(op)));
  }
  OpDef fetch = XToOut("fetch_v2"), npu("npu_identity"),
        shadow("shadow_output");
  fetch.RequiredAttr("col", AttrType::kInt).Attr("deepcopy", true);
  npu.Input("x").Output("out").Attr("format", int32_t{-1});
  shadow.Input("x").Output("out").RequiredAttr("name", AttrType::kString);
  for (OpDef* op : {&fetch, &npu, &shadow})
    PD_RETURN_IF_ERROR(AddComposed<ComposePass>(registry, std::move(*op)));

  OpDef dtype = XToOut("transfer_dtype"), layout = XToOut("transfer_layout");
  dtype.RequiredAttr("out_dtype", AttrType::kInt);
  dtype.RequiredAttr("in_dtype", AttrType::kInt);
  dtype.With(Trait::kConvertsDtype);
  layout.Attr("src_layout", int32_t{-1});
  layout.RequiredAttr("dst_layout", AttrType::kInt);
  PD_RETURN_IF_ERROR(
      AddComposed<ComposeTransferDtype>(registry, std::move(dtype)));
  return AddComposed<ComposeTransferLayout>(registry, std::move(layout));
}

}  // namespace

absl::Status RegisterPassThrough(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddCopies(registry));
  OpDef add("grad_add");
  add.Input("X").Input("Y").Output("Out").Attr("axis", int32_t{-1});
  PD_RETURN_IF_ERROR(AddComposed<ComposeGradAdd>(registry, std::move(add)));

  OpDef fill("fill"), ints("full_int_array");
  fill.Output("Out").RequiredAttr("value", AttrType::kFloats);
  fill.RequiredAttr("shape", AttrType::kInts).Attr("dtype", int32_t{5});
  fill.Attr("force_cpu", false);
  ints.Output("out").RequiredAttr("value", AttrType::kLongs);
  ints.Attr("dtype", int32_t{5}).Attr("place", int32_t{1});
  PD_RETURN_IF_ERROR(AddComposed<ComposeValues>(registry, std::move(fill)));
  PD_RETURN_IF_ERROR(AddComposed<ComposeValues>(registry, std::move(ints)));

  OpDef init("fake_init");
  init.Output("Out").RequiredAttr("shape", AttrType::kLongs);
  PD_RETURN_IF_ERROR(AddComposed<ComposeFakeInit>(registry, std::move(init)));

  OpDef loss = XToOut("identity_loss");
  loss.Attr("reduction", int32_t{1});
  loss.Infer(InferComposed<ComposeIdentityLoss>);
  loss.Reference(BindComposed<ComposeIdentityLoss>);
  return AddWithComposedGrad(registry, std::move(loss), {"Out"}, {"X"},
                             BindComposedGrad<ComposeIdentityLoss>);
}

}  // namespace pd
