// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_derivatives.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/text.h"
#include "cmd/derivative_matrix.h"
#include "libcore/autodiff/backward.h"
#include "libcore/autodiff/jvp.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/match_feeds.h"

namespace pd {
namespace {

// One of the names that an option lists, "NAME" or "NAME=ARRAY".
struct AskedName {
  std::string name;
  std::string variable;  // of the program
  std::string array;     // of the feed; "" where none is given
};

// A variable's name may hold '=': the last one separates.
AskedName SplitArray(const std::string& part) {
  const size_t at = part.rfind('=');
  if (at == std::string::npos) return {part, "", ""};
  return {part.substr(0, at), "", part.substr(at + 1)};
}

// The names of options, as variables of a program that grows.
class NameReader {
 public:
  explicit NameReader(const DerivativeInput& input) : input_(input) {}

  // A result that later options may name.
  void AddResult(const std::string& name, const std::string& variable) {
    results_.emplace(name, variable);
  }

  // `arrays`: whether a name may have an array of the feed. Without, '=' is
  // part of the name.
  absl::StatusOr<std::vector<AskedName>> Read(const char* option,
                                              const std::string& list,
                                              bool arrays) const {
    std::vector<AskedName> asked;
    std::set<std::string> seen;
    for (const std::string& part : SplitNames(list)) {
      asked.push_back(arrays ? SplitArray(part) : AskedName{part, "", ""});
      AskedName& one = asked.back();
      PD_RETURN_IF_ERROR(Find(option, &one));
      if (!seen.insert(one.variable).second)
        return CommandLineError(
            absl::StrCat(option, " names '", one.name, "' twice"));
      if (!one.array.empty()) PD_RETURN_IF_ERROR(Declare(option, one));
    }
    if (asked.empty())
      return CommandLineError(
          absl::StrCat(option, " '", list, "' names no variable"));
    return asked;
  }

 private:
  ProgramDesc& program() const { return input_.model->program; }

  absl::Status Find(const char* option, AskedName* one) const {
    const auto result = results_.find(one->name);
    if (result != results_.end()) {
      one->variable = result->second;
      return absl::OkStatus();
    }
    auto found = VariablesNamed({one->name}, program(), input_.network);
    if (!found.ok())
      return CommandLineError(
          absl::StrCat(option, ": ", found.status().message()));
    one->variable = found->front();
    const VarDesc* var = program().global().FindVar(one->variable);
    if (var == nullptr) {
      std::vector<std::string> known;
      for (const VarDesc& each : program().global().vars)
        known.push_back(each.name);
      const std::string nearest = Nearest(one->name, known);
      return CommandLineError(absl::StrCat(
          option, ": '", one->name, "' is not a variable of '",
          input_.model->path, "'",
          nearest.empty() ? ""
                          : absl::StrCat("; the nearest is '", nearest, "'")));
    }
    if (var->kind == VarKind::kLodTensor && !IsFloating(var->dtype) &&
        !IsComplex(var->dtype))
      return CommandLineError(
          absl::StrCat(option, ": '", one->name, "' is ", Name(var->dtype),
                       "; expected a variable of floating-point numbers"));
    return absl::OkStatus();
  }

  // The array as a variable of the program, with the dtype of the variable that
  // it is for.
  absl::Status Declare(const char* option, const AskedName& one) const {
    const auto feed = input_.feeds->find(one.array);
    if (feed == input_.feeds->end())
      return CommandLineError(absl::StrCat(option, ": '", one.array, "' for '",
                                           one.name,
                                           "' is no array of the feed"));
    if (program().global().FindVar(one.array) != nullptr)
      return absl::OkStatus();
    VarDesc var = *program().global().FindVar(one.variable);
    const Shape declared = var.shape;
    var.name = one.array;
    var.shape = feed->second.shape;
    var.persistable = var.is_parameter = var.need_check_feed = false;
    var.stop_gradient = true;
    // Where both ranks are known, a vector of another shape is a mistake; rank
    // 0 is another rank in programs before 2.5.
    bool fits = true;
    for (size_t i = 0;
         declared.size() == var.shape.size() && i < declared.size(); ++i)
      fits = fits && (declared[i] < 0 || declared[i] == var.shape[i]);
    if (!fits)
      return CommandLineError(
          absl::StrCat(option, ": '", one.array, "' is ", ToString(var.shape),
                       " and '", one.name, "' is ", ToString(declared)));
    PD_RETURN_IF_ERROR(UsageError(FitDType(var, "", &feed->second)));
    program().global().vars.push_back(std::move(var));
    return absl::OkStatus();
  }

  const DerivativeInput& input_;
  std::map<std::string, std::string> results_;
};

// Holds what is fed against the program, as far as the outputs need it.
absl::Status FitFeedsFor(const EvalOptions& options,
                         const std::vector<AskedName>& outputs,
                         const DerivativeInput& input) {
  std::vector<std::string> names;
  for (const AskedName& output : outputs) names.push_back(output.variable);
  return FitFeedsOf(*input.model, names, options.feed, input.feeds);
}

// --wrt as many times as --grad, or once for all.
absl::StatusOr<std::string> WrtOf(const EvalOptions& options, size_t grad) {
  const size_t given = options.wrt.size();
  if (given != 1 && given != options.grads.size())
    return CommandLineError(absl::StrCat(
        "--wrt is given ", given, " times for ", options.grads.size(),
        " of --grad; expected one, or one for each"));
  return options.wrt[given == 1 ? 0 : grad];
}

class GradientChain {
 public:
  GradientChain(const EvalOptions& options, const DerivativeInput& input)
      : options_(options), input_(input), reader_(input) {}

