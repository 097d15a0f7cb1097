// SPDX-License-Identifier: Apache-2.0
// The table of the kernels that plug-ins declare for operators of pdkit, and
// how one is bound to an op. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_KERNELS_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ops/op_def.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/kernel_objects.h"
#include "libcore/plugin/kernel_signatures.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {

/// The backend of kernels of the host.
constexpr char kHostBackend[] = "CPU";

struct PluginKernel {
  PluginPart part;      // for messages
  std::string backend;  // "CPU", or the type of a device
  C_DataType dtype = UNDEFINED;
  PD_DataLayout layout = ALL_LAYOUT;
  bool takes_context = false;
  std::vector<PD_KernelArgumentType> inputs, attributes, outputs;
  PD_KernelArgsDef arguments;
  void (*run)(PD_KernelContext* context) = nullptr;
};

/// Checks a declaration and keeps it. AlreadyExists for a second kernel of the
/// same name, backend, type and layout.
absl::Status DeclareKernel(int abi, const PD_KernelDeclaration* declaration);

/// Kernels since the last look at them.
struct NewKernels {
  std::vector<std::string> names;
  size_t useful = 0;  // an operator has them
  /// Sentences about those whose arguments are not PaddlePaddle's.
  std::vector<std::string> unsuited;
};
/// Compares the kernels that nobody has looked at with PaddlePaddle's
/// arguments.
NewKernels CheckNewKernels();

/// The kernel of a signature for an element type, null where there is none; it
/// stays.
const PluginKernel* FindKernel(const KernelSignature& signature,
                               const std::string& backend, C_DataType dtype);
/// The types for which there are kernels of a name: "float32, int8".
std::string TypesOfKernel(const std::string& kernel,
                          const std::string& backend);

/// Adds the kernels of all plug-ins to the operators that they compute: those
/// of the host, and those of the registry's device where it is a plug-in's.
/// They are asked first, or, without `first`, last.
absl::Status AttachPluginKernels(bool first, OpRegistry* registry);

/// The value of an attribute for a parameter of this kind. InvalidArgument
/// where it is not one.
absl::StatusOr<KernelAttr> AttrFor(const SignatureAttr& attr, const OpDesc& op,
                                   PD_KernelArgumentType kind);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_KERNELS_H_
