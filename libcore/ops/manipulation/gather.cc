// SPDX-License-Identifier: Apache-2.0
// Rows by number.
//   gather: Out = the slices of X along `axis` (or the element of Axis) that
//     Index names; a scalar Index drops the axis
//   index_select: the same with the attribute `dim`
//   gather_nd: Index [..., k] names elements of X's first k axes
// X@GRAD: 0, with the slices of Out@GRAD added where they came from. Negative
// numbers count from the end in gather_nd only; others outside are errors.
#include <complex>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The axis that Index counts along; nothing when it is not known yet.
absl::StatusOr<std::optional<size_t>> GatherAxisOf(const InferContext& context,
                                                   size_t rank) {
  int64_t axis = context.op().Attr<int32_t>(
      context.op().type == "index_select" ? "dim" : "axis");
  if (context.HasInput("Axis")) {
    const TensorMeta& meta = context.Input("Axis");
    if (meta.value == nullptr) return std::optional<size_t>();
    const std::vector<int64_t> value = IntsOf(*meta.value);
    if (value.size() != 1)
      return InvalidArgument("Axis has %d elements; expected one",
                             value.size());
    axis = value[0];
  }
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, rank));
  return std::optional<size_t>(static_cast<size_t>(at));
}

absl::Status InferGather(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndexType("Index", index.dtype));
  PD_ASSIGN_OR_RETURN(const auto axis,
                      GatherAxisOf(*context, out.shape.size()));
  const bool column = index.shape.size() == 2 && index.shape[1] == 1;
  if (index.shape.size() > 1 && !column)
    return InvalidArgument("Index has shape %s; expected [n] or [n, 1]",
                           ToString(index.shape));
  if (!axis.has_value())
    out.shape.assign(out.shape.size() - index.shape.empty(), -1);
  else if (index.shape.empty())
    out.shape.erase(out.shape.begin() + static_cast<int64_t>(*axis));
  else
    out.shape[*axis] = index.shape[0];
  // Rows of another number are no sequences any more.
  if (!axis.has_value() || *axis == 0 || index.shape.empty()) {
    out.lod.clear();
    out.lod_level = 0;
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// X as [outer, extent, inner], of which `count` slices are taken.
struct Slices {
  int64_t outer = 1, extent = 1, count = 1, inner = 1;
};

absl::StatusOr<Slices> SlicesAt(const Shape& x, const Shape& out, int64_t count,
                                int64_t along) {
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(along, x.size()));
  const size_t axis = static_cast<size_t>(at);
  Slices s;
  s.outer = NumElements(x, 0, axis);
  s.extent = x[axis];
  s.count = count;
  s.inner = NumElements(x, axis + 1, x.size());
  if (s.outer * s.count * s.inner != NumElements(out))
    return InvalidArgument(
        "X has shape %s, there are %d indices; Out has "
        "shape %s",
        ToString(x), count, ToString(out));
  return s;
}

// The step `work(slices)`. The axis is the attribute, or read in every step.
template <typename Work>
absl::StatusOr<Step> SlicesStep(BindContext* context, const Tensor* full,
                                const Tensor* part, const Work& work) {
  const Tensor* index = context->Input("Index");
  const Tensor* axis = context->Input("Axis");
  if (full->dtype() != part->dtype())
    return InvalidArgument("X is %s; Out is %s", Name(full->dtype()),
                           Name(part->dtype()));
  if (axis != nullptr)
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(CheckLabelType("Axis", axis->dtype()));
      PD_ASSIGN_OR_RETURN(const Slices slices,
                          SlicesAt(full->shape(), part->shape(), index->size(),
                                   axis->size() == 1 ? LabelAt(*axis, 0) : 0));
      return work(slices);
    });
  const bool select = context->op().type.rfind("index_select", 0) == 0;
  PD_ASSIGN_OR_RETURN(
      const Slices slices,
      SlicesAt(full->shape(), part->shape(), index->size(),
               context->op().Attr<int32_t>(select ? "dim" : "axis")));
  return Step([=](const RunContext&) { return work(slices); });
}

// Slices of one element of a usual size.
template <typename T, typename I>
void GatherElements(const Slices& s, const T* from, const I* at, T* to) {
  for (int64_t o = 0; o < s.outer; ++o, from += s.extent, to += s.count)
    for (int64_t i = 0; i < s.count; ++i) to[i] = from[at[i]];
}
template <typename T>
void GatherElements(const Slices& s, const Tensor& from, const Tensor& index,
                    Tensor* to) {
  if (index.dtype() == DType::kInt64)
    GatherElements(s, from.data<T>(), index.data<int64_t>(), to->data<T>());
  else
    GatherElements(s, from.data<T>(), index.data<int32_t>(), to->data<T>());
}

