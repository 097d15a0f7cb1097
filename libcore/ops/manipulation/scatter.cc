// SPDX-License-Identifier: Apache-2.0
// Slices put to places that an index names; everything else is X's.
//   scatter: rows of Updates replace the rows Ids of X; without overwrite they
//     are added up in them, after those rows have become 0
//   scatter_nd_add: slices of Updates are added where Index [..., k] says
//   index_add: slices of AddValue are added along `axis` where Index says
// X@GRAD is Out@GRAD, in scatter with 0 in the rows Ids; the gradient of what
// is put in is Out@GRAD gathered from where it went.
//   index_sample: Out[i, j] = X[i, Index[i, j]]; X@GRAD: added where it was
#include <complex>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Where slices go: slice i of the source is slice Of(i) of the target, both
// `inner` elements long.
class ScatterPlaces {
 public:
  // Of the op's index and the shapes of X and of what is put in.
  static absl::StatusOr<ScatterPlaces> Of(const BindContext& context,
                                          const Shape& x, const Shape& source);

  absl::Status Check() const {
    if (depth_ < 0) return CheckIndices(slot_, *index_, 0, extents_[0]);
    for (int64_t i = 0; i < index_->size(); ++i) {
      const int64_t extent = extents_[static_cast<size_t>(i % depth_)];
      const int64_t at = LabelAt(*index_, i);
      if (at < 0 || at >= extent)
        return OutOfRange("'%s' holds %d at %d; expected numbers in [0, %d)",
                          slot_, at, i, extent);
    }
    return absl::OkStatus();
  }

  // Calls body(element of the source, element of the target) for every slice.
  template <typename Body>
  void ForSlices(const Body& body) const {
    if (depth_ >= 0) {
      for (int64_t i = 0; i < count_; ++i) {
        int64_t at = 0;
        for (int64_t d = 0; d < depth_; ++d)
          at = at * extents_[static_cast<size_t>(d)] +
               LabelAt(*index_, i * depth_ + d);
        body(i * inner_, at * inner_);
      }
      return;
    }
    for (int64_t o = 0; o < outer_; ++o)
      for (int64_t i = 0; i < count_; ++i)
        body((o * count_ + i) * inner_,
             (o * extents_[0] + LabelAt(*index_, i)) * inner_);
  }
  int64_t inner() const { return inner_; }

 private:
  const char* slot_ = "Index";
  Tensor* index_ = nullptr;
  int64_t depth_ = -1;  // >= 0: an index tuple for each slice
  Shape extents_;       // of what is indexed
  int64_t outer_ = 1, count_ = 1, inner_ = 1;
};

// The names of an op's slots.
struct Names {
  const char *index, *source;
};
Names NamesOf(const OpDesc& op) {
  if (op.type.rfind("scatter_nd_add", 0) == 0) return {"Index", "Updates"};
  if (op.type.rfind("scatter", 0) == 0) return {"Ids", "Updates"};
  return {"Index", "AddValue"};
}

absl::StatusOr<ScatterPlaces> ScatterPlaces::Of(const BindContext& context,
                                                const Shape& x,
                                                const Shape& source) {
  const OpDesc& op = context.op();
  ScatterPlaces p;
  p.slot_ = NamesOf(op).index;
  p.index_ = context.Input(p.slot_);
  PD_RETURN_IF_ERROR(CheckIndexType(p.slot_, p.index_->dtype()));
  const Shape& index = p.index_->shape();
  if (op.type.rfind("scatter_nd_add", 0) == 0) {
    if (index.empty() || index.back() > static_cast<int64_t>(x.size()))
      return InvalidArgument("Index has shape %s; X has %s", ToString(index),
                             ToString(x));
    p.depth_ = index.back();
    const size_t depth = static_cast<size_t>(p.depth_);
    p.extents_.assign(x.begin(), x.begin() + p.depth_);
    p.count_ = NumElements(index, 0, index.size() - 1);
    p.inner_ = NumElements(x, depth, x.size());
  } else {
    const bool scatter = op.type.rfind("scatter", 0) == 0;
    PD_ASSIGN_OR_RETURN(
        const int axis,
        NormalizeAxis(scatter ? 0 : op.Attr<int32_t>("axis"), x.size()));
    const size_t at = static_cast<size_t>(axis);
    p.outer_ = NumElements(x, 0, at);
    p.extents_ = {x[at]};
    p.count_ = p.index_->size();
    p.inner_ = NumElements(x, at + 1, x.size());
  }
  if (p.outer_ * p.count_ * p.inner_ != NumElements(source))
    return InvalidArgument("X has shape %s, %s %s; %s has %s", ToString(x),
                           p.slot_, ToString(index), NamesOf(op).source,
                           ToString(source));
  return p;
}

