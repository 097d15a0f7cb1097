// SPDX-License-Identifier: Apache-2.0
// Bodies of requests and answers: numbers survive exactly, and every wrong
// request is refused with words that say what is wrong.
#include "libcore/serve/protocol.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace pd {
namespace serve {
namespace test_protocol {

using Json = nlohmann::json;

// x: FP32[-1, 3], ids: INT64[-1]; y: FP32[-1, 2], n: INT64[-1].
Signature Two() {
  Signature signature;
  signature.inputs = {{"x", DType::kFloat32, {-1, 3}},
                      {"ids", DType::kInt64, {-1}}};
  signature.outputs = {{"y", DType::kFloat32, {-1, 2}},
                       {"n", DType::kInt64, {-1}}};
  return signature;
}

Signature Only(DType dtype) {
  Signature signature;
  signature.inputs = {{"x", dtype, {-1}}};
  signature.outputs = {{"y", dtype, {-1}}};
  return signature;
}

constexpr char kGood[] =
    R"({"id":"a","inputs":[)"
    R"({"name":"x","datatype":"FP32","shape":[2,3],"data":[1,2.5,-3e2,0,5,6]},)"
    R"({"name":"ids","datatype":"INT64","shape":[2],"data":[-1,9223372036854775807]}],)"
    R"("outputs":[{"name":"n"},{"name":"y","parameters":{"binary_data":true}}]})";

TEST(ProtocolTest, ARequestIsRead) {
  const auto read = ReadInferRequest(kGood, std::nullopt, Two());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->id, "a");
  const Array& x = read->inputs.at("x");
  EXPECT_EQ(x.shape, Shape({2, 3}));
  const float want[] = {1, 2.5f, -300, 0, 5, 6};
  EXPECT_EQ(std::memcmp(x.data<float>(), want, sizeof(want)), 0);
  EXPECT_EQ(read->inputs.at("ids").data<int64_t>()[1],
            std::numeric_limits<int64_t>::max());
  ASSERT_EQ(read->outputs.size(), 2u);
  EXPECT_EQ(read->outputs[0].index, 1u);
  EXPECT_FALSE(read->outputs[0].binary);
  EXPECT_TRUE(read->outputs[1].binary);
}

TEST(ProtocolTest, ListsInListsAndBytes) {
  const auto nested = ReadInferRequest(
      R"({"inputs":[{"name":"x","datatype":"FP32","shape":[2,3],)"
      R"("data":[[1,2,3],[4,5,6]]},{"name":"ids","datatype":"INT64",)"
      R"("shape":[1],"data":[7]}]})",
      std::nullopt, Two());
  ASSERT_TRUE(nested.ok()) << nested.status();
  EXPECT_EQ(nested->inputs.at("x").data<float>()[5], 6);
  EXPECT_EQ(nested->outputs.size(), 2u);
  const std::string json =
      R"({"inputs":[{"name":"ids","datatype":"INT64","shape":[1],)"
      R"("parameters":{"binary_data_size":8}},{"name":"x","datatype":"FP32",)"
      R"("shape":[1,3],"parameters":{"binary_data_size":12}}],)"
      R"("parameters":{"binary_data_output":true}})";
  const int64_t id = 3;
  const float x[] = {1, 2, std::numeric_limits<float>::quiet_NaN()};
  std::string body = json;
  body.append(reinterpret_cast<const char*>(&id), sizeof(id));
  body.append(reinterpret_cast<const char*>(x), sizeof(x));
  const auto bytes = ReadInferRequest(body, json.size(), Two());
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->inputs.at("ids").data<int64_t>()[0], 3);
  EXPECT_EQ(std::memcmp(bytes->inputs.at("x").data<float>(), x, sizeof(x)), 0);
  EXPECT_TRUE(bytes->outputs[0].binary);
}

std::string InputX(const std::string& members) {
  return absl::StrCat(R"({"inputs":[{"name":"x",)", members, "}]}");
}

