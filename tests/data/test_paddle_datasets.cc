// SPDX-License-Identifier: Apache-2.0
// The data sets in their original layouts against what PaddlePaddle's classes
// gave for the same archives (testdata/make/dataset_goldens.py).
#include "libcore/data/paddle_datasets.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/gzip.h"
#include "formats/npz.h"
#include "gtest/gtest.h"
#include "libcore/data/dataset.h"
#include "libcore/data/field_facts.h"
#include "libcore/data/loader.h"
#include "libcore/data/step.h"

namespace pd {
namespace test_paddle_datasets {

std::string In(const std::string& name) {
  return PD_TESTDATA "/datasets/" + name;
}

int64_t ElementsOf(const FieldSpec& spec, const FieldView& view) {
  if (spec.is_image) return view.height * view.width * view.channels;
  int64_t elements = 1;
  for (size_t axis = 0; axis < spec.shape.size(); ++axis)
    elements *= spec.shape[axis] >= 0 ? spec.shape[axis] : view.extents[axis];
  return elements;
}

// A mask's bytes are compared with PaddlePaddle's as numbers.
bool SameElement(const FieldSpec& spec, const FieldView& view, int64_t i,
                 const Array& want, int64_t at) {
  if (spec.dtype == DType::kUInt8 && want.dtype == DType::kInt64)
    return static_cast<uint8_t>(view.data[i]) == want.data<int64_t>()[at];
  const size_t size = SizeOf(spec.dtype);
  EXPECT_EQ(spec.dtype, want.dtype);
  return std::memcmp(view.data + static_cast<size_t>(i) * size,
                     want.bytes.get() + static_cast<size_t>(at) * size,
                     size) == 0;
}

void ExpectGolden(const absl::StatusOr<DatasetPtr>& opened,
                  const std::string& golden) {
  SCOPED_TRACE(golden);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const Dataset& data = **opened;
  const auto arrays = ReadNpz(In(golden));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  ASSERT_EQ(arrays->size(), 2 * data.fields().size());
  std::vector<int64_t> at(data.fields().size(), 0);
  Record record;
  for (int64_t i = 0; i < data.size(); ++i) {
    const absl::Status status = data.Read(i, &record);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t f = 0; f < data.fields().size(); ++f) {
      const FieldSpec& spec = data.fields()[f];
      const auto values = arrays->find(spec.name);
      ASSERT_NE(values, arrays->end()) << spec.name;
      const Array& lengths = arrays->at(spec.name + ".length");
      ASSERT_EQ(lengths.size(), data.size()) << spec.name;
      const int64_t elements = ElementsOf(spec, record.fields[f]);
      ASSERT_EQ(elements, lengths.data<int64_t>()[i])
          << spec.name << " of record " << i;
      for (int64_t e = 0; e < elements; ++e)
        ASSERT_TRUE(
            SameElement(spec, record.fields[f], e, values->second, at[f] + e))
            << spec.name << " of record " << i << " element " << e;
      at[f] += elements;
    }
  }
}

TEST(PaddleDatasets, Cifar) {
  for (const char* mode : {"train", "test"}) {
    const std::string golden = absl::StrCat(mode, ".npz");
    ExpectGolden(OpenCifarPython({In("cifar10/cifar-10-python.tar.gz"), mode}),
                 "cifar10/" + golden);
    ExpectGolden(OpenCifarPython(
                     {In("cifar100/cifar-100-python.tar.gz"), mode, true, 100}),
                 "cifar100/" + golden);
  }
}

TEST(PaddleDatasets, Flowers) {
  for (const char* mode : {"train", "valid", "test"})
    ExpectGolden(OpenFlowers({In("flowers/102flowers.tgz"),
                              In("flowers/imagelabels.mat"),
                              In("flowers/setid.mat"), mode}),
                 absl::StrCat("flowers/", mode, ".npz"));
}

TEST(PaddleDatasets, Voc2012) {
  for (const char* mode : {"train", "valid", "test"})
    ExpectGolden(OpenVoc2012({In("voc2012/VOCtrainval_11-May-2012.tar"), mode}),
                 absl::StrCat("voc2012/", mode, ".npz"));
}

TEST(PaddleDatasets, ClassesOfMasks) {
  const std::string archive = In("voc2012/VOCtrainval_11-May-2012.tar");
  const auto voc = OpenVoc2012({archive, "train"});
  ASSERT_TRUE(voc.ok()) << voc.status();
  const auto& names = (*voc)->FindField("label")->classes;
  ASSERT_EQ(names.size(), 21);
  EXPECT_EQ(names[0], "background");
  EXPECT_EQ(names[20], "tvmonitor");
  const auto range = LookAtLabels(**voc, 1, 255);
  ASSERT_TRUE(range.has_value());
  EXPECT_TRUE(range->complete);
  EXPECT_EQ(range->largest, 20);
  EXPECT_EQ(range->lowest, 0);
  EXPECT_EQ(LookAtLabels(**voc, 1, -100)->largest, 255);
  EXPECT_FALSE(LookAtLabels(**voc, 0, -100).has_value());
}

TEST(PaddleDatasets, UciHousing) {
  for (const char* mode : {"train", "test"})
    ExpectGolden(OpenUciHousing({In("uci_housing/housing.data"), mode}),
                 absl::StrCat("uci_housing/", mode, ".npz"));
}

TEST(PaddleDatasets, Movielens) {
  const std::string zip = In("movielens/ml-1m.zip");
  ExpectGolden(OpenMovielens({zip, "train"}), "movielens/train.npz");
  ExpectGolden(OpenMovielens({zip, "test"}), "movielens/test.npz");
  ExpectGolden(OpenMovielens({zip, "test", 0.4, 11}),
               "movielens/test_seed.npz");
}

TEST(PaddleDatasets, Imdb) {
  const std::string archive = In("imdb/aclImdb_v1.tar.gz");
  ExpectGolden(OpenImdb({archive, "train", 1}), "imdb/train.npz");
  ExpectGolden(OpenImdb({archive, "test", 1}), "imdb/test.npz");
  ExpectGolden(OpenImdb({archive, "test", 3}), "imdb/test_cutoff.npz");
}

TEST(PaddleDatasets, Imikolov) {
  const std::string archive = In("imikolov/simple-examples.tgz");
  ExpectGolden(OpenImikolov({archive, "NGRAM", 3, "train", 1}),
               "imikolov/ngram_train.npz");
  ExpectGolden(OpenImikolov({archive, "NGRAM", 5, "test", 2}),
               "imikolov/ngram_test.npz");
  ExpectGolden(OpenImikolov({archive, "SEQ", -1, "train", 1}),
               "imikolov/seq_train.npz");
  ExpectGolden(OpenImikolov({archive, "SEQ", 6, "train", 1}),
               "imikolov/seq_window.npz");
  ExpectGolden(OpenImikolov({archive, "SEQ", -1, "test", 2}),
               "imikolov/seq_test.npz");
}

TEST(PaddleDatasets, Wmt14) {
  const std::string archive = In("wmt14/wmt14.tgz");
  ExpectGolden(OpenWmt14({archive, "train", 8}), "wmt14/train.npz");
  ExpectGolden(OpenWmt14({archive, "train", 5}), "wmt14/train_small.npz");
  ExpectGolden(OpenWmt14({archive, "test", 30}), "wmt14/test.npz");
  ExpectGolden(OpenWmt14({archive, "gen", 8}), "wmt14/gen.npz");
}

TEST(PaddleDatasets, Wmt16) {
  const std::string archive = In("wmt16/wmt16.tar.gz");
  ExpectGolden(OpenWmt16({archive, "train", 20, 20}), "wmt16/train.npz");
  ExpectGolden(OpenWmt16({archive, "train", 6, 5}), "wmt16/train_small.npz");
  ExpectGolden(OpenWmt16({archive, "val", 9, 9, "de"}), "wmt16/val_de.npz");
  ExpectGolden(OpenWmt16({archive, "test", 10, 11}), "wmt16/test.npz");
  ExpectGolden(OpenWmt16({archive, "train", 20, 9, "en", true}),
               "wmt16/own_train.npz");
  ExpectGolden(OpenWmt16({archive, "val", 9, 9, "de", true}),
               "wmt16/own_val_de.npz");
}

TEST(PaddleDatasets, Conll05) {
  ExpectGolden(
      OpenConll05({In("conll05st/conll05st-tests.tar.gz"),
                   In("conll05st/wordDict.txt"), In("conll05st/verbDict.txt"),
                   In("conll05st/targetDict.txt")}),
      "conll05st/test.npz");
}

// Opens copies of an archive, unpacked where it is gzip, with bytes changed
// here and there and its end cut off: each must be read or refused.
template <typename Open>
void ExpectToSurviveDamage(const std::string& archive, const Open& open) {
  const auto file = ReadFileGunzip(In(archive));
  ASSERT_TRUE(file.ok()) << file.status();
  const std::string path = absl::StrCat(::testing::TempDir(), "/damaged_",
                                        ::getpid(), archive.size());
  int opened = 0, refused = 0;
  const auto attempt = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    const absl::StatusOr<DatasetPtr> data = open(path);
    ++(data.ok() ? opened : refused);
    if (!data.ok()) {
      EXPECT_NE(data.status().message().find(path), absl::string_view::npos)
          << data.status();
      return;
    }
    Record record;
    for (int64_t i = 0; i < (*data)->size(); ++i)
      (*data)->Read(i, &record).IgnoreError();
  };
  const std::string good(file->view());
  constexpr size_t kStep = 41;
  for (size_t i = 0; i < good.size(); i += kStep) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (i % 2 == 0 ? 0xff : 0x01));
    attempt(bad);
  }
  for (size_t size = 0; size < good.size(); size += good.size() / 50 + 1)
    attempt(good.substr(0, size));
  ::unlink(path.c_str());
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

