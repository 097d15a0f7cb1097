// SPDX-License-Identifier: Apache-2.0
// check_numerics: what a tensor holds. stats = how many NaN, infinities and
// zeros (int64), values = maximum, minimum and mean (float32). At level 0, NaN
// or an infinity is an error; above that the numbers are for others to read.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferCheckNumerics(InferContext* context) {
  context->SetOutput("stats", {3}, DType::kInt64);
  context->SetOutput("values", {3}, DType::kFloat32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCheckNumerics(BindContext* context) {
  Tensor* tensor = context->Input("tensor");
  Tensor* stats = context->Output("stats");
  Tensor* values = context->Output("values");
  const bool stops = context->Attr<int32_t>("check_nan_inf_level") == 0;
  const std::string op = context->Attr<std::string>("op_type");
  const std::string name = context->Attr<std::string>("var_name");
  return DispatchTypes<float, double, Float16, BFloat16>(
      tensor->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=, n = tensor->size()](const RunContext&) -> absl::Status {
          const T* x = tensor->data<T>();
          int64_t nan = 0, infinite = 0, zero = 0;
          double most = -std::numeric_limits<double>::infinity();
          double least = -most, sum = 0;
          for (int64_t i = 0; i < n; ++i) {
            const auto v = static_cast<double>(x[i]);
            nan += std::isnan(v);
            infinite += std::isinf(v);
            zero += v == 0;
            most = std::max(most, v);
            least = std::min(least, v);
            sum += v;
          }
          int64_t* counts = stats->data<int64_t>();
          counts[0] = nan;
          counts[1] = infinite;
          counts[2] = zero;
          float* of = values->data<float>();
          of[0] = static_cast<float>(most);
          of[1] = static_cast<float>(least);
          of[2] = static_cast<float>(sum / static_cast<double>(n));
          if (stops && nan + infinite > 0)
            return DataLoss(
                "tensor '%s' of op '%s' has %d NaN and %d infinities among %d "
                "elements",
                name, op, nan, infinite, n);
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterCheckNumerics(OpRegistry* registry) {
  OpDef op("check_numerics");
  op.Input("tensor").Output("stats").Output("values");
  op.Attr("op_type", std::string()).Attr("var_name", std::string());
  op.Attr("check_nan_inf_level", int32_t{0});
  op.Attr("stack_height_limit", int32_t{-1});
  op.Attr("output_dir", std::string());
  op.Infer(InferCheckNumerics).NoGrad().Reference(BindCheckNumerics);
  return registry->Add(std::move(op));
}

}  // namespace pd
