// SPDX-License-Identifier: Apache-2.0
// A network in environments: roll-outs against sums by hand, the memory, what
// repeats, and every way in which a program can fail. The programs are one line
// of /bin/sh over .npy files.
#include "libcore/data/environment_dataset.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npy.h"
#include "gtest/gtest.h"
#include "libcore/data/experience.h"
#include "libcore/data/loader.h"

namespace pd {
namespace test_environment {

using Numbers = std::vector<float>;

// Chooses 100 times the observation, and remembers what it was asked.
class HundredTimes : public Actor {
 public:
  explicit HundredTimes(size_t environments) : environments_(environments) {}
  absl::Status Act(const std::byte* observations, uint64_t seed, uint64_t call,
                   std::byte* actions) override {
    const auto* seen = reinterpret_cast<const float*>(observations);
    auto* chosen = reinterpret_cast<float*>(actions);
    for (size_t i = 0; i < environments_; ++i) chosen[i] = 100 * seen[i];
    seeds.insert(seed);
    calls.push_back(call);
    return absl::OkStatus();
  }
  std::set<uint64_t> seeds;
  std::vector<uint64_t> calls;

 private:
  size_t environments_;
};

class EnvironmentTest : public ::testing::Test {
 protected:
  EnvironmentTest() {
    std::filesystem::create_directories(folder_);
    // Observation i is i, reward i is i.
    for (int i = 0; i < 5; ++i) {
      Save(absl::StrCat("o", i), DType::kFloat32, {1},
           Numbers{static_cast<float>(i)});
      Save(absl::StrCat("r", i), DType::kFloat32, {},
           Numbers{static_cast<float>(i)});
      Save(absl::StrCat("d", i), DType::kUInt8, {},
           std::vector<uint8_t>{static_cast<uint8_t>(i)});
    }
  }
  ~EnvironmentTest() override { std::filesystem::remove_all(folder_); }

  template <typename T>
  void Save(const std::string& name, DType dtype, Shape shape,
            const std::vector<T>& values) {
    std::byte* bytes = nullptr;
    auto array = NewArray(dtype, std::move(shape), &bytes);
    ASSERT_TRUE(array.ok()) << array.status();
    std::memcpy(bytes, values.data(), values.size() * sizeof(T));
    ASSERT_TRUE(WriteNpy(folder_ + "/" + name + ".npy", *array).ok());
  }

  // Episodes of three steps, the last of which says `done`; an action takes
  // 128 bytes for its header and 4.
  static std::string Game(int done) {
    return absl::StrCat(
        "i=0; cat o0.npy; while [ $(head -c 132 | wc -c) = 132 ]; do "
        "i=$((i + 1)); if [ $i = 3 ]; then cat r3.npy d",
        done,
        ".npy o3.npy o0.npy; i=0; else cat r$i.npy d0.npy o$i.npy; fi; done");
  }
  EnvironmentDatasetOptions Options(const std::string& command) {
    EnvironmentDatasetOptions options;
    options.program.command = command;
    options.program.folder = folder_;
    options.program.set = "train";
    options.program.timeout = 60;
    options.discount = 0.5;
    options.batch_size = 4;
    options.batches = 2;
    return options;
  }
  std::unique_ptr<Loader> Load(const EnvironmentDatasetOptions& options,
                               Actor* actor) {
    auto dataset = OpenEnvironments(options);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    LoaderOptions loading;
    loading.batch_size = options.batch_size;
    loading.seed = 7;
    auto loader = Loader::Create(*dataset, loading);
    EXPECT_TRUE(loader.ok()) << loader.status();
    (*loader)->set_actor(actor);
    return *std::move(loader);
  }

