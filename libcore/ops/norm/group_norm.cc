// SPDX-License-Identifier: Apache-2.0
// group_norm: the channels of each image in `groups` groups. instance_norm:
// each channel of each image alone. Over the M elements of a group:
//   m = mean(X), r = 1 / sqrt(var(X) + epsilon), var biased
//   h = (X - m) * r; Y = h * Scale + Bias, Scale and Bias by channel
// group_norm's Mean and Variance are m and var, [images, groups];
// instance_norm's SavedMean and SavedVariance are m and r, [images * channels].
// With g = Y@GRAD * Scale:
//   X@GRAD = r * (g - mean(g) - h * mean(g * h))
//   Scale@GRAD = sum(Y@GRAD * h), Bias@GRAD = sum(Y@GRAD) over a channel
// group_norm_grad without Scale leaves mean(g) out, as PaddlePaddle's CPU
// kernel does, whose training it is to repeat; with a Scale of ones it is
// exact. Programs of before 2.3 give group_norm_grad Y without X; h then comes
// from Y.
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/norm/norm_groups.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

bool IsInstance(const OpDesc& op) { return op.type.rfind("instance", 0) == 0; }

// X as [images, groups, channels a group, positions].
struct Groups {
  int64_t images, channels, groups, width, positions;  // width: channels each
  int64_t image_step, channel_step, position_step;
  double epsilon;
  bool instance;

  int64_t count() const { return width * positions; }
};

absl::StatusOr<Groups> ReadGroups(const OpDesc& op, const Shape& shape) {
  if (shape.size() < 2)
    return InvalidArgument("'X' has shape %s; expected rank 2 or more",
                           ToString(shape));
  Groups g;
  g.instance = IsInstance(op);
  const bool last =
      !g.instance && op.Attr<std::string>("data_layout") == "NHWC";
  const size_t rank = shape.size();
  g.images = shape[0];
  g.channels = last ? shape.back() : shape[1];
  g.groups = g.instance ? g.channels : op.Attr<int32_t>("groups");
  g.epsilon = op.Attr<float>("epsilon");
  if (!g.instance &&
      (g.groups < 1 || (g.channels >= 0 && g.channels % g.groups != 0)))
    return InvalidArgument("attr 'groups' is %d; 'X' %s has %d channels",
                           g.groups, ToString(shape), g.channels);
  g.width = g.instance ? 1 : g.channels / g.groups;
  g.positions = IsDynamic(shape) ? -1
                : last           ? NumElements(shape, 1, rank - 1)
                                 : NumElements(shape, 2, rank);
  g.image_step = g.channels * g.positions;
  g.channel_step = last ? 1 : g.positions;
  g.position_step = last ? g.channels : 1;
  return g;
}

// Calls body(element, channel) for a group of an image.
template <typename Body>
void ForEachGroupNormElement(const Groups& g, int64_t at, const Body& body) {
  const int64_t image = at / g.groups, first = at % g.groups * g.width;
  for (int64_t c = first; c < first + g.width; ++c) {
    const int64_t start = image * g.image_step + c * g.channel_step;
    for (int64_t p = 0; p < g.positions; ++p)
      body(start + p * g.position_step, c);
  }
}

// Calls body(group of an image) from several threads.
template <typename Body>
void ForEachGroup(const Groups& g, const Body& body) {
  ParallelFor(g.images * g.groups, 4096 / (g.count() + 1) + 1,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end; ++i) body(i);
              });
}

struct Slots {
  const char *mean, *variance;
};
Slots SlotsOf(const OpDesc& op) {
  return IsInstance(op) ? Slots{"SavedMean", "SavedVariance"}
                        : Slots{"Mean", "Variance"};
}

template <typename T>
T GroupNormAt(const Tensor* tensor, int64_t i, T otherwise) {
  return tensor != nullptr ? tensor->data<T>()[i] : otherwise;
}

