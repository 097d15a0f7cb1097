// SPDX-License-Identifier: Apache-2.0
// The cases of testdata/quant/aware: what PaddlePaddle's ImperativeQuantAware
// made of a network, start and batches, and a way to repeat it.
#ifndef PD_TESTS_TRAIN_AWARE_CASE_H_
#define PD_TESTS_TRAIN_AWARE_CASE_H_

#include <ostream>
#include <string>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/train/train_program.h"

namespace pd {

struct AwareCase {
  const char* name;
  std::vector<std::string> overrides;
  /// Of few bits a last bit turns a rounding over now and then, by much.
  double tolerance = 1e-5;
};
void PrintTo(const AwareCase& c, std::ostream* out);

const std::vector<AwareCase>& AwareCases();

/// The job's programs; a failure of the test when they cannot be built.
TrainProgram BuildAware(const AwareCase& c, const OpRegistry& registry);

/// Trains from PaddlePaddle's start, and expects its losses, its state at the
/// end, and its answers of evaluation.
void TrainAsPaddlePaddle(const AwareCase& c, const TrainProgram& program,
                         Session* session);

}  // namespace pd

#endif  // PD_TESTS_TRAIN_AWARE_CASE_H_
