// SPDX-License-Identifier: Apache-2.0
// Datasets from files that are right, and the one message that each wrong file
// gets.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "formats/npz.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "libcore/data/datasets.h"
#include "libcore/data/loader.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace test_datasets {

namespace fs = std::filesystem;

class DatasetTest : public ::testing::Test {
 protected:
  DatasetTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        fs::temp_directory_path() /
        (std::string("pd_data_") + test->name() + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  ~DatasetTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string Write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(Path(name)).parent_path());
    EXPECT_TRUE(WriteFile(Path(name), bytes).ok());
    return Path(name);
  }
  fs::path folder_;
};

std::string Idx(const std::vector<uint32_t>& shape, const std::string& data) {
  std::string bytes = {0, 0, 8, static_cast<char>(shape.size())};
  for (uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8)
      bytes.push_back(static_cast<char>(extent >> shift));
  return bytes + data;
}

std::string Message(const absl::Status& status) {
  return std::string(status.message());
}

int64_t Label(const Record& record, size_t field) {
  int64_t label;
  std::memcpy(&label, record.fields[field].data, sizeof(label));
  return label;
}

TEST_F(DatasetTest, IdxPair) {
  IdxDatasetOptions options;
  options.image_path = Write("i", Idx({2, 2, 3}, "abcdefghijkl"));
  options.label_path = Write("l", Idx({2}, {3, 9}));
  const auto data = OpenIdx(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 2);
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{2, 3, 1}));
  Record record;
  ASSERT_TRUE((*data)->Read(1, &record).ok());
  EXPECT_EQ(std::memcmp(record.fields[0].data, "ghijkl", 6), 0);
  EXPECT_EQ(Label(record, 1), 9);
}

TEST_F(DatasetTest, IdxPairsThatAreWrong) {
  const std::string images = Write("i", Idx({2, 2, 3}, "abcdefghijkl"));
  const std::string labels = Write("l", Idx({2}, {3, 9}));
  const auto open = [](const std::string& i, const std::string& l) {
    const auto data = OpenIdx({i, l, 10});
    EXPECT_FALSE(data.ok());
    return Message(data.status());
  };
  EXPECT_EQ(open(images, Write("three", Idx({3}, {1, 2, 3}))),
            "'" + Path("three") + "' holds 3 labels; '" + images +
                "' holds 2 images");
  EXPECT_EQ(open(images, Write("high", Idx({2}, {3, 10}))),
            "'" + Path("high") + "' record 1: label is 10; expected 0 to 9");
  EXPECT_TRUE(absl::StrContains(open(labels, images), "expected uint8 images"));
  EXPECT_TRUE(absl::StrContains(open(images, images), "expected uint8 labels"));
  EXPECT_TRUE(absl::StrContains(open(Path("none"), labels), Path("none")));
  EXPECT_TRUE(absl::StrContains(open(Write("e", ""), labels), "is empty"));
  EXPECT_TRUE(
      absl::StrContains(open(Write("short", Idx({2, 2, 3}, "abc")), labels),
                        "the header says [2, 2, 3], 28 bytes"));
  EXPECT_TRUE(
      absl::StrContains(open(Write("png", "\x89PNG1234"), labels), "magic"));
}

TEST_F(DatasetTest, ImagesDamagedBehindTheHeaderFailWhenRead) {
  auto file = ReadFile(PD_TESTDATA "/mnist/t10k-images-idx3-ubyte.gz");
  ASSERT_TRUE(file.ok());
  std::string bytes(file->view());
  bytes.resize(bytes.size() / 2);
  const auto data =
      OpenIdx({Write("i.gz", bytes),
               PD_TESTDATA "/mnist/t10k-labels-idx1-ubyte.gz", 10});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ(Message((*data)->WaitReady()),
            "'" + Path("i.gz") + "': gzip data is truncated or damaged");
  Record record;
  EXPECT_FALSE((*data)->Read(0, &record).ok());
}

TEST_F(DatasetTest, WholeMnist) {
  for (const auto& [mode, size] :
       {std::pair("train", 60000), std::pair("test", 10000)}) {
    const auto data = OpenMnist(PD_TESTDATA "/mnist", mode);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_TRUE((*data)->WaitReady().ok());
    EXPECT_EQ((*data)->size(), size);
  }
  EXPECT_FALSE(OpenMnist(PD_TESTDATA "/mnist", "valid").ok());
}

std::string CifarRecord(const std::string& labels, int seed) {
  std::string bytes = labels;
  for (int i = 0; i < 3072; ++i)
    bytes.push_back(static_cast<char>(i * 31 + seed));
  return bytes;
}