absl::Status CheckScaleAndBias(const BindContext& context, const Groups& g,
                               DType dtype) {
  for (const char* slot : {"Scale", "Bias"})
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(context, slot, dtype, g.channels));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindGroupNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  if (StateType(x->dtype()) != x->dtype())
    return Unimplemented("halves are computed as float32");
  Tensor* scale = context->Input("Scale");
  Tensor* bias = context->Input("Bias");
  Tensor* y = context->Output("Y");
  const Slots slots = SlotsOf(context->op());
  Tensor* mean_out = context->Output(slots.mean);
  Tensor* variance_out = context->Output(slots.variance);
  PD_ASSIGN_OR_RETURN(const Groups g, ReadGroups(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(CheckScaleAndBias(*context, g, x->dtype()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* out = y->data<T>();
      ForEachGroup(g, [&](int64_t at) {
        double sum = 0, squares = 0;
        ForEachGroupNormElement(g, at,
                                [&](int64_t i, int64_t) { sum += in[i]; });
        const double mean = sum / g.count();
        ForEachGroupNormElement(g, at, [&](int64_t i, int64_t) {
          squares += (in[i] - mean) * (in[i] - mean);
        });
        const double variance = squares / g.count();
        const double inverse = 1 / std::sqrt(variance + g.epsilon);
        ForEachGroupNormElement(g, at, [&](int64_t i, int64_t c) {
          out[i] = static_cast<T>((in[i] - mean) * inverse) *
                       GroupNormAt<T>(scale, c, 1) +
                   GroupNormAt<T>(bias, c, 0);
        });
        if (mean_out != nullptr) mean_out->data<T>()[at] = static_cast<T>(mean);
        if (variance_out != nullptr)
          variance_out->data<T>()[at] =
              static_cast<T>(g.instance ? inverse : variance);
      });
      return absl::OkStatus();
    });
  });
}

// The tensors of the gradient. A null output is not wanted.
struct GroupNormGradTensors {
  Tensor *x, *y, *scale, *bias, *mean, *variance, *dy;  // x or y
  Tensor *dx, *dscale, *dbias;
};

template <typename T>
struct Gradient {
  const Groups& g;
  const GroupNormGradTensors& t;

  double Inverse(int64_t at) const {
    const double v = t.variance->data<T>()[at];
    return g.instance ? v : 1 / std::sqrt(v + g.epsilon);
  }
  // The normalised element.
  double H(int64_t i, int64_t c, double mean, double inverse) const {
    if (t.x != nullptr) return (t.x->data<T>()[i] - mean) * inverse;
    const double scale = GroupNormAt<T>(t.scale, c, 1);
    const double h = t.y->data<T>()[i] - double{GroupNormAt<T>(t.bias, c, 0)};
    return scale != 0 ? h / scale : 0;
  }

  void X() const {
    const T* dy = t.dy->data<T>();
    T* dx = t.dx->data<T>();
    ForEachGroup(g, [&](int64_t at) {
      const double mean = t.mean->data<T>()[at], inverse = Inverse(at);
      double sum = 0, dot = 0;
      ForEachGroupNormElement(g, at, [&](int64_t i, int64_t c) {
        const double d = dy[i] * double{GroupNormAt<T>(t.scale, c, 1)};
        sum += d;
        dot += d * H(i, c, mean, inverse);
      });
      sum = g.instance || t.scale != nullptr ? sum / g.count() : 0;
      dot /= g.count();
      ForEachGroupNormElement(g, at, [&](int64_t i, int64_t c) {
        const double d = dy[i] * double{GroupNormAt<T>(t.scale, c, 1)};
        dx[i] =
            static_cast<T>(inverse * (d - sum - H(i, c, mean, inverse) * dot));
      });
    });
  }

  void ScaleAndBias() const {
    const T* dy = t.dy->data<T>();
    ParallelFor(g.channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) {
        double dot = 0, sum = 0;
        for (int64_t n = 0; n < g.images; ++n) {
          const int64_t at = n * g.groups + c / g.width;
          const double mean = t.mean->data<T>()[at], inverse = Inverse(at);
          const int64_t start = n * g.image_step + c * g.channel_step;
          for (int64_t p = 0; p < g.positions; ++p) {
            const int64_t i = start + p * g.position_step;
            dot += dy[i] * H(i, c, mean, inverse);
            sum += dy[i];
          }
        }
        if (t.dscale != nullptr) t.dscale->data<T>()[c] = static_cast<T>(dot);
        if (t.dbias != nullptr) t.dbias->data<T>()[c] = static_cast<T>(sum);
      }
    });
  }
};

