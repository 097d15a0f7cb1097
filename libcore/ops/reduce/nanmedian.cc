// SPDX-License-Identifier: Apache-2.0
// Out = the median of the elements along the axes `axis` (none: all) that are
// not NaN: of an even number of them the mean of the middle two; NaN when there
// are none. MedianIndex [..., 2] holds the places of the middle elements among
// those that were reduced, -1 when there are none.
// X@GRAD: Out@GRAD at the middle element, or half of it at each of the two.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/reduce/ranked.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The reduced axes in the order in which their elements are counted.
absl::StatusOr<std::vector<size_t>> NanmedianReducedAxes(const OpDesc& op,
                                                         size_t rank) {
  std::vector<size_t> axes;
  for (int64_t axis : IntsAttr(op, "axis")) {
    if (rank == 0 && (axis == 0 || axis == -1)) continue;
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    if (std::find(axes.begin(), axes.end(), static_cast<size_t>(a)) !=
        axes.end())
      return InvalidArgument("attr 'axis' names axis %d twice", a);
    axes.push_back(static_cast<size_t>(a));
  }
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) axes.push_back(i);
  return axes;
}

absl::Status InferNanmedian(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const auto axes,
                      NanmedianReducedAxes(context->op(), x.shape.size()));
  Shape shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      shape.push_back(x.shape[i]);
    else if (context->Attr<bool>("keepdim"))
      shape.push_back(1);
  }
  context->SetOutput("Out", shape, x.dtype);
  shape.push_back(2);
  context->SetOutput("MedianIndex", std::move(shape), DType::kInt64);
  return absl::OkStatus();
}

// Loops over what is kept, and over what is reduced for each of it.
struct Lines {
  StridedLoop<1> kept, reduced;
};

absl::StatusOr<Lines> LinesOf(const OpDesc& op, const Shape& x) {
  PD_ASSIGN_OR_RETURN(const auto axes, NanmedianReducedAxes(op, x.size()));
  const auto strides = RowMajorStrides(x);
  Lines lines;
  for (size_t i = 0; i < x.size(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      lines.kept.Add(x[i], {strides[i]});
  for (size_t axis : axes) lines.reduced.Add(x[axis], {strides[axis]});
  if (lines.reduced.size() == 0)
    return InvalidArgument("X has shape %s: there is nothing to reduce",
                           ToString(x));
  return lines;
}

// Calls body(line, offset) or body(place, offset) for every element of a loop.
template <typename Body>
void ForEach(const StridedLoop<1>& loop, const Body& body) {
  int64_t i = 0;
  const int64_t stride = loop.row_strides()[0];
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j) body(i++, at[0] + j * stride);
  });
}

template <typename T>
void MedianOf(Ranked<T>* line, int64_t n, T* median, int64_t* places) {
  int64_t numbers = 0;
  for (int64_t i = 0; i < n; ++i) numbers += line[i].value == line[i].value;
  if (numbers == 0) {
    *median = line[0].value;  // a NaN
    places[0] = places[1] = -1;
    return;
  }
  const int64_t high = numbers / 2;
  const int64_t low = numbers % 2 == 1 ? high : high - 1;
  TopK(line, n, high + 1, true, Ascending());
  places[0] = line[low].at;
  places[1] = line[high].at;
  *median = low == high
                ? line[high].value
                : static_cast<T>((line[low].value + line[high].value) / T(2));
}

absl::StatusOr<Step> BindNanmedian(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* index = context->Output("MedianIndex");
  PD_ASSIGN_OR_RETURN(const Lines lines, LinesOf(context->op(), x->shape()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        Tensor* scratch = context->Scratch(
            static_cast<size_t>(lines.reduced.size()) * sizeof(Ranked<T>));
        return Step([=](const RunContext&) {
          Ranked<T>* line = scratch->data<Ranked<T>>();
          ForEach(lines.kept, [&](int64_t i, int64_t start) {
            ForEach(lines.reduced, [&](int64_t place, int64_t at) {
              line[place] = {x->data<T>()[start + at], place};
            });
            T median;
            int64_t places[2];
            MedianOf(line, lines.reduced.size(), &median, places);
            if (out != nullptr) out->data<T>()[i] = median;
            if (index != nullptr)
              std::copy_n(places, 2, index->data<int64_t>() + 2 * i);
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindNanmedianGrad(BindContext* context) {
  context->NoBuffer(context->Input("X"));
  Tensor* index = context->Input("MedianIndex");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const Lines lines, LinesOf(context->op(), dx->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", dx->dtype(), lines.kept.size()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "MedianIndex", DType::kInt64,
                                    2 * lines.kept.size()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(
              CheckIndices("MedianIndex", *index, -1, lines.reduced.size()));
          std::fill_n(dx->data<T>(), dx->size(), T(0));
          ForEach(lines.kept, [&](int64_t i, int64_t start) {
            const int64_t* places = index->data<int64_t>() + 2 * i;
            const T d = dout->data<T>()[i];
            for (int side = 0; side < 2; ++side) {
              if (places[side] < 0 || (side == 1 && places[0] == places[1]))
                continue;
              lines.reduced.ForParts(
                  places[side], places[side] + 1, [&](const auto& at, int64_t) {
                    dx->data<T>()[start + at[0]] =
                        places[0] == places[1] ? d : d / T(2);
                  });
            }
          });
          return absl::OkStatus();
        });
      });
}

void AddNanmedianAttrs(OpDef* op) {
  op->Attr("axis", std::vector<int32_t>()).Attr("keepdim", true);
}

}  // namespace

absl::Status RegisterNanmedian(OpRegistry* registry) {
  OpDef op("nanmedian");
  op.Input("X").Output("Out").IntermediateOutput("MedianIndex");
  AddNanmedianAttrs(&op);
  op.Infer(InferNanmedian).Reference(BindNanmedian);
  op.Grad(GradSpec{"nanmedian_grad", {"X"}, {"MedianIndex"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("nanmedian_grad");
  grad.Input("X").Input("MedianIndex").Input("Out@GRAD").Output("X@GRAD");
  AddNanmedianAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindNanmedianGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
