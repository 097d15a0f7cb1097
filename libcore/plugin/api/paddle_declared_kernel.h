// SPDX-License-Identifier: Apache-2.0
// The kernel that the body of a declaration changes, in either form of kernels.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_

#include <cstddef>

#include "paddle_check.h"
#include "paddle_tensor_handle.h"

namespace phi {
namespace detail {

/// `ArgDef` is the form's class of an argument.
template <typename ArgDef>
class DeclaredKernel {
 public:
  explicit DeclaredKernel(PD_Kernel* kernel) : kernel_(kernel) {}
  ArgDef InputAt(size_t i) const {
    return At(&PD_KernelArgsDefGetInputArgDefs, i);
  }
  ArgDef OutputAt(size_t i) const {
    return At(&PD_KernelArgsDefGetOutputArgDefs, i);
  }

 private:
  ArgDef At(PD_List (*get)(PD_KernelArgsDef*, PD_Status*), size_t i) const {
    PD_Status status = C_FAILED;
    PD_KernelArgsDef* defs = PD_KernelGetArgsDef(kernel_, &status);
    CheckStatus(status);
    const PD_List list = get(defs, &status);
    CheckStatus(status);
    PD_CHECK(i < list.size, "the kernel has ", list.size,
             " such arguments; its body names number ", i);
    PD_TensorArgDef* def = static_cast<PD_TensorArgDef**>(list.data)[i];
    PD_DeletePointerList(list);
    return ArgDef(def);
  }
  PD_Kernel* kernel_;
};

}  // namespace detail
}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DECLARED_KERNEL_H_