TEST_F(DatasetTest, Cifar) {
  const std::string first = Write("a", CifarRecord({4}, 1));
  const std::string second =
      Write("b", CifarRecord({5}, 2) + CifarRecord({6}, 3));
  const auto data = OpenCifar({{first, second}, 10, false});
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 3);
  EXPECT_EQ((*data)->Describe(2), "'" + second + "' record 1");
  Record record;
  ASSERT_TRUE((*data)->Read(2, &record).ok());
  EXPECT_EQ(Label(record, 1), 6);
  const auto* pixel = reinterpret_cast<const uint8_t*>(record.fields[0].data);
  // Pixel 1, channel 2 is byte 1 of plane 2.
  EXPECT_EQ(pixel[1 * 3 + 2], static_cast<uint8_t>((2 * 1024 + 1) * 31 + 3));

  EXPECT_EQ(Message(OpenCifar({{Write("c", CifarRecord({10}, 1))}}).status()),
            "'" + Path("c") + "' record 0: label is 10; expected 0 to 9");
  EXPECT_TRUE(
      absl::StrContains(Message(OpenCifar({{Write("d", "12345")}}).status()),
                        "5 bytes are not a whole number of CIFAR records"));

  const std::string fine = Write("f", CifarRecord({19, 99}, 1));
  const auto hundred = OpenCifar({{fine}, 100, false});
  ASSERT_TRUE(hundred.ok()) << hundred.status();
  ASSERT_TRUE((*hundred)->Read(0, &record).ok());
  EXPECT_EQ(Label(record, 1), 99);
  const auto coarse = OpenCifar({{fine}, 100, true});
  ASSERT_TRUE((*coarse)->Read(0, &record).ok());
  EXPECT_EQ(Label(record, 1), 19);
}

TEST_F(DatasetTest, CsvMessagesSayWhatToDo) {
  CsvDatasetOptions options;
  options.paths = {Write("semicolons.csv", "a;b;target\n1;2;3\n")};
  options.fields = {{"y", {"target"}}};
  EXPECT_EQ(Message(OpenCsv(options).status()),
            "'" + options.paths[0] +
                "' has no column 'target'; its only column is 'a;b;target': "
                "its fields seem to be separated by ';', not by ',' "
                "(delimiter: \";\")");
  options.delimiter = ';';
  EXPECT_TRUE(OpenCsv(options).ok());
  options.paths = {Write("tabs.csv", "a\tb\n1\t2\n")};
  EXPECT_TRUE(absl::StrContains(Message(OpenCsv(options).status()),
                                "seem to be separated by '\\t', not by ';' "
                                "(delimiter: \"\\t\")"));
  options.delimiter = ',';
  options.fields = {{"x", {"a", "b"}}};
  options.paths = {Write("gap.csv", "a,b\n1,2\n3,\n")};
  EXPECT_EQ(Message(OpenCsv(options).status()),
            "'" + options.paths[0] +
                "':3:3: the cell is empty; expected a number (missing: 0 in "
                "field 'x' would stand for empty cells)");
  options.fields[0].value.missing = 0;
  EXPECT_TRUE(OpenCsv(options).ok());
  options.paths = {Write("wide.csv", "a,b\n1,2\n1,2,3\n")};
  EXPECT_EQ(Message(OpenCsv(options).status()),
            "'" + options.paths[0] +
                "':3:5: the row has more than 2 fields; the first has 2");
  // Columns of '*' go by their names where the training set's are known.
  options.fields = {{"x", {"*"}}};
  options.fields[0].known = {"b", "a"};
  options.paths = {Write("order.csv", "c,a,b\n1,2,3\n")};
  const auto data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->fields()[0].columns, (std::vector<std::string>{"b", "a"}));
  Record record;
  ASSERT_TRUE((*data)->Read(0, &record).ok());
  const float* x = reinterpret_cast<const float*>(record.fields[0].data);
  EXPECT_EQ(x[0], 3.0f);
  EXPECT_EQ(x[1], 2.0f);
}

