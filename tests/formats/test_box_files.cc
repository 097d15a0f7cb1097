// SPDX-License-Identifier: Apache-2.0
// Pascal VOC's and COCO's files of boxes, and text files of word vectors: what
// is read, what is refused and where, and files damaged byte by byte.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "formats/coco_json.h"
#include "formats/voc_xml.h"
#include "formats/word_vectors.h"
#include "gtest/gtest.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_box_files {

const std::string kBoxes = PD_TESTDATA "/boxes/";

std::string XmlError(const std::string& text) {
  return std::string(ParseVocXml(text).status().message());
}

// An object with one corner left out, or all four.
std::string Object(const std::string& inside) {
  return "<annotation>\n <object>" + inside + "</object></annotation>";
}

constexpr char kCorners[] =
    "<bndbox><xmax>9</xmax><ymax>8.5</ymax><xmin> 2 </xmin><ymin>3</ymin>"
    "</bndbox>";

TEST(VocXmlTest, ReadsObjects) {
  const auto file = ParseVocXml(
      testing::MustRead(kBoxes + "voc/Annotations/000004.xml").view());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->width, 50);
  EXPECT_EQ(file->height, 30);
  ASSERT_EQ(file->objects.size(), 3u);
  EXPECT_EQ(file->objects[0].name, "bird");
  EXPECT_TRUE(file->objects[0].difficult);
  EXPECT_EQ(file->objects[0].line, 10);
  // The part's name and box are not the object's.
  EXPECT_EQ(file->objects[1].name, "dog");
  EXPECT_EQ(file->objects[1].xmin, 21);
  EXPECT_EQ(file->objects[1].ymin, 3);
  EXPECT_EQ(file->objects[1].xmax, 31);
  EXPECT_EQ(file->objects[1].ymax, 29);
  const auto bare =
      ParseVocXml(Object(std::string("<name>a &amp; b</name>") + kCorners));
  ASSERT_TRUE(bare.ok()) << bare.status();
  EXPECT_EQ(bare->objects[0].name, "a & b");
  EXPECT_EQ(bare->objects[0].ymax, 8.5);
  EXPECT_EQ(bare->width, 0);
}

TEST(VocXmlTest, RefusesWithTheLine) {
  EXPECT_EQ(XmlError("<a/>"),
            "line 1, column 1: the outermost element is 'a'; expected "
            "'annotation'");
  EXPECT_EQ(XmlError(Object(kCorners)),
            "line 2, column 87: the object that ends here has no 'name'");
  EXPECT_TRUE(absl::StrContains(
      XmlError(Object("<name>a</name><bndbox><xmin>1</xmin></bndbox>")),
      "object 'a' has no whole 'bndbox'"));
  EXPECT_TRUE(
      absl::StrContains(XmlError(Object("<bndbox><xmin>1x</xmin></bndbox>")),
                        "line 2, column 26: 'xmin': '1x' is not a number"))
      << XmlError(Object("<bndbox><xmin>1x</xmin></bndbox>"));
  EXPECT_TRUE(
      absl::StrContains(XmlError(Object("<bndbox><xmin>1e300</xmin></bndbox>")),
                        "'1e300' is no place in a picture"));
  EXPECT_TRUE(absl::StrContains(
      XmlError("<annotation><size><width>-3</width></size></annotation>"),
      "'width' is -3; expected pixels"));
  EXPECT_TRUE(absl::StrContains(
      XmlError(
          "<!DOCTYPE a [<!ENTITY b \"c\">]>\n<annotation>&b;</annotation>"),
      "line 1, column 13: a document type declaration; expected none"))
      << XmlError("<!DOCTYPE a [<!ENTITY b \"c\">]><annotation/>");
  std::string deep = "<annotation>";
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_TRUE(absl::StrContains(XmlError(deep), "nested more than 64 deep"));
  EXPECT_TRUE(absl::StrContains(XmlError(""), "no element found"));
  EXPECT_FALSE(ParseVocXml("<annotation>").ok());
}

