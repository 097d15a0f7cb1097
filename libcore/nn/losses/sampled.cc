// SPDX-License-Identifier: Apache-2.0
// Losses with parameters, for many classes: hsigmoid_loss and nce.
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/losses/loss_context.h"

namespace pd {
namespace {

absl::StatusOr<std::string> HSigmoid(LossContext* c) {
  const job::HSigmoidLoss& p = c->loss().hsigmoid_loss();
  if (!c->ExpectRank(2, 2, "features [N, D]")) return c->Give("");
  if (p.has_path_table() != p.has_path_code())
    return InvalidArgument("'path_table' and 'path_code' go together");
  const Shape shape = c->prediction().shape;
  if (shape[1] < 0)
    return InvalidArgument(
        "the predictions are %s; the number of features "
        "must be known",
        ToString(shape));
  const int64_t rows = p.num_classes() - (p.has_path_table() ? 0 : 1);
  PD_ASSIGN_OR_RETURN(const std::string weight,
                      c->parameters().Weight(p.weight_attr(), {rows, shape[1]},
                                             XavierUniformInitializer()));
  std::string bias, table, code;
  if (p.bias()) {
    PD_ASSIGN_OR_RETURN(bias, c->parameters().Bias(p.bias_attr(), {rows, 1}));
  }
  if (p.has_path_table()) {
    table = c->Field(p.path_table(), {shape[0], -1}, DType::kInt64);
    code = c->Field(p.path_code(), {shape[0], -1}, DType::kInt64);
  }
  // The op gives W_Out as the weight itself, for what nothing needs.
  const std::string each =
      c->Op("hierarchical_sigmoid",
            {{"X", c->x()},
             {"W", weight},
             {"Bias", bias},
             {"PathTable", table},
             {"PathCode", code},
             {"Label", c->Label({shape[0], 1}, DType::kInt64)}},
            {"Out", "PreOut"},
            {{"num_classes", static_cast<int32_t>(p.num_classes())},
             {"is_sparse", false}});
  return c->Give(c->Reduced(p.reduction(), each));
}

// Walker's alias method: column i is i itself with probability probs[i], else
// alias[i].
struct AliasTable {
  explicit AliasTable(const std::vector<double>& distribution) {
    const size_t n = distribution.size();
    probs.assign(n, 1);
    alias.assign(n, -1);
    std::vector<double> left(n);
    std::vector<size_t> small, large;
    for (size_t i = 0; i < n; ++i) {
      left[i] = distribution[i] * static_cast<double>(n);
      (left[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
      const size_t poor = small.back(), rich = large.back();
      small.pop_back();
      probs[poor] = left[poor];
      alias[poor] = static_cast<double>(rich);
      left[rich] -= 1 - left[poor];
      if (left[rich] >= 1) continue;
      large.pop_back();
      small.push_back(rich);
    }
  }
  std::vector<double> probs, alias;
};

absl::Status CheckDistribution(const job::NCE& p) {
  const bool custom = p.sampler() == job::ClassSampler::custom_dist;
  const int64_t wanted = custom ? p.num_total_classes() : 0;
  if (p.custom_dist_size() != wanted)
    return InvalidArgument(
        "'custom_dist' holds %d numbers; sampler %s takes "
        "%d",
        p.custom_dist_size(), job::ClassSampler::Kind_Name(p.sampler()),
        wanted);
  double sum = 0;
  for (const double part : p.custom_dist()) sum += part;
  if (custom && !(sum > 0.999 && sum < 1.001))
    return InvalidArgument(
        "the numbers of 'custom_dist' add up to %g; "
        "probabilities add up to 1",
        sum);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Nce(LossContext* c) {
  const job::NCE& p = c->loss().nce();
  if (!c->ExpectRank(2, 2, "features [N, D]")) return c->Give("");
  PD_RETURN_IF_ERROR(CheckDistribution(p));
  const Shape shape = c->prediction().shape;
  if (shape[1] < 0)
    return InvalidArgument(
        "the predictions are %s; the number of features "
        "must be known",
        ToString(shape));
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->parameters().Weight(p.weight_attr(), {p.num_total_classes(), shape[1]},
                             XavierUniformInitializer()));
  std::string bias, probs, alias, alias_probs;
  if (p.bias()) {
    PD_ASSIGN_OR_RETURN(
        bias, c->parameters().Bias(p.bias_attr(), {p.num_total_classes(), 1}));
  }
  if (p.sampler() == job::ClassSampler::custom_dist) {
    const std::vector<double> given(p.custom_dist().begin(),
                                    p.custom_dist().end());
    const AliasTable table(given);
    const Shape row = {p.num_total_classes()};
    probs = c->Values(row, DType::kFloat32, given);
    alias = c->Values(row, DType::kInt32, table.alias);
    alias_probs = c->Values(row, DType::kFloat32, table.probs);
  }
  const std::string sample_weight =
      p.has_sample_weight() ? c->Field(p.sample_weight(), {shape[0], 1}) : "";
  const std::string cost =
      c->Op("nce",
            {{"Input", c->x()},
             {"Label", c->Label({shape[0], 1}, DType::kInt64)},
             {"Weight", weight},
             {"Bias", bias},
             {"SampleWeight", sample_weight},
             {"CustomDistProbs", probs},
             {"CustomDistAlias", alias},
             {"CustomDistAliasProbs", alias_probs}},
            {"Cost", "SampleLogits", "SampleLabels"},
            {{"num_total_classes", static_cast<int32_t>(p.num_total_classes())},
             {"num_neg_samples", int32_t{p.num_neg_samples()}},
             {"sampler", static_cast<int32_t>(p.sampler())},
             {"seed", int32_t{p.seed()}},
             {"is_sparse", false}});
  return c->Give(c->Reduced(p.reduction(),
                            c->Scale(cost, 1.0 / (p.num_neg_samples() + 1))));
}

}  // namespace

void AddSampledLosses(LossTable* table) {
  (*table)[job::Loss::kHsigmoidLoss] = HSigmoid;
  (*table)[job::Loss::kNce] = Nce;
}

}  // namespace pd
