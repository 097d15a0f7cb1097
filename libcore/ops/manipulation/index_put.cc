// SPDX-License-Identifier: Apache-2.0
// out = x, but the slices that `indices` name become `value`, or get it added
// with `accumulate`. Integer indices broadcast to one shape and name elements
// of x's first axes together; negative ones count from the end. A bool index
// stands for the places where it holds. `value` broadcasts to the shape of what
// is named.
// x@GRAD: out@GRAD, with 0 where something was put; value@GRAD: out@GRAD from
// where it went, summed where it was repeated.
#include <complex>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// One integer index: numbers and their shape.
struct Index {
  Shape shape;
  std::vector<int64_t> numbers;
};

// An integer tensor as it is; a bool one as an index for each of its axes.
void AddIndexPutIndices(const Tensor& tensor, std::vector<Index>* indices) {
  if (tensor.dtype() != DType::kBool) {
    Index index;
    index.shape = tensor.shape();
    for (int64_t i = 0; i < tensor.size(); ++i)
      index.numbers.push_back(LabelAt(tensor, i));
    indices->push_back(std::move(index));
    return;
  }
  std::vector<Index> axes(tensor.rank());
  int64_t count = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (!tensor.data<bool>()[i]) continue;
    ++count;
    int64_t rest = i;
    for (size_t d = tensor.rank(); d-- > 0;) {
      axes[d].numbers.push_back(rest % tensor.dim(d));
      rest /= tensor.dim(d);
    }
  }
  for (Index& axis : axes) {
    axis.shape = {count};
    indices->push_back(std::move(axis));
  }
}

// Which slices are named: slice i of `count`, each of `inner` elements, starts
// at element `starts[i]`; element k of slice i belongs to that element of the
// value which the loop gives (tensor 0).
struct Named {
  std::vector<int64_t> starts;
  int64_t inner = 1;
  StridedLoop<1> value;
};

// The element of x that each tuple of numbers names.
absl::StatusOr<std::vector<int64_t>> StartsOf(const std::vector<Index>& indices,
                                              const Shape& common,
                                              const Shape& x, int64_t inner) {
  std::vector<int64_t> starts(static_cast<size_t>(NumElements(common)), 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    Shape padded(common.size() - indices[d].shape.size(), 1);
    padded.insert(padded.end(), indices[d].shape.begin(),
                  indices[d].shape.end());
    const auto strides = BroadcastStrides(padded, common);
    StridedLoop<1> loop;
    for (size_t i = 0; i < common.size(); ++i)
      loop.Add(common[i], {strides[i]});
    const int64_t step = loop.row_strides()[0];
    size_t to = 0;
    int64_t bad = 0;
    bool fits = true;
    loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
      for (int64_t j = 0; j < n; ++j) {
        int64_t number =
            indices[d].numbers[static_cast<size_t>(at[0] + j * step)];
        if (number < -x[d] || number >= x[d]) {
          fits = false;
          bad = number;
          number = 0;
        }
        if (number < 0) number += x[d];
        starts[to] = starts[to] * x[d] + number;
        ++to;
      }
    });
    if (!fits)
      return OutOfRange("index %d of axis %d is outside [%d, %d)", bad, d,
                        -x[d], x[d]);
  }
  for (int64_t& start : starts) start *= inner;
  return starts;
}

absl::StatusOr<Named> NamedBy(const std::vector<Tensor*>& tensors,
                              const Shape& x, const Shape& value) {
  std::vector<Index> indices;
  for (const Tensor* t : tensors) AddIndexPutIndices(*t, &indices);
  if (indices.empty() || indices.size() > x.size())
    return InvalidArgument("x has shape %s; there are %d indices", ToString(x),
                           indices.size());
  Shape common;
  for (const Index& index : indices) {
    PD_ASSIGN_OR_RETURN(const Broadcast both,
                        BroadcastShapes(common, index.shape, -1));
    common = both.out;
  }
  Named named;
  named.inner = NumElements(x, indices.size(), x.size());
  PD_ASSIGN_OR_RETURN(named.starts, StartsOf(indices, common, x, named.inner));
  Shape target = common;
  target.insert(target.end(), x.begin() + static_cast<int64_t>(indices.size()),
                x.end());
  size_t skip = 0;
  while (value.size() - skip > target.size() && value[skip] == 1) ++skip;
  Shape padded(value.begin() + static_cast<int64_t>(skip), value.end());
  bool fits = padded.size() <= target.size();
  if (fits) padded.insert(padded.begin(), target.size() - padded.size(), 1);
  for (size_t i = 0; fits && i < target.size(); ++i)
    fits = padded[i] == 1 || padded[i] == target[i];
  if (!fits)
    return InvalidArgument("value has shape %s, which does not broadcast to %s",
                           ToString(value), ToString(target));
  const auto strides = BroadcastStrides(padded, target);
  for (size_t i = 0; i < target.size(); ++i)
    named.value.Add(target[i], {strides[i]});
  return named;
}

