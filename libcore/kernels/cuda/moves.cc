// SPDX-License-Identifier: Apache-2.0
// Reductions, constants, and what changes places or shapes only; the kernels
// are in elementwise.cu.
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/check.h"
#include "libcore/ops/int_tensors.h"
#include "libcore/ops/pixel_shuffle.h"
#include "libcore/ops/truncate_half.h"

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
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  const std::string& type = context->op().type;
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      ReducedAxes(context->op(), x->rank()));
  ReduceArgs args{};
  args.n = out->size();
  args.m = args.n == 0 ? 0 : x->size() / args.n;
  if (args.m == 0) return Unimplemented("a reduction of nothing");
  args.factor = IsMean(type) ? 1.0f / static_cast<float>(args.m) : 1.0f;
  const auto strides = RowMajorStrides(x->shape());
  for (size_t d = 0; d < x->rank(); ++d)
    if (!AddExtent<3>(x->dim(d), {strides[d], 0, 0},
                      reduced[d] ? &args.inner : &args.outer))
      return TooManyDims();
  return BindReduceStep(binding,
                        type == "reduce_max"   ? "reduce_max"
                        : type == "reduce_min" ? "reduce_min"
                                               : "reduce_sum",
                        args, x, out);
}

// X@GRAD of sums and means: Out@GRAD, divided, repeated along what was reduced.
absl::StatusOr<Step> BindReduceGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout == nullptr || dx == nullptr)
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(SameFloats({dout, dx}));
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
  PD_ASSIGN_OR_RETURN(const auto spread,
                      Starter<CopyArgs>::Find(
                          binding, absl::StrCat("copy_", SizeOf(dx->dtype()))));
  const float factor =
      IsMean(context->op().type) ? 1.0f / static_cast<float>(count) : 1.0f;
  return Step([=](const RunContext&) {
    UnaryArgs args{};
    args.v = ReadFloats(dout);
    args.out = {FloatTypeOf(*dout), part->raw()};
    args.n = dout->size();
    args.a = factor;
    PD_RETURN_IF_ERROR(scale.Elements(args.n, args));
    return spread.Elements(dx->size(),
                           {part->raw(), dx->raw(), dx->size(), walk});
  });
}

// X@GRAD of maxima and minima: Out@GRAD for each element that equals one.
absl::StatusOr<Step> BindExtremumGrad(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Input("Out"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, out, dout, dx}));
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      ReducedAxes(context->op(), x->rank()));
  Shape kept;
  for (size_t d = 0; d < x->rank(); ++d)
    kept.push_back(reduced[d] ? 1 : x->dim(d));
  if (NumElements(kept) != out->size() || out->size() != dout->size())
    return Unimplemented("Out has shape %s", ToString(out->shape()));
  ReduceArgs args{};
  args.n = x->size();
  args.m = 1;
  args.factor = 1;
  const auto from = RowMajorStrides(x->shape()), of = RowMajorStrides(kept);
  for (size_t d = 0; d < x->rank(); ++d) {
    const int64_t stride = reduced[d] ? 0 : of[d];
    if (!AddExtent<3>(x->dim(d), {from[d], stride, stride}, &args.outer))
      return TooManyDims();
  }
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ReduceArgs>::Find(binding, "extremum_grad"));
  return Step([=](const RunContext&) {
    ReduceArgs run = args;
    run.x = ReadFloats(x);
    run.y = ReadFloats(out);
    run.dz = ReadFloats(dout);
    run.out = WriteFloats(dx);
    return start.Elements(run.n, run);
  });
}

absl::StatusOr<Step> BindFill(BindContext* context, DeviceBinding* binding) {
  Tensor* out = context->Output("Out");
  if (context->Input("ValueTensor") != nullptr)
    return Unimplemented("a value in a tensor");
  for (const char* slot : {"ShapeTensor", "ShapeTensorList", "X", "Input"})
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      if (Tensor* t = context->Input(slot, i)) context->NoBuffer(t);
  const auto text = context->op().AttrOr<std::string>("str_value", "");
  double value = context->op().AttrOr<float>("value", 0.0f);
  if (!text.empty() && !absl::SimpleAtod(text, &value))
    return Unimplemented("attr 'str_value' is '%s'", text);
  return BindFillStep(binding, value, out);
}

absl::StatusOr<Step> BindAssign(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  if (x == nullptr || out == nullptr || x->bytes() != out->bytes())
    return Unimplemented("a variable is missing or has another size");
  return Step([=, device = binding->device()](const RunContext&) {
    return device->Copy(out->raw(), x->raw(), out->bytes());
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
  return BindCopy(binding, {from, to, from->size(), walk});
}

// pixel_shuffle and its like: parts of the axes in another order.
absl::StatusOr<Step> BindShuffle(BindContext* context, DeviceBinding* binding) {
  const OpDesc& op = context->op();
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor* from = context->Input(grad ? "Out@GRAD" : "X");
  Tensor* to = context->Output(grad ? "X@GRAD" : "Out");
  if (Tensor* x = grad ? context->Input("X") : nullptr) context->NoBuffer(x);
  PD_ASSIGN_OR_RETURN(const Shuffle s,
                      ShuffleOf(op, (grad ? to : from)->shape()));
  if (from->size() != to->size())
    return Unimplemented("Out has shape %s", ToString(to->shape()));
  // PaddlePaddle's shuffle_channel_grad shuffles once more.
  const bool back = grad && op.type.rfind("shuffle_channel", 0) != 0;
  Shape shuffled;
  for (const size_t part : s.order) shuffled.push_back(s.parts[part]);
  const auto x = RowMajorStrides(s.parts), out = RowMajorStrides(shuffled);
  Walk<2> walk;
  for (size_t d = 0; d < s.order.size(); ++d) {
    const int64_t there = x[s.order[d]];
    if (!AddExtent<2>(shuffled[d],
                      {back ? out[d] : there, back ? there : out[d]}, &walk))
      return TooManyDims();
  }
  return BindCopy(binding, {from, to, from->size(), walk});
}

}  // namespace

absl::StatusOr<Step> BindCopy(DeviceBinding* binding, const StridedCopy& copy) {
  const size_t size = copy.bytes != 0 ? copy.bytes : SizeOf(copy.from->dtype());
  if (size != 1 && size != 2 && size != 4 && size != 8)
    return Unimplemented("elements of %d bytes", size);
  if (copy.bytes == 0 && SizeOf(copy.to->dtype()) != size)
    return Unimplemented("a copy from %s to %s", Name(copy.from->dtype()),
                         Name(copy.to->dtype()));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CopyArgs>::Find(binding, absl::StrCat("copy_", size)));
  return Step([=](const RunContext&) {
    const auto at = [&](Tensor* t, int64_t first) {
      return t->data<char>() + first * static_cast<int64_t>(size);
    };
    return start.Elements(
        copy.n, {at(copy.from, copy.from_start), at(copy.to, copy.to_start),
                 copy.n, copy.walk});
  });
}

