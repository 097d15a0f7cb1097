// SPDX-License-Identifier: Apache-2.0
// Linear-chain conditional random fields (Lafferty et al. 2001) over D tags.
// Transition [D + 2, D]: row 0 starts a sequence, row 1 ends it, row i + 2 goes
// from tag i to the others. For one sequence of T rows of Emission:
//   score(tags) = start[tags[0]] + end[tags[T - 1]] + sum of Emission[k,
//     tags[k]] + sum of transition[tags[k - 1], tags[k]]
//   LogLikelihood = log(sum over all tags of exp(score)) - score(Label), the
//     cost, that is minus what the name says
// With p the probabilities of a tag, and of a pair of tags at k - 1 and k:
//   Emission@GRAD[k, i] = g * (p_k(i) - [Label[k] = i])
//   Transition@GRAD = g * (expected - seen transitions), g the cost's gradient
// Alpha holds the forward messages, each row scaled to sum 1; EmissionExps is
// exp(Emission - its row's maximum), TransitionExps exp(Transition).
//   crf_decoding: ViterbiPath is the tags of the highest score; with Label, 1
//     where the path agrees with it, else 0. No gradient.
// Sequences with LoD [sum T, D], or padded [B, T, D] with Length; a padded path
// is [B, T] with zeros, and the cost of an empty sequence is 0.
#include "libcore/ops/loss/linear_chain_crf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<CrfRows> ReadCrfRows(const BindContext& context,
                                    const Shape& emission,
                                    const char* lod_slot) {
  const Tensor* length = context.Input("Length");
  const Tensor* transition = context.Input("Transition");
  CrfRows r;
  if (emission.size() != (length != nullptr ? 3u : 2u))
    return InvalidArgument(
        "'Emission' has shape %s; expected [N, T, D] with "
        "'Length', [sum of T, D] without",
        ToString(emission));
  r.tags = emission.back();
  r.rows = NumElements(emission, 0, emission.size() - 1);
  if (transition->shape() != Shape{r.tags + 2, r.tags})
    return InvalidArgument("'Transition' has shape %s; expected [%d, %d]",
                           ToString(transition->shape()), r.tags + 2, r.tags);
  if (length != nullptr) {
    PD_ASSIGN_OR_RETURN(
        r.spans,
        SequenceSpans::FromLengths("Length", length, emission[0], emission[1]));
  } else {
    PD_ASSIGN_OR_RETURN(r.spans,
                        SequenceSpans::FromLoD(
                            lod_slot, context.Input(lod_slot)->lod(), r.rows));
  }
  return r;
}

absl::Status CheckCrfTags(const BindContext& context, int64_t rows) {
  const Tensor* label = context.Input("Label");
  PD_RETURN_IF_ERROR(CheckLabelType("Label", label->dtype()));
  return ExpectElements(context, "Label", label->dtype(), rows);
}

namespace {

// Tags of one sequence.
absl::Status ReadTags(const Tensor& label, const Span& span, int64_t tags,
                      std::vector<int64_t>* found) {
  found->clear();
  for (int64_t k = span.start; k < span.start + span.length; ++k) {
    found->push_back(LabelAt(label, k));
    if (found->back() < 0 || found->back() >= tags)
      return InvalidArgument("'Label' holds %d in row %d; expected 0 to %d",
                             found->back(), k, tags - 1);
  }
  return absl::OkStatus();
}

// Scales x to sum 1; returns the sum.
template <typename T>
T Normalize(T* x, int64_t n) {
  T sum = T(0);
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  for (int64_t i = 0; i < n; ++i) x[i] /= sum;
  return sum;
}

// One sequence's messages: `x` its rows of EmissionExps, `w` TransitionExps.
template <typename T>
struct Chain {
  const T *x, *w;
  int64_t length, tags;

  // Rows of alpha; returns the log of the partition function, without the row
  // maxima.
  T Forward(T* alpha) const {
    for (int64_t i = 0; i < tags; ++i) alpha[i] = w[i] * x[i];
    T log_z = std::log(Normalize(alpha, tags));
    for (int64_t k = 1; k < length; ++k) {
      const T* before = alpha + (k - 1) * tags;
      T* row = alpha + k * tags;
      for (int64_t i = 0; i < tags; ++i) {
        T sum = T(0);
        for (int64_t j = 0; j < tags; ++j)
          sum += before[j] * w[(j + 2) * tags + i];
        row[i] = x[k * tags + i] * sum;
      }
      log_z += std::log(Normalize(row, tags));
    }
    T sum = T(0);
    for (int64_t i = 0; i < tags; ++i)
      sum += alpha[(length - 1) * tags + i] * w[tags + i];
    return log_z + std::log(sum);
  }