  absl::StatusOr<NamedFetches> Append() {
    for (size_t i = 0; i < options_.grads.size(); ++i) {
      PD_ASSIGN_OR_RETURN(const std::string wrt, WrtOf(options_, i));
      PD_RETURN_IF_ERROR(AppendOne(options_.grads[i], wrt, i == 0));
    }
    return std::move(fetches_);
  }

 private:
  absl::Status AppendOne(const std::string& grad, const std::string& wrt,
                         bool first) {
    PD_ASSIGN_OR_RETURN(const auto outputs,
                        reader_.Read("--grad", grad, /*arrays=*/true));
    PD_ASSIGN_OR_RETURN(const auto by,
                        reader_.Read("--wrt", wrt, /*arrays=*/false));
    // Later ones need no other arrays than the first.
    if (first) PD_RETURN_IF_ERROR(FitFeedsFor(options_, outputs, input_));
    BackwardOptions backward;
    backward.parameters = false;
    for (const AskedName& output : outputs)
      backward.targets[output.variable] = output.array;
    for (const AskedName& one : by) backward.wrt.push_back(one.variable);
    const auto gradients =
        AppendBackward(input_.registry, backward, &input_.model->program);
    if (!gradients.ok()) return OfModel(*input_.model, gradients.status());
    for (const AskedName& one : by) {
      const auto gradient = gradients->find(one.variable);
      if (gradient == gradients->end())
        return UsageError(
            OfModel(*input_.model, InvalidArgument("'%s' does not depend on "
                                                   "'%s'",
                                                   grad, one.name)));
      AddResult(one.name, gradient->second);
    }
    return absl::OkStatus();
  }

  void AddResult(const std::string& of, const std::string& variable) {
    for (const std::string& name : {variable, absl::StrCat(of, "@GRAD")}) {
      if (!taken_.insert(name).second) continue;
      fetches_.Add(name, variable);
      reader_.AddResult(name, variable);
    }
  }

  const EvalOptions& options_;
  const DerivativeInput& input_;
  NameReader reader_;
  NamedFetches fetches_;
  std::set<std::string> taken_;
};

absl::StatusOr<NamedFetches> AppendJvps(const EvalOptions& options,
                                        const DerivativeInput& input) {
  const NameReader reader(input);
  PD_ASSIGN_OR_RETURN(const auto outputs,
                      reader.Read("--jvp", options.jvp, /*arrays=*/false));
  PD_ASSIGN_OR_RETURN(const auto by, reader.Read("--wrt", options.wrt.front(),
                                                 /*arrays=*/true));
  PD_RETURN_IF_ERROR(FitFeedsFor(options, outputs, input));
  JvpOptions jvp;
  for (const AskedName& output : outputs)
    jvp.outputs.push_back(output.variable);
  for (const AskedName& one : by) jvp.tangents[one.variable] = one.array;
  const auto made = AppendJvp(input.registry, jvp, &input.model->program);
  if (!made.ok()) return OfModel(*input.model, made.status());
  NamedFetches fetches;
  for (const AskedName& output : outputs)
    fetches.Add(absl::StrCat(output.name, "@JVP"), made->at(output.variable));
  return fetches;
}

}  // namespace

bool AsksMatrix(const EvalOptions& options) {
  return !options.jacobian.empty() || !options.hessian.empty();
}

absl::StatusOr<NamedFetches> AppendDerivatives(const EvalOptions& options,
                                               DerivativeInput input) {
  if (!options.jvp.empty()) return AppendJvps(options, input);
  return GradientChain(options, input).Append();
}

absl::StatusOr<NamedArrays> ComputeMatrices(const EvalOptions& options,
                                            DerivativeInput input,
                                            Session* session) {
  const bool hessian = !options.hessian.empty();
  const char* option = hessian ? "--hessian" : "--jacobian";
  const NameReader reader(input);
  PD_ASSIGN_OR_RETURN(
      const auto outputs,
      reader.Read(option, hessian ? options.hessian : options.jacobian,
                  /*arrays=*/false));
  PD_ASSIGN_OR_RETURN(const auto by, reader.Read("--wrt", options.wrt.front(),
                                                 /*arrays=*/false));
  if (hessian && outputs.size() > 1)
    return CommandLineError(absl::StrCat("--hessian names ", outputs.size(),
                                         " outputs; it is of one"));
  PD_RETURN_IF_ERROR(FitFeedsFor(options, outputs, input));
  MatrixInput at{
      input.registry, input.model->program, *input.feeds, session, {},
      options.batched};
  for (const AskedName& one : by) at.wrt.push_back(one.variable);
  NamedArrays matrices;
  for (const AskedName& output : outputs) {
    auto made = hessian ? HessianOf(output.variable, at)
                        : JacobianOf(output.variable, at);
    if (!made.ok()) return OfModel(*input.model, made.status());
    matrices[absl::StrCat(output.name, hessian ? "@HESSIAN" : "@JACOBIAN")] =
        *std::move(made);
  }
  return matrices;
}

}  // namespace pd
