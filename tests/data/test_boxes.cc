// SPDX-License-Identifier: Apache-2.0
// Boxes in pictures: as transforms move them, against torchvision's
// (moved.json) and against the pixels that they are painted around; VOC's and
// COCO's files, against what pycocotools reads (read.json); and what is
// refused.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/data/boxes_dataset.h"
#include "libcore/data/loader.h"
#include "libcore/data/pipeline.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace test_boxes {

using namespace transforms;  // NOLINT: the structs are what is tested
using nlohmann::json;

const std::string kBoxes = PD_TESTDATA "/boxes/";

json MustParse(const std::string& name) {
  std::ifstream file(kBoxes + name);
  return json::parse(file);
}

std::vector<PixelBox> PixelBoxes(const json& corners) {
  std::vector<PixelBox> boxes;
  for (const auto& c : corners) {
    boxes.push_back({c[0], c[1], c[2], c[3]});
    boxes.back().row = boxes.size() - 1;
  }
  return boxes;
}

TEST(BoxesTest, MoveAsTorchvisionMovesThem) {
  const std::map<std::string, Transform> cases = {
      {"horizontal_flip", RandomHorizontalFlip{1}},
      {"vertical_flip", RandomVerticalFlip{1}},
      {"resize", Resize{{40, 37}}},
      {"resize_edge", Resize{{12}}},
      {"pad", Pad{{1, 2, 3, 4}}},
      {"center_crop", CenterCrop{{13, 8}}},
      {"center_crop_larger", CenterCrop{{30, 36}}},
      {"rotate_30", RandomRotation{{30, 30}}},
      {"rotate_90_expand", RandomRotation{{90, 90}, "nearest", true}},
      {"rotate_125_center",
       RandomRotation{{125, 125}, "nearest", false, {3, 5}}},
  };
  const json golden = MustParse("moved.json");
  const int64_t height = golden["height"], width = golden["width"];
  const std::vector<uint8_t> pixels(static_cast<size_t>(height * width));
  ASSERT_EQ(golden["cases"].size(), cases.size());
  for (const auto& [name, transform] : cases) {
    SCOPED_TRACE(name);
    const json& want = golden["cases"][name];
    auto pipeline = Pipeline::Create({height, width, 1}, {transform});
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    Picture picture{pixels.data(), height, width, 1};
    std::vector<PixelBox> boxes = PixelBoxes(golden["boxes"]);
    TransformScratch scratch;
    RandomStream random(1, 2);
    Companions others;
    others.boxes = &boxes;
    ASSERT_TRUE(pipeline->Apply(&random, &scratch, &picture, others).ok());
    EXPECT_EQ(picture.height, want["canvas"][0].get<int64_t>());
    EXPECT_EQ(picture.width, want["canvas"][1].get<int64_t>());
    size_t next = 0;
    for (size_t row = 0; row < want["boxes"].size(); ++row) {
      const auto corners = want["boxes"][row].get<std::vector<double>>();
      // Nothing is left of it.
      if (corners[0] == corners[2] || corners[1] == corners[3]) continue;
      ASSERT_LT(next, boxes.size());
      const PixelBox& box = boxes[next++];
      EXPECT_EQ(box.row, row);
      EXPECT_NEAR(box.xmin, corners[0], 2e-6 * 40);
      EXPECT_NEAR(box.ymin, corners[1], 2e-6 * 40);
      EXPECT_NEAR(box.xmax, corners[2], 2e-6 * 40);
      EXPECT_NEAR(box.ymax, corners[3], 2e-6 * 40);
    }
    EXPECT_EQ(next, boxes.size());
  }
}

