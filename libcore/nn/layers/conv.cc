// SPDX-License-Identifier: Apache-2.0
// conv2d and the pools: windows over images [N, C, H, W].
#include <cmath>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

using Ints = std::vector<int32_t>;

// One number stands for both axes.
template <typename List>
Ints Pair(const List& list, Ints otherwise) {
  if (list.empty()) return otherwise;
  return {list[0], list.size() > 1 ? list[1] : list[0]};
}

// [h, w] or [top, bottom, left, right], as the ops take it.
template <typename List>
Ints Paddings(const List& list) {
  if (list.size() == 4) return Ints(list.begin(), list.end());
  return Pair(list, {0, 0});
}

std::string AlgorithmName(job::Padding::Algorithm algorithm) {
  return job::Padding::Algorithm_Name(algorithm);
}

// What max_pool2d and avg_pool2d share.
template <typename Pool>
void SetWindow(const Pool& p, OpDesc* op) {
  const Ints kernel = Pair(p.kernel_size(), {});
  op->attrs["ksize"] = kernel;
  op->attrs["strides"] = Pair(p.stride(), kernel);
  op->attrs["paddings"] = Paddings(p.padding());
  op->attrs["padding_algorithm"] = AlgorithmName(p.padding_algorithm());
  op->attrs["ceil_mode"] = p.ceil_mode();
}

constexpr char kImages[] = "images [N, C, H, W]";

absl::StatusOr<std::string> BuildConv2D(LayerContext* c) {
  const job::Conv2D& p = c->layer().conv2d();
  PD_RETURN_IF_ERROR(c->ExpectRank(4, 4, kImages));
  const int64_t given = p.in_channels();
  PD_ASSIGN_OR_RETURN(const int64_t in,
                      c->Extent(1, p.has_in_channels() ? &given : nullptr,
                                "input channels", "in_channels"));
  if (in % p.groups() != 0 || p.out_channels() % p.groups() != 0)
    return InvalidArgument(
        "'groups' is %d; it must divide the %d input channels and the %d "
        "output channels",
        p.groups(), in, p.out_channels());
  const Ints kernel = Pair(p.kernel_size(), {});
  // PaddlePaddle's default looks at all input channels, whatever the groups.
  const double std =
      std::sqrt(2.0 / (1.0 * kernel[0] * kernel[1] * static_cast<double>(in)));
  PD_ASSIGN_OR_RETURN(
      const std::string filter,
      c->Weight(p.weight_attr(),
                {p.out_channels(), in / p.groups(), kernel[0], kernel[1]},
                NormalInitializer(std)));
  OpDesc op;
  op.type = "conv2d";
  op.SetInput("Input", {c->input()});
  op.SetInput("Filter", {filter});
  op.attrs = {{"strides", Pair(p.stride(), {1, 1})},
              {"paddings", Paddings(p.padding())},
              {"padding_algorithm", AlgorithmName(p.padding_algorithm())},
              {"dilations", Pair(p.dilation(), {1, 1})},
              {"groups", p.groups()},
              {"data_format", std::string("NCHW")}};
  PD_ASSIGN_OR_RETURN(const std::string out,
                      c->Append(std::move(op), {"Output"}));
  if (!p.bias()) return out;
  PD_ASSIGN_OR_RETURN(const std::string bias,
                      c->Bias(p.bias_attr(), {p.out_channels()}));
  return c->Binary("elementwise_add", out, bias, 1);
}

absl::StatusOr<std::string> BuildPool2D(LayerContext* c) {
  PD_RETURN_IF_ERROR(c->ExpectRank(4, 4, kImages));
  OpDesc op;
  op.type = "pool2d";
  op.SetInput("X", {c->input()});
  op.attrs = {{"pooling_type", std::string("avg")},
              {"strides", Ints{1, 1}},
              {"paddings", Ints{0, 0}},
              {"padding_algorithm", std::string("EXPLICIT")},
              {"ceil_mode", false},
              {"exclusive", true},
              {"adaptive", false},
              {"global_pooling", false},
              {"data_format", std::string("NCHW")}};
  if (c->layer().has_max_pool2d()) {
    op.attrs["pooling_type"] = std::string("max");
    SetWindow(c->layer().max_pool2d(), &op);
  } else if (c->layer().has_avg_pool2d()) {
    SetWindow(c->layer().avg_pool2d(), &op);
    op.attrs["exclusive"] = c->layer().avg_pool2d().exclusive();
  } else {
    op.attrs["ksize"] =
        Pair(c->layer().adaptive_avg_pool2d().output_size(), {});
    op.attrs["adaptive"] = true;
  }
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

void AddConvLayers(LayerTable* table) {
  (*table)[job::Layer::kConv2D] = {BuildConv2D};
  for (const int kind : {job::Layer::kMaxPool2D, job::Layer::kAvgPool2D,
                         job::Layer::kAdaptiveAvgPool2D})
    (*table)[kind] = {BuildPool2D};
}

}  // namespace pd
