// SPDX-License-Identifier: Apache-2.0
// Losses of label sequences without alignment: ctc_loss, rnnt_loss.
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

// Lengths [N], where [N, 1] is given too.
std::string Lengths(const std::string& name, int64_t records, DType dtype,
                    LossContext* c) {
  std::string lengths = c->Field(name, {records}, DType::kInt64);
  if (c->ok() && c->ShapeOf(lengths).size() == 2)
    lengths = c->Squeeze(lengths, 1);
  return c->Cast(lengths, dtype);
}

absl::StatusOr<std::string> CTC(LossContext* c) {
  const job::CTCLoss& p = c->loss().ctc_loss();
  if (!c->ExpectRank(3, 3, "logits [T, N, classes + 1]")) return c->Give("");
  const int64_t records = c->prediction().shape[1];
  // Data sets give int64, the op takes int32.
  const std::string label =
      c->Cast(c->Label({records, -1}, DType::kInt64), DType::kInt32);
  const std::string steps =
      Lengths(p.input_length(), records, DType::kInt64, c);
  const std::string labels =
      Lengths(p.label_length(), records, DType::kInt64, c);
  const std::string loss = c->Op(
      "warpctc",
      {{"Logits", c->x()},
       {"Label", label},
       {"LogitsLength", steps},
       {"LabelLength", labels}},
      {"WarpCTCGrad", "Loss"},
      {{"blank", int32_t{p.blank()}}, {"norm_by_times", p.norm_by_times()}},
      /*result=*/1);
  const std::string each = c->Squeeze(loss, -1);
  if (p.reduction() == job::Reduction::sum)
    return c->Give(c->Reduced(p.reduction(), each));
  return c->Give(c->Reduced(p.reduction(),
                            c->Div(each, c->Cast(labels, DType::kFloat32))));
}

absl::StatusOr<std::string> RNNT(LossContext* c) {
  const job::RNNTLoss& p = c->loss().rnnt_loss();
  if (!c->ExpectRank(4, 4, "logits [N, T, U + 1, classes]")) return c->Give("");
  const Shape shape = c->prediction().shape;
  const int64_t labels = shape[2] > 0 ? shape[2] - 1 : -1;
  const std::string label =
      c->Cast(c->Label({shape[0], labels}, DType::kInt64), DType::kInt32);
  const std::string each = c->Op(
      "warprnnt",
      {{"input", c->x()},
       {"label", label},
       {"input_lengths", Lengths(p.input_length(), shape[0], DType::kInt32, c)},
       {"label_lengths",
        Lengths(p.label_length(), shape[0], DType::kInt32, c)}},
      {"warprnntgrad", "loss"},
      {{"blank", int32_t{p.blank()}},
       {"fastemit_lambda", static_cast<float>(p.fastemit_lambda())}},
      /*result=*/1);
  return c->Give(c->Reduced(p.reduction(), each));
}

}  // namespace

void AddSequenceLosses(LossTable* table) {
  (*table)[job::Loss::kCtcLoss] = CTC;
  (*table)[job::Loss::kRnntLoss] = RNNT;
}

}  // namespace pd
