// SPDX-License-Identifier: Apache-2.0
// The labels that a CTC path stands for: repeated tokens are merged (unless
// merge_repeated is false), then blanks are dropped.
//   Input with LoD: Output has its sequences' labels one after the other, with
//     LoD; one row of -1 when no label is left at all
//   Input [N, T] with InputLength: Output [N, T], the rest of a row is
//     padding_value; OutputLength [N, 1]
// No gradient.
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence_spans.h"

namespace pd {
namespace {

struct Rule {
  int64_t blank = 0;
  bool merge = true;

  // Writes the labels of path[0 .. n); returns how many there are.
  template <typename T>
  int64_t Align(const T* path, int64_t n, T* labels) const {
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool repeated = merge && i > 0 && path[i] == path[i - 1];
      if (path[i] != static_cast<T>(blank) && !repeated)
        labels[count++] = path[i];
    }
    return count;
  }
};

template <typename T>
Step AlignSequences(const Rule& rule, const SequenceSpans& spans, Tensor* in,
                    Tensor* out) {
  return [=](const RunContext&) -> absl::Status {
    std::vector<T> labels(static_cast<size_t>(in->size()));
    std::vector<uint64_t> offsets = {0};
    int64_t total = 0;
    for (int64_t i = 0; i < spans.count(); ++i) {
      PD_ASSIGN_OR_RETURN(const Span span, spans.At(i));
      total += rule.Align(in->data<T>() + span.start, span.length,
                          labels.data() + total);
      offsets.push_back(static_cast<uint64_t>(total));
    }
    if (total == 0) labels.assign(1, T(-1));
    const int64_t rows = total == 0 ? 1 : total;
    PD_RETURN_IF_ERROR(out->Resize(in->dtype(), {rows, 1}));
    out->set_lod({offsets});
    std::copy_n(labels.data(), rows, out->data<T>());
    return absl::OkStatus();
  };
}

template <typename T>
Step AlignPadded(const Rule& rule, const SequenceSpans& spans, T padding,
                 Tensor* in, Tensor* out, Tensor* lengths) {
  return [=](const RunContext&) -> absl::Status {
    const int64_t width = in->dim(1);
    PD_RETURN_IF_ERROR(out->Resize(in->dtype(), in->shape()));
    if (lengths != nullptr)
      PD_RETURN_IF_ERROR(lengths->Resize(in->dtype(), {spans.count(), 1}));
    for (int64_t i = 0; i < spans.count(); ++i) {
      PD_ASSIGN_OR_RETURN(const Span span, spans.At(i));
      T* row = out->data<T>() + span.start;
      const int64_t n =
          rule.Align(in->data<T>() + span.start, span.length, row);
      std::fill(row + n, row + width, padding);
      if (lengths != nullptr) lengths->data<T>()[i] = static_cast<T>(n);
    }
    return absl::OkStatus();
  };
}

absl::StatusOr<Step> BindCtcAlign(BindContext* context) {
  Tensor* in = context->Input("Input");
  Tensor* lengths = context->Input("InputLength");
  Tensor* out = context->Output("Output");
  Tensor* out_lengths = context->Output("OutputLength");
  const Rule rule{context->Attr<int32_t>("blank"),
                  context->Attr<bool>("merge_repeated")};
  const int32_t padding = context->Attr<int32_t>("padding_value");
  return DispatchTypes<int32_t, int64_t>(
      in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        if (!in->lod().empty()) {
          PD_ASSIGN_OR_RETURN(
              const auto spans,
              SequenceSpans::FromLoD("Input", in->lod(), in->size()));
          return AlignSequences<T>(rule, spans, in, out);
        }
        if (lengths == nullptr || in->rank() != 2)
          return InvalidArgument(
              "'Input' has shape %s and no LoD; expected [N, T] and "
              "'InputLength'",
              ToString(in->shape()));
        PD_ASSIGN_OR_RETURN(const auto spans,
                            SequenceSpans::FromLengths("InputLength", lengths,
                                                       in->dim(0), in->dim(1)));
        return AlignPadded<T>(rule, spans, static_cast<T>(padding), in, out,
                              out_lengths);
      });
}

absl::Status InferCtcAlign(InferContext* context) {
  const TensorMeta& in = context->Input("Input");
  if (in.shape.size() != 2)
    return InvalidArgument("'Input' has shape %s; expected rank 2",
                           ToString(in.shape));
  TensorMeta out;
  out.dtype = in.dtype;
  if (context->HasInput("InputLength") && in.lod_level == 0) {
    out.shape = in.shape;
    context->SetOutput("OutputLength", {in.shape[0], 1}, in.dtype);
  } else {
    out.shape = {-1, 1};
    out.lod_level = 1;
  }
  context->SetOutput("Output", std::move(out));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterCtcAlign(OpRegistry* registry) {
  OpDef op("ctc_align");
  op.Input("Input").OptionalInput("InputLength");
  op.Output("Output").OptionalOutput("OutputLength");
  op.Attr("blank", int32_t{0}).Attr("merge_repeated", true);
  op.Attr("padding_value", int32_t{0});
  op.Infer(InferCtcAlign).ShapeFromData().NoGrad().Reference(BindCtcAlign);
  return registry->Add(std::move(op));
}

}  // namespace pd
