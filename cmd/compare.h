// SPDX-License-Identifier: Apache-2.0
// Comparing arrays: |got - want| <= atol + rtol * |want|, element by element.
#ifndef PD_CMD_COMPARE_H_
#define PD_CMD_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"

namespace pd {

struct Tolerance {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};

/// How one array compares.
struct Comparison {
  std::string name;
  std::string problem;  ///< shapes or dtypes differ, missing; "" otherwise
  int64_t elements = 0;
  int64_t mismatches = 0;  ///< elements outside the tolerance
  Shape worst;             ///< index of the worst one
  double got = 0, want = 0, max_abs = 0, max_rel = 0;
  bool ok() const { return problem.empty() && mismatches == 0; }
  /// One line: "'fc': 3 of 640 elements differ; the worst at [0, 7]: ...".
  std::string ToString() const;
};

/// Compares every array of `want` with the one of its name in `got`.
std::vector<Comparison> CompareArrays(const NamedArrays& got,
                                      const NamedArrays& want,
                                      const Tolerance& tolerance);

}  // namespace pd

#endif  // PD_CMD_COMPARE_H_