TEST(PaddleDatasets, SurviveDamagedArchives) {
  ExpectToSurviveDamage("cifar100/cifar-100-python.tar.gz",
                        [](const std::string& path) {
                          return OpenCifarPython({path, "train", true, 100});
                        });
  ExpectToSurviveDamage("flowers/102flowers.tgz", [](const std::string& path) {
    return OpenFlowers({path, In("flowers/imagelabels.mat"),
                        In("flowers/setid.mat"), "train"});
  });
  ExpectToSurviveDamage("voc2012/VOCtrainval_11-May-2012.tar",
                        [](const std::string& path) {
                          return OpenVoc2012({path, "train"});
                        });
  ExpectToSurviveDamage("uci_housing/housing.data",
                        [](const std::string& path) {
                          return OpenUciHousing({path, "train"});
                        });
  ExpectToSurviveDamage("movielens/ml-1m.zip", [](const std::string& path) {
    return OpenMovielens({path, "train"});
  });
  ExpectToSurviveDamage("imdb/aclImdb_v1.tar.gz", [](const std::string& path) {
    return OpenImdb({path, "train", 1});
  });
  ExpectToSurviveDamage("imikolov/simple-examples.tgz",
                        [](const std::string& path) {
                          return OpenImikolov({path, "SEQ", -1, "train", 1});
                        });
  ExpectToSurviveDamage("wmt14/wmt14.tgz", [](const std::string& path) {
    return OpenWmt14({path, "train", 8});
  });
  ExpectToSurviveDamage("wmt16/wmt16.tar.gz", [](const std::string& path) {
    return OpenWmt16({path, "train", 8, 8});
  });
  ExpectToSurviveDamage(
      "conll05st/conll05st-tests.tar.gz", [](const std::string& path) {
        return OpenConll05({path, In("conll05st/wordDict.txt"),
                            In("conll05st/verbDict.txt"),
                            In("conll05st/targetDict.txt")});
      });
}

