// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/quasi_newton.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/optim/grad_ops.h"
#include "libcore/optim/line_search.h"

namespace pd {
namespace {

using Vector = std::vector<float>;

// Elements of the two histories together: 64 GiB.
constexpr int64_t kMostHistory = int64_t{1} << 34;

double Dot(const float* a, const float* b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

double Largest(const float* a, size_t n) {
  float largest = 0;
  for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(a[i]));
  return largest;
}

// to += factor * a
void AddScaled(double factor, const float* a, size_t n, float* to) {
  const auto f = static_cast<float>(factor);
  for (size_t i = 0; i < n; ++i) to[i] += f * a[i];
}

LineFunction LineFrom(const Objective& objective, const Vector& x,
                      const float* direction) {
  return
      [&objective, &x, direction](double length) -> absl::StatusOr<LinePoint> {
        LinePoint point;
        point.length = length;
        Vector there = x;
        AddScaled(length, direction, there.size(), there.data());
        PD_ASSIGN_OR_RETURN(point.loss, objective(there, &point.gradient));
        point.slope = Dot(point.gradient.data(), direction, there.size());
        return point;
      };
}

// One step of LBFGS.
class LbfgsRun {
 public:
  LbfgsRun(const QuasiNewtonSpec& spec, double rate, const Objective& objective,
           const LbfgsState& state, Vector* x)
      : spec_(spec),
        rate_(rate),
        objective_(objective),
        state_(state),
        x_(x),
        n_(x->size()) {}

  absl::StatusOr<double> Run() {
    PD_ASSIGN_OR_RETURN(const double first, objective_(*x_, &gradient_));
    loss_ = first;
    evaluations_ = 1;
    const bool optimal = Largest(gradient_.data(), n_) <= spec_.tolerance_grad;
    if (std::isfinite(first) && !optimal) {
      for (int64_t i = 1; i <= spec_.max_iter; ++i) {
        PD_ASSIGN_OR_RETURN(const bool goes_on, Iterate(i));
        if (!goes_on) break;
      }
    }
    Evaluations() += static_cast<double>(evaluations_);
    return first;
  }

 private:
  double& Iterations() const { return state_.numbers[0]; }
  double& Evaluations() const { return state_.numbers[1]; }
  double& Pairs() const { return state_.numbers[2]; }
  double& Length() const { return state_.numbers[3]; }
  double& Scale() const { return state_.numbers[4]; }
  double* Inverses() const { return state_.numbers + kLbfgsNumbers; }
  float* S(size_t i) const { return state_.s + i * n_; }
  float* Y(size_t i) const { return state_.y + i * n_; }

  void Forget() const {
    const auto kept = static_cast<size_t>(spec_.history_size - 1);
    std::copy_n(S(1), kept * n_, S(0));
    std::copy_n(Y(1), kept * n_, Y(0));
    std::copy_n(Inverses() + 1, kept, Inverses());
    Pairs() -= 1;
  }

  // Adds the last iteration to the history.
  void Remember() const {
    Vector s(n_), y(n_);
    const auto length = static_cast<float>(Length());
    for (size_t i = 0; i < n_; ++i) {
      s[i] = state_.direction[i] * length;
      y[i] = gradient_[i] - state_.gradient[i];
    }
    const double ys = Dot(y.data(), s.data(), n_);
    if (!(ys > 1e-10)) return;
    if (Pairs() == static_cast<double>(spec_.history_size)) Forget();
    const auto at = static_cast<size_t>(Pairs());
    std::copy(s.begin(), s.end(), S(at));
    std::copy(y.begin(), y.end(), Y(at));
    Inverses()[at] = 1 / ys;
    Pairs() += 1;
    Scale() = ys / Dot(y.data(), y.data(), n_);
  }

  // The estimate of the inverse Hessian times the gradient, downwards.
  void Direct() const {
    const auto pairs = static_cast<size_t>(Pairs());
    std::vector<double> factors(pairs);
    float* d = state_.direction;
    for (size_t i = 0; i < n_; ++i) d[i] = -gradient_[i];
    for (size_t i = pairs; i-- > 0;) {
      factors[i] = Dot(S(i), d, n_) * Inverses()[i];
      AddScaled(-factors[i], Y(i), n_, d);
    }
    const auto scale = static_cast<float>(Scale());
    for (size_t i = 0; i < n_; ++i) d[i] *= scale;
    for (size_t i = 0; i < pairs; ++i)
      AddScaled(factors[i] - Dot(Y(i), d, n_) * Inverses()[i], S(i), n_, d);
  }

  // Whether a further iteration follows.
  absl::StatusOr<bool> Iterate(int64_t iteration) {
    Iterations() += 1;
    const bool very_first = Iterations() == 1;
    if (very_first)
      Scale() = 1;
    else
      Remember();
    Direct();
    std::copy(gradient_.begin(), gradient_.end(), state_.gradient);
    const double loss_before = loss_;
    Length() = rate_;
    if (very_first) {
      double sum = 0;
      for (const float g : gradient_) sum += std::abs(double{g});
      Length() = std::min(1.0, 1 / sum) * rate_;
    }
    const double slope = Dot(gradient_.data(), state_.direction, n_);
    if (slope > -spec_.tolerance_change) return false;
    bool optimal = false;
    if (spec_.strong_wolfe) {
      PD_RETURN_IF_ERROR(Search(slope));
      AddScaled(Length(), state_.direction, n_, x_->data());
      optimal = IsOptimal();
    } else {
      AddScaled(Length(), state_.direction, n_, x_->data());
      if (iteration < spec_.max_iter) {
        PD_ASSIGN_OR_RETURN(loss_, objective_(*x_, &gradient_));
        ++evaluations_;
        optimal = IsOptimal();
      }
    }
    // In this order a loss that is not finite ends the step, too.
    return !optimal &&
           Largest(state_.direction, n_) * std::abs(Length()) >
               spec_.tolerance_change &&
           std::abs(loss_ - loss_before) >= spec_.tolerance_change &&
           std::isfinite(loss_) && evaluations_ < spec_.max_eval;
  }