TEST(ProtocolTest, WrongRequestsAreRefusedWithWords) {
  const std::string fp32 = R"("datatype":"FP32",)";
  const struct {
    std::string body, words;
  } cases[] = {
      {"", "no JSON"},
      {"{", "no JSON"},
      {"nul", "no JSON"},
      {"[]", "expected an object"},
      {"{}", "\"inputs\" is missing"},
      {R"({"inputs":{}})", "\"inputs\" is object"},
      {R"({"inputs":[3]})", "has number in it"},
      {R"({"inputs":[{}]})", "\"name\" is missing"},
      {R"({"inputs":[{"name":"X1"}]})", "no input 'X1', did you mean 'x'"},
      {R"({"id":3,"inputs":[]})", "\"id\" is number"},
      {R"({"inputs":[]})", "input 'x' (FP32[-1, 3]) is missing"},
      {InputX(R"("shape":[1,3],"data":[1,2,3])"), "\"datatype\" is missing"},
      {InputX(R"("datatype":"FP99","shape":[1,3])"), "'FP99' is not known"},
      {InputX(R"("datatype":"FP64","shape":[1,3])"), "the model takes FP32"},
      {InputX(fp32 + R"("data":[1])"), "\"shape\" is missing"},
      {InputX(fp32 + R"("shape":[1.5,3],"data":[1])"), "no integer"},
      {InputX(fp32 + R"("shape":[18446744073709551615,3],"data":[1])"),
       "no integer"},
      {InputX(fp32 + R"("shape":[-1,3],"data":[1])"), "extents are from 1"},
      {InputX(fp32 + R"("shape":[0,3],"data":[])"), "extents are from 1"},
      {InputX(fp32 + R"("shape":[1,4],"data":[1,2,3,4])"), "takes [-1, 3]"},
      {InputX(fp32 + R"("shape":[3],"data":[1,2,3])"), "takes [-1, 3]"},
      {InputX(fp32 + R"("shape":[4611686018427387904,3],"data":[1])"),
       "no integer"},
      {InputX(fp32 + R"("shape":[2147483647,3],"data":[1])"),
       "more elements than the body"},
      {InputX(fp32 + R"("shape":[1,3])"), "neither \"data\" nor"},
      {InputX(fp32 + R"("shape":[1,3],"data":7)"), "expected a list"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2])"), "has 2 numbers"},
      {InputX(fp32 + R"("shape":[2,3],"data":[[1,2,3],[1,2]])"), "a list of 2"},
      {InputX(fp32 + R"("shape":[2,3],"data":[[1,2,3],5])"), "stands 5"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2,null])"), "null is no float"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2,"3"])"), "\"3\" is no float"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2,1e39])"), "is no float32"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2,1e999])"), "no JSON"},
      {InputX(fp32 + R"("shape":[1,3],"data":[1,2,NaN])"), "no JSON"},
      {InputX(fp32 + R"("shape":[1,3],"parameters":{"binary_data_size":12})"),
       "Inference-Header-Content-Length"},
      {InputX(fp32 +
              R"("shape":[1,3],"data":[],"parameters":{"binary_data_size":1})"),
       "both \"data\" and"},
      {"\xff\xfe", "no JSON"},
      {std::string(100000, '['), "more than 32 levels"},
      {std::string(R"({"inputs":)") + std::string(100000, '{'), "32 levels"},
  };
  for (const auto& one : cases) {
    const auto read = ReadInferRequest(one.body, std::nullopt, Two());
    ASSERT_TRUE(absl::IsInvalidArgument(read.status()))
        << one.body.substr(0, 100) << " " << read.status();
    EXPECT_NE(std::string(read.status().message()).find(one.words),
              std::string::npos)
        << one.body.substr(0, 100) << ": " << read.status();
  }
}

TEST(ProtocolTest, WrongBytesAreRefused) {
  const auto read = [](const std::string& size, const std::string& tail,
                       size_t more = 0) {
    const std::string json = absl::StrCat(
        R"({"inputs":[{"name":"x","datatype":"INT64","shape":[1],)",
        R"("parameters":{"binary_data_size":)", size, "}}]}");
    return ReadInferRequest(json + tail, json.size() + more,
                            Only(DType::kInt64))
        .status();
  };
  const std::string eight(8, '\0');
  EXPECT_TRUE(read("8", eight).ok());
  for (const auto& status :
       {read("8", ""), read("8", "1234567"), read("7", "1234567"),
        read("16", eight + eight), read("8", eight + "1"), read("-8", eight),
        read("18446744073709551615", eight), read("1e30", eight),
        read("\"8\"", eight), read("8", eight, 100)})
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

TEST(ProtocolTest, IntegersAreNotCut) {
  const auto read = [](DType dtype, const std::string& number) {
    return ReadInferRequest(
               absl::StrCat(
                   R"({"inputs":[{"name":"x","shape":[1],"datatype":")",
                   DatatypeName(dtype), R"(","data":[)", number, "]}]}"),
               std::nullopt, Only(dtype))
        .ok();
  };
  EXPECT_TRUE(read(DType::kInt8, "-128"));
  EXPECT_FALSE(read(DType::kInt8, "-129"));
  EXPECT_FALSE(read(DType::kInt8, "128"));
  EXPECT_TRUE(read(DType::kUInt8, "255"));
  EXPECT_FALSE(read(DType::kUInt8, "-1"));
  EXPECT_FALSE(read(DType::kInt32, "2147483648"));
  EXPECT_FALSE(read(DType::kInt64, "9223372036854775808"));
  EXPECT_FALSE(read(DType::kInt64, "1.0"));
  EXPECT_FALSE(read(DType::kInt64, "1e400"));
  EXPECT_TRUE(read(DType::kBool, "true"));
  EXPECT_TRUE(read(DType::kBool, "0"));
  EXPECT_FALSE(read(DType::kBool, "2"));
  EXPECT_FALSE(read(DType::kFloat16, "70000"));
  EXPECT_TRUE(read(DType::kFloat64, "1e300"));
}

