// SPDX-License-Identifier: Apache-2.0
// Ops that PaddlePaddle's inference passes fuse several sequence ops into. None
// has a gradient.
//   fusion_seqpool_concat: sequence_pool of each X[i] by SUM, AVERAGE or SQRT,
//     side by side; Out has a LoD of sequences of one row
//   fusion_seqpool_cvm_concat: the same, and of each part the first two
//     columns, shows s and clicks c, become log(s + 1) and
//     log(c + 1) - log(s + 1)
//   fusion_seqexpand_concat_fc: act([X[0], X[1], ...] * FCWeight + FCBias),
//     where X[1], ... have one row for each sequence of X[0]
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/gru_cell.h"
#include "libcore/ops/recurrent/rnn_activation.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status CheckPooling(const OpDesc& op) {
  const std::string pool = op.Attr<std::string>("pooltype");
  if (pool != "SUM" && pool != "AVERAGE" && pool != "SQRT")
    return InvalidArgument(
        "attr 'pooltype' is '%s'; expected SUM, AVERAGE or SQRT", pool);
  const int32_t axis = op.Attr<int32_t>("axis");
  if (axis != 1) return InvalidArgument("attr 'axis' is %d; expected 1", axis);
  if (!op.AttrOr("use_cvm", true))
    return InvalidArgument("attr 'use_cvm' is false; expected true");
  return absl::OkStatus();
}

absl::Status InferPoolConcat(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckPooling(context->op()));
  const TensorMeta& first = context->Input("X");
  const int64_t parts = static_cast<int64_t>(context->InputCount("X"));
  std::optional<Offsets> offsets;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    PD_ASSIGN_OR_RETURN(const auto own, KnownSequences(x, "X"));
    if (x.shape.size() != 2 || x.dtype != first.dtype ||
        (x.shape[1] >= 0 && first.shape[1] >= 0 &&
         x.shape[1] != first.shape[1]))
      return InvalidArgument(
          "X[0] is %s %s, X[%d] is %s %s; expected matrices of one width",
          Name(first.dtype), ToString(first.shape), i, Name(x.dtype),
          ToString(x.shape));
    if (!offsets.has_value()) offsets = own;
    if (own.has_value() && own->size() != offsets->size())
      return InvalidArgument("X[0] has %d sequences, X[%d] has %d",
                             offsets->size() - 1, i, own->size() - 1);
  }
  TensorMeta out;
  out.dtype = first.dtype;
  out.shape = {-1, first.shape[1] < 0 ? -1 : first.shape[1] * parts};
  out.lod_level = 1;
  if (offsets.has_value()) {
    out.shape[0] = static_cast<int64_t>(offsets->size()) - 1;
    Offsets ones;
    for (size_t i = 0; i < offsets->size(); ++i)
      ones.push_back(static_cast<int64_t>(i));
    out.SetLoD(OneLevel(ones));
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

// Row i of `to`, whose rows are `stride` apart: the pooled sequence i.
template <typename T>
void PoolInto(const Tensor& x, const Offsets& offsets, const std::string& pool,
              int64_t stride, T* to) {
  const int64_t width = x.dim(1);
  for (size_t i = 0; i + 1 < offsets.size(); ++i, to += stride) {
    const int64_t rows = offsets[i + 1] - offsets[i];
    T factor = T(1);
    if (pool == "AVERAGE" && rows > 0) factor = T(1) / static_cast<T>(rows);
    if (pool == "SQRT" && rows > 0)
      factor = T(1) / std::sqrt(static_cast<T>(rows));
    std::fill_n(to, width, T(0));
    for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r)
      for (int64_t k = 0; k < width; ++k) to[k] += x.data<T>()[r * width + k];
    for (int64_t k = 0; k < width; ++k) to[k] *= factor;
  }
}

