// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/judge_builder.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/build.h"
#include "libcore/nn/row_counts.h"
#include "libcore/program/block_builder.h"

namespace pd {

template <typename Part>
absl::StatusOr<std::string> JudgeBuilder::Judged(const Part& part,
                                                 const char* what) const {
  if (!part.has_input()) {
    if (outputs_ == 1) return parts_.built->outputs[0];
    return job_.At(InvalidArgument("the model has %d outputs; say with "
                                   "'input' which one the %s takes",
                                   outputs_, what),
                   part);
  }
  auto found = names_.FindTensor(part.input(), absl::StrCat("the ", what));
  if (!found.ok()) return job_.At(found.status(), part, "input");
  return found->variable;
}

absl::Status JudgeBuilder::DeclareLabel(const std::string& name,
                                        const AnswerSpec& spec) {
  if (parts_.main->FindVar(name) != nullptr) return absl::OkStatus();
  VarDesc var;
  var.name = name;
  var.dtype = spec.dtype;
  var.shape = spec.shape;
  var.need_check_feed = true;
  var.stop_gradient = true;
  parts_.main->AddVar(var);
  parts_.built->labels.push_back(std::move(var));
  return absl::OkStatus();
}

absl::StatusOr<std::string> JudgeBuilder::FindField(const std::string& name,
                                                    const AnswerSpec& spec) {
  if (const LayerInput* own = names_.OwnOrInside(name); own != nullptr)
    return own->variable;
  PD_RETURN_IF_ERROR(DeclareLabel(name, spec));
  if (parts_.main->FindVar(name)->need_check_feed) return name;
  return InvalidArgument("'%s' is a parameter, not a field or layer", name);
}

absl::Status JudgeBuilder::BuildLosses() {
  std::vector<std::string> losses;
  const auto& all = job_.proto().loss();
  for (int i = 0; i < all.size(); ++i) {
    if (!InThisForm(all[i], parts_)) continue;
    PD_ASSIGN_OR_RETURN(const std::string input, Judged(all[i], "loss"));
    const auto find = [this](const std::string& name, const AnswerSpec& spec) {
      return FindField(name, spec);
    };
    auto value = BuildLoss(all[i], i, input, find, parts_);
    if (!value.ok()) return job_.At(value.status(), all[i]);
    losses.push_back(*value);
    parts_.built->losses.emplace_back(i, *value);
  }
  if (losses.empty())
    return all.empty()
               ? absl::OkStatus()
               : job_.At(InvalidArgument("no loss is left where 'when' leaves "
                                         "them out; at least one must be"),
                         all[0]);
  parts_.built->loss = losses[0];
  if (losses.size() == 1) return absl::OkStatus();
  OpDesc op;
  op.type = "sum";
  op.SetInput("X", losses);
  parts_.built->loss = parts_.main->UniqueTemporary("sum");
  op.SetOutput("Out", {parts_.built->loss});
  return job_.At(parts_.main->Append(std::move(op)), job_.proto().loss(0));
}

absl::StatusOr<std::string> JudgeBuilder::LabelOf(
    const job::Metric& metric) const {
  const LayerInput* own = names_.OwnOrInside(metric.label());
  // An input of the network is fed from the field of its name.
  if (own == nullptr || own->variable == metric.label()) return std::string();
  auto found = names_.FindTensor(metric.label(), "the metric");
  if (!found.ok()) return job_.At(found.status(), metric, "label");
  return found->variable;
}

absl::Status JudgeBuilder::BuildMetric(const job::Metric& metric) {
  MetricInputs inputs;
  PD_ASSIGN_OR_RETURN(inputs.input, Judged(metric, "metric"));
  PD_ASSIGN_OR_RETURN(inputs.label, LabelOf(metric));
  const LayerInput* lengths = names_.OwnOrInside(metric.input_length());
  if (metric.has_input_length() && lengths != nullptr)
    inputs.input_length = lengths->variable;
  // Rows of several images say themselves how many each has.
  if (!metric.has_input_length() && metric.has_mean_average_precision())
    inputs.input_length = RowCountsOf(parts_.built->main, inputs.input);
  parts_.built->metrics.push_back(std::move(inputs));
  return absl::OkStatus();
}

}  // namespace pd
