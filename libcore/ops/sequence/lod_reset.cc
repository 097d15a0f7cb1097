// SPDX-License-Identifier: Apache-2.0
// Out: X with another LoD: Y's LoD, else the offsets that Y holds, else
// `target_lod`. With `append` the offsets become one more level under X's LoD.
// X@GRAD is Out@GRAD with X's LoD.
#include <cstdint>
#include <optional>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

// The level asked for; nothing when it is not known yet.
absl::StatusOr<std::optional<Offsets>> TargetOf(const InferContext& context) {
  Offsets target;
  if (context.HasInput("Y")) {
    const TensorMeta& y = context.Input("Y");
    if (y.value == nullptr) return std::optional<Offsets>();
    if (y.dtype != DType::kInt32 && y.dtype != DType::kInt64)
      return InvalidArgument("'Y' is %s without a LoD; expected int32",
                             Name(y.dtype));
    target = IntsOf(*y.value);
  } else {
    const auto& attr = context.Attr<std::vector<int32_t>>("target_lod");
    target.assign(attr.begin(), attr.end());
  }
  if (target.size() < 2)
    return InvalidArgument(
        "the LoD asked for has %d offsets; expected 2 or "
        "more",
        target.size());
  for (int64_t at : target)
    if (at < 0)
      return InvalidArgument("the LoD asked for holds %d; expected offsets",
                             at);
  return std::optional<Offsets>(std::move(target));
}

absl::Status InferReset(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  if (out.shape.empty())
    return InvalidArgument("'X' is a scalar; expected rows");
  if (context->HasInput("Y") && context->Input("Y").lod_level > 0) {
    const TensorMeta& y = context->Input("Y");
    PD_RETURN_IF_ERROR(CheckLoD(y.lod, out.shape[0], "Y"));
    out.lod = y.lod;
    out.lod_level = y.lod_level;
    if (y.lod.empty()) out.shape[0] = -1;
    context->SetOutput("Out", std::move(out));
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const auto target, TargetOf(*context));
  const bool append = context->Attr<bool>("append");
  const int32_t level = append ? out.lod_level + 1 : 1;
  if (target.has_value() &&
      (!append || !out.lod.empty() || out.lod_level == 0)) {
    PD_RETURN_IF_ERROR(CheckLoD(OneLevel(*target), out.shape[0], "Out"));
    // PaddlePaddle does not ask whether the level fits those above it.
    LoD lod = append ? out.lod : LoD();
    lod.push_back(OneLevel(*target).front());
    out.SetLoD(std::move(lod));
  } else {
    // Until its LoD is known it is bound anew whenever it runs.
    out.shape[0] = -1;
    out.lod.clear();
    out.lod_level = level;
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReset(BindContext* context) {
  if (Tensor* y = context->Input("Y")) context->NoBuffer(y);
  context->Alias(context->Input("X"), context->Output("Out"));
  return Step();
}

absl::StatusOr<Step> BindResetGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  context->Alias(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  return Step();
}

}  // namespace

absl::Status RegisterLodReset(OpRegistry* registry) {
  OpDef op("lod_reset");
  op.Input("X").OptionalInput("Y").Output("Out");
  op.Attr("target_lod", std::vector<int32_t>()).Attr("append", false);
  op.Infer(InferReset).Reference(BindReset);
  op.Grad(GradSpec{"lod_reset_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("lod_reset_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindResetGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
