// SPDX-License-Identifier: Apache-2.0
// Out = X as out_dtype: floats to integers truncate, to bool is "not 0",
// complex to real drops the imaginary part, to half truncates
// (truncate_half.h), or rounds to nearest where use_mkldnn is set, as oneDNN's
// does. X@GRAD = Out@GRAD as in_dtype: a cast op again.
#include <complex>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/truncate_half.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

template <typename T>
constexpr bool kComplex = std::is_same_v<T, std::complex<float>> ||
                          std::is_same_v<T, std::complex<double>>;
template <typename T>
constexpr bool kHalf =
    std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

template <typename To, bool kNearest, typename From>
To Converted(From v) {
  if constexpr (kHalf<From> && !std::is_same_v<From, To>) {
    return Converted<To, kNearest>(static_cast<float>(v));
  } else if constexpr (kComplex<From> && kComplex<To>) {
    using R = typename To::value_type;
    return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
  } else if constexpr (kComplex<From> && std::is_same_v<To, bool>) {
    return v.real() != 0 || v.imag() != 0;
  } else if constexpr (kComplex<From>) {
    return Converted<To, kNearest>(v.real());
  } else if constexpr (kComplex<To>) {
    return To(static_cast<typename To::value_type>(v));
  } else if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (kHalf<To> && kNearest) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, Float16>) {
    return TruncatedFloat16(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return TruncatedBFloat16(static_cast<float>(v));
  } else {
    return static_cast<To>(v);
  }
}

absl::StatusOr<DType> TypeAttr(const OpDesc& op, const char* name) {
  const int32_t code = op.Attr<int32_t>(name);
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr '%s' is %d, which is no dtype", name, code);
  return *dtype;
}

absl::Status InferCast(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  PD_ASSIGN_OR_RETURN(out.dtype, TypeAttr(context->op(), "out_dtype"));
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCast(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() == out->dtype()) {
    return AliasOrCopy(context, x, out);
  }
  const bool nearest = context->op().Attr<bool>("use_mkldnn");
  return DispatchAll(x->dtype(), [&](auto from) -> absl::StatusOr<Step> {
    using From = typename decltype(from)::type;
    return DispatchAll(out->dtype(), [&](auto to) -> absl::StatusOr<Step> {
      using To = typename decltype(to)::type;
      return Step([x, out, nearest, n = x->size()](const RunContext&) {
        const From* in = x->data<From>();
        To* result = out->data<To>();
        ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
          if (nearest)
            for (int64_t i = begin; i < end; ++i)
              result[i] = Converted<To, true>(in[i]);
          else
            for (int64_t i = begin; i < end; ++i)
              result[i] = Converted<To, false>(in[i]);
        });
        return absl::OkStatus();
      });
    });
  });
}

absl::StatusOr<std::vector<OpDesc>> CastGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  OpDesc op;
  op.type = "cast";
  op.SetInput("X", {GradName(request.op.Out("Out"))});
  op.SetOutput("Out", {GradName(request.op.In("X"))});
  op.attrs["in_dtype"] = request.op.Attr<int32_t>("out_dtype");
  op.attrs["out_dtype"] = request.op.Attr<int32_t>("in_dtype");
  if (const Attribute* onednn = request.op.FindAttr("use_mkldnn"))
    op.attrs["use_mkldnn"] = *onednn;
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterCast(OpRegistry* registry) {
  OpDef op("cast");
  op.Input("X").Output("Out").RequiredAttr("in_dtype", AttrType::kInt);
  op.RequiredAttr("out_dtype", AttrType::kInt);
  // PaddlePaddle's gradient of a cast asks for it.
  op.Attr("use_mkldnn", false);
  op.With(Trait::kShapeArithmetic)
      .With(Trait::kConvertsDtype)
      .Infer(InferCast)
      .Grad(GradMaker(CastGrad))
      .Reference(BindKeepingRows<BindCast>);
  return registry->Add(std::move(op));
}

}  // namespace pd
