// SPDX-License-Identifier: Apache-2.0
// The transducer loss (Graves 2012): input [B, T, U + 1, K] are logarithms of
// probabilities, taken as they are; label [B, U]. At (t, u) a path goes on to
// t + 1 by `blank`, or to u + 1 by label[u]. With a and b the log probabilities
// of the ways to (t, u) and from it:
//   loss[n] = -b(0, 0)
//   warprnntgrad at blank: -exp(a(t, u) + input + b(t + 1, u) - b(0, 0))
//   at label[u]: -(1 + fastemit_lambda) * exp(a + input + b(t, u + 1) - b(0,
//   0))
//     (FastEmit, Yu et al. 2021: the loss itself stays as it is); else 0
//   input@GRAD = loss@GRAD * warprnntgrad
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/loss/log_add.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// One sample: T frames, n = U + 1 states of it, rows `width` states apart.
template <typename T>
struct Lattice {
  const T* x;
  int64_t frames, states, width, classes, blank;
  const std::vector<int64_t>& tokens;

  int64_t Blank(int64_t t, int64_t u) const {
    return (t * width + u) * classes + blank;
  }
  int64_t Token(int64_t t, int64_t u) const {
    return (t * width + u) * classes + tokens[static_cast<size_t>(u)];
  }
  size_t At(int64_t t, int64_t u) const {
    return static_cast<size_t>(t * states + u);
  }

  std::vector<double> Before() const {
    std::vector<double> a(At(frames, 0), kLogZero);
    a[0] = 0;
    for (int64_t t = 0; t < frames; ++t)
      for (int64_t u = 0; u < states; ++u) {
        double& here = a[At(t, u)];
        if (t > 0) here = LogAdd(here, a[At(t - 1, u)] + x[Blank(t - 1, u)]);
        if (u > 0) here = LogAdd(here, a[At(t, u - 1)] + x[Token(t, u - 1)]);
      }
    return a;
  }

  // One frame more than there are: the end.
  std::vector<double> After() const {
    std::vector<double> b(At(frames + 1, 0), kLogZero);
    b[At(frames, states - 1)] = 0;
    for (int64_t t = frames; t-- > 0;)
      for (int64_t u = states; u-- > 0;) {
        double here = b[At(t + 1, u)] + x[Blank(t, u)];
        if (u + 1 < states)
          here = LogAdd(here, b[At(t, u + 1)] + x[Token(t, u)]);
        b[At(t, u)] = here;
      }
    return b;
  }

  // Returns the log likelihood; sets the gradient, which is 0 so far.
  double Backward(double emit, T* grad) const {
    const auto a = Before(), b = After();
    for (int64_t t = 0; t < frames; ++t)
      for (int64_t u = 0; u < states; ++u) {
        const double way = a[At(t, u)] - b[0];
        const int64_t i = Blank(t, u);
        grad[i] = static_cast<T>(-std::exp(way + x[i] + b[At(t + 1, u)]));
        if (u + 1 >= states) continue;
        const int64_t j = Token(t, u);
        grad[j] -=
            static_cast<T>(emit * std::exp(way + x[j] + b[At(t, u + 1)]));
      }
    return b[0];
  }
};

