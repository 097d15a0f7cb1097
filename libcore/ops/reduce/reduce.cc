// SPDX-License-Identifier: Apache-2.0
// Reductions over the axes `dim` (all of them with reduce_all, or when dim is
// empty): reduce_sum, mean, prod, max, min, amax, amin, all, any; and `mean`,
// the mean of all elements. Reduced axes are dropped, or stay as 1 with
// keep_dim; the reduction of everything has rank 0.
//
//   op          X@GRAD, dOut and Out spread over the reduced axes
//   sum         dOut
//   mean        dOut / n
//   prod        dOut * Out / X; where X is the only zero, the product of the
//               others takes the place of Out / X
//   max, min    dOut where X == Out: every equal element gets it
//   amax, amin  dOut where X == Out, divided by the number of equal elements
// Nothing reduced: sum 0, mean NaN, prod 1, all true, any false; max and min
// of nothing are an error. NaN wins in max and min. float sums are kept in
// double from part to part. bool and int32 are summed as int64; out_dtype asks
// for another dtype.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/element_rows.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/linear_grad.h"
#include "libcore/ops/common/reduce_loop.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

enum class Kind { kSum, kMean, kProd, kMax, kMin, kAmax, kAmin, kAll, kAny };

constexpr bool IsExtremum(Kind kind) {
  return kind == Kind::kMax || kind == Kind::kMin || kind == Kind::kAmax ||
         kind == Kind::kAmin;
}
constexpr bool IsMaximum(Kind kind) {
  return kind == Kind::kMax || kind == Kind::kAmax;
}
constexpr bool IsLogical(Kind kind) {
  return kind == Kind::kAll || kind == Kind::kAny;
}

template <typename T>
struct ProdReducer {
  using Acc = T;
  T Identity() const { return T(1); }
  T Load(T v) const { return v; }
  template <typename W>
  W Combine(W a, W b) const {
    return a * b;
  }
};

template <typename T, bool kMaximum>
struct ExtremumReducer {
  using Acc = T;
  T Identity() const {
    using Limits = std::numeric_limits<T>;
    if constexpr (Limits::has_infinity)
      return kMaximum ? -Limits::infinity() : Limits::infinity();
    else
      return kMaximum ? Limits::lowest() : Limits::max();
  }
  T Load(T v) const { return v; }
  template <typename W>
  W Combine(W a, W b) const {
    const bool take = kMaximum ? b > a : b < a;
    return take || b != b ? b : a;
  }
  // Comparisons alone go quickest; NaN is looked for apart.
  T Part(const T* in, int64_t n) const {
    T best = Identity();
    int nan = 0;
    if constexpr (kMaximum) {
#pragma omp simd reduction(max : best) reduction(| : nan)
      for (int64_t i = 0; i < n; ++i) {
        best = in[i] > best ? in[i] : best;
        nan |= static_cast<int>(in[i] != in[i]);
      }
    } else {
#pragma omp simd reduction(min : best) reduction(| : nan)
      for (int64_t i = 0; i < n; ++i) {
        best = in[i] < best ? in[i] : best;
        nan |= static_cast<int>(in[i] != in[i]);
      }
    }
    return nan != 0 ? std::numeric_limits<T>::quiet_NaN() : best;
  }
};

template <bool kAll>
struct LogicalReducer {
  using Acc = bool;
  bool Identity() const { return kAll; }
  template <typename T>
  bool Load(T v) const {
    return v != T(0);
  }
  template <typename W>
  W Combine(W a, W b) const {
    return kAll ? (a & b) : (a | b);
  }
};

