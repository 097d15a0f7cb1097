// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/loop.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/outer_names.h"

namespace pd {
namespace {

OpDesc AssignOp(const std::string& from, const std::string& to) {
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {from});
  op.SetOutput("Out", {to});
  return op;
}

}  // namespace

absl::Status CheckCondition(const std::string& variable,
                            const std::string& called, const LayerContext& c) {
  const Shape& shape = c.ShapeOf(variable);
  const bool one = std::all_of(shape.begin(), shape.end(), [](int64_t extent) {
    return extent == 1 || extent < 0;
  });
  if (c.TypeOf(variable) == DType::kBool && one) return absl::OkStatus();
  return InvalidArgument(
      "%s is %s%s; expected one bool, as a comparison of "
      "numbers [1] gives it",
      called, Name(c.TypeOf(variable)), ToString(shape));
}

absl::Status AppendBlockOp(OpDesc op, int32_t block, const char* reads,
                           const char* writes, const char* scopes,
                           LayerContext* c) {
  std::set<std::string> own;
  for (const auto& [slot, names] : op.inputs)
    own.insert(names.begin(), names.end());
  OpDesc inside;
  inside.attrs["sub_block"] = BlockRef{block};
  const OuterNames outer = OuterNamesOf(*c->main()->program(), inside);
  std::vector<std::string> read;
  for (const std::string& name : outer.reads)
    if (own.count(name) == 0) read.push_back(name);
  op.SetInput(reads, std::move(read));
  op.SetOutput(writes, std::vector<std::string>(outer.writes.begin(),
                                                outer.writes.end()));
  VarDesc kept;
  kept.name = c->main()->UniqueTemporary(op.type);
  kept.kind = VarKind::kStepScopes;
  op.SetOutput(scopes, {kept.name});
  c->main()->AddVar(std::move(kept));
  op.attrs["sub_block"] = BlockRef{block};
  return c->main()->Append(std::move(op));
}

absl::StatusOr<std::string> Loop::Copy(const std::string& x) {
  return c_->Unary("assign", x);
}

absl::StatusOr<std::string> Loop::Add(const std::string& first,
                                      std::string called) {
  PD_ASSIGN_OR_RETURN(std::string name, Copy(first));
  variables_.push_back({name, std::move(called)});
  return name;
}

absl::StatusOr<bool> Loop::Fits(const Run& run,
                                std::vector<Shape>* open) const {
  if (run.values.size() != variables_.size())
    return InvalidArgument(
        "a run of the loop gives %d values; the loop has %d variables",
        run.values.size(), variables_.size());
  bool fits = true;
  open->clear();
  for (size_t i = 0; i < variables_.size(); ++i) {
    const std::string& name = variables_[i].name;
    Shape shape = c_->ShapeOf(name);
    const Shape& next = c_->ShapeOf(run.values[i]);
    if (c_->TypeOf(name) != c_->TypeOf(run.values[i]) ||
        shape.size() != next.size())
      return InvalidArgument(
          "%s is %s%s before a run of the loop and %s%s after it; it keeps its "
          "element type and rank",
          variables_[i].called, Name(c_->TypeOf(name)), ToString(shape),
          Name(c_->TypeOf(run.values[i])), ToString(next));
    for (size_t k = 0; k < shape.size(); ++k) {
      if (shape[k] < 0 || shape[k] == next[k]) continue;
      shape[k] = -1;
      fits = false;
    }
    open->push_back(std::move(shape));
  }
  return fits;
}

// The body may give one variable as another's new value: all are read before
// any is written.
absl::Status Loop::Assign(const Run& run) {
  std::vector<std::string> values = run.values;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool other = std::any_of(
        variables_.begin(), variables_.end(), [&](const Variable& v) {
          return v.name == values[i] && v.name != variables_[i].name;
        });
    if (!other) continue;
    PD_ASSIGN_OR_RETURN(values[i], Copy(values[i]));
  }
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != variables_[i].name)
      PD_RETURN_IF_ERROR(
          c_->main()->Append(AssignOp(values[i], variables_[i].name)));
  return c_->main()->Append(AssignOp(run.condition, condition_));
}

absl::Status Loop::Build(const std::string& condition,
                         const std::function<absl::StatusOr<Run>()>& body) {
  BlockBuilder* main = c_->main();
  PD_ASSIGN_OR_RETURN(condition_, Copy(condition));
  for (;;) {
    main->Enter();
    std::vector<Shape> open;
    absl::StatusOr<Run> run = body();
    absl::StatusOr<bool> fits =
        run.ok() ? Fits(*run, &open) : absl::StatusOr<bool>(run.status());
    if (fits.ok() && *fits) {
      const absl::Status assigned = Assign(*run);
      if (!assigned.ok()) fits = assigned;
    }
    if (fits.ok() && *fits) break;
    main->Drop();
    if (!fits.ok()) return fits.status();
    for (size_t i = 0; i < variables_.size(); ++i)
      main->MutableVar(variables_[i].name)->shape = open[i];
  }
  const int32_t block = main->block_index();
  main->Leave();
  OpDesc op;
  op.type = "while";
  op.SetInput("Condition", {condition_});
  op.attrs["is_test"] = false;
  return AppendBlockOp(std::move(op), block, "X", "Out", "StepScopes", c_);
}

}  // namespace pd