namespace {

template <typename T>
uint64_t BitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

// Whole numbers beyond 2^53 are none that a double holds.
absl::StatusOr<uint64_t> FillBits(DType dtype, double value) {
  const bool whole = std::abs(value) <= 9007199254740992.0;
  switch (dtype) {
    case DType::kFloat32:
      return BitsOf(static_cast<float>(value));
    case DType::kFloat64:
      return BitsOf(value);
    case DType::kFloat16:
      return BitsOf(TruncatedFloat16(static_cast<float>(value)));
    case DType::kBFloat16:
      return BitsOf(TruncatedBFloat16(static_cast<float>(value)));
    case DType::kBool:
      return BitsOf(value != 0);
    case DType::kInt64:
      if (whole) return BitsOf(static_cast<int64_t>(value));
      break;
    case DType::kInt32:
      if (whole)
        return BitsOf(static_cast<int32_t>(static_cast<int64_t>(value)));
      break;
    default:
      break;
  }
  return Unimplemented("no kernel for %g of dtype %s", value, Name(dtype));
}

}  // namespace

absl::StatusOr<Step> BindFillStep(DeviceBinding* binding, double value,
                                  Tensor* out) {
  PD_ASSIGN_OR_RETURN(const uint64_t bits, FillBits(out->dtype(), value));
  if (bits == 0)
    return Step([=, device = binding->device()](const RunContext&) {
      return device->Clear(out->raw(), out->bytes());
    });
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<FillArgs>::Find(binding,
                              absl::StrCat("fill_", SizeOf(out->dtype()))));
  return Step([=](const RunContext&) {
    return start.Elements(out->size(), {out->raw(), out->size(), bits});
  });
}

absl::StatusOr<Step> BindReduceStep(DeviceBinding* binding,
                                    const std::string& name,
                                    const ReduceArgs& args, Tensor* x,
                                    Tensor* out) {
  // Neighbouring threads should read neighbouring elements.
  const auto step_of = [](const Walk<3>& walk) {
    return walk.dims == 0 ? INT64_MAX : walk.strides[walk.dims - 1][0];
  };
  const bool columns = step_of(args.outer) < step_of(args.inner);
  const bool by_block = !columns && args.m >= 32;
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<ReduceArgs>::Find(
          binding, absl::StrCat(name, by_block ? "_by_block" : "_by_thread")));
  return Step([=](const RunContext&) {
    ReduceArgs run = args;
    run.x = ReadFloats(x);
    run.out = WriteFloats(out);
    return by_block ? start.Items(run.n, run) : start.Elements(run.n, run);
  });
}

Step InOrder(std::vector<Step> steps) {
  if (steps.empty()) return Step();
  return [steps = std::move(steps)](const RunContext& run) {
    for (const Step& step : steps) PD_RETURN_IF_ERROR(step(run));
    return absl::OkStatus();
  };
}

void AddReductions(DeviceKernels* kernels) {
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "mean"})
    kernels->Add(type, {"cuda", BindReduce});
  for (const char* type : {"reduce_sum_grad", "reduce_mean_grad", "mean_grad"})
    kernels->Add(type, {"cuda", BindReduceGrad});
  for (const char* type : {"reduce_max_grad", "reduce_min_grad"})
    kernels->Add(type, {"cuda", BindExtremumGrad});
}

void AddMoves(DeviceKernels* kernels) {
  kernels->Add("fill_constant", {"cuda", FloatsOnly<BindFill>});
  for (const char* type :
       {"fill_any_like", "fill_zeros_like", "fill_constant_batch_size_like"})
    AddMove<BindFill>(type, kernels);
  AddMove<BindAssign>("assign", kernels);
  kernels->Add("memcpy", {"alias", BindSameBytes, true});
  for (const std::string type :
       {"reshape", "reshape2", "flatten", "flatten2",
        "flatten_contiguous_range", "squeeze", "squeeze2", "unsqueeze",
        "unsqueeze2", "sequence_reshape"}) {
    kernels->Add(type, {"alias", BindSameBytes, true});
    kernels->Add(type + "_grad", {"alias", BindSameBytes, true});
  }
  for (const char* type : {"transpose", "transpose2", "transpose2_grad"})
    AddMove<BindTranspose>(type, kernels);
  for (const std::string type : {"pixel_shuffle", "pixel_unshuffle",
                                 "channel_shuffle", "shuffle_channel"}) {
    AddMove<BindShuffle>(type, kernels);
    AddMove<BindShuffle>(type + "_grad", kernels);
  }
}

}  // namespace pd::cuda
