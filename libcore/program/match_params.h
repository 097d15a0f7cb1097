// SPDX-License-Identifier: Apache-2.0
// Do these values fit this program? PaddlePaddle's loaders name what is
// missing, what has another shape and what nobody asked for; so do ours, all
// of it at once.
#ifndef PD_LIBCORE_PROGRAM_MATCH_PARAMS_H_
#define PD_LIBCORE_PROGRAM_MATCH_PARAMS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Names of the persistable tensors in name order: the order of a .pdiparams.
std::vector<std::string> PersistableTensors(const ProgramDesc& program);

/// "'a', 'b' and 3 more".
std::string QuotedList(const std::vector<std::string>& names);

struct ParamMatch {
  struct Misshapen {
    std::string name;
    Shape value, declared;
  };
  std::vector<std::string> missing;  ///< persistable tensors without a value
  std::vector<Misshapen> misshapen;
  std::vector<std::string> surplus;  ///< values that no variable takes

  /// Drops the names for which `forget` is true.
  void Forget(const std::function<bool(const std::string&)>& forget);
  /// InvalidArgument that lists what is missing and misshapen; OK when values
  /// are only surplus.
  absl::Status Error() const;
  /// "'a', 'b' and 3 more": the surplus names for a warning; "" when none is.
  std::string SurplusText() const;
};

/// Compares names and shapes. Extents of 1 do not count, so [] and [1] are the
/// same, and an extent that is declared as -1 fits any.
ParamMatch MatchParams(const ProgramDesc& program, const NamedArrays& values);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_MATCH_PARAMS_H_
