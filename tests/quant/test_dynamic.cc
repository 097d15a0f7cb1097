// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization: which ops compute with integers, how near their answers
// are to the float model's, and that a record's answer does not depend on the
// others in its batch.
#include "libcore/quant/dynamic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace {

class Dynamic : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&reference_).ok());
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
  }

  // A network with its first values.
  void Build(const std::string& shape, const std::string& layers) {
    const auto job =
        ParseJob(absl::StrCat("model { input { name: \"x\" shape: ", shape,
                              " } ", layers, " }"),
                 "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTestProgram(registry_, *job);
    ASSERT_TRUE(program.ok()) << program.status();
    Session session(&registry_);
    ASSERT_TRUE(session.RunOnce(program->startup).ok());
    NamedArrays params;
    for (const VarDesc& var : program->test.global().vars)
      if (var.persistable) params[var.name] = *session.scope().Get(var.name);
    auto model =
        Freeze(program->test, {program->inputs, program->outputs}, params);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  InferenceModel Quantized(const SkipList& skips = {}) {
    Quantization q;
    const absl::Status status = PlanDynamic(model_, skips, {}, &q);
    EXPECT_TRUE(status.ok()) << status;
    return WithDynamic(model_, q);
  }

  Array Answers(const InferenceModel& model, const Array& x,
                bool integers = true, bool fast = true) {
    Session session(fast ? &registry_ : &reference_);
    PassOptions passes;
    if (!integers) passes.disabled.insert("int8_dynamic");
    passes.observer = [&](const std::string&, const std::string& pass,
                          const ProgramDesc& program) {
      if (pass != "int8_dynamic") return absl::OkStatus();
      ops_.clear();
      for (const OpDesc& op : program.global().ops) ++ops_[op.type];
      return absl::OkStatus();
    };
    session.set_pass_options(passes);
    for (const auto& [name, value] : model.params)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    const auto results =
        session.Run(model.program, {{"x", x}}, model.names.fetches);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->begin()->second : Array();
  }

  static Array Numbers(const Shape& shape, int64_t skip = 0) {
    std::vector<float> values;
    const Philox random(3, 1);
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(
          static_cast<float>(random.Normal(static_cast<uint64_t>(i + skip))));
    return MakeArray<float>(shape, values);
  }

  // sqrt(sum (a - b)^2 / sum b^2)
  static double Error(const Array& a, const Array& b) {
    EXPECT_EQ(a.size(), b.size());
    double error = 0, all = 0;
    for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const double want = b.data<float>()[i];
      error += std::pow(a.data<float>()[i] - want, 2);
      all += want * want;
    }
    return std::sqrt(error / all);
  }

  OpRegistry registry_, reference_;
  InferenceModel model_;
  std::map<std::string, int> ops_;
};

TEST_F(Dynamic, LinearLayersMultiplyIntegers) {
  Build("[-1, 40]",
        "layer { name: \"a\" linear { out_features: 64 } } layer { relu {} }"
        "layer { name: \"b\" linear { out_features: 10 } }");
  const Array x = Numbers({7, 40});
  const Array want = Answers(model_, x);
  const InferenceModel q = Quantized();
  EXPECT_EQ(q.params.at("a.weight").dtype, DType::kInt8);
  EXPECT_EQ(q.params.at("a.bias").dtype, DType::kFloat32);
  const Array got = Answers(q, x);
  EXPECT_EQ(ops_["int8_dynamic_matmul"], 2);
  EXPECT_EQ(ops_["dequantize_linear"], 0);
  EXPECT_LT(Error(got, want), 0.02);
  // As PaddlePaddle runs it: weights alone are rounded.
  const Array floats = Answers(q, x, false);
  EXPECT_LT(Error(floats, want), 0.01);
  EXPECT_GT(Error(floats, want), 0);
  EXPECT_LT(Error(Answers(q, x, true, false), got), 1e-6);
}

TEST_F(Dynamic, RecordsDoNotSeeEachOther) {
  Build("[-1, 40]", "layer { name: \"a\" linear { out_features: 9 } }");
  const InferenceModel q = Quantized();
  const Array both = Answers(q, Numbers({2, 40}));
  const Array alone = Answers(q, Numbers({1, 40}, 40));
  for (int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(both.data<float>()[9 + i], alone.data<float>()[i]) << i;
}

TEST_F(Dynamic, RecurrentLayersMultiplyIntegers) {
  const char* kinds[] = {"lstm", "gru", "simple_rnn"};
  for (const char* kind : kinds) {
    Build("[-1, -1, 12]",
          absl::StrCat("layer { name: \"r\" ", kind,
                       " { hidden_size: 24 num_layers: 3 direction: "
                       "bidirectional } } layer { name: \"b\" linear { "
                       "out_features: 5 } }"));
    const Array x = Numbers({3, 6, 12});
    const Array want = Answers(model_, x);
    const InferenceModel q = Quantized();
    const Array got = Answers(q, x);
    EXPECT_EQ(ops_["int8_dynamic_rnn"], 1) << kind;
    EXPECT_EQ(ops_["rnn"], 0) << kind;
    EXPECT_EQ(ops_["int8_dynamic_matmul"], 1) << kind;
    EXPECT_LT(Error(got, want), 0.03) << kind;
    EXPECT_GT(Error(got, want), 0) << kind;
    // The cells' functions differ in last bits, which turn roundings.
    EXPECT_LT(Error(Answers(q, x, true, false), got), 0.01) << kind;
  }
}

TEST_F(Dynamic, LeavesWhatIsSkippedAndWhatIsNoLayer) {
  Build("[-1, 1, 8, 8]",
        "layer { name: \"c\" conv2d { out_channels: 4 kernel_size: 3 } }"
        "layer { flatten {} } layer { name: \"a\" linear { out_features: 6 } }"
        "layer { name: \"b\" linear { out_features: 6 } }");
  Quantization q;
  ASSERT_TRUE(PlanDynamic(model_, {"b.weight"}, {}, &q).ok());
  EXPECT_EQ(q.plan.ops.size(), 1u);
  EXPECT_EQ(q.plan.left.size(), 2u);
  const absl::Status none = PlanDynamic(model_, {"matmul_v2"}, {}, &q);
  EXPECT_TRUE(absl::StrContains(none.message(), "no linear")) << none;
}

}  // namespace
}  // namespace pd
