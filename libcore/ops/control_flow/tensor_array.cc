// SPDX-License-Identifier: Apache-2.0
// Lists of tensors.
//   write_to_array: Out, the array, with X as element I
//   read_from_array: Out = X[I]
//   lod_array_length: the number of elements
//   tensor_array_to_tensor: the elements put together along `axis`, or with
//     use_stack along a new one; OutIndex, once their extents there, is empty,
//     as PaddlePaddle leaves it since tensors of rank 0 came
// The first two are each other's gradients. In that use read_from_array has
// X_W, the tensor that was written: an element that is missing is zeros like
// it. With the attribute `take`, which PaddlePaddle does not have, it takes the
// element out of X: the gradient of a value is not that of the one written over
// before.
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

// More elements than any loop writes.
constexpr int64_t kMostElements = int64_t{1} << 20;

// Of an index that host code can read.
absl::StatusOr<int64_t> IndexIn(const Tensor& index) {
  if (index.size() != 1 ||
      (index.dtype() != DType::kInt64 && index.dtype() != DType::kInt32))
    return InvalidArgument("'I' is %s %s; expected one int64",
                           Name(index.dtype()), ToString(index.shape()));
  const int64_t at = IntsOf(index)[0];
  if (at < 0 || at >= kMostElements)
    return InvalidArgument("'I' is %d; expected 0 to %d", at,
                           kMostElements - 1);
  return at;
}

// An array that held itself would have no end.
absl::Status NotAnArray() {
  return InvalidArgument("'X' is a tensor array; expected a tensor");
}