  static Numbers Field(const Batch& batch, size_t field) {
    const auto* values =
        reinterpret_cast<const float*>(batch.fields[field].data);
    return Numbers(values, values + batch.size);
  }
  // The observations of every batch of an epoch.
  static absl::StatusOr<std::vector<Numbers>> Epoch(Loader* loader,
                                                    int64_t epoch = 0,
                                                    int64_t batch = 0) {
    absl::Status status = loader->StartEpoch(epoch, batch);
    std::vector<Numbers> batches;
    while (status.ok()) {
      auto next = loader->Next();
      if (!next.ok()) return next.status();
      if (*next == nullptr) return batches;
      batches.push_back(Field(**next, 0));
    }
    return status;
  }
  absl::Status Failure(const EnvironmentDatasetOptions& options) {
    HundredTimes actor(1);
    return Epoch(Load(options, &actor).get()).status();
  }

  std::string folder_ =
      ::testing::TempDir() + "pd_environment_" + std::to_string(::getpid());
};

TEST_F(EnvironmentTest, ARollOutHasItsReturns) {
  HundredTimes actor(1);
  const auto loader = Load(Options(Game(1)), &actor);
  EXPECT_EQ(loader->batches(), 2);
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  // The first episode ends after three steps, the second one is cut.
  EXPECT_EQ(Field(**batch, 0), (Numbers{0, 1, 2, 0}));
  EXPECT_EQ(Field(**batch, 1), (Numbers{0, 100, 200, 0}));
  EXPECT_EQ(Field(**batch, 2), (Numbers{1, 2, 3, 1}));
  EXPECT_EQ(Field(**batch, 3),
            (Numbers{1 + 0.5f * 2 + 0.25f * 3, 2 + 0.5f * 3, 3, 1}));
  EXPECT_EQ(Field(**batch, 4), (Numbers{0, 0, 0, 0.5f}));
  EXPECT_EQ(Field(**batch, 5), (Numbers{3, 3, 3, 1}));
  // It goes on where it was.
  batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Field(**batch, 0), (Numbers{1, 2, 0, 1}));
  EXPECT_EQ(Field(**batch, 4), (Numbers{0, 0, 0.25f, 0.5f}));
  batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(*batch, nullptr);
  const EpisodeReturns& returns = loader->dataset().experience()->returns;
  EXPECT_EQ(returns.episodes(), 2);
  EXPECT_EQ(*returns.Mean(), 6);
  EXPECT_EQ(actor.calls, (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(EnvironmentTest, AnEpisodeThatIsCutOffWouldHaveGoneOn) {
  HundredTimes actor(1);
  const auto loader = Load(Options(Game(2)), &actor);
  ASSERT_TRUE(loader->StartEpoch(0).ok());
  const auto batch = loader->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Field(**batch, 4), (Numbers{0.125f, 0.25f, 0.5f, 0.5f}));
  EXPECT_EQ(Field(**batch, 5), (Numbers{3, 3, 3, 1}));
}

TEST_F(EnvironmentTest, WholeEpisodesMakeSmallerBatches) {
  HundredTimes actor(2);
  EnvironmentDatasetOptions options = Options(Game(1));
  options.whole_episodes = true;
  options.environments = 2;
  options.batch_size = 20;
  const auto three = Epoch(Load(options, &actor).get());
  ASSERT_TRUE(three.ok()) << three.status();
  const Numbers both = {0, 1, 2, 0, 1, 2};
  EXPECT_EQ(*three, (std::vector<Numbers>{both, both}));
  // Longer ones are cut where the batch is full.
  options.batch_size = 4;
  EXPECT_EQ(*Epoch(Load(options, &actor).get()),
            (std::vector<Numbers>{{0, 1, 0, 1}, {2, 2}}));
}

TEST_F(EnvironmentTest, EnvironmentsShareAnEpochsEpisodes) {
  HundredTimes actor(2);
  EnvironmentDatasetOptions options = Options(Game(1));
  options.environments = 2;
  options.batches = 0;
  options.episodes = 3;
  const auto loader = Load(options, &actor);
  EXPECT_EQ(loader->batches(), 0);
  // The first plays two episodes, the second one.
  EXPECT_EQ(*Epoch(loader.get()),
            (std::vector<Numbers>{{0, 1, 0, 1}, {2, 0, 2}, {1, 2}}));
  EXPECT_EQ(loader->dataset().experience()->returns.episodes(), 3);
  // An evaluation counts anew.
  options.program.set = "eval";
  const auto evaluation = Load(options, &actor);
  for (int64_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(Epoch(evaluation.get()).ok());
    EXPECT_EQ(evaluation->dataset().experience()->returns.episodes(), 3);
  }
}

TEST_F(EnvironmentTest, ThePassDecidesTheSeeds) {
  const std::string command =
      absl::StrCat("echo $PD_SET $PD_ENVIRONMENT $PD_SEED >>seeds; ", Game(1));
  const auto seeds = [&](uint64_t epoch, int64_t batch) {
    std::filesystem::remove(folder_ + "/seeds");
    HundredTimes actor(2);
    EnvironmentDatasetOptions options = Options(command);
    options.environments = 2;
    EXPECT_TRUE(
        Epoch(Load(options, &actor).get(), static_cast<int64_t>(epoch), batch)
            .ok());
    EXPECT_EQ(actor.seeds.size(), 1u);
    std::multiset<std::string> lines;
    std::ifstream in(folder_ + "/seeds");
    for (std::string line; std::getline(in, line);) lines.insert(line);
    EXPECT_EQ(lines.size(), 2u);
    EXPECT_TRUE(absl::StartsWith(*lines.begin(), "train 0 "));
    EXPECT_TRUE(absl::StartsWith(*lines.rbegin(), "train 1 "));
    EXPECT_NE(lines.begin()->substr(8), lines.rbegin()->substr(8));
    return lines;
  };
  const auto first = seeds(0, 0);
  EXPECT_EQ(seeds(0, 0), first);
  EXPECT_NE(seeds(1, 0), first);
  EXPECT_NE(seeds(0, 1), first);
}

TEST_F(EnvironmentTest, AMemoryIsDrawnFrom) {
  EnvironmentDatasetOptions options = Options(Game(1));
  options.batches = 30;
  options.memory = 5;
  options.memory_begin = 3;
  const auto play = [&](Loader* loader) {
    const auto batches = Epoch(loader);
    EXPECT_TRUE(batches.ok()) << batches.status();
    return *batches;
  };
  HundredTimes actor(1);
  const auto loader = Load(options, &actor);
  const std::vector<Numbers> batches = play(loader.get());
  ASSERT_EQ(batches.size(), 30u);
  // Three steps before the first batch, then one each.
  EXPECT_EQ(actor.calls.size(), 3u + 29u);
  std::set<float> drawn;
  for (const Numbers& batch : batches) {
    ASSERT_EQ(batch.size(), 4u);
    drawn.insert(batch.begin(), batch.end());
  }
  EXPECT_EQ(drawn, (std::set<float>{0, 1, 2}));
  // Returns are of one step.
  Experience& kept = *loader->dataset().experience();
  ASSERT_EQ(kept.memory.rows(), 5);
  for (int64_t i = 0; i < 5; ++i) {
    const auto value = [&](size_t field) {
      return *reinterpret_cast<const float*>(kept.memory.Row(field, i));
    };
    EXPECT_EQ(value(2), value(0) + 1);
    EXPECT_EQ(value(3), value(2));
    EXPECT_EQ(value(4), value(0) == 2 ? 0 : 0.5f);
    EXPECT_EQ(value(5), value(0) + 1);
  }
  // The same again, and what a checkpoint holds is what was there.
  HundredTimes other(1);
  const auto again = Load(options, &other);
  EXPECT_EQ(play(again.get()), batches);
  const NamedArrays arrays = kept.ToArrays();
  const auto third = Load(options, &other);
  ASSERT_TRUE(third->dataset().experience()->FromArrays(arrays).ok());
  const auto next = Epoch(loader.get(), 1);
  const auto resumed = Epoch(third.get(), 1);
  ASSERT_TRUE(next.ok() && resumed.ok());
  EXPECT_EQ(*next, *resumed);
  EXPECT_EQ(third->dataset().experience()->returns.episodes(),
            kept.returns.episodes());
}

TEST_F(EnvironmentTest, ADamagedExperienceIsRefused) {
  EnvironmentDatasetOptions options = Options(Game(1));
  options.memory = 5;
  HundredTimes actor(1);
  const auto loader = Load(options, &actor);
  ASSERT_TRUE(Epoch(loader.get()).ok());
  Experience& kept = *loader->dataset().experience();
  const NamedArrays whole = kept.ToArrays();
  const std::pair<std::string, Array> kCases[] = {
      {"memory_next", MakeArray<int64_t>({1}, {9})},
      {"memory_next", MakeArray<int64_t>({1}, {-1})},
      {"memory_next", MakeArray<float>({1}, {0})},
      {"memory.action", MakeArray<float>({6, 1}, Numbers(6))},
      {"memory.action", MakeArray<float>({2, 2}, Numbers(4))},
      {"memory.observation", MakeArray<int64_t>({1, 1}, {0})},
      {"episodes", MakeArray<int64_t>({1}, {-3})},
      {"returns", MakeArray<double>({1, 1}, {0})},
  };
  for (const auto& [name, array] : kCases) {
    NamedArrays arrays = whole;
    arrays[name] = array;
    const absl::Status status = kept.FromArrays(arrays);
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss)
        << name << ": " << status;
    EXPECT_TRUE(absl::StrContains(status.message(), name)) << status;
    arrays.erase(name);
    if (name != "memory_next") EXPECT_FALSE(kept.FromArrays(arrays).ok());
  }
  EXPECT_TRUE(kept.FromArrays(whole).ok());
}

TEST(FieldTable, RowsFollowEachOtherUntilItIsFull) {
  FieldSpec spec;
  spec.name = "reward";
  spec.dtype = DType::kFloat32;
  spec.shape = {1};
  FieldTable table({spec}, 4);
  const float value = 2;
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  for (int i = 0; i < 3; ++i) table.Add({bytes});
  NamedArrays arrays = table.ToArrays();
  EXPECT_TRUE(table.FromArrays(arrays).ok());
  for (const int64_t next : {0, 2, 4}) {
    arrays["memory_next"] = MakeArray<int64_t>({1}, {next});
    EXPECT_EQ(table.FromArrays(arrays).code(), absl::StatusCode::kDataLoss)
        << next;
  }
  for (int i = 0; i < 2; ++i) table.Add({bytes});
  EXPECT_EQ(table.rows(), 2);  // a refused memory is empty
}

TEST_F(EnvironmentTest, ProgramsThatFail) {
  Save("two", DType::kFloat32, {2}, Numbers{1, 2});
  Save("wide", DType::kFloat64, {}, std::vector<double>{1});
  Save("nan", DType::kFloat32, {},
       Numbers{std::numeric_limits<float>::quiet_NaN()});
  Save("onan", DType::kFloat32, {1},
       Numbers{std::numeric_limits<float>::infinity()});
  const std::string act = "cat o0.npy; head -c 132 >/dev/null; ";
  const std::pair<std::string, std::string> kCases[] = {
      {"no-such-program-7",
       "program 'no-such-program-7' environment 0 episode 1 step 0: it ended "
       "with status 127"},
      {"echo hello", "field 'observation': the stream has 'hello\\n"},
      {"cat two.npy",
       "field 'observation' has the shape [2]; the job says [1]"},
      {"cat d0.npy", "field 'observation' is uint8; the job says float32"},
      {"cat onan.npy", "field 'observation' has the number inf at 0"},
      {act + "echo because >&2; exit 3",
       "episode 1 step 1: it ended with status 3; the end of its standard "
       "error:\n  because"},
      {act + "kill -9 $$", "episode 1 step 1: it was ended by signal 9"},
      {act, "episode 1 step 1: the stream ends inside field 'reward'"},
      {act + "cat r0.npy", "the stream ends inside field 'done'"},
      {act + "cat r0.npy d0.npy; head -c 60 o1.npy",
       "the stream ends inside field 'observation'"},
      {act + "cat wide.npy",
       "field 'reward' is float64; expected float32 (.astype(\"float32\") "
       "converts it)"},
      {act + "cat two.npy", "field 'reward' has the shape [2]; expected [1]"},
      {act + "cat nan.npy", "field 'reward' has the number nan at 0"},
      {act + "cat r0.npy d3.npy",
       "field 'done' is 3; expected 0, 1 (the episode has ended) or 2"},
      {"printf '\\223NUMPY\\002\\000\\377\\377\\377\\377'; cat o0.npy",
       "an array's header takes 4294967307 bytes"},
      // It ends before it reads what it is told.
      {"cat o0.npy r0.npy d0.npy o1.npy; exec <&-; exit 4",
       "it ended with status 4"},
  };
  for (const auto& [command, message] : kCases) {
    const absl::Status status = Failure(Options(command));
    EXPECT_FALSE(status.ok()) << command;
    EXPECT_TRUE(absl::StrContains(status.message(), message))
        << command << ": " << status;
  }
}

TEST_F(EnvironmentTest, ProgramsThatGetStuck) {
  const std::pair<std::string, std::string> kCases[] = {
      {"sleep 1000", "step 0: it has written nothing for 0.3 seconds"},
      {"cat o0.npy; sleep 1000",
       "step 1: it has written nothing for 0.3 seconds"},
      {"cat o0.npy; exec >&-; sleep 1000", "it has closed its output"},
  };
  for (const auto& [command, message] : kCases) {
    EnvironmentDatasetOptions options = Options(command);
    options.program.timeout = 0.3;
    const absl::Status status = Failure(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), message)) << status;
  }
  // One that never reads: more than its pipe holds waits for it.
  EnvironmentDatasetOptions options = Options("cat o0.npy; sleep 1000");
  options.program.timeout = 0.3;
  options.program.action.shape = {1 << 20};
  class Still : public Actor {
    absl::Status Act(const std::byte*, uint64_t, uint64_t,
                     std::byte*) override {
      return absl::OkStatus();
    }
  } still;
  const absl::Status unread = Epoch(Load(options, &still).get()).status();
  EXPECT_TRUE(absl::StrContains(unread.message(),
                                "it has read nothing for 0.3 seconds"))
      << unread;
  // One that has closed its input and goes on.
  options.program.command = "exec <&-; cat o0.npy; sleep 1000";
  const absl::Status closed = Epoch(Load(options, &still).get()).status();
  EXPECT_TRUE(
      absl::StrContains(closed.message(), "it has closed its standard input"))
      << closed;
}

