// SPDX-License-Identifier: Apache-2.0
// Which function cpu/activation.cc computes. A header of its own because that
// file is compiled once for each instruction set.
#ifndef PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_
#define PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_

namespace pd {
namespace cpu {

enum class Function {
  kRelu,
  kRelu6,
  kLeakyRelu,
  kHardSwish,
  kSwish,
  kSigmoid,
  kTanh,
  kErf,
};

/// A function and the attributes that it reads.
struct Activation {
  Function function = Function::kRelu;
  float threshold = 6, scale = 6, offset = 3, alpha = 0;
};

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_ACTIVATION_H_
