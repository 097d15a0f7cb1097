// SPDX-License-Identifier: Apache-2.0
// Files as torch.save writes them, with the arrays that numpy has of the same
// windows on the same storages (testdata/make/torch_files.py).
#include "formats/torch.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "formats/detect.h"
#include "formats/npz.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_torch {

using testing::ExpectSameArray;
using testing::MustRead;
using testing::TestData;

absl::StatusOr<PickleValue> Read(const std::string& name) {
  return ParseTorch(MustRead(TestData("torch/" + name)));
}

// numpy has no bfloat16: the file holds the patterns of bits.
TEST(Torch, ReadsWindowsOnStoragesOfEveryType) {
  auto want = ReadNpz(TestData("torch/state_dict.npz"));
  ASSERT_TRUE(want.ok()) << want.status();
  for (const char* name : {"state_dict.pt", "big_endian.pt", "legacy.pth"}) {
    SCOPED_TRACE(name);
    const auto root = Read(name);
    ASSERT_TRUE(root.ok()) << root.status();
    const auto* dict = root->As<PickleDict>();
    ASSERT_NE(dict, nullptr);
    EXPECT_TRUE(dict->ordered);
    ASSERT_EQ(dict->items.size(), want->size());
    for (const auto& [file_name, array] : *want) {
      const PickleValue* got = dict->Find(file_name);
      ASSERT_NE(got, nullptr) << file_name;
      ASSERT_NE(got->As<Array>(), nullptr) << file_name;
      ExpectSameArray(*got->As<Array>(), array, file_name);
    }
  }
}

TEST(Torch, TakesWhatLiesInOrderAsItLies) {
  const auto root = Read("state_dict.pt");
  ASSERT_TRUE(root.ok()) << root.status();
  const auto array = [&](const char* name) {
    return root->As<PickleDict>()->Find(name)->As<Array>();
  };
  EXPECT_EQ(array("tied.0")->bytes.get(), array("tied.1")->bytes.get());
  EXPECT_EQ(array("slice")->size(), 6);
  EXPECT_NE(array("transposed")->bytes.get(), array("whole")->bytes.get());
}

TEST(Torch, KeepsWhatStandsBesideTensors) {
  const auto root = Read("checkpoint.pth");
  ASSERT_TRUE(root.ok()) << root.status();
  const auto* dict = root->As<PickleDict>();
  ASSERT_NE(dict, nullptr);
  EXPECT_EQ(*dict->Find("epoch")->As<int64_t>(), 3);
  EXPECT_EQ(*dict->Find("best")->As<double>(), 0.5);
  const auto* model = dict->Find("model")->As<PickleDict>();
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->Find("module.fc.weight")->As<Array>()->dtype,
            DType::kFloat16);
}

TEST(Torch, SaysWhatIsWrong) {
  struct Case {
    const char* file;
    absl::StatusCode code;
    const char* part;
  };
  for (const Case& one : std::vector<Case>{
           {"beyond.pt", absl::StatusCode::kDataLoss,
            "shape [4, 6], strides [6, 1] and offset 1 reaches beyond storage "
            "'0', which has 24 elements"},
           {"negative.pt", absl::StatusCode::kDataLoss, "at least 0"},
           {"overflow.pt", absl::StatusCode::kOutOfRange, ""},
           {"stride.pt", absl::StatusCode::kDataLoss, "reaches beyond storage"},
           {"expanded.pt", absl::StatusCode::kResourceExhausted,
            "again and again"},
           {"short.pt", absl::StatusCode::kDataLoss,
            "storage '0' has 12 bytes; 4 elements of float32 take 16"},
           {"call.pt", absl::StatusCode::kPermissionDenied,
            "refused, nothing was executed"},
           {"script.pt", absl::StatusCode::kInvalidArgument,
            "it is a TorchScript module"}}) {
    const auto root = Read(one.file);
    EXPECT_EQ(root.status().code(), one.code) << root.status();
    EXPECT_TRUE(absl::StrContains(root.status().message(), one.part))
        << root.status();
  }
  // The names of torch.save are for its files alone.
  const FileBytes file = MustRead(TestData("torch/small.pth"));
  const size_t name = file.view().find("torch._utils");
  ASSERT_NE(name, absl::string_view::npos);
  const size_t begin = file.view().rfind("\x80\x02", name);
  const auto root = ParsePickle(
      {std::shared_ptr<const std::byte>(file.data, file.data.get() + begin),
       file.size - begin});
  EXPECT_EQ(root.status().code(), absl::StatusCode::kPermissionDenied)
      << root.status();
}

TEST(Torch, IsKnownByItsBytes) {
  for (const char* name : {"state_dict.pt", "legacy.pth", "checkpoint.pth"})
    EXPECT_EQ(
        DetectKind(MustRead(TestData(std::string("torch/") + name)).view(), ""),
        FileKind::kTorch)
        << name;
  EXPECT_EQ(DetectKind("PK\x05\x06", "a.pth"), FileKind::kTorch);
}

}  // namespace test_torch
}  // namespace pd