  absl::Status Search(double slope) {
    LinePoint start;
    start.loss = loss_;
    start.slope = slope;
    start.gradient = gradient_;
    PD_ASSIGN_OR_RETURN(
        LineResult found,
        SearchByCubic(LineFrom(objective_, *x_, state_.direction), start,
                      Length(), Largest(state_.direction, n_), 1e-9));
    evaluations_ += found.evaluations;
    loss_ = found.point.loss;
    gradient_ = std::move(found.point.gradient);
    Length() = found.point.length;
    return absl::OkStatus();
  }

  bool IsOptimal() const {
    return Largest(gradient_.data(), n_) <= spec_.tolerance_grad;
  }

  const QuasiNewtonSpec& spec_;
  const double rate_;
  const Objective& objective_;
  const LbfgsState state_;
  Vector* const x_;
  const size_t n_;
  Vector gradient_;
  double loss_ = 0;
  int64_t evaluations_ = 0;
};

// H for the next iteration: (I - rho y s') H (I - rho s y') + rho s s', where H
// stays symmetric. Nocedal and Wright (6.17) have s y' in place of y s'; in
// this form minimize_bfgs computes it, and its steps are the ones to repeat.
void UpdateInverse(const Vector& s, const Vector& y, std::vector<double>* h) {
  const size_t n = s.size();
  const double sy = Dot(s.data(), y.data(), n);
  const double rho = sy == 0 ? 1000 : 1 / sy;
  std::vector<double> hs(n, 0);
  double shs = 0;
  for (size_t i = 0; i < n; ++i) {
    const double* row = h->data() + i * n;
    for (size_t j = 0; j < n; ++j) hs[i] += row[j] * double{s[j]};
    shs += hs[i] * double{s[i]};
  }
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j)
      (*h)[i * n + j] += rho * rho * shs * double{y[i]} * double{y[j]} +
                         rho * double{s[i]} * double{s[j]} -
                         rho * (double{y[i]} * hs[j] + hs[i] * double{y[j]});
}

}  // namespace

absl::StatusOr<LbfgsNames> AddLbfgsState(const QuasiNewtonSpec& spec, int64_t n,
                                         BlockBuilder* main,
                                         BlockBuilder* startup) {
  if (n > kMostHistory / spec.history_size)
    return InvalidArgument(
        "lbfgs keeps %d changes of %d parameters; expected at most %d numbers",
        spec.history_size, n, kMostHistory);
  LbfgsNames names;
  const auto add = [&](const char* stem, DType dtype, const Shape& shape) {
    names.push_back(UniqueName(stem, *main));
    return AddFilled(names.back(), dtype, shape, 0, true, main, startup);
  };
  const Shape history = {spec.history_size, n};
  PD_RETURN_IF_ERROR(add("lbfgs_old_sk", DType::kFloat32, history));
  PD_RETURN_IF_ERROR(add("lbfgs_old_yk", DType::kFloat32, history));
  PD_RETURN_IF_ERROR(add("lbfgs_d", DType::kFloat32, {n}));
  PD_RETURN_IF_ERROR(add("lbfgs_prev_flat_grad", DType::kFloat32, {n}));
  PD_RETURN_IF_ERROR(add("lbfgs_numbers", DType::kFloat64,
                         {kLbfgsNumbers + spec.history_size}));
  return names;
}

absl::StatusOr<double> LbfgsStep(const QuasiNewtonSpec& spec,
                                 double learning_rate,
                                 const Objective& objective,
                                 const LbfgsState& state, Vector* x) {
  return LbfgsRun(spec, learning_rate, objective, state, x).Run();
}

absl::StatusOr<double> BfgsStep(const QuasiNewtonSpec& spec,
                                const Objective& objective, Vector* x) {
  const size_t n = x->size();
  PD_INVARIANT(n <= static_cast<size_t>(kMostBfgsParameters));
  LinePoint now;
  PD_ASSIGN_OR_RETURN(now.loss, objective(*x, &now.gradient));
  const double first = now.loss;
  if (!std::isfinite(first)) return first;
  std::vector<double> h(n * n, 0);
  for (size_t i = 0; i < n; ++i) h[i * n + i] = 1;
  Vector direction(n), s(n), y(n);
  for (int64_t k = 0; k < spec.max_iter; ++k) {
    for (size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) sum += h[i * n + j] * now.gradient[j];
      direction[i] = static_cast<float>(-sum);
    }
    now.length = 0;
    now.slope = Dot(now.gradient.data(), direction.data(), n);
    PD_ASSIGN_OR_RETURN(
        LineResult found,
        SearchByDoubling(LineFrom(objective, *x, direction.data()), now,
                         spec.initial_step_length, spec.max_line_search_iters));
    const double length = found.point.length;
    for (size_t i = 0; i < n; ++i) {
      s[i] = static_cast<float>(length) * direction[i];
      y[i] = found.point.gradient[i] - now.gradient[i];
      (*x)[i] += s[i];
    }
    now = std::move(found.point);
    if (length == 0 || Largest(now.gradient.data(), n) < spec.tolerance_grad ||
        Largest(direction.data(), n) < spec.tolerance_change)
      break;
    UpdateInverse(s, y, &h);
  }
  return first;
}

}  // namespace pd
