// SPDX-License-Identifier: Apache-2.0
// Out, Indices = the k largest (smallest unless `largest`) elements along
// `axis`, in order when `sorted`, and where they were. NaN counts as the
// largest. k is the attribute, or the element of K.
//   top_k, the first version: the largest ones of the last axis
// X@GRAD = Out@GRAD put back to where it came from, 0 elsewhere.
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/reduce/ranked.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferTopK(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  int64_t k = context->Attr<int32_t>("k");
  bool known = true;
  if (const auto given = IntsIn(*context, "K")) {
    known = given->size() == 1 && context->Input("K").value != nullptr;
    k = known ? given->front() : -1;
  }
  // A K that a model computed may be 0: nothing was found that it chooses from.
  const int64_t least = context->HasInput("K") ? 0 : 1;
  if (known && k < least)
    return InvalidArgument("k is %d; expected %d or more", k, least);
  if (!out.shape.empty()) {
    PD_ASSIGN_OR_RETURN(const int axis,
                        NormalizeAxis(context->op().AttrOr<int32_t>("axis", -1),
                                      out.shape.size()));
    int64_t& extent = out.shape[static_cast<size_t>(axis)];
    if (extent >= 0 && k > extent)
      return InvalidArgument("k is %d; X has shape %s and axis %d", k,
                             ToString(out.shape), axis);
    extent = k;
  }
  TensorMeta indices = out;
  indices.dtype = DType::kInt64;
  context->SetOutput("Indices", std::move(indices));
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// How the line's first k are found.
struct Choice {
  int64_t k = 1;
  bool largest = true, sorted = true;
  bool first_version = false;  // which always sorts partially
  bool by_place = false;       // the first among equal elements
};

template <typename Order>
struct ThenByPlace {
  template <typename T>
  bool operator()(const Ranked<T>& a, const Ranked<T>& b) const {
    const Order order;
    return order(a, b) || (!order(b, a) && a.at < b.at);
  }
};

template <typename T, typename Order>
void Choose(Ranked<T>* line, int64_t n, const Choice& choice,
            const Order& order) {
  if (choice.by_place)
    TopK(line, n, choice.k, true, ThenByPlace<Order>());
  else if (choice.first_version)
    std::partial_sort(line, line + choice.k, line + n, order);
  else
    TopK(line, n, choice.k, choice.sorted, order);
}

absl::StatusOr<Step> BindTopK(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* indices = context->Output("Indices");
  PD_ASSIGN_OR_RETURN(
      const AxisView view,
      ViewAxis(x->shape(), context->op().AttrOr<int32_t>("axis", -1)));
  if (Tensor* k = context->Input("K")) context->NoBuffer(k);
  Choice choice;
  choice.largest = context->op().AttrOr("largest", true);
  choice.sorted = context->op().AttrOr("sorted", true);
  choice.first_version = context->op().type == "top_k";
  choice.by_place = context->op().AttrOr(kTiesByPlace, false);
  choice.k = view.lines() > 0 ? out->size() / view.lines() : 0;
  if (out->size() == 0)
    return Step([](const RunContext&) { return absl::OkStatus(); });
  if (view.lines() > 0 && choice.k > view.n)
    return InvalidArgument("k is %d; X has shape %s", choice.k,
                           ToString(x->shape()));
  return DispatchNumeric(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    Tensor* scratch =
        context->Scratch(static_cast<size_t>(x->size()) * sizeof(Ranked<T>));
    return Step([=](const RunContext&) {
      ForEachLine(view, [&](int64_t row, int64_t start) {
        Ranked<T>* line = scratch->data<Ranked<T>>() + row * view.n;
        FillRanked(x->data<T>() + start, view.n, view.inner, line);
        choice.largest ? Choose(line, view.n, choice, Descending())
                       : Choose(line, view.n, choice, Ascending());
        int64_t to =
            row / view.inner * choice.k * view.inner + row % view.inner;
        for (int64_t j = 0; j < choice.k; ++j, to += view.inner) {
          if (out != nullptr) out->data<T>()[to] = line[j].value;
          if (indices != nullptr) indices->data<int64_t>()[to] = line[j].at;
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status AddTopKOp(OpRegistry* registry, const std::string& type) {
  const auto add_arguments = [&](OpDef* op) {
    op->OptionalInput("K").Attr("k", int32_t{1});
    if (type == "top_k") return;
    op->Attr("axis", int32_t{-1}).Attr("largest", true).Attr("sorted", true);
  };
  OpDef op(type);
  op.Input("X").Output("Out").Output("Indices");
  add_arguments(&op);
  op.Infer(InferTopK).Reference(BindTopK);
  op.Grad(GradSpec{type + "_grad", {"X"}, {"Indices"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Indices").Input("Out@GRAD").Output("X@GRAD");
  add_arguments(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPickedGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterTopKV2(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddTopKOp(registry, "top_k_v2"));
  return AddTopKOp(registry, "top_k");
}

}  // namespace pd