  void Backward(T* beta) const {
    T* last = beta + (length - 1) * tags;
    std::copy_n(w + tags, tags, last);
    Normalize(last, tags);
    for (int64_t k = length - 1; k-- > 0;) {
      const T* after = beta + (k + 1) * tags;
      const T* emit = x + (k + 1) * tags;
      T* row = beta + k * tags;
      for (int64_t i = 0; i < tags; ++i) {
        T sum = T(0);
        for (int64_t j = 0; j < tags; ++j)
          sum += w[(i + 2) * tags + j] * emit[j] * after[j];
        row[i] = sum;
      }
      Normalize(row, tags);
    }
  }
};

absl::StatusOr<Step> BindCrf(BindContext* context) {
  Tensor* emission = context->Input("Emission");
  Tensor* transition = context->Input("Transition");
  Tensor* label = context->Input("Label");
  Tensor* alpha = context->Output("Alpha");
  Tensor* emission_exps = context->Output("EmissionExps");
  Tensor* transition_exps = context->Output("TransitionExps");
  Tensor* cost = context->Output("LogLikelihood");
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, emission->shape(), "Label"));
  PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  if (transition->dtype() != emission->dtype())
    return InvalidArgument("'Transition' is %s; 'Emission' is %s",
                           Name(transition->dtype()), Name(emission->dtype()));
  if (alpha == nullptr) alpha = context->Scratch(emission->bytes());
  if (emission_exps == nullptr)
    emission_exps = context->Scratch(emission->bytes());
  if (transition_exps == nullptr)
    transition_exps = context->Scratch(transition->bytes());
  const DType dtype = emission->dtype();
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const int64_t d = r.tags;
      const T *e = emission->data<T>(), *w = transition->data<T>();
      T* exps = emission_exps->data<T>();
      T* w_exps = transition_exps->data<T>();
      std::memset(alpha->raw(), 0, emission->bytes());
      for (int64_t i = 0; i < (d + 2) * d; ++i) w_exps[i] = std::exp(w[i]);
      std::vector<T> max(static_cast<size_t>(r.rows));
      for (int64_t k = 0; k < r.rows && d > 0; ++k) {
        const T top = *std::max_element(e + k * d, e + (k + 1) * d);
        max[static_cast<size_t>(k)] = top;
        for (int64_t i = k * d; i < (k + 1) * d; ++i)
          exps[i] = std::exp(e[i] - top);
      }
      std::vector<int64_t> tags;
      for (int64_t s = 0; s < r.spans.count(); ++s) {
        PD_ASSIGN_OR_RETURN(const Span span, r.spans.At(s));
        PD_RETURN_IF_ERROR(ReadTags(*label, span, d, &tags));
        T& out = cost->data<T>()[s];
        out = T(0);
        if (span.length == 0) continue;
        const int64_t at = span.start * d;
        out = Chain<T>{exps + at, w_exps, span.length, d}.Forward(
            alpha->data<T>() + at);
        out -= w[tags.front()] + w[d + tags.back()];
        for (size_t k = 0; k < tags.size(); ++k) {
          const int64_t row = span.start + static_cast<int64_t>(k);
          out += max[static_cast<size_t>(row)] - e[row * d + tags[k]];
          if (k > 0) out -= w[(tags[k - 1] + 2) * d + tags[k]];
        }
      }
      return absl::OkStatus();
    });
  });
}

