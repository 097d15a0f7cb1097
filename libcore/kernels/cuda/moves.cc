// SPDX-License-Identifier: Apache-2.0
// Reductions, constants, and what changes places or shapes only; the kernels
// are in elementwise.cu.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/check.h"
#include "libcore/ops/int_tensors.h"

namespace pd::cuda {
namespace {

// Which axes are reduced: those of `dim`, or all of them.
absl::StatusOr<std::vector<bool>> ReducedAxes(const OpDesc& op, size_t rank) {
  const std::vector<int64_t> dims = IntsAttr(op, "dim");
  const bool all = dims.empty() || op.AttrOr("reduce_all", false);
  std::vector<bool> reduced(rank, all);
  if (all) return reduced;
  for (int64_t dim : dims) {
    if (rank == 0) continue;
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, rank, "dim"));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

bool IsMean(const std::string& type) {
  return type == "mean" || type == "mean_grad" ||
         type.rfind("reduce_mean", 0) == 0;
}

absl::StatusOr<Step> BindReduce(BindContext* context, DeviceBinding* binding) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  const std::string& type = context->op().type;
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      ReducedAxes(context->op(), x->rank()));
  ReduceArgs args{};
  args.n = out->size();
  args.m = args.n == 0 ? 0 : x->size() / args.n;
  if (args.m == 0) return Unimplemented("a reduction of nothing");
  args.factor = IsMean(type) ? 1.0f / static_cast<float>(args.m) : 1.0f;
  const auto strides = RowMajorStrides(x->shape());
  bool columns = false;
  for (size_t d = 0; d < x->rank(); ++d) {
    if (!AddExtent<3>(x->dim(d), {strides[d], 0, 0},
                      reduced[d] ? &args.inner : &args.outer))
      return TooManyDims();
    if (x->dim(d) != 1) columns = !reduced[d];
  }
  // Neighbouring threads should read neighbouring elements.
  const bool by_block = !columns && args.m >= 32;
  const std::string name = type == "reduce_max"   ? "max"
                           : type == "reduce_min" ? "min"
                                                  : "sum";
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<ReduceArgs>::Find(
          binding, absl::StrCat("reduce_", name,
                                by_block ? "_by_block" : "_by_thread")));
  return Step([=](const RunContext&) {
    ReduceArgs run = args;
    run.x = x->data<float>();
    run.out = out->data<float>();
    return by_block ? start.Blocks(std::min<int64_t>(run.n, 1 << 20), run)
                    : start.Elements(run.n, run);
  });
}

// X@GRAD of sums and means: Out@GRAD, divided, repeated along what was reduced.
absl::StatusOr<Step> BindReduceGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout == nullptr || dx == nullptr)
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(OnlyFloat32({dout, dx}));
  for (const char* slot : {"X", "Out"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      ReducedAxes(context->op(), dx->rank()));
  Shape kept;
  int64_t count = 1;
  for (size_t d = 0; d < dx->rank(); ++d) {
    kept.push_back(reduced[d] ? 1 : dx->dim(d));
    if (reduced[d]) count *= dx->dim(d);
  }
  if (NumElements(kept) != dout->size() || count == 0)
    return Unimplemented("Out@GRAD has shape %s", ToString(dout->shape()));
  Walk<2> walk;
  const auto from = RowMajorStrides(kept), to = RowMajorStrides(dx->shape());
  for (size_t d = 0; d < dx->rank(); ++d)
    if (!AddExtent<2>(dx->dim(d), {reduced[d] ? 0 : from[d], to[d]}, &walk))
      return TooManyDims();
  PD_ASSIGN_OR_RETURN(const auto scale,
                      Starter<UnaryArgs>::Find(binding, "unary_scale"));
  Tensor* part = context->Scratch(dout->bytes());
  PD_ASSIGN_OR_RETURN(
      Step copy, BindCopy(binding, sizeof(float), dx->size(), walk, part, dx));
  const float factor =
      IsMean(context->op().type) ? 1.0f / static_cast<float>(count) : 1.0f;
  return Step([=, copy = std::move(copy)](const RunContext& run) {
    UnaryArgs args{};
    args.v = dout->data<float>();
    args.out = part->data<float>();
    args.n = dout->size();
    args.a = factor;
    PD_RETURN_IF_ERROR(scale.Elements(args.n, args));
    return copy(run);
  });
}

