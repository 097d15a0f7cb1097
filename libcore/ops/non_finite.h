// SPDX-License-Identifier: Apache-2.0
// How operators treat NaN and infinities, for checks that look for them: a row
// for each op type about which something is known. tests/ops/test_registry.cc
// holds the rows against the schemas.
#ifndef PD_LIBCORE_OPS_NON_FINITE_H_
#define PD_LIBCORE_OPS_NON_FINITE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A NaN or an infinity anywhere in input slot `input` makes one in output slot
/// `output`, where `holds` is null or true for the op, which is normalized.
struct NonFiniteRule {
  const char *input, *output;
  bool (*holds)(const OpDesc& op) = nullptr;
};

struct NonFiniteFacts {
  std::vector<NonFiniteRule> rules = {};
  /// An attribute says which number it writes.
  bool writes_constants = false;
  /// A -inf that it reads stands in what it writes: it moves elements or adds
  /// numbers to them, as masks of attention go through.
  bool keeps_minus_infinity = false;
  /// It looks for infinities in the gradients of a scaled loss.
  bool finds_infinities = false;
  /// It takes these infinities away.
  bool clears_infinities = false;
  /// It gives its outputs memory and writes no values.
  bool writes_nothing = false;
};

/// All rows, by op type.
const std::map<std::string, NonFiniteFacts, std::less<>>& AllNonFiniteFacts();

/// The row of an op type; one without rules and with every flag false where
/// there is none.
const NonFiniteFacts& NonFiniteFactsOf(absl::string_view op_type);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_NON_FINITE_H_
