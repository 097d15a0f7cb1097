// SPDX-License-Identifier: Apache-2.0
// Rows, texts, padding and what is made of datasets; expected numbers are
// worked by hand.
#include <unistd.h>

#include <cmath>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libcore/data/loader.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace test_rows {

class RowsTest : public ::testing::Test {
 protected:
  RowsTest() { std::filesystem::create_directories(folder_); }
  ~RowsTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string folder_ =
      ::testing::TempDir() + "pd_rows_" + std::to_string(::getpid());
};

template <typename T>
std::vector<T> Values(const Dataset& data, int64_t index, size_t field) {
  Record record;
  EXPECT_TRUE(data.Read(index, &record).ok());
  int64_t count = 1;
  const Shape& shape = data.fields()[field].shape;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    count *= shape[axis] < 0 ? record.fields[field].extents[axis] : shape[axis];
  const T* values = reinterpret_cast<const T*>(record.fields[field].data);
  return std::vector<T>(values, values + count);
}

using Ids = std::vector<int64_t>;

TEST_F(RowsTest, TextsCategoriesHashesAndMissingValues) {
  CsvDatasetOptions options;
  options.paths = {
      Write("t.tsv", "pos\tthe cat the\ta1\t3\nneg\tthe dog\t\t\n")};
  options.delimiter = '\t';
  options.header = false;
  ValueOptions category, text, hash, number;
  category.categories.emplace();
  text.text.emplace();
  hash.hash_buckets = 1000;
  number.missing = -1;
  number.log1p = true;
  options.fields = {{"label", {"0"}, category},
                    {"words", {"1"}, text},
                    {"ad", {"2"}, hash},
                    {"n", {"3"}, number}};
  const auto data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  // "neg" < "pos"; pad, unk, <s>, </s>, then the (3 times), cat, dog.
  EXPECT_EQ(Values<int64_t>(**data, 0, 0), Ids{1});
  EXPECT_EQ(Values<int64_t>(**data, 1, 0), Ids{0});
  EXPECT_EQ(Values<int64_t>(**data, 0, 1), (Ids{4, 5, 4}));
  EXPECT_EQ(Values<int64_t>(**data, 1, 1), (Ids{4, 6}));
  EXPECT_EQ(Values<float>(**data, 0, 3)[0], std::log(4.0f));
  EXPECT_EQ(Values<float>(**data, 1, 3)[0], 0.0f);
  const int64_t bucket = Values<int64_t>(**data, 0, 2)[0];
  EXPECT_EQ(bucket, HashBucket("a1", 0, 1000));
  EXPECT_TRUE(bucket >= 0 && bucket < 1000);
}

TEST_F(RowsTest, LeavesOutAndCountsBadRows) {
  CsvDatasetOptions options;
  options.paths = {Write("b.csv", "x\n1\nz\n3\n\"\n")};
  options.skip_bad = true;
  const auto data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
  EXPECT_EQ(Values<float>(**data, 1, 0)[0], 3.0f);
  EXPECT_EQ((*data)->left_out().count, 2);
  EXPECT_EQ((*data)->left_out().first[0],
            "'" + options.paths[0] + "':3:1: 'z' is not a number");
}

