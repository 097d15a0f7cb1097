// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle.h"

#include "formats/npz.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_pickle {

using testing::ExpectSameArray;
using testing::FilesOf;
using testing::HeapBytes;
using testing::MustRead;
using testing::TestData;

const PickleValue& At(const PickleValue& value, absl::string_view key) {
  static const auto* none = new PickleValue;
  const auto* dict = value.As<PickleDict>();
  const PickleValue* found = dict != nullptr ? dict->Find(key) : nullptr;
  EXPECT_NE(found, nullptr) << key;
  return found != nullptr ? *found : *none;
}

TEST(Pickle, ReadsPlainValuesOfEveryProtocol) {
  for (const char* name : {"nested.p2.pd", "nested.p3.pd", "nested.p4.pd"}) {
    auto root = ReadPickle(TestData(std::string("pickles/") + name));
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(TypeName(At(*root, "none")), "None");
    EXPECT_EQ(*At(*root, "yes").As<bool>(), true);
    EXPECT_EQ(*At(*root, "neg").As<int64_t>(), -129);
    EXPECT_EQ(*At(*root, "big").As<int64_t>(), 1099511627779);
    EXPECT_EQ(At(*root, "huge").As<PickleBigInt>()->bytes.size(), 13u);
    EXPECT_EQ(*At(*root, "f").As<double>(), 1.5);
    EXPECT_EQ(*At(*root, "s").As<std::string>(), "text");
    EXPECT_EQ(At(*root, "t4").As<PickleTuple>()->items.size(), 4u);
    EXPECT_EQ(*At(*root, "cplx").As<std::complex<double>>(),
              std::complex<double>(1, 2));
    EXPECT_TRUE(At(*root, "od").As<PickleDict>()->ordered);
    const auto* tensor = At(*root, "tensor").As<PickleTuple>();
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(*tensor->items[0].As<std::string>(), "a_tensor");
  }
}

TEST(Pickle, ReadsArraysOfEveryProtocol) {
  auto want = ReadNpz(TestData("numpy/nested.npz"));
  ASSERT_TRUE(want.ok()) << want.status();
  for (const char* name : {"nested.p2.pd", "nested.p3.pd", "nested.p4.pd"}) {
    auto root = ReadPickle(TestData(std::string("pickles/") + name));
    ASSERT_TRUE(root.ok()) << root.status();
    for (const char* key :
         {"arr", "arr64", "ints", "flag", "scalar0d", "npf", "npi", "fort",
          "noncontig", "empty_arr", "be", "f16", "c64"})
      ExpectSameArray(*At(*root, key).As<Array>(), want->at(key), key);
  }
}

TEST(Pickle, ReadsOtherPythonsAndNumpys) {
  auto want = ReadNpz(TestData("numpy/foreign.npz"));
  ASSERT_TRUE(want.ok());
  for (const char* name : {"numpy2", "proto0", "proto1", "proto5", "py2"}) {
    auto root =
        ReadPickle(TestData(absl::StrCat("pickles/", name, ".pdparams")));
    ASSERT_TRUE(root.ok()) << root.status();
    for (const char* key : {"w", "b"})
      ExpectSameArray(*At(*root, key).As<Array>(), want->at(key), name);
  }
}

// A static graph's tensor is a call of eval, of which this one shape is read.
TEST(Pickle, ReadsSavedLoDTensors) {
  for (const char* name : {"tensor.p2.pdtensor", "tensor.p4.pdtensor"}) {
    auto root = ReadPickle(TestData(std::string("pickles/") + name));
    ASSERT_TRUE(root.ok()) << root.status();
    ASSERT_NE(root->As<Array>(), nullptr);
    EXPECT_EQ(root->As<Array>()->shape, (Shape{5, 7}));
  }
}

TEST(Pickle, WritesPaddlePaddlesBytesBack) {
  const std::pair<const char*, int> files[] = {
      {"model.p2.pdparams", 2},  {"model.p3.pdparams", 3},
      {"model.p4.pdparams", 4},  {"dtypes.pdparams", 4},
      {"adam.sched.pdopt", 4},   {"static.pdopt", 4},
      {"jit.pdiparams.info", 2}, {"tensor.pdtensor", 4}};
  for (const auto& [name, protocol] : files) {
    const std::string path = TestData(absl::StrCat("pickles/", name));
    auto root = ReadPickle(path);
    ASSERT_TRUE(root.ok()) << root.status();
    auto bytes = SerializePickle(*root, protocol);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_TRUE(*bytes == MustRead(path).view()) << name;
  }
}

