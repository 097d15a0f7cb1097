// SPDX-License-Identifier: Apache-2.0
// Losses of class numbers: cross_entropy, nll_loss, margin_cross_entropy,
// multi_margin_loss, dice_loss. The ops are those that paddle.nn.functional
// makes in a static program.
#include <cmath>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

template <typename List>
std::string ClassWeights(const List& weights, Shape shape, LossContext* c) {
  return c->Values(shape, DType::kFloat32,
                   std::vector<double>(weights.begin(), weights.end()));
}

// float32, 1 where the class number is not ignore_index.
std::string Counted(const std::string& numbers, int64_t ignore_index,
                    LossContext* c) {
  const std::string ignored =
      c->Op("fill_constant", {}, {"Out"},
            {{"shape", std::vector<int64_t>{1}},
             {"dtype", static_cast<int32_t>(c->Var(numbers).dtype)},
             {"value", static_cast<float>(ignore_index)},
             {"str_value", std::to_string(ignore_index)}});
  return c->Binary("not_equal", numbers, ignored);
}

// The weight of each label, 0 for those to be ignored; of the labels' shape.
template <typename P>
std::string WeightsOf(const P& p, const std::string& numbers, LossContext* c) {
  const std::string counted = Counted(numbers, p.ignore_index(), c);
  const std::string valid =
      c->Mul(c->Cast(counted, c->Var(numbers).dtype), numbers);
  const std::string weights = ClassWeights(p.weight(), {p.weight_size()}, c);
  const std::string gathered =
      c->Op("gather_nd", {{"X", weights}, {"Index", c->Unsqueeze(valid, -1)}},
            {"Out"});
  return c->Mul(gathered, c->Cast(counted, DType::kFloat32));
}

// Class numbers as probabilities, a share of them spread over all classes.
std::string Smoothed(const job::CrossEntropy& p, std::string label, int axis,
                     LossContext* c) {
  const Shape& shape = c->prediction().shape;
  if (!p.soft_label()) {
    if (static_cast<size_t>(axis) != shape.size() - 1) {
      c->Update(
          InvalidArgument("label_smoothing needs the classes on the last axis; "
                          "'axis' is %d",
                          p.axis()));
      return "";
    }
    label = c->Unary("one_hot_v2", c->Squeeze(label, -1),
                     {{"depth", static_cast<int32_t>(shape.back())},
                      {"dtype", static_cast<int32_t>(DType::kFloat32)},
                      {"allow_out_of_range", false}});
  }
  return c->Unary("label_smooth", label,
                  {{"epsilon", static_cast<float>(p.label_smoothing())}});
}

// Weighted losses over the weights, or their sum.
std::string WeightedReduction(job::Reduction::Kind kind,
                              const std::string& loss, std::string weights,
                              bool weigh_loss, LossContext* c) {
  const std::string mask = c->Mask(loss);
  std::string each = c->Weighted(weigh_loss ? c->Mul(loss, weights) : loss);
  if (!mask.empty()) {
    const std::string whole = c->Spread(mask, c->ShapeOf(loss).size());
    each = c->Mul(each, whole);
    weights = c->Mul(weights, whole);
  }
  const std::string sum = c->Reduce("reduce_sum", each);
  if (kind == job::Reduction::sum) return sum;
  return c->Quotient(sum, c->Reduce("reduce_sum", weights));
}

std::string CrossEntropyOp(const job::CrossEntropy& p, const std::string& label,
                           bool soft, LossContext* c) {
  return c->Op("softmax_with_cross_entropy",
               {{"Logits", c->x()}, {"Label", label}}, {"Softmax", "Loss"},
               {{"soft_label", soft},
                {"use_softmax", p.use_softmax()},
                {"numeric_stable_mode", true},
                {"ignore_index", static_cast<int32_t>(p.ignore_index())},
                {"axis", int32_t{p.axis()}}},
               /*result=*/1);
}