std::string JsonError(const std::string& text) {
  return std::string(ParseCocoJson(text).status().message());
}

// A file with one picture, one category and the given annotations.
std::string Coco(const std::string& annotations) {
  return R"({"images": [{"id": 3, "file_name": "a.jpg"}],)"
         R"( "categories": [{"id": 5, "name": "cat"}], "annotations": )" +
         annotations + "}";
}

TEST(CocoJsonTest, ReadsWhatCounts) {
  const auto file =
      ParseCocoJson(testing::MustRead(kBoxes + "instances.json").view());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->images.size(), 4u);
  EXPECT_EQ(file->images[3].file_name, "000004.png");
  EXPECT_EQ(file->images[3].width, 50);
  ASSERT_EQ(file->categories.size(), 3u);
  EXPECT_EQ(file->categories[0].name, "bicycle");
  EXPECT_EQ(file->categories[2].id, 18);
  ASSERT_EQ(file->annotations.size(), 6u);
  EXPECT_EQ(file->annotations[2].image, 3u);
  EXPECT_EQ(file->annotations[2].category, 1u);
  EXPECT_TRUE(file->annotations[2].crowd);
  EXPECT_EQ(file->annotations[2].bbox[2], 10);
  // Anything may stand beside it, nested lists and other boxes included.
  const auto more = ParseCocoJson(Coco(
      R"([{"extra": {"bbox": [1], "id": "x", "list": [[{"bbox": 2}]]},)"
      R"( "image_id": 3, "bbox": [1, 2.5, 3, 4], "category_id": 5}], "bbox": 7)"));
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(more->annotations[0].bbox[1], 2.5);
  EXPECT_FALSE(more->annotations[0].crowd);
}

TEST(CocoJsonTest, RefusesWithThePlace) {
  EXPECT_TRUE(
      absl::StrContains(JsonError("{\"images\": [}"), "byte 13: no JSON"))
      << JsonError("{\"images\": [}");
  EXPECT_TRUE(absl::StrContains(JsonError("[]"), "the file: it is a list"));
  EXPECT_EQ(JsonError("{}"), "the file has no 'images'");
  EXPECT_EQ(JsonError(R"({"images": 3})"),
            "images: it is a number; expected a list");
  EXPECT_EQ(JsonError(R"({"images": {"id": 3}})"),
            "images: it is an object; expected a list");
  EXPECT_EQ(JsonError(R"({"images": [3]})"),
            "images: place 0 is a number; expected an object");
  EXPECT_EQ(JsonError(R"({"images": [{"id": 3}]})"),
            "images[0]: it has no 'file_name'");
  EXPECT_EQ(JsonError(R"({"images": [{"id": "3"}]})"),
            "images[0]: 'id' is a text; expected an integer");
  const std::map<std::string, std::string> annotations = {
      {R"([{"image_id": 3, "category_id": 5}])",
       "annotations[0]: it has no 'bbox' of 4 numbers: x, y, width, height"},
      {R"([{"bbox": [1, 2, 3, 4, 5]}])",
       "annotations[0]: 'bbox' has more than 4 numbers; expected x, y, width, "
       "height"},
      {R"([{"bbox": [1, 2, 3, null]}])", "annotations[0]: 'bbox' holds null"},
      {R"([{"bbox": [1, [2]]}])", "annotations[0]: 'bbox' holds a list"},
      {R"([{"bbox": 1}])",
       "annotations[0]: 'bbox' is a number; expected 4 numbers"},
      {R"([{"bbox": [1e10, 2, 3, 4]}])",
       "annotations[0]: 'bbox' holds 1e+10, which is no place in a picture"},
      {R"([{"image_id": 4, "category_id": 5, "bbox": [1, 2, 3, 4]}])",
       "annotations[0]: 'image_id' is 4, which no picture has"},
      {R"([{"image_id": 3, "category_id": 6, "bbox": [1, 2, 3, 4]}])",
       "annotations[0]: 'category_id' is 6, which no category has"},
      {R"([{"image_id": 3.5}])",
       "annotations[0]: 'image_id' is a number that is no integer of 64 bits; "
       "expected an integer"}};
  for (const auto& [text, message] : annotations)
    EXPECT_EQ(JsonError(Coco(text)), message);
  EXPECT_EQ(JsonError(R"({"images": [{"id": 3, "file_name": "a"},)"
                      R"({"id": 3, "file_name": "b"}],)"
                      R"("categories": [{"id": 1, "name": "c"}]})"),
            "two of the images have the id 3");
}