// One sequence's share of both gradients. `de` is its rows of Emission@GRAD;
// `dw` is null when it is not asked for.
template <typename T>
void BackwardOne(const Chain<T>& chain, const std::vector<int64_t>& labels,
                 const T* alpha, const T* beta, T g, T* de, T* dw) {
  const int64_t d = chain.tags;
  for (int64_t k = 0; k < chain.length; ++k) {
    T* row = de + k * d;
    for (int64_t i = 0; i < d; ++i) row[i] = alpha[k * d + i] * beta[k * d + i];
    Normalize(row, d);
    for (int64_t i = 0; i < d; ++i) row[i] *= g;
    row[labels[static_cast<size_t>(k)]] -= g;
  }
  if (dw == nullptr) return;
  for (int64_t i = 0; i < d; ++i) {
    dw[i] += de[i];
    dw[d + i] += de[(chain.length - 1) * d + i];
  }
  std::vector<T> pairs(static_cast<size_t>(d * d));
  for (int64_t k = 1; k < chain.length; ++k) {
    for (int64_t i = 0; i < d; ++i)
      for (int64_t j = 0; j < d; ++j)
        pairs[static_cast<size_t>(i * d + j)] =
            alpha[(k - 1) * d + i] * chain.w[(i + 2) * d + j] *
            chain.x[k * d + j] * beta[k * d + j];
    Normalize(pairs.data(), d * d);
    T* moves = dw + 2 * d;
    for (int64_t i = 0; i < d * d; ++i)
      moves[i] += g * pairs[static_cast<size_t>(i)];
    moves[labels[static_cast<size_t>(k - 1)] * d +
          labels[static_cast<size_t>(k)]] -= g;
  }
}

absl::StatusOr<Step> BindCrfGrad(BindContext* context) {
  Tensor* label = context->Input("Label");
  Tensor* alpha = context->Input("Alpha");
  Tensor* exps = context->Input("EmissionExps");
  Tensor* w_exps = context->Input("TransitionExps");
  Tensor* dcost = context->Input("LogLikelihood@GRAD");
  Tensor* de = context->Output("Emission@GRAD");
  Tensor* dw = context->Output("Transition@GRAD");
  context->NoBuffer(context->Input("Emission"));
  context->NoBuffer(context->Input("Transition"));
  const DType dtype = exps->dtype();
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, exps->shape(), "Label"));
  PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Alpha", dtype, exps->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "TransitionExps", dtype, (r.tags + 2) * r.tags));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "LogLikelihood@GRAD", dtype, r.spans.count()));
  Tensor* beta = context->Scratch(exps->bytes());
  if (de == nullptr) de = context->Scratch(exps->bytes());
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      std::memset(de->raw(), 0, exps->bytes());
      if (dw != nullptr) std::memset(dw->raw(), 0, dw->bytes());
      std::vector<int64_t> tags;
      for (int64_t s = 0; s < r.spans.count(); ++s) {
        PD_ASSIGN_OR_RETURN(const Span span, r.spans.At(s));
        PD_RETURN_IF_ERROR(ReadTags(*label, span, r.tags, &tags));
        if (span.length == 0) continue;
        const int64_t at = span.start * r.tags;
        const Chain<T> chain{exps->data<T>() + at, w_exps->data<T>(),
                             span.length, r.tags};
        T* messages = beta->data<T>() + at;
        chain.Backward(messages);
        BackwardOne(chain, tags, alpha->data<T>() + at, messages,
                    dcost->data<T>()[s], de->data<T>() + at,
                    dw != nullptr ? dw->data<T>() : nullptr);
      }
      return absl::OkStatus();
    });
  });
}

// The best tags of one sequence: x [length, d].
template <typename T>
void Decode(const T* x, const T* w, int64_t length, int64_t d, int64_t* path) {
  std::vector<T> score(w, w + d), next(static_cast<size_t>(d));
  std::vector<int32_t> from(static_cast<size_t>(length * d));
  for (int64_t i = 0; i < d; ++i) score[static_cast<size_t>(i)] += x[i];
  const auto best = [&](const T* base, int64_t stride, T* value) {
    int64_t at = 0;
    *value = -std::numeric_limits<T>::max();
    for (int64_t j = 0; j < d; ++j) {
      const T sum = score[static_cast<size_t>(j)] + base[j * stride];
      if (sum > *value) {
        *value = sum;
        at = j;
      }
    }
    return at;
  };
  for (int64_t k = 1; k < length; ++k) {
    for (int64_t i = 0; i < d; ++i) {
      T value;
      from[static_cast<size_t>(k * d + i)] =
          static_cast<int32_t>(best(w + 2 * d + i, d, &value));
      next[static_cast<size_t>(i)] = value + x[k * d + i];
    }
    score.swap(next);
  }
  T value;
  path[length - 1] = best(w + d, 1, &value);
  for (int64_t k = length - 1; k > 0; --k)
    path[k - 1] = from[static_cast<size_t>(k * d + path[k])];
}

