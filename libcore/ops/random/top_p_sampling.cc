// SPDX-License-Identifier: Apache-2.0
// top_p_sampling (A. Holtzman et al., "The curious case of neural text
// degeneration", 2020): for each row of probabilities x [rows, words] a word
// drawn from the likeliest words whose sum reaches ps of the row, in proportion
// to their probabilities. Where the word's probability is less than threshold,
// the likeliest one. ids are the words [rows, 1], out their probabilities.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferTopP(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  if (x.shape.size() != 2 || x.shape[1] == 0)
    return InvalidArgument("'x' has shape %s; expected [rows, words]",
                           ToString(x.shape));
  context->SetOutput("out", {x.shape[0], 1}, x.dtype);
  context->SetOutput("ids", {x.shape[0], 1}, DType::kInt64);
  return absl::OkStatus();
}

// The place in `order`, likeliest first, where the sum passes u * share.
template <typename T>
int64_t Draw(const T* row, const std::vector<int64_t>& order, double share,
             double u) {
  double sum = 0;
  size_t count = 0;
  while (count < order.size()) {
    sum += static_cast<double>(row[order[count++]]);
    if (sum >= share) break;
  }
  const double wanted = u * std::min(sum, std::max(share, 0.0));
  double passed = 0;
  for (size_t k = 0; k < count; ++k) {
    passed += static_cast<double>(row[order[k]]);
    if (passed >= wanted) return order[k];
  }
  return order[0];  // NaN among the probabilities
}

absl::StatusOr<Step> BindTopP(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* share = context->Input("ps");
  Tensor* threshold = context->Input("threshold");
  Tensor* out = context->Output("out");
  Tensor* ids = context->Output("ids");
  for (const char* slot : {"ps", "threshold"})
    if (context->Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), x->dim(0)));
  RandomSource source = RandomSourceOf(*context, "ids");
  if (context->Attr<int32_t>("seed") < 0) source.seed = 0;
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      const Philox numbers = source.Numbers(run);
      const int64_t words = x->dim(1);
      std::vector<int64_t> order(static_cast<size_t>(words));
      for (int64_t r = 0; r < x->dim(0); ++r) {
        const T* row = x->data<T>() + r * words;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
          return row[a] == row[a] && (row[b] != row[b] || row[a] > row[b]);
        });
        int64_t word =
            Draw(row, order, static_cast<double>(share->data<T>()[r]),
                 OpenUniform(numbers, r));
        if (threshold != nullptr && row[word] < threshold->data<T>()[r])
          word = order[0];
        ids->data<int64_t>()[r] = word;
        out->data<T>()[r] = row[word];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterTopPSampling(OpRegistry* registry) {
  OpDef op("top_p_sampling");
  op.Input("x").Input("ps").OptionalInput("threshold").Output("out");
  op.Output("ids").Attr("seed", int32_t{-1});
  op.Infer(InferTopP).NoGrad().Reference(BindTopP);
  return registry->Add(std::move(op));
}

}  // namespace pd
