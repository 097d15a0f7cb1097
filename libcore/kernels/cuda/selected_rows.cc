// SPDX-License-Identifier: Apache-2.0
// Lookups' gradients of selected rows, and sums with them; the kernels are in
// selected_rows.cu. Updates by them are in update.cc.
#include "libcore/kernels/cuda/selected_rows.h"

#include <limits>
#include <utility>
#include <vector>

#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// All are selected rows: one after the other.
absl::StatusOr<Step> JoinRows(DeviceBinding* binding,
                              const std::vector<Tensor*>& terms, Tensor* out) {
  PD_ASSIGN_OR_RETURN(int64_t* const rows, binding->RowsOf(out));
  std::vector<std::pair<Tensor*, const int64_t*>> from;
  int64_t n = 0;
  for (Tensor* term : terms) {
    PD_ASSIGN_OR_RETURN(const int64_t* const numbers, binding->RowsOf(term));
    from.emplace_back(term, numbers);
    n += term->dim(0);
  }
  if (n != out->dim(0)) return Unimplemented("rows that do not add up");
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    char* to = out->data<char>();
    int64_t* to_rows = rows;
    for (const auto& [term, numbers] : from) {
      const auto count = static_cast<size_t>(term->dim(0));
      PD_RETURN_IF_ERROR(device->Copy(to, term->raw(), term->bytes()));
      PD_RETURN_IF_ERROR(
          device->Copy(to_rows, numbers, count * sizeof(int64_t)));
      to += term->bytes();
      to_rows += count;
    }
    return absl::OkStatus();
  });
}

// X is a list with selected rows. Those are added to what the dense ones make.
absl::StatusOr<Step> BindSumOfRows(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({out}));
  std::vector<Tensor*> dense, selected;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr) return Unimplemented("X %d is missing", i);
    PD_RETURN_IF_ERROR(OnlyFloat32({x}));
    (IsSelectedRows(x) ? selected : dense).push_back(x);
  }
  if (selected.empty()) return Unimplemented("no selected rows");
  if (IsSelectedRows(out)) return JoinRows(binding, selected, out);
  if (dense.size() != 1 || dense[0]->shape() != out->shape())
    return Unimplemented("selected rows and %d dense tensors", dense.size());
  std::vector<OrderedRows> terms;
  for (Tensor* x : selected) {
    PD_ASSIGN_OR_RETURN(OrderedRows rows,
                        OrderedRows::Make(context, binding, x, *out));
    terms.push_back(std::move(rows));
  }
  return Step([=, device = CudaOf(binding), from = dense[0],
               terms = std::move(terms)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Copy(out->raw(), from->raw(), out->bytes()));
    for (const OrderedRows& rows : terms) {
      PD_RETURN_IF_ERROR(rows.Order());
      PD_RETURN_IF_ERROR(rows.AddTo(out->data<float>()));
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<OrderedRows> OrderedRows::Make(BindContext* context,
                                              DeviceBinding* binding,
                                              Tensor* selected,
                                              const Tensor& like) {
  PD_RETURN_IF_ERROR(OnlyFloat32({selected}));
  using Start = Starter<SelectedArgs>;
  PD_ASSIGN_OR_RETURN(const auto order, Start::Find(binding, "order_rows"));
  PD_ASSIGN_OR_RETURN(const auto add, Start::Find(binding, "add_rows"));
  OrderedRows rows(order, add);
  rows.selected_ = selected;
  rows.args_.n = selected->dim(0);
  rows.args_.width = RowWidth(*selected);
  rows.args_.height = like.rank() == 0 ? 0 : like.dim(0);
  if (selected->size() == 0 || rows.args_.width != RowWidth(like) ||
      selected->height() != rows.args_.height ||
      rows.args_.n > std::numeric_limits<int32_t>::max())
    return Unimplemented("%d rows of %d elements for a tensor of shape %s",
                         rows.args_.n, rows.args_.width,
                         ToString(like.shape()));
  PD_ASSIGN_OR_RETURN(rows.args_.rows, binding->RowsOf(selected));
  rows.places_ =
      context->Scratch(static_cast<size_t>(rows.args_.n) * sizeof(int32_t));
  return rows;
}

SelectedArgs OrderedRows::Now() const {
  SelectedArgs now = args_;
  now.values = selected_->data<float>();
  now.places = places_->data<int32_t>();
  return now;
}

absl::Status OrderedRows::AddTo(float* dense) const {
  SelectedArgs now = Now();
  now.dense = dense;
  return add_.Elements(now.n * now.width, now);
}

absl::StatusOr<Step> BindLookupRows(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *w = context->Input("W"), *ids = context->Input("Ids"),
         *dout = context->Input("Out@GRAD"), *dw = context->Output("W@GRAD");
  PD_RETURN_IF_ERROR(OnlyFloat32({w, dout, dw}));
  if (ids->dtype() != DType::kInt64 && ids->dtype() != DType::kInt32)
    return Unimplemented("Ids are %s", Name(ids->dtype()));
  LookupRowsArgs args{};
  args.n = ids->size();
  args.width = RowWidth(*dw);
  args.height = dw->height();
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", w->dtype(), args.n * args.width));
  args.padding = context->Attr<int64_t>("padding_idx");
  // -1 means none: no id may be it.
  if (args.padding == -1) args.padding = INT64_MIN;
  args.ids64 = ids->dtype() == DType::kInt64;
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "'Ids' of %s over '%s' holds a number outside [0, %d)",
                    context->op().type, context->op().In("W"), args.height)));
  PD_ASSIGN_OR_RETURN(args.rows, binding->RowsOf(dw));
  context->NoBuffer(w);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LookupRowsArgs>::Find(binding, "lookup_rows"));
  return Step([=](const RunContext&) {
    LookupRowsArgs run = args;
    run.from = At(dout);
    run.values = At(dw);
    run.ids = ids->raw();
    return start.Elements(run.n * run.width, run);
  });
}

void AddSelectedRows(KernelTable* kernels) {
  kernels->Add("sum",
               Implementation("cuda", BindSumOfRows).TakesSelectedRows());
}

}  // namespace pd::cuda