// One picture whose three channels are its mask.
class MaskTwin : public Dataset {
 public:
  MaskTwin() {
    FieldSpec mask = {"label", DType::kUInt8, {-1, -1, 1}};
    mask.is_mask = true;
    fields_ = {{"image", DType::kUInt8, {-1, -1, 3}, true}, mask};
    size_ = 8;
  }
  absl::Status Read(int64_t index, Record* record) const override {
    const int64_t height = 9 + index, width = 15 - index;
    record->fields.resize(2);
    record->bytes.resize(2);
    for (int64_t channels : {3, 1}) {
      std::vector<uint8_t>& bytes = record->bytes[channels == 3 ? 0 : 1];
      bytes.resize(static_cast<size_t>(height * width * channels));
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] =
            static_cast<uint8_t>(i / static_cast<size_t>(channels) * 37 % 251);
      FieldView& view = record->fields[channels == 3 ? 0 : 1];
      view.data = reinterpret_cast<const std::byte*>(bytes.data());
      view.height = height;
      view.width = width;
      view.channels = channels;
    }
    return absl::OkStatus();
  }
  std::string Describe(int64_t index) const override {
    return absl::StrCat("record ", index);
  }
};

TEST(Masks, MoveAsTheirPictures) {
  transforms::RandomCrop crop;
  crop.size = {10, 11};
  crop.padding = {2};
  crop.pad_if_needed = true;
  crop.fill = {255};
  transforms::RandomRotation rotation;
  rotation.degrees = {50};
  rotation.fill = {255};
  LoaderOptions options;
  options.batch_size = 8;
  options.num_workers = 0;
  options.transforms = {transforms::RandomHorizontalFlip{},
                        crop,
                        rotation,
                        transforms::RandomVerticalFlip{},
                        transforms::Resize{{7, 6}, "nearest"},
                        transforms::Pad{{1, 2}, {255}},
                        transforms::RandomResizedCrop{
                            {5, 5}, {0.3f, 1}, {0.75f, 1.3f}, "nearest"}};
  auto loader = Loader::Create(std::make_shared<MaskTwin>(), options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  ASSERT_EQ((*loader)->fields()[1].dtype, DType::kInt64);
  ASSERT_EQ((*loader)->fields()[1].shape, (Shape{8, 5, 5}));
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  const auto batch = (*loader)->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto* image =
      reinterpret_cast<const uint8_t*>((*batch)->fields[0].data);
  const auto* mask = reinterpret_cast<const int64_t*>((*batch)->fields[1].data);
  int64_t inside = 0;
  for (int64_t i = 0; i < 8 * 5 * 5; ++i) {
    ASSERT_EQ(image[3 * i], mask[i]) << i;
    inside += mask[i] != 255;
  }
  EXPECT_GT(inside, 60);
}

TEST(Masks, KeepTheirClassesThroughColoursAndMixing) {
  transforms::ColorJitter jitter;
  jitter.brightness = {0.5f};
  jitter.hue = {0.2f};
  LoaderOptions options;
  options.batch_size = 1;
  options.num_workers = 0;
  options.transforms = {jitter, transforms::CenterCrop{{14, 20}},
                        transforms::Grayscale{3}};
  auto loader = Loader::Create(std::make_shared<MaskTwin>(), options);
  ASSERT_TRUE(loader.ok()) << loader.status();
  ASSERT_TRUE((*loader)->StartEpoch(0).ok());
  const auto batch = (*loader)->Next();
  ASSERT_TRUE(batch.ok()) << batch.status();
  const auto* mask = reinterpret_cast<const int64_t*>((*batch)->fields[1].data);
  // The picture is 9 x 15: it lies in the middle of a border. Python rounds
  // -2.5 and -2.5 to -2.
  for (int64_t y = 0; y < 14; ++y) {
    for (int64_t x = 0; x < 20; ++x) {
      const int64_t from_y = y - 2, from_x = x - 2;
      const bool in = from_y >= 0 && from_y < 9 && from_x >= 0 && from_x < 15;
      ASSERT_EQ(mask[y * 20 + x],
                in ? (from_y * 15 + from_x) * 37 % 251 : kMaskBorder)
          << y << ", " << x;
    }
  }
}

}  // namespace test_paddle_datasets
}  // namespace pd