TEST_F(DatasetTest, ImageFolderOfKnownClasses) {
  for (const char* to : {"b/1.png", "c/1.png"}) {
    fs::create_directories(fs::path(Path(to)).parent_path());
    fs::copy(PD_TESTDATA "/images/rgb.png", Path(to));
  }
  fs::create_directories(Path("a"));
  ImageFolderOptions options;
  options.root = folder_;
  const auto own = OpenImageFolder(options);
  ASSERT_TRUE(own.ok()) << own.status();
  Record record;
  ASSERT_TRUE((*own)->Read(0, &record).ok());
  EXPECT_EQ(Label(record, 1), 1);  // an empty folder is a class, as in paddle
  ASSERT_EQ((*own)->notes().size(), 1);
  EXPECT_TRUE(absl::StrContains((*own)->notes()[0],
                                "1 of 3 folders hold no images: 'a'"));
  options.classes = {"c", "x", "b"};
  const auto known = OpenImageFolder(options);
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ((*known)->FindField("label")->classes, options.classes);
  ASSERT_TRUE((*known)->Read(0, &record).ok());
  EXPECT_EQ(Label(record, 1), 2);
  ASSERT_TRUE((*known)->Read(1, &record).ok());
  EXPECT_EQ(Label(record, 1), 0);
  EXPECT_TRUE(absl::StrContains((*known)->notes()[1],
                                "has no folder for 1 of 3 classes: 'x'"));
  const auto both = ConcatDatasets({*own, *known});
  EXPECT_TRUE(absl::StrContains(Message(both.status()),
                                "the classes of field 'label' are 'c', 'x', "
                                "'b' in"));
  options.classes = {"b"};
  EXPECT_TRUE(absl::StrContains(Message(OpenImageFolder(options).status()),
                                "/c' is no class that training knows; the "
                                "classes are 'b'"));
}

TEST_F(DatasetTest, ImageFolder) {
  const auto image = [this](const std::string& from, const std::string& to) {
    fs::create_directories(fs::path(Path(to)).parent_path());
    fs::copy(PD_TESTDATA "/images/" + from, Path(to));
  };
  image("rgb.png", "zebra/b.png");
  image("grey.jpg", "zebra/a.JPG");
  image("rgb_420.jpg", "ant/deep/er/x.jpeg");
  image("rgb.png", "ant/y.png");
  image("lzw.tif", "gnu/1.tif");
  image("packbits.tiff", "gnu/2.TIFF");
  image("alpha.webp", "gnu/3.webp");
  Write("ant/notes.txt", "no image");
  Write("loose.png", "not in a class");
  fs::create_directory_symlink(Path("ant"), Path("ant/loop"));
  const auto data = OpenImageFolder({folder_});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->FindField("label")->classes,
            (std::vector<std::string>{"ant", "gnu", "zebra"}));
  ASSERT_EQ((*data)->size(), 7);
  const std::vector<std::string> order = {
      "ant/y.png",  "ant/deep/er/x.jpeg", "gnu/1.tif",  "gnu/2.TIFF",
      "gnu/3.webp", "zebra/a.JPG",        "zebra/b.png"};
  const int64_t labels[] = {0, 0, 1, 1, 1, 2, 2};
  Record record;
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_TRUE(absl::StrContains((*data)->Describe(i), order[i])) << i;
    ASSERT_TRUE((*data)->Read(i, &record).ok());
    EXPECT_EQ(Label(record, 1), labels[i]);
    EXPECT_EQ(record.fields[0].channels, 3);
  }
  EXPECT_EQ(record.fields[0].height, 23);

  // Sizes differ: a batch needs a resize, and says so.
  LoaderOptions options;
  options.batch_size = 4;
  auto loader = Loader::Create(*data, options);
  ASSERT_TRUE(loader.ok());
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  const auto batch = (*loader)->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_TRUE(absl::StrContains(Message(batch.status()), "gnu/1.tif"));
  EXPECT_TRUE(absl::StrContains(Message(batch.status()), "add Resize"));
  options.transforms = {transforms::Resize{{8, 8}}, transforms::ToTensor{}};
  loader = Loader::Create(*data, options);
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  const auto good = (*loader)->Next();
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)->fields[0].shape, (Shape{4, 3, 8, 8}));
}

TEST_F(DatasetTest, ImageFoldersThatAreWrong) {
  EXPECT_TRUE(absl::StrContains(Message(OpenImageFolder({folder_}).status()),
                                "holds no folders"));
  EXPECT_FALSE(OpenImageFolder({Path("none")}).ok());
  Write("a/readme", "x");
  EXPECT_TRUE(absl::StrContains(Message(OpenImageFolder({folder_}).status()),
                                "holds no images"));
  Write("a/x.png", "\x89PNG broken");
  const auto data = OpenImageFolder({folder_});
  ASSERT_TRUE(data.ok());
  Record record;
  const absl::Status status = (*data)->Read(0, &record);
  EXPECT_TRUE(absl::StrContains(Message(status), "a/x.png' (record 0)"));
}

