// SPDX-License-Identifier: Apache-2.0
// Sequences of ids [rows, 1]; neither op has a gradient.
//   sequence_enumerate: Out[r] = X[r], X[r + 1], ..., `win_size` of them, with
//     `pad_value` after the end of the sequence
//   sequence_erase: X without the ids that are among `tokens`
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status CheckIds(const TensorMeta& x) {
  if (x.dtype != DType::kInt32 && x.dtype != DType::kInt64)
    return InvalidArgument("'X' is %s; expected int32 or int64", Name(x.dtype));
  if (x.shape.size() != 2 || (x.shape[1] != 1 && x.shape[1] != -1))
    return InvalidArgument("'X' has shape %s; expected [rows, 1]",
                           ToString(x.shape));
  return absl::OkStatus();
}

absl::Status InferEnumerate(InferContext* context) {
  TensorMeta out = context->Input("X");
  PD_RETURN_IF_ERROR(CheckIds(out));
  PD_RETURN_IF_ERROR(KnownSequences(out, "X").status());
  const int64_t window = context->Attr<int32_t>("win_size");
  if (window < 1)
    return InvalidArgument("attr 'win_size' is %d; expected 1 or more", window);
  out.value = nullptr;
  out.shape[1] = window;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindEnumerate(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t window = context->Attr<int32_t>("win_size");
  const int32_t pad = context->Attr<int32_t>("pad_value");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  return DispatchTypes<int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const T* in = x->data<T>();
          T* result = out->data<T>();
          for (size_t i = 0; i + 1 < offsets.size(); ++i)
            for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r)
              for (int64_t k = 0; k < window; ++k)
                result[r * window + k] =
                    r + k < offsets[i + 1] ? in[r + k] : static_cast<T>(pad);
          return absl::OkStatus();
        });
      });
}

absl::Status InferErase(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(CheckIds(x));
  PD_RETURN_IF_ERROR(KnownSequences(x, "X", SIZE_MAX).status());
  TensorMeta out = WithRows(x, -1);
  out.shape[1] = 1;
  out.lod_level = x.lod_level;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindErase(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const auto& tokens = context->Attr<std::vector<int32_t>>("tokens");
  PD_ASSIGN_OR_RETURN(const Offsets offsets, SequencesOf(x, "X"));
  if (x->size() != x->dim(0))
    return InvalidArgument("'X' has shape %s; expected [rows, 1]",
                           ToString(x->shape()));
  return DispatchTypes<
      int32_t, int64_t>(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, tokens, offsets](const RunContext&) {
      std::vector<T> kept;
      LoD lod = x->lod();
      for (size_t i = 0; i + 1 < offsets.size(); ++i) {
        for (int64_t r = offsets[i]; r < offsets[i + 1]; ++r) {
          const T id = x->data<T>()[r];
          if (std::find(tokens.begin(), tokens.end(), id) == tokens.end())
            kept.push_back(id);
        }
        lod.back()[i + 1] = kept.size();
      }
      PD_RETURN_IF_ERROR(out->Resize({static_cast<int64_t>(kept.size()), 1}));
      out->set_lod(std::move(lod));
      std::copy(kept.begin(), kept.end(), out->data<T>());
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterSequenceIds(OpRegistry* registry) {
  OpDef enumerate("sequence_enumerate");
  enumerate.Input("X").Output("Out").Attr("pad_value", int32_t{0});
  enumerate.RequiredAttr("win_size", AttrType::kInt);
  enumerate.Infer(InferEnumerate).NoGrad().Reference(BindEnumerate);
  PD_RETURN_IF_ERROR(registry->Add(std::move(enumerate)));

  OpDef erase("sequence_erase");
  erase.Input("X").Output("Out").RequiredAttr("tokens", AttrType::kInts);
  erase.Infer(InferErase).ShapeFromData().NoGrad().Reference(BindErase);
  return registry->Add(std::move(erase));
}

}  // namespace pd
