// SPDX-License-Identifier: Apache-2.0
// Connectionist temporal classification (Graves et al. 2006): Loss[b] is minus
// the log of the probability that softmax(Logits) gives to all paths that stand
// for the label. With l' the label with blanks between and around its tokens,
// a(t, s) and b(t, s) the log probabilities of the prefixes and suffixes that
// pass l'[s] at time t (b without time t itself):
//   WarpCTCGrad[t, k] = y[t, k] - sum over l'[s] = k of exp(a + b - log p)
//   Logits@GRAD = Loss@GRAD * WarpCTCGrad, / T with norm_by_times
// Logits [sum T, K] and Label [sum L, 1] with LoD, or Logits [Tmax, B, K] and
// Label [B, Lmax] with LogitsLength and LabelLength. WarpCTCGrad is [Tmax, B,
// K] in both forms, 0 after a sequence's end. A label that no path of its
// length stands for has loss 0 and no gradient, as in PaddlePaddle.
#include "libcore/ops/loss/warpctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/loss/log_add.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// One sequence: log probabilities [T, K] and its label.
struct Path {
  int64_t steps = 0, classes = 0;
  int64_t blank = 0;
  std::vector<double> log_p;    // [T, K]
  std::vector<int64_t> tokens;  // l'

  double At(int64_t t, size_t s) const {
    return log_p[static_cast<size_t>(t * classes + tokens[s])];
  }
  // l'[s] may follow l'[s - 2]: a token other than the one before the blank.
  bool Skips(size_t s) const {
    return s >= 2 && tokens[s] != blank && tokens[s] != tokens[s - 2];
  }
  bool Possible() const {
    int64_t needed = 0;
    for (size_t s = 1; s < tokens.size(); s += 2)
      needed += s > 1 && tokens[s] == tokens[s - 2] ? 2 : 1;
    return needed <= steps && steps > 0;
  }
};

// a(t, s): [T, S].
std::vector<double> Prefixes(const Path& p) {
  const size_t n = p.tokens.size();
  std::vector<double> a(static_cast<size_t>(p.steps) * n, kLogZero);
  a[0] = p.At(0, 0);
  if (n > 1) a[1] = p.At(0, 1);
  for (int64_t t = 1; t < p.steps; ++t) {
    const double* before = a.data() + static_cast<size_t>(t - 1) * n;
    for (size_t s = 0; s < n; ++s) {
      double sum = before[s];
      if (s >= 1) sum = LogAdd(sum, before[s - 1]);
      if (p.Skips(s)) sum = LogAdd(sum, before[s - 2]);
      a[static_cast<size_t>(t) * n + s] = sum + p.At(t, s);
    }
  }
  return a;
}

// The log likelihood; subtracts from `grad`, which holds y [T, K], what the
// paths expect. Element (t, k) of it is at t * stride + k.
template <typename T>
double Align(const Path& p, int64_t stride, T* grad) {
  const size_t n = p.tokens.size();
  const std::vector<double> a = Prefixes(p);
  const double* last = a.data() + static_cast<size_t>(p.steps - 1) * n;
  double log_likelihood = last[n - 1];
  if (n > 1) log_likelihood = LogAdd(log_likelihood, last[n - 2]);
  std::vector<double> b(n, kLogZero), after(n), expected(p.classes);
  b[n - 1] = 0;
  if (n > 1) b[n - 2] = 0;
  for (int64_t t = p.steps; t-- > 0;) {
    if (t + 1 < p.steps) {
      for (size_t s = 0; s < n; ++s) after[s] = b[s] + p.At(t + 1, s);
      for (size_t s = 0; s < n; ++s) {
        double sum = after[s];
        if (s + 1 < n) sum = LogAdd(sum, after[s + 1]);
        if (s + 2 < n && p.Skips(s + 2)) sum = LogAdd(sum, after[s + 2]);
        b[s] = sum;
      }
    }
    std::fill(expected.begin(), expected.end(), 0.0);
    for (size_t s = 0; s < n; ++s)
      expected[static_cast<size_t>(p.tokens[s])] +=
          std::exp(a[static_cast<size_t>(t) * n + s] + b[s] - log_likelihood);
    for (int64_t k = 0; k < p.classes; ++k)
      grad[t * stride + k] -= static_cast<T>(expected[static_cast<size_t>(k)]);
  }
  return log_likelihood;
}

}  // namespace

