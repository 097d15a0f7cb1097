// SPDX-License-Identifier: Apache-2.0
// Random numbers whose distribution a tensor says:
//   bernoulli: 1 with probability X, else 0
//   poisson: of mean X; exponential: -log(u) / lambda, of X's shape
//   standard_gamma: gamma variables of shape x and scale 1
//   dirichlet: gamma variables of shape Alpha, divided by their sum along the
//     last axis
//   binomial: how many of `count` trials succeed, each with probability prob
//   multinomial: num_samples indices into the last axis, with probabilities in
//     proportion to X; without `replacement` no index twice
//   sampling_id: for each row of X, the index where the sum of probabilities
//     passes a number between min and max
//   seed: the attribute `seed`; a random one when it is 0
// Gradients of poisson and exponential are 0; others are not made.
// Where the numbers come from is in random_source.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/random/random_source.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Step> BindBernoulli(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return RandomFillStep<T>(out, RandomSourceOf(*context),
                             [x](auto& p, int64_t i) {
                               return OpenUniform(p, i) < x->data<T>()[i];
                             });
  });
}

absl::StatusOr<Step> BindExponential(BindContext* context) {
  Tensor* out = context->Output("Out");
  context->NoBuffer(context->Input("X"));
  const double lambda = context->Attr<float>("lambda");
  if (!(lambda > 0.0))
    return InvalidArgument("attr 'lambda' is %g; expected a positive number",
                           lambda);
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return RandomFillStep<T>(out, RandomSourceOf(*context),
                             [lambda](auto& p, int64_t i) {
                               return -std::log(OpenUniform(p, i)) / lambda;
                             });
  });
}

// Knuth's product of uniforms for small means; for large ones Hormann's
// transformed rejection ("The transformed rejection method for generating
// Poisson random variables", 1993, algorithm PTRS).
double Poisson(double mean, ElementStream* numbers) {
  if (!(mean > 0.0)) return 0.0;
  if (mean < 10.0) {
    const double bound = std::exp(-mean);
    double product = numbers->Uniform(), count = 0.0;
    for (; product > bound; count += 1.0) product *= numbers->Uniform();
    return count;
  }
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2.0);
  while (true) {
    const double u = numbers->Uniform() - 0.5, v = numbers->Uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0.0 || (us < 0.013 && v > us)) continue;
    int sign;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <=
        -mean + k * std::log(mean) - ::lgamma_r(k + 1.0, &sign))
      return k;
  }
}

absl::StatusOr<Step> BindPoisson(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, source = RandomSourceOf(*context)](
                    const RunContext& run) -> absl::Status {
      const Philox numbers = source.Numbers(run);
      for (int64_t i = 0, n = x->size(); i < n; ++i) {
        const double mean = x->data<T>()[i];
        if (!(mean >= 0.0) || std::isinf(mean))
          return InvalidArgument("element %d of X is %g; expected a mean", i,
                                 mean);
        ElementStream stream(numbers, i);
        out->data<T>()[i] = static_cast<T>(Poisson(mean, &stream));
      }
      return absl::OkStatus();
    });
  });
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000.
double Gamma(double shape, ElementStream* numbers) {
  double factor = 1.0;
  if (shape < 1.0) {
    factor = std::pow(numbers->Uniform(), 1.0 / shape);
    shape += 1.0;
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = numbers->Normal();
    const double root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (std::log(numbers->Uniform()) <
        0.5 * x * x + d - d * v + d * std::log(v))
      return factor * d * v;
  }
}

absl::StatusOr<Step> BindStandardGamma(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* out = context->Output("out");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, source = RandomSourceOf(*context, "out")](
                    const RunContext& run) -> absl::Status {
      const Philox numbers = source.Numbers(run);
      for (int64_t i = 0, n = x->size(); i < n; ++i) {
        const double shape = x->data<T>()[i];
        if (!(shape > 0.0) || std::isinf(shape))
          return InvalidArgument(
              "element %d of x is %g; expected a positive number", i, shape);
        ElementStream stream(numbers, i);
        out->data<T>()[i] = static_cast<T>(Gamma(shape, &stream));
      }
      return absl::OkStatus();
    });
  });
}

