// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "formats/text_input.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace test_csv {

// Numbers of some columns, row by row.
struct CsvNumbers {
  int64_t rows = 0;
  std::vector<double> values;
  std::vector<int64_t> lines;
};

absl::StatusOr<CsvNumbers> ReadNumbers(const CsvFile& csv,
                                       const std::vector<size_t>& columns,
                                       bool allow_nan) {
  CsvNumbers numbers;
  CsvReader reader(csv);
  std::vector<CsvCell> cells;
  for (;; ++numbers.rows) {
    PD_ASSIGN_OR_RETURN(const bool more, reader.Next(&cells));
    if (!more) return numbers;
    numbers.lines.push_back(cells[0].line);
    for (size_t column : columns) {
      const auto value = ParseNumber(cells.at(column).text, allow_nan);
      if (!value.ok()) return reader.At(cells[column], value.status());
      numbers.values.push_back(*value);
    }
  }
}

class CsvTest : public ::testing::Test {
 protected:
  ~CsvTest() override { std::remove(path_.c_str()); }
  // All columns of `text`, or those asked for.
  absl::StatusOr<CsvNumbers> Read(const std::string& text,
                                  std::vector<size_t> columns = {}) {
    std::ofstream(path_, std::ios::binary) << text;
    PD_ASSIGN_OR_RETURN(csv_, OpenCsvFile(path_, options_));
    if (columns.empty()) {
      columns.resize(csv_.columns);
      std::iota(columns.begin(), columns.end(), 0);
    }
    return ReadNumbers(csv_, columns, allow_nan_);
  }
  std::string Message(const std::string& text) {
    const auto numbers = Read(text);
    EXPECT_FALSE(numbers.ok()) << text;
    std::string message(numbers.status().message());
    EXPECT_EQ(message.rfind("'" + path_ + "'", 0), 0u) << message;
    return message.substr(path_.size() + 2);
  }
  CsvOptions options_;
  bool allow_nan_ = false;
  CsvFile csv_;
  std::string path_ =
      ::testing::TempDir() + "pd_csv_" + std::to_string(::getpid());
};

TEST_F(CsvTest, ReadsNumbers) {
  const auto numbers = Read("a,b\r\n1,-2.5\r\n +3 ,4e-2\r\n");
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(csv_.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(numbers->rows, 2);
  EXPECT_EQ(numbers->values, (std::vector<double>{1, -2.5, 3, 0.04}));
  EXPECT_EQ(numbers->lines, (std::vector<int64_t>{2, 3}));
}

TEST_F(CsvTest, ReadsQuotedFieldsAndOtherDelimiters) {
  options_.delimiter = ';';
  const auto numbers =
      Read("\"a \"\"x\"\"\";\"two\nlines\"\n\"1\";2\n3;\"4\"", {1, 0});
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(csv_.names[0], "a \"x\"");
  EXPECT_EQ(csv_.names[1], "two\nlines");
  EXPECT_EQ(numbers->values, (std::vector<double>{2, 1, 4, 3}));
  EXPECT_EQ(numbers->lines, (std::vector<int64_t>{3, 4}));
}

TEST_F(CsvTest, ReadsWithoutHeaderAndSkipsBlankLines) {
  options_.header = false;
  const auto numbers = Read(
      "\xEF\xBB\xBF"
      "1,2\n\n3,4\n\n");
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->values, (std::vector<double>{1, 2, 3, 4}));
}

TEST_F(CsvTest, LeavesOtherColumnsAlone) {
  const auto numbers = Read("name,x\nBob,1\n\"Ann, B\",2\n", {1});
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(numbers->values, (std::vector<double>{1, 2}));
}

TEST_F(CsvTest, SaysWhereItIsWrong) {
  EXPECT_EQ(Message(""), ": the file is empty; expected CSV rows");
  EXPECT_EQ(Message("a,b\n1,2\n3,4x\n"), ":3:3: '4x' is not a number");
  EXPECT_EQ(Message("a,b\n1,\n"),
            ":2:3: the field is empty; expected a number");
  EXPECT_EQ(Message("a,b\n1,2,3\n"),
            ":2:5: the row has more than 2 fields; the first has 2");
  EXPECT_EQ(Message("a,b\n1,2\n3\n"),
            ":3:1: the row has only 1 fields; the first has 2");
  EXPECT_EQ(Message("a\n\"1\n"),
            ":2:1: the quote that opens here is never closed");
  EXPECT_EQ(Message("a,b\n\"1\"2,3\n"),
            ":2:1: '2' after a field; expected ',' or the end of the line");
  EXPECT_EQ(Message("a\n1e999\n"),
            ":2:1: '1e999' is outside the range of a double");
  EXPECT_EQ(Message("a\n0x10\n"), ":2:1: '0x10' is not a number");
}

TEST_F(CsvTest, RefusesNanUnlessAllowed) {
  EXPECT_EQ(Message("a\nnan\n"), ":2:1: 'nan' is not a finite number");
  EXPECT_EQ(Message("a\n-inf\n"), ":2:1: '-inf' is not a finite number");
  allow_nan_ = true;
  const auto numbers = Read("a\nnan\n-inf\n");
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_TRUE(std::isnan(numbers->values[0]));
  EXPECT_TRUE(std::isinf(numbers->values[1]));
}

TEST_F(CsvTest, GoesOnBehindABrokenRow) {
  std::ofstream(path_, std::ios::binary)
      << "a,b\n1,2\n\n3\n\"x,4\n5,6\n7,8,9\n";
  const auto csv = OpenCsvFile(path_, options_);
  ASSERT_TRUE(csv.ok()) << csv.status();
  CsvReader reader(*csv);
  std::vector<CsvCell> cells;
  std::vector<std::string> seen;
  for (;;) {
    const auto more = reader.Next(&cells);
    if (more.ok() && !*more) break;
    seen.push_back(more.ok() ? std::string(cells[0].text) : "bad");
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "bad", "bad", "5", "bad"}));
}

TEST_F(CsvTest, TakesQuotesAsTheyAreWithoutQuoting) {
  options_.delimiter = '\t';
  options_.quoting = false;
  options_.header = false;
  std::ofstream(path_, std::ios::binary) << "\"1\t2\"\n";
  const auto csv = OpenCsvFile(path_, options_);
  ASSERT_TRUE(csv.ok()) << csv.status();
  CsvReader reader(*csv);
  std::vector<CsvCell> cells;
  ASSERT_TRUE(*reader.Next(&cells));
  EXPECT_EQ(cells[0].text, "\"1");
  EXPECT_EQ(cells[1].text, "2\"");
}

TEST_F(CsvTest, SurvivesDamage) {
  const std::string good = "a,\"b \"\"c\"\r\n1,\"2\"\n3.5,-4e1\n";
  const auto read = [this](const std::string& bad) { Read(bad).IgnoreError(); };
  ForEachPrefix(good, read);
  ForEachFlip(good, read);
}

}  // namespace test_csv
}  // namespace pd
