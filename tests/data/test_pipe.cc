// SPDX-License-Identifier: Apache-2.0
// Records that a program writes: what it may write, every way in which it can
// fail, and that nothing of it is left. The programs are one line of /bin/sh
// over .npy files.
#include "libcore/data/pipe_dataset.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npy.h"
#include "gtest/gtest.h"
#include "libcore/data/loader.h"

namespace pd {
namespace test_pipe {

class PipeTest : public ::testing::Test {
 protected:
  PipeTest() {
    std::filesystem::create_directories(folder_);
    // Five records "x", float32 [2], and "y", int64 [1]: x is 10 i and 10 i
    // + 1.
    for (int64_t i = 0; i < 5; ++i) {
      const auto v = static_cast<float>(10 * i);
      Save(absl::StrCat("x", i), DTypeOf<float>(), {2},
           std::vector<float>{v, v + 1});
      Save(absl::StrCat("y", i), DTypeOf<int64_t>(), {1},
           std::vector<int64_t>{i % 3});
    }
  }
  ~PipeTest() override { std::filesystem::remove_all(folder_); }

  template <typename T>
  void Save(const std::string& name, DType dtype, Shape shape,
            const std::vector<T>& values) {
    std::byte* bytes = nullptr;
    auto array = NewArray(dtype, std::move(shape), &bytes);
    ASSERT_TRUE(array.ok()) << array.status();
    std::memcpy(bytes, values.data(), values.size() * sizeof(T));
    ASSERT_TRUE(WriteNpy(folder_ + "/" + name + ".npy", *array).ok());
  }
  void Write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  std::string Text(const std::string& name) {
    std::ifstream in(folder_ + "/" + name);
    std::string word;
    in >> word;
    return word;
  }

  PipeDatasetOptions Options(const std::string& command) {
    PipeDatasetOptions options;
    options.command = command;
    options.folder = folder_;
    options.set = "train";
    options.fields = {{"x", DType::kFloat32, {2}, 0},
                      {"y", DType::kInt64, {1}, 3}};
    options.timeout = 60;
    return options;
  }
  std::unique_ptr<Loader> Load(const PipeDatasetOptions& pipe,
                               LoaderOptions options = {}) {
    auto dataset = OpenPipe(pipe);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    if (options.batch_size == 1) options.batch_size = 2;
    options.seed = 7;
    auto loader = Loader::Create(*dataset, options);
    EXPECT_TRUE(loader.ok()) << loader.status();
    return *std::move(loader);
  }

  // The first number of every record of an epoch.
  static absl::StatusOr<std::vector<float>> FirstNumbers(Loader* loader,
                                                         int64_t epoch = 0,
                                                         int64_t batch = 0) {
    absl::Status status = loader->StartEpoch(epoch, batch);
    std::vector<float> numbers;
    while (status.ok()) {
      auto next = loader->Next();
      if (!next.ok()) return next.status();
      if (*next == nullptr) return numbers;
      const BatchField& x = (*next)->fields[0];
      const auto* values = reinterpret_cast<const float*>(x.data);
      int64_t stride = 1;
      for (size_t axis = 1; axis < x.shape.size(); ++axis)
        stride *= x.shape[axis];
      for (int64_t i = 0; i < (*next)->size; ++i)
        numbers.push_back(values[i * stride]);
    }
    return status;
  }
  absl::Status Failure(const PipeDatasetOptions& options) {
    return FirstNumbers(Load(options).get()).status();
  }