TEST_F(DatasetTest, Csv) {
  const std::string path = Write("t.csv",
                                 "id,x1,x2,kind\n"
                                 "one,1.5,-2,0\n"
                                 "\"two, too\",3e2,4,1\n");
  CsvDatasetOptions options;
  options.paths = {path};
  options.fields = {{"x", {"x1:x2"}}, {"label", {"kind"}, DType::kInt64, 2}};
  auto data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{2}));
  Record record;
  ASSERT_TRUE((*data)->Read(1, &record).ok());
  const float* x = reinterpret_cast<const float*>(record.fields[0].data);
  EXPECT_EQ(x[0], 300.0f);
  EXPECT_EQ(x[1], 4.0f);
  EXPECT_EQ(Label(record, 1), 1);

  const auto message = [&] { return Message(OpenCsv(options).status()); };
  options.fields[1].value.classes = 1;
  EXPECT_EQ(message(),
            "'" + path + "':3:18: field 'label' is 1; expected 0 to 0");
  options.fields = {{"x", {"*"}}};
  EXPECT_EQ(message(), "'" + path + "':2:1: 'one' is not a number");
  options.fields = {{"x", {"x3"}}};
  EXPECT_TRUE(absl::StrContains(message(),
                                "' has no column 'x3' (did you mean 'x1'?); "
                                "its columns are 'id', 'x1', "))
      << message();
  options.fields = {{"x", {"target"}}};
  EXPECT_TRUE(absl::StrContains(
      message(), "has no column 'target'; its columns are 'id', 'x1', "))
      << message();
  options.fields = {{"x", {"7"}}};
  EXPECT_EQ(message(), "'" + path + "': no column 7; expected 0 to 3");
  options.fields = {{"x", {"x1"}, DType::kInt32}};
  EXPECT_EQ(message(),
            "'" + path + "':2:5: 1.5 in field 'x' is not an integer");
  options.fields = {{"x", {"x1:x2"}, DType::kFloat32, 0, {1, 2, 3}}};
  EXPECT_EQ(message(), "'" + path +
                           "': field 'x' has 2 columns and 3 numbers to scale "
                           "them");
  options.fields = {{"x", {"x1:x2"}, DType::kFloat32, 0, {1}, {0.5, 2}}};
  options.paths = {path, path};
  data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->size(), 4);
  ASSERT_TRUE((*data)->Read(2, &record).ok());
  const auto* scaled = reinterpret_cast<const float*>(record.fields[0].data);
  EXPECT_EQ(scaled[0], 1.0f);
  EXPECT_EQ(scaled[1], -1.5f);
  options.fields = {};
  options.paths = {Write("n.csv", "a,b\n1,2\n3,4\n")};
  data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->fields().size(), 2u);
  EXPECT_EQ((*data)->fields()[1].name, "b");

  options.paths.push_back(Write("more.csv", "a,b\n5,6\n"));
  options.fields = {{"x", {"*"}, DType::kFloat32, 0, {1}, {2, 4}}};
  data = OpenCsv(options);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 3);
  ASSERT_TRUE((*data)->Read(2, &record).ok());
  x = reinterpret_cast<const float*>(record.fields[0].data);
  EXPECT_EQ(x[0], 2.0f);
  EXPECT_EQ(x[1], 1.25f);
}

TEST_F(DatasetTest, Arrays) {
  NamedArrays arrays;
  arrays["x"] = MakeArray<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  arrays["label"] = MakeArray<int64_t>({3}, {0, 1, 2});
  arrays["image"] = MakeArray<uint8_t>({3, 2, 2}, std::vector<uint8_t>(12));
  ASSERT_TRUE(WriteNpz(Path("a.npz"), arrays).ok());
  ArrayDatasetOptions options;
  options.path = Path("a.npz");
  options.fields = {{"image", "image"}, {"label", "label", 3}, {"v", "x"}};
  const auto data = OpenNpz(options);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->fields().size(), 3u);
  EXPECT_TRUE((*data)->fields()[0].is_image);
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{2, 2, 1}));
  EXPECT_EQ((*data)->fields()[1].shape, Shape{});
  EXPECT_EQ((*data)->fields()[2].name, "v");
  Record record;
  ASSERT_TRUE((*data)->Read(2, &record).ok());
  EXPECT_EQ(Label(record, 1), 2);

  options.fields[1].classes = 2;
  EXPECT_EQ(Message(OpenNpz(options).status()),
            "'" + options.path + "' record 2: label is 2; expected 0 to 1");
  options.fields = {{"x", "x"}, {"y", "labels"}};
  EXPECT_EQ(
      Message(OpenNpz(options).status()),
      "'" + options.path + "' holds no array 'labels', did you mean 'label'?");
  arrays["label"] = MakeArray<int64_t>({2}, {0, 1});
  options.fields = {};
  EXPECT_TRUE(absl::StrContains(
      Message(MakeArrayDataset(arrays, options).status()),
      "array 'label' holds 2 records; array 'image' holds 3"));
}

}  // namespace test_datasets
}  // namespace pd
