// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/mdoc.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cmd/common/help.h"
#include "tests/cmd/demo_tool.h"

namespace pd {
namespace test_cmd_mdoc {

TEST(MdocTextTest, BreaksSentencesAndSetsLiterals) {
  EXPECT_EQ(MdocText("One. Two `--out`, three. `x` ends (`y`)."),
            "One.\nTwo\n.Ql \\&\\-\\-out ,\nthree.\n.Ql \\&x\nends (\n.Ql "
            "\\&y ) .\n");
  EXPECT_EQ(MdocText(".start \\ 'x"), "\\&.start \\e 'x\n");
}

TEST(MdocSynopsisTest, TellsFlagsValuesAndWords) {
  EXPECT_EQ(MdocSynopsis("-c JOB [-o P=V]... --to paddle|onnx"),
            ".Fl c\n.Ar \\&JOB\n.Oo\n.Fl o\n.Ar \\&P=V\n.Oc Ns ...\n"
            ".Fl \\-to\n.Cm \\&paddle|onnx\n");
}

TEST(MdocPageTest, PassesLint) {
  if (std::system("command -v mandoc >/dev/null") != 0)
    GTEST_SKIP() << "mandoc is not installed";
  DemoOptions options;
  const Tool tool = DemoTool(&options);
  OptionTable table;
  BindAll(tool, &table);
  const std::string path = ::testing::TempDir() + "/pd-demo.1";
  std::ofstream(path) << MdocPage(tool.manual, table.Describe());
  EXPECT_EQ(std::system(("mandoc -Tlint -Wwarning " + path).c_str()), 0);
  std::remove(path.c_str());
}

TEST(HelpTextTest, HoldsEveryOptionWithin80Columns) {
  DemoOptions options;
  const Tool tool = DemoTool(&options);
  OptionTable table;
  BindAll(tool, &table);
  const std::string text = HelpText(tool.manual, table.Describe());
  for (const OptionGroup& group : table.Describe())
    for (const OptionEntry& option : group.options)
      EXPECT_NE(text.find(option.long_name), std::string::npos)
          << option.long_name;
  size_t column = 0;
  for (const char c : text) {
    column = c == '\n' ? 0 : column + 1;
    EXPECT_LE(column, 80u);
  }
}

}  // namespace test_cmd_mdoc
}  // namespace pd
