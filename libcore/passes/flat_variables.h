// SPDX-License-Identifier: Apache-2.0
// Variables that share memory in PaddlePaddle. coalesce_tensor makes a flat
// variable in which its parts lie one after the other, and share_data one that
// is its source: from then on who writes the one has written the other, in this
// program and, where they are persistable, in every later one. paddle.nn's
// recurrent layers lay their weights into such a variable when they start, and
// it is what PaddlePaddle believes when it loads their files.
//
// Here every variable has bytes of its own. The parts are the truth; the flat
// variable is put together when somebody reads it, and who writes it is
// followed by ops that take it apart.
#ifndef PD_LIBCORE_PASSES_FLAT_VARIABLES_H_
#define PD_LIBCORE_PASSES_FLAT_VARIABLES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A flat variable and the variables that lie in it.
struct FlatVariable {
  struct Part {
    std::string name;
    Shape shape;        ///< negative: not known
    int64_t begin = 0;  ///< its first element in the flat variable
  };
  std::string name;
  DType dtype = DType::kFloat32;
  int64_t size = 0;      ///< elements with those between parts; -1: not known
  bool aliased = false;  ///< one part of the flat variable's own shape
  std::vector<Part> parts;
};

/// Whether one of its parts is `variable`.
bool HasPart(const FlatVariable& flat, const std::string& variable);

/// Adds `flat` to `known`. What it names lies nowhere else any more.
void AddFlatVariable(FlatVariable flat, std::vector<FlatVariable>* known);

/// Rewrites block 0 of `program` so that variables with bytes of their own hold
/// what they would hold if they shared them. `known` are the flat variables of
/// before, and then also those that the program makes; `fetches` must be right
/// when it ends. A persistable flat variable is not: its parts are.
/// Unimplemented, with the variables' names, where a sub-block writes what
/// another variable shares and where shapes are not known.
absl::Status SeparateFlatVariables(const std::set<std::string>& fetches,
                                   std::vector<FlatVariable>* known,
                                   ProgramDesc* program);

/// The flat variables of recurrent layers: parameters that no op touches, of
/// the name and the size that paddle.nn gives to what holds the weights of an
/// `rnn` op. For programs whose startup program, which says it, is not at hand.
std::vector<FlatVariable> FlatWeightsOfRnn(const ProgramDesc& program);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_FLAT_VARIABLES_H_
