// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/cord.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/print_error.h"
#include "cmd/common/standard_output.h"
#include "libcore/base/error.h"
#include "libcore/base/printable.h"

namespace pd {
namespace test_cmd_errors {

TEST(ExitCodeTest, MarksSayTheStatus) {
  EXPECT_EQ(ExitCode(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCode(UsageError(absl::OkStatus())), 0);
  EXPECT_EQ(ExitCode(AnswerNo("2 arrays differ")), 1);
  EXPECT_EQ(ExitCode(UsageError(InvalidArgument("bad job"))), 2);
  EXPECT_EQ(ExitCode(InvalidArgument("bad data")), 3);
  EXPECT_EQ(ExitCode(StoppedBySignal(SIGINT, "")), 130);
  EXPECT_EQ(ExitCode(StoppedBySignal(SIGTERM, "")), 143);
}

TEST(ExitCodeTest, MarksSurviveContextAndAreNotOverwritten) {
  EXPECT_EQ(ExitCode(Annotate(UsageError(NotFound("x")), "job.pbtxt")), 2);
  EXPECT_EQ(ExitCode(UsageError(AnswerNo("x"))), 1);
}

TEST(ExitTableTest, HoldsEveryStatusOnce) {
  std::vector<int> statuses;
  for (const ExitMeaning& row : ExitTable()) statuses.push_back(row.status);
  EXPECT_EQ(statuses, (std::vector<int>{0, 1, 2, 3, 130, 143}));
}

TEST(FormatErrorTest, IsTheManualsLayout) {
  absl::Status status = InvalidArgument("attr 'axis' is %d", 4);
  EXPECT_EQ(FormatError("pd-eval", status),
            "pd-eval: error: InvalidArgumentError: attr 'axis' is 4\n");
  status.SetPayload(kHintPayload, absl::Cord("Expected 4 < 2."));
  status.SetPayload(kOperatorPayload, absl::Cord("softmax"));
  EXPECT_EQ(FormatError("pd-eval", Annotate(status, "m.pdmodel")),
            "pd-eval: error: InvalidArgumentError: m.pdmodel: attr 'axis' is "
            "4\n"
            "  [Hint: Expected 4 < 2.]\n"
            "  [operator < softmax > error]\n");
}

TEST(FormatErrorTest, TellsKindsOfEndsApart) {
  EXPECT_EQ(FormatError("pd-eval", absl::OkStatus()), "");
  EXPECT_EQ(FormatError("pd-eval", CommandLineError("unknown option '-z'")),
            "pd-eval: error: unknown option '-z' (see 'pd-eval --help')\n");
  EXPECT_EQ(FormatError("pd-eval", AnswerNo("2 arrays differ")),
            "pd-eval: 2 arrays differ\n");
  EXPECT_EQ(FormatError("pd-train", StoppedBySignal(SIGINT, "stopped")),
            "pd-train: stopped\n");
}

TEST(FormatErrorTest, EscapesControlCharacters) {
  EXPECT_EQ(FormatError("pd-eval", NotFound("a\x1b[31mb\r\n")),
            "pd-eval: error: NotFoundError: a\\x1b[31mb\\r\n\n");
}

TEST(OutputStreamTest, KeepsTheReasonOfAFailedWrite) {
  const int fd = open("/dev/full", O_WRONLY);
  ASSERT_GE(fd, 0);
  {
    OutputStream out(fd, "standard output");
    out << "text";
    EXPECT_TRUE(out.good());
    const absl::Status status = out.Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(status.message(), "standard output: No space left on device");
    EXPECT_FALSE(out.good());
    EXPECT_FALSE(out.Finish().ok());
  }
  close(fd);
}

TEST(PrintableTest, LeavesTextAndEscapesWhatATerminalObeys) {
  EXPECT_EQ(Printable("größe 'a\\b' \xe6\xbc\xa2 \xf0\x9f\x98\x80"),
            "größe 'a\\b' \xe6\xbc\xa2 \xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("a\x1b[2J\x7f\t\r\n"), "a\\x1b[2J\\x7f\\t\\r\\n");
  EXPECT_EQ(PrintableLines("a\tb\r\n"), "a\tb\\r\n");
  // U+009B begins a control sequence; a surrogate, an overlong form, a number
  // above Unicode's last and cut characters are no UTF-8.
  EXPECT_EQ(Printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(Printable("\xff"
                      "a\xe6\xbc"),
            "\\xff"
            "a\\xe6\\xbc");
  for (const char* text : {"a\x1b", "\xff", "\n"})
    EXPECT_EQ(Printable(Printable(text)), Printable(text));
}

TEST(PrintableTest, FindsCutCharacters) {
  EXPECT_EQ(WholeCharacters("ab"), 2u);
  EXPECT_EQ(WholeCharacters("a\xe6\xbc"), 1u);
  EXPECT_EQ(WholeCharacters("a\xe6\xbc\xa2"), 4u);
  EXPECT_EQ(WholeCharacters("\xf0"), 0u);
  EXPECT_EQ(WholeCharacters("\xbc\xbc\xbc\xbc"), 4u);
}

TEST(OutputStreamTest, EscapesForATerminalAlone) {
  int master = -1, terminal = -1;
  ASSERT_EQ(openpty(&master, &terminal, nullptr, nullptr, nullptr), 0);
  {
    OutputStream out(terminal, "terminal");
    out << "name \x1b]0;title\x07 \xff \xe6";
    out.flush();  // in the middle of a character
    out << "\xbc\xa2";
    EXPECT_TRUE(out.Finish().ok());
  }
  char buffer[256];
  const ssize_t n = read(master, buffer, sizeof(buffer));
  ASSERT_GT(n, 0);
  std::string got(buffer, static_cast<size_t>(n));
  const std::string want = "name \\x1b]0;title\\x07 \\xff \xe6\xbc\xa2";
  while (got.size() < want.size()) {
    const ssize_t more = read(master, buffer, sizeof(buffer));
    ASSERT_GT(more, 0);
    got.append(buffer, static_cast<size_t>(more));
  }
  EXPECT_EQ(got, want);
  close(terminal);
  close(master);
}

TEST(OutputStreamTest, WritesMoreThanItsBuffer) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string text(40000, 'x');  // less than a pipe holds
  {
    OutputStream out(ends[1], "pipe");
    out << text << 1;
    EXPECT_TRUE(out.Finish().ok());
  }
  close(ends[1]);
  std::string got;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;)
    got.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  EXPECT_EQ(got, text + "1");
}

}  // namespace test_cmd_errors
}  // namespace pd
