// SPDX-License-Identifier: Apache-2.0
// Every transform against what paddle.vision.transforms made of the same
// images (testdata/transforms), bit for bit; then what must be refused.
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "gtest/gtest.h"
#include "libcore/data/pipeline.h"

namespace pd {
namespace test_transforms {

using namespace transforms;  // NOLINT: the structs are what is tested
using List = std::vector<Transform>;

RandomRotation Rotate(float degrees, const std::string& interpolation,
                      bool expand, std::vector<float> center, float fill) {
  return {{degrees, degrees}, interpolation, expand, std::move(center), {fill}};
}

void AddRotations(std::map<std::string, List>* cases) {
  for (const std::string how : {"nearest", "bilinear", "bicubic"}) {
    (*cases)["rotate_30_" + how] = {Rotate(30, how, false, {}, 0)};
    (*cases)["rotate_-77_" + how + "_expand"] = {
        Rotate(-77, how, true, {}, 50)};
    (*cases)["rotate_125_" + how + "_center"] = {
        Rotate(125, how, false, {3, 5}, 0)};
  }
  for (int angle : {0, 90, 180, 270}) {
    const std::string name = "rotate_" + std::to_string(angle);
    const float degrees = static_cast<float>(angle);
    (*cases)[name] = {Rotate(degrees, "nearest", false, {}, 0)};
    (*cases)[name + "_expand"] = {Rotate(degrees, "nearest", true, {}, 0)};
  }
}

void AddColours(std::map<std::string, List>* cases) {
  const std::map<std::string, float> factors = {
      {"0.0", 0.0f}, {"0.35", 0.35f}, {"1.0", 1.0f}, {"1.6", 1.6f}};
  for (const auto& [name, f] : factors) {
    (*cases)["brightness_" + name] = {BrightnessTransform{{f, f}}};
    (*cases)["contrast_" + name] = {ContrastTransform{{f, f}}};
    (*cases)["saturation_" + name] = {SaturationTransform{{f, f}}};
  }
  const std::map<std::string, float> shifts = {
      {"-0.5", -0.5f}, {"-0.2", -0.2f}, {"0.1", 0.1f}, {"0.43", 0.43f}};
  for (const auto& [name, f] : shifts)
    (*cases)["hue_" + name] = {HueTransform{{f, f}}};
  (*cases)["grayscale_1"] = {Grayscale{1}};
  (*cases)["grayscale_3"] = {Grayscale{3}};
}

void AddGeometry(std::map<std::string, List>* cases) {
  for (const std::string how :
       {"nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"}) {
    (*cases)["resize_down_" + how] = {Resize{{9, 11}, how}};
    (*cases)["resize_up_" + how] = {Resize{{40, 37}, how}};
  }
  (*cases)["resize_edge"] = {Resize{{12}}};
  (*cases)["resize_wide"] = {Resize{{23, 12}}};
  (*cases)["center_crop"] = {CenterCrop{{10}}};
  (*cases)["center_crop_pair"] = {CenterCrop{{13, 8}}};
  (*cases)["center_crop_larger"] = {CenterCrop{{30, 36}}};
  (*cases)["pad_1"] = {Pad{{2}, {7}}};
  (*cases)["pad_2"] = {Pad{{1, 3}}};
  for (const std::string mode : {"constant", "edge", "reflect", "symmetric"})
    (*cases)["pad_" + mode] = {Pad{{1, 2, 3, 4}, {0}, mode}};
  (*cases)["pad_colour"] = {Pad{{2}, {10, 20, 30}}};
  (*cases)["pad_far"] = {Pad{{40, 30}, {0}, "reflect"}};
  (*cases)["random_crop"] = {RandomCrop{{27, 35}, {2}}};
  (*cases)["hflip"] = {RandomHorizontalFlip{1.0f}};
  (*cases)["vflip"] = {RandomVerticalFlip{1.0f}};
  (*cases)["no_flip"] = {RandomHorizontalFlip{0}, RandomVerticalFlip{0}};
  (*cases)["resized_crop_whole"] = {
      RandomResizedCrop{{12, 14}, {1, 1}, {31.0f / 23, 31.0f / 23}}};
  (*cases)["resized_crop_centre"] = {
      RandomResizedCrop{{12}, {4, 4}, {0.5f, 0.5f}}};
}

void AddArrays(std::map<std::string, List>* cases) {
  const std::vector<float> mean = {0.485f, 0.456f, 0.406f};
  const std::vector<float> std = {0.229f, 0.224f, 0.225f};
  const std::vector<float> mean255 = {123.675f, 116.28f, 103.53f};
  const std::vector<float> std255 = {58.395f, 57.12f, 57.375f};
  (*cases)["to_tensor"] = {ToTensor{}};
  (*cases)["to_tensor_hwc"] = {ToTensor{"HWC"}};
  (*cases)["to_tensor_normalize"] = {ToTensor{}, Normalize{mean, std}};
  (*cases)["to_tensor_normalize_grey"] = {ToTensor{},
                                          Normalize{{0.1307f}, {0.3081f}}};
  (*cases)["normalize_grey"] = {Normalize{{127.5f}, {127.5f}}};
  (*cases)["normalize_grey_hwc"] = {Normalize{{127.5f}, {127.5f}, "HWC"}};
  (*cases)["normalize_hwc"] = {Normalize{mean255, std255, "HWC"}};
  (*cases)["normalize_to_rgb"] = {Normalize{mean255, std255, "HWC", true}};
  (*cases)["transpose"] = {Transpose{}};
  (*cases)["transpose_120"] = {Transpose{{1, 2, 0}}};
  (*cases)["transpose_normalize"] = {Transpose{}, Normalize{mean255, std255}};
  (*cases)["imagenet"] = {Resize{{20}}, CenterCrop{{16}}, ToTensor{},
                          Normalize{mean, std}};
}

std::map<std::string, List> Cases() {
  std::map<std::string, List> cases;
  AddRotations(&cases);
  AddColours(&cases);
  AddGeometry(&cases);
  AddArrays(&cases);
  return cases;
}

NamedArrays Goldens() {
  auto arrays = ReadNpz(PD_TESTDATA "/transforms/goldens.npz");
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  return arrays.ok() ? *std::move(arrays) : NamedArrays();
}

// The image through the transforms, as an array.
absl::StatusOr<Array> Transformed(const Array& image, const List& list,
                                  uint64_t seed = 0) {
  Shape shape = image.shape;
  if (shape.size() == 2) shape.push_back(1);
  auto pipeline = Pipeline::Create(shape, list);
  if (!pipeline.ok()) return pipeline.status();
  Picture picture = {image.data<uint8_t>(), shape[0], shape[1], shape[2]};
  RandomStream random(seed, 1);
  TransformScratch scratch;
  const absl::Status status = pipeline->Apply(&random, &scratch, &picture);
  if (!status.ok()) return status;
  std::byte* bytes = nullptr;
  Array out =
      *NewArray(pipeline->output_dtype(),
                pipeline->ArrayShape(picture.height, picture.width), &bytes);
  pipeline->Write(picture, bytes);
  return out;
}

// Bytes in which the arrays differ, or -1 when shapes or types do.
int64_t Differences(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return -1;
  int64_t differences = 0;
  for (size_t i = 0; i < a.size_bytes(); ++i)
    differences += a.bytes.get()[i] != b.bytes.get()[i];
  return differences;
}

TEST(TransformsTest, EqualPaddlesBitForBit) {
  const NamedArrays goldens = Goldens();
  int compared = 0;
  for (const auto& [name, list] : Cases()) {
    for (const std::string which : {"rgb", "grey"}) {
      const auto golden = goldens.find(name + "." + which);
      if (golden == goldens.end()) continue;
      const auto out = Transformed(goldens.at(which), list);
      ASSERT_TRUE(out.ok()) << name << ": " << out.status();
      EXPECT_EQ(Differences(*out, golden->second), 0)
          << golden->first << ": got " << ToString(out->shape) << ", expected "
          << ToString(golden->second.shape);
      ++compared;
    }
  }
  // All goldens but the two images and the three of the ramp.
  EXPECT_EQ(compared, static_cast<int>(goldens.size()) - 5);
}

TEST(TransformsTest, EveryByteValueConvertsAsPaddleDoes) {
  const NamedArrays goldens = Goldens();
  const Array& ramp = goldens.at("ramp");
  const auto tensor = Transformed(ramp, {ToTensor{}});
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(Differences(*tensor, goldens.at("ramp_to_tensor")), 0);
  const Normalize normalize = {{0.1307f}, {0.3081f}};
  const auto normal = Transformed(ramp, {ToTensor{}, normalize});
  ASSERT_TRUE(normal.ok());
  EXPECT_EQ(Differences(*normal, goldens.at("ramp_normalize")), 0);
}

TEST(TransformsTest, RandomOnesDependOnTheSeedOnly) {
  const NamedArrays goldens = Goldens();
  const List list = {RandomResizedCrop{{20}},
                     RandomHorizontalFlip{},
                     RandomVerticalFlip{},
                     RandomRotation{{30}},
                     ColorJitter{{0.4f}, {0.4f}, {0.4f}, {0.2f}},
                     RandomCrop{{16}, {2}}};
  const auto once = Transformed(goldens.at("rgb"), list, 5);
  const auto again = Transformed(goldens.at("rgb"), list, 5);
  const auto other = Transformed(goldens.at("rgb"), list, 6);
  ASSERT_TRUE(once.ok()) << once.status();
  EXPECT_EQ(Differences(*once, *again), 0);
  EXPECT_NE(Differences(*once, *other), 0);
}

TEST(TransformsTest, RandomCropPadsIfNeeded) {
  const NamedArrays goldens = Goldens();
  RandomCrop crop = {{40, 50}};
  EXPECT_FALSE(Transformed(goldens.at("rgb"), {crop}).ok());
  crop.pad_if_needed = true;
  const auto out = Transformed(goldens.at("rgb"), {crop});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, (Shape{40, 50, 3}));
}

TEST(TransformsTest, ShapesAreKnownBeforehand) {
  const auto shape = [](const Shape& in, const List& list) {
    auto pipeline = Pipeline::Create(in, list);
    EXPECT_TRUE(pipeline.ok()) << pipeline.status();
    return pipeline->picture_shape();
  };
  EXPECT_EQ(shape({28, 28, 1}, {}), (Shape{28, 28, 1}));
  EXPECT_EQ(shape({20, 30, 3}, {Resize{{10}}}), (Shape{10, 15, 3}));
  EXPECT_EQ(shape({-1, -1, 3}, {Resize{{10}}}), (Shape{-1, -1, 3}));
  EXPECT_EQ(shape({-1, -1, 3}, {Resize{{10}}, CenterCrop{{8}}}),
            (Shape{8, 8, 3}));
  EXPECT_EQ(shape({28, 28, 1}, {Pad{{1, 2}}, Grayscale{3}}),
            (Shape{32, 30, 3}));
}

TEST(TransformsTest, RefusesWhatDoesNotFit) {
  const std::vector<std::pair<List, std::string>> cases = {
      {{Resize{{}}}, "transforms[0] Resize: size has 0 numbers"},
      {{Resize{{0}}}, "size holds 0"},
      {{Resize{{8}, "cubic"}}, "interpolation is 'cubic'"},
      {{RandomRotation{{10}, "box"}}, "interpolation is 'box'"},
      {{Pad{{1, 2, 3}}}, "padding has 3 numbers"},
      {{Pad{{1}, {0}, "wrap"}}, "padding_mode is 'wrap'"},
      {{Pad{{1}, {300}}}, "fill holds 300"},
      {{RandomHorizontalFlip{1.5f}}, "prob is 1.5"},
      {{Grayscale{2}}, "num_output_channels is 2"},
      {{HueTransform{{0.7f}}}, "range [-0.7, 0.7]"},
      {{BrightnessTransform{{-1}}}, "value is -1"},
      {{RandomCrop{{64}}}, "size is [64, 64]"},
      {{ToTensor{}, Resize{{8}}}, "transforms[1] Resize: it must come before"},
      {{ToTensor{}, ToTensor{}}, "a tensor already"},
      {{Normalize{{0, 0}}}, "mean has 2 numbers"},
      {{Normalize{{0}, {0}}}, "std holds 0"},
      {{Normalize{{0}, {1}, "NCHW"}}, "data_format is 'NCHW'"},
      {{Normalize{}}, "put ToTensor or Transpose before it"},
      {{ToTensor{}, Normalize{{0}, {1}, "CHW", true}}, "to_rgb needs"},
      {{Transpose{{0, 1, 1}}}, "each once"},
  };
  for (const auto& [list, message] : cases) {
    const auto pipeline = Pipeline::Create({28, 28, 3}, list);
    ASSERT_FALSE(pipeline.ok()) << message;
    EXPECT_NE(pipeline.status().message().find(message), std::string::npos)
        << pipeline.status();
  }
}

}  // namespace test_transforms
}  // namespace pd
