// SPDX-License-Identifier: Apache-2.0
// Reductions and norms, and their gradients; the kernels are in elementwise.cu.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/common/int_tensors.h"

namespace pd::cuda {
namespace {

// Which axes are reduced: those of the attribute, or all of them.
absl::StatusOr<std::vector<bool>> ReducedAxes(const OpDesc& op, size_t rank) {
  const bool norm = op.type.rfind("p_norm", 0) == 0;
  const bool logs = op.type.rfind("logsumexp", 0) == 0;
  std::vector<int64_t> dims;
  if (norm)
    dims = {op.Attr<int32_t>("axis")};
  else
    dims = IntsAttr(op, logs ? "axis" : "dim");
  const bool all = norm ? op.Attr<bool>("asvector")
                        : dims.empty() || op.Attr<bool>("reduce_all");
  std::vector<bool> reduced(rank, all);
  if (all) return reduced;
  for (int64_t dim : dims) {
    if (rank == 0) continue;
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, rank, "dim"));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

// Scratch holds floats for halves too.
size_t BytesOfReals(const Tensor& tensor) {
  return static_cast<size_t>(tensor.size()) *
         std::max(SizeOf(tensor.dtype()), sizeof(float));
}

bool IsMean(const std::string& type) {
  return type == "mean" || type == "mean_grad" ||
         type.rfind("reduce_mean", 0) == 0;
}

// The walks of a reduction of x; what has out's shape stays where it is along
// the reduced axes.
absl::StatusOr<ReduceShape> ReadReduction(const OpDesc& op, const Tensor& x,
                                          const Tensor& out) {
  PD_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(op, x.rank()));
  ReduceShape args{};
  args.factor = 1;
  args.n = out.size();
  args.m = args.n == 0 ? 0 : x.size() / args.n;
  if (args.m == 0) return Unimplemented("a reduction of nothing");
  const auto strides = RowMajorStrides(x.shape());
  Shape kept;
  for (size_t d = 0; d < x.rank(); ++d)
    kept.push_back(reduced[d] ? 1 : x.dim(d));
  if (NumElements(kept) != args.n)
    return Unimplemented("Out has shape %s", ToString(out.shape()));
  const auto of_out = RowMajorStrides(kept);
  for (size_t d = 0; d < x.rank(); ++d) {
    const int64_t other = reduced[d] ? 0 : of_out[d];
    if (!AddExtent<3>(x.dim(d), {strides[d], other, other},
                      reduced[d] ? &args.inner : &args.outer))
      return TooManyDims();
  }
  return args;
}

absl::StatusOr<Step> BindReduce(BindContext* context, DeviceBinding* binding) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  const std::string& type = context->op().type;
  PD_ASSIGN_OR_RETURN(ReduceShape args, ReadReduction(context->op(), *x, *out));
  if (IsMean(type)) args.factor = 1 / static_cast<double>(args.m);
  const auto is = [&](const char* a, const char* b) {
    return type == a || type == b;
  };
  return BindReduction(context, binding,
                       {is("reduce_max", "reduce_amax")   ? "reduce_max"
                        : is("reduce_min", "reduce_amin") ? "reduce_min"
                        : type == "reduce_prod"           ? "reduce_prod"
                                                          : "reduce_sum",
                        args, x, out});
}

// X@GRAD of sums and means: Out@GRAD, divided, repeated along what was reduced.
absl::StatusOr<Step> BindReduceGrad(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (dout == nullptr || dx == nullptr)
    return Unimplemented("a variable is missing");
  PD_RETURN_IF_ERROR(SameNumbers({dout, dx}));
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
  Tensor* part = context->Scratch(dout->bytes());
  PD_ASSIGN_OR_RETURN(const auto spread,
                      Starter<CopyArgs>::Find(
                          binding, absl::StrCat("copy_", SizeOf(dx->dtype()))));
  const double factor =
      IsMean(context->op().type) ? 1 / static_cast<double>(count) : 1.0;
  return ForReal(*dout, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto scale,
        Starter<UnaryArgsOf<T>>::Find(binding, KernelFor<T>("unary_scale")));
    return Step([=](const RunContext&) {
      UnaryArgsOf<T> args{};
      args.v = Read<T>(dout);
      args.out = Write<T>(part, dout);
      args.n = dout->size();
      args.a = static_cast<T>(factor);
      PD_RETURN_IF_ERROR(scale.Elements(Packs(args.n), args));
      return spread.Elements(dx->size(),
                             {part->raw(), dx->raw(), dx->size(), walk});
    });
  });
}

