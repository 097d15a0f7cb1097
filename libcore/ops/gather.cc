// SPDX-License-Identifier: Apache-2.0
// Rows by number.
//   gather: Out = the slices of X along `axis` (or the element of Axis) that
//     Index names; a scalar Index drops the axis
//   index_select: the same with the attribute `dim`
//   gather_nd: Index [..., k] names elements of X's first k axes
// X@GRAD: 0, with the slices of Out@GRAD added where they came from. Negative
// numbers count from the end in gather_nd only; others outside are errors.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<int64_t> IndexAt(const Tensor& index, int64_t i,
                                int64_t extent) {
  const int64_t at = index.dtype() == DType::kInt64 ? index.data<int64_t>()[i]
                                                    : index.data<int32_t>()[i];
  if (at < 0 || at >= extent)
    return OutOfRange("index %d is outside [0, %d)", at, extent);
  return at;
}

absl::Status CheckIndex(DType dtype) {
  if (dtype == DType::kInt64 || dtype == DType::kInt32) return absl::OkStatus();
  return InvalidArgument("Index is %s; expected int32 or int64", Name(dtype));
}

absl::StatusOr<size_t> AxisOf(const InferContext& context, size_t rank) {
  int64_t axis = context.op().AttrOr<int32_t>(
      context.op().type == "index_select" ? "dim" : "axis", 0);
  if (context.HasInput("Axis")) {
    const TensorMeta& meta = context.Input("Axis");
    if (meta.value == nullptr)
      return Unimplemented(
          "the axis is given by a tensor whose value is not "
          "known when the program is compiled");
    axis = IntsOf(*meta.value).at(0);
  }
  PD_ASSIGN_OR_RETURN(const int at, NormalizeAxis(axis, rank));
  return static_cast<size_t>(at);
}

absl::Status InferGather(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndex(index.dtype));
  PD_ASSIGN_OR_RETURN(const size_t axis, AxisOf(*context, out.shape.size()));
  const bool column = index.shape.size() == 2 && index.shape[1] == 1;
  if (index.shape.size() > 1 && !column)
    return InvalidArgument("Index has shape %s; expected [n] or [n, 1]",
                           ToString(index.shape));
  if (index.shape.empty())
    out.shape.erase(out.shape.begin() + static_cast<int64_t>(axis));
  else
    out.shape[axis] = index.shape[0];
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// X as [outer, extent, bytes of a slice].
struct Slices {
  int64_t outer = 1, extent = 1, count = 1, inner = 1;
};

absl::StatusOr<Slices> SlicesOf(BindContext* context, const Shape& x,
                                const Shape& out) {
  Tensor* index = context->Input("Index");
  Slices s;
  size_t axis = 0;
  if (Tensor* by = context->Input("Axis")) {
    context->NoBuffer(by);
    // The first axis whose extents differ, as inference found it.
    if (index->rank() == 0) {
      while (axis < out.size() && x[axis] == out[axis]) ++axis;
    } else {
      while (axis + 1 < x.size() &&
             (x[axis] == out[axis] || out[axis] != index->dim(0)))
        ++axis;
    }
  } else {
    const bool select = context->op().type.rfind("index_select", 0) == 0;
    PD_ASSIGN_OR_RETURN(
        const int at,
        NormalizeAxis(context->op().AttrOr<int32_t>(select ? "dim" : "axis", 0),
                      x.size()));
    axis = static_cast<size_t>(at);
  }
  s.outer = NumElements(x, 0, axis);
  s.extent = x[axis];
  s.count = index->size();
  s.inner = NumElements(x, axis + 1, x.size());
  if (s.outer * s.count * s.inner != NumElements(out))
    return InvalidArgument("X has shape %s, Index %s; Out has shape %s",
                           ToString(x), ToString(index->shape()),
                           ToString(out));
  return s;
}