// Every transform with random numbers, together: where a box's pixels go, the
// box goes.
TEST(BoxesTest, StayAroundTheirPixels) {
  const int64_t height = 60, width = 80;
  const std::vector<PixelBox> painted = {
      {4, 6, 20, 30}, {30, 2, 78, 22}, {25, 35, 60, 58}};
  std::vector<uint8_t> mask(static_cast<size_t>(height * width));
  for (size_t b = 0; b < painted.size(); ++b)
    for (auto y = static_cast<int64_t>(painted[b].ymin); y < painted[b].ymax;
         ++y)
      for (auto x = static_cast<int64_t>(painted[b].xmin); x < painted[b].xmax;
           ++x)
        mask[static_cast<size_t>(y * width + x)] = static_cast<uint8_t>(b + 1);
  const std::vector<std::pair<std::vector<Transform>, double>> lists = {
      {{RandomHorizontalFlip{0.5f}, RandomVerticalFlip{0.5f},
        RandomCrop{{40, 50}, {3, 5}}, Pad{{2, 1}}, BrightnessTransform{{0.4f}},
        CenterCrop{{39, 45}}},
       0},
      {{RandomCrop{{70, 90}, {}, true}}, 0},
      {{RandomResizedCrop{{64, 64}, {0.3f, 1}, {0.7f, 1.4f}}}, 2},
      {{RandomRotation{{-180, 180}, "nearest", true}}, 2},
      {{RandomRotation{{90, 90}, "nearest", true}}, 0},
      {{RandomRotation{{270, 270}, "nearest", true}}, 0},
      {{RandomRotation{{180, 180}}}, 0},
      {{Resize{{30}}, RandomRotation{{-40, 40}}}, 2}};
  size_t kept = 0;
  for (size_t list = 0; list < lists.size(); ++list) {
    const auto pipeline =
        Pipeline::Create({height, width, 1}, lists[list].first);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(absl::StrCat("list ", list, ", seed ", seed));
      Picture picture{mask.data(), height, width, 1}, moved = picture;
      std::vector<PixelBox> boxes = painted;
      for (size_t b = 0; b < boxes.size(); ++b) boxes[b].row = b;
      TransformScratch scratch, mask_scratch;
      Companions others{&moved, &mask_scratch, &boxes, 0};
      RandomStream random(seed, 9);
      ASSERT_TRUE(pipeline->Apply(&random, &scratch, &picture, others).ok());
      for (const PixelBox& box : boxes) {
        double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
        for (int64_t y = 0; y < moved.height; ++y)
          for (int64_t x = 0; x < moved.width; ++x)
            if (moved.pixels[y * moved.width + x] == box.row + 1) {
              left = std::min(left, static_cast<double>(x));
              right = std::max(right, static_cast<double>(x + 1));
              top = std::min(top, static_cast<double>(y));
              bottom = std::max(bottom, static_cast<double>(y + 1));
            }
        // Slack: a picture's edge cuts corners off the boxes that are turned.
        const double slack = lists[list].second;
        EXPECT_LE(box.xmin, left + slack);
        EXPECT_GE(box.xmax, right - slack);
        EXPECT_LE(box.ymin, top + slack);
        EXPECT_GE(box.ymax, bottom - slack);
        if (slack > 0) continue;
        EXPECT_EQ(box.xmin, left);
        EXPECT_EQ(box.xmax, right);
        EXPECT_EQ(box.ymin, top);
        EXPECT_EQ(box.ymax, bottom);
        ++kept;
      }
    }
  }
  EXPECT_GT(kept, 200u);
}

TEST(BoxesTest, GoWhenLittleIsLeft) {
  const std::vector<uint8_t> pixels(100 * 100);
  const auto pipeline = Pipeline::Create(
      {100, 100, 1}, {CenterCrop{{50, 50}}, Pad{{30}}, CenterCrop{{50, 50}}});
  for (const double least : {0.0, 0.24, 0.26, 1.0}) {
    // A quarter of the first is left, all of the second.
    std::vector<PixelBox> boxes = {{15, 15, 35, 35}, {30, 30, 40, 40}};
    boxes[1].row = 1;
    Picture picture{pixels.data(), 100, 100, 1};
    TransformScratch scratch;
    RandomStream random(1, 2);
    Companions others;
    others.boxes = &boxes;
    others.min_visible = least;
    ASSERT_TRUE(pipeline->Apply(&random, &scratch, &picture, others).ok());
    ASSERT_EQ(boxes.size(), least > 0.25 ? 1u : 2u) << least;
    EXPECT_EQ(boxes.back().row, 1u);
    if (boxes.size() == 1) continue;
    // A pad behind the crop does not bring back what was cut away.
    EXPECT_EQ(boxes[0].xmin, 0);
    EXPECT_EQ(boxes[0].xmax, 10);
  }
}

