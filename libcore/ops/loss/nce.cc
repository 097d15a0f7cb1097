// SPDX-License-Identifier: Apache-2.0
// Noise-contrastive estimation (Gutmann and Hyvarinen 2010): each sample has
// its labels and num_neg_samples classes drawn from the sampler's distribution
// P, in SampleLabels [N, labels + num_neg_samples]. For each of them
//   SampleLogits = o = sigmoid(Weight[class] . Input + Bias[class])
//   b = P(class) * num_neg_samples
//   Cost[n] = SampleWeight[n] * sum of (-log(o / (o + b)) for labels,
//                                       -log(b / (o + b)) for the others)
//   slope of z: b / (o + b) * (o - 1) for labels, o * (1 - o) / (o + b) for the
//   others; times SampleWeight[n] * Cost@GRAD[n]
// sampler 0: uniform; 1: log-uniform, P(c) = log((c + 2) / (c + 1)) / log(n);
// 2: CustomDistProbs, drawn by Walker's alias method from CustomDistAlias and
// CustomDistAliasProbs. attr custom_neg_classes, where it is given, stands for
// the draws. With is_sparse Weight@GRAD is SelectedRows, one for each element
// of SampleLabels.
#include "libcore/ops/loss/nce.h"

#include <cmath>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/loss/linear_rows.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<NceSampler> ReadSampler(const BindContext& context) {
  NceSampler s;
  s.kind = context.Attr<int32_t>("sampler");
  s.classes = context.Attr<int32_t>("num_total_classes");
  if (s.kind < 0 || s.kind > 2 || s.classes < 1)
    return InvalidArgument(
        "attrs 'sampler' and 'num_total_classes' are %d and "
        "%d; expected 0 to 2, 1 or more",
        s.kind, s.classes);
  if (s.kind != NceSampler::kCustom) return s;
  s.probs = context.Input("CustomDistProbs");
  s.alias = context.Input("CustomDistAlias");
  s.alias_probs = context.Input("CustomDistAliasProbs");
  PD_RETURN_IF_ERROR(
      ExpectElements(context, "CustomDistProbs", DType::kFloat32, s.classes));
  PD_RETURN_IF_ERROR(ExpectElements(context, "CustomDistAliasProbs",
                                    DType::kFloat32, s.classes));
  PD_RETURN_IF_ERROR(
      ExpectElements(context, "CustomDistAlias", DType::kInt32, s.classes));
  return s;
}

// Extents of Label: samples and labels of each.
std::pair<int64_t, int64_t> LabelExtents(const Shape& label) {
  return {label.empty() ? 1 : label[0], label.size() == 2 ? label[1] : 1};
}

}  // namespace

absl::StatusOr<NceProblem> ReadNceProblem(const BindContext& context) {
  NceProblem p;
  p.input = context.Input("Input");
  p.weight = context.Input("Weight");
  p.bias = context.Input("Bias");
  p.label = context.Input("Label");
  p.sample_weight = context.Input("SampleWeight");
  p.negatives = context.Attr<int32_t>("num_neg_samples");
  PD_ASSIGN_OR_RETURN(p.sampler, ReadSampler(context));
  if (p.input->rank() != 2 || p.weight->rank() != 2 ||
      p.input->dim(1) != p.weight->dim(1) ||
      p.input->dtype() != p.weight->dtype() || p.negatives < 0)
    return InvalidArgument(
        "'Input' is %s %s, 'Weight' is %s %s; expected "
        "[N, D] and [classes, D]",
        Name(p.input->dtype()), ToString(p.input->shape()),
        Name(p.weight->dtype()), ToString(p.weight->shape()));
  p.rows = p.input->dim(0);
  p.width = p.input->dim(1);
  const auto [samples, labels] = LabelExtents(p.label->shape());
  PD_RETURN_IF_ERROR(CheckLabelType("Label", p.label->dtype()));
  if (samples != p.rows || p.label->size() != samples * labels)
    return InvalidArgument("'Label' has shape %s; 'Input' has %d rows",
                           ToString(p.label->shape()), p.rows);
  p.labels = labels;
  p.columns = labels + p.negatives;
  const DType dtype = p.input->dtype();
  if (p.bias != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectElements(context, "Bias", dtype, p.weight->dim(0)));
  if (p.sample_weight != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(context, "SampleWeight", dtype, p.rows));
  return p;
}

