// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's names and arguments of the kernels that compute operators:
// an op "elementwise_add" is computed by a kernel "add" of X and Y, or
// "add_raw" of X, Y and axis. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_
#define PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_

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
};

struct KernelSignature {
  std::string op, kernel;
  std::vector<std::string> inputs, outputs;  // slots
  size_t typed = 0;  // the input whose element type is the kernel's
  std::vector<SignatureAttr> attrs;
  /// Y's axes are the last ones of X: `axis` says nothing else.
  bool trailing = false;

  /// "dot(X, Y; axis) -> Out".
  std::string Text() const;
};

/// All, those of an op in the order in which they are tried.
const std::vector<KernelSignature>& KernelSignatures();

/// Names of attributes that no kernel is given, since they say how an op is
/// computed and not what.
bool IsAboutExecution(absl::string_view attribute);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_KERNEL_SIGNATURES_H_
