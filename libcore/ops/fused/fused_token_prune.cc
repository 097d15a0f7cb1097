// SPDX-License-Identifier: Apache-2.0
// fused_token_prune: the tokens of X [batch, steps, width] that others attend
// to most. A token's score is the sum of its column of Attn [batch, heads,
// steps, steps] over heads and rows, where Mask is not negative. As many are
// kept as NewMask [batch, heads, kept, kept] has: the highest scores first, or
// in X's order with keep_order; the first token always with keep_first_token.
// SlimmedX are those tokens, CLSInds their numbers. No gradient.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferTokenPrune(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const Shape &attn = context->Input("Attn").shape,
              &kept = context->Input("NewMask").shape;
  const auto same = [](int64_t a, int64_t b) {
    return a == b || a < 0 || b < 0;
  };
  if (x.shape.size() != 3 || attn.size() != 4 || kept.size() != 4 ||
      !same(attn[0], x.shape[0]) || !same(attn[2], x.shape[1]) ||
      !same(attn[3], x.shape[1]) || kept[2] > attn[2])
    return InvalidArgument(
        "'X', 'Attn' and 'NewMask' have shapes %s, %s and %s",
        ToString(x.shape), ToString(attn), ToString(kept));
  context->SetOutput("SlimmedX", {x.shape[0], kept[2], x.shape[2]}, x.dtype);
  context->SetOutput("CLSInds", {x.shape[0], kept[2]}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindTokenPrune(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* attn = context->Input("Attn");
  Tensor* mask = context->Input("Mask");
  Tensor* slim = context->Output("SlimmedX");
  Tensor* numbers = context->Output("CLSInds");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Mask", attn->dtype(), attn->shape()));
  const bool first = context->Attr<bool>("keep_first_token");
  const bool ordered = context->Attr<bool>("keep_order");
  const int64_t heads = attn->dim(1), steps = x->dim(1), width = x->dim(2);
  const int64_t kept = slim->dim(1);
  if (attn->dtype() != x->dtype())
    return InvalidArgument("'Attn' is %s, 'X' is %s", Name(attn->dtype()),
                           Name(x->dtype()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ParallelFor(x->dim(0), 1, [&](int64_t begin, int64_t end) {
        std::vector<T> scores(static_cast<size_t>(steps));
        std::vector<int64_t> order(static_cast<size_t>(steps));
        for (int64_t n = begin; n < end; ++n) {
          std::fill(scores.begin(), scores.end(), T(0));
          const int64_t base = n * heads * steps * steps;
          for (int64_t i = 0; i < heads * steps * steps; ++i)
            if (mask->data<T>()[base + i] >= T(0))
              scores[static_cast<size_t>(i % steps)] +=
                  attn->data<T>()[base + i];
          if (first && steps > 0)
            scores[0] = std::numeric_limits<T>::infinity();
          std::iota(order.begin(), order.end(), 0);
          // NaN is no score: such tokens go last.
          const auto less = [&](int64_t a, int64_t b) {
            const T p = scores[static_cast<size_t>(a)];
            const T q = scores[static_cast<size_t>(b)];
            return p == p && (q != q || p > q);
          };
          std::stable_sort(order.begin(), order.end(), less);
          if (ordered) std::sort(order.begin(), order.begin() + kept);
          for (int64_t k = 0; k < kept; ++k) {
            const int64_t token = order[static_cast<size_t>(k)];
            numbers->data<int64_t>()[n * kept + k] = token;
            std::copy_n(x->data<T>() + (n * steps + token) * width, width,
                        slim->data<T>() + (n * kept + k) * width);
          }
        }
      });
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterFusedTokenPrune(OpRegistry* registry) {
  OpDef op("fused_token_prune");
  op.Input("Attn").Input("X").Input("Mask").Input("NewMask");
  op.Output("SlimmedX").Output("CLSInds");
  op.Attr("keep_first_token", true).Attr("keep_order", false);
  op.Infer(InferTokenPrune).NoGrad().Reference(BindTokenPrune);
  return registry->Add(std::move(op));
}

}  // namespace pd