absl::StatusOr<CtcBatch> ReadCtcLogits(const BindContext& context) {
  const Tensor* logits = context.Input("Logits");
  const Tensor* lengths = context.Input("LogitsLength");
  CtcBatch batch;
  batch.padded = lengths != nullptr;
  if (logits->rank() != (batch.padded ? 3 : 2))
    return InvalidArgument(
        "'Logits' has shape %s; expected [T, B, K] with "
        "'LogitsLength', [sum of T, K] without",
        ToString(logits->shape()));
  batch.classes = logits->shape().back();
  batch.blank = context.Attr<int32_t>("blank");
  if (batch.blank < 0 || batch.blank >= batch.classes)
    return InvalidArgument("attr 'blank' is %d; there are %d classes",
                           batch.blank, batch.classes);
  if (batch.padded) {
    batch.max_steps = logits->dim(0);
    batch.count = logits->dim(1);
    PD_ASSIGN_OR_RETURN(
        batch.logits, SequenceSpans::FromLengths("LogitsLength", lengths,
                                                 batch.count, batch.max_steps));
    return batch;
  }
  PD_ASSIGN_OR_RETURN(
      batch.logits,
      SequenceSpans::FromLoD("Logits", logits->lod(), logits->dim(0)));
  batch.count = batch.logits.count();
  for (int64_t i = 0; i < batch.count; ++i)
    batch.max_steps = std::max(batch.max_steps, batch.logits.At(i)->length);
  return batch;
}