// Of few successes, up to one half: the trials up to each one are a geometric
// variable.
double FewSuccesses(double trials, double p, ElementStream* numbers) {
  if (!(p > 0.0)) return 0.0;
  double successes = 0.0, tried = 0.0;
  while (true) {
    tried += std::ceil(std::log(numbers->Uniform()) / std::log1p(-p));
    if (tried > trials) return successes;
    successes += 1.0;
  }
}

// Of many: Hormann's transformed rejection ("The generation of binomial random
// variates", 1993, algorithm BTRS).
double ManySuccesses(double trials, double p, ElementStream* numbers) {
  const double root = std::sqrt(trials * p * (1.0 - p));
  const double b = 1.15 + 2.53 * root, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * root;
  const double mode = std::floor((trials + 1.0) * p);
  int sign;
  const double at_mode =
      ::lgamma_r(mode + 1.0, &sign) + ::lgamma_r(trials - mode + 1.0, &sign);
  while (true) {
    const double u = numbers->Uniform() - 0.5, v = numbers->Uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / us + b) * u + trials * p + 0.5);
    if (k < 0.0 || k > trials) continue;
    if (us >= 0.07 && v <= v_r) return k;
    if (std::log(v * alpha / (a / (us * us) + b)) <=
        at_mode - ::lgamma_r(k + 1.0, &sign) -
            ::lgamma_r(trials - k + 1.0, &sign) +
            (k - mode) * std::log(p / (1.0 - p)))
      return k;
  }
}

double Successes(double trials, double p, ElementStream* numbers) {
  if (p > 0.5) return trials - Successes(trials, 1.0 - p, numbers);
  return trials * p < 10.0 ? FewSuccesses(trials, p, numbers)
                           : ManySuccesses(trials, p, numbers);
}

