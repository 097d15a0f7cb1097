// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/upgrade_source.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/file.h"
#include "libcore/convert/api_names.h"

namespace pd {
namespace test_upgrade_source {

std::string Upgraded(const std::string& text) {
  const auto result = UpgradeSource(text);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? result->text : "";
}

std::string Notes(const std::string& text) {
  const auto result = UpgradeSource(text);
  EXPECT_TRUE(result.ok()) << result.status();
  std::string notes;
  if (result.ok())
    for (const SourceNote& note : result->notes)
      absl::StrAppend(&notes, note.line, ":", note.column, " ", note.text,
                      "\n");
  return notes;
}

TEST(UpgradeSource, NamesUnderTheirImports) {
  EXPECT_EQ(Upgraded("import paddle.fluid as fluid\n"
                     "y = fluid.layers.relu(x)\n"),
            "import paddle\ny = paddle.nn.functional.relu(x)\n");
  EXPECT_EQ(Upgraded("from paddle import fluid\ny = fluid.layers.relu(x)\n"),
            "import paddle\ny = paddle.nn.functional.relu(x)\n");
  EXPECT_EQ(Upgraded("from paddle.fluid import layers as L\nL.relu(x)\n"),
            "import paddle\npaddle.nn.functional.relu(x)\n");
  EXPECT_EQ(Upgraded("from paddle.fluid.layers import relu, tanh as t\n"
                     "relu(t(x))\n"),
            "import paddle\npaddle.nn.functional.relu(paddle.tanh(x))\n");
  EXPECT_EQ(Upgraded("import paddle.fluid\npaddle.fluid.layers.relu(x)\n"),
            "import paddle\npaddle.nn.functional.relu(x)\n");
  EXPECT_EQ(Upgraded("import paddle\nimport paddle.fluid.layers as L\n"
                     "L.relu(x)\n"),
            "import paddle\npaddle.nn.functional.relu(x)\n");
}

TEST(UpgradeSource, ImportsThatAreStillNeededStay) {
  EXPECT_EQ(Upgraded("import paddle.fluid as fluid\n"
                     "fluid.layers.relu(fluid.layers.pool2d(x))\n"),
            "import paddle\nimport paddle.fluid as fluid\n"
            "paddle.nn.functional.relu(fluid.layers.pool2d(x))\n");
  EXPECT_EQ(Upgraded("if a:\n  import paddle.fluid as fluid\n"
                     "  fluid.layers.relu(fluid.layers.pool2d(x))\n"),
            "if a:\n  import paddle; import paddle.fluid as fluid\n"
            "  paddle.nn.functional.relu(fluid.layers.pool2d(x))\n");
  EXPECT_EQ(Upgraded("import numpy as np, paddle.fluid as fluid\n"
                     "fluid.layers.relu(x)\n"),
            "import numpy as np, paddle.fluid as fluid\n"
            "paddle.nn.functional.relu(x)\n");
}

TEST(UpgradeSource, StringsCommentsAndOtherNamesStay) {
  const std::string head = "import paddle.fluid.layers as layers\n";
  for (const std::string line :
       {"'layers.relu' + \"layers.relu\" + f'{layers.relu}'",
        "# layers.relu\n\"\"\"\nlayers.relu\n\"\"\"", "self.layers.relu(x)",
        "f(layers=3)", "'\\'layers.relu'", "other.layers.relu"})
    EXPECT_EQ(Upgraded(head + line + "\n"), head + line + "\n") << line;
  EXPECT_EQ(Upgraded("x = relu(fluid.layers.relu)\n"),
            "x = relu(fluid.layers.relu)\n");
}

TEST(UpgradeSource, AttributesOfANameStayBehindIt) {
  EXPECT_EQ(Upgraded("import paddle.fluid as fluid\n"
                     "fluid.Executor.run.__doc__\n"),
            "import paddle\npaddle.static.Executor.run.__doc__\n");
}

TEST(UpgradeSource, NotesSayWhereAndWhy) {
  EXPECT_EQ(Notes("import paddle.fluid as fluid\n"
                  "x = fluid.layers.pool2d(x)\n"),
            "2:5 paddle.fluid.layers.pool2d is paddle.nn.functional.avg_pool2d "
            "or paddle.nn.functional.max_pool2d now: its arguments or its "
            "results changed\n");
  EXPECT_EQ(Notes("import paddle.fluid as fluid\nfluid.layers.none(x)\n"),
            "2:1 paddle.fluid.layers.none: the table has no such name\n");
  EXPECT_TRUE(absl::StrContains(
      Notes("import paddle.fluid as fluid\nwith fluid.dygraph.guard():\n"),
      "op by op from the start"));
  EXPECT_TRUE(
      absl::StrContains(Notes("from paddle.fluid.layers import *\nrelu(x)\n"),
                        "1:33 paddle.fluid.layers: the names that * imports"));
}

TEST(UpgradeSource, DamagedSourcesAreRefusedOrStay) {
  EXPECT_EQ(UpgradeSource("x = 1\ny = 'abc\n").status().message(),
            "line 2: the string has no end");
  EXPECT_EQ(UpgradeSource("\"\"\" abc").status().message(),
            "line 1: the string has no end");
  for (const std::string text :
       {"", "import", "from", "from x", "from . import y", "import paddle.",
        "import paddle.fluid as", "a.", ".", "\\",
        "import paddle.fluid as fluid\nfluid.", "\xff\xfe", "1.e5.x"})
    EXPECT_EQ(Upgraded(text), text);
  EXPECT_EQ(UpgradeSource("x\nf((1)\n").status().message(),
            "line 2: the '(' has no end");
  EXPECT_EQ(UpgradeSource("from x import (").status().message(),
            "line 1: the '(' has no end");
  EXPECT_EQ(UpgradeSource(")))").status().message(),
            "line 1: the ')' closes no '('");
  EXPECT_EQ(UpgradeSource("(]").status().message(),
            "line 1: the ']' closes no '['");
}

TEST(UpgradeSource, AScriptOf1_8) {
  const auto file = ReadFile(PD_TESTDATA "/upgrade/mnist.py");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto result = UpgradeSource(file->view());
  ASSERT_TRUE(result.ok()) << result.status();
  for (const char* kept :
       {"# fluid.layers.relu in a comment stays, and so does "
        "\"fluid.layers.relu\"",
        "'fluid.layers.relu')", "def train(data, layers=1):",
        "Pool2D(pool_size=2", "with fluid.dygraph.guard():"})
    EXPECT_TRUE(absl::StrContains(result->text, kept)) << kept;
  for (const char* made :
       {"class Net(paddle.nn.Layer):", "self.fc = paddle.nn.Linear(196, 10)",
        "paddle.nn.functional.softmax(self.fc(paddle.nn.functional.relu(",
        "paddle.optimizer.Adam(learning_rate=1e-3",
        "parameters=net.parameters())", "net(paddle.to_tensor(images))",
        "paddle.nn.functional.cross_entropy(probabilities, "
        "paddle.to_tensor(labels), reduction='none', use_softmax=False)"})
    EXPECT_TRUE(absl::StrContains(result->text, made)) << made;
  EXPECT_EQ(result->notes.size(), 3u);  // Pool2D, guard, save_dygraph
}

TEST(ApiNames, AreSortedAndFound) {
  const std::vector<ApiName>& names = ApiNames();
  EXPECT_EQ(names.size(), 360u);
  for (size_t i = 1; i < names.size(); ++i)
    EXPECT_LT(absl::string_view(names[i - 1].old_name), names[i].old_name);
  for (const ApiName& row : names)
    EXPECT_EQ(FindApiName(row.old_name), &row) << row.old_name;
  EXPECT_EQ(FindApiName("fluid.layers"), nullptr);
}

}  // namespace test_upgrade_source
}  // namespace pd
