// SPDX-License-Identifier: Apache-2.0
// Of matrices of one shape, columns [start_index, start_index + length) of each
// (length -1: all that follow):
//   partial_concat: one after the other
//   partial_sum: added up
// X[i]@GRAD: Out@GRAD in those columns, 0 elsewhere.
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Columns {
  int64_t start = 0, length = 0;
};

absl::StatusOr<Columns> ColumnsOf(const OpDesc& op, int64_t width) {
  Columns c;
  const int64_t start = op.Attr<int32_t>("start_index");
  const int64_t length = op.Attr<int32_t>("length");
  c.start = start < 0 ? start + width : start;
  c.length = length < 0 ? width - c.start : length;
  if (c.start < 0 || c.start >= width || c.length > width - c.start)
    return InvalidArgument(
        "attrs 'start_index' and 'length' are %d and %d; X has %d columns",
        start, length, width);
  return c;
}

bool Concatenates(const OpDesc& op) {
  return op.type.rfind("partial_concat", 0) == 0;
}

absl::Status InferPartial(InferContext* context) {
  const TensorMeta& first = context->Input("X");
  Shape shape = first.shape;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    if (x.shape.size() != 2 || x.dtype != first.dtype ||
        (!IsDynamic(x.shape) && !IsDynamic(shape) && x.shape != shape))
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected matrices "
          "of one shape",
          Name(first.dtype), ToString(first.shape), i, Name(x.dtype),
          ToString(x.shape));
  }
  if (shape[1] >= 0) {
    PD_ASSIGN_OR_RETURN(const Columns c, ColumnsOf(context->op(), shape[1]));
    shape[1] = c.length;
    if (Concatenates(context->op()))
      shape[1] *= static_cast<int64_t>(context->InputCount("X"));
  }
  context->SetOutput("Out", std::move(shape), first.dtype);
  return absl::OkStatus();
}

// The columns in each X, and where they are in Out.
struct Layout {
  Columns columns;
  int64_t rows = 0, width = 0, out_width = 0, out_step = 0;
};

absl::StatusOr<Layout> LayoutOf(const BindContext& context, const Tensor& out) {
  const Tensor* first = context.Input("X");
  if (first == nullptr || first->rank() != 2)
    return InvalidArgument("X is no matrix");
  const size_t count = context.InputCount("X");
  for (size_t i = 0; i < count; ++i) {
    const Tensor* x = context.Input("X", i);
    if (x == nullptr || x->shape() != first->shape() ||
        x->dtype() != out.dtype())
      return InvalidArgument("X[%d] does not fit X[0]", i);
  }
  Layout l;
  l.rows = first->dim(0);
  l.width = first->dim(1);
  PD_ASSIGN_OR_RETURN(l.columns, ColumnsOf(context.op(), l.width));
  l.out_step = Concatenates(context.op()) ? l.columns.length : 0;
  l.out_width = Concatenates(context.op())
                    ? l.columns.length * static_cast<int64_t>(count)
                    : l.columns.length;
  if (out.size() != l.rows * l.out_width)
    return InvalidArgument("Out has shape %s; %d rows of %d are expected",
                           ToString(out.shape()), l.rows, l.out_width);
  return l;
}

absl::StatusOr<Step> BindPartial(BindContext* context) {
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Layout l, LayoutOf(*context, *out));
  std::vector<Tensor*> xs;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    xs.push_back(context->Input("X", i));
  return DispatchTypes<float, double, int32_t, int64_t>(
      out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          T* to = out->data<T>();
          std::fill_n(to, out->size(), T(0));
          for (size_t k = 0; k < xs.size(); ++k) {
            for (int64_t r = 0; r < l.rows; ++r) {
              const T* from = xs[k]->data<T>() + r * l.width + l.columns.start;
              T* row =
                  to + r * l.out_width + static_cast<int64_t>(k) * l.out_step;
              for (int64_t j = 0; j < l.columns.length; ++j) row[j] += from[j];
            }
          }
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindPartialGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  PD_ASSIGN_OR_RETURN(const Layout l, LayoutOf(*context, *dout));
  std::vector<Tensor*> dxs;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    context->NoBuffer(context->Input("X", i));
    dxs.push_back(context->Output("X@GRAD", i));
  }
  return DispatchTypes<float, double, int32_t, int64_t>(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          for (size_t k = 0; k < dxs.size(); ++k) {
            if (dxs[k] == nullptr) continue;
            T* to = dxs[k]->data<T>();
            std::fill_n(to, dxs[k]->size(), T(0));
            for (int64_t r = 0; r < l.rows; ++r)
              std::copy_n(dout->data<T>() + r * l.out_width +
                              static_cast<int64_t>(k) * l.out_step,
                          l.columns.length, to + r * l.width + l.columns.start);
          }
          return absl::OkStatus();
        });
      });
}

absl::Status AddPartialConcatOp(OpRegistry* registry, const std::string& type) {
  const auto add_arguments = [](OpDef* op) {
    op->Inputs("X").Attr("start_index", int32_t{0}).Attr("length", int32_t{-1});
  };
  OpDef op(type);
  add_arguments(&op);
  op.Output("Out").Infer(InferPartial).Reference(BindPartial);
  op.Grad(GradSpec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  add_arguments(&grad);
  grad.Input("Out@GRAD").Outputs("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPartialGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterPartialConcat(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddPartialConcatOp(registry, "partial_concat"));
  return AddPartialConcatOp(registry, "partial_sum");
}

}  // namespace pd
