// SPDX-License-Identifier: Apache-2.0
#include "formats/pdparams.h"

#include "formats/npz.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_pdparams {

using testing::ExpectSameArray;
using testing::ExpectSameFiles;
using testing::MustRead;
using testing::Scratch;
using testing::TestData;

StateDict MustReadState(const std::string& name) {
  auto state = ReadStateDict(TestData("pickles/" + name));
  EXPECT_TRUE(state.ok()) << state.status();
  return state.ok() ? *state : StateDict();
}

TEST(PdParams, ReadsWhatPaddlePaddleWrote) {
  auto want = ReadNpz(TestData("numpy/state_dict.npz"));
  ASSERT_TRUE(want.ok());
  for (const char* name :
       {"model.p2.pdparams", "model.p3.pdparams", "model.p4.pdparams"}) {
    const StateDict state = MustReadState(name);
    ASSERT_EQ(state.tensors.size(), want->size());
    for (const auto& [key, array] : *want)
      ExpectSameArray(state.tensors.at(key), array, key);
    EXPECT_EQ(state.order.front(), "scale");
    ASSERT_EQ(state.parameter_names.size(), 13u);
    EXPECT_EQ(state.parameter_names[1].first, "conv.weight");
    EXPECT_EQ(state.parameter_names[1].second, "conv2d_0.w_0");
  }
}

TEST(PdParams, WritesPaddlePaddlesBytesBack) {
  const std::pair<const char*, int> files[] = {
      {"model.p2.pdparams", 2},  {"model.p3.pdparams", 3},
      {"model.p4.pdparams", 4},  {"adam.sched.pdopt", 4},
      {"sgd.sched.pdopt", 4},    {"sgd.const.pdopt", 4},
      {"sliced.p2.pdparams", 2}, {"sliced.p3.pdparams", 3},
      {"sliced.p4.pdparams", 4}, {"static.pdopt", 4}};
  for (const auto& [name, protocol] : files) {
    const std::string path = Scratch(name);
    ASSERT_TRUE(WriteStateDict(path, MustReadState(name), protocol, 255).ok());
    if (std::string(name) != "model.p2.pdparams" &&
        std::string(name) != "model.p3.pdparams")
      ExpectSameFiles(path, TestData(absl::StrCat("pickles/", name)));
    // Without slicing the other two are as they were.
    ASSERT_TRUE(WriteStateDict(path, MustReadState(name), protocol).ok());
    if (std::string(name).find("sliced") == std::string::npos)
      ExpectSameFiles(path, TestData(absl::StrCat("pickles/", name)));
  }
}

TEST(PdParams, JoinsSlices) {
  auto want = ReadNpz(TestData("numpy/sliced.npz"));
  ASSERT_TRUE(want.ok());
  for (const char* name : {"sliced.p2.pdparams", "sliced.p3.pdparams"}) {
    const StateDict state = MustReadState(name);
    ASSERT_EQ(state.tensors.size(), 4u);
    for (const auto& [key, array] : state.tensors)
      ExpectSameArray(array, want->at("joined/" + key), key);
  }
}

TEST(PdParams, KeepsOtherEntries) {
  const StateDict state = MustReadState("sgd.sched.pdopt");
  EXPECT_TRUE(state.has_parameter_names);
  const PickleValue* schedule = state.others.Find(kLRSchedulerKey);
  ASSERT_NE(schedule, nullptr);
  const auto* dict = schedule->As<PickleDict>();
  ASSERT_NE(dict, nullptr);
  EXPECT_EQ(*dict->Find("last_epoch")->As<int64_t>(), 3);
}

TEST(PdParams, RefusesMalformedFiles) {
  for (const std::string& path : testing::FilesOf("malformed", "pickle_"))
    EXPECT_FALSE(ReadStateDict(path).ok()) << path;
}

TEST(PdParams, SurvivesDamage) {
  std::string bytes(MustRead(TestData("pickles/sliced.p2.pdparams")).view());
  const size_t table = bytes.find("UnpackBigParamInfor@@");
  ASSERT_NE(table, std::string::npos);
  for (size_t i = table; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    for (const int flip : {0x01, 0x80, 0xff}) {
      damaged[i] = static_cast<char>(bytes[i] ^ flip);
      ParseStateDict(testing::HeapBytes(damaged)).status().IgnoreError();
    }
  }
}

}  // namespace test_pdparams
}  // namespace pd
