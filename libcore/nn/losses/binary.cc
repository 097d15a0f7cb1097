// SPDX-License-Identifier: Apache-2.0
// Losses of yes and no: bce_loss, bce_with_logits_loss, sigmoid_focal_loss,
// soft_margin_loss, multi_label_soft_margin_loss,
// teacher_student_sigmoid_loss.
#include <vector>

#include "libcore/base/error.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

// `numbers` along the last axis, or one for all; "" where there are none.
template <typename List>
std::string Factors(const List& numbers, const char* field, LossContext* c) {
  if (numbers.empty()) return "";
  const Shape& shape = c->prediction().shape;
  const int64_t last = shape.empty() ? 1 : shape.back();
  if (numbers.size() != 1 && last >= 0 && numbers.size() != last)
    c->Update(InvalidArgument(
        "'%s' holds %d numbers; the predictions are %s, so it takes 1 or %d",
        field, numbers.size(), ToString(shape), last));
  return c->Values({numbers.size()}, DType::kFloat32,
                   std::vector<double>(numbers.begin(), numbers.end()));
}

std::string Weighted(const std::string& each, const std::string& weights,
                     LossContext* c) {
  return weights.empty() ? each : c->Mul(each, weights);
}

absl::StatusOr<std::string> BCE(LossContext* c) {
  const job::BCELoss& p = c->loss().bce_loss();
  const std::string each =
      c->Op("bce_loss", {{"X", c->x()}, {"Label", c->SameLabel()}}, {"Out"});
  return c->Give(c->Reduced(
      p.reduction(), Weighted(each, Factors(p.weight(), "weight", c), c)));
}

std::string LogitsOp(const std::string& label, const std::string& pos_weight,
                     LossContext* c) {
  return c->Op("sigmoid_cross_entropy_with_logits",
               {{"X", c->x()}, {"Label", label}, {"pos_weight", pos_weight}},
               {"Out"},
               {{"ignore_index", int32_t{-100}}, {"normalize", false}});
}

absl::StatusOr<std::string> BCEWithLogits(LossContext* c) {
  const job::BCEWithLogitsLoss& p = c->loss().bce_with_logits_loss();
  const std::string label = c->SameLabel();
  std::string positive = Factors(p.pos_weight(), "pos_weight", c);
  if (!positive.empty())
    positive = c->Scale(c->Mul(label, c->Scale(positive, 1, -1)), 1, 1);
  const std::string each = LogitsOp(label, positive, c);
  return c->Give(c->Reduced(
      p.reduction(), Weighted(each, Factors(p.weight(), "weight", c), c)));
}

absl::StatusOr<std::string> SigmoidFocal(LossContext* c) {
  const job::SigmoidFocalLoss& p = c->loss().sigmoid_focal_loss();
  const std::string label = c->SameLabel();
  const std::string cross = LogitsOp(label, "", c);
  const std::string guess = c->Unary("sigmoid", c->x());
  const auto rest = [&](const std::string& x) { return c->Scale(x, -1, 1); };
  const std::string right =
      c->Add(c->Mul(guess, label), c->Mul(rest(guess), rest(label)));
  const std::string alpha =
      c->Add(c->Scale(label, p.alpha()), c->Scale(rest(label), 1 - p.alpha()));
  std::string each = c->Mul(alpha, cross);
  each = c->Mul(
      c->Unary("pow", rest(right), {{"factor", static_cast<float>(p.gamma())}}),
      each);
  if (p.has_normalizer()) each = c->Div(each, c->Field(p.normalizer(), {1}));
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> SoftMargin(LossContext* c) {
  const std::string product = c->Mul(c->SameLabel(), c->x());
  const std::string each =
      c->Unary("log", c->Scale(c->Unary("exp", c->Scale(product, -1)), 1, 1));
  return c->Give(c->Reduced(c->loss().soft_margin_loss().reduction(), each));
}

absl::StatusOr<std::string> MultiLabelSoftMargin(LossContext* c) {
  const job::MultiLabelSoftMarginLoss& p =
      c->loss().multi_label_soft_margin_loss();
  const std::string label = c->SameLabel();
  const std::string yes = c->Mul(label, c->Unary("logsigmoid", c->x()));
  const std::string no = c->Mul(c->Scale(label, -1, 1),
                                c->Unary("logsigmoid", c->Scale(c->x(), -1)));
  const std::string each = Weighted(c->Scale(c->Add(yes, no), -1),
                                    Factors(p.weight(), "weight", c), c);
  const auto last = static_cast<int32_t>(c->prediction().shape.size()) - 1;
  return c->Give(
      c->Reduced(p.reduction(), c->Reduce("reduce_mean", each, {last})));
}

absl::StatusOr<std::string> TeacherStudent(LossContext* c) {
  const job::TeacherStudentSigmoidLoss& p =
      c->loss().teacher_student_sigmoid_loss();
  return c->Give(c->Reduced(
      p.reduction(),
      c->Op("teacher_student_sigmoid_loss",
            {{"X", c->x()}, {"Label", c->SameLabel()}}, {"Y"},
            {{"soft_max_up_bound", static_cast<float>(p.soft_max_up_bound())},
             {"soft_max_lower_bound",
              static_cast<float>(p.soft_max_lower_bound())}})));
}

}  // namespace

void AddBinaryLosses(LossTable* table) {
  (*table)[job::Loss::kBceLoss] = BCE;
  (*table)[job::Loss::kBceWithLogitsLoss] = BCEWithLogits;
  (*table)[job::Loss::kSigmoidFocalLoss] = SigmoidFocal;
  (*table)[job::Loss::kSoftMarginLoss] = SoftMargin;
  (*table)[job::Loss::kMultiLabelSoftMarginLoss] = MultiLabelSoftMargin;
  (*table)[job::Loss::kTeacherStudentSigmoidLoss] = TeacherStudent;
}

}  // namespace pd
