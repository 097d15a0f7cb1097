// SPDX-License-Identifier: Apache-2.0
// The files here are written byte by byte after the format's specification, not
// by our writer, so that reader and writer do not share a mistake.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "formats/json_text.h"
#include "formats/safetensors.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_safetensors {

using testing::ExpectSameArray;
using testing::ForEveryDamage;
using testing::HeapBytes;
using testing::MustRead;
using testing::Scratch;

std::string File(absl::string_view header, absl::string_view data) {
  const uint64_t size = header.size();
  return absl::StrCat(
      absl::string_view(reinterpret_cast<const char*>(&size), sizeof(size)),
      header, data);
}

absl::Status ErrorOf(absl::string_view header, absl::string_view data) {
  return ParseSafetensors(HeapBytes(File(header, data))).status();
}

TEST(Safetensors, ReadsWhatTheSpecificationShows) {
  const auto content = ParseSafetensors(HeapBytes(File(
      "{\"__metadata__\": {\"made \\\"by\\\"\": \"\\u00fc\\ud83d\\ude42\"},"
      " \"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[2,10]},\n"
      "\"h\":{\"data_offsets\":[0,2],\"shape\":[],\"dtype\":\"BF16\"},"
      "\"none\":{\"dtype\":\"I64\",\"shape\":[0,3],\"data_offsets\":[10,10]}} ",
      absl::string_view("\x80\x3f\0\0\x80\x3f\0\0\0\xc0", 10))));
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->metadata.at("made \"by\""), "ü🙂");
  ASSERT_EQ(content->tensors.size(), 3u);
  EXPECT_EQ(content->tensors[0].first, "w");
  ExpectSameArray(content->tensors[0].second,
                  MakeArray<float>({1, 2}, {1.0f, -2.0f}), "w");
  EXPECT_EQ(content->tensors[1].second.dtype, DType::kBFloat16);
  EXPECT_EQ(content->tensors[1].second.shape, Shape());
  EXPECT_EQ(content->tensors[2].second.shape, Shape({0, 3}));
}

TEST(Safetensors, LeavesViewsWhereTheyLieWhenAsked) {
  const FileBytes file = HeapBytes(
      File("{\"w\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
           "12345678"));
  const auto content = ParseSafetensors(file, Alignment::kAny);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(content->tensors[0].second.bytes.get(),
            file.data.get() + file.size - 8);
}

TEST(Safetensors, SaysWhatIsWrong) {
  const auto tensor = [](const char* dtype, const char* shape,
                         const char* offsets) {
    return absl::StrCat("{\"w\":{\"dtype\":\"", dtype, "\",\"shape\":", shape,
                        ",\"data_offsets\":", offsets, "}}");
  };
  const std::string data(8, '\0');
  EXPECT_TRUE(ErrorOf(tensor("F32", "[2]", "[0,8]"), data).ok());
  const struct {
    std::string header, says;
  } kCases[] = {
      {tensor("F32", "[3]", "[0,8]"), "takes 12 bytes"},
      {tensor("F32", "[2]", "[0,9]"), "takes 8 bytes"},
      {tensor("F32", "[1]", "[4,8]"), "begins at byte 4"},
      {tensor("F32", "[1]", "[0,4]"), "take 4 bytes; 8 are there"},
      {tensor("F32", "[2]", "[8,0]"), "it has 8 to 0"},
      {tensor("F32", "[-2]", "[0,8]"), "an integer of 0 or more"},
      {tensor("F32", "[4611686018427387904]", "[0,8]"), "'w'"},
      {tensor("F32", "[2.0]", "[0,8]"), "'.0]"},
      {tensor("F8_E4M3", "[8]", "[0,8]"), "'F8_E4M3' is not supported"},
      {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", "expected dtype, shape"},
      {"{\"w\":{}}", "it has nothing"},
      {"{\"w\":1}", "expected {"},
      {"[]", "expected {"},
      {"{} {}", "expected its end"},
      {"{\"__metadata__\":{\"a\":1}}", "expected a string"},
      {"{\"\\ud800\":1}", "surrogate"},
      {"{\"\xff\":1}", "UTF-8"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ErrorOf(c.header, data);
    EXPECT_FALSE(status.ok()) << c.header;
    EXPECT_TRUE(absl::StrContains(status.message(), c.says)) << status;
  }
  EXPECT_TRUE(absl::StrContains(
      ErrorOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
              "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
              data)
          .message(),
      "twice"));
  EXPECT_TRUE(absl::StrContains(
      ErrorOf("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
              data)
          .message(),
      "'b'"));
}

TEST(Safetensors, WritesAlignedAndReadsBack) {
  Safetensors content;
  content.metadata["format"] = "pd";
  content.tensors = {{"byte", MakeArray<uint8_t>({3}, {1, 2, 3})},
                     {"名\n\"x\"", MakeArray<double>({2}, {1.5, -2.5})},
                     {"c", MakeArray<std::complex<float>>({1}, {{1, 2}})},
                     {"flag", MakeArray<int8_t>({1}, {-1})},
                     {"scalar", MakeArray<int32_t>({}, {7})},
                     {"empty", MakeArray<float>({0, 4}, {})}};
  const std::string path = Scratch("all.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, content).ok());
  const FileBytes file = MustRead(path);
  const auto back = ParseSafetensors(file);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->metadata, content.metadata);
  ASSERT_EQ(back->tensors.size(), content.tensors.size());
  for (const auto& [name, array] : back->tensors) {
    // A view: nothing had to be moved into alignment.
    if (array.size_bytes() > 0) {
      EXPECT_GE(array.bytes.get(), file.data.get()) << name;
      EXPECT_LE(array.bytes.get(), file.data.get() + file.size) << name;
    }
    for (const auto& [wanted, want] : content.tensors)
      if (wanted == name) ExpectSameArray(array, want, name);
  }
  content.tensors = {{"x", MakeArray<std::complex<double>>({1}, {{1, 2}})}};
  EXPECT_TRUE(absl::IsUnimplemented(WriteSafetensors(path, content)));
  content.tensors = {{"\xff", MakeArray<float>({1}, {1})}};
  EXPECT_TRUE(absl::IsInvalidArgument(WriteSafetensors(path, content)));
}

TEST(Safetensors, EveryDamageComesBack) {
  const std::string good = File(
      "{\"__metadata__\":{\"k\":\"\\u0041\"},\"w\":{\"dtype\":\"F32\","
      "\"shape\":[2],\"data_offsets\":[0,8]}}",
      "12345678");
  int read = 0;
  ForEveryDamage(good, [&read](const FileBytes& file) {
    read += ParseSafetensors(file).ok();
  });
  EXPECT_GT(read, 8 * 3 - 1);  // the data's bytes are anything
}

TEST(JsonText, Utf8) {
  EXPECT_TRUE(IsUtf8("aü€🙂"));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80",
                          "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5"})
    EXPECT_FALSE(IsUtf8(bad)) << bad;
}

}  // namespace test_safetensors
}  // namespace pd