absl::StatusOr<Step> BindDecoding(BindContext* context) {
  Tensor* emission = context->Input("Emission");
  Tensor* transition = context->Input("Transition");
  Tensor* label = context->Input("Label");
  Tensor* path = context->Output("ViterbiPath");
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, emission->shape(), "Emission"));
  if (label != nullptr) PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  if (transition->dtype() != emission->dtype() || r.tags == 0)
    return InvalidArgument(
        "'Transition' is %s %s; 'Emission' is %s %s", Name(transition->dtype()),
        ToString(transition->shape()), Name(emission->dtype()),
        ToString(emission->shape()));
  return DispatchFloat(
      emission->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) -> absl::Status {
          int64_t* out = path->data<int64_t>();
          std::fill(out, out + r.rows, int64_t{0});
          for (int64_t s = 0; s < r.spans.count(); ++s) {
            PD_ASSIGN_OR_RETURN(const Span span, r.spans.At(s));
            if (span.length == 0) continue;
            Decode(emission->data<T>() + span.start * r.tags,
                   transition->data<T>(), span.length, r.tags,
                   out + span.start);
            for (int64_t k = span.start;
                 label != nullptr && k < span.start + span.length; ++k)
              out[k] = LabelAt(*label, k) == out[k] ? 1 : 0;
          }
          return absl::OkStatus();
        });
      });
}

absl::Status InferCrf(InferContext* context) {
  const TensorMeta& emission = context->Input("Emission");
  const bool padded = context->HasInput("Length");
  if (emission.shape.size() != (padded ? 3u : 2u))
    return InvalidArgument(
        "'Emission' has shape %s; expected [N, T, D] with "
        "'Length', [sum of T, D] without",
        ToString(emission.shape));
  const int64_t count =
      padded ? emission.shape[0] : SequenceCount(context->Input("Label").lod);
  context->Share("Emission", "Alpha");
  context->Share("Emission", "EmissionExps");
  context->Share("Transition", "TransitionExps");
  context->SetOutput("LogLikelihood", {count, 1}, emission.dtype);
  return absl::OkStatus();
}

absl::Status InferDecoding(InferContext* context) {
  TensorMeta path = context->Input("Emission");
  const bool padded = context->HasInput("Length");
  if (path.shape.size() != (padded ? 3u : 2u))
    return InvalidArgument(
        "'Emission' has shape %s; expected [N, T, D] with "
        "'Length', [sum of T, D] without",
        ToString(path.shape));
  path.value = nullptr;
  path.dtype = DType::kInt64;
  path.shape.pop_back();
  if (!padded) path.shape.push_back(1);
  context->SetOutput("ViterbiPath", std::move(path));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLinearChainCrf(OpRegistry* registry) {
  OpDef crf("linear_chain_crf");
  crf.Input("Emission").Input("Transition").Input("Label");
  crf.OptionalInput("Length").Output("LogLikelihood");
  crf.IntermediateOutput("Alpha").IntermediateOutput("EmissionExps");
  crf.IntermediateOutput("TransitionExps");
  crf.Infer(InferCrf).Reference(BindCrf);
  crf.Grad(GradSpec{"linear_chain_crf_grad",
                    {"Emission", "Transition", "Label", "Length"},
                    {"Alpha", "EmissionExps", "TransitionExps"},
                    {"LogLikelihood"},
                    {"Emission", "Transition"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(crf)));

  OpDef grad("linear_chain_crf_grad");
  grad.Input("Emission").Input("Transition").Input("Label");
  grad.OptionalInput("Length").Input("Alpha").Input("EmissionExps");
  grad.Input("TransitionExps").Input("LogLikelihood@GRAD");
  grad.OptionalOutput("Emission@GRAD").OptionalOutput("Transition@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindCrfGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef decoding("crf_decoding");
  decoding.Input("Emission").Input("Transition");
  decoding.OptionalInput("Label").OptionalInput("Length");
  decoding.Output("ViterbiPath");
  decoding.Infer(InferDecoding).NoGrad().Reference(BindDecoding);
  return registry->Add(std::move(decoding));
}

}  // namespace pd
