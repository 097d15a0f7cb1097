// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/cord.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/print_error.h"
#include "cmd/common/standard_output.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

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
            "pd-eval: error: NotFoundError: a\\x1b[31mb\\x0d\n\n");
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

}  // namespace
}  // namespace pd
