// SPDX-License-Identifier: Apache-2.0
// Tensors of one value:
//   fill_constant: of shape `shape` (or ShapeTensor, ShapeTensorList) and
//     `dtype`; the value is ValueTensor's, else str_value's, else `value`
//   empty: the same, whose elements PaddlePaddle leaves undefined; zeros here
//   fill_constant_batch_size_like: its extent output_dim_idx is Input's
//     input_dim_idx
//   fill_any_like: X's shape; dtype -1 is X's
//   fill_zeros_like, fill_zeros_like2: zeros
// -0 stays -0, "nan" and "inf" are values. No gradients.
#include <complex>
#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/truncate_half.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<DType> DTypeAttr(const OpDesc& op, DType otherwise) {
  const int32_t code = op.AttrOr<int32_t>("dtype", -1);
  if (code < 0) return otherwise;
  const auto dtype = DTypeFromCode(code);
  if (!dtype.has_value())
    return InvalidArgument("attr 'dtype' is %d, which is no dtype", code);
  return *dtype;
}

absl::Status InferFillConstant(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype,
                      DTypeAttr(context->op(), DType::kFloat32));
  context->SetOutput(
      "Out", RequestedInts(*context, "ShapeTensor", "ShapeTensorList", "shape"),
      dtype);
  return absl::OkStatus();
}

absl::Status InferFillBatchSizeLike(InferContext* context) {
  PD_ASSIGN_OR_RETURN(const DType dtype,
                      DTypeAttr(context->op(), DType::kFloat32));
  Shape shape = IntsAttr(context->op(), "shape");
  const Shape& input = context->Input("Input").shape;
  PD_ASSIGN_OR_RETURN(const int from,
                      NormalizeAxis(context->Attr<int32_t>("input_dim_idx"),
                                    input.size(), "input_dim_idx"));
  PD_ASSIGN_OR_RETURN(const int to,
                      NormalizeAxis(context->Attr<int32_t>("output_dim_idx"),
                                    shape.size(), "output_dim_idx"));
  shape[static_cast<size_t>(to)] = input[static_cast<size_t>(from)];
  context->SetOutput("Out", std::move(shape), dtype);
  return absl::OkStatus();
}

absl::Status InferFillLike(InferContext* context) {
  TensorMeta meta = context->Input("X");
  meta.value = nullptr;
  PD_ASSIGN_OR_RETURN(meta.dtype, DTypeAttr(context->op(), meta.dtype));
  context->SetOutput("Out", std::move(meta));
  return absl::OkStatus();
}

template <typename T, typename From>
T Value(From number) {
  if constexpr (std::is_same_v<T, Float16>)
    return TruncatedFloat16(static_cast<float>(number));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return TruncatedBFloat16(static_cast<float>(number));
  else
    return static_cast<T>(number);
}

// The value as T: integers are read exactly.
template <typename T>
absl::StatusOr<T> ValueOf(const OpDesc& op) {
  const std::string text = op.AttrOr<std::string>("str_value", "");
  const float value = op.AttrOr("value", 0.0f);
  if (text.empty()) return Value<T>(value);
  if constexpr (std::is_same_v<T, int64_t>) {
    int64_t whole = 0;
    if (absl::SimpleAtoi(text, &whole)) return whole;
  }
  double number = 0;
  if (!absl::SimpleAtod(text, &number))
    return InvalidArgument("attr 'str_value' is '%s'; expected a number", text);
  return Value<T>(number);
}

absl::StatusOr<Step> BindFill(BindContext* context) {
  for (const char* slot : {"X", "Input", "ShapeTensor", "ShapeTensorList"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
  Tensor* out = context->Output("Out");
  Tensor* from = context->Input("ValueTensor");
  if (from != nullptr && (from->size() != 1 || from->dtype() != out->dtype()))
    return Unimplemented("ValueTensor is %s %s; expected one %s",
                         Name(from->dtype()), ToString(from->shape()),
                         Name(out->dtype()));
  return DispatchAll(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const T value, ValueOf<T>(context->op()));
    return Step([out, from, value, n = out->size()](const RunContext&) {
      const T v = from != nullptr ? from->data<T>()[0] : value;
      T* result = out->data<T>();
      ParallelFor(n, kElementGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) result[i] = v;
      });
      return absl::OkStatus();
    });
  });
}

absl::Status AddLike(OpRegistry* registry, const std::string& type,
                     bool has_value, bool has_dtype) {
  OpDef op(type);
  op.Input("X").Output("Out");
  if (has_value) op.Attr("value", 0.0f);
  if (has_dtype) op.Attr("dtype", int32_t{-1});
  op.Infer(InferFillLike).NoGrad().Reference(BindFill);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterFill(OpRegistry* registry) {
  OpDef constant("fill_constant");
  constant.OptionalInput("ValueTensor").OptionalInput("ShapeTensor");
  constant.OptionalInputs("ShapeTensorList").Output("Out");
  constant.Attr("shape", std::vector<int64_t>()).Attr("dtype", int32_t{5});
  constant.Attr("value", 0.0f).Attr("str_value", std::string());
  // Where PaddlePaddle puts the result; there is one place here.
  constant.Attr("force_cpu", false).Attr("place_type", int32_t{-1});
  constant.With(Trait::kShapeArithmetic)
      .Infer(InferFillConstant)
      .NoGrad()
      .Reference(BindFill);
  PD_RETURN_IF_ERROR(registry->Add(std::move(constant)));

  OpDef empty("empty");
  empty.OptionalInput("ShapeTensor").OptionalInputs("ShapeTensorList");
  empty.Output("Out").Attr("shape", std::vector<int64_t>());
  empty.Attr("dtype", int32_t{5}).Infer(InferFillConstant).NoGrad();
  empty.Reference(BindFill);
  PD_RETURN_IF_ERROR(registry->Add(std::move(empty)));

  OpDef batch("fill_constant_batch_size_like");
  batch.Input("Input").Output("Out");
  batch.RequiredAttr("shape", AttrType::kInts).Attr("dtype", int32_t{5});
  batch.Attr("value", 0.0f).Attr("str_value", std::string());
  batch.Attr("input_dim_idx", int32_t{0}).Attr("output_dim_idx", int32_t{0});
  batch.Infer(InferFillBatchSizeLike).NoGrad().Reference(BindFill);
  PD_RETURN_IF_ERROR(registry->Add(std::move(batch)));

  PD_RETURN_IF_ERROR(AddLike(registry, "fill_any_like", true, true));
  PD_RETURN_IF_ERROR(AddLike(registry, "fill_zeros_like", false, false));
  return AddLike(registry, "fill_zeros_like2", false, true);
}

}  // namespace pd
