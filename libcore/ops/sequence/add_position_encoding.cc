// SPDX-License-Identifier: Apache-2.0
// X [n, steps, columns] or, with LoD, [all steps, columns]; columns is even,
// half of it is h. With the position p in its sequence and k < h,
//   a = p / 10000^(k / (h - 1)), or p / 10000 when h is 1
//   Out[p, k] = alpha * X[p, k] + beta * sin(a)
//   Out[p, h + k] = alpha * X[p, h + k] + beta * cos(a)
// X@GRAD = alpha * Out@GRAD
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckShape(const Shape& x) {
  if ((x.size() == 2 || x.size() == 3) && (x.back() < 0 || x.back() % 2 == 0))
    return absl::OkStatus();
  return InvalidArgument(
      "'X' has shape %s; expected rank 2 or 3 and an even last extent",
      ToString(x));
}

// The position of every row in its sequence.
absl::StatusOr<std::vector<int64_t>> Positions(const Tensor& x) {
  std::vector<int64_t> positions;
  if (x.rank() == 3) {
    for (int64_t n = 0; n < x.dim(0); ++n)
      for (int64_t p = 0; p < x.dim(1); ++p) positions.push_back(p);
    return positions;
  }
  if (x.lod().empty() || x.lod()[0].empty() ||
      static_cast<int64_t>(x.lod()[0].back()) != x.dim(0))
    return InvalidArgument("'X' of shape %s has no sequences that fit",
                           ToString(x.shape()));
  const std::vector<uint64_t>& offsets = x.lod()[0];
  for (size_t n = 0; n + 1 < offsets.size(); ++n)
    for (uint64_t p = offsets[n]; p < offsets[n + 1]; ++p)
      positions.push_back(static_cast<int64_t>(p - offsets[n]));
  return positions;
}

absl::StatusOr<Step> BindPositionEncodingForward(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const float alpha = context->Attr<float>("alpha");
  const float beta = context->Attr<float>("beta");
  PD_RETURN_IF_ERROR(CheckShape(x->shape()));
  PD_ASSIGN_OR_RETURN(const auto positions, Positions(*x));
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t columns = x->dim(x->rank() - 1), half = columns / 2;
      std::vector<double> divisors;
      for (int64_t k = 0; k < half; ++k)
        divisors.push_back(
            half > 1 ? std::pow(10000.0, static_cast<double>(k) / (half - 1))
                     : 10000.0);
      for (size_t r = 0; r < positions.size(); ++r) {
        const T* from = x->data<T>() + static_cast<int64_t>(r) * columns;
        T* to = out->data<T>() + static_cast<int64_t>(r) * columns;
        for (int64_t k = 0; k < half; ++k) {
          const double a = static_cast<double>(positions[r]) / divisors[k];
          to[k] = static_cast<T>(from[k] * alpha + std::sin(a) * beta);
          to[half + k] =
              static_cast<T>(from[half + k] * alpha + std::cos(a) * beta);
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPositionEncodingBackward(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const float alpha = context->Attr<float>("alpha");
  context->MayShare(dout, dx);
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < dout->size(); ++i)
        dx->data<T>()[i] = dout->data<T>()[i] * static_cast<T>(alpha);
      return absl::OkStatus();
    });
  });
}

absl::Status InferPositionEncoding(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckShape(context->Input("X").shape));
  return InferUnary(context);
}

absl::Status InferGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterAddPositionEncoding(OpRegistry* registry) {
  OpDef op("add_position_encoding");
  op.Input("X").Output("Out").Attr("alpha", 1.0f).Attr("beta", 1.0f);
  op.Infer(InferPositionEncoding).Reference(BindPositionEncodingForward);
  op.Grad(GradSpec{"add_position_encoding_grad", {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("add_position_encoding_grad");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("alpha", 1.0f).Attr("beta", 1.0f);
  grad.Infer(InferGrad).NoGrad().Reference(BindPositionEncodingBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
