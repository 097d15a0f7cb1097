// SPDX-License-Identifier: Apache-2.0
// Normalisations: batch, layer, group, instance, local response, spectral.
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/sublayers.h"

namespace pd {
namespace {

// An attribute for a parameter that keeps its first value.
const job::ParamAttr& Frozen() {
  static const job::ParamAttr* const kFrozen = [] {
    auto* attr = new job::ParamAttr;
    attr->set_trainable(false);
    return attr;
  }();
  return *kFrozen;
}

// Factor and summand of each channel, as inputs Scale and Bias; null: they
// stay 1 and 0.
absl::Status AddAffine(LayerContext* c, int64_t channels,
                       const job::ParamAttr* weight_attr,
                       const job::ParamAttr* bias_attr, OpDesc* op,
                       const char* weight = "weight") {
  PD_ASSIGN_OR_RETURN(
      const std::string scale,
      c->Weight(weight_attr != nullptr ? *weight_attr : Frozen(), {channels},
                ConstantInitializer(1), weight));
  PD_ASSIGN_OR_RETURN(
      const std::string bias,
      c->Bias(bias_attr != nullptr ? *bias_attr : Frozen(), {channels}));
  op->SetInput("Scale", {scale});
  op->SetInput("Bias", {bias});
  return absl::OkStatus();
}

// False given: the batch's own values in evaluation too.
template <typename P>
void ReadStatistics(const P& p, BatchNormArgs* args) {
  args->use_global_stats = p.has_use_global_stats() && p.use_global_stats();
  args->trainable_statistics =
      p.has_use_global_stats() && !p.use_global_stats();
}
void ReadStatistics(const job::SyncBatchNorm&, BatchNormArgs*) {}

// Batch norms of paddle.nn's classes that have a data_format.
template <typename P>
absl::StatusOr<std::string> BatchNormOfRank(LayerContext* c, const P& p,
                                            size_t least, size_t most,
                                            const char* first,
                                            const char* last) {
  const bool channels_last = p.data_format() != 0;
  PD_RETURN_IF_ERROR(c->ExpectRank(least, most, channels_last ? last : first));
  BatchNormArgs args;
  ReadStatistics(p, &args);
  args.channels_last = channels_last;
  const int64_t given = p.num_features();
  PD_ASSIGN_OR_RETURN(
      args.channels,
      c->Extent(channels_last ? -1 : 1, p.has_num_features() ? &given : nullptr,
                "input channels", "num_features"));
  args.momentum = p.momentum();
  args.epsilon = p.epsilon();
  if (p.weight()) args.weight_attr = &p.weight_attr();
  if (p.bias()) args.bias_attr = &p.bias_attr();
  return AppendBatchNorm(c, c->input(), args);
}

absl::StatusOr<std::string> BuildBatchNorm1D(LayerContext* c) {
  return BatchNormOfRank(c, c->layer().batch_norm1d(), 2, 3,
                         "[N, C] or [N, C, L]", "[N, C] or [N, L, C]");
}

absl::StatusOr<std::string> BuildBatchNorm2D(LayerContext* c) {
  return BatchNormOfRank(c, c->layer().batch_norm2d(), 4, 4,
                         "images [N, C, H, W]", "images [N, H, W, C]");
}

absl::StatusOr<std::string> BuildBatchNorm3D(LayerContext* c) {
  return BatchNormOfRank(c, c->layer().batch_norm3d(), 5, 5, "[N, C, D, H, W]",
                         "[N, D, H, W, C]");
}

absl::StatusOr<std::string> BuildSyncBatchNorm(LayerContext* c) {
  return BatchNormOfRank(c, c->layer().sync_batch_norm(), 2, 5,
                         "2 to 5 axes, [N, C, ...]",
                         "2 to 5 axes, [N, ..., C]");
}

absl::StatusOr<std::string> BuildBatchNorm(LayerContext* c) {
  const job::BatchNorm& p = c->layer().batch_norm();
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 5, "2 to 5 axes"));
  BatchNormArgs args;
  args.channels_last = p.data_layout() != 0;
  const int64_t given = p.num_channels();
  PD_ASSIGN_OR_RETURN(args.channels,
                      c->Extent(args.channels_last ? -1 : 1,
                                p.has_num_channels() ? &given : nullptr,
                                "input channels", "num_channels"));
  args.momentum = p.momentum();
  args.epsilon = p.epsilon();
  args.weight_attr = &p.param_attr();
  args.bias_attr = &p.bias_attr();
  args.use_global_stats = p.use_global_stats();
  args.trainable_statistics = p.trainable_statistics();
  PD_ASSIGN_OR_RETURN(const std::string y,
                      AppendBatchNorm(c, c->input(), args));
  if (p.act().empty()) return y;
  return AppendActivation(c, y, p.act(), "act");
}