absl::StatusOr<std::string> CrossEntropy(LossContext* c) {
  const job::CrossEntropy& p = c->loss().cross_entropy();
  const Shape& shape = c->prediction().shape;
  if (!c->ExpectRank(2, 64, "[N, classes]")) return c->Give("");
  PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(p.axis(), shape.size()));
  if (!c->ExpectWeights(p.weight_size(), axis)) return c->Give("");
  const std::string numbers =
      p.soft_label() ? c->SameLabel() : c->ClassNumbers(axis);
  const bool soft = p.soft_label() || p.label_smoothing() > 0;
  const std::string label =
      p.label_smoothing() > 0 ? Smoothed(p, numbers, axis, c) : numbers;
  const std::string loss = CrossEntropyOp(p, label, soft, c);
  if (p.weight_size() > 0 && soft) {
    if (static_cast<size_t>(axis) != shape.size() - 1)
      return InvalidArgument(
          "'weight' with soft labels needs the classes on the last axis; "
          "'axis' is %d",
          p.axis());
    const std::string weights =
        c->Op("matmul_v2",
              {{"X", label},
               {"Y", ClassWeights(p.weight(), {p.weight_size(), 1}, c)}},
              {"Out"}, {{"trans_x", false}, {"trans_y", false}});
    return c->Give(WeightedReduction(p.reduction(), loss, weights, true, c));
  }
  if (p.weight_size() > 0)
    return c->Give(WeightedReduction(p.reduction(), loss,
                                     WeightsOf(p, numbers, c), true, c));
  if (p.reduction() == job::Reduction::mean && p.ignore_index() >= 0 && !soft)
    return c->Give(WeightedReduction(
        p.reduction(), loss,
        c->Cast(Counted(numbers, p.ignore_index(), c), DType::kFloat32), false,
        c));
  return c->Give(c->Reduced(p.reduction(), loss));
}

absl::StatusOr<std::string> NLL(LossContext* c) {
  const job::NLLLoss& p = c->loss().nll_loss();
  const Shape shape = c->prediction().shape;
  if (!c->ExpectRank(2, 64, "[N, classes] or [N, classes, ...]") ||
      !c->ExpectWeights(p.weight_size(), 1))
    return c->Give("");
  const size_t rank = shape.size();
  const auto classes = static_cast<int32_t>(shape[1]);
  const bool by_place = c->loss().has_mask() || c->loss().has_length() ||
                        c->loss().has_sample_weight();
  std::string label = c->ClassNumbers(1), x = c->x();
  if (rank == 2 || rank == 4) {
    label = c->Squeeze(label, 1);
  } else {
    x = c->Reshape(x, {0, classes, 1, -1});
    label = c->Reshape(label, {0, 1, -1});
  }
  const std::string weights =
      p.weight().empty() ? "" : ClassWeights(p.weight(), {p.weight_size()}, c);
  const char* reduction = p.reduction() == job::Reduction::sum ? "sum" : "mean";
  std::string loss =
      c->Op("nll_loss", {{"X", x}, {"Label", label}, {"Weight", weights}},
            {"Out", "Total_weight"},
            {{"ignore_index", int64_t{p.ignore_index()}},
             {"reduction", std::string(by_place ? "none" : reduction)}});
  if (!by_place) return c->Give(loss);
  if (rank > 4)
    return InvalidArgument(
        "'mask', 'length' and 'sample_weight' take predictions of up to 4 "
        "axes; they are %s",
        ToString(shape));
  if (rank == 3) {
    loss = c->Squeeze(loss, 1);
    label = c->Squeeze(label, 1);
  }
  const std::string counted =
      weights.empty()
          ? c->Cast(Counted(label, p.ignore_index(), c), DType::kFloat32)
          : WeightsOf(p, label, c);
  return c->Give(WeightedReduction(p.reduction(), loss, counted, false, c));
}