absl::Status InferScatter(InferContext* context) {
  const Names names = NamesOf(context->op());
  PD_RETURN_IF_ERROR(
      CheckIndexType(names.index, context->Input(names.index).dtype));
  const TensorMeta& x = context->Input("X");
  const TensorMeta& source = context->Input(names.source);
  if (x.dtype != source.dtype)
    return InvalidArgument("X is %s; %s is %s", Name(x.dtype), names.source,
                           Name(source.dtype));
  return InferUnary(context);
}

absl::StatusOr<Step> BindScatter(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* source = context->Input(NamesOf(context->op()).source);
  Tensor* out = context->Output("Out");
  if (source != x) context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const ScatterPlaces places,
                      ScatterPlaces::Of(*context, x->shape(), source->shape()));
  const bool scatter = context->op().type == "scatter";
  const bool replace = scatter && context->Attr<bool>("overwrite");
  const auto bind = [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(places.Check());
      if (out->raw() != x->raw() && x->bytes() > 0)
        std::memcpy(out->raw(), x->raw(), x->bytes());
      T* to = out->data<T>();
      const T* from = source->data<T>();
      const int64_t n = places.inner();
      if (scatter && !replace)
        places.ForSlices(
            [&](int64_t, int64_t at) { std::fill_n(to + at, n, T(0)); });
      places.ForSlices([&](int64_t i, int64_t at) {
        const T* row = from + i;
        T* place = to + at;
        if (replace) {
          std::copy_n(row, n, place);
          return;
        }
#pragma omp simd
        for (int64_t j = 0; j < n; ++j)
          place[j] = static_cast<T>(place[j] + row[j]);
      });
      return absl::OkStatus();
    });
  };
  if (x->dtype() == DType::kUInt8)
    return DispatchTypes<uint8_t>(x->dtype(), bind);
  return DispatchArithmetic(x->dtype(), bind);
}

absl::Status InferScatterGrad(InferContext* context) {
  const std::string source = NamesOf(context->op()).source;
  context->Share("Out@GRAD", "X@GRAD");
  context->Share(source, GradName(source));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindScatterGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  const std::string slot = NamesOf(context->op()).source;
  Tensor* source = context->Input(slot);
  context->NoBuffer(source);
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dsource = context->Output(GradName(slot));
  PD_ASSIGN_OR_RETURN(
      const ScatterPlaces places,
      ScatterPlaces::Of(*context, dout->shape(), source->shape()));
  if (source->dtype() != dout->dtype())
    return InvalidArgument("Out@GRAD is %s; %s is %s", Name(dout->dtype()),
                           slot, Name(source->dtype()));
  const bool clears = context->op().type == "scatter_grad";
  return DispatchArithmetic(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(places.Check());
          const int64_t n = places.inner();
          if (dsource != nullptr)
            places.ForSlices([&](int64_t i, int64_t at) {
              std::copy_n(dout->data<T>() + at, n, dsource->data<T>() + i);
            });
          if (dx != nullptr) {
            std::copy_n(dout->data<T>(), dout->size(), dx->data<T>());
            if (clears)
              places.ForSlices([&](int64_t, int64_t at) {
                std::fill_n(dx->data<T>() + at, n, T(0));
              });
          }
          return absl::OkStatus();
        });
      });
}

