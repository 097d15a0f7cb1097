// SPDX-License-Identifier: Apache-2.0
// Losses of numbers against numbers: mse_loss, square_error_cost, l1_loss,
// smooth_l1_loss, kl_div_loss, log_loss, poisson_nll_loss, gaussian_nll_loss;
// and value, numbers that are losses already.
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

std::string Square(const std::string& x, LossContext* c) {
  return c->Unary("square", x);
}

absl::StatusOr<std::string> MSE(LossContext* c) {
  const job::Reduction::Kind reduction =
      c->loss().has_mse_loss() ? c->loss().mse_loss().reduction()
                               : c->loss().square_error_cost().reduction();
  return c->Give(
      c->Reduced(reduction, Square(c->Sub(c->x(), c->SameLabel()), c)));
}

absl::StatusOr<std::string> L1(LossContext* c) {
  return c->Give(c->Reduced(c->loss().l1_loss().reduction(),
                            c->Unary("abs", c->Sub(c->x(), c->SameLabel()))));
}

absl::StatusOr<std::string> SmoothL1(LossContext* c) {
  const job::SmoothL1Loss& p = c->loss().smooth_l1_loss();
  return c->Give(c->Reduced(
      p.reduction(),
      c->Op("huber_loss", {{"X", c->x()}, {"Y", c->SameLabel()}},
            {"Out", "Residual"}, {{"delta", static_cast<float>(p.delta())}})));
}

absl::StatusOr<std::string> KLDiv(LossContext* c) {
  const auto reduction = c->loss().kl_div_loss().reduction();
  const std::string each =
      c->Op("kldiv_loss", {{"X", c->x()}, {"Target", c->SameLabel()}}, {"Loss"},
            {{"reduction", std::string("none")}});
  if (reduction == job::KLDivLoss::mean)
    return c->Give(c->Reduced(job::Reduction::mean, each));
  const std::string sum = c->Reduced(job::Reduction::sum, each);
  if (reduction == job::KLDivLoss::sum) return c->Give(sum);
  return c->Give(c->Div(sum, c->Cast(c->Extent(c->x(), 0), DType::kFloat32)));
}

absl::StatusOr<std::string> LogLoss(LossContext* c) {
  const job::LogLoss& p = c->loss().log_loss();
  return c->Give(c->Reduced(
      p.reduction(),
      c->Op("log_loss", {{"Predicted", c->x()}, {"Labels", c->SameLabel()}},
            {"Loss"}, {{"epsilon", static_cast<float>(p.epsilon())}})));
}

// label * log(label) - label + log(2 pi label) / 2 where label > 1, else 0.
std::string Stirling(const std::string& label, LossContext* c) {
  const std::string one = c->Full({1}, DType::kFloat32, 1);
  const std::string above =
      c->Cast(c->Binary("greater_than", label, one), DType::kFloat32);
  // Below 1 the logarithm is not wanted; 1 keeps it finite there.
  const std::string safe = c->Binary("elementwise_max", label, one);
  const std::string first = c->Sub(c->Mul(safe, c->Unary("log", safe)), safe);
  const std::string second =
      c->Scale(c->Unary("log", c->Scale(safe, 2 * M_PI)), 0.5);
  return c->Mul(c->Add(first, second), above);
}

absl::StatusOr<std::string> PoissonNLL(LossContext* c) {
  const job::PoissonNLLLoss& p = c->loss().poisson_nll_loss();
  const std::string label = c->SameLabel();
  std::string each;
  if (p.log_input()) {
    each = c->Sub(c->Unary("exp", c->x()), c->Mul(label, c->x()));
  } else {
    const std::string log = c->Unary("log", c->Scale(c->x(), 1, p.epsilon()));
    each = c->Sub(c->x(), c->Mul(label, log));
  }
  if (p.full()) each = c->Add(each, Stirling(label, c));
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> GaussianNLL(LossContext* c) {
  const job::GaussianNLLLoss& p = c->loss().gaussian_nll_loss();
  const std::string label = c->SameLabel();
  const std::string given = c->SameField(p.variance());
  // The gradient is 0 where the variance was below epsilon.
  const std::string variance = c->Unary(
      "clip", given,
      {{"min", static_cast<float>(p.epsilon())}, {"max", 3.4028235e38f}});
  const std::string each =
      c->Scale(c->Add(c->Unary("log", variance),
                      c->Div(Square(c->Sub(c->x(), label), c), variance)),
               0.5, p.full() ? 0.5 * std::log(2 * M_PI) : 0);
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> Value(LossContext* c) {
  if (!IsFloating(c->prediction().dtype))
    return InvalidArgument("a loss is a floating-point number; '%s' is %s",
                           c->loss().has_input() ? c->loss().input() : c->x(),
                           Name(c->prediction().dtype));
  return c->Give(c->Reduced(c->loss().value().reduction(), c->x()));
}

}  // namespace

void AddDifferenceLosses(LossTable* table) {
  (*table)[job::Loss::kMseLoss] = MSE;
  (*table)[job::Loss::kSquareErrorCost] = MSE;
  (*table)[job::Loss::kL1Loss] = L1;
  (*table)[job::Loss::kSmoothL1Loss] = SmoothL1;
  (*table)[job::Loss::kKlDivLoss] = KLDiv;
  (*table)[job::Loss::kLogLoss] = LogLoss;
  (*table)[job::Loss::kPoissonNllLoss] = PoissonNLL;
  (*table)[job::Loss::kGaussianNllLoss] = GaussianNLL;
  (*table)[job::Loss::kValue] = Value;
}

}  // namespace pd
