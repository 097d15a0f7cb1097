// SPDX-License-Identifier: Apache-2.0
// Per channel, over the batch and the positions (M elements):
//   training: SavedMean = mean(X); SavedVariance = 1 / sqrt(var(X) + epsilon),
//     var biased; MeanOut = momentum * Mean + (1 - momentum) * mean(X),
//     VarianceOut likewise with var(X). m, r = SavedMean, SavedVariance
//   is_test (without trainable_statistics) or use_global_stats: m = Mean,
//     r = 1 / sqrt(Variance + epsilon); Saved outputs are not written
//   h = (X - m) * r; Y = h * Scale + Bias
// MeanOut and VarianceOut usually are the variables Mean and Variance.
//   Bias@GRAD = sum(Y@GRAD); Scale@GRAD = sum(Y@GRAD * h)
//   training: X@GRAD = Scale * r *
//             (Y@GRAD - Bias@GRAD / M - h * Scale@GRAD / M); else Scale * r *
//             Y@GRAD
// fused_batch_norm_act: then Y = act_type(Y): "", relu, or relu6 up to
// fuse_alpha. Its gradient reads Y and takes Y@GRAD as 0 where Y <= 0 or
// Y >= fuse_alpha. Passes put it in the place of batch_norm and its activation;
// PaddlePaddle's own, for its GPUs, has relu and channels last alone.
// The second gradient stands in norm_groups.h. sync_batch_norm: M, mean and
// var, and the sums in X@GRAD, are of all processes that work together, of
// which each has a part of the batch; Scale@GRAD and Bias@GRAD are of this
// part, and in one process all is the same. A part whose gradient counts less
// in the mean over all parts (World::weight) counts less in those sums too.
// Training with M = 1 is the identity, as in PaddlePaddle: Y = X, the running
// statistics stay, Saved outputs and the gradients of Scale and Bias are 0.
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/world.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/norm/norm_groups.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// X as [n, channels, positions] with strides in elements.
struct Norm {
  int64_t n = 1, channels = 1, positions = 1;
  int64_t n_step, channel_step, position_step;
  double epsilon;
  bool global;  // uses the running statistics
  bool clip = false;
  double top = std::numeric_limits<double>::infinity();  // of the clip

  // Whether the clip lets a gradient through where its result is y.
  bool Passes(double y) const {
    return !clip || (!(y <= 0) && !(y >= top && std::isfinite(top)));
  }

  int64_t count() const { return n * positions; }
};

// Sums of a channel over all processes, where several work together.
struct ChannelSums {
  double count = 0;   // elements
  double first = 0;   // forward: the mean; backward: sum(Y@GRAD)
  double second = 0;  // forward: the variance; backward: of Y@GRAD * h
};

absl::StatusOr<Norm> ReadNorm(const OpDesc& op, const Shape& shape) {
  if (shape.size() < 2 || shape.size() > 5)
    return InvalidArgument("'X' has shape %s; expected rank 2 to 5",
                           ToString(shape));
  const auto layout = op.Attr<std::string>("data_layout");
  const bool last = shape.size() > 2 && layout == "NHWC";
  Norm m;
  m.n = shape[0];
  m.channels = last ? shape.back() : shape[1];
  m.positions = last ? NumElements(shape, 1, shape.size() - 1)
                     : NumElements(shape, 2, shape.size());
  m.n_step = m.channels * m.positions;
  m.channel_step = last ? 1 : m.positions;
  m.position_step = last ? m.channels : 1;
  m.epsilon = op.Attr<float>("epsilon");
  m.global =
      op.Attr<bool>("use_global_stats") ||
      (op.Attr<bool>("is_test") && !op.Attr<bool>("trainable_statistics"));
  const auto act = op.AttrOr<std::string>("act_type", "");
  if (!act.empty() && act != "relu" && act != "relu6")
    return InvalidArgument(
        "attr 'act_type' is '%s'; expected '', relu or relu6", act);
  m.clip = !act.empty();
  if (act == "relu6") {
    m.top = op.Attr<float>("fuse_alpha");
    if (!(m.top > 0))
      return InvalidArgument(
          "attr 'fuse_alpha' is %g; relu6 wants its bound, more than 0", m.top);
  }
  return m;
}

// Calls body(element) for every element of channel c.
template <typename Body>
void ForEachBatchNormElement(const Norm& m, int64_t c, const Body& body) {
  for (int64_t n = 0; n < m.n; ++n) {
    const int64_t start = n * m.n_step + c * m.channel_step;
    for (int64_t s = 0; s < m.positions; ++s) body(start + s * m.position_step);
  }
}