absl::StatusOr<std::string> MarginCrossEntropy(LossContext* c) {
  const job::MarginCrossEntropy& p = c->loss().margin_cross_entropy();
  if (!c->ExpectRank(2, 2, "cosines [N, classes]")) return c->Give("");
  const std::string loss = c->Op(
      "margin_cross_entropy",
      {{"Logits", c->x()}, {"Label", c->ClassNumbers(1)}}, {"Softmax", "Loss"},
      {{"return_softmax", false},
       {"margin1", static_cast<float>(p.margin1())},
       {"margin2", static_cast<float>(p.margin2())},
       {"margin3", static_cast<float>(p.margin3())},
       {"scale", static_cast<float>(p.scale())}},
      /*result=*/1);
  return c->Give(c->Reduced(p.reduction(), loss));
}

absl::StatusOr<std::string> MultiMargin(LossContext* c) {
  const job::MultiMarginLoss& p = c->loss().multi_margin_loss();
  if (!c->ExpectRank(2, 2, "scores [N, classes]") ||
      !c->ExpectWeights(p.weight_size(), 1))
    return c->Give("");
  const double classes = static_cast<double>(c->prediction().shape[1]);
  if (classes < 0)
    return InvalidArgument("the number of classes must be known");
  const std::string label = c->ClassNumbers(1);
  const std::string truth =
      c->Op("index_sample", {{"X", c->x()}, {"Index", label}}, {"Out"});
  std::string each = c->Add(c->Scale(truth, -1, p.margin()), c->x());
  std::string weight;
  if (p.weight_size() > 0) {
    const std::string gathered =
        c->Op("gather_nd",
              {{"X", ClassWeights(p.weight(), {p.weight_size()}, c)},
               {"Index", label}},
              {"Out"});
    weight = c->Unsqueeze(gathered, 1);
    each = c->Mul(each, weight);
  }
  each = c->Unary("relu", each);
  if (p.p() != 1)
    each = c->Unary("pow", each, {{"factor", static_cast<float>(p.p())}});
  each = c->Reduce("reduce_mean", each, {1}, /*keepdim=*/!weight.empty());
  // The true class itself is in the mean.
  const double own = std::pow(p.margin(), p.p()) / classes;
  each = weight.empty() ? c->Scale(each, 1, -own)
                        : c->Sub(each, c->Scale(weight, own));
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> Dice(LossContext* c) {
  const Shape shape = c->prediction().shape;
  if (!c->ExpectRank(2, 64, "probabilities [N, ..., classes]"))
    return c->Give("");
  const int last = static_cast<int>(shape.size()) - 1;
  const std::string label =
      c->Unary("one_hot_v2", c->Squeeze(c->ClassNumbers(last), -1),
               {{"depth", static_cast<int32_t>(shape.back())},
                {"dtype", static_cast<int32_t>(DType::kFloat32)},
                {"allow_out_of_range", false}});
  std::vector<int32_t> axes;
  for (int i = 1; i <= last; ++i) axes.push_back(i);
  const auto sum = [&](const std::string& x) {
    return c->Reduce("reduce_sum", x, axes);
  };
  const std::string common = sum(c->Mul(c->x(), label));
  const std::string all = c->Add(sum(c->x()), sum(label));
  const std::string score = c->Div(
      c->Scale(common, 2), c->Scale(all, 1, c->loss().dice_loss().epsilon()));
  return c->Give(c->Reduced(job::Reduction::mean, c->Scale(score, -1, 1)));
}

}  // namespace

void AddClassLosses(LossTable* table) {
  (*table)[job::Loss::kCrossEntropy] = CrossEntropy;
  (*table)[job::Loss::kNllLoss] = NLL;
  (*table)[job::Loss::kMarginCrossEntropy] = MarginCrossEntropy;
  (*table)[job::Loss::kMultiMarginLoss] = MultiMargin;
  (*table)[job::Loss::kDiceLoss] = Dice;
}

}  // namespace pd
