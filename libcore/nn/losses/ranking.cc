// SPDX-License-Identifier: Apache-2.0
// Losses of order and distance: margin_ranking_loss, rank_loss, bpr_loss,
// hinge_embedding_loss, cosine_embedding_loss, triplet_margin_loss, npair_loss.
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

// float32, 1 where the label is `value`.
std::string Where(const std::string& label, double value, LossContext* c) {
  const std::string wanted = c->Full({1}, c->Var(label).dtype, value);
  return c->Cast(c->Binary("equal", label, wanted), DType::kFloat32);
}

absl::StatusOr<std::string> MarginRanking(LossContext* c) {
  const job::MarginRankingLoss& p = c->loss().margin_ranking_loss();
  const std::string difference = c->Sub(c->x(), c->SameField(p.other()));
  std::string each = c->Mul(c->Scale(c->SameLabel(), -1), difference);
  if (p.margin() != 0) each = c->Scale(each, 1, p.margin());
  return c->Give(c->Reduced(p.reduction(), c->Unary("relu", each)));
}

absl::StatusOr<std::string> Rank(LossContext* c) {
  const job::RankLoss& p = c->loss().rank_loss();
  if (!c->ExpectRank(2, 2, "scores [N, 1]")) return c->Give("");
  const std::string label = c->SameLabel();
  const std::string other = c->SameField(p.other());
  return c->Give(c->Reduced(
      p.reduction(),
      c->Op("rank_loss", {{"Label", label}, {"Left", c->x()}, {"Right", other}},
            {"Out"})));
}

absl::StatusOr<std::string> Bpr(LossContext* c) {
  if (!c->ExpectRank(2, 2, "scores [N, classes]")) return c->Give("");
  return c->Give(
      c->Reduced(c->loss().bpr_loss().reduction(),
                 c->Op("bpr_loss",
                       {{"X", c->x()}, {"Label", c->ClassNumbers(1)}}, {"Y"})));
}

absl::StatusOr<std::string> HingeEmbedding(LossContext* c) {
  const job::HingeEmbeddingLoss& p = c->loss().hinge_embedding_loss();
  const std::string label = c->SameLabel();
  const std::string beyond = c->Unary("relu", c->Scale(c->x(), -1, p.margin()));
  const std::string each = c->Add(c->Mul(c->x(), Where(label, 1, c)),
                                  c->Mul(beyond, Where(label, -1, c)));
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> CosineEmbedding(LossContext* c) {
  const job::CosineEmbeddingLoss& p = c->loss().cosine_embedding_loss();
  if (!c->ExpectRank(1, 2, "vectors [N, D]")) return c->Give("");
  const std::string other = c->SameField(p.other());
  Shape records = c->prediction().shape;
  const auto last = static_cast<int32_t>(records.size()) - 1;
  records.pop_back();
  if (records.empty()) records = {1};
  const std::string label = c->Label(records);
  if (c->ok() && !SameExtents(c->ShapeOf(label), records))
    c->ShapesDiffer(label, ToString(records));
  const auto sum = [&](const std::string& x) {
    return c->Reduce("reduce_sum", x, {last});
  };
  const auto length = [&](const std::string& x) {
    return c->Scale(sum(c->Unary("square", x)), 1, 1e-11);
  };
  const std::string cosine =
      c->Div(sum(c->Mul(c->x(), other)),
             c->Unary("sqrt", c->Mul(length(c->x()), length(other))));
  const std::string apart = c->Unary("relu", c->Scale(cosine, 1, -p.margin()));
  const std::string each =
      c->Add(c->Mul(c->Scale(cosine, -1, 1), Where(label, 1, c)),
             c->Mul(apart, Where(label, -1, c)));
  return c->Give(c->Reduced(p.reduction(), each));
}

absl::StatusOr<std::string> TripletMargin(LossContext* c) {
  const job::TripletMarginLoss& p = c->loss().triplet_margin_loss();
  if (!c->ExpectRank(1, 64, "vectors")) return c->Give("");
  const std::string positive = c->SameField(p.positive());
  const std::string negative = c->SameField(p.negative());
  const auto distance = [&](const std::string& x, const std::string& y) {
    std::string difference = c->Sub(x, y);
    if (p.epsilon() != 0) difference = c->Scale(difference, 1, p.epsilon());
    return c->Unary("p_norm", difference,
                    {{"axis", int32_t{-1}},
                     {"porder", static_cast<float>(p.p())},
                     {"keepdim", false},
                     {"epsilon", 1e-12f},
                     {"asvector", false}});
  };
  const std::string near = distance(c->x(), positive);
  std::string far = distance(c->x(), negative);
  if (p.swap())
    far = c->Binary("elementwise_min", far, distance(positive, negative));
  return c->Give(
      c->Reduced(p.reduction(),
                 c->Unary("relu", c->Scale(c->Sub(near, far), 1, p.margin()))));
}

absl::StatusOr<std::string> Npair(LossContext* c) {
  const job::NpairLoss& p = c->loss().npair_loss();
  if (!c->ExpectRank(2, 2, "vectors [N, D]")) return c->Give("");
  const std::string positive = c->SameField(p.positive());
  const int64_t records = c->prediction().shape[0];
  std::string label = c->Label({records}, DType::kInt64);
  if (c->ok() && c->ShapeOf(label).size() == 1) label = c->Unsqueeze(label, 1);
  if (c->ok() && !SameExtents(c->ShapeOf(label), {records, 1}))
    c->ShapesDiffer(label, ToString({records}));
  // 1 where two records have one label, shared among the row's.
  const std::string same =
      c->Cast(c->Binary("equal", label,
                        c->Op("transpose2", {{"X", label}}, {"Out", "XShape"},
                              {{"axis", std::vector<int32_t>{1, 0}}})),
              DType::kFloat32);
  const std::string target =
      c->Div(same, c->Reduce("reduce_sum", same, {1}, true));
  const auto size = [&](const std::string& x) {
    return c->Reduce("reduce_mean",
                     c->Reduce("reduce_sum", c->Unary("square", x), {1}));
  };
  const std::string cost =
      c->Scale(c->Add(size(c->x()), size(positive)), 0.25 * p.l2_reg());
  const std::string similar =
      c->Op("matmul_v2", {{"X", c->x()}, {"Y", positive}}, {"Out"},
            {{"trans_x", false}, {"trans_y", true}});
  const std::string cross = c->SoftmaxCrossEntropy(similar, target, true);
  const std::string mean = c->Reduce(
      "reduce_mean", c->Reduce("reduce_sum", c->Mul(target, cross), {0}));
  return c->Give(c->Add(cost, mean));
}

}  // namespace

void AddRankingLosses(LossTable* table) {
  (*table)[job::Loss::kMarginRankingLoss] = MarginRanking;
  (*table)[job::Loss::kRankLoss] = Rank;
  (*table)[job::Loss::kBprLoss] = Bpr;
  (*table)[job::Loss::kHingeEmbeddingLoss] = HingeEmbedding;
  (*table)[job::Loss::kCosineEmbeddingLoss] = CosineEmbedding;
  (*table)[job::Loss::kTripletMarginLoss] = TripletMargin;
  (*table)[job::Loss::kNpairLoss] = Npair;
}

}  // namespace pd
