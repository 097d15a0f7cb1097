// SPDX-License-Identifier: Apache-2.0
// LeNet and pictures to quantize it with.
#ifndef PD_TESTS_QUANT_QUANT_FIXTURE_H_
#define PD_TESTS_QUANT_QUANT_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "libcore/data/datasets.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/quant/quantize.h"
#include "tests/deploy/deploy_fixture.h"

namespace pd {

// The first `count` pictures of a set of MNIST, u8 / 127.5 - 1.
inline Array Pictures(const std::string& name, int64_t count) {
  IdxDatasetOptions options;
  options.image_path =
      std::string(PD_TESTDATA) + "/mnist/" + name + "-images-idx3-ubyte.gz";
  options.label_path =
      std::string(PD_TESTDATA) + "/mnist/" + name + "-labels-idx1-ubyte.gz";
  const auto dataset = OpenIdx(options);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  std::vector<float> values;
  Record record;
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_TRUE((*dataset)->Read(i, &record).ok());
    for (int k = 0; k < 784; ++k)
      values.push_back(
          static_cast<float>(std::to_integer<int>(record.fields[0].data[k])) /
              127.5f -
          1);
  }
  return MakeArray<float>({count, 1, 28, 28}, values);
}

inline std::unique_ptr<Loader> LoaderOf(const Array& x, int64_t batch = 32) {
  const auto dataset = MakeArrayDataset({{"x", x}}, {});
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  LoaderOptions options;
  options.batch_size = batch;
  auto loader = Loader::Create(*dataset, options);
  EXPECT_TRUE(loader.ok()) << loader.status();
  return *std::move(loader);
}

class QuantizeLeNet : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
    auto model = ReadInferenceModel(DeployData("lenet"));
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  absl::StatusOr<QuantizeResult> Quantize(const Array& x,
                                          const QuantizeOptions& options) {
    const auto loader = LoaderOf(x);
    return QuantizeModel(&registry_, model_, loader.get(), options);
  }

  Array Answers(const InferenceModel& model, const Array& x) {
    Session session(&registry_);
    for (const auto& [name, value] : model.params)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    const auto results = session.Run(model.program, {{model.names.feeds[0], x}},
                                     model.names.fetches);
    EXPECT_TRUE(results.ok()) << results.status();
    return results->begin()->second;
  }

  OpRegistry registry_;
  InferenceModel model_;
};

}  // namespace pd

#endif  // PD_TESTS_QUANT_QUANT_FIXTURE_H_