absl::Status ReadCtcLabels(const BindContext& context, CtcBatch* batch) {
  const Tensor* label = context.Input("Label");
  const Tensor* lengths = context.Input("LabelLength");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  if (batch->padded) {
    if (lengths == nullptr || label->rank() != 2 ||
        label->dim(0) != batch->count)
      return InvalidArgument(
          "'Label' has shape %s; expected [%d, L] and 'LabelLength'",
          ToString(label->shape()), batch->count);
    PD_ASSIGN_OR_RETURN(
        batch->labels, SequenceSpans::FromLengths("LabelLength", lengths,
                                                  batch->count, label->dim(1)));
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(batch->labels, SequenceSpans::FromLoD(
                                         "Label", label->lod(), label->size()));
  if (batch->labels.count() != batch->count)
    return InvalidArgument("'Logits' has %d sequences; 'Label' has %d",
                           batch->count, batch->labels.count());
  return absl::OkStatus();
}

namespace {

// y of row t goes to grad[t * stride], its logarithm into the path.
template <typename T>
void Softmax(const T* x, int64_t x_stride, int64_t stride, Path* path,
             T* grad) {
  const int64_t n = path->classes;
  path->log_p.resize(static_cast<size_t>(path->steps * n));
  for (int64_t t = 0; t < path->steps; ++t) {
    const T* row = x + t * x_stride;
    const double max = *std::max_element(row, row + n);
    double sum = 0;
    for (int64_t k = 0; k < n; ++k) sum += std::exp(row[k] - max);
    const double log_sum = max + std::log(sum);
    for (int64_t k = 0; k < n; ++k) {
      const double log_p = row[k] - log_sum;
      path->log_p[static_cast<size_t>(t * n + k)] = log_p;
      grad[t * stride + k] = static_cast<T>(std::exp(log_p));
    }
  }
}

absl::Status ReadTokens(const CtcBatch& batch, const Tensor& label, int64_t i,
                        std::vector<int64_t>* tokens) {
  PD_ASSIGN_OR_RETURN(const Span span, batch.labels.At(i));
  tokens->assign(1, batch.blank);
  for (int64_t j = 0; j < span.length; ++j) {
    const int64_t token = LabelAt(label, span.start + j);
    if (token < 0 || token >= batch.classes)
      return InvalidArgument("'Label' holds %d; expected 0 to %d", token,
                             batch.classes - 1);
    tokens->push_back(token);
    tokens->push_back(batch.blank);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindWarpctc(BindContext* context) {
  Tensor* logits = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* loss = context->Output("Loss");
  PD_ASSIGN_OR_RETURN(CtcBatch batch, ReadCtcLogits(*context));
  PD_RETURN_IF_ERROR(ReadCtcLabels(*context, &batch));
  const Shape shape = {batch.max_steps, batch.count, batch.classes};
  Tensor* kept = context->Output("WarpCTCGrad");
  if (kept == nullptr) {
    PD_ASSIGN_OR_RETURN(const int64_t bytes,
                        CheckedBytes(shape, SizeOf(logits->dtype())));
    kept = context->Scratch(static_cast<size_t>(bytes));
  }
  return DispatchFloat(logits->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      T* grad = kept->data<T>();
      std::fill(grad, grad + NumElements(shape), T(0));
      const int64_t stride = batch.count * batch.classes;
      Path path;
      path.classes = batch.classes;
      path.blank = batch.blank;
      for (int64_t i = 0; i < batch.count; ++i) {
        PD_ASSIGN_OR_RETURN(const Span span, batch.logits.At(i));
        PD_RETURN_IF_ERROR(ReadTokens(batch, *label, i, &path.tokens));
        path.steps = span.length;
        loss->data<T>()[i] = T(0);
        if (!path.Possible()) continue;
        T* own = grad + i * batch.classes;
        Softmax(logits->data<T>() + batch.FirstRow(i, span) * batch.classes,
                batch.RowStride() * batch.classes, stride, &path, own);
        loss->data<T>()[i] = static_cast<T>(-Align(path, stride, own));
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindWarpctcGrad(BindContext* context) {
  Tensor* logits = context->Input("Logits");
  Tensor* kept = context->Input("WarpCTCGrad");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dlogits = context->Output("Logits@GRAD");
  context->NoBuffer(logits);
  const bool by_times = context->Attr<bool>("norm_by_times");
  PD_ASSIGN_OR_RETURN(const CtcBatch batch, ReadCtcLogits(*context));
  const DType dtype = logits->dtype();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Loss@GRAD", dtype, batch.count));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "WarpCTCGrad", dtype,
                     batch.max_steps * batch.count * batch.classes));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const int64_t n = batch.classes;
      T* out = dlogits->data<T>();
      std::fill(out, out + dlogits->size(), T(0));
      for (int64_t i = 0; i < batch.count; ++i) {
        PD_ASSIGN_OR_RETURN(const Span span, batch.logits.At(i));
        T scale = dloss->data<T>()[i];
        if (by_times && span.length > 0) scale /= static_cast<T>(span.length);
        for (int64_t t = 0; t < span.length; ++t) {
          const T* from = kept->data<T>() + (t * batch.count + i) * n;
          T* to = out + (batch.FirstRow(i, span) + t * batch.RowStride()) * n;
          for (int64_t k = 0; k < n; ++k) to[k] = scale * from[k];
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferWarpctc(InferContext* context) {
  const TensorMeta& logits = context->Input("Logits");
  const bool padded = context->HasInput("LogitsLength");
  if (logits.shape.size() != (padded ? 3u : 2u))
    return InvalidArgument(
        "'Logits' has shape %s; expected [T, B, K] with "
        "'LogitsLength', [sum of T, K] without",
        ToString(logits.shape));
  int64_t count = -1, max_steps = -1;
  if (padded) {
    max_steps = logits.shape[0];
    count = logits.shape[1];
  } else if (!logits.lod.empty()) {
    count = SequenceCount(logits.lod);
    max_steps = 0;
    const auto& offsets = logits.lod[0];
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
      max_steps = std::max(max_steps,
                           static_cast<int64_t>(offsets[i + 1] - offsets[i]));
  }
  context->SetOutput("Loss", {count, 1}, logits.dtype);
  context->SetOutput("WarpCTCGrad", {max_steps, count, logits.shape.back()},
                     logits.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterWarpctc(OpRegistry* registry) {
  OpDef op("warpctc");
  op.Input("Logits").Input("Label");
  op.OptionalInput("LogitsLength").OptionalInput("LabelLength");
  op.IntermediateOutput("WarpCTCGrad").Output("Loss");
  op.Attr("blank", int32_t{0}).Attr("norm_by_times", false);
  op.Infer(InferWarpctc).Reference(BindWarpctc);
  op.Grad(GradSpec{"warpctc_grad",
                   {"Logits", "LogitsLength"},
                   {"WarpCTCGrad"},
                   {"Loss"},
                   {"Logits"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("warpctc_grad");
  grad.Input("Logits").OptionalInput("LogitsLength").Input("WarpCTCGrad");
  grad.Input("Loss@GRAD").Output("Logits@GRAD");
  grad.Attr("blank", int32_t{0}).Attr("norm_by_times", false);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindWarpctcGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