template <typename Body>
void ForEachChannel(const Norm& m, const Body& body) {
  ParallelFor(m.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) body(c);
  });
}

struct Tensors {
  Tensor *x, *scale, *bias, *mean, *variance, *momentum_tensor;
  Tensor *y, *mean_out, *variance_out, *saved_mean, *saved_variance;
  double momentum;
};

template <typename T>
T BatchNormAt(const Tensor* tensor, int64_t c, T otherwise) {
  return tensor != nullptr ? tensor->data<T>()[c] : otherwise;
}

template <typename T>
void StoreBatchNorm(Tensor* tensor, int64_t c, double value) {
  if (tensor != nullptr) tensor->data<T>()[c] = static_cast<T>(value);
}

template <typename T>
double SumOf(const Norm& m, int64_t c, const T* x, double sum) {
  ForEachBatchNormElement(m, c, [&](int64_t i) { sum += x[i]; });
  return sum;
}

template <typename T>
double SquaresOf(const Norm& m, int64_t c, const T* x, double mean) {
  double squares = 0;
  ForEachBatchNormElement(
      m, c, [&](int64_t i) { squares += (x[i] - mean) * (x[i] - mean); });
  return squares;
}

// Adds up numbers [0, count) of each process.
absl::Status AddUp(const RunContext& run, double* numbers, int64_t count) {
  return run.world->all().AllReduce(Reduction::kSum, DType::kFloat64, count,
                                    numbers, numbers);
}

template <typename T>
void ForwardChannel(const Norm& m, const Tensors& t, int64_t c,
                    const ChannelSums* of_all = nullptr) {
  const T* x = t.x->data<T>();
  T* y = t.y->data<T>();
  const double running_mean = t.mean->data<T>()[c];
  const double running_variance = t.variance->data<T>()[c];
  double mean = running_mean, variance = running_variance;
  double new_mean = running_mean, new_variance = running_variance;
  const bool identity = !m.global && of_all == nullptr && m.count() == 1;
  if (!m.global && !identity) {
    mean = of_all != nullptr ? of_all->first : SumOf(m, c, x, 0) / m.count();
    variance = of_all != nullptr ? of_all->second
                                 : SquaresOf(m, c, x, mean) / m.count();
    const double keep = t.momentum_tensor != nullptr
                            ? ScalarOf(*t.momentum_tensor)
                            : t.momentum;
    new_mean = keep * running_mean + (1 - keep) * mean;
    new_variance = keep * running_variance + (1 - keep) * variance;
  }
  const double inverse = 1 / std::sqrt(variance + m.epsilon);
  StoreBatchNorm<T>(t.mean_out, c, new_mean);
  StoreBatchNorm<T>(t.variance_out, c, new_variance);
  if (!m.global) {
    StoreBatchNorm<T>(t.saved_mean, c, identity ? 0 : mean);
    StoreBatchNorm<T>(t.saved_variance, c, identity ? 0 : inverse);
  }
  const T factor = BatchNormAt<T>(t.scale, c, 1) * static_cast<T>(inverse);
  const T shift = BatchNormAt<T>(t.bias, c, 0);
  const T center = static_cast<T>(mean);
  if (identity)
    ForEachBatchNormElement(m, c, [&](int64_t i) { y[i] = x[i]; });
  else
    ForEachBatchNormElement(
        m, c, [&](int64_t i) { y[i] = (x[i] - center) * factor + shift; });
  if (!m.clip) return;
  const T top = static_cast<T>(m.top);
  ForEachBatchNormElement(m, c, [&](int64_t i) {
    if (y[i] <= 0) y[i] = 0;
    if (y[i] > top) y[i] = top;
  });
}

// The statistics of all processes; `numbers` has room for one a channel and
// one more.
template <typename T>
absl::Status ForwardTogether(const Norm& m, const Tensors& t,
                             const RunContext& run, double* numbers) {
  const T* x = t.x->data<T>();
  ForEachChannel(m, [&](int64_t c) { numbers[c] = SumOf(m, c, x, 0); });
  numbers[m.channels] = static_cast<double>(m.count());
  PD_RETURN_IF_ERROR(AddUp(run, numbers, m.channels + 1));
  std::vector<ChannelSums> sums(static_cast<size_t>(m.channels));
  for (int64_t c = 0; c < m.channels; ++c) {
    ChannelSums& sum = sums[static_cast<size_t>(c)];
    sum.count = numbers[m.channels];
    sum.first = numbers[c] / sum.count;
    numbers[c] = SquaresOf(m, c, x, sum.first);
  }
  PD_RETURN_IF_ERROR(AddUp(run, numbers, m.channels));
  ForEachChannel(m, [&](int64_t c) {
    ChannelSums& sum = sums[static_cast<size_t>(c)];
    sum.second = numbers[c] / sum.count;
    ForwardChannel<T>(m, t, c, &sum);
  });
  return absl::OkStatus();
}