absl::Status ReadSample(const Tensor& label, const Tensor& frames,
                        const Tensor& lengths, const Shape& shape, int64_t n,
                        std::vector<int64_t>* tokens) {
  const int64_t t = LabelAt(frames, n), u = LabelAt(lengths, n);
  if (t < 1 || t > shape[1] || u < 0 || u >= shape[2] || u > label.dim(1))
    return InvalidArgument(
        "sample %d has %d frames and %d labels; 'input' has "
        "shape %s",
        n, t, u, ToString(shape));
  tokens->clear();
  for (int64_t i = 0; i < u; ++i) {
    tokens->push_back(LabelAt(label, n * label.dim(1) + i));
    if (tokens->back() < 0 || tokens->back() >= shape[3])
      return InvalidArgument("'label' holds %d; expected 0 to %d",
                             tokens->back(), shape[3] - 1);
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const BindContext& context) {
  const Tensor* x = context.Input("input");
  const Tensor* label = context.Input("label");
  const int32_t blank = context.Attr<int32_t>("blank");
  if (x->rank() != 4 || label->rank() != 2 || label->dim(0) != x->dim(0))
    return InvalidArgument(
        "'input' has shape %s, 'label' has shape %s; "
        "expected [B, T, U + 1, K] and [B, U]",
        ToString(x->shape()), ToString(label->shape()));
  if (blank < 0 || blank >= x->dim(3))
    return InvalidArgument("attr 'blank' is %d; there are %d classes", blank,
                           x->dim(3));
  for (const char* slot : {"label", "input_lengths", "label_lengths"})
    PD_RETURN_IF_ERROR(CheckLabelType(slot, context.Input(slot)->dtype()));
  for (const char* slot : {"input_lengths", "label_lengths"})
    PD_RETURN_IF_ERROR(
        ExpectElements(context, slot, context.Input(slot)->dtype(), x->dim(0)));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWarprnnt(BindContext* context) {
  Tensor* x = context->Input("input");
  Tensor* label = context->Input("label");
  Tensor* frames = context->Input("input_lengths");
  Tensor* lengths = context->Input("label_lengths");
  Tensor* loss = context->Output("loss");
  Tensor* grad = context->Output("warprnntgrad");
  PD_RETURN_IF_ERROR(CheckInputs(*context));
  const int64_t blank = context->Attr<int32_t>("blank");
  const double emit = 1.0 + context->Attr<float>("fastemit_lambda");
  if (grad == nullptr) grad = context->Scratch(x->bytes());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, shape = x->shape()](const RunContext&) -> absl::Status {
      const int64_t size = shape[1] * shape[2] * shape[3];
      std::fill_n(grad->data<T>(), shape[0] * size, T(0));
      std::vector<int64_t> tokens;
      for (int64_t n = 0; n < shape[0]; ++n) {
        PD_RETURN_IF_ERROR(
            ReadSample(*label, *frames, *lengths, shape, n, &tokens));
        const Lattice<T> lattice{x->data<T>() + n * size,
                                 LabelAt(*frames, n),
                                 static_cast<int64_t>(tokens.size()) + 1,
                                 shape[2],
                                 shape[3],
                                 blank,
                                 tokens};
        loss->data<T>()[n] =
            static_cast<T>(-lattice.Backward(emit, grad->data<T>() + n * size));
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindWarprnntGrad(BindContext* context) {
  Tensor* x = context->Input("input");
  Tensor* grad = context->Input("warprnntgrad");
  Tensor* dloss = context->Input("loss@GRAD");
  Tensor* dx = context->Output("input@GRAD");
  context->NoBuffer(x);
  if (x->rank() != 4)
    return InvalidArgument("'input' has shape %s; expected [B, T, U + 1, K]",
                           ToString(x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "warprnntgrad", x->dtype(), x->size()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "loss@GRAD", x->dtype(), x->dim(0)));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->dim(0), total = x->size()](const RunContext&) {
      const int64_t size = n == 0 ? 0 : total / n;
      for (int64_t i = 0; i < total; ++i)
        dx->data<T>()[i] = dloss->data<T>()[i / size] * grad->data<T>()[i];
      return absl::OkStatus();
    });
  });
}

absl::Status InferWarprnnt(InferContext* context) {
  const TensorMeta& x = context->Input("input");
  if (x.shape.size() != 4)
    return InvalidArgument("'input' has shape %s; expected [B, T, U + 1, K]",
                           ToString(x.shape));
  context->SetOutput("loss", {x.shape[0]}, x.dtype);
  context->Share("input", "warprnntgrad");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterWarprnnt(OpRegistry* registry) {
  OpDef op("warprnnt");
  op.Input("input").Input("label").Input("input_lengths");
  op.Input("label_lengths").Output("loss").IntermediateOutput("warprnntgrad");
  op.Attr("blank", int32_t{0}).Attr("fastemit_lambda", 0.0f);
  op.Infer(InferWarprnnt).Reference(BindWarprnnt);
  op.Grad(GradSpec{"warprnnt_grad",
                   {"input", "input_lengths"},
                   {"warprnntgrad"},
                   {"loss"},
                   {"input"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("warprnnt_grad");
  grad.Input("input").OptionalInput("input_lengths").Input("warprnntgrad");
  grad.Input("loss@GRAD").Output("input@GRAD");
  grad.Attr("blank", int32_t{0}).Attr("fastemit_lambda", 0.0f);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindWarprnntGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
