// SPDX-License-Identifier: Apache-2.0
// Exemptions from checks for NaN and Inf: PaddlePaddle's PADDLE_INF_NAN_SKIP_*
// variables, and infinities that a model uses on purpose.
#ifndef PD_LIBCORE_EXEC_NAN_RULES_H_
#define PD_LIBCORE_EXEC_NAN_RULES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"

namespace pd {

class NanRules {
 public:
  /// The rules of PADDLE_INF_NAN_SKIP_OP, _ROLE and _VAR. InvalidArgument names
  /// the environment variable and its format.
  static absl::StatusOr<NanRules> FromEnvironment();

  // Lists are separated by commas; each call replaces the list of the last one.
  /// Op types, compared whole: "mul,softmax_with_cross_entropy".
  void SkipOps(const std::string& list);
  /// forward, backward, optimize, rpc, dist, lrsched, loss or default.
  absl::Status SkipRoles(const std::string& list);
  /// "OP:VAR": the op type whole, any part of the variable's name.
  absl::Status SkipVariables(const std::string& list);
  /// "OP" or "OP:VAR", where OP may be "*": infinities are allowed there (a
  /// mask that softmax reads), NaN is not.
  void AllowInfinities(const std::string& list);

  /// Confines quick checks to these variables; null: all are checked.
  void Watch(std::function<bool(const std::string& variable)> watched) {
    watched_ = std::move(watched);
  }
  bool watches(const std::string& variable) const {
    return watched_ == nullptr || watched_(variable) || follows(variable);
  }
  /// Variables whose largest magnitude is recorded.
  void Follow(std::set<std::string> variables) {
    followed_ = std::move(variables);
  }
  bool follows(const std::string& variable) const {
    return followed_.count(variable) > 0;
  }

  /// Whether no output of this op is checked.
  bool Skips(const OpDesc& op) const;
  bool Skips(const OpDesc& op, const std::string& variable) const;
  bool AllowsInfinities(const OpDesc& op, const std::string& variable) const;

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  std::set<std::string> ops_;
  int32_t roles_ = 0;
  Pairs variables_, infinities_;
  std::function<bool(const std::string&)> watched_;
  std::set<std::string> followed_;
};

/// Variables of block 0 that hold -inf on purpose: constants of -inf, and
/// results of ops that move them or add to them. Only -inf is allowed there.
std::set<std::string> MaskVariables(const std::vector<OpDesc>& ops);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_NAN_RULES_H_