// For each element of X a number of it and of what it is reduced to; y, z and
// dz may be null.
struct Slope {
  const char* kernel;
  Tensor *x, *y, *z, *dz, *dx;
  double factor = 1;
};
absl::StatusOr<Step> SlopeStep(const OpDesc& op, DeviceBinding* binding,
                               const Slope& slope) {
  PD_ASSIGN_OR_RETURN(const auto reduced, ReducedAxes(op, slope.x->rank()));
  ReduceShape args{};
  args.n = slope.x->size();
  args.m = 1;
  args.factor = slope.factor;
  Shape kept = slope.x->shape();
  for (size_t d = 0; d < kept.size(); ++d)
    if (reduced[d]) kept[d] = 1;
  if (args.n == 0 || slope.dx->size() != args.n)
    return Unimplemented("no elements");
  const auto from = RowMajorStrides(slope.x->shape()),
             of = RowMajorStrides(kept);
  for (size_t d = 0; d < kept.size(); ++d) {
    const int64_t stride = reduced[d] ? 0 : of[d];
    if (!AddExtent<3>(slope.x->dim(d), {from[d], stride, stride}, &args.outer))
      return TooManyDims();
  }
  return ForReal(*slope.dx, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(
        const auto start,
        Starter<ReduceArgsOf<T>>::Find(binding, KernelFor<T>(slope.kernel)));
    return Step([=](const RunContext&) {
      ReduceArgsOf<T> run{args, {}, {}, {}, {}, {}};
      run.x = Read<T>(slope.x);
      run.y = Read<T>(slope.y);
      run.z = Read<T>(slope.z);
      run.dz = Read<T>(slope.dz);
      run.out = Write<T>(slope.dx);
      return start.Elements(run.n, run);
    });
  });
}

// The inputs of a gradient that reads X and Out.
struct GradTensors {
  Tensor *x, *out, *dout, *dx;
};
absl::StatusOr<GradTensors> ReadGrad(BindContext* context) {
  const GradTensors t = {context->Input("X"), context->Input("Out"),
                         context->Input("Out@GRAD"), context->Output("X@GRAD")};
  PD_RETURN_IF_ERROR(SameNumbers({t.x, t.out, t.dout, t.dx}));
  if (t.out == nullptr || t.dout == nullptr || t.dx == nullptr)
    return Unimplemented("a variable is missing");
  PD_ASSIGN_OR_RETURN(const ReduceShape args,
                      ReadReduction(context->op(), *t.x, *t.out));
  if (args.n != t.dout->size())
    return Unimplemented("Out@GRAD has shape %s", ToString(t.dout->shape()));
  return t;
}

// X@GRAD of maxima and minima: Out@GRAD for each element that equals one.
absl::StatusOr<Step> BindExtremumGrad(BindContext* context,
                                      DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GradTensors t, ReadGrad(context));
  return SlopeStep(context->op(), binding,
                   {"extremum_grad", t.x, t.out, nullptr, t.dout, t.dx});
}

// Elements that equal one share it.
absl::StatusOr<Step> BindSharedGrad(BindContext* context,
                                    DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GradTensors t, ReadGrad(context));
  PD_ASSIGN_OR_RETURN(const ReduceShape args,
                      ReadReduction(context->op(), *t.x, *t.out));
  Tensor* const counts = context->Scratch(BytesOfReals(*t.out));
  PD_ASSIGN_OR_RETURN(
      Step count, BindReduction(context, binding,
                                {"reduce_equal", args, t.x, counts, t.out}));
  PD_ASSIGN_OR_RETURN(
      Step share, SlopeStep(context->op(), binding,
                            {"shared_grad", t.x, t.out, counts, t.dout, t.dx}));
  return InOrder({std::move(count), std::move(share)});
}