absl::StatusOr<Step> BindGroupNormGrad(BindContext* context) {
  const Tensor* dy = context->Input("Y@GRAD");
  if (dy != nullptr && StateType(dy->dtype()) != dy->dtype())
    return Unimplemented("halves are computed as float32");
  const Slots slots = SlotsOf(context->op());
  GroupNormGradTensors t;
  t.x = context->Input("X");
  t.y = context->Input("Y");
  t.scale = context->Input("Scale");
  t.bias = context->Input("Bias");
  t.mean = context->Input(slots.mean);
  t.variance = context->Input(slots.variance);
  t.dy = context->Input("Y@GRAD");
  t.dx = context->Output("X@GRAD");
  t.dscale = context->Output("Scale@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  const Tensor* from = t.x != nullptr ? t.x : t.y;
  if (from == nullptr) return InvalidArgument("'X' and 'Y' are missing");
  if (t.x != nullptr && t.y != nullptr) context->NoBuffer(t.y);
  PD_ASSIGN_OR_RETURN(const Groups g, ReadGroups(context->op(), from->shape()));
  const DType dtype = from->dtype();
  PD_RETURN_IF_ERROR(CheckScaleAndBias(*context, g, dtype));
  for (const char* slot : {slots.mean, slots.variance})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, dtype, g.images * g.groups));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", dtype, from->shape()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const Gradient<T> gradient{g, t};
      if (t.dx != nullptr) gradient.X();
      if (t.dscale != nullptr || t.dbias != nullptr) gradient.ScaleAndBias();
      return absl::OkStatus();
    });
  });
}

absl::Status InferGroupNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Groups g, ReadGroups(context->op(), x.shape));
  for (const char* slot : {"Scale", "Bias"}) {
    if (!context->HasInput(slot)) continue;
    const Shape& shape = context->Input(slot).shape;
    if (shape.size() != 1 ||
        (shape[0] != g.channels && shape[0] >= 0 && g.channels >= 0))
      return InvalidArgument("'%s' has shape %s; 'X' %s has %d channels", slot,
                             ToString(shape), ToString(x.shape), g.channels);
  }
  const Slots slots = SlotsOf(context->op());
  Shape statistics = {g.images, g.groups};
  if (g.instance)
    statistics = {g.images < 0 || g.channels < 0 ? -1 : g.images * g.channels};
  context->Share("X", "Y");
  context->SetOutput(slots.mean, statistics, StateType(x.dtype));
  context->SetOutput(slots.variance, statistics, StateType(x.dtype));
  return absl::OkStatus();
}

// instance_norm_grad comes without Bias, and what is absent is not shared.
absl::Status InferNormGrad(InferContext* context) {
  context->Share("Y@GRAD", "X@GRAD");
  const TensorMeta& dy = context->Input("Y@GRAD");
  PD_ASSIGN_OR_RETURN(const Groups g, ReadGroups(context->op(), dy.shape));
  const DType dtype =
      context->HasInput("Scale") ? context->Input("Scale").dtype : dy.dtype;
  for (const char* slot : {"Scale@GRAD", "Bias@GRAD"})
    context->SetOutput(slot, {g.channels}, dtype);
  return absl::OkStatus();
}

struct GroupNormSecondTensors {
  Tensor *x, *scale, *mean, *inverse, *dy, *ddx, *ddscale, *ddbias;
  Tensor *ddy, *dx, *dscale;
};

template <typename T>
void InstanceGradGrad(const Groups& g, const GroupNormSecondTensors& t) {
  const T* ddx = t.ddx != nullptr ? t.ddx->data<T>() : nullptr;
  ParallelFor(g.channels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double dscale = 0;
      for (int64_t n = 0; n < g.images; ++n) {
        const int64_t at = n * g.channels + c;
        NormGroup group;
        group.mean = t.mean->data<T>()[at];
        group.inverse = t.inverse->data<T>()[at];
        group.scale = GroupNormAt<T>(t.scale, c, 1);
        group.ddscale = GroupNormAt<T>(t.ddscale, c, 0);
        group.ddbias = GroupNormAt<T>(t.ddbias, c, 0);
        group.count = static_cast<double>(g.count());
        dscale += SecondNormGrad<T>(
            group,
            [&](const auto& body) {
              ForEachGroupNormElement(g, at,
                                      [&](int64_t i, int64_t) { body(i); });
            },
            t.x->data<T>(), t.dy->data<T>(), ddx,
            t.ddy != nullptr ? t.ddy->data<T>() : nullptr,
            t.dx != nullptr ? t.dx->data<T>() : nullptr);
      }
      if (t.dscale != nullptr) t.dscale->data<T>()[c] = static_cast<T>(dscale);
    }
  });
}

