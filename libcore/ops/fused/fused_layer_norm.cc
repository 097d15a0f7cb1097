// SPDX-License-Identifier: Apache-2.0
// Sums with a layer norm behind them, as PaddlePaddle's inference passes fuse
// them; no gradients. With N(s) = (s - mean(s)) / sqrt(var(s) + epsilon) by row
//   skip_layernorm: Out = N(X + Y) * Scale + Bias
//   fused_fc_elementwise_layernorm: Out = N(u(X W + Bias0) + Y) * Scale +
//   Bias1,
//     u is relu or nothing; Mean and Variance of the rows
//   fused_embedding_eltwise_layernorm: Out = N(sum over i of row Ids[i] of
//     Embs[i]) * Scale + Bias
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Rows of `width` elements; the tensors but Out may be null.
struct FusedLayerNormRows {
  int64_t count = 0, width = 0;
  double epsilon = 0;
  Tensor *scale = nullptr, *bias = nullptr, *mean = nullptr,
         *variance = nullptr;
};

// Reads the tensors of the norm. `slots` are those of scale and bias.
absl::StatusOr<FusedLayerNormRows> ReadFusedLayerNormRows(BindContext* context,
                                                          int64_t count,
                                                          int64_t width,
                                                          DType dtype,
                                                          const char* bias) {
  FusedLayerNormRows rows;
  rows.count = count;
  rows.width = width;
  rows.epsilon = context->Attr<float>("epsilon");
  for (const char* slot : {"Scale", bias})
    if (context->Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, dtype, width));
  rows.scale = context->Input("Scale");
  rows.bias = context->Input(bias);
  rows.mean = context->Output("Mean");
  rows.variance = context->Output("Variance");
  return rows;
}

// Normalises `out` in place.
template <typename T>
void Normalize(const FusedLayerNormRows& rows, T* out) {
  ParallelFor(rows.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      T* row = out + r * rows.width;
      double sum = 0, squares = 0;
      for (int64_t i = 0; i < rows.width; ++i) sum += row[i];
      const double mean = sum / static_cast<double>(rows.width);
      for (int64_t i = 0; i < rows.width; ++i)
        squares += (row[i] - mean) * (row[i] - mean);
      const double variance = squares / static_cast<double>(rows.width);
      const double inverse = 1 / std::sqrt(variance + rows.epsilon);
      for (int64_t i = 0; i < rows.width; ++i) {
        row[i] = static_cast<T>((row[i] - mean) * inverse);
        if (rows.scale != nullptr) row[i] *= rows.scale->data<T>()[i];
        if (rows.bias != nullptr) row[i] += rows.bias->data<T>()[i];
      }
      if (rows.mean != nullptr) rows.mean->data<T>()[r] = static_cast<T>(mean);
      if (rows.variance != nullptr)
        rows.variance->data<T>()[r] = static_cast<T>(variance);
    }
  });
}

absl::Status CheckAxis(const OpDesc& op, size_t rank) {
  const int32_t axis = op.Attr<int32_t>("begin_norm_axis");
  if (axis >= 1 && axis < static_cast<int32_t>(rank)) return absl::OkStatus();
  return InvalidArgument("attr 'begin_norm_axis' is %d for rank %d", axis,
                         rank);
}