absl::StatusOr<Step> BindFill(BindContext* context, DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({out}));
  for (const char* slot :
       {"ValueTensor", "ShapeTensor", "ShapeTensorList", "X"})
    if (Tensor* t = context->Input(slot)) {
      if (absl::string_view(slot) == "ValueTensor")
        return Unimplemented("a value in a tensor");
      context->NoBuffer(t);
    }
  const auto text = context->op().AttrOr<std::string>("str_value", "");
  float value = context->op().AttrOr<float>("value", 0.0f);
  if (!text.empty() && !absl::SimpleAtof(text, &value))
    return Unimplemented("attr 'str_value' is '%s'", text);
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<FillArgs>::Find(binding, "fill_4"));
  return Step([=](const RunContext&) {
    return start.Elements(out->size(), {out->raw(), out->size(), bits});
  });
}

// Out has X's bytes. The other inputs were for shapes.
absl::StatusOr<Step> BindSameBytes(BindContext* context, DeviceBinding*) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (from == nullptr || to == nullptr || from->bytes() != to->bytes())
    return Unimplemented("a variable is missing or has another size");
  for (const auto& [slot, names] : context->op().inputs)
    for (size_t i = 0; i < names.size(); ++i) {
      Tensor* t = context->Input(slot, i);
      if (t != nullptr && t != from) context->NoBuffer(t);
    }
  context->Alias(from, to);
  return Step();
}

absl::StatusOr<Step> BindTranspose(BindContext* context,
                                   DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (from == nullptr || to == nullptr)
    return Unimplemented("a variable is missing");
  if (Tensor* shape = context->Input("XShape")) context->NoBuffer(shape);
  const std::vector<int64_t> axis = IntsAttr(context->op(), "axis");
  const size_t rank = from->rank();
  if (axis.size() != rank || from->size() != to->size())
    return Unimplemented("attr 'axis' does not fit");
  const auto from_strides = RowMajorStrides(from->shape());
  const auto to_strides = RowMajorStrides(to->shape());
  // Out's dimension d is X's axis[d].
  const Tensor* out = grad ? from : to;
  Walk<2> walk;
  for (size_t d = 0; d < rank; ++d) {
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis[d], rank, "axis"));
    const size_t x = static_cast<size_t>(a);
    const int64_t strides[2] = {grad ? from_strides[d] : from_strides[x],
                                grad ? to_strides[x] : to_strides[d]};
    if (!AddExtent<2>(out->dim(d), strides, &walk)) return TooManyDims();
  }
  return BindCopy(binding, SizeOf(from->dtype()), from->size(), walk, from, to);
}

}  // namespace

absl::StatusOr<Step> BindCopy(DeviceBinding* binding, size_t size, int64_t n,
                              const Walk<2>& walk, Tensor* from, Tensor* to) {
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return Unimplemented("elements of %d bytes", size);
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CopyArgs>::Find(binding, absl::StrCat("copy_", size)));
  return Step([=](const RunContext&) {
    return start.Elements(n, {from->raw(), to->raw(), n, walk});
  });
}

void AddReductions(DeviceKernels* kernels) {
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "mean"})
    kernels->Add(type, {"cuda", BindReduce});
  for (const char* type : {"reduce_sum_grad", "reduce_mean_grad", "mean_grad"})
    kernels->Add(type, {"cuda", BindReduceGrad});
}

void AddMoves(DeviceKernels* kernels) {
  kernels->Add("fill_constant", {"cuda", BindFill});
  for (const std::string type : {"reshape", "reshape2", "flatten", "flatten2",
                                 "flatten_contiguous_range", "squeeze",
                                 "squeeze2", "unsqueeze", "unsqueeze2"}) {
    kernels->Add(type, {"alias", BindSameBytes, true});
    kernels->Add(type + "_grad", {"alias", BindSameBytes, true});
  }
  for (const char* type : {"transpose", "transpose2", "transpose2_grad"})
    kernels->Add(type, {"cuda", BindTranspose});
}

}  // namespace pd::cuda
