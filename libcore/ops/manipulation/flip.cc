// SPDX-License-Identifier: Apache-2.0
// Elements in another order along some axes:
//   flip, reverse: from the last to the first along each of `axis`; its own
//     gradient
//   roll: element i of axis[k] goes to i + shifts[k], around the end; without
//     axes the flattened X is rolled. The shifts may come from ShiftsTensor.
//     X@GRAD: Out@GRAD rolled back
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/copy_loop.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/row_copies.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<std::vector<size_t>> FlipAxes(const OpDesc& op, size_t rank) {
  std::vector<size_t> axes;
  for (int64_t axis : IntsAttr(op, "axis")) {
    if (rank == 0 && (axis == 0 || axis == -1)) continue;
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, rank));
    axes.push_back(static_cast<size_t>(a));
  }
  return axes;
}

absl::Status InferFlip(InferContext* context) {
  PD_RETURN_IF_ERROR(
      FlipAxes(context->op(), context->Input("X").shape.size()).status());
  return InferUnary(context);
}

absl::StatusOr<Step> BindFlip(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const auto axes, FlipAxes(context->op(), x->rank()));
  std::vector<int64_t> strides = RowMajorStrides(x->shape());
  const auto to = strides;
  int64_t base = 0;
  for (size_t axis : axes) {
    if (strides[axis] < 0) continue;  // named twice: flipped once
    base += (x->dim(axis) - 1) * strides[axis];
    strides[axis] = -strides[axis];
  }
  StridedLoop<2> loop;
  for (size_t i = 0; i < strides.size(); ++i)
    loop.Add(x->dim(i), {strides[i], to[i]});
  return DispatchBytes(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (x->size() == 0) return absl::OkStatus();
      const T* from = x->data<T>() + base;
      T* to = out->data<T>();
      if (loop.row_strides() != StridedLoop<2>::Offsets{-1, 1}) {
        CopyLoop(loop, from, to);
        return absl::OkStatus();
      }
      ParallelFor(loop.size(), kElementGrain, [&](int64_t begin, int64_t end) {
        loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
          const T* last = from + at[0];
          T* row = to + at[1];
#pragma omp simd
          for (int64_t j = 0; j < n; ++j) row[j] = last[-j];
        });
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<std::vector<OpDesc>> FlipGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  if (!request.needs_grad(request.op.In("X"))) return ops;
  ops.push_back(request.op);
  ops.back().inputs = {{"X", {GradName(request.op.Out("Out"))}}};
  ops.back().outputs = {{"Out", {GradName(request.op.In("X"))}}};
  return ops;
}

// The rolled view of a tensor and how far each axis of it goes.
class Roll {
 public:
  static absl::StatusOr<Roll> Of(BindContext* context, const Shape& shape,
                                 bool back) {
    Roll r;
    r.back_ = back;
    PD_ASSIGN_OR_RETURN(r.axes_, FlipAxes(context->op(), shape.size()));
    r.shape_ = shape;
    if (IntsAttr(context->op(), "axis").empty()) {
      r.shape_ = {NumElements(shape)};
      r.axes_ = {0};
    }
    r.shifts_ = IntsAttr(context->op(), "shifts");
    r.tensor_ = context->Input("ShiftsTensor");
    const size_t given = r.tensor_ != nullptr
                             ? static_cast<size_t>(r.tensor_->size())
                             : r.shifts_.size();
    if (given != r.axes_.size() && !shape.empty())
      return InvalidArgument("there are %d shifts for %d axes", given,
                             r.axes_.size());
    return r;
  }