absl::Status InferBinomial(InferContext* context) {
  const TensorMeta& count = context->Input("count");
  if (count.dtype != DType::kInt32 && count.dtype != DType::kInt64)
    return InvalidArgument("'count' is %s; expected int32 or int64",
                           Name(count.dtype));
  context->SetOutput("out", count.shape, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindBinomial(BindContext* context) {
  Tensor* count = context->Input("count");
  Tensor* prob = context->Input("prob");
  Tensor* out = context->Output("out");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "prob", prob->dtype(), count->shape()));
  return DispatchFloat(prob->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, source = RandomSourceOf(*context, "out")](
                    const RunContext& run) -> absl::Status {
      const Philox numbers = source.Numbers(run);
      for (int64_t i = 0, n = count->size(); i < n; ++i) {
        const int64_t trials = LabelAt(*count, i);
        const double p = prob->data<T>()[i];
        if (trials < 0 || !(p >= 0.0 && p <= 1.0))
          return InvalidArgument(
              "element %d is %d trials of probability %g; expected 0 or more, "
              "and 0 to 1",
              i, trials, p);
        ElementStream stream(numbers, i);
        const double successes =
            Successes(static_cast<double>(trials), p, &stream);
        out->data<int64_t>()[i] = successes < static_cast<double>(trials)
                                      ? static_cast<int64_t>(successes)
                                      : trials;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDirichlet(BindContext* context) {
  Tensor* alpha = context->Input("Alpha");
  Tensor* out = context->Output("Out");
  const int64_t row = alpha->shape().back();
  return DispatchFloat(alpha->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, source = RandomSourceOf(*context)](
                    const RunContext& run) -> absl::Status {
      const Philox numbers = source.Numbers(run);
      const int64_t n = alpha->size();
      for (int64_t start = 0; start < n; start += row) {
        double sum = 0.0;
        for (int64_t i = start; i < start + row; ++i) {
          const double shape = alpha->data<T>()[i];
          if (!(shape > 0.0) || std::isinf(shape))
            return InvalidArgument(
                "element %d of Alpha is %g; expected a positive number", i,
                shape);
          ElementStream stream(numbers, i);
          const double v = Gamma(shape, &stream);
          out->data<T>()[i] = static_cast<T>(v);
          sum += v;
        }
        for (int64_t i = start; i < start + row; ++i)
          out->data<T>()[i] = static_cast<T>(out->data<T>()[i] / sum);
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferDirichlet(InferContext* context) {
  if (context->Input("Alpha").shape.empty())
    return InvalidArgument("Alpha has no axes; expected rank 1 or more");
  context->Share("Alpha", "Out");
  return absl::OkStatus();
}

absl::Status InferMultinomial(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  const int32_t count = context->Attr<int32_t>("num_samples");
  if (x.empty() || x.size() > 2)
    return InvalidArgument("X has shape %s; expected rank 1 or 2", ToString(x));
  if (count < 1)
    return InvalidArgument("attr 'num_samples' is %d; expected 1 or more",
                           count);
  Shape shape(x.begin(), x.end() - 1);
  shape.push_back(count);
  context->SetOutput("Out", std::move(shape), DType::kInt64);
  return absl::OkStatus();
}

// One row's samples from the weights; a chosen one gets weight 0 unless they
// are replaced.
template <typename T>
absl::Status SampleRow(const T* x, int64_t n, int64_t count, bool replacement,
                       ElementStream* numbers, int64_t* out) {
  std::vector<double> weights(x, x + n);
  double sum = 0.0;
  int64_t positive = 0;
  for (double w : weights) {
    if (!(w >= 0.0) || std::isinf(w))
      return InvalidArgument("a weight is %g; expected 0 or more", w);
    sum += w;
    positive += w > 0.0;
  }
  if (positive == 0 || (!replacement && positive < count))
    return InvalidArgument("%d weights are above 0; attr 'num_samples' is %d",
                           positive, count);
  for (int64_t k = 0; k < count; ++k) {
    double left = numbers->Uniform() * sum;
    int64_t chosen = -1;
    for (int64_t i = 0; i < n; ++i) {
      if (weights[static_cast<size_t>(i)] == 0.0) continue;
      chosen = i;  // the last one, should rounding leave some
      left -= weights[static_cast<size_t>(i)];
      if (left < 0.0) break;
    }
    out[k] = chosen;
    if (replacement) continue;
    weights[static_cast<size_t>(chosen)] = 0.0;
    sum = 0.0;
    for (double w : weights) sum += w;
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMultinomial(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t count = context->Attr<int32_t>("num_samples");
  const bool replacement = context->Attr<bool>("replacement");
  const int64_t n = x->shape().back();
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, source = RandomSourceOf(*context)](const RunContext& run) {
      const Philox numbers = source.Numbers(run);
      const int64_t rows = out->size() / count;
      for (int64_t row = 0; row < rows; ++row) {
        ElementStream stream(numbers, row);
        PD_RETURN_IF_ERROR(SampleRow(x->data<T>() + row * n, n, count,
                                     replacement, &stream,
                                     out->data<int64_t>() + row * count));
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferSamplingId(InferContext* context) {
  const Shape& x = context->Input("X").shape;
  if (x.size() != 2)
    return InvalidArgument("X has shape %s; expected rank 2", ToString(x));
  context->SetOutput("Out", {x[0]}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSamplingId(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const double low = context->Attr<float>("min");
  const double high = context->Attr<float>("max");
  if (x->dim(1) < 1)
    return InvalidArgument("X has shape %s; expected columns",
                           ToString(x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return RandomFillStep<int64_t>(
        out, RandomSourceOf(*context), [=](const Philox& p, int64_t i) {
          const T* row = x->data<T>() + i * x->dim(1);
          double left = low + (high - low) * OpenUniform(p, i);
          int64_t chosen = 0;
          for (; chosen + 1 < x->dim(1); ++chosen)
            if ((left -= row[chosen]) <= 0.0) break;
          return chosen;
        });
  });
}

absl::Status InferSeed(InferContext* context) {
  context->SetOutput("Out", {1}, DType::kInt32);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSeed(BindContext* context) {
  Tensor* out = context->Output("Out");
  const int32_t seed = context->Attr<int32_t>("seed");
  return RandomFillStep<int32_t>(
      out, RandomSourceOf(*context), [seed](const Philox& p, int64_t) {
        return seed != 0 ? seed : static_cast<int32_t>(p.U32(0) >> 1);
      });
}

absl::StatusOr<Step> BindSamplingZeroGrad(BindContext* context) {
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("Out@GRAD"));
  return DispatchFloat(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([dx](const RunContext&) {
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      return absl::OkStatus();
    });
  });
}

absl::Status InferSamplingZeroGrad(InferContext* context) {
  if (!context->HasInput("Out@GRAD"))
    return InvalidArgument("'Out@GRAD' is missing");
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

// An op whose gradient is zero.
absl::Status AddFlat(OpRegistry* registry, OpDef op) {
  const std::string type = op.type() + "_grad";
  op.Grad(GradSpec{type, {}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef grad(type);
  grad.Input("Out@GRAD").Output("X@GRAD");
  grad.Infer(InferSamplingZeroGrad).NoGrad().Reference(BindSamplingZeroGrad);
  return registry->Add(std::move(grad));
}

OpDef Sampled(const std::string& type, const char* input, InferFn infer,
              BindFn bind) {
  OpDef op(type);
  op.Input(input).Output("Out").Infer(infer).Reference(bind);
  return op;
}

}  // namespace

absl::Status RegisterSampling(OpRegistry* registry) {
  OpDef bernoulli = Sampled("bernoulli", "X", InferUnary, BindBernoulli);
  bernoulli.NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(bernoulli)));
  OpDef exponential = Sampled("exponential", "X", InferUnary, BindExponential);
  exponential.Attr("lambda", 1.0f);
  PD_RETURN_IF_ERROR(AddFlat(registry, std::move(exponential)));
  PD_RETURN_IF_ERROR(
      AddFlat(registry, Sampled("poisson", "X", InferUnary, BindPoisson)));

  OpDef gamma("standard_gamma");
  gamma.Input("x").Output("out").NoGrad();
  gamma.Infer([](InferContext* c) {
    c->Share("x", "out");
    return absl::OkStatus();
  });
  PD_RETURN_IF_ERROR(
      registry->Add(std::move(gamma.Reference(BindStandardGamma))));
  OpDef binomial("binomial");
  binomial.Input("count").Input("prob").Output("out").NoGrad();
  binomial.Infer(InferBinomial).Reference(BindBinomial);
  PD_RETURN_IF_ERROR(registry->Add(std::move(binomial)));

  OpDef dirichlet =
      Sampled("dirichlet", "Alpha", InferDirichlet, BindDirichlet);
  dirichlet.NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(dirichlet)));

  OpDef multinomial =
      Sampled("multinomial", "X", InferMultinomial, BindMultinomial);
  multinomial.Attr("num_samples", int32_t{1}).Attr("replacement", false);
  multinomial.NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(multinomial)));

  OpDef id = Sampled("sampling_id", "X", InferSamplingId, BindSamplingId);
  id.Attr("min", 0.0f).Attr("max", 1.0f).Attr("seed", int32_t{0}).NoGrad();
  PD_RETURN_IF_ERROR(registry->Add(std::move(id)));

  OpDef seed("seed");
  seed.Output("Out").Attr("seed", int32_t{0}).NoGrad();
  seed.Infer(InferSeed).Reference(BindSeed);
  return registry->Add(std::move(seed));
}

}  // namespace pd