// Whether the statistics are those of several processes.
bool WorksTogether(const OpDesc& op, const Norm& m) {
  return !m.global && absl::StartsWith(op.type, "sync_");
}

absl::StatusOr<Step> BindBatchNorm(BindContext* context) {
  Tensors t;
  t.x = context->Input("X");
  if (StateType(t.x->dtype()) != t.x->dtype())
    return Unimplemented("halves are computed as float32");
  PD_ASSIGN_OR_RETURN(const Norm m, ReadNorm(context->op(), t.x->shape()));
  const DType dtype = t.x->dtype();
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"})
    if (context->Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectInput(*context, slot, dtype, {m.channels}));
  t.scale = context->Input("Scale");
  t.bias = context->Input("Bias");
  t.mean = context->Input("Mean");
  t.variance = context->Input("Variance");
  t.momentum_tensor = context->Input("MomentumTensor");
  if (t.momentum_tensor != nullptr)
    PD_RETURN_IF_ERROR(CheckScalar("MomentumTensor", t.momentum_tensor));
  t.momentum = context->Attr<float>("momentum");
  t.y = context->Output("Y");
  t.mean_out = context->Output("MeanOut");
  t.variance_out = context->Output("VarianceOut");
  t.saved_mean = context->Output("SavedMean");
  t.saved_variance = context->Output("SavedVariance");
  const bool together = WorksTogether(context->op(), m);
  Tensor* numbers = together
                        ? context->Scratch(static_cast<size_t>(m.channels + 1) *
                                           sizeof(double))
                        : nullptr;
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([m, t, together, numbers](const RunContext& run) {
      if (together && run.world != nullptr)
        return ForwardTogether<T>(m, t, run,
                                  static_cast<double*>(numbers->raw()));
      ForEachChannel(m, [&](int64_t c) { ForwardChannel<T>(m, t, c); });
      return absl::OkStatus();
    });
  });
}

struct BatchNormGradTensors {
  Tensor *x, *scale, *mean, *variance, *dy;  // mean, variance: by Norm::global
  Tensor* y;                                 // of an activation
  Tensor *dx, *dscale, *dbias;
};

// Without the sums of all processes `sums` are set to those of this one, and
// stay local; with them dx follows.
template <typename T>
void BackwardChannel(const Norm& m, const BatchNormGradTensors& t, int64_t c,
                     const ChannelSums* of_all = nullptr,
                     ChannelSums* local = nullptr) {
  const T* x = t.x->data<T>();
  const T* dy = t.dy->data<T>();
  const double mean = t.mean->data<T>()[c];
  const double second = t.variance->data<T>()[c];
  const double inverse = m.global ? 1 / std::sqrt(second + m.epsilon) : second;
  const bool identity =
      !m.global && of_all == nullptr && local == nullptr && m.count() == 1;
  const T* y = m.clip ? t.y->data<T>() : nullptr;
  const auto gradient = [&](int64_t i) {
    return y == nullptr || m.Passes(y[i]) ? dy[i] : T(0);
  };
  double sum = of_all != nullptr ? of_all->first : 0;
  double dot = of_all != nullptr ? of_all->second : 0;
  if (of_all == nullptr) {
    if (!identity)
      ForEachBatchNormElement(m, c, [&](int64_t i) {
        sum += gradient(i);
        dot += gradient(i) * (x[i] - mean) * inverse;
      });
    StoreBatchNorm<T>(t.dbias, c, sum);
    StoreBatchNorm<T>(t.dscale, c, dot);
  }
  if (local != nullptr) {
    *local = {static_cast<double>(m.count()), sum, dot};
    return;
  }
  if (t.dx == nullptr) return;
  T* dx = t.dx->data<T>();
  const double factor =
      identity ? 1 : double{BatchNormAt<T>(t.scale, c, 1)} * inverse;
  const double count =
      of_all != nullptr ? of_all->count : static_cast<double>(m.count());
  const double share = m.global || identity ? 0 : 1.0 / count;
  ForEachBatchNormElement(m, c, [&](int64_t i) {
    const double h = (x[i] - mean) * inverse;
    dx[i] = static_cast<T>(factor * (gradient(i) - share * (sum + h * dot)));
  });
}