  static constexpr char kFive[] =
      "for i in 0 1 2 3 4; do cat x$i.npy y$i.npy; done";
  std::string folder_ =
      ::testing::TempDir() + "pd_pipe_" + std::to_string(::getpid());
};

using Numbers = std::vector<float>;

TEST_F(PipeTest, RecordsComeInTheirOrderAndTheEpochEndsWithThem) {
  const auto loader = Load(Options(kFive));
  EXPECT_TRUE(loader->is_stream());
  EXPECT_EQ(loader->batches(), 0);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    const auto numbers = FirstNumbers(loader.get(), epoch);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
    EXPECT_EQ(*numbers, (Numbers{0, 10, 20, 30, 40}));
  }
  // A number of records that the batches divide ends an epoch, too.
  LoaderOptions five;
  five.batch_size = 5;
  EXPECT_EQ(*FirstNumbers(Load(Options(kFive), five).get()),
            (Numbers{0, 10, 20, 30, 40}));
  LoaderOptions full;
  full.drop_last = true;
  EXPECT_EQ(*FirstNumbers(Load(Options(kFive), full).get()),
            (Numbers{0, 10, 20, 30}));
  // A thread of its own reads, with workers or without.
  LoaderOptions none;
  none.num_workers = 0;
  EXPECT_EQ(*FirstNumbers(Load(Options(kFive), none).get()),
            (Numbers{0, 10, 20, 30, 40}));
}

TEST_F(PipeTest, AnEpochBeginsInItsMiddle) {
  const auto loader = Load(Options(kFive));
  EXPECT_EQ(*FirstNumbers(loader.get(), 0, 1), (Numbers{20, 30, 40}));
  EXPECT_EQ(*FirstNumbers(loader.get(), 0, 2), (Numbers{40}));
  const auto fewer =
      FirstNumbers(Load(Options("cat x0.npy y0.npy")).get(), 0, 2);
  EXPECT_EQ(fewer.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(fewer.status().message(), "record 1"))
      << fewer.status();
}

TEST_F(PipeTest, ManyRecordsInOneArray) {
  Save("xs", DType::kFloat32, {3, 2}, Numbers{1, 2, 3, 4, 5, 6});
  Save("ys", DType::kInt64, {3}, std::vector<int64_t>{0, 1, 2});
  Save("one", DType::kInt64, {}, std::vector<int64_t>{2});
  EXPECT_EQ(
      *FirstNumbers(Load(Options("cat xs.npy ys.npy x1.npy one.npy")).get()),
      (Numbers{1, 3, 5, 10}));
  const absl::Status two = Failure(Options("cat xs.npy y1.npy"));
  EXPECT_TRUE(absl::StrContains(two.message(),
                                "field 'y' has 1 records; field 'x' has 3"))
      << two;
}

TEST_F(PipeTest, RecordsThatDifferInTheirExtents) {
  Save("a", DType::kFloat32, {1, 2}, Numbers{1, 2});
  Save("b", DType::kFloat32, {3, 2}, Numbers{3, 4, 5, 6, 7, 8});
  PipeDatasetOptions options = Options("cat a.npy b.npy");
  options.fields = {{"x", DType::kFloat32, {-1, 2}, 0}};
  const auto loader = Load(options);
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  const auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)->fields[0].shape, (Shape{2, 3, 2}));
  const auto* values = reinterpret_cast<const float*>((*batch)->fields[0].data);
  EXPECT_EQ(Numbers(values, values + 12),
            (Numbers{1, 2, 0, 0, 0, 0, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(*reinterpret_cast<const int64_t*>((*batch)->fields[1].data), 1);
}

TEST_F(PipeTest, EitherByteOrderAndTransformedPictures) {
  std::string header =
      "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }";
  header.resize(117, ' ');
  Write("big.npy",
        absl::StrCat(kNpyMagic, std::string("\x01\x00\x76\x00", 4), header,
                     "\n", std::string("\x40\x00\x00\x00\x3f\x80\x00\x00", 8)));
  EXPECT_EQ(*FirstNumbers(Load(Options("cat big.npy y0.npy")).get()),
            (Numbers{2}));
  std::vector<uint8_t> pixels(2 * 3 * 1);
  std::iota(pixels.begin(), pixels.end(), uint8_t{50});
  Save("p", DType::kUInt8, {2, 3, 1}, pixels);
  PipeDatasetOptions options = Options("cat p.npy p.npy");
  options.fields = {{"image", DType::kUInt8, {-1, -1, 1}, 0}};
  LoaderOptions transforms;
  transforms.transforms = {transforms::RandomHorizontalFlip{1.0f}};
  // Their size is not known before the program runs.
  const auto open = Loader::Create(*OpenPipe(options), transforms);
  EXPECT_TRUE(
      absl::StrContains(open.status().message(), "add Resize or a crop"))
      << open.status();
  transforms.transforms.insert(transforms.transforms.begin(),
                               transforms::CenterCrop{{2, 3}});
  transforms.batch_size = 2;
  const auto loader = Load(options, transforms);
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  const auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ((*batch)->fields[0].shape, (Shape{2, 2, 3, 1}));
  const auto* out = reinterpret_cast<const uint8_t*>((*batch)->fields[0].data);
  EXPECT_EQ(std::vector<uint8_t>(out, out + 6),
            (std::vector<uint8_t>{52, 51, 50, 55, 54, 53}));
}

TEST_F(PipeTest, ItRunsFromTheEpochsStartOnAndKnowsWhichItIs) {
  const std::string command =
      "echo $PD_EPOCH.$PD_SEED.$PD_SET >ran; cat x$PD_EPOCH.npy y0.npy";
  const auto loader = Load(Options(command));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ran"));
  EXPECT_EQ(*FirstNumbers(loader.get(), 3), (Numbers{30}));
  EXPECT_EQ(Text("ran"), "3.7.train");
  // Its standard input is empty, not this process's.
  EXPECT_EQ(*FirstNumbers(Load(Options("cat; cat x1.npy y1.npy")).get()),
            (Numbers{10}));
}

TEST_F(PipeTest, AGivenNumberOfRecords) {
  PipeDatasetOptions options =
      Options("while :; do cat x1.npy y1.npy || exit; done");
  options.records = 3;
  const auto loader = Load(options);
  EXPECT_EQ(loader->batches(), 2);
  EXPECT_EQ(*FirstNumbers(loader.get()), (Numbers{10, 10, 10}));
  EXPECT_EQ(*FirstNumbers(loader.get(), 1), (Numbers{10, 10, 10}));
  options.command = kFive;
  options.records = 6;
  const absl::Status fewer = Failure(options);
  EXPECT_TRUE(absl::StrContains(fewer.message(),
                                "record 5: the stream ended before it; an "
                                "epoch has 6 records"))
      << fewer;
}

TEST_F(PipeTest, ProgramsThatFail) {
  const std::string one = "cat x0.npy y0.npy; ";
  const std::pair<std::string, std::string> kCases[] = {
      {"no-such-program-7",
       "record 0: it ended with status 127, as what is not"
       " found does; the end of its standard error:\n"},
      {one + "echo because >&2; exit 3",
       "record 1: it ended with status 3; the end of its standard error:\n  "
       "because"},
      {one + "kill -9 $$", "record 1: it was ended by signal 9"},
      {one + "head -c 60 x1.npy", "record 1: the stream ends inside field 'x'"},
      {one + "head -c 130 x1.npy; exit 4", "record 1: it ended with status 4"},
      {one + "cat x1.npy", "record 1: the stream ends inside field 'y'"},
      {"echo hello; " + one, "record 0: field 'x': the stream has 'hello\\n"},
      {"cat y0.npy x0.npy",
       "field 'x' is int64; the job says float32 "
       "(.astype(\"float32\") converts it)"},
      {"printf '\\223NUMPY\\002\\000\\377\\377\\377\\377'; cat x0.npy",
       "an array's header takes 4294967307 bytes"},
      {"printf '\\223NUMPY\\011\\000aaaaaaaaaaaa'", "format version is 9.0"},
  };
  for (const auto& [command, message] : kCases) {
    const absl::Status status = Failure(Options(command));
    EXPECT_TRUE(absl::StrContains(status.message(), message))
        << command << ": " << status;
  }
}

TEST_F(PipeTest, ArraysThatDoNotFit) {
  const auto header = [](const std::string& shape) {
    std::string text = absl::StrCat(
        "{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, ", }");
    text.resize(117, ' ');
    return absl::StrCat(kNpyMagic, std::string("\x01\x00\x76\x00", 4), text,
                        "\n");
  };
  Write("three.npy", header("(3,)"));
  Write("huge.npy", header("(1000000000000, 2)"));
  Write("wide.npy", header("(4611686018427387904, 2)"));
  Write("large.npy", header("(1000000, 2)"));
  const std::pair<std::string, std::string> kCases[] = {
      {"three", "field 'x' has the shape [3]; the job says [2]"},
      {"huge", "takes 8000000000000 bytes; expected at most 1073741824"},
      {"wide", "field 'x'"},
      {"large", "the stream ends inside field 'x'"}};
  for (const auto& [file, message] : kCases) {
    const absl::Status status = Failure(Options("cat " + file + ".npy"));
    EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  }
}

TEST_F(PipeTest, ProgramsThatGetStuck) {
  PipeDatasetOptions options = Options("cat x0.npy y0.npy; sleep 1000");
  options.timeout = 0.3;
  const absl::Status silent = Failure(options);
  EXPECT_EQ(silent.code(), absl::StatusCode::kDeadlineExceeded) << silent;
  EXPECT_TRUE(absl::StrContains(silent.message(),
                                "record 1: it has written nothing for 0.3 s"))
      << silent;
  options.command = "cat x0.npy y0.npy; exec >&-; sleep 1000";
  const absl::Status closed = Failure(options);
  EXPECT_TRUE(absl::StrContains(closed.message(), "it has closed its output"))
      << closed;
}

// Sends nothing: asks whether there is such a process.
bool Lives(const std::string& pid) {
  return ::kill(static_cast<pid_t>(std::stoi(pid)), 0) == 0 || errno != ESRCH;
}

TEST_F(PipeTest, NothingOfAProgramIsLeft) {
  // One that waits, with a child; and one that takes no notice of SIGTERM.
  for (const char* ignore : {"", "trap '' TERM; "}) {
    auto loader = Load(Options(absl::StrCat(
        ignore,
        "cat x0.npy y0.npy x1.npy y1.npy; sleep 1000 & echo $! >child; "
        "echo $$ >parent; wait; wait")));
    ASSERT_TRUE(loader->StartEpoch(0).ok());
    ASSERT_TRUE(loader->Next().ok());
    while (Text("parent").empty()) ::usleep(1000);
    EXPECT_TRUE(Lives(Text("parent")));
    loader = nullptr;
    EXPECT_FALSE(Lives(Text("parent")));
    // The child is not ours to wait for: it may be a zombie for long.
    std::string letter = "S";
    for (int tries = 0; tries < 1000 && letter != "Z"; ++tries) {
      std::ifstream state("/proc/" + Text("child") + "/stat");
      std::string pid, name;
      letter = "Z";  // or there is no such process any more
      state >> pid >> name >> letter;
      if (letter != "Z") ::usleep(10000);
    }
    EXPECT_EQ(letter, "Z");
    std::filesystem::remove(folder_ + "/parent");
  }
}

TEST_F(PipeTest, WhoeverWaitsCanBeInterrupted) {
  const auto loader = Load(Options("sleep 1000"));
  loader->set_interrupted([] { return true; });
  EXPECT_EQ(FirstNumbers(loader.get()).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(PipeTest, ABadRecordIsAnErrorOrLeftOut) {
  Save("far", DType::kInt64, {1}, std::vector<int64_t>{3});
  const PipeDatasetOptions options =
      Options("cat x0.npy y0.npy x1.npy far.npy x2.npy y2.npy");
  const absl::Status status = Failure(options);
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "record 1: field 'y' is 3; expected 0 to 2"))
      << status;
  LoaderOptions skip;
  skip.skip_bad = true;
  const auto loader = Load(options, skip);
  EXPECT_EQ(*FirstNumbers(loader.get()), (Numbers{0, 20}));
  EXPECT_EQ(loader->skipped().count, 1);
}

TEST_F(PipeTest, NoOtherOrderThanTheStreams) {
  LoaderOptions shuffled, contiguous, bucketed;
  shuffled.shuffle = contiguous.sampling.contiguous = true;
  bucketed.bucket_field = "x";
  for (const LoaderOptions& options : {shuffled, contiguous, bucketed}) {
    const auto loader = Loader::Create(*OpenPipe(Options(kFive)), options);
    EXPECT_TRUE(absl::StrContains(loader.status().message(),
                                  "records come in the order of the stream"))
        << loader.status();
  }
  PipeDatasetOptions twice = Options(kFive);
  twice.fields[1].name = "x";
  EXPECT_EQ(OpenPipe(twice).status().code(), absl::StatusCode::kAlreadyExists);
  PipeDatasetOptions nothing = Options(kFive);
  nothing.fields[0].shape = {2, 0};
  EXPECT_EQ(OpenPipe(nothing).status().code(),
            absl::StatusCode::kInvalidArgument);
  PipeDatasetOptions nowhere = Options(kFive);
  nowhere.folder = folder_ + "/none";
  EXPECT_EQ(Failure(nowhere).code(), absl::StatusCode::kNotFound);
}

}  // namespace test_pipe
}  // namespace pd