// Which axes of a tensor of this rank the op reduces.
absl::StatusOr<std::vector<bool>> ReducedAxes(const OpDesc& op, size_t rank) {
  const std::vector<int64_t> dims = IntsAttr(op, "dim");
  const bool all = dims.empty() || op.Attr<bool>("reduce_all");
  std::vector<bool> reduced(rank, all);
  if (all) return reduced;
  for (int64_t dim : dims) {
    if (rank == 0 && (dim == 0 || dim == -1)) continue;
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(dim, rank, "dim"));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

absl::Status InferReduce(InferContext* context) {
  if (context->HasInput("AxisTensor") || context->HasInput("AxisTensorList"))
    return Unimplemented("axes given by a tensor");
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      ReducedAxes(context->op(), x.shape.size()));
  // mean has no attributes: it reduces all axes.
  const bool plain = context->op().type == "mean";
  const bool keep = !plain && context->op().Attr<bool>("keep_dim");
  Shape shape;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i])
      shape.push_back(x.shape[i]);
    else if (keep)
      shape.push_back(1);
  }
  DType dtype = x.dtype;
  const bool sums = context->op().type == "reduce_sum";
  if (sums && (dtype == DType::kBool || dtype == DType::kInt32))
    dtype = DType::kInt64;
  if (context->op().type == "reduce_all" || context->op().type == "reduce_any")
    dtype = DType::kBool;
  const int32_t code = plain ? -1 : context->op().Attr<int32_t>("out_dtype");
  if (code >= 0) {
    const auto asked = DTypeFromCode(code);
    if (!asked.has_value())
      return InvalidArgument("attr 'out_dtype' is %d, which is no dtype", code);
    dtype = *asked;
  }
  context->SetOutput("Out", std::move(shape), dtype);
  return absl::OkStatus();
}

// Plan and tensors of one reduction.
struct Operands {
  Tensor *x, *out;
  ReducePlan plan;
};

template <typename T, typename Out, typename Reducer, typename Finish>
Step ReduceStep(const Operands& o, const Reducer& reducer,
                const Finish& finish) {
  return [o, reducer, finish](const RunContext&) {
    Out* out = o.out->data<Out>();
    Reduce(o.plan, o.x->data<T>(), reducer, [&](int64_t i, auto total) {
      out[i] = static_cast<Out>(finish(total));
    });
    return absl::OkStatus();
  };
}

struct Same {
  template <typename T>
  T operator()(T v) const {
    return v;
  }
};

// `each`: the elements that a mean divides by; 1 for a sum.
template <typename T, typename Out>
Step SumOrMean(const Operands& o, int64_t each) {
  using W = Wide<Out>;
  return ReduceStep<T, Out>(o, SumReducer<T, Out>(), [each](W total) {
    if constexpr (std::is_integral_v<W>)
      return each == 0 ? W(0) : static_cast<W>(total / W(each));
    else
      return total / static_cast<RealOf<W>>(each);
  });
}

absl::StatusOr<Step> BindSumOrMean(const Operands& o, int64_t each) {
  const auto same = [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return SumOrMean<T, T>(o, each);
  };
  const auto to_long = [&](auto tag) -> absl::StatusOr<Step> {
    return SumOrMean<typename decltype(tag)::type, int64_t>(o, each);
  };
  const auto to_double = [&](auto tag) -> absl::StatusOr<Step> {
    return SumOrMean<typename decltype(tag)::type, double>(o, each);
  };
  const auto to_float = [&](auto tag) -> absl::StatusOr<Step> {
    return SumOrMean<typename decltype(tag)::type, float>(o, each);
  };
  if (o.x->dtype() == o.out->dtype())
    return DispatchTypes<float, double, int32_t, int64_t, int16_t, int8_t,
                         uint8_t, std::complex<float>, std::complex<double>>(
        o.x->dtype(), same);
  if (o.out->dtype() == DType::kInt64)
    return DispatchTypes<int32_t, bool, int16_t, int8_t, uint8_t>(o.x->dtype(),
                                                                  to_long);
  if (o.out->dtype() == DType::kFloat64)
    return DispatchTypes<float, int32_t, int64_t, bool>(o.x->dtype(),
                                                        to_double);
  if (o.out->dtype() == DType::kFloat32)
    return DispatchTypes<double, int32_t, int64_t, bool>(o.x->dtype(),
                                                         to_float);
  return Unimplemented("no kernel from %s to %s", Name(o.x->dtype()),
                       Name(o.out->dtype()));
}

template <bool kAll>
absl::StatusOr<Step> BindLogical(const Operands& o) {
  if (o.out->dtype() != DType::kBool)
    return InvalidArgument("Out is %s; expected bool", Name(o.out->dtype()));
  return DispatchTypes<bool, float, double, int32_t, int64_t>(
      o.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        return ReduceStep<typename decltype(tag)::type, bool>(
            o, LogicalReducer<kAll>(), Same());
      });
}