  // The step that moves `from` to `to`: each axis is cut where it wraps.
  Step MoveStep(Tensor* from, Tensor* to) const {
    return DispatchBytes(from->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      return Step([roll = *this, from, to](const RunContext&) {
        if (from->size() > 0)
          roll.Move(0, roll.Shifts(), from->data<T>(), to->data<T>());
        return absl::OkStatus();
      });
    });
  }

 private:
  // By axis of shape_, in [0, extent).
  std::vector<int64_t> Shifts() const {
    const std::vector<int64_t> given =
        tensor_ != nullptr ? IntsOf(*tensor_) : shifts_;
    std::vector<int64_t> by_axis(shape_.size(), 0);
    for (size_t i = 0; i < axes_.size() && i < given.size(); ++i) {
      const int64_t extent = shape_[axes_[i]];
      int64_t shift = given[i] % extent;
      if (back_) shift = -shift;
      int64_t& total = by_axis[axes_[i]];
      total = ((total + shift) % extent + extent) % extent;
    }
    return by_axis;
  }

  template <typename T>
  static void MovePiece(const T* from, int64_t n, T* to) {
    CopyLongRow(to, from, static_cast<size_t>(n) * sizeof(T));
  }

  template <typename T>
  void Move(size_t axis, const std::vector<int64_t>& shifts, const T* from,
            T* to) const {
    size_t last = axis;  // the next axis that moves
    while (last < shape_.size() && shifts[last] == 0) ++last;
    const int64_t inner = NumElements(shape_, axis, shape_.size());
    if (last == shape_.size()) {
      MovePiece(from, inner, to);
      return;
    }
    const int64_t outer = NumElements(shape_, axis, last);
    const int64_t width = NumElements(shape_, last + 1, shape_.size());
    const int64_t extent = shape_[last];
    const int64_t shift = shifts[last];
    if (std::all_of(shifts.begin() + static_cast<ptrdiff_t>(last) + 1,
                    shifts.end(), [](int64_t s) { return s == 0; })) {
      // Two pieces change places.
      const int64_t all = extent * width, end = shift * width;
      for (int64_t o = 0; o < outer; ++o, from += all, to += all) {
        MovePiece(from, all - end, to + end);
        MovePiece(from + all - end, end, to);
      }
      return;
    }
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < extent; ++i) {
        const int64_t at = (i + shift) % extent;
        Move(last + 1, shifts, from + (o * extent + i) * width,
             to + (o * extent + at) * width);
      }
    }
  }

  Shape shape_;
  std::vector<size_t> axes_;
  std::vector<int64_t> shifts_;
  Tensor* tensor_ = nullptr;
  bool back_ = false;
};

absl::Status InferRoll(InferContext* context) {
  PD_RETURN_IF_ERROR(
      FlipAxes(context->op(), context->Input("X").shape.size()).status());
  return InferUnary(context);
}

absl::StatusOr<Step> BindRoll(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Roll roll, Roll::Of(context, x->shape(), false));
  return roll.MoveStep(x, context->Output("Out"));
}

absl::StatusOr<Step> BindRollGrad(BindContext* context) {
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", dx->dtype(), dx->shape()));
  PD_ASSIGN_OR_RETURN(const Roll roll, Roll::Of(context, dx->shape(), true));
  return roll.MoveStep(context->Input("Out@GRAD"), dx);
}

void AddRollArguments(OpDef* op) {
  op->Input("X").OptionalInput("ShiftsTensor");
  op->Attr("shifts", std::vector<int64_t>());
  op->Attr("axis", std::vector<int64_t>());
}

}  // namespace

absl::Status RegisterFlip(OpRegistry* registry) {
  for (const char* type : {"flip", "reverse"}) {
    OpDef op(type);
    op.Input("X").Output("Out").RequiredAttr("axis", AttrType::kInts);
    op.Infer(InferFlip).Reference(BindFlip).Grad(GradMaker(FlipGrad));
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef roll("roll");
  AddRollArguments(&roll);
  roll.Output("Out").Infer(InferRoll).Reference(BindRoll);
  roll.Grad(GradSpec{"roll_grad", {"X", "ShiftsTensor"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(roll)));

  OpDef grad("roll_grad");
  AddRollArguments(&grad);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindRollGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