// Of the products of what is not 0, and the numbers of zeros.
absl::StatusOr<Step> BindProductGrad(BindContext* context,
                                     DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GradTensors t, ReadGrad(context));
  PD_ASSIGN_OR_RETURN(const ReduceShape args,
                      ReadReduction(context->op(), *t.x, *t.out));
  context->NoBuffer(t.out);
  Tensor *const products = context->Scratch(BytesOfReals(*t.out)),
                *const zeros = context->Scratch(BytesOfReals(*t.out));
  PD_ASSIGN_OR_RETURN(
      Step multiply,
      BindReduction(context, binding, {"reduce_nonzero", args, t.x, products}));
  PD_ASSIGN_OR_RETURN(
      Step count,
      BindReduction(context, binding, {"reduce_zeros", args, t.x, zeros}));
  PD_ASSIGN_OR_RETURN(
      Step slope, SlopeStep(context->op(), binding,
                            {"prod_grad", t.x, products, zeros, t.dout, t.dx}));
  return InOrder({std::move(multiply), std::move(count), std::move(slope)});
}

// log(sum(exp(x - top))) + top
absl::StatusOr<Step> BindLogSumExp(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameReals({x, out}));
  PD_ASSIGN_OR_RETURN(const ReduceShape args,
                      ReadReduction(context->op(), *x, *out));
  Tensor *const tops = context->Scratch(BytesOfReals(*out)),
                *const sums = context->Scratch(BytesOfReals(*out));
  PD_ASSIGN_OR_RETURN(
      Step top, BindReduction(context, binding, {"reduce_max", args, x, tops}));
  PD_ASSIGN_OR_RETURN(
      Step sum,
      BindReduction(context, binding, {"reduce_exp", args, x, sums, tops}));
  ReduceShape each{};
  each.factor = 1;
  each.n = out->size();
  each.m = 1;
  AddExtent<3>(each.n, {1, 1, 1}, &each.outer);
  return ForReal(*out, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto log, Starter<ReduceArgsOf<T>>::Find(
                                            binding, KernelFor<T>("log_plus")));
    return InOrder({std::move(top), std::move(sum), [=](const RunContext&) {
                      ReduceArgsOf<T> run{each, {}, {}, {}, {}, {}};
                      run.x = Read<T>(sums);
                      run.y = Read<T>(tops);
                      run.out = Write<T>(out);
                      return log.Elements(run.n, run);
                    }});
  });
}

absl::StatusOr<Step> BindLogSumExpGrad(BindContext* context,
                                       DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GradTensors t, ReadGrad(context));
  return SlopeStep(context->op(), binding,
                   {"logsumexp_grad", t.x, t.out, nullptr, t.dout, t.dx});
}

float OrderOf(const OpDesc& op) {
  return op.type.rfind("p_norm", 0) == 0 ? op.Attr<float>("porder") : 2.0f;
}

// The step out = F(v), element by element.
template <typename T>
absl::StatusOr<Step> EachStep(DeviceBinding* binding, const char* name,
                              UnaryArgsOf<T> args, Tensor* v, Tensor* out,
                              int64_t n) {
  PD_ASSIGN_OR_RETURN(const auto start, Starter<UnaryArgsOf<T>>::Find(
                                            binding, KernelFor<T>(name)));
  args.n = n;
  return Step([=](const RunContext&) {
    UnaryArgsOf<T> run = args;
    run.v = Read<T>(v);
    run.out = Write<T>(out);
    return start.Elements(Packs(run.n), run);
  });
}

