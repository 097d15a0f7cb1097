// SPDX-License-Identifier: Apache-2.0
// Precision, recall and F1 of labelled chunks (named entities), see chunks.h.
// excluded_chunk_types do not count. Sequences with LoD, or [N, T] with
// SeqLength. All outputs are [1], the ratios float32 (0 with nothing below),
// the numbers int64. No gradient.
#include <string>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/metric/chunks.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {
namespace {

absl::StatusOr<ChunkScheme> SchemeOf(const BindContext& context) {
  return ChunkScheme::Of(
      context.Attr<std::string>("chunk_scheme"),
      context.Attr<int32_t>("num_chunk_types"),
      context.Attr<std::vector<int32_t>>("excluded_chunk_types"));
}

float ChunkEvalRatio(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0f
                    : static_cast<float>(part) / static_cast<float>(whole);
}

absl::StatusOr<SequenceSpans> SpansOf(const BindContext& context) {
  const Tensor* inference = context.Input("Inference");
  const Tensor* label = context.Input("Label");
  const Tensor* lengths = context.Input("SeqLength");
  for (const char* slot : {"Inference", "Label"})
    PD_RETURN_IF_ERROR(CheckLabelType(slot, context.Input(slot)->dtype()));
  PD_RETURN_IF_ERROR(
      ExpectElements(context, "Label", label->dtype(), inference->size()));
  if (!label->lod().empty()) {
    if (label->lod() != inference->lod())
      return InvalidArgument("'Inference' and 'Label' have different LoD");
    return SequenceSpans::FromLoD("Label", label->lod(), label->size());
  }
  if (lengths == nullptr || inference->rank() < 2)
    return InvalidArgument(
        "'Label' has shape %s and no LoD; expected [N, T] "
        "and 'SeqLength'",
        ToString(label->shape()));
  const int64_t count = inference->dim(0);
  return SequenceSpans::FromLengths("SeqLength", lengths, count,
                                    count == 0 ? 0 : inference->size() / count);
}

absl::StatusOr<Step> BindChunkEval(BindContext* context) {
  Tensor* inference = context->Input("Inference");
  Tensor* label = context->Input("Label");
  Tensor* precision = context->Output("Precision");
  Tensor* recall = context->Output("Recall");
  Tensor* f1 = context->Output("F1-Score");
  Tensor* inferred = context->Output("NumInferChunks");
  Tensor* labelled = context->Output("NumLabelChunks");
  Tensor* correct = context->Output("NumCorrectChunks");
  PD_ASSIGN_OR_RETURN(const ChunkScheme scheme, SchemeOf(*context));
  PD_ASSIGN_OR_RETURN(const SequenceSpans spans, SpansOf(*context));
  return Step([=](const RunContext&) -> absl::Status {
    ChunkCounts counts;
    std::vector<Chunk> found, wanted;
    for (int64_t i = 0; i < spans.count(); ++i) {
      PD_ASSIGN_OR_RETURN(const Span span, spans.At(i));
      PD_RETURN_IF_ERROR(
          FindChunks(scheme, LabelsOf(*inference, span), &found));
      PD_RETURN_IF_ERROR(FindChunks(scheme, LabelsOf(*label, span), &wanted));
      counts.Add(scheme, found, wanted);
    }
    const float p = ChunkEvalRatio(counts.correct, counts.inferred);
    const float r = ChunkEvalRatio(counts.correct, counts.labelled);
    if (precision != nullptr) precision->data<float>()[0] = p;
    if (recall != nullptr) recall->data<float>()[0] = r;
    if (f1 != nullptr)
      f1->data<float>()[0] = counts.correct == 0 ? 0.0f : 2 * p * r / (p + r);
    if (inferred != nullptr) inferred->data<int64_t>()[0] = counts.inferred;
    if (labelled != nullptr) labelled->data<int64_t>()[0] = counts.labelled;
    if (correct != nullptr) correct->data<int64_t>()[0] = counts.correct;
    return absl::OkStatus();
  });
}

absl::Status InferChunkEval(InferContext* context) {
  if (context->Attr<int32_t>("num_chunk_types") < 1)
    return InvalidArgument("attr 'num_chunk_types' is %d; expected 1 or more",
                           context->Attr<int32_t>("num_chunk_types"));
  for (const char* slot : {"Precision", "Recall", "F1-Score"})
    context->SetOutput(slot, {1}, DType::kFloat32);
  for (const char* slot :
       {"NumInferChunks", "NumLabelChunks", "NumCorrectChunks"})
    context->SetOutput(slot, {1}, DType::kInt64);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterChunkEval(OpRegistry* registry) {
  OpDef op("chunk_eval");
  op.Input("Inference").Input("Label").OptionalInput("SeqLength");
  op.Output("Precision").Output("Recall").Output("F1-Score");
  op.Output("NumInferChunks").Output("NumLabelChunks");
  op.Output("NumCorrectChunks").Attr("chunk_scheme", std::string("IOB"));
  op.RequiredAttr("num_chunk_types", AttrType::kInt);
  op.Attr("excluded_chunk_types", std::vector<int32_t>());
  op.Infer(InferChunkEval).NoGrad().Reference(BindChunkEval);
  return registry->Add(std::move(op));
}

}  // namespace pd