absl::StatusOr<std::string> BuildLayerNorm(LayerContext* c) {
  return NormalizeLayer(c->layer().layer_norm(), c->read(), c);
}

absl::StatusOr<std::string> BuildGroupNorm(LayerContext* c) {
  const job::GroupNorm& p = c->layer().group_norm();
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 64, "at least two axes"));
  const bool channels_last = p.data_format() != 0;
  const int64_t given = p.num_channels();
  PD_ASSIGN_OR_RETURN(
      const int64_t channels,
      c->Extent(channels_last ? -1 : 1, p.has_num_channels() ? &given : nullptr,
                "input channels", "num_channels"));
  if (channels % p.num_groups() != 0)
    return InvalidArgument("'num_groups' is %d; it must divide the %d channels",
                           p.num_groups(), channels);
  OpDesc op;
  op.type = "group_norm";
  op.SetInput("X", {c->input()});
  PD_RETURN_IF_ERROR(AddAffine(c, channels,
                               p.weight() ? &p.weight_attr() : nullptr,
                               p.bias() ? &p.bias_attr() : nullptr, &op));
  op.attrs = {{"epsilon", static_cast<float>(p.epsilon())},
              {"groups", p.num_groups()},
              {"data_layout", std::string(channels_last ? "NHWC" : "NCHW")}};
  return c->Append(std::move(op), {"Y", "Mean", "Variance"});
}

template <typename P>
absl::StatusOr<std::string> InstanceNorm(LayerContext* c, const P& p,
                                         int axes) {
  PD_RETURN_IF_ERROR(ExpectSpace(c, {axes, false}));
  const int64_t given = p.num_features();
  PD_ASSIGN_OR_RETURN(const int64_t channels,
                      c->Extent(1, p.has_num_features() ? &given : nullptr,
                                "input channels", "num_features"));
  OpDesc op;
  op.type = "instance_norm";
  op.SetInput("X", {c->input()});
  if (p.affine())
    PD_RETURN_IF_ERROR(
        AddAffine(c, channels, &p.weight_attr(), &p.bias_attr(), &op, "scale"));
  op.attrs = {{"epsilon", static_cast<float>(p.epsilon())}};
  return c->Append(std::move(op), {"Y", "SavedMean", "SavedVariance"});
}

absl::StatusOr<std::string> BuildInstanceNorm(LayerContext* c) {
  const job::Layer& l = c->layer();
  if (l.has_instance_norm1d()) return InstanceNorm(c, l.instance_norm1d(), 1);
  if (l.has_instance_norm2d()) return InstanceNorm(c, l.instance_norm2d(), 2);
  return InstanceNorm(c, l.instance_norm3d(), 3);
}

// The mean of `size` neighbouring channels of `x`, zeros around them, as
// PaddlePaddle composes it: channels become an axis of images.
absl::StatusOr<std::string> MeanOfChannels(LayerContext* c,
                                           const std::string& x, int32_t size,
                                           bool channels_last) {
  const Shape shape = c->ShapeOf(x);
  int64_t others = 1;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] < 0) return c->Misfit("known extents behind the first");
    if (channels_last ? i + 1 < shape.size() : i > 1) others *= shape[i];
  }
  const int32_t channels =
      static_cast<int32_t>(channels_last ? shape.back() : shape[1]);
  const int32_t rest = static_cast<int32_t>(others);
  const int32_t before = size / 2, behind = (size - 1) / 2;
  PD_ASSIGN_OR_RETURN(const std::string images,
                      Reshape(c, x,
                              channels_last ? Ints{0, 1, rest, channels}
                                            : Ints{0, 1, channels, rest}));
  PD_ASSIGN_OR_RETURN(const std::string padded,
                      PadAround(c, {2, false}, images,
                                channels_last ? Ints{0, 0, before, behind}
                                              : Ints{before, behind, 0, 0},
                                "constant"));
  OpDesc op;
  op.type = "pool2d";
  op.SetInput("X", {padded});
  op.attrs = {{"pooling_type", std::string("avg")},
              {"ksize", channels_last ? Ints{1, size} : Ints{size, 1}},
              {"strides", Ints{1, 1}},
              {"paddings", Ints{0, 0}},
              {"padding_algorithm", std::string("EXPLICIT")},
              {"ceil_mode", false},
              {"exclusive", true},
              {"adaptive", false},
              {"global_pooling", false},
              {"data_format", std::string("NCHW")}};
  PD_ASSIGN_OR_RETURN(const std::string mean,
                      c->Append(std::move(op), {"Out"}));
  Ints back = {0};
  for (size_t i = 1; i < shape.size(); ++i)
    back.push_back(static_cast<int32_t>(shape[i]));
  return Reshape(c, mean, std::move(back));
}