absl::StatusOr<NceDraws> ReadNceDraws(const BindContext& context,
                                      const NceProblem& problem) {
  NceDraws draws;
  draws.seed = static_cast<uint32_t>(context.Attr<int32_t>("seed"));
  draws.stream = StreamOf(context.op().Out("Cost"));
  draws.given = IntsAttr(context.op(), "custom_neg_classes");
  if (!draws.given.empty() &&
      static_cast<int64_t>(draws.given.size()) != problem.negatives)
    return InvalidArgument(
        "attr 'custom_neg_classes' holds %d; attr 'num_neg_samples' is %d",
        draws.given.size(), problem.negatives);
  return draws;
}

namespace {

// SampleLabels, checked.
absl::Status FillClasses(const NceProblem& p, const NceDraws& d,
                         const RunContext& run, int64_t* out) {
  RandomStream random(
      d.seed != 0 ? d.seed : run.seed,
      d.seed != 0 ? d.stream : d.stream + run.step * 0x9E3779B97F4A7C15ull);
  for (int64_t n = 0; n < p.rows; ++n) {
    for (int64_t j = 0; j < p.columns; ++j, ++out) {
      const int64_t drawn = j - p.labels;
      if (drawn < 0)
        *out = LabelAt(*p.label, n * p.labels + j);
      else if (!d.given.empty())
        *out = d.given[static_cast<size_t>(drawn)];
      else
        *out = p.sampler.Draw(&random);
      PD_RETURN_IF_ERROR(p.CheckClass(*out));
    }
  }
  return absl::OkStatus();
}

template <typename T>
T Sigmoid(const NceProblem& p, int64_t n, int64_t c) {
  const T* x = p.input->data<T>() + n * p.width;
  const T* w = p.weight->data<T>() + c * p.width;
  T z = p.bias != nullptr ? p.bias->data<T>()[c] : T(0);
  for (int64_t k = 0; k < p.width; ++k) z += x[k] * w[k];
  return T(1) / (T(1) + std::exp(-z));
}

absl::StatusOr<Step> BindNce(BindContext* context) {
  Tensor* cost = context->Output("Cost");
  Tensor* logits = context->Output("SampleLogits");
  Tensor* classes = context->Output("SampleLabels");
  PD_ASSIGN_OR_RETURN(const NceProblem p, ReadNceProblem(*context));
  PD_ASSIGN_OR_RETURN(const NceDraws draws, ReadNceDraws(*context, p));
  if (classes == nullptr)
    classes = context->Scratch(static_cast<size_t>(p.rows * p.columns) *
                               sizeof(int64_t));
  return DispatchFloat(p.input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) -> absl::Status {
      PD_RETURN_IF_ERROR(FillClasses(p, draws, run, classes->data<int64_t>()));
      for (int64_t n = 0; n < p.rows; ++n) {
        T sum = T(0);
        for (int64_t j = 0; j < p.columns; ++j) {
          const int64_t i = n * p.columns + j;
          const int64_t c = classes->data<int64_t>()[i];
          const T o = Sigmoid<T>(p, n, c), b = p.Expected<T>(c);
          if (logits != nullptr) logits->data<T>()[i] = o;
          sum -= std::log((j < p.labels ? o : b) / (o + b));
        }
        cost->data<T>()[n] = p.WeightOf<T>(n) * sum;
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindNceGrad(BindContext* context) {
  Tensor* logits = context->Input("SampleLogits");
  Tensor* classes = context->Input("SampleLabels");
  Tensor* dcost = context->Input("Cost@GRAD");
  PD_ASSIGN_OR_RETURN(const NceProblem p, ReadNceProblem(*context));
  const LinearRowsGrad to{
      context->Output("Input@GRAD"), context->Output("Weight@GRAD"),
      p.bias != nullptr ? context->Output("Bias@GRAD") : nullptr,
      context->Attr<bool>("is_sparse"), p.rows * p.columns};
  const DType dtype = p.input->dtype();
  const int64_t n = p.rows * p.columns;
  PD_RETURN_IF_ERROR(ExpectElements(*context, "SampleLogits", dtype, n));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "SampleLabels", DType::kInt64, n));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Cost@GRAD", dtype, p.rows));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const int64_t* c = classes->data<int64_t>();
      for (int64_t i = 0; i < n; ++i) PD_RETURN_IF_ERROR(p.CheckClass(c[i]));
      to.Begin(*p.weight);
      for (int64_t i = 0; i < n; ++i) {
        const int64_t sample = i / p.columns;
        const T o = logits->data<T>()[i], b = p.Expected<T>(c[i]);
        const T slope = i % p.columns < p.labels ? b / (o + b) * (o - T(1))
                                                 : o * (T(1) - o) / (o + b);
        to.Add(*p.input, *p.weight, i, sample, c[i],
               slope * p.WeightOf<T>(sample) * dcost->data<T>()[sample]);
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferNce(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const Shape& label = context->Input("Label").shape;
  if (input.shape.size() != 2)
    return InvalidArgument("'Input' has shape %s; expected [N, D]",
                           ToString(input.shape));
  const int64_t labels = LabelExtents(label).second;
  const int64_t rows = input.shape[0];
  const int64_t columns =
      labels < 0 ? -1 : labels + context->Attr<int32_t>("num_neg_samples");
  context->SetOutput("Cost", {rows, 1}, input.dtype);
  context->SetOutput("SampleLogits", {rows, columns}, input.dtype);
  context->SetOutput("SampleLabels", {rows, columns}, DType::kInt64);
  return absl::OkStatus();
}

absl::Status InferNceGrad(InferContext* context) {
  return InferLinearRowsGrad(context, "Weight", "SampleLabels");
}

void AddNceArguments(OpDef* op) {
  op->Input("Input").Input("Label").Input("Weight").OptionalInput("Bias");
  op->OptionalInput("SampleWeight").OptionalInput("CustomDistProbs");
  op->OptionalInput("CustomDistAlias").OptionalInput("CustomDistAliasProbs");
  op->RequiredAttr("num_total_classes", AttrType::kInt);
  op->Attr("num_neg_samples", int32_t{10}).Attr("sampler", int32_t{0});
  op->Attr("seed", int32_t{0}).Attr("is_sparse", false);
}

}  // namespace

absl::Status RegisterNce(OpRegistry* registry) {
  OpDef op("nce");
  AddNceArguments(&op);
  op.Output("Cost").IntermediateOutput("SampleLogits");
  op.IntermediateOutput("SampleLabels");
  op.Infer(InferNce).Reference(BindNce);
  op.Grad(
      GradSpec{"nce_grad",
               {"Input", "Label", "Weight", "Bias", "SampleWeight",
                "CustomDistProbs", "CustomDistAlias", "CustomDistAliasProbs"},
               {"SampleLogits", "SampleLabels"},
               {"Cost"},
               {"Input", "Weight", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("nce_grad");
  AddNceArguments(&grad);
  grad.Input("SampleLogits").Input("SampleLabels").Input("Cost@GRAD");
  grad.OptionalOutput("Input@GRAD").OptionalOutput("Weight@GRAD");
  grad.OptionalOutput("Bias@GRAD");
  grad.Infer(InferNceGrad).NoGrad().Reference(BindNceGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
