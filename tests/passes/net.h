// SPDX-License-Identifier: Apache-2.0
// Small programs for the tests of passes, built op by op, with their values.
#ifndef PD_TESTS_PASSES_NET_H_
#define PD_TESTS_PASSES_NET_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/passes/pipeline.h"
#include "tests/ops/registry.h"

namespace pd {

struct Net {
  ProgramDesc program;
  NamedArrays feeds, params;
  std::vector<std::string> fetches;
  bool on_gpu = false;  ///< the passes run for a GPU

  Net() { program.blocks.resize(1); }
  /// A feed or a parameter, with numbers that depend on its shape.
  void Var(const std::string& name, const Shape& shape, bool param);
  void Op(const std::string& type, SlotList inputs, SlotList outputs,
          std::map<std::string, Attribute> attrs = {});
  /// Appends the gradients, and fetches those of parameters and the loss.
  void Backward(const std::string& loss);
  std::string Types() const;  ///< of the ops, with spaces between
  void Run(const PassOptions& options = {});
};

/// The fetches of one run of the program.
NamedArrays AnswersOf(const Net& net, const PassOptions& options);
/// All numbers of `got` are at most `tolerance` from those of `want`.
void ExpectNear(const NamedArrays& want, const NamedArrays& got,
                double tolerance);

}  // namespace pd

#endif  // PD_TESTS_PASSES_NET_H_