absl::StatusOr<Step> BindGather(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* index = context->Input("Index");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Slices s,
                      SlicesOf(context, x->shape(), out->shape()));
  const size_t bytes = static_cast<size_t>(s.inner) * SizeOf(x->dtype());
  return Step([x, index, out, s, bytes](const RunContext&) {
    const char* from = x->data<char>();
    char* to = out->data<char>();
    for (int64_t o = 0; o < s.outer; ++o) {
      for (int64_t i = 0; i < s.count; ++i) {
        PD_ASSIGN_OR_RETURN(const int64_t at, IndexAt(*index, i, s.extent));
        std::memcpy(to, from + static_cast<size_t>(o * s.extent + at) * bytes,
                    bytes);
        to += bytes;
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
  PD_ASSIGN_OR_RETURN(const Slices s,
                      SlicesOf(context, dx->shape(), dout->shape()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([index, dout, dx, s](const RunContext&) {
          std::memset(dx->raw(), 0, dx->bytes());
          const T* from = dout->data<T>();
          for (int64_t o = 0; o < s.outer; ++o) {
            for (int64_t i = 0; i < s.count; ++i) {
              PD_ASSIGN_OR_RETURN(const int64_t at,
                                  IndexAt(*index, i, s.extent));
              T* to = dx->data<T>() + (o * s.extent + at) * s.inner;
              for (int64_t j = 0; j < s.inner; ++j) to[j] += from[j];
              from += s.inner;
            }
          }
          return absl::OkStatus();
        });
      });
}

absl::Status InferGatherNd(InferContext* context) {
  TensorMeta out = context->Input("X");
  out.value = nullptr;
  const TensorMeta& index = context->Input("Index");
  PD_RETURN_IF_ERROR(CheckIndex(index.dtype));
  if (index.shape.empty() || index.shape.back() < 0 ||
      index.shape.back() > static_cast<int64_t>(out.shape.size()))
    return InvalidArgument(
        "X has shape %s, Index %s; its last extent must be "
        "in [0, %d]",
        ToString(out.shape), ToString(index.shape), out.shape.size());
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
    int64_t at = index.dtype() == DType::kInt64
                     ? index.data<int64_t>()[i * k + d]
                     : index.data<int32_t>()[i * k + d];
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
  const int64_t rows = NumElements(index->shape(), 0, index->rank() - 1);
  const size_t k = static_cast<size_t>(index->shape().back());
  const int64_t width = NumElements(dx->shape(), k, dx->rank());
  return DispatchTypes<float, double, int32_t, int64_t>(
      dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([index, dout, dx, rows, width](const RunContext&) {
          std::memset(dx->raw(), 0, dx->bytes());
          const T* from = dout->data<T>();
          for (int64_t i = 0; i < rows; ++i, from += width) {
            PD_ASSIGN_OR_RETURN(const int64_t at,
                                SliceAt(*index, i, dx->shape()));
            T* to = dx->data<T>() + at * width;
            for (int64_t j = 0; j < width; ++j) to[j] += from[j];
          }
          return absl::OkStatus();
        });
      });
}

struct Kind {
  const char* type;
  const char* axis_attr;  // null: none
  bool axis_tensor;
  InferFn infer;
  BindFn bind, bind_grad;
};

absl::Status AddOp(OpRegistry* registry, const Kind& kind) {
  const std::string type = kind.type;
  const auto add_arguments = [&](OpDef* op) {
    op->Input("X").Input("Index");
    if (kind.axis_tensor) op->OptionalInput("Axis");
    if (kind.axis_attr != nullptr) op->Attr(kind.axis_attr, int32_t{0});
  };
  OpDef op(type);
  add_arguments(&op);
  op.Output("Out").Infer(kind.infer).Reference(kind.bind);
  GradSpec spec{type + "_grad", {"X", "Index"}, {}, {"Out"}, {"X"}};
  if (kind.axis_tensor) spec.inputs.push_back("Axis");
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  add_arguments(&grad);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(kind.bind_grad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterGather(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddOp(registry, {"gather", "axis", true, InferGather,
                                      BindGather, BindGatherGrad}));
  PD_RETURN_IF_ERROR(AddOp(registry, {"index_select", "dim", false, InferGather,
                                      BindGather, BindGatherGrad}));
  return AddOp(registry, {"gather_nd", nullptr, false, InferGatherNd,
                          BindGatherNd, BindGatherNdGrad});
}

}  // namespace pd
