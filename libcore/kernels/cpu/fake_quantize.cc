// SPDX-License-Identifier: Apache-2.0
// The fake-quantize ops that training runs over activations, on whatever layout
// comes: padding is zero, rounds to zero and is never the greatest. The bits
// are the reference's.
#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/quantize/quantize.h"

namespace pd {
namespace cpu {
namespace {

constexpr int64_t kPart = 16384;  // elements of which one thread takes the most

size_t FakeQuantizeParts(int64_t n) {
  return static_cast<size_t>((n + kPart - 1) / kPart);
}

// `most` has room for Parts(n).
float AbsMax(const float* x, int64_t n, float* most) {
  const auto parts = static_cast<int64_t>(FakeQuantizeParts(n));
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      float m = 0;
      const int64_t last = std::min((part + 1) * kPart, n);
#pragma omp simd reduction(max : m)
      for (int64_t i = part * kPart; i < last; ++i)
        m = std::max(m, std::fabs(x[i]));
      most[part] = m;
    }
  });
  return parts == 0 ? 0 : *std::max_element(most, most + parts);
}

// round(levels / scale * clip(x)) * scale / levels, halves away from zero.
void RoundAll(const float* x, int64_t n, float levels, float scale,
              float* out) {
  const float factor =
      levels * (1.0f / (scale <= 1e-30f ? scale + 1e-6f : scale));
  ParallelFor(n, kPart, [&](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const float y = factor * std::max(std::min(x[i], scale), -scale);
      const float whole = std::trunc(y);
      const float more =
          std::fabs(y - whole) >= 0.5f ? std::copysign(1.0f, y) : 0.0f;
      out[i] = (whole + more) * scale / levels;
    }
  });
}

// Where the scale comes from: a moving average, the batch alone, or what is
// there already.
struct Scale {
  Tensor *in = nullptr, *out = nullptr;
  Tensor *in_state = nullptr, *in_accum = nullptr;
  Tensor *out_state = nullptr, *out_accum = nullptr;
  float rate = 0;
  bool moving = false, test = false;

  float Of(const Tensor& x, float* most) const {
    float scale;
    if (test) {
      scale = *in->data<float>();
    } else {
      scale = AbsMax(x.data<float>(), x.physical_size(), most);
      if (moving)
        scale = MoveScale(scale, rate, *in_state->data<float>(),
                          *in_accum->data<float>(), out_state->data<float>(),
                          out_accum->data<float>());
    }
    if (out != nullptr) *out->data<float>() = scale;
    return scale;
  }
};

absl::StatusOr<Scale> ReadScale(BindContext* context, bool moving) {
  Scale scale;
  scale.moving = moving;
  scale.out = context->Output("OutScale");
  if (!moving) return scale;
  scale.test = context->Attr<bool>("is_test");
  scale.rate = context->Attr<float>("moving_rate");
  if (scale.test) {
    PD_RETURN_IF_ERROR(ExpectElements(*context, "InScale", DType::kFloat32, 1));
    scale.in = context->Input("InScale");
    return scale;
  }
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InState", DType::kFloat32, 1));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "InAccum", DType::kFloat32, 1));
  scale.in_state = context->Input("InState");
  scale.in_accum = context->Input("InAccum");
  scale.out_state = context->Output("OutState");
  scale.out_accum = context->Output("OutAccum");
  if (scale.out_state == nullptr || scale.out_accum == nullptr)
    return Unimplemented("there is no state");
  return scale;
}

}  // namespace

absl::StatusOr<Step> BindFakeQuantDequant(BindContext* context) {
  Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  const bool moving = absl::StrContains(context->op().type, "moving_average");
  PD_ASSIGN_OR_RETURN(const QuantAttrs attrs, ReadQuantAttrs(context->op()));
  if (attrs.to_even) return Unimplemented("it rounds halves away from zero");
  PD_ASSIGN_OR_RETURN(const Scale scale, ReadScale(context, moving));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  Tensor* most =
      context->Scratch(sizeof(float) * FakeQuantizeParts(x->physical_size()));
  return Step(
      [=, levels = static_cast<float>(attrs.levels)](const RunContext&) {
        const float s = scale.Of(*x, most->data<float>());
        RoundAll(x->data<float>(), x->physical_size(), levels, s,
                 out->data<float>());
        return absl::OkStatus();
      });
}

absl::StatusOr<Step> BindObserveScale(BindContext* context) {
  Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32 || context->Output("Out") != nullptr ||
      context->Attr<bool>("is_test"))
    return Unimplemented("it is for float32 in training, without Out");
  PD_ASSIGN_OR_RETURN(const Scale scale, ReadScale(context, true));
  Tensor* most =
      context->Scratch(sizeof(float) * FakeQuantizeParts(x->physical_size()));
  return Step([=](const RunContext&) {
    scale.Of(*x, most->data<float>());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindStraightThrough(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(Tensor * placed, context->Out(dx, dout->layout()));
  if (placed != dx) return Unimplemented("the layout of 'X@GRAD' is fixed");
  context->Alias(dout, dx);
  return Step();
}

}  // namespace cpu
}  // namespace pd