// reduce_prod and the extrema.
absl::StatusOr<Step> BindSameDType(const Operands& o, Kind kind) {
  if (o.x->dtype() != o.out->dtype())
    return Unimplemented("no kernel from %s to %s", Name(o.x->dtype()),
                         Name(o.out->dtype()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      o.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        if (kind == Kind::kProd)
          return ReduceStep<T, T>(o, ProdReducer<T>(), Same());
        if (IsMaximum(kind))
          return ReduceStep<T, T>(o, ExtremumReducer<T, true>(), Same());
        return ReduceStep<T, T>(o, ExtremumReducer<T, false>(), Same());
      });
}

absl::StatusOr<Step> BindKind(const Operands& o, Kind kind) {
  if (kind == Kind::kSum) return BindSumOrMean(o, 1);
  if (kind == Kind::kMean) return BindSumOrMean(o, o.plan.reduced.size());
  if (kind == Kind::kAll) return BindLogical<true>(o);
  if (kind == Kind::kAny) return BindLogical<false>(o);
  return BindSameDType(o, kind);
}

template <Kind kKind>
absl::StatusOr<Step> BindReduce(BindContext* context) {
  Upcaster upcaster(context);
  Operands o{upcaster.In(context->Input("X")),
             upcaster.Out(context->Output("Out")),
             {}};
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      ReducedAxes(context->op(), o.x->rank()));
  o.plan = MakeReducePlan(o.x->shape(), reduced);
  if (IsExtremum(kKind) && o.plan.reduced.size() == 0 && o.out->size() > 0)
    return InvalidArgument("X has shape %s: there is no extremum of nothing",
                           ToString(o.x->shape()));
  return upcaster.Wrap(BindKind(o, kKind));
}

// The gradient: a loop over X (and X@GRAD) and the tensors that are spread over
// it.
struct GradOperands {
  Tensor *x, *out, *dout, *dx;  // x and out only where they are read
  StridedLoop<3> loop;          // X; Out; X@GRAD
  // amax, amin: the number of equal elements; prod: see ProductOfOthers.
  Tensor* counts = nullptr;

  // dx = row(dout)
  Step SpreadDOut(const RowFunction& row) const {
    return LoopStep(row, loop, {{dout, 1, dx->dtype()}}, {dx, 2, dx->dtype()});
  }
  // dx = row(x, out, dout), and counts where the op has them
  Step SpreadAll(const RowFunction& row) const {
    const DType dtype = dx->dtype();
    std::vector<LoopOperand> in = {
        {x, 0, dtype}, {out, 1, dtype}, {dout, 1, dtype}};
    if (counts != nullptr) in.push_back({counts, 1, dtype});
    return LoopStep(row, loop, in, {dx, 2, dtype});
  }
};

// counts[i] = number of elements of X that equal Out[i].
template <typename T>
void CountEqual(const GradOperands& g) {
  T* counts = g.counts->data<T>();
  std::fill_n(counts, g.out->size(), T(0));
  const int64_t stride = g.loop.row_strides()[1];
  g.loop.ForParts(0, g.loop.size(), [&](const auto& at, int64_t n) {
    const T* x = g.x->data<T>() + at[0];
    const T* out = g.out->data<T>() + at[1];
    for (int64_t j = 0; j < n; ++j)
      if (x[j] == out[j * stride]) counts[at[1] + j * stride] += T(1);
  });
}

// counts[i] = the product of the others where one element is zero, else 0.
template <typename T>
void ProductOfOthers(const GradOperands& g) {
  T* others = g.counts->data<T>();
  T* zeros = others + g.out->size();
  std::fill_n(others, g.out->size(), T(1));
  std::fill_n(zeros, g.out->size(), T(0));
  const int64_t stride = g.loop.row_strides()[1];
  g.loop.ForParts(0, g.loop.size(), [&](const auto& at, int64_t n) {
    const T* x = g.x->data<T>() + at[0];
    if (stride == 0) {
      T product = T(1), count = T(0);
#pragma omp simd reduction(* : product) reduction(+ : count)
      for (int64_t j = 0; j < n; ++j) {
        product *= x[j] == T(0) ? T(1) : x[j];
        count += x[j] == T(0) ? T(1) : T(0);
      }
      others[at[1]] *= product;
      zeros[at[1]] += count;
      return;
    }
    T* const rest = others + at[1];
    T* const none = zeros + at[1];
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      rest[j] *= x[j] == T(0) ? T(1) : x[j];
      none[j] += x[j] == T(0) ? T(1) : T(0);
    }
  });
  for (int64_t i = 0, n = g.out->size(); i < n; ++i)
    if (zeros[i] != T(1)) others[i] = T(0);
}

