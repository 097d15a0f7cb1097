// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/loader.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/data/datasets.h"

namespace {
std::atomic<int64_t> g_allocations{0};
}  // namespace

// Counts every allocation of the process, so that the steady state can be
// shown to have none. Not inlined: GCC would take malloc and delete for a
// mismatch.
__attribute__((noinline)) void* operator new(size_t size) {
  g_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept {
  std::free(p);
}
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept {
  std::free(p);
}

namespace pd {
namespace {

// 103 grey images of 5 x 4 and labels; fails at record `bad`.
class FakeDataset : public Dataset {
 public:
  static constexpr int64_t kRecords = 103, kPixels = 20;
  explicit FakeDataset(int64_t bad = -1) : bad_(bad) {
    size_ = kRecords;
    fields_ = {{"image", DType::kUInt8, {5, 4, 1}, true},
               {"label", DType::kInt64, {1}, false}};
    for (int64_t i = 0; i < kRecords * kPixels; ++i)
      pixels_.push_back(static_cast<uint8_t>(i * 7 + i / 251));
    for (int64_t i = 0; i < kRecords; ++i) labels_.push_back(i % 10);
  }
  absl::Status Read(int64_t index, Record* record) const override {
    if (index == bad_) return DataLoss("%s: damaged", Describe(index));
    record->fields.resize(2);
    record->fields[0] = {
        reinterpret_cast<const std::byte*>(pixels_.data() + index * kPixels), 5,
        4, 1};
    record->fields[1] = {
        reinterpret_cast<const std::byte*>(labels_.data() + index)};
    return absl::OkStatus();
  }
  std::string Describe(int64_t index) const override {
    return "'fake' record " + std::to_string(index);
  }

 private:
  int64_t bad_;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
};

LoaderOptions Options(int workers) {
  LoaderOptions options;
  options.batch_size = 8;
  options.shuffle = true;
  options.num_workers = workers;
  options.seed = 42;
  options.transforms = {
      transforms::RandomCrop{{5, 4}, {1}}, transforms::RandomHorizontalFlip{},
      transforms::RandomRotation{{20}}, transforms::ToTensor{},
      transforms::Normalize{{0.5f}, {0.25f}}};
  return options;
}

std::unique_ptr<Loader> Make(const LoaderOptions& options, int64_t bad = -1) {
  auto loader = Loader::Create(std::make_shared<FakeDataset>(bad), options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

// A batch as bytes: its number, records and fields.
std::string Flatten(const Batch& batch) {
  std::string bytes = std::to_string(batch.index) + ":";
  for (int64_t record : batch.records) bytes += std::to_string(record) + ",";
  for (const BatchField& field : batch.fields) {
    bytes += field.name + ToString(field.shape);
    bytes.append(
        reinterpret_cast<const char*>(field.data),
        static_cast<size_t>(NumElements(field.shape)) * SizeOf(field.dtype));
  }
  return bytes;
}

std::vector<std::string> Epoch(Loader* loader, int64_t epoch,
                               int64_t first = 0) {
  std::vector<std::string> batches;
  EXPECT_TRUE(loader->StartEpoch(epoch, first).ok());
  for (;;) {
    const auto batch = loader->Next();
    EXPECT_TRUE(batch.ok()) << batch.status();
    if (!batch.ok() || *batch == nullptr) return batches;
    batches.push_back(Flatten(**batch));
  }
}

TEST(LoaderTest, SaysWhatBatchesLookLike) {
  const auto loader = Make(Options(1));
  ASSERT_EQ(loader->fields().size(), 2u);
  EXPECT_EQ(loader->fields()[0].name, "image");
  EXPECT_EQ(loader->fields()[0].dtype, DType::kFloat32);
  EXPECT_EQ(loader->fields()[0].shape, (Shape{8, 1, 5, 4}));
  EXPECT_EQ(loader->fields()[1].dtype, DType::kInt64);
  EXPECT_EQ(loader->fields()[1].shape, (Shape{8, 1}));
  EXPECT_EQ(loader->batches(), 13);
}

TEST(LoaderTest, GivesTheSameBytesForAnyNumberOfWorkers) {
  const auto synchronous = Make(Options(0));
  const auto first = Epoch(synchronous.get(), 0);
  const auto second = Epoch(synchronous.get(), 1);
  EXPECT_EQ(first.size(), 13u);
  EXPECT_NE(first, second);
  for (int workers : {1, 2, 5}) {
    LoaderOptions options = Options(workers);
    for (int prefetch : {1, 2, 20}) {
      options.prefetch = prefetch;
      const auto loader = Make(options);
      EXPECT_EQ(Epoch(loader.get(), 0), first) << workers << " " << prefetch;
      EXPECT_EQ(Epoch(loader.get(), 1), second) << workers << " " << prefetch;
    }
  }
}

TEST(LoaderTest, StartsAtAnyBatchOfAnyEpoch) {
  const auto loader = Make(Options(2));
  const auto whole = Epoch(loader.get(), 3);
  for (int64_t first = 0; first <= loader->batches(); ++first) {
    const auto rest = Epoch(loader.get(), 3, first);
    EXPECT_EQ(rest,
              std::vector<std::string>(whole.begin() + first, whole.end()));
  }
  EXPECT_FALSE(loader->StartEpoch(0, 14).ok());
  EXPECT_FALSE(loader->StartEpoch(-1).ok());
}

TEST(LoaderTest, AStrideGivesSomeOfTheBatches) {
  const auto whole = Epoch(Make(Options(0)).get(), 3);
  for (int64_t stride : {2, 3, 20}) {
    for (int64_t begin = 0; begin < stride; ++begin) {
      LoaderOptions options = Options(2);
      options.stride = stride;
      options.stride_begin = begin;
      const auto loader = Make(options);
      EXPECT_EQ(loader->batches(), 13);
      for (int64_t first = 0; first <= loader->batches(); ++first) {
        std::vector<std::string> own;
        for (int64_t i = begin; i < loader->batches(); i += stride)
          if (i >= first) own.push_back(whole[static_cast<size_t>(i)]);
        EXPECT_EQ(Epoch(loader.get(), 3, first), own);
      }
    }
  }
}

TEST(LoaderTest, RepeatsBatchesWhereAFlagSaysSo) {
  ASSERT_TRUE(SetFlag("reader_queue_speed_test_mode", "true").ok());
  for (int workers : {0, 1}) {
    LoaderOptions options = Options(workers);
    options.prefetch = 1;
    const auto loader = Make(options);
    const auto whole = Epoch(loader.get(), 0);
    ASSERT_EQ(whole.size(), 13u);
    const auto after = [](const std::string& batch) {
      return batch.substr(batch.find(':'));
    };
    const size_t slots = workers == 0 ? 1 : 2;
    for (size_t i = slots; i < 12; ++i)
      EXPECT_EQ(after(whole[i]), after(whole[i - slots])) << workers;
    EXPECT_NE(after(whole[12]), after(whole[12 - slots]));  // a smaller one
  }
  ASSERT_TRUE(SetFlag("reader_queue_speed_test_mode", "false").ok());
}

TEST(LoaderTest, LeavesOutAPartialBatchWhenAsked) {
  LoaderOptions options = Options(1);
  options.drop_last = true;
  EXPECT_EQ(Epoch(Make(options).get(), 0).size(), 12u);
  options.batch_size = 200;
  EXPECT_EQ(Epoch(Make(options).get(), 0).size(), 0u);
}

TEST(LoaderTest, ABatchStaysWhileTheNextOnesAreMade) {
  LoaderOptions options = Options(3);
  options.prefetch = 1;
  const auto expected = Epoch(Make(options).get(), 0);
  const auto loader = Make(options);
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  for (const std::string& bytes : expected) {
    const auto batch = loader->Next();
    ASSERT_TRUE(batch.ok());
    for (int i = 0; i < 200; ++i) ASSERT_EQ(Flatten(**batch), bytes);
  }
}

TEST(LoaderTest, ReportsTheRecordThatFailedInItsPlace) {
  for (int workers : {0, 1, 4}) {
    LoaderOptions options = Options(workers);
    options.shuffle = false;
    const auto loader = Make(options, 50);  // in batch 6
    for (int again = 0; again < 2; ++again) {
      ASSERT_TRUE(loader->StartEpoch(again).ok());
      for (int i = 0; i < 6; ++i) ASSERT_TRUE(loader->Next().ok()) << i;
      for (int i = 0; i < 2; ++i) {
        const auto batch = loader->Next();
        ASSERT_FALSE(batch.ok());
        EXPECT_EQ(batch.status().message(), "'fake' record 50: damaged");
      }
    }
  }
}

TEST(LoaderTest, StopsAtAnyTime) {
  for (int workers : {1, 3}) {
    for (int taken = 0; taken < 15; ++taken) {
      const auto loader = Make(Options(workers));
      ASSERT_TRUE(loader->StartEpoch(0).ok());
      for (int i = 0; i < taken; ++i) ASSERT_TRUE(loader->Next().ok());
    }
    const auto never_started = Make(Options(workers));
  }
}

// A worker's buffers grow with the first batches that it happens to make, which
// may be late; from then on epochs allocate nothing.
TEST(LoaderTest, AllocatesNothingInTheSteadyState) {
  constexpr int kMostEpochs = 200, kWanted = 3;
  for (int workers : {0, 2}) {
    const auto loader = Make(Options(workers));
    int in_a_row = 0;
    for (int epoch = 0; epoch < kMostEpochs && in_a_row < kWanted; ++epoch) {
      ASSERT_TRUE(loader->StartEpoch(epoch).ok());
      const int64_t before = g_allocations.load();
      for (;;) {
        const auto batch = loader->Next();
        ASSERT_TRUE(batch.ok());
        if (*batch == nullptr) break;
      }
      in_a_row = g_allocations.load() == before ? in_a_row + 1 : 0;
    }
    EXPECT_EQ(in_a_row, kWanted) << workers << " workers";
  }
}

TEST(LoaderTest, CountsWhatItCost) {
  const auto loader = Make(Options(0));
  Epoch(loader.get(), 0);
  const LoaderStats stats = loader->stats();
  EXPECT_EQ(stats.batches, 13);
  EXPECT_GT(stats.fill_seconds, 0);
  EXPECT_GT(stats.wait_seconds, 0);
}

TEST(LoaderTest, RefusesOptionsOutOfRange) {
  const auto data = std::make_shared<FakeDataset>();
  const auto refused = [&](auto change) {
    LoaderOptions options = Options(1);
    change(&options);
    return !Loader::Create(data, options).ok();
  };
  EXPECT_TRUE(refused([](LoaderOptions* o) { o->batch_size = 0; }));
  EXPECT_TRUE(refused([](LoaderOptions* o) { o->num_workers = -1; }));
  EXPECT_TRUE(refused([](LoaderOptions* o) { o->prefetch = 0; }));
  EXPECT_TRUE(refused(
      [](LoaderOptions* o) { o->transforms = {transforms::Resize{{0}}}; }));
  EXPECT_TRUE(refused([](LoaderOptions* o) { o->stride_begin = 1; }));
  EXPECT_TRUE(refused([](LoaderOptions* o) { o->stride = o->shards = 2; }));
}

TEST(LoaderTest, FeedsMnist) {
  auto data = OpenMnist(PD_TESTDATA "/mnist", "test");
  ASSERT_TRUE(data.ok()) << data.status();
  LoaderOptions options;
  options.batch_size = 64;
  options.transforms = {transforms::Normalize{{127.5f}, {127.5f}}};
  auto loader = Loader::Create(*data, options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ((*loader)->batches(), 157);
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  const auto batch = (*loader)->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  const int64_t first[] = {7, 2, 1, 0, 4};
  EXPECT_EQ(std::memcmp((*batch)->fields[1].data, first, sizeof(first)), 0);
  const auto* pixels = reinterpret_cast<const float*>((*batch)->fields[0].data);
  EXPECT_EQ(pixels[0], -1.0f);
  // Row 7, column 6 of the first test image is 84.
  EXPECT_EQ(pixels[7 * 28 + 6], (84 - 127.5f) / 127.5f);
}

}  // namespace
}  // namespace pd