// Arrays whose field of boxes is declared, padded to three of 4 numbers.
NamedArrays Arrays() {
  NamedArrays arrays;
  arrays["image"] =
      MakeArray<uint8_t>({2, 10, 20, 3}, std::vector<uint8_t>(2 * 10 * 20 * 3));
  arrays["gt_box"] = MakeArray<float>(
      {2, 3, 4}, {0.1f, 0.2f, 0.3f, 0.6f, 0, 0, 0, 0, 0.5f, 0.5f, 1.0f, 1.0f,
                  0.7f, 0.1f, 0.9f, 0.3f, 0, 0, 0, 0, 0,    0,    0,    0});
  arrays["gt_label"] = MakeArray<int64_t>({2, 3}, {7, 8, 9, 5, 6, 4});
  return arrays;
}

DatasetPtr Declared(const BoxForm& form) {
  const auto plain = MakeArrayDataset(Arrays(), {"arrays", {}});
  EXPECT_TRUE(plain.ok()) << plain.status();
  auto boxed = WithBoxes(*plain, {"gt_box", form});
  EXPECT_TRUE(boxed.ok()) << boxed.status();
  return *boxed;
}

// The fields of the first batch, as numbers.
std::map<std::string, std::vector<double>> FirstBatch(
    DatasetPtr dataset, const std::vector<Transform>& transforms) {
  LoaderOptions options;
  options.batch_size = static_cast<int64_t>(dataset->size());
  options.transforms = transforms;
  auto loader = Loader::Create(std::move(dataset), options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  std::map<std::string, std::vector<double>> fields;
  if (!loader.ok() || !(*loader)->StartEpoch(0).ok()) return fields;
  const auto batch = (*loader)->Next();
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (!batch.ok()) return fields;
  for (const BatchField& field : (*batch)->fields) {
    std::vector<double>& out = fields[field.name];
    for (int64_t i = 0; i < NumElements(field.shape); ++i)
      out.push_back(
          field.dtype == DType::kInt64
              ? static_cast<double>(reinterpret_cast<int64_t*>(field.data)[i])
          : field.dtype == DType::kFloat32
              ? reinterpret_cast<float*>(field.data)[i]
              : static_cast<double>(field.data[i]));
  }
  return fields;
}

void ExpectNear(const std::vector<double>& got,
                const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(BoxesTest, OfAnyArraysMoveWithTheirRows) {
  const auto still = FirstBatch(Declared({}), {});
  ExpectNear(still.at("gt_box"),
             {0.1f, 0.2f, 0.3f, 0.6f, 0.5f, 0.5f, 1, 1, 0, 0, 0, 0,  //
              0.7f, 0.1f, 0.9f, 0.3f, 0,    0,    0, 0, 0, 0, 0, 0});
  ExpectNear(still.at("gt_label"), {7, 9, 0, 5, 0, 0});
  const auto turned = FirstBatch(Declared({}), {RandomHorizontalFlip{1}});
  ExpectNear(turned.at("gt_box"),
             {0.7, 0.2, 0.9, 0.6, 0, 0.5, 0.5, 1, 0, 0, 0, 0,  //
              0.1, 0.1, 0.3, 0.3, 0, 0,   0,   0, 0, 0, 0, 0});
  // The left half goes: x of the others are parts of what is left.
  const auto cut =
      FirstBatch(Declared({}), {Pad{{0, 0, 10, 0}}, CenterCrop{{10, 10}}});
  ExpectNear(cut.at("gt_box"), {0,   0.5, 1,   1,   0, 0, 0, 0, 0, 0, 0, 0,  //
                                0.4, 0.1, 0.8, 0.3, 0, 0, 0, 0, 0, 0, 0, 0});
  ExpectNear(cut.at("gt_label"), {9, 0, 0, 5, 0, 0});
  // Centre, width and height, in pixels: nothing of them stands in the array.
  BoxForm centre;
  centre.centre = true;
  centre.normalized = false;
  NamedArrays arrays = Arrays();
  arrays["gt_box"] =
      MakeArray<float>({2, 3, 4}, {4, 4, 4, 4, 15, 7.5f, 10, 5, 0,  0, 0, 0,  //
                                   0, 0, 0, 0, 0,  0,    0,  0, 16, 2, 4, 2});
  const auto boxed = WithBoxes(*MakeArrayDataset(arrays, {"arrays", {}}),
                               {"gt_box", centre, {"gt_label"}});
  ASSERT_TRUE(boxed.ok()) << boxed.status();
  const auto wide = FirstBatch(*boxed, {Resize{{20, 60}}});
  ExpectNear(wide.at("gt_box"), {12, 8, 12, 8, 45, 15, 30, 10, 0, 0, 0, 0,  //
                                 48, 4, 12, 4, 0,  0,  0,  0,  0, 0, 0, 0});
  ExpectNear(wide.at("gt_label"), {7, 8, 0, 4, 0, 0});
}

TEST(BoxesTest, AreNotBesideThemselves) {
  const auto boxed = WithBoxes(*MakeArrayDataset(Arrays(), {"arrays", {}}),
                               {"gt_box", {}, {"gt_label", "gt_box"}});
  ASSERT_FALSE(boxed.ok());
  EXPECT_EQ(boxed.status().message(),
            "field 'gt_box' holds the boxes; it cannot be beside them too");
}

// Rows with as many boxes as they have: padded batch by batch.
TEST(BoxesTest, OfRowsHaveALength) {
  const std::string folder =
      ::testing::TempDir() + "pd_boxes_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/t.jsonl")
      << R"({"image": "000001.png", "gt_box": [[0, 0, 0.5, 1]],)"
      << R"( "gt_label": [3]})"
      << "\n"
      << R"({"image": "000001.png", "gt_box": [[0, 0, 0.1, 0.1],)"
      << R"( [0.625, 0, 1, 1]], "gt_label": [1, 2]})"
      << "\n";
  JsonlDatasetOptions options;
  options.paths = {folder + "/t.jsonl"};
  ValueOptions picture, label;
  picture.picture = PictureFileOptions{kBoxes + "voc/JPEGImages"};
  label.dtype = DType::kInt64;
  options.fields = {{"image", "image", {}, picture},
                    {"gt_box", "gt_box", {-1, 4}, {}},
                    {"gt_label", "gt_label", {-1}, label}};
  const auto rows = OpenJsonl(options);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto boxed = WithBoxes(*rows, {"gt_box", {}});
  ASSERT_TRUE(boxed.ok()) << boxed.status();
  const auto batch = FirstBatch(*boxed, {CenterCrop{{32, 24}}});
  ExpectNear(batch.at("gt_box_length"), {1, 1});
  ExpectNear(batch.at("gt_label"), {3, 2});
  ExpectNear(batch.at("gt_box"), {0, 0, 0.5, 1, 0.75, 0, 1, 1});
  std::filesystem::remove_all(folder);
}

VocDetectionOptions Voc() {
  VocDetectionOptions options;
  options.images = kBoxes + "voc/JPEGImages";
  options.annotations = kBoxes + "voc/Annotations";
  options.list = kBoxes + "voc/ImageSets/Main/trainval.txt";
  options.boxes.max_boxes = 4;
  options.boxes.form.normalized = false;
  return options;
}

CocoDetectionOptions Coco() {
  return {kBoxes + "voc/JPEGImages", kBoxes + "instances.json", Voc().boxes};
}

// A record as pycocotools has it: boxes in any order.
void ExpectRecord(const Dataset& dataset, int64_t index, const json& want) {
  Record record;
  const absl::Status status = dataset.Read(index, &record);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(record.fields[0].height, want["height"].get<int64_t>());
  EXPECT_EQ(record.fields[0].width, want["width"].get<int64_t>());
  const auto* box = reinterpret_cast<const float*>(record.fields[1].data);
  const auto* label = reinterpret_cast<const int64_t*>(record.fields[2].data);
  const auto* hard = reinterpret_cast<const int64_t*>(record.fields[3].data);
  using Row = std::vector<double>;
  std::vector<Row> got, expected;
  for (size_t i = 0; i < 4; ++i)
    got.push_back({box[4 * i], box[4 * i + 1], box[4 * i + 2], box[4 * i + 3],
                   static_cast<double>(label[i]),
                   static_cast<double>(hard[i])});
  for (size_t i = 0; i < want["boxes"].size(); ++i) {
    const auto b = want["boxes"][i].get<Row>();
    expected.push_back({b[0], b[1], b[0] + b[2], b[1] + b[3], want["labels"][i],
                        want["crowds"][i]});
  }
  expected.resize(4, Row(6));
  std::sort(got.begin(), got.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(got, expected);
}

TEST(BoxesTest, OfVocAndCocoAreThoseOfPycocotools) {
  const json golden = MustParse("read.json");
  for (const auto& dataset :
       {OpenVocDetection(Voc()), OpenCocoDetection(Coco())}) {
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    ASSERT_EQ((*dataset)->size(), 4);
    EXPECT_EQ((*dataset)->FindField("gt_label")->classes,
              golden["classes"].get<std::vector<std::string>>());
    EXPECT_TRUE((*dataset)->notes().empty());
    for (int64_t i = 0; i < 4; ++i)
      ExpectRecord(**dataset, i, golden["pictures"][static_cast<size_t>(i)]);
  }
}

TEST(BoxesTest, ListsClassesAndCrowds) {
  VocDetectionOptions voc = Voc();
  voc.list = kBoxes + "voc/ImageSets/Main/dog_trainval.txt";
  EXPECT_EQ((*OpenVocDetection(voc))->size(), 4);
  voc.list = "";
  const auto all = OpenVocDetection(voc);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ((*all)->size(), 5);
  EXPECT_TRUE(absl::StrContains((*all)->Describe(4), "000005.png"));
  // A background moves the classes, difficult boxes go, numbers follow `class`.
  voc = Voc();
  voc.boxes.background = true;
  voc.boxes.skip_difficult = true;
  voc.classes = {"dog", "bird", "bicycle"};
  const auto some = OpenVocDetection(voc);
  ASSERT_TRUE(some.ok()) << some.status();
  EXPECT_EQ((*some)->FindField("gt_label")->classes,
            (std::vector<std::string>{"background", "dog", "bird", "bicycle"}));
  Record record;
  ASSERT_TRUE((*some)->Read(3, &record).ok());
  const auto* label = reinterpret_cast<const int64_t*>(record.fields[2].data);
  EXPECT_EQ((std::vector<int64_t>{label, label + 4}),
            (std::vector<int64_t>{1, 3, 0, 0}));
  // As parts, by centre; and what is more than a record holds is said.
  CocoDetectionOptions coco = Coco();
  coco.boxes.max_boxes = 1;
  coco.boxes.form.normalized = coco.boxes.form.centre = true;
  const auto first = OpenCocoDetection(coco);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_EQ((*first)->notes().size(), 1u);
  EXPECT_TRUE(absl::StrContains((*first)->notes()[0],
                                "pictures with more than 1 boxes: 2; boxes "
                                "left out: 3 (max_boxes: 3 takes "
                                "all)"))
      << (*first)->notes()[0];
  ASSERT_TRUE((*first)->Read(0, &record).ok());
  const auto* box = reinterpret_cast<const float*>(record.fields[1].data);
  EXPECT_FLOAT_EQ(box[0], 39.0f / 48);
  EXPECT_FLOAT_EQ(box[1], 21.0f / 32);
  EXPECT_FLOAT_EQ(box[2], 18.0f / 48);
  EXPECT_FLOAT_EQ(box[3], 22.0f / 32);
}

std::string Refusal(const absl::StatusOr<DatasetPtr>& dataset) {
  return std::string(dataset.status().message());
}

TEST(BoxesTest, RefusesWhatDoesNotFit) {
  VocDetectionOptions voc = Voc();
  voc.classes = {"dog", "bird"};
  EXPECT_TRUE(absl::StrContains(
      Refusal(OpenVocDetection(voc)),
      "000002.xml':10: 'bicycle' is no class of this data set; they are 'dog', "
      "'bird'"))
      << Refusal(OpenVocDetection(voc));
  const std::string folder =
      ::testing::TempDir() + "pd_bad_boxes_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const auto write = [&folder](const std::string& name,
                               const std::string& text) {
    std::ofstream(folder + "/" + name) << text;
    return folder + "/" + name;
  };
  voc = Voc();
  voc.list = write("list.txt", "000001\n000009\n");
  EXPECT_TRUE(
      absl::StrContains(Refusal(OpenVocDetection(voc)), "has no '000009.xml'"));
  voc.boxes.skip_bad = true;
  const auto skipped = OpenVocDetection(voc);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ((*skipped)->size(), 1);
  EXPECT_EQ((*skipped)->left_out().count, 1);
  // The XML file of another picture.
  voc = Voc();
  voc.annotations = folder;
  voc.list = "";
  write("000001.xml",
        "<annotation><size><width>47</width><height>32</height></size>"
        "<object><name>a</name><bndbox><xmin>1</xmin><ymin>1</ymin>"
        "<xmax>9</xmax><ymax>9</ymax></bndbox></object>"
        "<object><name>a</name><bndbox><xmin>50</xmin><ymin>1</ymin>"
        "<xmax>60</xmax><ymax>9</ymax></bndbox></object></annotation>");
  const auto other = OpenVocDetection(voc);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_EQ((*other)->notes().size(), 1u);
  EXPECT_TRUE(absl::StrContains((*other)->notes()[0],
                                "boxes without width or height in their "
                                "picture, which are left out: 1; "));
  Record record;
  EXPECT_TRUE(absl::StrContains((*other)->Read(0, &record).message(),
                                "is 48 x 32 pixels"));
  write("000003.xml", "<annotation><size></annotation>");
  EXPECT_TRUE(
      absl::StrContains(Refusal(OpenVocDetection(voc)),
                        "000003.xml': line 1, column 21: mismatched tag"))
      << Refusal(OpenVocDetection(voc));
  CocoDetectionOptions coco = Coco();
  coco.images = folder;
  EXPECT_TRUE(absl::StrContains(Refusal(OpenCocoDetection(coco)),
                                "instances.json': images[0]: cannot open '"))
      << Refusal(OpenCocoDetection(coco));
  std::filesystem::remove_all(folder);
  NamedArrays arrays = Arrays();
  arrays["gt_label"] = MakeArray<int64_t>({2, 2}, {1, 2, 3, 4});
  const DatasetPtr plain = *MakeArrayDataset(arrays, {"arrays", {}});
  EXPECT_TRUE(absl::StrContains(
      Refusal(WithBoxes(plain, {"gt_box", {}})),
      "field 'gt_label' has 2 rows beside the 3 boxes of field 'gt_box'"));
  EXPECT_TRUE(absl::StrContains(Refusal(WithBoxes(plain, {"boxes", {}})),
                                "no field 'boxes'"));
  EXPECT_TRUE(absl::StrContains(Refusal(WithBoxes(plain, {"gt_label", {}})),
                                "boxes are float32 [boxes, 4]"));
}

}  // namespace test_boxes
}  // namespace pd