absl::StatusOr<Step> BindPoolConcat(BindContext* context) {
  const bool cvm = context->op().type == "fusion_seqpool_cvm_concat";
  const auto pool = context->Attr<std::string>("pooltype");
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> inputs;
  std::vector<Offsets> offsets;
  const size_t count = context->InputCount("X");
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(context->Input("X", i));
    PD_ASSIGN_OR_RETURN(offsets.emplace_back(), SequencesOf(inputs[i], "X"));
    if (static_cast<int64_t>(offsets[i].size()) - 1 != out->dim(0))
      return InvalidArgument("X[%d] has %d sequences; X[0] has %d", i,
                             offsets[i].size() - 1, out->dim(0));
  }
  const int64_t width = inputs[0]->dim(1);
  if (cvm && width < 2)
    return InvalidArgument("'X' has rows of %d; expected 2 or more", width);
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t stride = width * static_cast<int64_t>(count);
      for (size_t i = 0; i < count; ++i) {
        T* to = out->data<T>() + static_cast<int64_t>(i) * width;
        PoolInto<T>(*inputs[i], offsets[i], pool, stride, to);
        for (int64_t r = 0; cvm && r < out->dim(0); ++r, to += stride) {
          to[0] = std::log(to[0] + T(1));
          to[1] = std::log(to[1] + T(1)) - to[0];
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferExpandFc(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& w = context->Input("FCWeight");
  PD_RETURN_IF_ERROR(KnownSequences(x, "X").status());
  if (context->InputCount("X") < 2 || x.shape.size() != 2 ||
      w.shape.size() != 2)
    return InvalidArgument(
        "there are %d inputs; X[0] has shape %s, 'FCWeight' %s; expected 2 or "
        "more matrices",
        context->InputCount("X"), ToString(x.shape), ToString(w.shape));
  TensorMeta out = x;
  out.value = nullptr;
  out.shape[1] = w.shape[1];
  context->SetOutput("Out", std::move(out));
  context->SetOutput(
      "FCOut",
      {context->Input("X", 1).shape.empty() ? -1
                                            : context->Input("X", 1).shape[0],
       w.shape[1]},
      x.dtype);
  return absl::OkStatus();
}

// X[0] * its rows of the weight, and for each sequence the sum of the other
// products, [sequences, n].
template <typename T>
void Products(const std::vector<Tensor*>& inputs, const Tensor& weight, T* out,
              T* others, T* product) {
  const int64_t n = weight.dim(1);
  const T* w = weight.data<T>();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t rows = inputs[i]->dim(0), width = inputs[i]->dim(1);
    T* to = i == 0 ? out : i == 1 ? others : product;
    Gemm<T>({rows, n, width}, OneGemm(), T(1), inputs[i]->data<T>(), w, to);
    for (int64_t k = 0; i > 1 && k < rows * n; ++k) others[k] += product[k];
    w += width * n;
  }
}

absl::StatusOr<Step> BindExpandFc(BindContext* context) {
  Tensor* weight = context->Input("FCWeight");
  Tensor* bias = context->Input("FCBias");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const RnnActivation activation,
                      ActivationAttr(context->op(), "fc_activation"));
  PD_ASSIGN_OR_RETURN(const Offsets offsets,
                      SequencesOf(context->Input("X"), "X"));
  const int64_t count = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t n = weight->dim(1);
  std::vector<Tensor*> inputs;
  int64_t width = 0;
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    inputs.push_back(x);
    if (x->rank() != 2 || x->dtype() != out->dtype() ||
        (i > 0 && x->dim(0) != count))
      return InvalidArgument("X[%d] is %s %s; expected %s [%d, width]", i,
                             Name(x->dtype()), ToString(x->shape()),
                             Name(out->dtype()), count);
    width += x->dim(1);
  }
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "FCWeight", out->dtype(), {width, n}));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "FCBias", out->dtype(), n));
  Tensor* scratch = context->Scratch(static_cast<size_t>(2 * count * n) *
                                     SizeOf(out->dtype()));
  return DispatchFloat(out->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* result = out->data<T>();
      T* others = scratch->data<T>();
      Products(inputs, *weight, result, others, others + count * n);
      if (bias != nullptr) AddRowBias(count, n, bias->data<T>(), others);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t r = offsets[static_cast<size_t>(i)];
             r < offsets[static_cast<size_t>(i) + 1]; ++r)
          for (int64_t k = 0; k < n; ++k)
            result[r * n + k] =
                Activate(activation, result[r * n + k] + others[i * n + k]);
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterFusionSequence(OpRegistry* registry) {
  for (const std::string type :
       {"fusion_seqpool_concat", "fusion_seqpool_cvm_concat"}) {
    OpDef op(type);
    op.Inputs("X").Output("Out").Attr("pooltype", std::string("SUM"));
    op.Attr("axis", int32_t{1});
    if (type == "fusion_seqpool_cvm_concat")
      op.Input("CVM").Attr("use_cvm", true);
    op.Infer(InferPoolConcat).NoGrad().Reference(BindPoolConcat);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef op("fusion_seqexpand_concat_fc");
  op.Inputs("X").Input("FCWeight").OptionalInput("FCBias").Output("Out");
  op.IntermediateOutput("FCOut");
  op.Attr("fc_activation", std::string("identity"));
  op.Infer(InferExpandFc).NoGrad().Reference(BindExpandFc);
  return registry->Add(std::move(op));
}

}  // namespace pd