// `each`: the elements that a mean divides by; 1 for a sum.
template <typename T>
Step SumGrad(const GradOperands& g, int64_t each) {
  const auto count = static_cast<RealOf<T>>(each);
  return g.SpreadDOut(
      RowFunction::Of<T, T>([count](T d) -> T { return d / count; }));
}

template <typename T>
Step ProdGrad(const GradOperands& g) {
  const Step spread = g.SpreadAll(
      RowFunction::Of<T, T, T, T, T>([](T x, T out, T d, T others) -> T {
        return x == T(0) ? d * others : d * out / x;
      }));
  return [g, spread](const RunContext& run) {
    ProductOfOthers<T>(g);
    return spread(run);
  };
}

// `shares`: equal elements share the gradient.
template <typename T>
Step ExtremumGrad(const GradOperands& g, bool shares) {
  if (!shares)
    return g.SpreadAll(RowFunction::Of<T, T, T, T>(
        [](T x, T out, T d) { return x == out ? d : T(0); }));
  const Step spread = g.SpreadAll(
      RowFunction::Of<T, T, T, T, T>([](T x, T out, T d, T count) -> T {
        return x == out ? d / count : T(0);
      }));
  return [g, spread](const RunContext& run) {
    CountEqual<T>(g);
    return spread(run);
  };
}

absl::StatusOr<Step> GradStep(const GradOperands& g, Kind kind, int64_t each) {
  if (kind == Kind::kSum || kind == Kind::kMean)
    return DispatchArithmetic(
        g.dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
          return SumGrad<typename decltype(tag)::type>(g, each);
        });
  return DispatchTypes<float, double, int32_t, int64_t>(
      g.dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        if (kind == Kind::kProd) return ProdGrad<T>(g);
        return ExtremumGrad<T>(g, kind == Kind::kAmax || kind == Kind::kAmin);
      });
}

// The gradient of a sum or mean whose result has another dtype than X.
absl::StatusOr<Step> BindConvertedGrad(const GradOperands& g, int64_t n,
                                       bool reads) {
  if (reads)
    return Unimplemented("no kernel from %s to %s", Name(g.dout->dtype()),
                         Name(g.dx->dtype()));
  return DispatchTypes<float, double, int64_t>(
      g.dout->dtype(), [&](auto from) -> absl::StatusOr<Step> {
        using D = typename decltype(from)::type;
        return DispatchTypes<float, double, int32_t, int64_t>(
            g.dx->dtype(), [&](auto to) -> absl::StatusOr<Step> {
              using T = typename decltype(to)::type;
              return Step([g, n](const RunContext&) {
                const int64_t stride = g.loop.row_strides()[1];
                g.loop.ForParts(
                    0, g.loop.size(), [&](const auto& at, int64_t count) {
                      const D* d = g.dout->data<D>() + at[1];
                      T* dx = g.dx->data<T>() + at[0];
                      for (int64_t j = 0; j < count; ++j)
                        dx[j] =
                            static_cast<T>(d[j * stride] / static_cast<D>(n));
                    });
                return absl::OkStatus();
              });
            });
      });
}