absl::StatusOr<Step> BindGather(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* index = context->Input("Index");
  Tensor* out = context->Output("Out");
  return SlicesStep(context, x, out, [=](const Slices& s) {
    PD_RETURN_IF_ERROR(CheckIndices("Index", *index, 0, s.extent));
    const size_t bytes = static_cast<size_t>(s.inner) * SizeOf(x->dtype());
    if (bytes == 4 || bytes == 8) {
      bytes == 4 ? GatherElements<uint32_t>(s, *x, *index, out)
                 : GatherElements<uint64_t>(s, *x, *index, out);
      return absl::OkStatus();
    }
    const char* from = x->data<char>();
    char* to = out->data<char>();
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t i = 0; i < s.count && bytes > 0; ++i, to += bytes) {
        const int64_t at = o * s.extent + LabelAt(*index, i);
        std::memcpy(to, from + static_cast<size_t>(at) * bytes, bytes);
      }
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindGatherGrad(BindContext* context) {
  Tensor* index = context->Input("Index");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  return DispatchArithmetic(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return SlicesStep(context, dx, dout, [=](const Slices& s) {
      PD_RETURN_IF_ERROR(CheckIndices("Index", *index, 0, s.extent));
      std::memset(dx->raw(), 0, dx->bytes());
      const T* from = dout->data<T>();
      for (int64_t o = 0; o < s.outer; ++o) {
        for (int64_t i = 0; i < s.count; ++i, from += s.inner) {
          T* to = dx->data<T>() + (o * s.extent + LabelAt(*index, i)) * s.inner;
#pragma omp simd
          for (int64_t j = 0; j < s.inner; ++j) to[j] += from[j];
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status CheckNd(const Shape& x, const Shape& index) {
  if (!index.empty() && index.back() >= 0 &&
      index.back() <= static_cast<int64_t>(x.size()))
    return absl::OkStatus();
  return InvalidArgument(
      "X has shape %s, Index %s; its last extent must be in [0, %d]",
      ToString(x), ToString(index), x.size());
}

absl::Status InferGatherNd(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  out.lod.clear();
  out.lod_level = 0;
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndexType("Index", index.dtype));
  PD_RETURN_IF_ERROR(CheckNd(out.shape, index.shape));
  Shape shape(index.shape.begin(), index.shape.end() - 1);
  shape.insert(shape.end(), out.shape.begin() + index.shape.back(),
               out.shape.end());
  out.shape = std::move(shape);
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// The slice of x that row `i` of an index names.
absl::StatusOr<int64_t> SliceAt(const Tensor& index, int64_t i,
                                const Shape& x) {
  const int64_t k = index.shape().back();
  int64_t slice = 0;
  for (int64_t d = 0; d < k; ++d) {
    const int64_t extent = x[static_cast<size_t>(d)];
    int64_t at = LabelAt(index, i * k + d);
    if (at < -extent || at >= extent)
      return OutOfRange("index %d is outside [%d, %d)", at, -extent, extent);
    if (at < 0) at += extent;
    slice = slice * extent + at;
  }
  return slice;
}

absl::StatusOr<Step> BindGatherNd(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* index = context->Input("Index");
  Tensor* out = context->Output("Out");
  const int64_t rows = NumElements(index->shape(), 0, index->rank() - 1);
  const size_t k = static_cast<size_t>(index->shape().back());
  const size_t bytes =
      static_cast<size_t>(NumElements(x->shape(), k, x->rank())) *
      SizeOf(x->dtype());
  return Step([x, index, out, rows, bytes](const RunContext&) {
    char* to = out->data<char>();
    for (int64_t i = 0; i < rows; ++i, to += bytes) {
      PD_ASSIGN_OR_RETURN(const int64_t at, SliceAt(*index, i, x->shape()));
      std::memcpy(to, x->data<char>() + static_cast<size_t>(at) * bytes, bytes);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindGatherNdGrad(BindContext* context) {
  Tensor* index = context->Input("Index");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  PD_RETURN_IF_ERROR(CheckNd(dx->shape(), index->shape()));
  const int64_t rows = NumElements(index->shape(), 0, index->rank() - 1);
  const size_t k = static_cast<size_t>(index->shape().back());
  const int64_t width = NumElements(dx->shape(), k, dx->rank());
  if (dout->dtype() != dx->dtype() || dout->size() != rows * width)
    return InvalidArgument("Out@GRAD is %s %s; X is %s %s, Index %s",
                           Name(dout->dtype()), ToString(dout->shape()),
                           Name(dx->dtype()), ToString(dx->shape()),
                           ToString(index->shape()));
  return DispatchArithmetic(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([index, dout, dx, rows, width](const RunContext&) {
      std::memset(dx->raw(), 0, dx->bytes());
      const T* from = dout->data<T>();
      for (int64_t i = 0; i < rows; ++i, from += width) {
        PD_ASSIGN_OR_RETURN(const int64_t at, SliceAt(*index, i, dx->shape()));
        T* to = dx->data<T>() + at * width;
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) to[j] += from[j];
      }
      return absl::OkStatus();
    });
  });
}

struct GatherKind {
  const char* type;
  const char* axis_attr;  // null: none
  bool axis_tensor;
  InferFn infer;
  BindFn bind, bind_grad;
};

absl::Status AddGatherOp(OpRegistry* registry, const GatherKind& kind) {
  const std::string type = kind.type;
  const auto add_arguments = [&](OpDef* op) {
    op->Input("X").Input("Index");
    if (kind.axis_tensor) op->OptionalInput("Axis");
    if (kind.axis_attr != nullptr) op->Attr(kind.axis_attr, int32_t{0});
  };
  OpDef op(type);
  add_arguments(&op);
  op.Output("Out").Infer(kind.infer).Reference(kind.bind);
  op.With(Trait::kShapeArithmetic).With(Trait::kReadsSomeRows);
  GradSpec spec{type + "_grad", {"X", "Index"}, {}, {"Out"}, {"X"}};
  if (kind.axis_tensor) spec.inputs.push_back("Axis");
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  add_arguments(&grad);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).Reference(kind.bind_grad);
  grad.Grad(ForwardAgain(type, "X", "Out", {"Index", "Axis"}));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterGather(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddGatherOp(registry, {"gather", "axis", true, InferGather,
                                            BindGather, BindGatherGrad}));
  PD_RETURN_IF_ERROR(AddGatherOp(
      registry,
      {"index_select", "dim", false, InferGather, BindGather, BindGatherGrad}));
  return AddGatherOp(registry, {"gather_nd", nullptr, false, InferGatherNd,
                                BindGatherNd, BindGatherNdGrad});
}

}  // namespace pd
