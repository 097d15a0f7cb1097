// SPDX-License-Identifier: Apache-2.0
// Out = Col * Filter, where Col[r] are the `contextLength` rows of r's sequence
// from r + contextStart on (sequence_window.h).
//   Filter@GRAD = Col^T * Out@GRAD
//   X@GRAD and PaddingData@GRAD: Out@GRAD * Filter^T, added where each row of
//   Col came from
//   fusion_seqconv_eltadd_relu: Out = max(Col * Filter + Bias, 0)
#include "libcore/ops/sequence/sequence_conv.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckAttrs(const OpDesc& op) {
  const int32_t length = op.Attr<int32_t>("contextLength");
  const int32_t stride = op.Attr<int32_t>("contextStride");
  if (length < 1)
    return InvalidArgument("attr 'contextLength' is %d; expected 1 or more",
                           length);
  if (stride != 1)
    return InvalidArgument("attr 'contextStride' is %d; expected 1", stride);
  return absl::OkStatus();
}

absl::Status InferConv(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& filter = context->Input("Filter");
  PD_RETURN_IF_ERROR(CheckAttrs(context->op()));
  PD_RETURN_IF_ERROR(KnownSequences(x, "X").status());
  const int64_t length = context->Attr<int32_t>("contextLength");
  if (x.shape.size() != 2 || filter.shape.size() != 2 ||
      filter.dtype != x.dtype ||
      (x.shape[1] >= 0 && filter.shape[0] >= 0 &&
       filter.shape[0] != length * x.shape[1]))
    return InvalidArgument(
        "'X' is %s %s, 'Filter' is %s %s; expected [rows, width] and "
        "[%d * width, n]",
        Name(x.dtype), ToString(x.shape), Name(filter.dtype),
        ToString(filter.shape), length);
  TensorMeta out = x;
  out.value = nullptr;
  out.shape[1] = filter.shape[1];
  context->SetOutput("Out", std::move(out));
  context->SetOutput("ColMat", {x.shape[0], filter.shape[0]}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SequenceConv> ReadSequenceConv(BindContext* context) {
  SequenceConv c;
  c.x = context->Input("X");
  c.filter = context->Input("Filter");
  PD_RETURN_IF_ERROR(CheckAttrs(context->op()));
  PD_ASSIGN_OR_RETURN(c.window.offsets, SequencesOf(c.x, "X"));
  c.window.start = context->op().Attr<int32_t>("contextStart");
  c.window.length = context->op().Attr<int32_t>("contextLength");
  if (c.x->rank() != 2 || c.filter->rank() != 2)
    return InvalidArgument("'X' has shape %s, 'Filter' %s; expected matrices",
                           ToString(c.x->shape()), ToString(c.filter->shape()));
  c.window.width = c.x->dim(1);
  c.n = c.filter->dim(1);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Filter", c.x->dtype(), {c.window.columns(), c.n}));
  if (context->op().AttrOr("paddingTrainable", false)) {
    c.padding = context->Input("PaddingData");
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "PaddingData", c.x->dtype(),
                    {c.window.up() + c.window.down(), c.window.width}));
  }
  return c;
}

