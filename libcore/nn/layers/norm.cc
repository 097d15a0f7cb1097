// SPDX-License-Identifier: Apache-2.0
// batch_norm1d, batch_norm2d, layer_norm, dropout.
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

absl::StatusOr<std::string> BuildBatchNorm(LayerContext* c) {
  const bool images = c->layer().has_batch_norm2d();
  const job::BatchNorm& p =
      images ? c->layer().batch_norm2d() : c->layer().batch_norm1d();
  PD_RETURN_IF_ERROR(images ? c->ExpectRank(4, 4, "images [N, C, H, W]")
                            : c->ExpectRank(2, 3, "[N, C] or [N, C, L]"));
  const int64_t given = p.num_features();
  PD_ASSIGN_OR_RETURN(const int64_t n,
                      c->Extent(1, p.has_num_features() ? &given : nullptr,
                                "input channels", "num_features"));
  PD_ASSIGN_OR_RETURN(const std::string scale,
                      c->Weight(p.weight_attr(), {n}, ConstantInitializer(1)));
  PD_ASSIGN_OR_RETURN(const std::string bias, c->Bias(p.bias_attr(), {n}));
  PD_ASSIGN_OR_RETURN(const std::string mean, c->Statistic({n}, 0, "_mean"));
  PD_ASSIGN_OR_RETURN(const std::string variance,
                      c->Statistic({n}, 1, "_variance"));
  OpDesc op;
  op.type = "batch_norm";
  op.SetInput("X", {c->input()});
  op.SetInput("Scale", {scale});
  op.SetInput("Bias", {bias});
  op.SetInput("Mean", {mean});
  op.SetInput("Variance", {variance});
  op.SetOutput("MeanOut", {mean});
  op.SetOutput("VarianceOut", {variance});
  op.attrs = {
      {"momentum", static_cast<float>(p.momentum())},
      {"epsilon", static_cast<float>(p.epsilon())},
      {"data_layout", std::string("NCHW")},
      {"is_test", false},
      {"use_global_stats", p.has_use_global_stats() && p.use_global_stats()},
      // false given: the batch's own values in evaluation too.
      {"trainable_statistics",
       p.has_use_global_stats() && !p.use_global_stats()}};
  return c->Append(std::move(op),
                   {"Y", "SavedMean", "SavedVariance", "ReserveSpace"});
}

absl::StatusOr<std::string> BuildLayerNorm(LayerContext* c) {
  const job::LayerNorm& p = c->layer().layer_norm();
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 64, "at least two axes"));
  const Shape& shape = c->shape();
  Shape normalized(p.normalized_shape().begin(), p.normalized_shape().end());
  if (normalized.empty()) normalized = {shape.back()};
  const size_t rank = shape.size(), axes = normalized.size();
  bool fits = axes < rank;
  for (size_t i = 0; fits && i < axes; ++i)
    fits = normalized[i] >= 0 && (shape[rank - axes + i] == normalized[i] ||
                                  shape[rank - axes + i] < 0);
  if (!fits) return c->Misfit(absl::StrCat("last axes ", ToString(normalized)));
  const Shape parameter = {NumElements(normalized)};
  OpDesc op;
  op.type = "layer_norm";
  op.SetInput("X", {c->input()});
  if (p.weight()) {
    PD_ASSIGN_OR_RETURN(
        const std::string scale,
        c->Weight(p.weight_attr(), parameter, ConstantInitializer(1)));
    op.SetInput("Scale", {scale});
  }
  if (p.bias()) {
    PD_ASSIGN_OR_RETURN(const std::string bias,
                        c->Bias(p.bias_attr(), parameter));
    op.SetInput("Bias", {bias});
  }
  op.attrs = {{"epsilon", static_cast<float>(p.epsilon())},
              {"begin_norm_axis", static_cast<int32_t>(rank - axes)}};
  return c->Append(std::move(op), {"Y", "Mean", "Variance"});
}

absl::StatusOr<std::string> BuildDropout(LayerContext* c) {
  const job::Dropout& p = c->layer().dropout();
  OpDesc op;
  op.type = "dropout";
  op.SetInput("X", {c->input()});
  op.attrs = {{"dropout_prob", static_cast<float>(p.p())},
              {"is_test", false},
              {"dropout_implementation",
               std::string(p.mode() == job::Dropout::upscale_in_train
                               ? "upscale_in_train"
                               : "downgrade_in_infer")}};
  return c->Append(std::move(op), {"Out", "Mask"});
}

}  // namespace

void AddNormLayers(LayerTable* table) {
  (*table)[job::Layer::kBatchNorm1D] = {BuildBatchNorm};
  (*table)[job::Layer::kBatchNorm2D] = {BuildBatchNorm};
  (*table)[job::Layer::kLayerNorm] = {BuildLayerNorm};
  (*table)[job::Layer::kDropout] = {BuildDropout};
}

}  // namespace pd
