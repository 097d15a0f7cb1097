// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/processor.h"

namespace pd_run {

Instructions Available() {
#ifdef PD_RUN_X86
  static const Instructions available = [] {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
      return Instructions::kPortable;
    return __builtin_cpu_supports("avx512f") ? Instructions::kAvx512
                                             : Instructions::kAvx2;
  }();
  return available;
#else
  return Instructions::kPortable;
#endif
}

}  // namespace pd_run
