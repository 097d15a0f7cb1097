// SPDX-License-Identifier: Apache-2.0
// The main of every test. Tests name their files relative to the source folder
// (PD_TESTDATA, PD_BINARY_DIR), which they work in wherever they are started:
// so their sources compile alike in every clone.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (chdir(PD_SOURCE_DIR) != 0) {
    std::perror("test: cannot enter " PD_SOURCE_DIR);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