// With the sums of all processes; `numbers` has room for two a channel and one
// more.
template <typename T>
absl::Status BackwardTogether(const Norm& m, const BatchNormGradTensors& t,
                              const RunContext& run, double* numbers) {
  const double weight = run.world->weight();
  ForEachChannel(m, [&](int64_t c) {
    ChannelSums sums;
    BackwardChannel<T>(m, t, c, nullptr, &sums);
    numbers[2 * c] = sums.first * weight;
    numbers[2 * c + 1] = sums.second * weight;
  });
  const int64_t last = 2 * m.channels;
  numbers[last] = static_cast<double>(m.count());
  PD_RETURN_IF_ERROR(AddUp(run, numbers, last + 1));
  ForEachChannel(m, [&](int64_t c) {
    const ChannelSums sums{numbers[last], numbers[2 * c] / weight,
                           numbers[2 * c + 1] / weight};
    BackwardChannel<T>(m, t, c, &sums);
  });
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBatchNormGrad(BindContext* context) {
  BatchNormGradTensors t;
  t.x = context->Input("X");
  if (StateType(t.x->dtype()) != t.x->dtype())
    return Unimplemented("halves are computed as float32");
  PD_ASSIGN_OR_RETURN(const Norm m, ReadNorm(context->op(), t.x->shape()));
  const DType dtype = t.x->dtype();
  const char* mean = m.global ? "Mean" : "SavedMean";
  const char* variance = m.global ? "Variance" : "SavedVariance";
  PD_RETURN_IF_ERROR(ExpectInput(*context, mean, dtype, {m.channels}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, variance, dtype, {m.channels}));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Scale", dtype, {m.channels}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", dtype, t.x->shape()));
  t.scale = context->Input("Scale");
  t.mean = context->Input(mean);
  t.variance = context->Input(variance);
  t.dy = context->Input("Y@GRAD");
  t.y = context->Input("Y");
  if (m.clip)
    PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", dtype, t.x->shape()));
  t.dx = context->Output("X@GRAD");
  t.dscale = context->Output("Scale@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  const bool together = WorksTogether(context->op(), m);
  Tensor* numbers =
      together ? context->Scratch(static_cast<size_t>(2 * m.channels + 1) *
                                  sizeof(double))
               : nullptr;
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([m, t, together, numbers](const RunContext& run) {
      if (together && run.world != nullptr)
        return BackwardTogether<T>(m, t, run,
                                   static_cast<double*>(numbers->raw()));
      ForEachChannel(m, [&](int64_t c) { BackwardChannel<T>(m, t, c); });
      return absl::OkStatus();
    });
  });
}

struct BatchNormSecondTensors {
  Tensor *x, *scale, *mean, *variance, *dy, *ddx, *ddscale, *ddbias;
  Tensor *ddy, *dx, *dscale;
};

template <typename T>
void SecondChannel(const Norm& m, const BatchNormSecondTensors& t, int64_t c) {
  NormGroup group;
  const double second = t.variance->data<T>()[c];
  group.mean = t.mean->data<T>()[c];
  group.inverse = m.global ? 1 / std::sqrt(second + m.epsilon) : second;
  group.scale = BatchNormAt<T>(t.scale, c, 1);
  group.ddscale = BatchNormAt<T>(t.ddscale, c, 0);
  group.ddbias = BatchNormAt<T>(t.ddbias, c, 0);
  group.count = static_cast<double>(m.count());
  group.constant = m.global;
  const double dscale = SecondNormGrad<T>(
      group, [&](const auto& body) { ForEachBatchNormElement(m, c, body); },
      t.x->data<T>(), t.dy->data<T>(),
      t.ddx != nullptr ? t.ddx->data<T>() : nullptr,
      t.ddy != nullptr ? t.ddy->data<T>() : nullptr,
      t.dx != nullptr ? t.dx->data<T>() : nullptr);
  StoreBatchNorm<T>(t.dscale, c, dscale);
}

absl::StatusOr<Step> BindBatchNormGradGrad(BindContext* context) {
  BatchNormSecondTensors t;
  t.x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Norm m, ReadNorm(context->op(), t.x->shape()));
  const DType dtype = t.x->dtype();
  const char* mean = m.global ? "Mean" : "SavedMean";
  const char* variance = m.global ? "Variance" : "SavedVariance";
  PD_RETURN_IF_ERROR(ExpectInput(*context, mean, dtype, {m.channels}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, variance, dtype, {m.channels}));
  for (const char* slot : {"Scale", "DDScale", "DDBias"})
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, slot, dtype, {m.channels}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "DY", dtype, t.x->shape()));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "DDX", dtype, t.x->shape()));
  t.scale = context->Input("Scale");
  t.mean = context->Input(mean);
  t.variance = context->Input(variance);
  t.dy = context->Input("DY");
  t.ddx = context->Input("DDX");
  t.ddscale = context->Input("DDScale");
  t.ddbias = context->Input("DDBias");
  t.ddy = context->Output("DDY");
  t.dx = context->Output("DX");
  t.dscale = context->Output("DScale");
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([m, t](const RunContext&) {
      ForEachChannel(m, [&](int64_t c) { SecondChannel<T>(m, t, c); });
      return absl::OkStatus();
    });
  });
}