TEST_F(EnvironmentTest, WhoeverWaitsCanBeInterrupted) {
  HundredTimes actor(1);
  const auto loader = Load(Options("sleep 1000"), &actor);
  loader->set_interrupted([] { return true; });
  EXPECT_EQ(Epoch(loader.get()).status().code(), absl::StatusCode::kCancelled);
}

TEST_F(EnvironmentTest, WhatCannotBe) {
  const auto loader = Load(Options(Game(1)), nullptr);
  EXPECT_EQ(loader->StartEpoch(0).code(),
            absl::StatusCode::kFailedPrecondition);
  const auto refused = [&](const std::string& message, auto change) {
    EnvironmentDatasetOptions options = Options(Game(1));
    change(&options);
    const auto opened = OpenEnvironments(options);
    EXPECT_FALSE(opened.ok()) << message;
    EXPECT_TRUE(absl::StrContains(opened.status().message(), message))
        << opened.status();
  };
  using O = EnvironmentDatasetOptions;
  refused("give one of them", [](O* o) { o->episodes = 3; });
  refused("give one of them", [](O* o) { o->batches = 0; });
  refused("does not divide among 3", [](O* o) { o->environments = 3; });
  refused("'whole_episodes' cannot stand beside 'memory'", [](O* o) {
    o->memory = 10;
    o->whole_episodes = true;
  });
  refused("expected fewer than", [](O* o) { o->batches = int64_t{1} << 31; });
  refused("every extent is 1 or more", [](O* o) {
    o->program.observation.shape = {2, 0};
  });
  refused("", [](O* o) {
    o->program.observation.shape = {1 << 20};
    o->memory = int64_t{1} << 50;
  });
}

}  // namespace test_environment
}  // namespace pd