TEST(ProtocolTest, AnswersHoldTheNumbersExactly) {
  const float y[] = {0.1f, -0.0f, 3.4028235e38f, 1e-45f};
  const Outputs outputs = {
      MakeArray<float>({2, 2}, std::vector<float>(y, y + 4)),
      MakeArray<int64_t>({2}, {std::numeric_limits<int64_t>::min(), 7})};
  const auto text = WriteInferAnswer({"m\"", "3", "id\n"}, Two(),
                                     {{0, false}, {1, false}}, outputs);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_FALSE(text->json_length.has_value());
  const Json json = Json::parse(text->bytes);
  EXPECT_EQ(json["model_name"], "m\"");
  EXPECT_EQ(json["id"], "id\n");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(json["outputs"][0]["data"][i].get<float>(), y[i]);
  EXPECT_EQ(json["outputs"][1]["data"][0], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(json["outputs"][1]["shape"], Json({2}));
  const auto mixed =
      WriteInferAnswer({"m", "3", ""}, Two(), {{1, true}, {0, true}}, outputs);
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  const Json head = Json::parse(mixed->bytes.substr(0, *mixed->json_length));
  EXPECT_EQ(head["outputs"][1]["parameters"]["binary_data_size"], 16);
  EXPECT_EQ(std::memcmp(mixed->bytes.data() + *mixed->json_length + 16, y, 16),
            0);
}

TEST(ProtocolTest, LengthsOfSequences) {
  const auto read = [](const std::string& lod) {
    return ReadInferRequest(
        absl::StrCat(
            R"({"inputs":[{"name":"x","datatype":"INT64","shape":[5],)",
            R"("data":[1,2,3,4,5],"parameters":{"lod":)", lod, "}}]}"),
        std::nullopt, Only(DType::kInt64));
  };
  const auto good = read("[[1,1],[2,3]]");
  ASSERT_TRUE(good.ok()) << good.status();
  const LoD lod = {{0, 1, 2}, {0, 2, 5}};
  EXPECT_EQ(good->inputs.at("x").lod, lod);
  for (const char* bad : {"3", "[3]", "[[-1]]", "[[1.5]]", "[[\"a\"]]",
                          "[[18446744073709551615]]"})
    EXPECT_TRUE(absl::IsInvalidArgument(read(bad).status())) << bad;
  Outputs outputs = {good->inputs.at("x")};
  const auto text = WriteInferAnswer({"m", "1", ""}, Only(DType::kInt64),
                                     {{0, false}}, outputs);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(Json::parse(text->bytes)["outputs"][0]["parameters"]["lod"],
            Json::parse("[[1,1],[2,3]]"));
}

TEST(ProtocolTest, JsonHasNoWordForNaN) {
  const Outputs outputs = {
      MakeArray<float>({1}, {std::numeric_limits<float>::quiet_NaN()})};
  const Signature signature = Only(DType::kFloat32);
  const auto text =
      WriteInferAnswer({"m", "1", ""}, signature, {{0, false}}, outputs);
  EXPECT_TRUE(absl::IsInvalidArgument(text.status())) << text.status();
  EXPECT_TRUE(
      WriteInferAnswer({"m", "1", ""}, signature, {{0, true}}, outputs).ok());
}

TEST(ProtocolTest, TheOlderProtocol) {
  const auto rows = ReadPredictRequest(
      R"({"instances":[{"x":[1,2,3],"ids":4},{"x":[5,6,7],"ids":8}]})", Two());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->inputs.at("x").data<float>()[3], 5);
  EXPECT_EQ(rows->inputs.at("ids").data<int64_t>()[1], 8);
  const auto one =
      ReadPredictRequest(R"({"instances":[1,2]})", Only(DType::kInt64));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->inputs.at("x").shape, Shape({2}));
  EXPECT_TRUE(
      ReadPredictRequest(R"({"inputs":{"x":[[1,2,3]],"ids":[1]}})", Two())
          .ok());
  for (const char* body :
       {"{}", "[]", R"({"instances":[]})", R"({"instances":3})",
        R"({"instances":[1]})", R"({"instances":[{"x":[1,2,3]}]})",
        R"({"instances":[{"x":[1,2,3],"ids":4},{"x":[1,2,3]}]})",
        R"({"instances":[1],"inputs":{}})", R"({"inputs":{"z":[1]}})",
        R"({"instances":[{"x":[],"ids":4}]})", R"({"instances":[{"x":[1,2]}]})",
        R"({"instances":[{"x":[[1,2,3],[1]],"ids":4}]})"}) {
    const auto bad = ReadPredictRequest(body, Two());
    EXPECT_TRUE(absl::IsInvalidArgument(bad.status()))
        << body << " " << bad.status();
  }
  const auto text =
      WritePredictAnswer(Two(), {MakeArray<float>({2, 2}, {1, 2, 3, 4.5f}),
                                 MakeArray<int64_t>({2}, {5, 6})});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, R"({"predictions":{"y":[[1,2],[3,4.5]],"n":[5,6]}})");
}

}  // namespace test_protocol
}  // namespace serve
}  // namespace pd
