// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's names and arguments of the kernels that compute operators:
// an op "elementwise_add" is computed by a kernel "add" of X and Y, or
// "add_raw" of X, Y and axis. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_
#define PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

/// One attribute that a kernel is given.
struct SignatureAttr {
  std::string name;
  /// Slots that hold the value in another way; the kernel does not suit an op
  /// that has one of them.
  std::vector<std::string> slots;
  /// The value of an attribute that ops of this release do not have.
  std::optional<bool> fixed;
};

struct KernelSignature {
  std::string op, kernel;
  std::vector<std::string> inputs, outputs;  // slots
  /// The kernel's element type is that of this input, or of this output where
  /// there are no inputs or `typed_by_output`.
  size_t typed = 0;
  bool typed_by_output = false;
  std::vector<SignatureAttr> attrs;
  /// Y's axes are the last ones of X: `axis` says nothing else.
  bool trailing = false;

  /// "dot(X, Y; axis) -> Out".
  std::string Text() const;
};

/// All, those of an op in the order in which they are tried: the table of
/// kernel_signatures.txt, and families of operators.
const std::deque<KernelSignature>& KernelSignatures();
/// Adds that of an operator of a plug-in, before it is used.
void AddKernelSignature(KernelSignature signature);

/// Names of attributes that no kernel is given, since they say how an op is
/// computed and not what.
bool IsAboutExecution(absl::string_view attribute);

/// A text of the build: kernel_signatures.txt.
struct SignatureText {
  const char *name, *text;
};
const std::vector<SignatureText>& SignatureFiles();

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_