absl::Status InferWrite(InferContext* context) {
  TensorMeta out = context->Input("X");
  if (out.kind == VarKind::kLodTensorArray) return NotAnArray();
  out.value = nullptr;
  out.kind = VarKind::kLodTensorArray;
  out.lod.clear();
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status WriteElement(Values* values, const Tensor& x, const Tensor& index,
                          Tensor* out) {
  if (x.is_array()) return NotAnArray();
  PD_ASSIGN_OR_RETURN(const Tensor here, values->OnHost(index));
  PD_ASSIGN_OR_RETURN(const int64_t at, IndexIn(here));
  auto& elements = out->elements();
  if (at >= static_cast<int64_t>(elements.size()))
    elements.resize(static_cast<size_t>(at) + 1);
  PD_ASSIGN_OR_RETURN(elements[static_cast<size_t>(at)], values->Clone(x));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWrite(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* index = context->Input("I");
  Tensor* out = context->Output("Out");
  return Step([=, values = ValuesOf(context)](const RunContext&) {
    return WriteElement(values, *x, *index, out);
  });
}

// The element of a read whose inputs have their values; null: it is missing.
absl::StatusOr<const Tensor*> ElementOf(const Tensor& array,
                                        const Tensor& index, bool may_miss) {
  PD_ASSIGN_OR_RETURN(const int64_t at, IndexIn(index));
  const auto& elements = array.elements();
  const bool there = at < static_cast<int64_t>(elements.size()) &&
                     (elements[static_cast<size_t>(at)].has_value() ||
                      elements[static_cast<size_t>(at)].rank() > 0);
  if (!there && !may_miss)
    return InvalidArgument("element %d of an array of %d was not written", at,
                           elements.size());
  return there ? &elements[static_cast<size_t>(at)] : nullptr;
}

absl::Status InferRead(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& index = context->Input("I");
  const bool may_miss = context->HasInput("X_W");
  TensorMeta out;
  out.dtype = x.dtype;
  out.shape = Shape(x.shape.size(), -1);
  if (may_miss) {
    const TensorMeta& written = context->Input("X_W");
    out.dtype = written.dtype;
    out.shape = written.shape;
    out.lod = written.lod;
    out.lod_level = written.lod_level;
  }
  if (x.value != nullptr && index.value != nullptr) {
    PD_ASSIGN_OR_RETURN(const Tensor* element,
                        ElementOf(*x.value, *index.value, may_miss));
    if (element != nullptr) {
      out.dtype = element->dtype();
      out.shape = element->shape();
      out.SetLoD(element->lod());
    }
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRead(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* index = context->Input("I");
  Tensor* written = context->Input("X_W");
  Tensor* out = context->Output("Out");
  Values* values = ValuesOf(context);
  const bool take = context->op().AttrOr("take", false);
  return Step([=](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Tensor here, values->OnHost(*index));
    PD_ASSIGN_OR_RETURN(const Tensor* element,
                        ElementOf(*x, here, written != nullptr));
    if (element == nullptr) return values->ZerosLike(*written, out);
    PD_ASSIGN_OR_RETURN(*out, values->Clone(*element));
    if (take) {
      PD_ASSIGN_OR_RETURN(const int64_t at, IndexIn(here));
      x->elements()[static_cast<size_t>(at)] = Tensor();
    }
    return absl::OkStatus();
  });
}

absl::Status InferLength(InferContext* context) {
  context->SetOutput("Out", {1}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLength(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return Step([=](const RunContext&) {
    PD_RETURN_IF_ERROR(out->Resize(DType::kInt64, {1}));
    *out->data<int64_t>() = static_cast<int64_t>(x->elements().size());
    return absl::OkStatus();
  });
}

// Elements put together: [outer, sum of extents, inner].
struct Joined {
  Shape shape;
  AxisView view;
};

absl::StatusOr<Joined> Join(const OpDesc& op, const Tensor& array) {
  const auto& elements = array.elements();
  if (elements.empty()) return InvalidArgument("the array 'X' is empty");
  Joined j;
  const Tensor& first = elements[0];
  const bool stack = op.AttrOr<bool>("use_stack", false);
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(op.AttrOr<int32_t>("axis", 0),
                                    first.rank() + (stack ? 1 : 0)));
  const size_t at = static_cast<size_t>(axis);
  int64_t sum = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    Shape shape = elements[i].shape();
    bool fits =
        elements[i].dtype() == first.dtype() && shape.size() == first.rank();
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = shape[d] == first.dim(d) || (d == at && !stack);
    if (!fits)
      return InvalidArgument("element 0 of 'X' is %s %s, element %d is %s %s",
                             Name(first.dtype()), ToString(first.shape()), i,
                             Name(elements[i].dtype()), ToString(shape));
    sum += stack ? 1 : shape[at];
  }
  j.shape = first.shape();
  if (stack)
    j.shape.insert(j.shape.begin() + axis, sum);
  else
    j.shape[at] = sum;
  PD_ASSIGN_OR_RETURN(j.view, ViewAxis(j.shape, axis));
  return j;
}

absl::Status InferJoin(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const bool stack = context->Attr<bool>("use_stack");
  Shape shape(x.shape.size() + (stack ? 1 : 0), -1);
  DType dtype = x.dtype;
  if (x.value != nullptr) {
    PD_ASSIGN_OR_RETURN(const Joined j, Join(context->op(), *x.value));
    shape = j.shape;
    dtype = x.value->elements()[0].dtype();
  }
  context->SetOutput("Out", std::move(shape), dtype);
  context->SetOutput("OutIndex", {0}, DType::kInt32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindJoin(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* index = context->Output("OutIndex");
  Values* values = ValuesOf(context);
  return Step([=, op = context->op()](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Joined j, Join(op, *x));
    PD_ASSIGN_OR_RETURN(*out,
                        values->Join(x->elements(), j.view.outer, j.shape));
    if (index != nullptr) PD_RETURN_IF_ERROR(index->Resize(DType::kInt32, {0}));
    return absl::OkStatus();
  });
}

absl::Status InferJoinGrad(InferContext* context) {
  TensorMeta grad = context->Input("X");
  grad.value = nullptr;
  grad.kind = VarKind::kLodTensorArray;
  context->SetOutput("X@GRAD", std::move(grad));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindJoinGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Values* values = ValuesOf(context);
  return Step([=, op = context->op()](const RunContext&) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Joined j, Join(op, *x));
    if (NumElements(j.shape) != dout->size() ||
        dout->dtype() != x->elements()[0].dtype())
      return InvalidArgument("the elements make %s; 'Out@GRAD' is %s %s",
                             ToString(j.shape), Name(dout->dtype()),
                             ToString(dout->shape()));
    PD_ASSIGN_OR_RETURN(dx->elements(),
                        values->Split(*dout, j.view.outer, x->elements()));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> WriteGrad(const GradRequest& request) {
  if (!request.needs_grad(request.op.In("X"))) return std::vector<OpDesc>();
  OpDesc grad;
  grad.type = "read_from_array";
  grad.SetInput("I", request.op.Input("I"));
  grad.SetInput("X", {GradName(request.op.Out("Out"))});
  grad.SetInput("X_W", request.op.Input("X"));
  grad.SetOutput("Out", {GradName(request.op.In("X"))});
  grad.attrs["take"] = true;
  return std::vector<OpDesc>{std::move(grad)};
}

absl::StatusOr<std::vector<OpDesc>> ReadGrad(const GradRequest& request) {
  if (!request.needs_grad(request.op.In("X"))) return std::vector<OpDesc>();
  OpDesc grad;
  grad.type = "write_to_array";
  grad.SetInput("I", request.op.Input("I"));
  grad.SetInput("X", {GradName(request.op.Out("Out"))});
  grad.SetOutput("Out", {GradName(request.op.In("X"))});
  return std::vector<OpDesc>{std::move(grad)};
}

}  // namespace

absl::Status RegisterTensorArray(OpRegistry* registry) {
  OpDef write("write_to_array");
  write.Input("X").Input("I").Output("Out");
  write.With(Trait::kMovesValues)
      .Infer(InferWrite)
      .Reference(BindWrite)
      .Grad(WriteGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(write)));

  OpDef read("read_from_array");
  read.Input("X").Input("I").OptionalInput("X_W").Output("Out");
  read.With(Trait::kMovesValues)
      .Infer(InferRead)
      .Reference(BindRead)
      .Grad(ReadGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(read)));

  OpDef length("lod_array_length");
  length.Input("X").Output("Out");
  length.With(Trait::kMovesValues)
      .Infer(InferLength)
      .NoGrad()
      .Reference(BindLength);
  PD_RETURN_IF_ERROR(registry->Add(std::move(length)));

  OpDef join("tensor_array_to_tensor");
  join.Input("X").Output("Out").OptionalOutput("OutIndex");
  join.Attr("axis", int32_t{0}).Attr("use_stack", false);
  join.With(Trait::kMovesValues).Infer(InferJoin).Reference(BindJoin);
  join.Grad(GradSpec{"tensor_array_to_tensor_grad", {"X"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(join)));

  OpDef grad("tensor_array_to_tensor_grad");
  grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
  grad.Attr("axis", int32_t{0}).Attr("use_stack", false);
  grad.With(Trait::kMovesValues)
      .Infer(InferJoinGrad)
      .NoGrad()
      .Reference(BindJoinGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