TEST_F(RowsTest, Jsonl) {
  JsonlDatasetOptions options;
  options.paths = {Write("j.jsonl",
                         "{\"y\": 1, \"b\": [[1,2],[3,4]], \"m\": {\"w\": "
                         "\"a b\"}}\n\n{\"y\": 0, \"b\": [], \"m\": {\"w\": "
                         "\"b\"}}\n")};
  ValueOptions label, text;
  label.dtype = DType::kInt64;
  label.classes = 2;
  text.text.emplace();
  options.fields = {{"label", "y", {}, label},
                    {"boxes", "b", {-1, 2}},
                    {"words", "m.w", {}, text}};
  auto data = OpenJsonl(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->fields()[0].shape, Shape{1});
  EXPECT_EQ(Values<float>(**data, 0, 1), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(Values<float>(**data, 1, 1).empty());
  EXPECT_EQ(Values<int64_t>(**data, 0, 2), (Ids{5, 4}));  // b came twice
  options.fields[0].value.classes = 1;
  EXPECT_EQ(OpenJsonl(options).status().message(),
            "'" + options.paths[0] +
                "':1: column 7: field 'label' is 1; expected 0 to 0");
  options.fields[0].value.classes = 2;
  options.fields[0].path = "z";
  EXPECT_EQ(OpenJsonl(options).status().message(),
            "'" + options.paths[0] +
                "':1: there is no value 'z' for field 'label' (missing: 0 in "
                "the field would stand for such values)");
}

TEST_F(RowsTest, LibSvm) {
  LibSvmDatasetOptions options;
  options.paths = {Write("s.txt", "-1 1:0.5 3:2\n+1\n")};
  options.features = 3;
  options.classes = 2;
  options.label_values = {-1, 1};
  auto data = OpenLibSvm(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Values<int64_t>(**data, 1, 0), Ids{1});
  EXPECT_EQ(Values<float>(**data, 0, 1), (std::vector<float>{0.5f, 0, 2}));
  options.sparse = true;
  data = OpenLibSvm(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Values<int64_t>(**data, 0, 1), (Ids{0, 2}));
  EXPECT_TRUE(Values<float>(**data, 1, 2).empty());
  options.features = 2;
  EXPECT_EQ(OpenLibSvm(options).status().message(),
            "'" + options.paths[0] + "':1: index is 3; expected 1 to 2");
}

TEST_F(RowsTest, PairsOfLines) {
  ParallelTextOptions options;
  options.source_paths = {Write("a.txt", "x y\nz\n")};
  options.target_paths = {Write("b.txt", "u\nv u\n")};
  const auto data = OpenParallelText(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Values<int64_t>(**data, 0, 0), (Ids{4, 5}));
  EXPECT_EQ(Values<int64_t>(**data, 1, 1), (Ids{2, 5, 4}));  // <s> v u
  EXPECT_EQ(Values<int64_t>(**data, 1, 2), (Ids{5, 4, 3}));  // v u </s>
  options.target_paths = {Write("c.txt", "u\n")};
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenParallelText(options).status()));
}

TEST_F(RowsTest, WindowsOfText) {
  LanguageModelOptions options;
  options.paths = {Write("l.txt", "abcdefg")};
  options.text.kind = TokenizerKind::kByte;
  options.seq_len = options.stride = 2;
  const auto data = OpenLanguageModel(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 3);
  EXPECT_EQ(Values<int64_t>(**data, 2, 0), (Ids{'e', 'f'}));
  EXPECT_EQ(Values<int64_t>(**data, 2, 1), (Ids{'f', 'g'}));
}

TEST_F(RowsTest, BasicAndWordpieceAsBert) {
  Ids ids;
  TextOptions options;
  options.kind = TokenizerKind::kWordpiece;
  options.special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  options.lower = options.add_bos = options.add_eos = true;
  auto words = Vocabulary::Make({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "un",
                                 "##aff", "##able", "!", "cafe"},
                                options.special);
  ASSERT_TRUE(words.ok()) << words.status();
  options.vocabulary = std::make_shared<const Vocabulary>(*std::move(words));
  auto encoder = TextEncoder::Create(options);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  ASSERT_TRUE((*encoder)->Encode("Unaffable! Caf\xC3\xA9 unx", &ids).ok());
  EXPECT_EQ(ids, (Ids{2, 4, 5, 6, 7, 8, 1, 3}));
  EXPECT_FALSE((*encoder)->Encode("\xFF", &ids).ok());
}

