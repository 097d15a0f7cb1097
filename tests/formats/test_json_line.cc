// SPDX-License-Identifier: Apache-2.0
// JSON lines, LIBSVM's lines, lines and numbers.
#include <string>
#include <vector>

#include "formats/json_line.h"
#include "formats/libsvm.h"
#include "formats/text_input.h"
#include "gtest/gtest.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace test_json_line {

std::string JsonError(const std::string& text) {
  JsonLine line;
  return std::string(line.Parse(text).message());
}

TEST(JsonLineTest, FindsValues) {
  const std::string text =
      R"({"a": {"b": [1, -2.5e1, true, null]}, "t": "x\n\u00e9", "a": 7 })";
  JsonLine line;
  ASSERT_TRUE(line.Parse(text).ok());
  EXPECT_EQ(line.nodes()[line.Member(0, "a")].number, 7);  // the last one
  EXPECT_EQ(line.Member(0, "c"), 0u);
  std::string buffer;
  EXPECT_EQ(*line.Text(line.Member(0, "t"), &buffer), "x\n\xC3\xA9");
  ASSERT_TRUE(line.Parse("[[1, 2], [], [3]]").ok());
  EXPECT_EQ(line.nodes()[line.Item(line.Item(0, 2), 0)].number, 3);
  EXPECT_EQ(line.Item(0, 3), 0u);
  EXPECT_EQ(line.nodes()[line.Item(0, 1)].items, 0u);
}

TEST(JsonLineTest, IsStrict) {
  EXPECT_EQ(JsonError("{\"a\": 1"),
            "column 8: the line ends; expected ',' or '}'");
  EXPECT_EQ(JsonError("[1,]"), "column 4: ']'; expected a value");
  EXPECT_EQ(JsonError("[01]"),
            "column 2: '0'; expected a number without leading zeros");
  EXPECT_EQ(JsonError("nan"), "column 1: 'n'; expected a value");
  EXPECT_EQ(JsonError("1 2"), "column 3: '2'; expected the end of the line");
  EXPECT_EQ(JsonError("\"abc"),
            "column 1: the quote that opens here is never closed");
  EXPECT_EQ(JsonError("1e999"),
            "column 1: the number is outside the range of a double");
  EXPECT_EQ(JsonError(std::string(100, '[')),
            "column 66: values are nested more than 64 deep");
}

TEST(JsonLineTest, SurvivesDamage) {
  const std::string good = R"({"a": [1, 2.5, {"b": "c\"\u0041"}], "d": null})";
  const auto read = [](const std::string& bad) {
    JsonLine line;
    if (!line.Parse(bad).ok()) return;
    std::string buffer;
    for (size_t i = 0; i < line.nodes().size(); ++i)
      if (line.nodes()[i].kind == JsonNode::Kind::kString)
        line.Text(i, &buffer).status().IgnoreError();
  };
  ForEachPrefix(good, read);
  ForEachFlip(good, read);
}

TEST(LibSvmTest, ReadsLines) {
  LibSvmRow row;
  bool found = false;
  ASSERT_TRUE(ParseLibSvm("-1 qid:3 2:0.5 10:-3e1 # x", &row, &found).ok());
  EXPECT_TRUE(found);
  EXPECT_EQ(row.label, -1);
  EXPECT_EQ(row.indices, (std::vector<int64_t>{2, 10}));
  EXPECT_EQ(row.values, (std::vector<float>{0.5f, -30.0f}));
  ASSERT_TRUE(ParseLibSvm(" # nothing", &row, &found).ok());
  EXPECT_FALSE(found);
}

TEST(LibSvmTest, SaysWhereItIsWrong) {
  LibSvmRow row;
  bool found = false;
  const auto error = [&](const char* line) {
    return std::string(ParseLibSvm(line, &row, &found).message());
  };
  EXPECT_EQ(error("x 1:2"), "column 1: 'x' is not a number");
  EXPECT_EQ(error("1 2"), "column 3: '2' is no INDEX:VALUE");
  EXPECT_EQ(error("1 3:1 3:2"),
            "column 7: index 3 stands behind 3; expected ascending indices");
  EXPECT_EQ(error("1 1:1e39"),
            "column 3: '1e39' is outside the range of a float32");
  const auto read = [&](const std::string& bad) {
    ParseLibSvm(bad, &row, &found).IgnoreError();
  };
  ForEachPrefix("1 1:0.5 2:7 #x", read);
  ForEachFlip("1 1:0.5 2:7 #x", read);
}

TEST(LineReaderTest, Lines) {
  LineReader lines(
      "\xEF\xBB\xBF"
      "a\r\n\nb");
  absl::string_view line;
  std::vector<std::string> seen;
  while (lines.Next(&line)) seen.emplace_back(line);
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines.number(), 3);
}

}  // namespace test_json_line
}  // namespace pd
