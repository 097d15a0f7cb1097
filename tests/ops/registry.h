// SPDX-License-Identifier: Apache-2.0
// The operators, made once for all tests of a program.
#ifndef PD_TESTS_OPS_REGISTRY_H_
#define PD_TESTS_OPS_REGISTRY_H_

#include <gtest/gtest.h>

#include "libcore/kernels/attach.h"
#include "libcore/ops/registry.h"

namespace pd {

/// All operators with their reference kernels alone.
inline const OpRegistry& ReferenceRegistry() {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(made).ok());
    return made;
  }();
  return *registry;
}

/// All operators with the kernels that the tools have.
inline const OpRegistry& Registry() {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(made).ok());
    EXPECT_TRUE(AttachAllKernels(made).ok());
    return made;
  }();
  return *registry;
}

}  // namespace pd

#endif  // PD_TESTS_OPS_REGISTRY_H_