// p_norm of another order than 2: of magnitudes, or their powers.
template <typename T>
absl::StatusOr<Step> BindNormOf(BindContext* context, DeviceBinding* binding,
                                const ReduceShape& args, T p) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  UnaryArgsOf<T> number{};
  if (p == 0) {  // all but the zeros
    PD_ASSIGN_OR_RETURN(
        Step zeros,
        BindReduction(context, binding, {"reduce_zeros", args, x, out}));
    number.a = -1;
    number.b = static_cast<T>(args.m);
    PD_ASSIGN_OR_RETURN(Step rest, EachStep<T>(binding, "unary_scale", number,
                                               out, out, out->size()));
    return InOrder({std::move(zeros), std::move(rest)});
  }
  Tensor* const sizes = context->Scratch(BytesOfReals(*x));
  std::vector<Step> steps(2);
  PD_ASSIGN_OR_RETURN(
      steps[0], EachStep<T>(binding, "unary_abs", {}, x, sizes, x->size()));
  const bool whole = std::isinf(p) || p == 1;
  if (!whole) {
    number.a = p;
    PD_ASSIGN_OR_RETURN(Step power, EachStep<T>(binding, "unary_pow", number,
                                                sizes, sizes, x->size()));
    steps.insert(steps.begin() + 1, std::move(power));
  }
  PD_ASSIGN_OR_RETURN(steps.back(), BindReduction(context, binding,
                                                  {!std::isinf(p) ? "reduce_sum"
                                                   : p > 0        ? "reduce_max"
                                                           : "reduce_min",
                                                   args, sizes, out}));
  if (!whole) {
    number.a = 1 / p;
    PD_ASSIGN_OR_RETURN(Step root, EachStep<T>(binding, "unary_pow", number,
                                               out, out, out->size()));
    steps.push_back(std::move(root));
  }
  return InOrder(std::move(steps));
}

absl::StatusOr<Step> BindReduceNorm(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameReals({x, out}));
  PD_ASSIGN_OR_RETURN(const ReduceShape args,
                      ReadReduction(context->op(), *x, *out));
  const float p = OrderOf(context->op());
  return ForReal(*out, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    if (p != 2) return BindNormOf(context, binding, args, T{p});
    PD_ASSIGN_OR_RETURN(
        Step sum,
        BindReduction(context, binding, {"reduce_squares", args, x, out}));
    PD_ASSIGN_OR_RETURN(Step root, EachStep<T>(binding, "unary_sqrt", {}, out,
                                               out, out->size()));
    return InOrder({std::move(sum), std::move(root)});
  });
}

absl::StatusOr<Step> BindReduceNormGrad(BindContext* context,
                                        DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const GradTensors t, ReadGrad(context));
  return SlopeStep(
      context->op(), binding,
      {"norm_grad", t.x, t.out, nullptr, t.dout, t.dx, OrderOf(context->op())});
}

// How a reduction's elements are spread over threads, and in how many parts.
struct ReductionWay {
  const char* name;
  int64_t parts = 1;
};
ReductionWay WayOf(const CudaDevice& device, const Reduction& r) {
  const ReduceShape& s = r.shape;
  const auto step_of = [&](const Walk<3>& walk) {
    return walk.dims == 0 ? INT64_MAX : walk.strides[walk.dims - 1][r.read];
  };
  // As many blocks as keep the GPU busy, and work enough for each.
  const int64_t busy = int64_t{device.info().multiprocessors} * 4;
  const auto parts = [&](int64_t blocks, int64_t least) {
    return std::max<int64_t>(1, std::min(busy / blocks, s.m / least));
  };
  // Neighbouring threads should read neighbouring elements.
  if (step_of(s.outer) < step_of(s.inner)) {
    if (s.m < 16) return {"_by_thread"};
    return {"_by_column", parts((s.n + kWarp - 1) / kWarp, 64)};
  }
  if (s.m < 32) return {"_by_thread"};
  return {"_by_block", parts(s.n, 8 * kThreads)};
}

bool IsDouble(const Reduction& r) {
  for (const Tensor* t : {r.x, r.y, r.z, r.dz, r.out})
    if (t != nullptr && t->dtype() == DType::kFloat64) return true;
  return false;
}

// Partial products and extrema are joined as they were made, all else is
// summed.
std::string JoiningKernel(const std::string& kernel) {
  if (kernel == "reduce_nonzero") return "reduce_prod";
  for (const char* same : {"reduce_max", "reduce_min", "reduce_prod"})
    if (kernel == same) return kernel;
  return "reduce_sum";
}