absl::StatusOr<std::string> BuildLocalResponseNorm(LayerContext* c) {
  const job::LocalResponseNorm& p = c->layer().local_response_norm();
  PD_RETURN_IF_ERROR(c->ExpectRank(3, 5, "3 to 5 axes"));
  PD_ASSIGN_OR_RETURN(const std::string square,
                      c->Binary("elementwise_mul", c->input(), c->input()));
  PD_ASSIGN_OR_RETURN(
      const std::string mean,
      MeanOfChannels(c, square, p.size(), p.data_format() != 0));
  PD_ASSIGN_OR_RETURN(const std::string scaled,
                      Scale(c, mean, p.alpha(), p.k()));
  PD_ASSIGN_OR_RETURN(
      const std::string power,
      c->Unary("pow", scaled, {{"factor", static_cast<float>(p.beta())}}));
  return c->Binary("elementwise_div", c->input(), power);
}

absl::StatusOr<std::string> BuildSpectralNorm(LayerContext* c) {
  const job::SpectralNorm& p = c->layer().spectral_norm();
  Shape shape(p.weight_shape().begin(), p.weight_shape().end());
  if (shape.empty()) shape = c->shape();
  bool fits = shape.size() == c->shape().size() && shape.size() >= 2;
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] > 0 && (c->shape()[i] < 0 || c->shape()[i] == shape[i]);
  if (!fits)
    return c->Misfit(p.weight_shape().empty()
                         ? "known extents or 'weight_shape'"
                         : absl::StrCat("a weight ", ToString(shape)));
  const size_t dim = static_cast<size_t>(p.dim());
  if (dim >= shape.size())
    return InvalidArgument("'dim' is %d; the weight has %d axes", p.dim(),
                           shape.size());
  const int64_t rows = shape[dim], columns = NumElements(shape) / rows;
  PD_ASSIGN_OR_RETURN(
      const std::string u,
      c->Weight(Frozen(), {rows}, NormalInitializer(1), "weight_u"));
  PD_ASSIGN_OR_RETURN(
      const std::string v,
      c->Weight(Frozen(), {columns}, NormalInitializer(1), "weight_v"));
  OpDesc op;
  op.type = "spectral_norm";
  op.SetInput("Weight", {c->input()});
  op.SetInput("U", {u});
  op.SetInput("V", {v});
  op.attrs = {{"dim", p.dim()},
              {"power_iters", p.power_iters()},
              {"eps", static_cast<float>(p.eps())}};
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

absl::StatusOr<std::string> AppendBatchNorm(LayerContext* c,
                                            const std::string& x,
                                            const BatchNormArgs& args) {
  OpDesc op;
  op.type = "batch_norm";
  PD_RETURN_IF_ERROR(
      AddAffine(c, args.channels, args.weight_attr, args.bias_attr, &op));
  PD_ASSIGN_OR_RETURN(const std::string mean,
                      c->Statistic({args.channels}, 0, "_mean"));
  PD_ASSIGN_OR_RETURN(const std::string variance,
                      c->Statistic({args.channels}, 1, "_variance"));
  op.SetInput("X", {x});
  op.SetInput("Mean", {mean});
  op.SetInput("Variance", {variance});
  op.SetOutput("MeanOut", {mean});
  op.SetOutput("VarianceOut", {variance});
  op.attrs = {
      {"momentum", static_cast<float>(args.momentum)},
      {"epsilon", static_cast<float>(args.epsilon)},
      {"data_layout", std::string(args.channels_last ? "NHWC" : "NCHW")},
      {"is_test", false},
      {"use_global_stats", args.use_global_stats},
      {"trainable_statistics", args.trainable_statistics}};
  return c->Append(std::move(op),
                   {"Y", "SavedMean", "SavedVariance", "ReserveSpace"});
}

void AddNormLayers(LayerTable* table) {
  (*table)[job::Layer::kBatchNorm] = {BuildBatchNorm};
  (*table)[job::Layer::kBatchNorm1D] = {BuildBatchNorm1D};
  (*table)[job::Layer::kBatchNorm2D] = {BuildBatchNorm2D};
  (*table)[job::Layer::kBatchNorm3D] = {BuildBatchNorm3D};
  (*table)[job::Layer::kSyncBatchNorm] = {BuildSyncBatchNorm};
  (*table)[job::Layer::kLayerNorm] = {BuildLayerNorm};
  (*table)[job::Layer::kGroupNorm] = {BuildGroupNorm};
  for (const int kind :
       {job::Layer::kInstanceNorm1D, job::Layer::kInstanceNorm2D,
        job::Layer::kInstanceNorm3D})
    (*table)[kind] = {BuildInstanceNorm};
  (*table)[job::Layer::kLocalResponseNorm] = {BuildLocalResponseNorm};
  (*table)[job::Layer::kSpectralNorm] = {BuildSpectralNorm};
}

}  // namespace pd
