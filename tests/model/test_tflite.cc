// SPDX-License-Identifier: Apache-2.0
// Networks of TFLite answer as TFLite's interpreter does, and what is wrong in
// one is said with its operator. The files are those of
// testdata/make/keras_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/tflite.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/tflite_graph.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_tflite {

namespace fs = std::filesystem;

std::string Lite(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/tflite/", name);
}

// Of integers that stand for numbers two steps are within what the roundings
// of TFLite's products in integers leave open.
constexpr int kMostSteps = 2;

void ExpectAlike(const Array& got, const Array& want, const std::string& name) {
  ASSERT_EQ(got.dtype, want.dtype) << name;
  ASSERT_EQ(got.shape, want.shape) << name;
  if (want.dtype == DType::kInt8) {
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_LE(std::abs(got.data<int8_t>()[i] - want.data<int8_t>()[i]),
                kMostSteps)
          << name << " at " << i;
    return;
  }
  if (want.dtype != DType::kFloat32) {
    testing::ExpectSameArray(got, want, name);
    return;
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const float a = got.data<float>()[i], b = want.data<float>()[i];
    ASSERT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)))
        << name << " at " << i;
  }
}

TEST(Tflite, AnswersOfEveryNetwork) {
  int networks = 0;
  for (const auto& entry : fs::directory_iterator(Lite(""))) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".tflite")) continue;
    SCOPED_TRACE(path);
    ++networks;
    const auto model = LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
    auto arrays = ParseNpz(testing::MustRead(path + ".npz"));
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    NamedArrays feeds, want;
    for (auto& [name, array] : *arrays)
      if (absl::StartsWith(name, "out."))
        want[name.substr(4)] = array;
      else
        feeds[name] = array;
    Session session(&Registry());
    ASSERT_TRUE(FillScope(*model, &session.scope()).ok());
    const auto got = session.Run(model->program, feeds, model->fetches);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want.size());
    for (const auto& [name, array] : want) {
      ASSERT_EQ(got->count(name), 1u) << name;
      ExpectAlike(got->at(name), array, name);
    }
  }
  EXPECT_EQ(networks, 15);
}

TfliteFile Parsed(const std::string& name) {
  auto file = ParseTflite(testing::MustRead(Lite(name)));
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : TfliteFile();
}

TEST(Tflite, SaysWhatIsWrong) {
  const auto error = [](const TfliteFile& file) {
    const auto graph = TfliteAsOnnx(file);
    EXPECT_FALSE(graph.ok());
    return std::string(graph.status().message());
  };
  TfliteFile file = Parsed("cnn.tflite");
  int changed = 0;
  for (TfliteOperator& op : file.operators)
    if (op.code == 3) {
      op.code = 120;
      ++changed;
    }
  file.operators.back().code = 32;
  file.operators.back().custom = "Special";
  EXPECT_EQ(error(file),
            absl::StrCat("operators that are not supported (and their calls): "
                         "'Special' (1), 'number 120' (",
                         changed, ")"));
  file = Parsed("cnn.tflite");
  file.operators.erase(file.operators.begin());
  EXPECT_TRUE(absl::StrContains(error(file), "made by no operator"));
}

TfliteOperator& OperatorOf(TfliteGraph* graph, int code) {
  const auto op =
      std::find_if(graph->operators.begin(), graph->operators.end(),
                   [&](const TfliteOperator& op) { return op.code == code; });
  EXPECT_NE(op, graph->operators.end()) << code;
  return *op;
}

TEST(Tflite, SaysWhatIsWrongInGraphs) {
  constexpr int kIf = 118, kWhile = 119;
  const auto error = [](const TfliteFile& file) {
    const auto graph = TfliteAsOnnx(file);
    EXPECT_FALSE(graph.ok());
    return std::string(graph.status().message());
  };
  const TfliteFile good = Parsed("control.tflite");
  ASSERT_GE(good.others.size(), 8u);
  TfliteFile file = good;
  int changed = 0;
  for (TfliteGraph& graph : file.others)
    for (TfliteOperator& op : graph.operators)
      if (op.code == 28) {  // TANH
        op.code = 120;
        ++changed;
      }
  EXPECT_EQ(error(file),
            absl::StrCat("operators that are not supported (and their calls): "
                         "'number 120' (",
                         changed, ")"));
  for (const int code : {kIf, kWhile}) {
    file = good;
    OperatorOf(&file, code).options[1].word = 1000;
    EXPECT_TRUE(
        absl::StrContains(error(file), "which the file has not") ||
        absl::StrContains(error(file), "a graph that the file has not"));
    file = good;
    OperatorOf(&file, code).inputs.pop_back();
    EXPECT_FALSE(error(file).empty());
    file = good;
    OperatorOf(&file, code).inputs.clear();
    EXPECT_FALSE(error(file).empty());
  }
  // A round that runs the loop again.
  file = good;
  TfliteOperator& loop = OperatorOf(&file, kWhile);
  const int32_t body = loop.options[1].word;
  ASSERT_GE(body, 1);
  TfliteGraph& round = file.others[static_cast<size_t>(body - 1)];
  TfliteOperator again = loop;
  again.inputs = round.inputs;
  again.outputs = round.outputs;
  round.operators = {again};
  EXPECT_TRUE(absl::StrContains(error(file), "deep")) << error(file);
}

// Options, tensors and shapes that lie end in a status.
TEST(Tflite, HostileOperators) {
  int refused = 0, taken = 0;
  const auto attempt = [&](const TfliteFile& file) {
    const auto graph = TfliteAsOnnx(file);
    const bool ok = graph.ok() && FromOnnx(Registry(), *graph).ok();
    ++(ok ? taken : refused);
  };
  for (const char* name : {"unet.tflite", "shapes.tflite", "maps.tflite",
                           "control.tflite", "lstm.tflite"}) {
    TfliteFile file = Parsed(name);
    for (TfliteOperator& op : file.operators) {
      const TfliteOperator good = op;
      for (TfliteField& field : op.options) {
        const TfliteField before = field;
        for (const int32_t number : {-1, 0, 3, INT32_MAX, INT32_MIN}) {
          field.is_set = true;
          field.byte = field.word = number;
          attempt(file);
        }
        field = before;
      }
      if (!op.inputs.empty()) {
        op.inputs[0] = -1;
        attempt(file);
        op.inputs.clear();
        attempt(file);
        op = good;
      }
      op.outputs.clear();
      attempt(file);
      op = good;
    }
    for (TfliteTensor& tensor : file.tensors) {
      const TfliteTensor good = tensor;
      for (const Shape& shape : {Shape{}, Shape{INT32_MAX, INT32_MAX, 7},
                                 Shape{-1, -1, -1, -1}, Shape{0, 1, 1, 0}}) {
        if (tensor.constant.has_value()) continue;
        tensor.shape = shape;
        attempt(file);
      }
      tensor = good;
      tensor.constant.reset();
      attempt(file);
      tensor = good;
      tensor.dtype.reset();
      attempt(file);
      tensor = good;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(taken, 50);
}

TEST(Tflite, DamagedFiles) {
  const FileBytes file = testing::MustRead(Lite("maps.tflite"));
  std::string bytes(file.view());
  EXPECT_TRUE(IsTflite(bytes));
  int good = 0;
  const auto read = [&](const FileBytes& damaged) {
    const auto parsed = ParseTflite(damaged);
    good += parsed.ok() && TfliteAsOnnx(*parsed).ok();
  };
  testing::ForEveryDamage(bytes, read);
  EXPECT_GT(good, 0);
}

}  // namespace test_tflite
}  // namespace pd
