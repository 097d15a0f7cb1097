// SPDX-License-Identifier: Apache-2.0
// The queue of a model: requests of several threads are joined where that
// changes no answer, limits hold, and nothing that was accepted is lost.
#include "libcore/serve/batcher.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/program/small_program.h"
#include "tests/serve/serve_fixture.h"

namespace pd {
namespace serve {
namespace test_batcher {

// y = x less the mean of the batch: it keeps the shape [-1, 4], and a row's
// answer depends on the others.
std::shared_ptr<inference::SharedModel> CentredModel() {
  LoadedModel model;
  model.kind = LoadedModel::Kind::kInference;
  model.path = "centred";
  model.program.blocks.resize(1);
  AddVar(&model.program, "x", {-1, 4});
  AddVar(&model.program, "mean", {1, 4});
  AddVar(&model.program, "y", {-1, 4});
  AddOp(&model.program, "reduce_mean", {{"X", {"x"}}}, {{"Out", {"mean"}}},
        {{"dim", std::vector<int32_t>{0}}, {"keep_dim", true}});
  AddOp(&model.program, "elementwise_sub", {{"X", {"x"}}, {"Y", {"mean"}}},
        {{"Out", {"y"}}});
  model.feeds = {"x"};
  model.fetches = {"y"};
  auto shared = inference::SharedModel::Make(std::move(model), {});
  EXPECT_TRUE(shared.ok()) << shared.status();
  return *std::move(shared);
}

// Joined only when all rows are there: no test waits so long.
constexpr double kLong = 600;

std::string BatchLines(const ModelMetrics& metrics) {
  std::string text;
  metrics.batch_requests.AppendTo("b", "m=\"1\"", &text);
  return text;
}

// Every row of `feed` in a thread of its own, each row `rounds` times.
void AnswerRows(Batcher* batcher, const NamedArrays& feed, const Array& want,
                int rounds) {
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < want.shape[0]; ++i)
    threads.emplace_back([&, i] {
      NamedArrays row;
      for (const auto& [name, array] : feed) row[name] = RowOf(array, i);
      for (int round = 0; round < rounds; ++round) {
        const auto answer = batcher->Answer(row);
        ASSERT_TRUE(answer.ok()) << answer.status();
        ExpectClose((*answer)[0], RowOf(want, i));
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Runs as often as are needed for a judgement, of sizes up to 8.
void NoteRuns(BatchSizes* sizes, double alone, double two, double four,
              double eight) {
  EXPECT_EQ(sizes->Most("k", 1, 8), 1);
  const double seconds[] = {alone, two, four, eight};
  for (int i = 0; i < 4; ++i)
    for (int run = 0; run < 3; ++run)
      sizes->Note("k", 1 << i, seconds[i] * (1 << i));
}

TEST(BatchSizesTest, ADoublingHasToSaveTime) {
  BatchSizes saves, not_at_all, to_four, compiles;
  NoteRuns(&saves, 8, 7, 6, 5);
  EXPECT_EQ(saves.Most("k", 1, 8), 8);
  EXPECT_EQ(saves.Most("k", 1, 4), 4);
  EXPECT_EQ(saves.Most("k", 1, 7), 4);
  EXPECT_EQ(saves.Most("k", 1, 1), 1);
  NoteRuns(&not_at_all, 8, 8, 1, 1);
  EXPECT_EQ(not_at_all.Most("k", 1, 8), 1);
  NoteRuns(&to_four, 8, 7, 6, 9);
  EXPECT_EQ(to_four.Most("k", 1, 8), 4);
  // It is tried again now and then.
  int tried = 0;
  for (int i = 0; i < 64; ++i) tried += to_four.Most("k", 1, 8) != 4;
  EXPECT_EQ(tried, 1);
  // The first run of a size, which compiles, does not count.
  EXPECT_EQ(compiles.Most("k", 1, 8), 1);
  for (const double seconds : {100, 8, 8}) compiles.Note("k", 1, seconds);
  EXPECT_EQ(compiles.Most("k", 1, 8), 2);
  for (const double seconds : {500, 12, 12}) compiles.Note("k", 2, seconds);
  EXPECT_EQ(compiles.Most("k", 1, 2), 2);
}

TEST(BatcherTest, JoinedRequestsHaveTheAnswersOfPaddlePaddle) {
  const NamedArrays feed = ArraysOf(Deployed("lenet-feed.npz"));
  const Array want = ArraysOf(Deployed("lenet-expect.npz")).begin()->second;
  BatchOptions options;
  options.max_batch = want.shape[0];
  options.max_delay = kLong;
  options.max_wait_seconds = kLong;
  const auto metrics = std::make_shared<ModelMetrics>();
  Batcher batcher(ModelOf(Deployed("lenet.pdmodel")), options, metrics);
  AnswerRows(&batcher, feed, want, 1);
  // One run of all five.
  const std::string lines = BatchLines(*metrics);
  EXPECT_NE(lines.find("b_count{m=\"1\"} 1\n"), std::string::npos) << lines;
  EXPECT_NE(lines.find("b_sum{m=\"1\"} 5\n"), std::string::npos) << lines;
}

TEST(BatcherTest, WorkersShareAModel) {
  const NamedArrays feed = ArraysOf(Deployed("cifar_resnet-feed.npz"));
  const Array want =
      ArraysOf(Deployed("cifar_resnet-expect.npz")).begin()->second;
  BatchOptions options;
  options.workers = 3;
  options.max_wait_seconds = kLong;
  const auto metrics = std::make_shared<ModelMetrics>();
  Batcher batcher(ModelOf(Deployed("cifar_resnet.pdmodel")), options, metrics);
  AnswerRows(&batcher, feed, want, 5);
  EXPECT_EQ(metrics->waiting, 0);
}

// Runs `rows` joined if the batcher joins at all, and expects what each has
// alone: x less its own mean is 0 for a row alone.
TEST(BatcherTest, RowsThatDependOnEachOtherAreNotJoined) {
  BatchOptions options;
  options.max_batch = 4;
  options.max_delay = kLong;
  options.max_wait_seconds = kLong;
  const auto metrics = std::make_shared<ModelMetrics>();
  Batcher batcher(CentredModel(), options, metrics);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      const float x = static_cast<float>(i);
      const NamedArrays row = {
          {"x", MakeArray<float>({1, 4}, {x, x + 1, 5 - x, x * x})}};
      const auto answer = batcher.Answer(row);
      ASSERT_TRUE(answer.ok()) << answer.status();
      for (int j = 0; j < 4; ++j)
        EXPECT_EQ((*answer)[0].data<float>()[j], 0) << i << " " << j;
    });
  for (std::thread& thread : threads) thread.join();
  const std::string lines = BatchLines(*metrics);
  EXPECT_NE(lines.find("b_count{m=\"1\"} 4\n"), std::string::npos) << lines;
}

TEST(JoinProofTest, FindsWhatAModelDoes) {
  Runner lenet(ModelOf(Deployed("lenet.pdmodel")));
  Runner centred(CentredModel());
  // A batch of two equal rows: only the trial's own numbers tell.
  const NamedArrays rows = {
      {"x", MakeArray<float>({2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}};
  JoinProof proof;
  EXPECT_FALSE(proof.Refuted("c"));
  EXPECT_FALSE(proof.MayJoin("c", rows, &centred));
  EXPECT_TRUE(proof.Refuted("c"));
  const NamedArrays pictures = ArraysOf(Deployed("lenet-feed.npz"));
  EXPECT_TRUE(proof.MayJoin("l", pictures, &lenet));
  // Two outputs, of which one has another number of rows than the input.
  Runner open(ModelOf(Deployed("open_extents.pdmodel")));
  const NamedArrays maps = ArraysOf(Deployed("open_extents-feed.npz"));
  EXPECT_FALSE(proof.MayJoin("o", maps, &open));
  EXPECT_TRUE(proof.Refuted("o"));
}

TEST(BatcherTest, AWrongRequestDoesNotFailItsNeighbours) {
  const std::string path = std::string(PD_TESTDATA) + "/inference/word2vec";
  const NamedArrays feed = ArraysOf(path + "-feed.npz");
  const Array want = ArraysOf(path + "-expect.npz").begin()->second;
  BatchOptions options;
  options.max_batch = 4;
  options.max_delay = kLong;
  options.max_wait_seconds = kLong;
  Batcher batcher(ModelOf(path), options, std::make_shared<ModelMetrics>());
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      NamedArrays row;
      for (const auto& [name, array] : feed) row[name] = RowOf(array, i);
      // A word beyond the vocabulary.
      if (i == 2) row.begin()->second = MakeArray<int64_t>({1, 1}, {1 << 30});
      const auto answer = batcher.Answer(row);
      if (i == 2) {
        failed += !answer.ok();
        return;
      }
      ASSERT_TRUE(answer.ok()) << answer.status();
      ExpectClose((*answer)[0], RowOf(want, i));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 1);
}

TEST(BatcherTest, SequencesAndWhatDoesNotFitThem) {
  const std::string path = std::string(PD_TESTDATA) + "/inference/ner";
  NamedArrays feed = ArraysOf(path + "-feed.npz");
  const Array want = ArraysOf(path + "-expect.npz").begin()->second;
  Batcher batcher(ModelOf(path), {}, std::make_shared<ModelMetrics>());
  for (auto& [name, array] : feed) array.lod = {{0, 3, 5, 9}};
  const auto answer = batcher.Answer(feed);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ExpectClose((*answer)[0], want);
  for (const LoD& bad : {LoD{{0, 3, 5, 8}}, LoD{{0, 3}, {0, 9}}, LoD{{}},
                         LoD{{0, 1ull << 60}}}) {
    feed.begin()->second.lod = bad;
    EXPECT_FALSE(batcher.Answer(feed).ok());
  }
}

TEST(BatcherTest, LimitsOfTheQueue) {
  BatchOptions options;
  options.max_batch = 64;
  options.max_delay = kLong;
  options.max_wait_seconds = kLong;
  options.max_queue = 1;
  const auto metrics = std::make_shared<ModelMetrics>();
  Batcher batcher(ModelOf(Deployed("lenet.pdmodel")), options, metrics);
  const NamedArrays one = {
      {"x", RowOf(ArraysOf(Deployed("lenet-feed.npz")).begin()->second, 0)}};
  std::thread first([&] {
    const auto answer = batcher.Answer(one);
    EXPECT_TRUE(answer.ok()) << answer.status();
  });
  while (metrics->waiting == 0) std::this_thread::yield();
  const auto second = batcher.Answer(one);
  EXPECT_TRUE(absl::IsResourceExhausted(second.status())) << second.status();
  // The end answers what waits, and lets nobody in.
  batcher.Close();
  first.join();
  EXPECT_TRUE(absl::IsAborted(batcher.Answer(one).status()));
}

TEST(BatcherTest, ARequestThatWaitsTooLongIsGivenUp) {
  BatchOptions options;
  options.max_batch = 64;
  options.max_delay = kLong;
  options.max_wait_seconds = 0.01;
  const auto metrics = std::make_shared<ModelMetrics>();
  Batcher batcher(ModelOf(Deployed("lenet.pdmodel")), options, metrics);
  const NamedArrays one = {
      {"x", RowOf(ArraysOf(Deployed("lenet-feed.npz")).begin()->second, 0)}};
  const auto answer = batcher.Answer(one);
  EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  EXPECT_EQ(metrics->waiting, 0);
}

}  // namespace test_batcher
}  // namespace serve
}  // namespace pd
