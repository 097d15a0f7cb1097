// SPDX-License-Identifier: Apache-2.0
// A clock of the test's own, a memory stream as the terminal.
#include "cmd/common/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "libcore/base/log.h"

namespace pd {
namespace test_cmd_progress {

class ProgressTest : public ::testing::Test {
 protected:
  ProgressTest() : stream_(open_memstream(&text_, &size_)) {}
  ~ProgressTest() override {
    std::fclose(stream_);
    std::free(text_);
  }
  ProgressOptions Options(ProgressMode mode) {
    ProgressOptions options;
    options.stream = stream_;
    options.mode = mode;
    options.columns = 90;
    options.clock = [this] { return now_; };
    return options;
  }
  std::string Take() {
    std::fflush(stream_);
    std::string text(text_, size_);
    std::rewind(stream_);
    return text;
  }

  double now_ = 100;
  char* text_ = nullptr;
  size_t size_ = 0;
  std::FILE* stream_;
};

TEST_F(ProgressTest, PlainLinesComeNowAndThen) {
  Progress progress(Options(ProgressMode::kLines));
  progress.Begin("epoch 2/5", 938);
  const ProgressValue loss{"loss", 0.07123};
  for (int step = 1; step <= 420; ++step) {
    now_ += 0.0125;  // 80 steps a second: the line comes at step 400
    progress.Update(step, step * 64, {&loss, 1});
  }
  EXPECT_EQ(Take(),
            "epoch 2/5  400/938  loss 0.0712  5120 samples/s  0:07 left\n");
}

TEST_F(ProgressTest, BarIsRedrawnAndCleared) {
  {
    Progress progress(Options(ProgressMode::kBar));
    progress.Begin("epoch 1/1", 10);
    EXPECT_EQ(Take(),
              "\repoch 1/1  [>                           ]  0/10\x1b[K");
    now_ += 1;
    progress.Update(5, 5);
    EXPECT_EQ(Take(),
              "\repoch 1/1  [==============>             ]  5/10  "
              "5.00 samples/s  0:01 left\x1b[K");
    now_ += 0.01;
    progress.Update(6, 6);  // not due
    EXPECT_EQ(Take(), "");
    progress.End();
    EXPECT_EQ(Take(), "\r\x1b[K");
  }
  EXPECT_EQ(Take(), "");
}

TEST_F(ProgressTest, LogLinesClearTheBar) {
  Progress progress(Options(ProgressMode::kBar));
  progress.Begin("epoch 1/1", 10);
  Take();
  LogInfo("a line of the log");
  EXPECT_EQ(Take(), "\r\x1b[K");
}

TEST_F(ProgressTest, QuietWritesNothing) {
  Progress progress(Options(ProgressMode::kQuiet));
  progress.Begin("epoch 1/1", 10);
  now_ += 60;
  progress.Update(5, 5);
  progress.End();
  EXPECT_EQ(Take(), "");
}

TEST(LayOutTest, GivesUpPartsForWidth) {
  ProgressLine line;
  line.label = "epoch 2/5";
  line.count = "420/938";
  line.values = "loss 0.0712";
  line.rate = "38012 samples/s";
  line.left = "0:12 left";
  line.fraction = 0.5;
  for (int columns = 10; columns < 200; ++columns)
    EXPECT_LE(LayOut(line, columns, false).size(),
              static_cast<size_t>(columns));
  EXPECT_EQ(LayOut(line, 72, false),
            "epoch 2/5  [====>    ]  420/938  loss 0.0712  38012 samples/s  "
            "0:12 left");
  EXPECT_EQ(LayOut(line, 60, false),
            "epoch 2/5  420/938  loss 0.0712  38012 samples/s  0:12 left");
  EXPECT_EQ(LayOut(line, 20, false), "epoch 2/5  420/938");
  EXPECT_NE(LayOut(line, 80, true).find("\x1b[32m"), std::string::npos);
}

TEST(DurationTest, Formats) {
  EXPECT_EQ(Duration(0), "0:00");
  EXPECT_EQ(Duration(187.2), "3:07");
  EXPECT_EQ(Duration(3723), "1:02:03");
  EXPECT_EQ(Duration(-1), "--:--");
  EXPECT_EQ(Duration(std::numeric_limits<double>::infinity()), "--:--");
  EXPECT_EQ(Duration(std::nan("")), "--:--");
}

TEST(ShortNumberTest, Formats) {
  EXPECT_EQ(ShortNumber(0.07123), "0.0712");
  EXPECT_EQ(ShortNumber(2.302585), "2.303");
  EXPECT_EQ(ShortNumber(98.76), "98.76");
  EXPECT_EQ(ShortNumber(1.25e-7), "1.25e-07");
  EXPECT_EQ(ShortNumber(0), "0.0000");
  EXPECT_EQ(ShortNumber(std::nan("")), "nan");
}

}  // namespace test_cmd_progress
}  // namespace pd
