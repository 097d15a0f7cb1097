// SPDX-License-Identifier: Apache-2.0
// Updates that treat every element of a parameter alike. A rule says which
// states it keeps and what becomes of one element:
//
//   struct Adagrad : UpdateRule {
//     static constexpr std::array<StateSlot, 1> kStates = {
//         {{"Moment", "MomentOut"}}};
//     explicit Adagrad(BindContext* context) : ...
//     template <typename M>
//     M operator()(M p, M g, M rate, std::array<M, 1>* states) const;
//   };
//
// A rule whose numbers change from run to run (adam) has kPerRun and instead
//     template <typename M>
//     auto Formula(double rate) const;  // -> M (M p, M g, array* states)
//
// A gradient of selected rows is summed row by row first. Then either the
// rows that are there are updated and the others left alone, or all rows, with
// gradient 0 for the others: SparseUse, as PaddlePaddle does for each update.
#ifndef PD_LIBCORE_OPS_OPTIMIZER_RULE_UPDATE_H_
#define PD_LIBCORE_OPS_OPTIMIZER_RULE_UPDATE_H_

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/optimizer/update.h"

namespace pd {

struct StateSlot {
  const char *in, *out;
};

enum class SparseUse { kItsRows, kEveryRow };

/// The defaults of a rule.
struct UpdateRule {
  static constexpr bool kPerRun = false;
  SparseUse sparse = SparseUse::kEveryRow;
  /// The learning rate as `operator()` gets it.
  double Rate(double rate) const { return rate; }
};

namespace rule_internal {

constexpr int64_t kSparseGrain = 2048;  // elements of rows

template <typename Rule>
struct Bound {
  static constexpr size_t kCount = Rule::kStates.size();
  UpdatedParam p = {};
  std::array<UpdatedState, kCount> states = {};
  Rule rule;
  int64_t width = 1;       // elements of a row, for selected rows
  Tensor* sums = nullptr;  // the rows' sums, or the gradient made dense
  std::shared_ptr<RowOrder> order = nullptr;
};

// Elements [begin, end) of the parameter; grad[0] belongs to `begin`.
template <typename T, typename G, typename M, typename Rule, typename Formula>
void UpdateRange(const Bound<Rule>& b, const Formula& formula, const G* grad,
                 int64_t begin, int64_t end) {
  constexpr size_t kCount = Bound<Rule>::kCount;
  const T* param = b.p.param->template data<T>();
  T* param_out = b.p.param_out->template data<T>();
  const M* master =
      b.p.master != nullptr ? b.p.master->template data<M>() : nullptr;
  M* master_out =
      b.p.master != nullptr ? b.p.master_out->template data<M>() : nullptr;
  std::array<const M*, kCount> in{};
  std::array<M*, kCount> out{};
  for (size_t s = 0; s < kCount; ++s) {
    in[s] = b.states[s].in->template data<M>();
    out[s] = b.states[s].out->template data<M>();
  }
  for (int64_t i = begin; i < end; ++i) {
    std::array<M, kCount> state{};
    for (size_t s = 0; s < kCount; ++s) state[s] = in[s][i];
    const M p = master != nullptr ? master[i] : static_cast<M>(param[i]);
    const M next = formula(p, static_cast<M>(grad[i - begin]), &state);
    for (size_t s = 0; s < kCount; ++s) out[s][i] = state[s];
    param_out[i] = static_cast<T>(next);
    if (master_out != nullptr) master_out[i] = next;
  }
}

template <typename Rule>
void CopyAll(const Bound<Rule>& b) {
  CopyUnlessSame(b.p.param, b.p.param_out);
  if (b.p.master != nullptr) CopyUnlessSame(b.p.master, b.p.master_out);
  for (const UpdatedState& state : b.states)
    CopyUnlessSame(state.in, state.out);
}

template <typename T, typename G, typename M, typename Rule, typename Formula>
absl::Status UpdateByRows(const Bound<Rule>& b, const Formula& formula) {
  const Tensor& grad = *b.p.grad;
  PD_RETURN_IF_ERROR(CheckRows("Grad", grad, b.p.param->dim(0)));
  M* sums = b.sums->template data<M>();
  if (b.rule.sparse == SparseUse::kItsRows || grad.rows().empty()) {
    CopyAll(b);
    b.order->Sort(grad.rows());
    SumRows<G>(grad, *b.order, sums);
    // Each row is there once. Rows lie far apart: it is the memory that takes
    // the time, so even few are worth a thread.
    ParallelFor(static_cast<int64_t>(b.order->size()),
                1 + kSparseGrain / (b.width + 8),
                [&](int64_t begin, int64_t end) {
                  for (int64_t k = begin; k < end; ++k) {
                    const int64_t row = b.order->row(static_cast<size_t>(k));
                    UpdateRange<T, M, M>(b, formula, sums + k * b.width,
                                         row * b.width, (row + 1) * b.width);
                  }
                });
    return absl::OkStatus();
  }
  const int64_t n = b.p.param->size();
  std::fill(sums, sums + n, M(0));
  AddRows<G>(grad, sums);
  ParallelFor(n, kUpdateGrain, [&](int64_t begin, int64_t end) {
    UpdateRange<T, M, M>(b, formula, static_cast<const M*>(sums) + begin, begin,
                         end);
  });
  return absl::OkStatus();
}

// The update formula of one element in this run.
template <typename M, typename Rule>
auto FormulaOf(const Rule& rule, double rate) {
  if constexpr (Rule::kPerRun)
    return rule.template Formula<M>(rate);
  else
    return [rule, rate = static_cast<M>(rule.Rate(rate))](
               M p, M g, auto* states) { return rule(p, g, rate, states); };
}

template <typename T, typename G, typename M, typename Rule>
absl::Status Update(const Bound<Rule>& b) {
  const auto formula = FormulaOf<M>(b.rule, ScalarOf(*b.p.rate));
  if (IsSelectedRows(b.p.grad)) return UpdateByRows<T, G, M>(b, formula);
  const G* grad = b.p.grad->template data<G>();
  ParallelFor(b.p.param->size(), kUpdateGrain, [&](int64_t begin, int64_t end) {
    UpdateRange<T, G, M>(b, formula, grad + begin, begin, end);
  });
  return absl::OkStatus();
}

}  // namespace rule_internal

/// Scratch for the sums of `param`'s gradient in its states' dtype: as many
/// elements as the gradient has, or as the parameter.
inline Tensor* SparseScratch(BindContext* context, const UpdatedParam& param,
                             SparseUse use) {
  const Tensor* like = use == SparseUse::kItsRows ? param.grad : param.param;
  return context->Scratch(static_cast<size_t>(like->size() + 1) *
                          SizeOf(StateType(param.param->dtype())));
}

/// Binds the i-th parameter of an op that updates it by `rule`.
template <typename Rule>
absl::StatusOr<Step> BindRule(BindContext* context, const Rule& rule,
                              size_t i = 0) {
  rule_internal::Bound<Rule> b = {{}, {}, rule};
  PD_ASSIGN_OR_RETURN(b.p, ReadUpdatedParam(context, i));
  for (size_t s = 0; s < b.states.size(); ++s) {
    PD_ASSIGN_OR_RETURN(b.states[s],
                        ReadUpdatedState(context, b.p, Rule::kStates[s].in,
                                         Rule::kStates[s].out, i));
  }
  if (IsSelectedRows(b.p.grad)) {
    b.width = RowWidth(*b.p.grad);
    b.order = std::make_shared<RowOrder>();
    b.sums = SparseScratch(context, b.p, rule.sparse);
  }
  return DispatchUpdate(
      b.p, [&](auto param, auto grad, auto state) -> absl::StatusOr<Step> {
        using T = typename decltype(param)::type;
        using G = typename decltype(grad)::type;
        using M = typename decltype(state)::type;
        return Step([b](const RunContext&) {
          return rule_internal::Update<T, G, M>(b);
        });
      });
}

/// For OpDef::Reference: a rule that is made from the context.
template <typename Rule>
absl::StatusOr<Step> BindRuleOf(BindContext* context) {
  return BindRule(context, Rule(context));
}

/// The same for lists of parameters.
template <typename Rule>
absl::StatusOr<Step> BindMergedRuleOf(BindContext* context) {
  std::vector<Step> steps;
  for (size_t i = 0; i < context->InputCount("Param"); ++i) {
    PD_ASSIGN_OR_RETURN(Step step, BindRule(context, Rule(context), i));
    steps.push_back(std::move(step));
  }
  return UpdateAll(std::move(steps));
}

/// Every output of the rule gets its input's meta.
template <typename Rule>
absl::Status InferRule(InferContext* context) {
  context->Share("Param", "ParamOut");
  if (context->HasInput("MasterParam") && context->HasOutput("MasterParamOut"))
    context->Share("MasterParam", "MasterParamOut");
  for (const StateSlot& slot : Rule::kStates) context->Share(slot.in, slot.out);
  return absl::OkStatus();
}

/// The same for lists; their outputs are called like their inputs, and "Out".
template <typename Rule>
absl::Status InferMergedRule(InferContext* context) {
  PD_RETURN_IF_ERROR(InferUpdate(context, {"Param", "MasterParam"}));
  for (const StateSlot& slot : Rule::kStates)
    PD_RETURN_IF_ERROR(InferUpdate(context, {slot.in}));
  return absl::OkStatus();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_OPTIMIZER_RULE_UPDATE_H_
