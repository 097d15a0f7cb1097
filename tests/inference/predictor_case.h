// SPDX-License-Identifier: Apache-2.0
// Models with PaddlePaddle's answers, for the tests of the prediction API.
#ifndef PD_TESTS_INFERENCE_PREDICTOR_CASE_H_
#define PD_TESTS_INFERENCE_PREDICTOR_CASE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "paddle_inference_api.h"

namespace pd {

inline NamedArrays ArraysOf(const std::string& path) {
  auto arrays = ReadNpz(path);
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  return arrays.ok() ? *std::move(arrays) : NamedArrays();
}

inline std::vector<int> IntShape(const Array& array) {
  return {array.shape.begin(), array.shape.end()};
}

/// Gives float32 and int64 arrays to the inputs of their names.
inline void Feed(const NamedArrays& arrays,
                 paddle_infer::Predictor* predictor) {
  for (const auto& [name, array] : arrays) {
    auto input = predictor->GetInputHandle(name);
    input->Reshape(IntShape(array));
    if (array.dtype == DType::kInt64)
      input->CopyFromCpu(array.data<int64_t>());
    else
      input->CopyFromCpu(array.data<float>());
  }
}

inline std::vector<float> OutputOf(paddle_infer::Predictor* predictor,
                                   size_t index = 0) {
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[index]);
  size_t size = 1;
  for (const int extent : output->shape()) size *= extent;
  std::vector<float> values(size);
  output->CopyToCpu(values.data());
  return values;
}

/// Equal to what a file says, within a part in 10,000 of the largest.
inline void ExpectValues(const std::vector<float>& got, const Array& expected) {
  ASSERT_EQ(static_cast<int64_t>(got.size()), expected.size());
  float largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, std::fabs(expected.data<float>()[i]));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected.data<float>()[i], 1e-4f * largest) << i;
}

/// `work` throws an error of this kind whose text has `words`.
inline void ExpectError(const std::string& kind, const std::string& words,
                        const std::function<void()>& work) {
  try {
    work();
  } catch (const paddle::platform::EnforceNotMet& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos)
        << error.what();
    return;
  }
  ADD_FAILURE() << "no error of kind " << kind << " with '" << words << "'";
}

inline paddle_infer::Config LenetConfig() {
  return paddle_infer::Config(
      std::string(PD_TESTDATA) + "/deploy/lenet.pdmodel",
      std::string(PD_TESTDATA) + "/deploy/lenet.pdiparams");
}

}  // namespace pd

#endif  // PD_TESTS_INFERENCE_PREDICTOR_CASE_H_