absl::StatusOr<Step> BindSkip(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(CheckAxis(context->op(), x->rank()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y", x->dtype(), x->size()));
  const size_t axis =
      static_cast<size_t>(context->Attr<int32_t>("begin_norm_axis"));
  PD_ASSIGN_OR_RETURN(
      const FusedLayerNormRows rows,
      ReadFusedLayerNormRows(context, NumElements(x->shape(), 0, axis),
                             NumElements(x->shape(), axis, x->rank()),
                             x->dtype(), "Bias"));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < x->size(); ++i)
        out->data<T>()[i] = x->data<T>()[i] + y->data<T>()[i];
      Normalize<T>(rows, out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferSkip(InferContext* context) {
  PD_RETURN_IF_ERROR(
      CheckAxis(context->op(), context->Input("X").shape.size()));
  return InferUnary(context);
}

absl::StatusOr<Shape> FusedLayerNormFcShape(const OpDesc& op, const Shape& x,
                                            const Shape& w) {
  const int32_t axis = op.Attr<int32_t>("x_num_col_dims");
  if (axis < 1 || axis >= static_cast<int32_t>(x.size()) || w.size() != 2)
    return InvalidArgument(
        "attr 'x_num_col_dims' is %d, 'X' has shape %s and "
        "'W' %s",
        axis, ToString(x), ToString(w));
  const Shape inner(x.begin() + axis, x.end());
  if (!IsDynamic(inner) && w[0] >= 0 && NumElements(inner) != w[0])
    return InvalidArgument("'X' has shape %s and 'W' %s", ToString(x),
                           ToString(w));
  Shape out(x.begin(), x.begin() + axis);
  out.push_back(w[1]);
  return out;
}

absl::StatusOr<Step> BindFusedLayerNormFc(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* w = context->Input("W");
  Tensor* y = context->Input("Y");
  Tensor* bias = context->Input("Bias0");
  Tensor* out = context->Output("Out");
  const DType dtype = x->dtype();
  PD_ASSIGN_OR_RETURN(
      const Shape shape,
      FusedLayerNormFcShape(context->op(), x->shape(), w->shape()));
  PD_RETURN_IF_ERROR(CheckAxis(context->op(), shape.size()));
  const GemmShape gemm{NumElements(shape, 0, shape.size() - 1), w->dim(1),
                       w->dim(0)};
  PD_RETURN_IF_ERROR(ExpectInput(*context, "W", dtype, w->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Y", dtype, gemm.m * gemm.n));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias0", dtype, gemm.n));
  const size_t axis =
      static_cast<size_t>(context->Attr<int32_t>("begin_norm_axis"));
  PD_ASSIGN_OR_RETURN(
      const FusedLayerNormRows rows,
      ReadFusedLayerNormRows(context, NumElements(shape, 0, axis),
                             NumElements(shape, axis, shape.size()), dtype,
                             "Bias1"));
  const bool relu = context->Attr<std::string>("activation_type") == "relu";
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* to = out->data<T>();
      Gemm<T>(gemm, {{{0, 0}}}, T(1), x->data<T>(), w->data<T>(), to);
      for (int64_t i = 0; i < gemm.m * gemm.n; ++i) {
        if (bias != nullptr) to[i] += bias->data<T>()[i % gemm.n];
        if (relu && to[i] < T(0)) to[i] = T(0);
        to[i] += y->data<T>()[i];
      }
      Normalize<T>(rows, to);
      return absl::OkStatus();
    });
  });
}