template <Kind kKind>
absl::StatusOr<Step> BindReduceGrad(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = context->Input("X");
  constexpr bool kReads = kKind != Kind::kSum && kKind != Kind::kMean;
  if (!kReads) context->NoBuffer(x);
  if (kReads) x = upcaster.In(x);
  GradOperands g{kReads ? x : nullptr,
                 kReads ? upcaster.In(context->Input("Out")) : nullptr,
                 upcaster.In(context->Input("Out@GRAD")),
                 upcaster.Out(context->Output("X@GRAD")),
                 {}};
  PD_ASSIGN_OR_RETURN(const std::vector<bool> reduced,
                      ReducedAxes(context->op(), x->rank()));
  const std::vector<int64_t> strides = RowMajorStrides(x->shape());
  Shape kept;
  for (size_t i = 0; i < reduced.size(); ++i)
    kept.push_back(reduced[i] ? 1 : x->dim(i));
  const std::vector<int64_t> out_strides = RowMajorStrides(kept);
  for (size_t i = 0; i < reduced.size(); ++i)
    g.loop.Add(x->dim(i),
               {strides[i], reduced[i] ? 0 : out_strides[i], strides[i]});
  const int64_t outputs = NumElements(kept);
  if (g.dout->size() != outputs)
    return InvalidArgument("Out@GRAD has %d elements; X reduces to %d",
                           g.dout->size(), outputs);
  const int64_t each =
      kKind != Kind::kMean ? 1 : (outputs == 0 ? 0 : x->size() / outputs);
  if (g.dout->dtype() != g.dx->dtype())
    return upcaster.Wrap(BindConvertedGrad(g, each, kReads));
  if (kReads) {
    if (g.out == nullptr || g.out->size() != outputs ||
        g.out->dtype() != x->dtype() || g.dx->size() != x->size() ||
        g.dx->dtype() != x->dtype())
      return InvalidArgument("Out is not what X %s reduces to",
                             ToString(x->shape()));
    if (kKind != Kind::kMax && kKind != Kind::kMin)
      g.counts = context->Scratch(2 * static_cast<size_t>(outputs) *
                                  SizeOf(x->dtype()));
  }
  return upcaster.Wrap(GradStep(g, kKind, each));
}

void AddReduceAttrs(bool long_dims, OpDef* op) {
  if (long_dims) {
    op->OptionalInput("AxisTensor").OptionalInputs("AxisTensorList");
    op->Attr("dim", std::vector<int64_t>{0});
  } else {
    op->Attr("dim", std::vector<int32_t>{0});
  }
  op->Attr("keep_dim", false).Attr("reduce_all", false);
  op->Attr("in_dtype", int32_t{-1}).Attr("out_dtype", int32_t{-1});
}

template <Kind kKind>
absl::Status AddReduceOp(OpRegistry* registry, const std::string& type) {
  constexpr bool kReads = kKind != Kind::kSum && kKind != Kind::kMean;
  const bool long_dims =
      IsLogical(kKind) || kKind == Kind::kAmax || kKind == Kind::kAmin;
  const bool has_attrs = type != "mean";
  OpDef op(type);
  op.Input("X").Output("Out");
  if (has_attrs) AddReduceAttrs(long_dims, &op);
  op.Infer(InferReduce).Reference(BindReduce<kKind>);
  op.With(Trait::kShapeArithmetic);
  if constexpr (IsLogical(kKind)) {
    op.NoGrad();
    return registry->Add(std::move(op));
  } else {
    GradSpec spec{type + "_grad", {"X"}, {}, {"Out"}, {"X"}};
    if (kReads) spec.outputs = {"Out"};
    op.Grad(std::move(spec));
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

    OpDef grad(type + "_grad");
    grad.Input("X").Input("Out@GRAD").Output("X@GRAD");
    if (kReads) grad.Input("Out");
    if (has_attrs) AddReduceAttrs(long_dims, &grad);
    grad.Infer(InferGradLikeInput).Reference(BindReduceGrad<kKind>);
    if (kReads)
      grad.NoGrad();
    else
      grad.Grad(ForwardAgain(type, "X", "Out"));
    return registry->Add(std::move(grad));
  }
}

}  // namespace

absl::Status RegisterReduce(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kMean>(registry, "mean"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kSum>(registry, "reduce_sum"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kMean>(registry, "reduce_mean"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kProd>(registry, "reduce_prod"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kMax>(registry, "reduce_max"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kMin>(registry, "reduce_min"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kAmax>(registry, "reduce_amax"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kAmin>(registry, "reduce_amin"));
  PD_RETURN_IF_ERROR(AddReduceOp<Kind::kAll>(registry, "reduce_all"));
  return AddReduceOp<Kind::kAny>(registry, "reduce_any");
}

}  // namespace pd
