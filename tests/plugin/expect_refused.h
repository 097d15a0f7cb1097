// SPDX-License-Identifier: Apache-2.0
// Plug-ins that LoadPlugin refuses.
#ifndef PD_TESTS_PLUGIN_EXPECT_REFUSED_H_
#define PD_TESTS_PLUGIN_EXPECT_REFUSED_H_

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "libcore/plugin/plugins.h"

namespace pd {

/// Loads libNAME.so in a process of its own, since a library stays loaded; the
/// error matches `said`.
inline void ExpectRefused(const std::string& name, const std::string& said) {
  EXPECT_EXIT(
      {
        const absl::Status status =
            LoadPlugin(PD_PLUGIN_FOLDER "/lib" + name + ".so");
        std::fprintf(stderr, "%s", status.ToString().c_str());
        std::_Exit(status.ok() ? 0 : 1);
      },
      ::testing::ExitedWithCode(1), said);
}

}  // namespace pd

#endif  // PD_TESTS_PLUGIN_EXPECT_REFUSED_H_
