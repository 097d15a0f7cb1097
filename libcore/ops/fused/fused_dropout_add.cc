// SPDX-License-Identifier: Apache-2.0
// Dropout with a sum behind it.
//   fused_dropout_add: out = dropout(x) + y; seed_offset holds the two numbers
//     that the mask follows from, so that the gradient makes it again
//   fused_bias_dropout_residual_layer_norm: BiasDropoutResidualOut = Residual +
//     dropout(X + Bias), Y = layer_norm of its last axis
// upscale_in_train divides what is kept by 1 - p and leaves x alone in a test;
// downgrade_in_infer leaves what is kept and multiplies by 1 - p in a test.
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/composed.h"
#include "libcore/ops/fused/head_parts.h"

namespace pd {
namespace {

struct DropoutSum {
  double probability = 0;
  bool is_test = false, upscale = false;

  // The factor of an element that is kept, or of any in a test.
  double Factor() const {
    if (is_test) return upscale ? 1 : 1 - probability;
    if (!upscale) return 1;
    return probability < 1 ? 1 / (1 - probability) : 0;
  }
  bool Keeps(const Philox& numbers, int64_t i) const {
    return is_test || numbers.Uniform(static_cast<uint64_t>(i)) >= probability;
  }
};

absl::StatusOr<DropoutSum> ReadDropoutSum(const OpDesc& op) {
  DropoutSum d;
  d.probability = op.Attr<float>("p");
  d.is_test = op.Attr<bool>("is_test");
  const std::string& mode = op.Attr<std::string>("mode");
  d.upscale = mode == "upscale_in_train";
  if (!(d.probability >= 0 && d.probability <= 1) ||
      (!d.upscale && mode != "downgrade_in_infer"))
    return InvalidArgument(
        "attrs 'p' and 'mode' are %g and '%s'; expected a number of [0, 1], "
        "and upscale_in_train or downgrade_in_infer",
        d.probability, mode);
  return d;
}

absl::StatusOr<Step> BindDropoutAdd(BindContext* context) {
  Tensor* x = context->Input("x");
  Tensor* y = context->Input("y");
  Tensor* seeds = context->Output("seed_offset");
  Tensor* out = context->Output("out");
  PD_ASSIGN_OR_RETURN(const DropoutSum d, ReadDropoutSum(context->op()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "y", x->dtype(), x->shape()));
  if (context->Input("seed_tensor") != nullptr ||
      context->Input("PTensor") != nullptr)
    return Unimplemented("'seed_tensor' or 'PTensor' is given; expected attrs");
  const bool fixed = context->Attr<bool>("fix_seed");
  const auto seed = static_cast<uint64_t>(context->Attr<int32_t>("seed"));
  const uint64_t stream = StreamOf(context->op().Out("out"));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = x->size()](const RunContext& run) {
      int64_t* pair = seeds->data<int64_t>();
      pair[0] = static_cast<int64_t>(fixed ? seed : run.seed);
      pair[1] = static_cast<int64_t>(
          fixed ? 0 : stream + run.step * 0x9E3779B97F4A7C15ull);
      const Philox numbers(static_cast<uint64_t>(pair[0]),
                           static_cast<uint64_t>(pair[1]));
      const T factor = static_cast<T>(d.Factor());
      ParallelFor(n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          out->data<T>()[i] =
              y->data<T>()[i] +
              (d.Keeps(numbers, i) ? x->data<T>()[i] * factor : T(0));
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDropoutAddGrad(BindContext* context) {
  Tensor* seeds = context->Input("seed_offset");
  Tensor* dout = context->Input("out@GRAD");
  Tensor* dx = context->Output("x@GRAD");
  Tensor* dy = context->Output("y@GRAD");
  PD_ASSIGN_OR_RETURN(const DropoutSum d, ReadDropoutSum(context->op()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "seed_offset", DType::kInt64, 2));
  return DispatchFloat(dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = dout->size()](const RunContext&) {
      const int64_t* pair = seeds->data<int64_t>();
      const Philox numbers(static_cast<uint64_t>(pair[0]),
                           static_cast<uint64_t>(pair[1]));
      const T factor = static_cast<T>(d.Factor());
      ParallelFor(n, 4096, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T g = dout->data<T>()[i];
          if (dx != nullptr)
            dx->data<T>()[i] = d.Keeps(numbers, i) ? g * factor : T(0);
          if (dy != nullptr) dy->data<T>()[i] = g;
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferDropoutAdd(InferContext* context) {
  context->Share("x", "out");
  context->SetOutput("seed_offset", {2}, DType::kInt64);
  return absl::OkStatus();
}

absl::Status InferDropoutAddGrad(InferContext* context) {
  context->Share("out@GRAD", "x@GRAD");
  context->Share("out@GRAD", "y@GRAD");
  return absl::OkStatus();
}

absl::StatusOr<int32_t> LastAxis(const Shape& shape) {
  if (shape.size() >= 2) return static_cast<int32_t>(shape.size()) - 1;
  return InvalidArgument("'X' has shape %s; expected rows", ToString(shape));
}

absl::Status ComposeDropoutNorm(Composition* parts) {
  PD_ASSIGN_OR_RETURN(const int32_t axis, LastAxis(parts->Meta("X").shape));
  std::string x = parts->In("X");
  if (parts->HasInput("Bias"))
    x = parts->Apply("elementwise_add",
                     {{"X", {x}}, {"Y", {parts->In("Bias")}}});
  const std::string dropped = parts->Temp();
  parts->Add("dropout", {{"X", {x}}},
             {{"Out", {dropped}}, {"Mask", {parts->Out("DropoutMaskOut")}}},
             DropoutOf(*parts, "dropout"));
  const std::string sum = parts->Out("BiasDropoutResidualOut");
  parts->Add("elementwise_add",
             {{"X", {parts->In("Residual")}}, {"Y", {dropped}}},
             {{"Out", {sum}}});
  Composition::Slots in = {{"X", {sum}}};
  if (parts->HasInput("LnScale"))
    in.push_back({"Scale", {parts->In("LnScale")}});
  if (parts->HasInput("LnBias")) in.push_back({"Bias", {parts->In("LnBias")}});
  parts->Add("layer_norm", in,
             {{"Y", {parts->Out("Y")}},
              {"Mean", {parts->Out("LnMean")}},
              {"Variance", {parts->Out("LnVariance")}}},
             {{"epsilon", parts->Attr<float>("ln_epsilon")},
              {"begin_norm_axis", axis}});
  return absl::OkStatus();
}

// From what the forward op has kept.
absl::Status ComposeDropoutNormGrad(Composition* parts) {
  const TensorMeta& x = parts->Meta("BiasDropoutResidualOut");
  PD_ASSIGN_OR_RETURN(const int32_t axis, LastAxis(x.shape));
  Composition::Slots in = {{"X", {parts->In("BiasDropoutResidualOut")}},
                           {"Mean", {parts->In("LnMean")}},
                           {"Variance", {parts->In("LnVariance")}},
                           {"Y@GRAD", {parts->In("Y@GRAD")}}};
  Composition::Slots out = {{"X@GRAD", {parts->Out("Residual@GRAD")}}};
  if (parts->HasInput("LnScale")) {
    in.push_back({"Scale", {parts->In("LnScale")}});
    out.push_back({"Scale@GRAD", {parts->Out("LnScale@GRAD")}});
  }
  if (parts->HasInput("LnBias")) {
    in.push_back({"Bias", {parts->In("LnBias")}});
    out.push_back({"Bias@GRAD", {parts->Out("LnBias@GRAD")}});
  }
  parts->Add("layer_norm_grad", in, out,
             {{"epsilon", parts->Attr<float>("ln_epsilon")},
              {"begin_norm_axis", axis}});
  parts->Add("dropout_grad",
             {{"Mask", {parts->In("DropoutMaskOut")}},
              {"Out@GRAD", {parts->Out("Residual@GRAD")}}},
             {{"X@GRAD", {parts->Out("X@GRAD")}}},
             DropoutOf(*parts, "dropout"));
  parts->Add("assign", {{"X", {parts->Out("Residual@GRAD")}}},
             {{"Out", {parts->Out("BiasDropoutResidualOut@GRAD")}}});
  if (!parts->HasOutput("Bias@GRAD")) return absl::OkStatus();
  std::vector<int32_t> rows;
  for (int32_t k = 0; k < axis; ++k) rows.push_back(k);
  parts->Add("reduce_sum", {{"X", {parts->Out("X@GRAD")}}},
             {{"Out", {parts->Out("Bias@GRAD")}}}, {{"dim", rows}});
  return absl::OkStatus();
}

absl::Status InferDropoutNormGrad(InferContext* context) {
  PD_RETURN_IF_ERROR(InferGradLikeInput(context));
  for (const char* slot :
       {"X@GRAD", "Residual@GRAD", "BiasDropoutResidualOut@GRAD"})
    context->Share("Y@GRAD", slot);
  return absl::OkStatus();
}

void AddNormAttrs(OpDef* op) {
  op->Attr("dropout_rate", 0.5f).Attr("is_test", false);
  op->Attr("dropout_fix_seed", true).Attr("dropout_seed", int32_t{1});
  op->Attr("dropout_implementation", std::string("downgrade_in_infer"));
  op->Attr("ln_epsilon", 1e-5f);
}

absl::Status AddDropoutNorm(OpRegistry* registry) {
  OpDef op("fused_bias_dropout_residual_layer_norm");
  OpDef grad(op.type() + "_grad");
  op.Input("X").Input("Residual").OptionalInput("Bias");
  op.OptionalInput("LnScale").OptionalInput("LnBias").Output("Y");
  for (const char* slot :
       {"BiasDropoutResidualOut", "DropoutMaskOut", "LnMean", "LnVariance"})
    op.Output(slot);
  AddNormAttrs(&op);
  op.Infer(InferComposed<ComposeDropoutNorm>);
  op.Reference(BindComposed<ComposeDropoutNorm>);
  op.Expand(ExpandComposed<ComposeDropoutNorm>);
  op.Grad(GradSpec{
      grad.type(),
      {"X", "Residual", "Bias", "LnScale", "LnBias"},
      {"BiasDropoutResidualOut", "DropoutMaskOut", "LnMean", "LnVariance"},
      {"Y"},
      {"X", "Residual", "Bias", "LnScale", "LnBias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  for (const char* slot : {"X", "Residual", "Bias", "LnScale", "LnBias"}) {
    grad.OptionalInput(slot);
    grad.OptionalOutput(GradName(slot));
  }
  for (const char* slot : {"BiasDropoutResidualOut", "DropoutMaskOut", "LnMean",
                           "LnVariance", "Y@GRAD"})
    grad.Input(slot);
  grad.OptionalOutput("BiasDropoutResidualOut@GRAD");
  AddNormAttrs(&grad);
  grad.Infer(InferDropoutNormGrad).NoGrad();
  grad.Reference(BindComposed<ComposeDropoutNormGrad>);
  grad.Expand(ExpandComposed<ComposeDropoutNormGrad>);
  return registry->Add(std::move(grad));
}

void AddDropoutSumAttrs(OpDef* op) {
  op->RequiredAttr("p", AttrType::kFloat);
  op->RequiredAttr("is_test", AttrType::kBoolean);
  op->RequiredAttr("mode", AttrType::kString);
  op->Attr("seed", int32_t{0}).Attr("fix_seed", false);
}

}  // namespace

absl::Status RegisterFusedDropoutAdd(OpRegistry* registry) {
  OpDef op("fused_dropout_add"), grad("fused_dropout_add_grad");
  op.Input("x").Input("y").OptionalInput("seed_tensor");
  op.OptionalInput("PTensor").Output("out").Output("seed_offset");
  AddDropoutSumAttrs(&op);
  op.Infer(InferDropoutAdd).Reference(BindDropoutAdd);
  op.Grad(GradSpec{
      "fused_dropout_add_grad", {}, {"seed_offset"}, {"out"}, {"x", "y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Input("seed_offset").Input("out@GRAD");
  grad.OptionalOutput("x@GRAD").OptionalOutput("y@GRAD");
  AddDropoutSumAttrs(&grad);
  grad.Infer(InferDropoutAddGrad).NoGrad().Reference(BindDropoutAddGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return AddDropoutNorm(registry);
}

}  // namespace pd