absl::Status InferIndexSample(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndexType("Index", index.dtype));
  if (x.shape.size() != 2 || index.shape.size() != 2 ||
      (x.shape[0] >= 0 && index.shape[0] >= 0 && x.shape[0] != index.shape[0]))
    return InvalidArgument(
        "X has shape %s, Index %s; expected two matrices of "
        "as many rows",
        ToString(x.shape), ToString(index.shape));
  context->SetOutput("Out", index.shape, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindIndexSample(BindContext* context) {
  const bool back = context->op().type == "index_sample_grad";
  Tensor* index = context->Input("Index");
  Tensor* full = back ? context->Output("X@GRAD") : context->Input("X");
  Tensor* part = back ? context->Input("Out@GRAD") : context->Output("Out");
  if (back) context->NoBuffer(context->Input("X"));
  if (full->rank() != 2 || part->rank() != 2 || full->dim(0) != part->dim(0) ||
      part->size() != index->size() || full->dtype() != part->dtype())
    return InvalidArgument("X is %s %s, Index %s, Out %s %s",
                           Name(full->dtype()), ToString(full->shape()),
                           ToString(index->shape()), Name(part->dtype()),
                           ToString(part->shape()));
  return DispatchArithmetic(
      full->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const int64_t width = full->dim(1), count = part->dim(1);
          PD_RETURN_IF_ERROR(CheckIndices("Index", *index, 0, width));
          if (back) std::memset(full->raw(), 0, full->bytes());
          T *wide = full->data<T>(), *narrow = part->data<T>();
          auto sample = [=](const auto* at) mutable {
            for (int64_t r = 0; r < full->dim(0); ++r) {
              if (back)
                for (int64_t j = 0; j < count; ++j) wide[at[j]] += narrow[j];
              else
                for (int64_t j = 0; j < count; ++j) narrow[j] = wide[at[j]];
              wide += width;
              narrow += count;
              at += count;
            }
          };
          if (index->dtype() == DType::kInt64)
            sample(index->data<int64_t>());
          else
            sample(index->data<int32_t>());
          return absl::OkStatus();
        });
      });
}

absl::Status AddScatterOp(OpRegistry* registry, const std::string& type) {
  OpDesc named;
  named.type = type;
  const Names names = NamesOf(named);
  OpDef op(type);
  op.Input("X").Input(names.index).Input(names.source).Output("Out");
  OpDef grad(type + "_grad");
  grad.Input(names.index).Input(names.source).Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput(GradName(names.source));
  for (OpDef* def : {&op, &grad}) {
    if (type == "scatter") def->Attr("overwrite", true);
    if (type == "index_add") def->Attr("axis", int32_t{0});
  }
  op.Infer(InferScatter).Reference(BindScatter);
  op.Grad(GradSpec{type + "_grad",
                   {names.index, names.source},
                   {},
                   {"Out"},
                   {"X", names.source}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Infer(InferScatterGrad).NoGrad().Reference(BindScatterGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterScatter(OpRegistry* registry) {
  for (const char* type : {"scatter", "scatter_nd_add", "index_add"})
    PD_RETURN_IF_ERROR(AddScatterOp(registry, type));

  OpDef sample("index_sample");
  sample.Input("X").Input("Index").Output("Out");
  sample.Infer(InferIndexSample).Reference(BindIndexSample);
  sample.Grad(
      GradSpec{"index_sample_grad", {"X", "Index"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(sample)));

  OpDef grad("index_sample_grad");
  grad.Input("X").Input("Index").Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindIndexSample);
  return registry->Add(std::move(grad));
}

}  // namespace pd