template <typename T>
absl::StatusOr<Step> ReductionOf(DeviceBinding* binding, const Reduction& r,
                                 const ReductionWay& way) {
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<ReduceArgsOf<T>>::Find(
                          binding, KernelFor<T>(r.kernel + way.name)));
  const bool by_thread = absl::string_view(way.name) == "_by_thread";
  const bool by_column = absl::string_view(way.name) == "_by_column";
  const int64_t results =
      by_column ? (r.shape.n + kWarp - 1) / kWarp : r.shape.n;
  return Step([=](const RunContext&) {
    ReduceArgsOf<T> run{r.shape, {}, {}, {}, {}, {}};
    run.parts = way.parts;
    run.part_size = (r.shape.m + way.parts - 1) / way.parts;
    run.x = Read<T>(r.x);
    run.y = Read<T>(r.y);
    run.z = Read<T>(r.z);
    run.dz = Read<T>(r.dz);
    run.out = Write<T>(r.out);
    return by_thread ? start.Elements(run.n, run)
                     : start.Items(results * way.parts, run);
  });
}
// `wide`: scratch holds doubles.
absl::StatusOr<Step> OneReduction(DeviceBinding* binding, const Reduction& r,
                                  const ReductionWay& way, bool wide = false) {
  return wide || IsDouble(r) ? ReductionOf<double>(binding, r, way)
                             : ReductionOf<float>(binding, r, way);
}

}  // namespace

absl::StatusOr<Step> BindReduction(BindContext* context, DeviceBinding* binding,
                                   const Reduction& r) {
  const ReductionWay way = WayOf(*CudaOf(binding), r);
  if (way.parts == 1) return OneReduction(binding, r, way);
  const bool wide = IsDouble(r);
  Reduction first = r, second;
  first.shape.factor = 1;
  first.out = context->Scratch(static_cast<size_t>(way.parts * r.shape.n) *
                               (wide ? sizeof(double) : sizeof(float)));
  second.kernel = JoiningKernel(r.kernel);
  second.shape.factor = r.shape.factor;
  second.shape.n = r.shape.n;
  second.shape.m = way.parts;
  AddExtent<3>(r.shape.n, {1, 1, 1}, &second.shape.outer);
  AddExtent<3>(way.parts, {r.shape.n, r.shape.n, r.shape.n},
               &second.shape.inner);
  second.x = first.out;
  second.out = r.out;
  PD_ASSIGN_OR_RETURN(Step reduce, OneReduction(binding, first, way, wide));
  PD_ASSIGN_OR_RETURN(
      Step join, OneReduction(binding, second,
                              {WayOf(*CudaOf(binding), second).name}, wide));
  return InOrder({std::move(reduce), std::move(join)});
}

void AddReduce(KernelTable* kernels) {
  for (const char* type :
       {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_amax",
        "reduce_amin", "reduce_prod", "mean"})
    kernels->Add(type, {"cuda", BindReduce});
  for (const char* type : {"reduce_sum_grad", "reduce_mean_grad", "mean_grad"})
    kernels->Add(type, {"cuda", BindReduceGrad});
  for (const char* type : {"reduce_max_grad", "reduce_min_grad"})
    kernels->Add(type, {"cuda", BindExtremumGrad});
  for (const char* type : {"reduce_amax_grad", "reduce_amin_grad"})
    kernels->Add(type, {"cuda", BindSharedGrad});
  kernels->Add("reduce_prod_grad", {"cuda", BindProductGrad});
  kernels->Add("logsumexp", {"cuda", BindLogSumExp});
  kernels->Add("logsumexp_grad", {"cuda", BindLogSumExpGrad});
  for (const std::string type : {"p_norm", "frobenius_norm"}) {
    kernels->Add(type, {"cuda", BindReduceNorm});
    kernels->Add(type + "_grad", {"cuda", BindReduceNormGrad});
  }
}

}  // namespace pd::cuda
