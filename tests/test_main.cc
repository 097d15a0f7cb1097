// SPDX-License-Identifier: Apache-2.0
// The main of every test. Tests name their files relative to the source folder
// (PD_TESTDATA, PD_BINARY_DIR), which they work in wherever they are started:
// so their sources compile alike in every clone.
//
//   tests_FOLDER [--source=FILE] [GoogleTest's options]
//
// A program holds the tests of many sources; with --source the tests of one of
// them run and no others. A --gtest_filter counts in its place: death tests
// start the program again with one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

// GoogleTest's filter for the tests that stand in `source`; empty without any.
std::string TestsOf(const std::string& source) {
  const auto& all = *testing::UnitTest::GetInstance();
  std::string filter;
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      const std::string file = test.file();
      if (file.substr(file.rfind('/') + 1) != source) continue;
      filter += std::string(suite.name()) + "." + test.name() + ":";
    }
  }
  return filter;
}

}  // namespace

int main(int argc, char** argv) {
  if (chdir(PD_SOURCE_DIR) != 0) {
    std::perror("test: cannot enter " PD_SOURCE_DIR);
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  const std::string option = "--source=";
  if (argc > 1 && std::string(argv[1]).compare(0, option.size(), option) == 0) {
    const std::string source = argv[1] + option.size();
    const std::string filter = TestsOf(source);
    if (filter.empty()) {
      std::fprintf(stderr, "test: no tests of %s are in this program\n",
                   source.c_str());
      return 1;
    }
    if (testing::GTEST_FLAG(filter) == "*")
      testing::GTEST_FLAG(filter) = filter;
  }
  return RUN_ALL_TESTS();
}