absl::StatusOr<Step> BindInstanceGradGrad(BindContext* context) {
  const NormGradGradSlots& slots = NormSlotsOf(context->op());
  GroupNormSecondTensors t;
  t.x = context->Input(slots.x);
  t.scale = context->Input(slots.scale);
  t.mean = context->Input(slots.saved_mean);
  t.inverse = context->Input(slots.saved_variance);
  t.dy = context->Input(slots.dy);
  t.ddx = context->Input(slots.ddx);
  t.ddscale = context->Input(slots.ddscale);
  t.ddbias = context->Input(slots.ddbias);
  t.ddy = context->Output(slots.ddy);
  t.dx = context->Output(slots.dx);
  t.dscale = context->Output(slots.dscale);
  const DType dtype = t.x->dtype();
  PD_ASSIGN_OR_RETURN(const Groups g, ReadGroups(context->op(), t.x->shape()));
  for (const char* slot : {slots.saved_mean, slots.saved_variance})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, dtype, g.images * g.channels));
  for (const char* slot : {slots.scale, slots.ddscale, slots.ddbias})
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, slot, dtype, {g.channels}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, slots.dy, dtype, t.x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, slots.ddx, dtype, t.x->shape()));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      InstanceGradGrad<T>(g, t);
      return absl::OkStatus();
    });
  });
}

absl::Status AddGroupNorm(OpRegistry* registry) {
  OpDef norm("group_norm");
  norm.Input("X").OptionalInput("Scale").OptionalInput("Bias").Output("Y");
  norm.IntermediateOutput("Mean").IntermediateOutput("Variance");
  norm.Attr("epsilon", 1e-5f).Attr("groups", int32_t{-1});
  norm.Attr("data_layout", std::string("NCHW"));
  norm.Infer(InferGroupNorm).Reference(BindGroupNorm);
  norm.Grad(GradSpec{"group_norm_grad",
                     {"X", "Scale", "Bias"},
                     {"Y", "Mean", "Variance"},
                     {"Y"},
                     {"X", "Scale", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(norm)));

  OpDef grad("group_norm_grad");
  for (const char* slot : {"X", "Y", "Scale", "Bias"}) grad.OptionalInput(slot);
  grad.Input("Mean").Input("Variance").Input("Y@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Scale@GRAD");
  grad.OptionalOutput("Bias@GRAD");
  grad.Attr("epsilon", 1e-5f).Attr("groups", int32_t{-1});
  grad.Attr("data_layout", std::string("NCHW"));
  grad.Infer(InferNormGrad).NoGrad().Reference(BindGroupNormGrad);
  return registry->Add(std::move(grad));
}

absl::Status AddInstanceNorm(OpRegistry* registry) {
  OpDef norm("instance_norm");
  norm.Input("X").OptionalInput("Scale").OptionalInput("Bias").Output("Y");
  norm.IntermediateOutput("SavedMean").IntermediateOutput("SavedVariance");
  norm.Attr("epsilon", 1e-5f).Infer(InferGroupNorm).Reference(BindGroupNorm);
  norm.Grad(GradSpec{"instance_norm_grad",
                     {"X", "Scale", "Bias"},
                     {"SavedMean", "SavedVariance"},
                     {"Y"},
                     {"X", "Scale", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(norm)));

  OpDef grad("instance_norm_grad");
  grad.Input("X").OptionalInput("Scale").OptionalInput("Bias");
  grad.Input("SavedMean").Input("SavedVariance").Input("Y@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Scale@GRAD");
  grad.OptionalOutput("Bias@GRAD").Attr("epsilon", 1e-5f);
  grad.Infer(InferNormGrad).Reference(BindGroupNormGrad);
  grad.Grad(GradMaker([](const GradRequest& request) {
    return MakeNormGradGrad(request, "instance_norm_double_grad", {});
  }));
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  for (const char* type :
       {"instance_norm_grad_grad", "instance_norm_double_grad"}) {
    OpDef second(type);
    AddNormGradGradSlots(&second);
    second.Attr("epsilon", 1e-5f).Infer(InferNormGradGrad).NoGrad();
    second.Reference(BindInstanceGradGrad);
    PD_RETURN_IF_ERROR(registry->Add(std::move(second)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterGroupNorm(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddGroupNorm(registry));
  return AddInstanceNorm(registry);
}

}  // namespace pd