TEST_F(RowsTest, PadsEachBatchAndSaysLengths) {
  JsonlDatasetOptions rows;
  rows.paths = {Write("p.jsonl",
                      "{\"x\":[1,2,3]}\n{\"x\":[]}\n{\"x\":[4]}\n"
                      "{\"x\":[5,6,7,8,9]}\n")};
  rows.fields = {{"x", "", {}, {DType::kInt64}}};
  auto data = OpenJsonl(rows);
  ASSERT_TRUE(data.ok()) << data.status();
  for (int workers : {0, 2}) {
    LoaderOptions options;
    options.batch_size = 2;
    options.num_workers = workers;
    FieldPadding pad;
    pad.field = "x";
    pad.value = -1;
    pad.max_length = 4;
    pad.multiple_of = 2;
    pad.truncate = FieldPadding::Truncate::kStart;
    options.paddings = {pad};
    auto loader = Loader::Create(*data, options);
    ASSERT_TRUE(loader.ok()) << loader.status();
    EXPECT_EQ((*loader)->fields()[0].shape, (Shape{2, -1}));
    EXPECT_EQ((*loader)->fields()[1].name, "x_length");
    ASSERT_TRUE((*loader)->StartEpoch(0).ok());
    auto batch = (*loader)->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ((*batch)->fields[0].shape, (Shape{2, 4}));
    const auto* x = reinterpret_cast<int64_t*>((*batch)->fields[0].data);
    EXPECT_EQ(Ids(x, x + 8), (Ids{1, 2, 3, -1, -1, -1, -1, -1}));
    batch = (*loader)->Next();
    x = reinterpret_cast<int64_t*>((*batch)->fields[0].data);
    EXPECT_EQ(Ids(x, x + 8), (Ids{4, -1, -1, -1, 6, 7, 8, 9}));
    const auto* n = reinterpret_cast<int64_t*>((*batch)->fields[1].data);
    EXPECT_EQ(Ids(n, n + 2), (Ids{1, 4}));
  }
}

TEST_F(RowsTest, PadsInFrontToAFixedLength) {
  FieldPadding pad;
  pad.field = "x";
  pad.length = 3;
  pad.left = true;
  const auto padder = Padder::Create({"x", DType::kInt64, {-1, -1}}, pad);
  ASSERT_TRUE(padder.ok()) << padder.status();
  const int64_t values[] = {1, 2};
  FieldView view;
  view.data = reinterpret_cast<const std::byte*>(values);
  view.extents = {2, 1};
  auto extents = padder->Smallest();
  padder->Include(view, &extents);
  extents[1] = 2;  // another record is wider
  Ids out(6, 9);
  padder->Write(view, extents, reinterpret_cast<std::byte*>(out.data()));
  EXPECT_EQ(out, (Ids{0, 0, 1, 0, 2, 0}));
}

TEST_F(RowsTest, CombinesDatasets) {
  CsvDatasetOptions a, b;
  a.paths = {Write("1.csv", "x\n1\n2\n")};
  b.paths = {Write("2.csv", "x\n3\n")};
  const auto first = *OpenCsv(a), second = *OpenCsv(b);
  const auto both = ConcatDatasets({first, second});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)->size(), 3);
  EXPECT_EQ(Values<float>(**both, 2, 0)[0], 3.0f);
  EXPECT_EQ((*both)->Describe(2), "'" + b.paths[0] + "':2");
  EXPECT_FALSE(ComposeDatasets({first, second}).ok());
  EXPECT_FALSE(ComposeDatasets({first, first}).ok());  // x twice
  b.paths = {Write("3.csv", "y\n5\n6\n")};
  const auto side = ComposeDatasets({first, *OpenCsv(b)});
  ASSERT_TRUE(side.ok()) << side.status();
  EXPECT_EQ(Values<float>(**side, 1, 1)[0], 6.0f);
  const auto some = SubsetOf(*both, {2, 0});
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(Values<float>(**some, 0, 0)[0], 3.0f);
}

TEST_F(RowsTest, SmallElementTypes) {
  CsvDatasetOptions options;
  options.paths = {Write("small.csv", "a,b,c\n255,1,0.5\n0,0,-2\n")};
  ValueOptions byte, yes, half;
  byte.dtype = DType::kUInt8;
  yes.dtype = DType::kBool;
  half.dtype = DType::kFloat16;
  options.fields = {{"a", {"a"}, byte}, {"b", {"b"}, yes}, {"c", {"c"}, half}};
  const auto data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Values<uint8_t>(**data, 0, 0)[0], 255);
  EXPECT_EQ(Values<uint8_t>(**data, 0, 1)[0], 1);
  // 0.5 and -2 in IEEE's half precision.
  EXPECT_EQ(Values<uint16_t>(**data, 0, 2)[0], 0x3800);
  EXPECT_EQ(Values<uint16_t>(**data, 1, 2)[0], 0xC000);
  for (const char* row : {"256,1,0\n", "-1,1,0\n", "1.5,1,0\n", "1,2,0\n"}) {
    options.paths = {Write("bad.csv", std::string("a,b,c\n") + row)};
    EXPECT_EQ(OpenCsv(options).status().code(), absl::StatusCode::kDataLoss)
        << row;
  }
}

}  // namespace test_rows
}  // namespace pd