// Frames, batches of 1000, integers at their borders, long strings.
TEST(Pickle, GivesBackWhatItWrote) {
  PickleDict dict;
  PickleList list;
  for (int i = 0; i < 2001; ++i) list.items.push_back(PickleValue{int64_t{i}});
  for (int bits = 7; bits < 56; bits += 8)
    for (const int64_t d : {-1, 0, 1}) {
      list.items.push_back(PickleValue{(int64_t{1} << bits) + d});
      list.items.push_back(PickleValue{-(int64_t{1} << bits) + d});
    }
  dict.Add("list", PickleValue{list});
  dict.Add("long", PickleValue{std::string(70000, 'x')});
  dict.Add("bytes", PickleValue{PickleBytes{std::string("\0\xff", 2)}});
  dict.Add("array", PickleValue{MakeArray<float>(
                        {40000}, std::vector<float>(40000, 1))});
  for (int i = 0; i < 1000; ++i)
    dict.Add(absl::StrCat("k", i), PickleValue{0.5 * i});
  for (const int protocol : {2, 3, 4}) {
    auto bytes = SerializePickle(PickleValue{dict}, protocol);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    auto root = ParsePickle(HeapBytes(*bytes));
    ASSERT_TRUE(root.ok()) << root.status();
    EXPECT_EQ(root->As<PickleDict>()->items.size(), 1004u);
    const auto* again = At(*root, "list").As<PickleList>();
    ASSERT_EQ(again->items.size(), list.items.size());
    for (size_t i = 0; i < list.items.size(); ++i)
      ASSERT_EQ(*again->items[i].As<int64_t>(), *list.items[i].As<int64_t>());
    EXPECT_EQ(At(*root, "long").As<std::string>()->size(), 70000u);
    EXPECT_EQ(At(*root, "array").As<Array>()->size(), 40000);
    EXPECT_EQ(*SerializePickle(*root, protocol), *bytes);
  }
}

TEST(Pickle, RefusesMalformedFiles) {
  for (const std::string& path : FilesOf("malformed", "pickle_")) {
    // Two of the files are whole pickles that are no state dicts.
    if (path.find("slices_wrong_total") != std::string::npos ||
        path.find("name_table_not_dict") != std::string::npos)
      continue;
    EXPECT_FALSE(ReadPickle(path).ok()) << path;
  }
  EXPECT_EQ(ReadPickle(TestData("malformed/pickle_os_system.pdparams"))
                .status()
                .code(),
            absl::StatusCode::kPermissionDenied);
}

// Each list names the one before it twice: 2^60 values in a few hundred bytes.
TEST(Pickle, RefusesExponentialSharing) {
  std::string bytes = "\x80\x02]q";
  bytes += '\0';
  for (int i = 1; i <= 60; ++i) {
    bytes += "](h";
    bytes += static_cast<char>(i - 1);
    bytes += 'h';
    bytes += static_cast<char>(i - 1);
    bytes += "eq";
    bytes += static_cast<char>(i);
  }
  bytes += '.';
  EXPECT_FALSE(ParsePickle(HeapBytes(bytes)).ok());
}

TEST(Pickle, RefusesKeysThatAreNoUtf8) {
  // {b'\xff\x1b': 1} of Python 2, the same as text, and inside of a tuple.
  for (const std::string& bytes : {std::string("\x80\x02}U\x02\xff\x1bK\x01s."),
                                   std::string("\x80\x02}X\x02\0\0\0\xff\x1b"
                                               "K\x01s.",
                                               14),
                                   std::string("\x80\x02}U\x02\xff\x1b\x85"
                                               "K\x01s.")}) {
    const auto value = ParsePickle(HeapBytes(bytes));
    ASSERT_FALSE(value.ok());
    EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
    if (bytes.find('\x85') == std::string::npos)
      EXPECT_EQ(value.status().message(),
                "a dict's key '\\xff\\x1b' is no UTF-8; expected names in "
                "UTF-8");
  }
  const std::string text("\x80\x02}X\x02\0\0\0\xc3\xa9K\x01s.", 14);
  EXPECT_TRUE(ParsePickle(HeapBytes(text)).ok());
}

TEST(Pickle, RefusesLoops) {
  const std::string self("\x80\x02]q\0h\0a.", 9);
  EXPECT_FALSE(ParsePickle(HeapBytes(self)).ok());
}

TEST(Pickle, SurvivesDamage) {
  for (const char* name :
       {"py2.pdparams", "proto0.pdparams", "proto5.pdparams", "numpy2.pdparams",
        "tensor.p4.pdtensor", "sgd.sched.pdopt"})
    testing::ForEveryDamage(
        MustRead(TestData(std::string("pickles/") + name)).view(),
        [](const FileBytes& file) {
          ParsePickle(file).status().IgnoreError();
        });
}

}  // namespace test_pickle
}  // namespace pd