// Calls body(element of x, element of value), in the order of the indices.
template <typename Body>
void ForEachIndexPutElement(const Named& named, const Body& body) {
  const int64_t step = named.value.row_strides()[0];
  int64_t i = 0;
  named.value.ForParts(0, named.value.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j, ++i)
      body(named.starts[static_cast<size_t>(i / named.inner)] + i % named.inner,
           at[0] + j * step);
  });
}

absl::StatusOr<std::vector<Tensor*>> Indices(const BindContext& context) {
  std::vector<Tensor*> tensors;
  for (size_t i = 0; i < context.InputCount("indices"); ++i) {
    Tensor* t = context.Input("indices", i);
    if (t == nullptr) return InvalidArgument("index %d is missing", i);
    if (t->dtype() != DType::kBool)
      PD_RETURN_IF_ERROR(CheckLabelType("indices", t->dtype()));
    tensors.push_back(t);
  }
  return tensors;
}

absl::Status InferIndexPut(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const TensorMeta& value = context->Input("value");
  if (x.dtype != value.dtype)
    return InvalidArgument("x is %s; value is %s", Name(x.dtype),
                           Name(value.dtype));
  context->Share("x", "out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindIndexPut(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* value = context->Input("value");
  Tensor* out = context->Output("out");
  PD_ASSIGN_OR_RETURN(const auto indices, Indices(*context));
  const bool accumulate = context->Attr<bool>("accumulate");
  return DispatchTypes<float, double, int32_t, int64_t, bool, int16_t, int8_t,
                       uint8_t, std::complex<float>, std::complex<double>>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_ASSIGN_OR_RETURN(const Named named,
                              NamedBy(indices, x->shape(), value->shape()));
          const T* from = value->data<T>();
          T* to = out->data<T>();
          std::copy_n(x->data<T>(), x->size(), to);
          ForEachIndexPutElement(named, [&](int64_t at, int64_t v) {
            to[at] = accumulate ? static_cast<T>(to[at] + from[v]) : from[v];
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindIndexPutGrad(BindContext* context) {
  Tensor* dout = context->Input("out@GRAD");
  Tensor* value = context->Input("value");
  Tensor* dx = context->Output("x@GRAD");
  Tensor* dvalue = context->Output("value@GRAD");
  context->NoBuffer(value);
  if (Tensor* x = context->Input("x")) context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const auto indices, Indices(*context));
  const bool accumulate = context->Attr<bool>("accumulate");
  for (const Tensor* t : {dx, dvalue})
    if (t != nullptr && t->dtype() != dout->dtype())
      return InvalidArgument("out@GRAD is %s; a gradient of it is %s",
                             Name(dout->dtype()), Name(t->dtype()));
  if (dx != nullptr && dx->shape() != dout->shape())
    return InvalidArgument("out@GRAD has shape %s; x has %s",
                           ToString(dout->shape()), ToString(dx->shape()));
  return DispatchArithmetic(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_ASSIGN_OR_RETURN(const Named named,
                              NamedBy(indices, dout->shape(), value->shape()));
          const T* from = dout->data<T>();
          if (dvalue != nullptr) {
            std::fill_n(dvalue->data<T>(), dvalue->size(), T(0));
            ForEachIndexPutElement(named, [&](int64_t at, int64_t v) {
              dvalue->data<T>()[v] += from[at];
            });
          }
          if (dx != nullptr) {
            std::copy_n(from, dout->size(), dx->data<T>());
            if (!accumulate)
              ForEachIndexPutElement(named, [&](int64_t at, int64_t) {
                dx->data<T>()[at] = T(0);
              });
          }
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterIndexPut(OpRegistry* registry) {
  OpDef op("index_put");
  op.Input("x").Inputs("indices").Input("value").Output("out");
  op.Attr("accumulate", false).Infer(InferIndexPut).Reference(BindIndexPut);
  op.Grad(GradSpec{"index_put_grad",
                   {"x", "indices", "value"},
                   {},
                   {"out"},
                   {"x", "value"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("index_put_grad");
  grad.Input("x").Inputs("indices").Input("value").Input("out@GRAD");
  grad.OptionalOutput("x@GRAD").OptionalOutput("value@GRAD");
  grad.Attr("accumulate", false).NoGrad();
  grad.Infer(InferGradLikeInput).Reference(BindIndexPutGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