absl::Status InferBatchNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Norm m, ReadNorm(context->op(), x.shape));
  for (const char* slot : {"Scale", "Bias", "Mean", "Variance"}) {
    if (!context->HasInput(slot)) continue;
    const Shape& shape = context->Input(slot).shape;
    if (shape.size() != 1 ||
        (shape[0] != m.channels && shape[0] >= 0 && m.channels >= 0))
      return InvalidArgument("'%s' has shape %s; 'X' %s has %d channels", slot,
                             ToString(shape), ToString(x.shape), m.channels);
  }
  context->Share("X", "Y");
  context->Share("Mean", "MeanOut");
  context->Share("Variance", "VarianceOut");
  context->SetOutput("SavedMean", {m.channels}, StateType(x.dtype));
  context->SetOutput("SavedVariance", {m.channels}, StateType(x.dtype));
  context->SetOutput("ReserveSpace", {0}, x.dtype);
  return absl::OkStatus();
}

constexpr char kFused[] = "fused_batch_norm_act";

void AddBatchNormAttrs(OpDef* def, bool fused) {
  def->Attr("is_test", false)
      .Attr("momentum", 0.9f)
      .Attr("epsilon", 1e-5f)
      .Attr("data_layout", std::string(fused ? "NHWC" : "NCHW"))
      .Attr("use_global_stats", false)
      .Attr("trainable_statistics", false);
  if (!fused) return;
  def->Attr("act_type", std::string("relu")).Attr("fuse_alpha", 6.0f);
}

absl::StatusOr<std::vector<OpDesc>> MakeBatchNormGradGrad(
    const GradRequest& request) {
  return MakeNormGradGrad(request, "batch_norm_grad_grad",
                          {"Mean", "Variance"});
}

absl::Status AddBatchNorm(OpRegistry* registry, const std::string& type) {
  OpDef norm(type);
  norm.Input("X").OptionalInput("Scale").OptionalInput("Bias");
  norm.Input("Mean").Input("Variance").OptionalInput("MomentumTensor");
  norm.Output("Y").Output("MeanOut").Output("VarianceOut");
  norm.IntermediateOutput("SavedMean").IntermediateOutput("SavedVariance");
  norm.OptionalOutput("ReserveSpace");
  const bool fused = type == kFused;
  AddBatchNormAttrs(&norm, fused);
  norm.Infer(InferBatchNorm).Reference(BindBatchNorm);
  GradSpec spec{type + "_grad",
                {"X", "Scale", "Bias", "Mean", "Variance"},
                {"SavedMean", "SavedVariance", "ReserveSpace"},
                {"Y"},
                {"X", "Scale", "Bias"}};
  if (fused) spec.outputs.push_back("Y");
  norm.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(norm)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Y@GRAD");
  for (const char* slot :
       {"Scale", "Bias", "Mean", "Variance", "MeanOut", "VarianceOut",
        "SavedMean", "SavedVariance", "ReserveSpace", "MomentumTensor"})
    grad.OptionalInput(slot);
  if (fused) grad.Input("Y");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Scale@GRAD");
  grad.OptionalOutput("Bias@GRAD");
  AddBatchNormAttrs(&grad, fused);
  grad.Infer(InferGradLikeInput).Reference(BindBatchNormGrad);
  type == "batch_norm" ? grad.Grad(GradMaker(MakeBatchNormGradGrad))
                       : grad.NoGrad();
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterBatchNorm(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddBatchNorm(registry, "batch_norm"));
  PD_RETURN_IF_ERROR(AddBatchNorm(registry, "sync_batch_norm"));
  PD_RETURN_IF_ERROR(AddBatchNorm(registry, kFused));

  OpDef second("batch_norm_grad_grad");
  AddNormGradGradSlots(&second);
  second.OptionalInput("Mean").OptionalInput("Variance");
  AddBatchNormAttrs(&second, false);
  second.Infer(InferNormGradGrad).NoGrad().Reference(BindBatchNormGradGrad);
  return registry->Add(std::move(second));
}

}  // namespace pd
