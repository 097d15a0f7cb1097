// SPDX-License-Identifier: Apache-2.0
// Variables that share memory in PaddlePaddle: its programs that coalesce
// variables, and a training of its recurrent layers, whose files hold each
// weight twice.
#include <gtest/gtest.h>

#include <cmath>

#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/kernels/attach.h"
#include "libcore/train/program_training.h"

namespace pd {
namespace test_shared_memory {

std::string Data(const std::string& name) {
  return std::string(PD_TESTDATA "/shared_memory/") + name;
}

template <typename T>
T Take(absl::StatusOr<T> value) {
  EXPECT_TRUE(value.ok()) << value.status();
  return value.ok() ? *std::move(value) : T();
}

// Step `step` of [steps, ...].
Array At(const Array& all, int64_t step) {
  Array one = all;
  one.shape.erase(one.shape.begin());
  one.bytes = {all.bytes,
               all.bytes.get() + static_cast<size_t>(step) * one.size_bytes()};
  return one;
}

void ExpectNear(const Array& want, const Array& got, double atol,
                const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  for (int64_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(want.data<float>()[i], got.data<float>()[i], atol)
        << what << ", element " << i;
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
  }
  OpRegistry registry_;
};

// The main program scales the flat variable, reads a part, adds to the other
// part and sums up the flat variable. "aligned" has room between its parts.
TEST_F(SharedMemoryTest, WhoWritesTheOneWritesTheOther) {
  for (const std::string folder : {"ops", "aligned"}) {
    SCOPED_TRACE(folder);
    const ProgramDesc startup =
        Take(ReadProgram(Data(folder + "/startup.pdmodel")));
    const ProgramDesc main = Take(ReadProgram(Data(folder + "/main.pdmodel")));
    const NamedArrays batches = Take(ReadNpz(Data(folder + "/batches.npz")));
    const NamedArrays want = Take(ReadNpz(Data(folder + "/expect.npz")));
    for (int64_t step = 0; step < 3; ++step) {
      Session session(&registry_);
      const absl::Status started = session.RunOnce(startup);
      ASSERT_TRUE(started.ok()) << started;
      const auto got = session.Run(main, {{"x", At(batches.at("x"), step)}},
                                   {"seen_b", "total", "a", "flat"});
      ASSERT_TRUE(got.ok()) << got.status();
      for (const auto& [name, all] : want)
        ExpectNear(At(all, step), got->at(name), 1e-4, name);
      ExpectNear(At(want.at("flat"), step), Take(session.scope().Get("flat")),
                 1e-4, "flat in the scope");
    }
  }
}

// `startup`: whether the program that coalesces the weights is at hand.
void Train(const OpRegistry& registry, bool startup) {
  ProgramTrainingOptions options;
  options.programs = {Take(ReadProgram(Data("rnn/main.pdmodel")))};
  options.losses = {"mean_0.tmp_0"};
  options.batches = Take(ReadNpz(Data("rnn/batches.npz")));
  auto training = ProgramTraining::Create(&registry, std::move(options));
  ASSERT_TRUE(training.ok()) << training.status();
  Session& session = (*training)->session();
  if (startup) {
    const auto started =
        session.RunOnce(Take(ReadProgram(Data("rnn/startup.pdmodel"))));
    ASSERT_TRUE(started.ok()) << started;
  }
  for (const char* suffix : {".pdparams", ".pdopt"}) {
    const StateDict init = Take(ReadStateDict(Data("rnn/init") + suffix));
    for (const std::string& name : init.order)
      ASSERT_TRUE(session.scope().Set(name, init.tensors.at(name)).ok());
  }
  const Array losses = Take(ReadNpy(Data("rnn/losses.npy")));
  for (int64_t step = 0; step < (*training)->steps(); ++step) {
    const absl::Status status = (*training)->Run(step);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_NEAR((*training)->losses()[0], losses.data<float>()[step], 1e-5);
  }
  const std::string prefix = ::testing::TempDir() + "/shared_memory_rnn";
  ASSERT_TRUE((*training)->Save(prefix).ok());
  for (const char* suffix : {".pdparams", ".pdopt"}) {
    const StateDict want = Take(ReadStateDict(Data("rnn/final") + suffix));
    const StateDict got = Take(ReadStateDict(prefix + suffix));
    for (const auto& [name, value] : want.tensors) {
      ASSERT_EQ(got.tensors.count(name), 1u) << name;
      ExpectNear(value, got.tensors.at(name), 1e-5, name);
    }
  }
}

TEST_F(SharedMemoryTest, FlatWeightsAreTrainedToo) { Train(registry_, true); }

TEST_F(SharedMemoryTest, FlatWeightsAreKnownByTheirOps) {
  Train(registry_, false);
}

// Setting a flat variable sets the variables that share its memory.
TEST_F(SharedMemoryTest, SettingAFlatVariableSetsItsParts) {
  Scope scope;
  FlatVariable flat;
  flat.name = "flat";
  flat.size = 6;
  flat.parts = {{"a", {2, 2}, 0}, {"b", {2}, 4}};
  scope.Share(flat);
  const StateDict init = Take(ReadStateDict(Data("rnn/init.pdparams")));
  Array value = init.tensors.at("gru_cell_0.b_0");  // six numbers
  ASSERT_TRUE(scope.Set("flat", value).ok());
  EXPECT_EQ(Take(scope.Get("a")).shape, (Shape{2, 2}));
  EXPECT_EQ(Take(scope.Get("a")).data<float>()[3], value.data<float>()[3]);
  EXPECT_EQ(Take(scope.Get("b")).data<float>()[1], value.data<float>()[5]);
  value.shape = {3, 2};
  EXPECT_FALSE(scope.Set("flat", value).ok());
}

}  // namespace test_shared_memory
}  // namespace pd
