// SPDX-License-Identifier: Apache-2.0
// The same elements in rows of `new_dim`: a sequence of n rows of width d
// becomes one of n * d / new_dim rows. X@GRAD is Out@GRAD in X's shape.
#include <cstdint>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status InferReshape(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int64_t width = context->Attr<int32_t>("new_dim");
  if (x.shape.size() != 2)
    return InvalidArgument("'X' has shape %s; expected [rows, width]",
                           ToString(x.shape));
  if (width <= 0)
    return InvalidArgument("attr 'new_dim' is %d; expected 1 or more", width);
  PD_ASSIGN_OR_RETURN(auto offsets, KnownSequences(x, "X"));
  TensorMeta out;
  out.dtype = x.dtype;
  out.shape = {-1, width};
  out.lod_level = x.lod_level;
  if (offsets.has_value() && x.shape[1] >= 0) {
    for (int64_t& at : *offsets) {
      int64_t elements = 0;
      if (__builtin_mul_overflow(at, x.shape[1], &elements) ||
          elements % width != 0)
        return InvalidArgument(
            "a sequence of 'X' ends at row %d of width %d; expected a multiple "
            "of 'new_dim' %d",
            at, x.shape[1], width);
      at = elements / width;
    }
    out.shape[0] = offsets->back();
    out.SetLoD(OneLevel(*offsets));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindReshape(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SequencesOf(x, "X").status());
  context->Alias(x, out);
  return Step();
}

absl::StatusOr<Step> BindReshapeGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  context->NoBuffer(x);
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), x->size()));
  context->Alias(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  return Step();
}

}  // namespace

absl::Status RegisterSequenceReshape(OpRegistry* registry) {
  OpDef op("sequence_reshape");
  op.Input("X").Output("Out").RequiredAttr("new_dim", AttrType::kInt);
  op.Infer(InferReshape).Reference(BindReshape);
  op.Grad(GradSpec{"sequence_reshape_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_reshape_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindReshapeGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
