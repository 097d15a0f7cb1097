// SPDX-License-Identifier: Apache-2.0
// Out = min(max(X, min), max); X@GRAD = Out@GRAD where min < X < max, else 0
// Selected rows are merged before they are clipped: a row is there once then.
// The inputs Min and Max, of one element, replace the attributes. NaN stays NaN
// and gets no gradient.
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/number_of.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/unary_curve.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 16384;

// One bound: a number, or the tensor that holds it.
struct Bound {
  double attribute;
  Tensor* tensor;

  template <typename T>
  T Get() const {
    if (tensor != nullptr && tensor->dtype() == DTypeOf<T>())
      return tensor->data<T>()[0];
    const double number =
        tensor != nullptr ? NumberOf<double>(*tensor) : attribute;
    if constexpr (!std::is_integral_v<T>) return Stored<T>(number);
    // It may lie outside an integer type.
    if (number != number) return T(0);
    if (number <= static_cast<double>(std::numeric_limits<T>::lowest()))
      return std::numeric_limits<T>::lowest();
    if (number >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    return static_cast<T>(number);
  }
};

struct Bounds {
  Bound min, max;
};

absl::StatusOr<Bounds> ReadBounds(const BindContext& context) {
  Bounds b = {{context.Attr<float>("min"), context.Input("Min")},
              {context.Attr<float>("max"), context.Input("Max")}};
  for (const char* slot : {"Min", "Max"})
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(CheckNumber(*context.Input(slot), slot));
  return b;
}

template <typename Body>
auto DispatchClip(DType dtype, const Body& body) {
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                       int16_t, int8_t, uint8_t>(dtype, body);
}

absl::StatusOr<Step> BindClip(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Bounds bounds, ReadBounds(*context));
  PD_ASSIGN_OR_RETURN(Step merge, MergeDuplicates(context, x, out));
  if (merge != nullptr)
    x = out;
  else
    context->MayShare(x, out);
  return DispatchClip(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext& run) {
      if (merge != nullptr) PD_RETURN_IF_ERROR(merge(run));
      const T low = bounds.min.Get<T>(), high = bounds.max.Get<T>();
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T v = in[i] < low ? low : in[i];
          result[i] = v > high ? high : v;
        }
      });
      return absl::OkStatus();
    });
  });
}

// `to` = `from` where X is between the bounds. The gradient is linear in
// Out@GRAD: its own gradient is the same function.
absl::StatusOr<Step> BindMask(BindContext* context, const char* from,
                              const char* to) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input(from);
  Tensor* dx = context->Output(to);
  PD_RETURN_IF_ERROR(ExpectElements(*context, from, x->dtype(), x->size()));
  context->MayShare(dout, dx);
  PD_ASSIGN_OR_RETURN(const Bounds bounds, ReadBounds(*context));
  return DispatchClip(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext&) {
      const T low = bounds.min.Get<T>(), high = bounds.max.Get<T>();
      const T* in = x->data<T>();
      const T* g = dout->data<T>();
      T* result = dx->data<T>();
      ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          result[i] = in[i] > low && in[i] < high ? g[i] : T(0);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindClipGrad(BindContext* context) {
  return BindMask(context, "Out@GRAD", "X@GRAD");
}
absl::StatusOr<Step> BindClipDoubleGrad(BindContext* context) {
  return BindMask(context, "grad_x@GRAD", "grad_out@GRAD");
}

absl::Status InferDoubleGrad(InferContext* context) {
  context->Share("X", "grad_out@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OpDesc>> SecondMaker(const GradRequest& request) {
  const OpDesc& grad = request.op;
  std::vector<OpDesc> ops;
  if (!request.needs_grad(grad.In("Out@GRAD"))) return ops;
  OpDesc op;
  op.type = "clip_double_grad";
  op.attrs = grad.attrs;
  for (const char* slot : {"X", "Min", "Max"})
    if (!grad.Input(slot).empty()) op.SetInput(slot, grad.Input(slot));
  op.SetInput("grad_x@GRAD", {GradName(grad.Out("X@GRAD"))});
  op.SetOutput("grad_out@GRAD", {GradName(grad.In("Out@GRAD"))});
  ops.push_back(std::move(op));
  return ops;
}

void AddAttrs(OpDef* def) { def->Attr("min", 0.0f).Attr("max", 0.0f); }

}  // namespace

absl::Status RegisterClip(OpRegistry* registry) {
  OpDef clip("clip");
  clip.Input("X").OptionalInput("Min").OptionalInput("Max").Output("Out");
  AddAttrs(&clip);
  clip.Infer(InferUnary).Reference(BindClip);
  clip.Grad(GradSpec{"clip_grad", {"X", "Min", "Max"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(clip)));

  OpDef grad("clip_grad");
  grad.Input("X").OptionalInput("Min").OptionalInput("Max");
  grad.Input("Out@GRAD").Output("X@GRAD");
  AddAttrs(&grad);
  grad.Infer(InferGradLikeInput).Grad(GradMaker(SecondMaker));
  grad.Reference(BindClipGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef second("clip_double_grad");
  second.Input("X").OptionalInput("Min").OptionalInput("Max");
  second.Input("grad_x@GRAD").Output("grad_out@GRAD");
  AddAttrs(&second);
  second.Infer(InferDoubleGrad).Reference(BindClipDoubleGrad);
  second.Grad(LinearThird("clip_grad", "X", "X", {"Min", "Max"}));
  return registry->Add(std::move(second));
}

}  // namespace pd
