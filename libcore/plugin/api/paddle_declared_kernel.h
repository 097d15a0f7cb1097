// SPDX-License-Identifier: Apache-2.0
// The kernel that the body of a declaration changes, in either form of kernels.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_

#include <cstddef>
#include <vector>

#include "paddle_check.h"
#include "paddle_tensor_handle.h"

namespace phi {
namespace detail {

/// The arguments of a kernel; `ArgDef` is the form's class of one.
template <typename ArgDef>
class DeclaredArguments {
 public:
  explicit DeclaredArguments(PD_KernelArgsDef* defs) : defs_(defs) {}
  std::vector<ArgDef> input_defs() const {
    return ListOf(&PD_KernelArgsDefGetInputArgDefs);
  }
  std::vector<ArgDef> output_defs() const {
    return ListOf(&PD_KernelArgsDefGetOutputArgDefs);
  }

 private:
  std::vector<ArgDef> ListOf(PD_List (*get)(PD_KernelArgsDef*,
                                            PD_Status*)) const {
    PD_Status status = C_FAILED;
    const PD_List list = get(defs_, &status);
    CheckStatus(status);
    PD_TensorArgDef** first = static_cast<PD_TensorArgDef**>(list.data);
    std::vector<ArgDef> defs;
    for (size_t i = 0; i < list.size; ++i) defs.emplace_back(first[i]);
    PD_DeletePointerList(list);
    return defs;
  }
  PD_KernelArgsDef* defs_;
};

template <typename ArgDef>
class DeclaredKernel {
 public:
  explicit DeclaredKernel(PD_Kernel* kernel) : kernel_(kernel) {}
  DeclaredArguments<ArgDef> args_def() const {
    PD_Status status = C_FAILED;
    PD_KernelArgsDef* defs = PD_KernelGetArgsDef(kernel_, &status);
    CheckStatus(status);
    return DeclaredArguments<ArgDef>(defs);
  }
  ArgDef InputAt(size_t i) const { return At(args_def().input_defs(), i); }
  ArgDef OutputAt(size_t i) const { return At(args_def().output_defs(), i); }

 private:
  static ArgDef At(const std::vector<ArgDef>& defs, size_t i) {
    PD_CHECK(i < defs.size(), "the kernel has ", defs.size(),
             " such arguments; its body names number ", i);
    return defs[i];
  }
  PD_Kernel* kernel_;
};

}  // namespace detail
}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_
