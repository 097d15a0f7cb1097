// SPDX-License-Identifier: Apache-2.0
// Out[s] = the rows of X whose SegmentIds is s, by `pooltype`: SUM, MEAN, MAX
// or MIN. The ids ascend; Out has a row for every number up to the last one,
// of zeros where none has it. SummedIds: how many rows each segment has.
// X@GRAD: the segment's Out@GRAD; MEAN: divided by the count; MAX, MIN: where
// the element equals Out.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class SegmentPooling { kSum, kMean, kMax, kMin };

absl::StatusOr<SegmentPooling> PoolOf(const OpDesc& op) {
  const std::string type = op.Attr<std::string>("pooltype");
  if (type == "SUM") return SegmentPooling::kSum;
  if (type == "MEAN") return SegmentPooling::kMean;
  if (type == "MAX") return SegmentPooling::kMax;
  if (type == "MIN") return SegmentPooling::kMin;
  return InvalidArgument(
      "attr 'pooltype' is '%s'; expected SUM, MEAN, MAX or MIN", type);
}

absl::Status InferSegmentPool(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& ids = context->Input("SegmentIds");
  PD_RETURN_IF_ERROR(PoolOf(context->op()).status());
  PD_RETURN_IF_ERROR(CheckIndexType("SegmentIds", ids.dtype));
  if (x.shape.empty()) return InvalidArgument("X has rank 0; expected rows");
  Shape shape = x.shape;
  shape[0] = -1;
  if (ids.value != nullptr) {
    const int64_t n = ids.value->size();
    const int64_t last = n > 0 ? LabelAt(*ids.value, n - 1) : -1;
    if (n == 0 || last < 0 || last == INT64_MAX)
      return InvalidArgument("SegmentIds has %d elements and ends with %d", n,
                             last);
    shape[0] = last + 1;
  }
  context->SetOutput("SummedIds", {shape[0], 1}, x.dtype);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

// The sorted ids and the rows that they are for.
class Segments {
 public:
  static absl::StatusOr<Segments> Of(const BindContext& context,
                                     const Tensor& x, const Tensor& out) {
    Segments s;
    s.ids_ = context.Input("SegmentIds");
    if (x.rank() == 0 || out.rank() == 0 || s.ids_->size() != x.dim(0))
      return InvalidArgument("X has shape %s, SegmentIds %s, Out %s",
                             ToString(x.shape()), ToString(s.ids_->shape()),
                             ToString(out.shape()));
    s.segments_ = out.dim(0);
    s.width_ = NumElements(x.shape(), 1, x.rank());
    if (out.size() != s.segments_ * s.width_ || x.dtype() != out.dtype())
      return InvalidArgument("X is %s %s; Out is %s %s", Name(x.dtype()),
                             ToString(x.shape()), Name(out.dtype()),
                             ToString(out.shape()));
    return s;
  }

  absl::Status Check() const {
    PD_RETURN_IF_ERROR(CheckIndices("SegmentIds", *ids_, 0, segments_));
    for (int64_t i = 1; i < ids_->size(); ++i)
      if (LabelAt(*ids_, i) < LabelAt(*ids_, i - 1))
        return InvalidArgument("SegmentIds falls from %d to %d at %d",
                               LabelAt(*ids_, i - 1), LabelAt(*ids_, i), i);
    return absl::OkStatus();
  }

  // Calls body(segment, first row, one past the last row).
  template <typename Body>
  void ForEach(const Body& body) const {
    const int64_t n = ids_->size();
    for (int64_t begin = 0, end = 0; begin < n; begin = end) {
      const int64_t id = LabelAt(*ids_, begin);
      for (end = begin; end < n && LabelAt(*ids_, end) == id;) ++end;
      body(id, begin, end);
    }
  }
  int64_t width() const { return width_; }

 private:
  Tensor* ids_ = nullptr;
  int64_t segments_ = 0, width_ = 0;
};

absl::StatusOr<Step> BindSegmentPool(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* counts = context->Output("SummedIds");
  PD_ASSIGN_OR_RETURN(const SegmentPooling pool, PoolOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Segments segments,
                      Segments::Of(*context, *x, *out));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(segments.Check());
          const int64_t width = segments.width();
          std::fill_n(out->data<T>(), out->size(), T(0));
          if (counts != nullptr)
            std::fill_n(counts->data<T>(), counts->size(), T(0));
          segments.ForEach([&](int64_t id, int64_t begin, int64_t end) {
            const T n = static_cast<T>(end - begin);
            if (counts != nullptr) counts->data<T>()[id] = n;
            T* to = out->data<T>() + id * width;
            std::copy_n(x->data<T>() + begin * width, width, to);
            for (int64_t row = begin + 1; row < end; ++row) {
              const T* from = x->data<T>() + row * width;
              for (int64_t j = 0; j < width; ++j)
                to[j] = pool == SegmentPooling::kMax ? std::max(to[j], from[j])
                        : pool == SegmentPooling::kMin
                            ? std::min(to[j], from[j])
                            : to[j] + from[j];
            }
            for (int64_t j = 0; pool == SegmentPooling::kMean && j < width; ++j)
              to[j] /= n;
          });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindSegmentPoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (Tensor* counts = context->Input("SummedIds")) context->NoBuffer(counts);
  PD_ASSIGN_OR_RETURN(const SegmentPooling pool, PoolOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Segments segments,
                      Segments::Of(*context, *dx, *dout));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out", dout->dtype(), dout->shape()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          PD_RETURN_IF_ERROR(segments.Check());
          const int64_t width = segments.width();
          const bool extremum =
              pool == SegmentPooling::kMax || pool == SegmentPooling::kMin;
          segments.ForEach([&](int64_t id, int64_t begin, int64_t end) {
            const T n = pool == SegmentPooling::kMean
                            ? static_cast<T>(end - begin)
                            : T(1);
            const T* d = dout->data<T>() + id * width;
            const T* best = out->data<T>() + id * width;
            for (int64_t row = begin; row < end; ++row) {
              const T* from = x->data<T>() + row * width;
              T* to = dx->data<T>() + row * width;
              for (int64_t j = 0; j < width; ++j)
                to[j] = extremum && from[j] != best[j] ? T(0) : d[j] / n;
            }
          });
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterSegmentPool(OpRegistry* registry) {
  OpDef op("segment_pool");
  op.Input("X").Input("SegmentIds").Output("Out");
  op.IntermediateOutput("SummedIds").Attr("pooltype", std::string("SUM"));
  op.Infer(InferSegmentPool).Reference(BindSegmentPool);
  op.Grad(GradSpec{"segment_pool_grad",
                   {"X", "SegmentIds"},
                   {"Out", "SummedIds"},
                   {"Out"},
                   {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("segment_pool_grad");
  grad.Input("X").Input("SegmentIds").Input("Out").OptionalInput("SummedIds");
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("pooltype", std::string("SUM")).Infer(InferGradLikeInput);
  grad.NoGrad().Reference(BindSegmentPoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
