// SPDX-License-Identifier: Apache-2.0
// Texts in pieces of whole records, from files, pipes and compressed files.
#include "formats/text_pieces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/csv.h"
#include "formats/gzip.h"

namespace pd {
namespace test_text_pieces {

class TextPiecesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pd_pieces_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(folder_, "/", name);
    EXPECT_TRUE(WriteFile(path, text).ok());
    return path;
  }
  // The pieces' texts, and in front of each the line that it begins with.
  static std::vector<std::string> Pieces(const std::string& path,
                                         const TextPieceOptions& options) {
    auto pieces = TextPieces::Open(path, options);
    EXPECT_TRUE(pieces.ok()) << pieces.status();
    std::vector<std::string> texts;
    TextPiece piece;
    for (;;) {
      const auto more = (*pieces)->Next(&piece);
      if (!more.ok()) {
        texts.emplace_back(more.status().message());
        return texts;
      }
      if (!*more) return texts;
      texts.push_back(absl::StrCat(piece.first_line, "|", piece.bytes.view()));
    }
  }
  std::string folder_;
};

using Texts = std::vector<std::string>;

TEST_F(TextPiecesTest, EndAtRecords) {
  TextPieceOptions options;
  options.records = 2;
  EXPECT_EQ(Pieces(Write("a", "a\nb\nc\nd\ne"), options),
            (Texts{"1|a\nb\n", "3|c\nd\n", "5|e"}));
  EXPECT_EQ(Pieces(Write("b", "a\n\nb\n"), options),
            (Texts{"1|a\n\n", "3|b\n"}));
  EXPECT_EQ(Pieces(Write("c", ""), options), Texts{});
  EXPECT_EQ(Pieces(Write("d.gz", *Gzip("a\nb\nc\n")), options),
            (Texts{"1|a\nb\n", "3|c\n"}));
  options.records = 100;
  options.bytes = 3;
  EXPECT_EQ(Pieces(Write("e", "aa\nb\nc\n"), options),
            (Texts{"1|aa\n", "2|b\nc\n"}));
}

TEST_F(TextPiecesTest, QuotesHoldLineBreaks) {
  TextPieceOptions options;
  options.records = 1;
  const std::string text =
      "1,\"two\nlines, \"\"quoted\"\"\n\"\n5\" wide,\"x\"\n\"\",2\n";
  const std::string path = Write("q", text);
  EXPECT_EQ(Pieces(path, options).size(), 5);
  options.quoting = true;
  const Texts expected = {"1|1,\"two\nlines, \"\"quoted\"\"\n\"\n",
                          "4|5\" wide,\"x\"\n", "5|\"\",2\n"};
  EXPECT_EQ(Pieces(path, options), expected);
  // The reader of CSV cuts the whole file at the same places.
  CsvOptions csv_options;
  csv_options.header = false;
  const auto csv = OpenCsvFile(path, csv_options);
  ASSERT_TRUE(csv.ok());
  CsvReader reader(*csv);
  std::vector<CsvCell> cells;
  std::vector<int64_t> lines;
  for (;;) {
    const auto more = reader.Next(&cells);
    ASSERT_TRUE(more.ok()) << more.status();
    if (!*more) break;
    lines.push_back(cells[0].line);
  }
  EXPECT_EQ(lines, (std::vector<int64_t>{1, 4, 5}));
}

TEST_F(TextPiecesTest, RefusesRecordsWithoutEnd) {
  TextPieceOptions options;
  options.quoting = true;
  options.most_bytes = 100;
  std::string text = "a,b\n1,\"never closed\n";
  text.append(size_t{3} << 20, 'x');
  const Texts pieces = Pieces(Write("r", text), options);
  ASSERT_FALSE(pieces.empty());
  EXPECT_TRUE(absl::StrContains(pieces.back(),
                                "/r':2: the record that begins "
                                "in this line is longer than "
                                "100 bytes; is a quote never "
                                "closed?"))
      << pieces.back();
}

TEST_F(TextPiecesTest, HandsOnWhatCameWhereAPipePauses) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  int answered[2];
  ASSERT_EQ(::pipe(answered), 0);
  std::thread writer([&path, &answered] {
    const int fd = ::open(path.c_str(), O_WRONLY);
    EXPECT_EQ(::write(fd, "a\nb", 3), 3);
    // Only when the first record has been handed on does the rest come.
    char byte;
    EXPECT_EQ(::read(answered[0], &byte, 1), 1);
    EXPECT_EQ(::write(fd, "\nc", 2), 2);
    ::close(fd);
  });
  auto pieces = TextPieces::Open(path);
  ASSERT_TRUE(pieces.ok());
  TextPiece piece;
  ASSERT_TRUE(*(*pieces)->Next(&piece));
  EXPECT_EQ(piece.bytes.view(), "a\n");
  EXPECT_EQ(::write(answered[1], "x", 1), 1);
  std::string rest;
  while (*(*pieces)->Next(&piece)) rest += std::string(piece.bytes.view());
  EXPECT_EQ(rest, "b\nc");
  writer.join();
}

}  // namespace test_text_pieces
}  // namespace pd