namespace {

const GemmBatch& OneProduct() {
  static const GemmBatch batch = {{{0, 0}}};
  return batch;
}

// Out = Col * Filter; Col stays in `col`.
template <typename T>
void Convolve(const SequenceConv& c, T* col, T* out) {
  const T* padding = c.padding != nullptr ? c.padding->data<T>() : nullptr;
  FillColumns(c.window, c.x->data<T>(), padding, col);
  Gemm<T>({c.window.rows(), c.n, c.window.columns()}, OneProduct(), T(1), col,
          c.filter->data<T>(), out);
}

size_t ColumnBytes(const SequenceConv& c) {
  return static_cast<size_t>(c.window.rows() * c.window.columns()) *
         SizeOf(c.x->dtype());
}

absl::StatusOr<Step> BindConv(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const SequenceConv c, ReadSequenceConv(context));
  Tensor* out = context->Output("Out");
  Tensor* col = context->Scratch(ColumnBytes(c));
  return DispatchFloat(c.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Convolve<T>(c, col->data<T>(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindConvGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const SequenceConv c, ReadSequenceConv(context));
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dfilter = context->Output("Filter@GRAD");
  Tensor* dpadding =
      c.padding != nullptr ? context->Output("PaddingData@GRAD") : nullptr;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", c.x->dtype(), {c.window.rows(), c.n}));
  Tensor* col = context->Scratch(ColumnBytes(c));
  return DispatchFloat(c.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t rows = c.window.rows(), columns = c.window.columns();
      const T* dy = dout->data<T>();
      if (dfilter != nullptr) {
        const T* padding =
            c.padding != nullptr ? c.padding->data<T>() : nullptr;
        FillColumns(c.window, c.x->data<T>(), padding, col->data<T>());
        Gemm<T>({columns, c.n, rows, true, false}, OneProduct(), T(1),
                col->data<T>(), dy, dfilter->data<T>());
      }
      if (dx == nullptr && dpadding == nullptr) return absl::OkStatus();
      Gemm<T>({rows, columns, c.n, false, true}, OneProduct(), T(1), dy,
              c.filter->data<T>(), col->data<T>());
      T* to_x = dx != nullptr ? dx->data<T>() : nullptr;
      T* to_padding = dpadding != nullptr ? dpadding->data<T>() : nullptr;
      if (dx != nullptr) std::fill_n(to_x, dx->size(), T(0));
      if (dpadding != nullptr) std::fill_n(to_padding, dpadding->size(), T(0));
      AddColumns(c.window, col->data<T>(), to_x, to_padding);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindFused(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const SequenceConv c, ReadSequenceConv(context));
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  Tensor* col = context->Output("ColMat");
  if (col == nullptr) col = context->Scratch(ColumnBytes(c));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", c.x->dtype(), c.n));
  return DispatchFloat(c.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* result = out->data<T>();
      Convolve<T>(c, col->data<T>(), result);
      const T* b = bias->data<T>();
      for (int64_t r = 0; r < c.window.rows(); ++r)
        for (int64_t k = 0; k < c.n; ++k)
          result[r * c.n + k] = std::max(result[r * c.n + k] + b[k], T(0));
      return absl::OkStatus();
    });
  });
}

void AddSequenceConvAttrs(OpDef* op) {
  op->RequiredAttr("contextLength", AttrType::kInt);
  op->Attr("contextStart", int32_t{0}).Attr("contextStride", int32_t{1});
}

}  // namespace

absl::Status RegisterSequenceConv(OpRegistry* registry) {
  OpDef op("sequence_conv");
  op.Input("X").OptionalInput("PaddingData").Input("Filter").Output("Out");
  op.Attr("paddingTrainable", false);
  AddSequenceConvAttrs(&op);
  op.Infer(InferConv).Reference(BindConv);
  op.Grad(GradSpec{"sequence_conv_grad",
                   {"X", "PaddingData", "Filter"},
                   {},
                   {"Out"},
                   {"X", "PaddingData", "Filter"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_conv_grad");
  grad.Input("X").OptionalInput("PaddingData").Input("Filter");
  grad.Input("Out@GRAD").Output("X@GRAD").Output("PaddingData@GRAD");
  grad.Output("Filter@GRAD").Attr("paddingTrainable", false);
  AddSequenceConvAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindConvGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef fused("fusion_seqconv_eltadd_relu");
  fused.Input("X").Input("Filter").Input("Bias").Output("Out");
  fused.IntermediateOutput("ColMat");
  AddSequenceConvAttrs(&fused);
  fused.Infer(InferConv).NoGrad().Reference(BindFused);
  return registry->Add(std::move(fused));
}

}  // namespace pd