using Vectors = std::map<std::string, std::vector<float>>;

// All words of a text and their numbers.
absl::StatusOr<Vectors> ReadVectors(absl::string_view text) {
  const auto size = WordVectorSize(text);
  if (!size.ok()) return size.status();
  Vectors vectors;
  const auto words =
      ReadWordVectors(text, *size, [&](absl::string_view word) -> float* {
        auto& vector = vectors[std::string(word)];
        vector.assign(static_cast<size_t>(*size), NAN);
        return vector.data();
      });
  if (!words.ok()) return words.status();
  return vectors;
}

TEST(WordVectorsTest, ReadsWithAndWithoutFirstLine) {
  const Vectors want = {{"the", {0.5f, -1e-3f}},
                        {". . .", {2, 3}},
                        {"\xC3\xA9t\xC3\xA9", {4, 5}}};
  const std::string rows =
      "the 0.5 -1e-3\n. . . 2 3\r\n\xC3\xA9t\xC3\xA9\t4 5 \n";
  const auto glove = ReadVectors(rows), word2vec = ReadVectors("3 2\n" + rows);
  ASSERT_TRUE(glove.ok()) << glove.status();
  ASSERT_TRUE(word2vec.ok()) << word2vec.status();
  EXPECT_EQ(*glove, want);
  EXPECT_EQ(*word2vec, want);
}

TEST(WordVectorsTest, RefusesWithTheLine) {
  const std::map<std::string, std::string> texts = {
      {"", "the file is empty"},
      {"word\n", "line 1: 'word' is not a number"},
      {"3\n", "line 1: a word without numbers"},
      {"a 1 2\nb 3\n",
       "line 2: 2 words between blanks; expected a word and 2 numbers"},
      {"a 1 2\nb c 3\n", "line 2: 'c' is not a number"},
      {"a 1 2\nb 1 1e99\n", "line 2: '1e99' is outside the range of a float32"},
      {"a 1 2\nb 1 nan\n", "line 2: 'nan' is not a finite number"},
      {"3 2\na 1 2\n", "the file ends after 1 of 3 words"}};
  for (const auto& [text, message] : texts)
    EXPECT_EQ(ReadVectors(text).status().message(), message) << text;
}

TEST(BoxFilesTest, SurviveDamage) {
  testing::ForEveryDamage(
      testing::MustRead(kBoxes + "voc/Annotations/000004.xml").view(),
      [](const FileBytes& file) {
        const auto read = ParseVocXml(file.view());
        if (!read.ok()) return;
        for (const VocObject& object : read->objects) {
          EXPECT_FALSE(object.name.empty());
          EXPECT_TRUE(std::fabs(object.xmin) <= 1e9);
        }
      });
  testing::ForEveryDamage(
      Coco(R"([{"image_id": 3, "bbox": [1, 2.5, 3, 4], "category_id": 5}])"),
      [](const FileBytes& file) {
        const auto read = ParseCocoJson(file.view());
        if (!read.ok()) return;
        for (const CocoAnnotation& annotation : read->annotations) {
          EXPECT_LT(annotation.image, read->images.size());
          EXPECT_LT(annotation.category, read->categories.size());
        }
      });
  testing::ForEveryDamage("2 3\nthe 0.5 -1e-3 7\nof 1 2 3\n",
                          [](const FileBytes& file) {
                            ReadVectors(file.view()).status().IgnoreError();
                          });
}

}  // namespace test_box_files
}  // namespace pd
