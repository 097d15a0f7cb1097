// SPDX-License-Identifier: Apache-2.0
// Bookkeeping of mixtures of experts (J. He et al., "FastMoE", 2021). A token
// has the number of its expert, or -1; counts are int64.
//   number_count: how many numbers are 0, 1, ..., upper_range - 1
//   assign_pos: the tokens in the order of their experts. cum_count is the sum
//     of the counts up to each expert, eff_num_len how many tokens have one; of
//     an expert's tokens the last one stands first
//   limit_by_capacity: expert_count [n_worker, experts], cut where the workers'
//     counts of an expert exceed its capacity; the first workers go first
//   prune_gate_by_capacity: a token's expert, or -1 once expert_count tokens
//     before it went there
//   random_routing: TopK_Idx, whose second expert is -1 where twice its value
//     is less than Prob
// On a GPU threads race for the order; here it is the order of tokens, one of
// those that may come out there. No gradients.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status ExpectLongs(const InferContext& context, const char* slot) {
  if (context.Input(slot).dtype == DType::kInt64) return absl::OkStatus();
  return InvalidArgument("'%s' is %s; expected int64", slot,
                         Name(context.Input(slot).dtype));
}

absl::Status InferNumberCount(InferContext* context) {
  PD_RETURN_IF_ERROR(ExpectLongs(*context, "numbers"));
  const int64_t range = context->Attr<int32_t>("upper_range");
  if (range < 0)
    return InvalidArgument("attr 'upper_range' is %d; expected 0 or more",
                           range);
  context->SetOutput("Out", {range}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindNumberCount(BindContext* context) {
  Tensor* numbers = context->Input("numbers");
  Tensor* out = context->Output("Out");
  return Step([=](const RunContext&) {
    int64_t* counts = out->data<int64_t>();
    std::fill_n(counts, out->size(), 0);
    for (int64_t i = 0; i < numbers->size(); ++i) {
      const int64_t v = numbers->data<int64_t>()[i];
      if (v >= 0 && v < out->size()) ++counts[v];
    }
    return absl::OkStatus();
  });
}

absl::Status InferAssignPos(InferContext* context) {
  for (const char* slot : {"X", "cum_count", "eff_num_len"})
    PD_RETURN_IF_ERROR(ExpectLongs(*context, slot));
  context->SetOutput("Out", {-1}, DType::kInt64);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindAssignPos(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* sums = context->Input("cum_count");
  Tensor* length = context->Input("eff_num_len");
  Tensor* out = context->Output("Out");
  if (length->size() != 1)
    return InvalidArgument("'eff_num_len' has %d elements; expected 1",
                           length->size());
  return Step([=](const RunContext&) -> absl::Status {
    const int64_t n = *length->data<int64_t>();
    if (n < 0 || n > x->size())
      return OutOfRange("'eff_num_len' is %d; there are %d tokens", n,
                        x->size());
    PD_RETURN_IF_ERROR(CheckIndices("cum_count", *sums, 0, n + 1));
    PD_RETURN_IF_ERROR(CheckIndices("X", *x, -1, sums->size()));
    PD_RETURN_IF_ERROR(out->Resize(DType::kInt64, {n}));
    std::fill_n(out->data<int64_t>(), n, 0);
    std::vector<int64_t> left(sums->data<int64_t>(),
                              sums->data<int64_t>() + sums->size());
    for (int64_t i = 0; i < x->size(); ++i) {
      const int64_t expert = x->data<int64_t>()[i];
      if (expert < 0) continue;
      const int64_t place = --left[static_cast<size_t>(expert)];
      if (place < 0)
        return OutOfRange("'cum_count' counts fewer tokens than expert %d has",
                          expert);
      out->data<int64_t>()[place] = i;
    }
    return absl::OkStatus();
  });
}

absl::Status InferLimit(InferContext* context) {
  for (const char* slot : {"expert_count", "capacity"})
    PD_RETURN_IF_ERROR(ExpectLongs(*context, slot));
  context->Share("expert_count", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindLimit(BindContext* context) {
  Tensor* counts = context->Input("expert_count");
  Tensor* capacity = context->Input("capacity");
  Tensor* out = context->Output("Out");
  const int64_t workers = context->Attr<int32_t>("n_worker");
  const int64_t experts = capacity->size();
  if (workers < 1 || counts->size() % workers != 0 ||
      counts->size() / workers != experts)
    return InvalidArgument(
        "'expert_count' has %d numbers, 'capacity' %d, attr 'n_worker' is %d",
        counts->size(), experts, workers);
  return Step([=](const RunContext&) {
    for (int64_t e = 0; e < experts; ++e) {
      int64_t left = capacity->data<int64_t>()[e];
      for (int64_t w = 0; w < workers; ++w) {
        const int64_t at = w * experts + e;
        const int64_t wanted = counts->data<int64_t>()[at];
        const int64_t taken = std::min(wanted, std::max<int64_t>(left, 0));
        // A negative count takes nothing away.
        left -= std::max<int64_t>(taken, 0);
        out->data<int64_t>()[at] = taken;
      }
    }
    return absl::OkStatus();
  });
}

absl::Status InferPruneGate(InferContext* context) {
  for (const char* slot : {"GateIdx", "ExpertCount"})
    PD_RETURN_IF_ERROR(ExpectLongs(*context, slot));
  context->Share("GateIdx", "NewGateIdx");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindPruneGate(BindContext* context) {
  Tensor* gate = context->Input("GateIdx");
  Tensor* counts = context->Input("ExpertCount");
  Tensor* out = context->Output("NewGateIdx");
  int64_t experts = 0;
  if (__builtin_mul_overflow(context->Attr<int64_t>("n_expert"),
                             context->Attr<int64_t>("n_worker"), &experts) ||
      experts != counts->size())
    return InvalidArgument(
        "'ExpertCount' has %d numbers; attrs 'n_expert' and 'n_worker' are %d "
        "and %d",
        counts->size(), context->Attr<int64_t>("n_expert"),
        context->Attr<int64_t>("n_worker"));
  Tensor* left = context->Scratch(counts->bytes());
  return Step([=](const RunContext&) -> absl::Status {
    PD_RETURN_IF_ERROR(CheckIndices("GateIdx", *gate, -1, counts->size()));
    std::copy_n(counts->data<int64_t>(), counts->size(), left->data<int64_t>());
    for (int64_t i = 0; i < gate->size(); ++i) {
      const int64_t expert = gate->data<int64_t>()[i];
      int64_t to = -1;
      if (expert >= 0 && left->data<int64_t>()[expert] > 0) {
        --left->data<int64_t>()[expert];
        to = expert;
      }
      out->data<int64_t>()[i] = to;
    }
    return absl::OkStatus();
  });
}

absl::Status InferRouting(InferContext* context) {
  const Shape& index = context->Input("TopK_Idx").shape;
  PD_RETURN_IF_ERROR(ExpectLongs(*context, "TopK_Idx"));
  if (index.size() != 2 || (index[1] >= 0 && index[1] != 2))
    return InvalidArgument("'TopK_Idx' has shape %s; expected [tokens, 2]",
                           ToString(index));
  context->Share("TopK_Idx", "Out");
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRouting(BindContext* context) {
  Tensor* prob = context->Input("Prob");
  Tensor* value = context->Input("TopK_Value");
  Tensor* index = context->Input("TopK_Idx");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "TopK_Value", prob->dtype(), index->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Prob", prob->dtype(), index->dim(0)));
  return DispatchFloat(prob->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      for (int64_t i = 0; i < index->dim(0); ++i) {
        const int64_t* from = index->data<int64_t>() + 2 * i;
        int64_t* to = out->data<int64_t>() + 2 * i;
        to[0] = from[0];
        to[1] = T(2) * value->data<T>()[2 * i + 1] < prob->data<T>()[i]
                    ? -1
                    : from[1];
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterExpertCounts(OpRegistry* registry) {
  OpDef count("number_count"), pos("assign_pos"), limit("limit_by_capacity"),
      prune("prune_gate_by_capacity"), routing("random_routing");
  count.Input("numbers").Output("Out");
  count.RequiredAttr("upper_range", AttrType::kInt);
  count.Infer(InferNumberCount).Reference(BindNumberCount);

  pos.Input("X").Input("cum_count").Input("eff_num_len").Output("Out");
  pos.Infer(InferAssignPos).ShapeFromData().Reference(BindAssignPos);

  limit.Input("expert_count").Input("capacity").Output("Out");
  limit.RequiredAttr("n_worker", AttrType::kInt);
  limit.Infer(InferLimit).Reference(BindLimit);

  prune.Input("GateIdx").Input("ExpertCount").Output("NewGateIdx");
  prune.Attr("n_expert", int64_t{0}).Attr("n_worker", int64_t{0});
  prune.Infer(InferPruneGate).Reference(BindPruneGate);

  routing.Input("Prob").Input("TopK_Value").Input("TopK_Idx").Output("Out");
  routing.Infer(InferRouting).Reference(BindRouting);
  for (OpDef* op : {&count, &pos, &limit, &prune, &routing}) {
    op->NoGrad();
    PD_RETURN_IF_ERROR(registry->Add(std::move(*op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
