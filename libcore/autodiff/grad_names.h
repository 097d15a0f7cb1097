// SPDX-License-Identifier: Apache-2.0
// Names for gradients of a program that has gradients already. There "x@GRAD"
// may be a variable like any other, which is read and differentiated, and the
// gradient of x needs another name: "grad/grad/x@GRAD", as PaddlePaddle says,
// with one more "grad/" each time.
#ifndef PD_LIBCORE_AUTODIFF_GRAD_NAMES_H_
#define PD_LIBCORE_AUTODIFF_GRAD_NAMES_H_

#include <set>
#include <string>

#include "libcore/ir/program_desc.h"

namespace pd {

/// Hides a program's own gradients while new ones are appended.
class HiddenGradients {
 public:
  /// Renames every variable of the program whose name has the suffix, so that
  /// GradName of a variable's name is free.
  explicit HiddenGradients(ProgramDesc* program);

  /// False: the program has no gradients, and nothing is renamed.
  bool any() const { return !own_.empty(); }
  /// The name that a variable has in the renamed program.
  std::string Hidden(const std::string& name) const;
  /// The name, from the renamed program, that it has in the end.
  std::string Shown(const std::string& name) const;
  /// Gives all variables, old and new, their final names.
  void Show(ProgramDesc* program) const;

 private:
  std::set<std::string> own_;  // names that are taken
  std::string prefix_;         // of a new gradient whose name is taken
};

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_GRAD_NAMES_H_