absl::Status InferFusedLayerNormFc(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(
      const Shape shape,
      FusedLayerNormFcShape(context->op(), x.shape, context->Input("W").shape));
  PD_RETURN_IF_ERROR(CheckAxis(context->op(), shape.size()));
  const auto activation = context->Attr<std::string>("activation_type");
  if (activation != "" && activation != "relu")
    return InvalidArgument("attr 'activation_type' is '%s'; expected relu",
                           activation);
  const Shape outer(shape.begin(),
                    shape.begin() + context->Attr<int32_t>("begin_norm_axis"));
  context->SetOutput("Out", shape, x.dtype);
  for (const char* slot : {"Mean", "Variance"})
    context->SetOutput(slot, {IsDynamic(outer) ? -1 : NumElements(outer)},
                       x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindEmbedding(BindContext* context) {
  std::vector<Tensor*> ids, tables;
  for (size_t i = 0; i < context->InputCount("Ids"); ++i) {
    ids.push_back(context->Input("Ids", i));
    tables.push_back(context->Input("Embs", i));
    if (ids[i]->dtype() != DType::kInt64 || ids[i]->size() != ids[0]->size() ||
        tables[i]->dtype() != tables[0]->dtype() || tables[i]->rank() != 2 ||
        tables[i]->dim(1) != tables[0]->dim(1))
      return InvalidArgument("'Ids' %d is %s %s and 'Embs' %s", i,
                             Name(ids[i]->dtype()), ToString(ids[i]->shape()),
                             ToString(tables[i]->shape()));
  }
  Tensor* out = context->Output("Out");
  const DType dtype = tables[0]->dtype();
  PD_ASSIGN_OR_RETURN(const FusedLayerNormRows rows,
                      ReadFusedLayerNormRows(context, ids[0]->size(),
                                             tables[0]->dim(1), dtype, "Bias"));
  if (out->size() != rows.count * rows.width)
    return InvalidArgument("'Ids' has shape %s; expected one number a row",
                           ToString(ids[0]->shape()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* to = out->data<T>();
      std::fill_n(to, out->size(), T(0));
      for (size_t t = 0; t < ids.size(); ++t)
        for (int64_t r = 0; r < rows.count; ++r) {
          const int64_t id = ids[t]->data<int64_t>()[r];
          if (id < 0 || id >= tables[t]->dim(0))
            return InvalidArgument("'Ids' %d holds %d; its table has %d rows",
                                   t, id, tables[t]->dim(0));
          const T* from = tables[t]->data<T>() + id * rows.width;
          for (int64_t i = 0; i < rows.width; ++i)
            to[r * rows.width + i] += from[i];
        }
      Normalize<T>(rows, to);
      return absl::OkStatus();
    });
  });
}

absl::Status InferEmbedding(InferContext* context) {
  const size_t n = context->InputCount("Ids");
  if (n < 1 || context->InputCount("Embs") != n)
    return InvalidArgument("'Ids' has %d variables and 'Embs' %d", n,
                           context->InputCount("Embs"));
  const Shape& ids = context->Input("Ids").shape;
  const TensorMeta& table = context->Input("Embs");
  if (ids.size() < 2 || table.shape.size() != 2)
    return InvalidArgument("'Ids' has shape %s and 'Embs' %s", ToString(ids),
                           ToString(table.shape));
  context->SetOutput("Out", {ids[0], ids[1], table.shape[1]}, table.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterFusedLayerNorm(OpRegistry* registry) {
  OpDef skip("skip_layernorm");
  skip.Input("X").Input("Y").Input("Scale").Input("Bias").Output("Out");
  skip.Attr("epsilon", 1e-5f).Attr("begin_norm_axis", int32_t{1});
  skip.Infer(InferSkip).NoGrad().Reference(BindSkip);
  PD_RETURN_IF_ERROR(registry->Add(std::move(skip)));

  OpDef fc("fused_fc_elementwise_layernorm");
  fc.Input("X").Input("W").Input("Y").OptionalInput("Bias0");
  fc.OptionalInput("Scale").OptionalInput("Bias1").Output("Out");
  fc.OptionalOutput("Mean").OptionalOutput("Variance");
  fc.Attr("x_num_col_dims", int32_t{1}).Attr("activation_type", std::string());
  fc.Attr("epsilon", 1e-5f).Attr("begin_norm_axis", int32_t{1});
  fc.Infer(InferFusedLayerNormFc).NoGrad().Reference(BindFusedLayerNormFc);
  PD_RETURN_IF_ERROR(registry->Add(std::move(fc)));

  OpDef embedding("fused_embedding_eltwise_layernorm");
  embedding.Inputs("Ids").Inputs("Embs").Input("Bias").Input("Scale");
  embedding.Output("Out").Attr("epsilon", 1e-5f);
  embedding.Infer(InferEmbedding).NoGrad().Reference(BindEmbedding);
  return registry->Add(std::move(embedding));
}

}  // namespace pd
