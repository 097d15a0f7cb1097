// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/sublayers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"

namespace pd {

absl::StatusOr<std::string> Affine(const MatrixSpec& spec, const std::string& x,
                                   LayerContext* c) {
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(*spec.weight, {spec.in, spec.out}, XavierUniformInitializer()));
  OpDesc op;
  op.type = "matmul_v2";
  op.SetInput("X", {x});
  op.SetInput("Y", {weight});
  op.attrs = {{"trans_x", false}, {"trans_y", false}};
  PD_ASSIGN_OR_RETURN(const std::string product,
                      c->Append(std::move(op), {"Out"}));
  if (spec.bias == nullptr) return product;
  PD_ASSIGN_OR_RETURN(const std::string bias, c->Bias(*spec.bias, {spec.out}));
  return c->Binary("elementwise_add", product, bias,
                   static_cast<int>(c->ShapeOf(product).size()) - 1);
}

absl::StatusOr<std::string> NormalizeLayer(const job::LayerNorm& p,
                                           const LayerInput& x,
                                           LayerContext* c) {
  // A copy: declaring parameters moves the descriptions.
  const Shape shape = c->ShapeOf(x.variable);
  if (shape.size() < 2) return c->Misfit("at least two axes", x);
  Shape normalized(p.normalized_shape().begin(), p.normalized_shape().end());
  if (normalized.empty()) normalized = {shape.back()};
  const size_t rank = shape.size(), axes = normalized.size();
  bool fits = axes < rank;
  for (size_t i = 0; fits && i < axes; ++i)
    fits = normalized[i] >= 0 && (shape[rank - axes + i] == normalized[i] ||
                                  shape[rank - axes + i] < 0);
  if (!fits)
    return c->Misfit(absl::StrCat("last axes ", ToString(normalized)), x);
  const Shape parameter = {NumElements(normalized)};
  OpDesc op;
  op.type = "layer_norm";
  op.SetInput("X", {x.variable});
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

absl::StatusOr<std::string> Convolve(const ConvolutionSpec& spec,
                                     const std::string& x, LayerContext* c) {
  const int64_t in = c->ShapeOf(x)[1];
  PD_ASSIGN_OR_RETURN(
      const std::string weight,
      c->Weight(job::ParamAttr(), {spec.out, in, spec.kernel, spec.kernel},
                spec.weight));
  PD_ASSIGN_OR_RETURN(const std::string bias,
                      c->Bias(job::ParamAttr(), {spec.out}));
  OpDesc op;
  op.type = "conv2d";
  op.SetInput("Input", {x});
  op.SetInput("Filter", {weight});
  op.attrs = {{"strides", Ints{spec.stride, spec.stride}},
              {"paddings", Ints{spec.pad, spec.pad}},
              {"dilations", Ints{1, 1}},
              {"groups", int32_t{1}},
              {"padding_algorithm", std::string("EXPLICIT")},
              {"data_format", std::string("NCHW")}};
  PD_ASSIGN_OR_RETURN(const std::string product,
                      c->Append(std::move(op), {"Output"}));
  return c->Binary("elementwise_add", product, bias, 1);
}

absl::StatusOr<std::string> DropOut(double p, const std::string& x,
                                    LayerContext* c) {
  if (p == 0) return x;
  OpDesc op;
  op.type = "dropout";
  op.SetInput("X", {x});
  op.attrs = {{"dropout_prob", static_cast<float>(p)},
              {"is_test", false},
              {"dropout_implementation", std::string("upscale_in_train")}};
  return c->Append(std::move(op), {"Out", "Mask"});
}

}  // namespace pd
