// SPDX-License-Identifier: Apache-2.0
// Models with PaddlePaddle's answers, and folders of them, for the tests of the
// server.
#ifndef PD_TESTS_SERVE_SERVE_FIXTURE_H_
#define PD_TESTS_SERVE_SERVE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/npz.h"
#include "libcore/inference/shared_model.h"
#include "libcore/model/load_model.h"
#include "libcore/serve/runner.h"

namespace pd {
namespace serve {

inline std::string Deployed(const std::string& name) {
  return std::string(PD_TESTDATA) + "/deploy/" + name;
}

inline NamedArrays ArraysOf(const std::string& path) {
  auto arrays = ReadNpz(path);
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  return arrays.ok() ? *std::move(arrays) : NamedArrays();
}

inline std::shared_ptr<inference::SharedModel> ModelOf(
    const std::string& path) {
  auto loaded = LoadModel(path);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  auto shared = inference::SharedModel::Make(*std::move(loaded), {});
  EXPECT_TRUE(shared.ok()) << shared.status();
  return *std::move(shared);
}

/// Row i of an array, as a batch of one.
inline Array RowOf(const Array& array, int64_t i) {
  Shape shape = array.shape;
  shape[0] = 1;
  std::byte* bytes = nullptr;
  Array row = NewCopy(array.dtype, shape, &bytes);
  std::memcpy(bytes, array.bytes.get() + i * row.size_bytes(),
              row.size_bytes());
  return row;
}

/// Equal within a part in 10,000 of the largest.
inline void ExpectClose(const Array& got, const Array& want) {
  ASSERT_EQ(got.shape, want.shape);
  float largest = 0;
  for (int64_t i = 0; i < want.size(); ++i)
    largest = std::max(largest, std::fabs(want.data<float>()[i]));
  for (int64_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-4f * largest)
        << i;
}

/// A new empty folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pd_serve_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  /// Puts a deployed model into the folder NAME of this one.
  void AddModel(const std::string& model, const std::string& name) const {
    const std::string to = path_ + "/" + name;
    std::filesystem::create_directories(to);
    for (const char* ending : {".pdmodel", ".pdiparams"})
      std::filesystem::copy(Deployed(model + ending), to + "/model" + ending);
  }

 private:
  std::string path_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_TESTS_SERVE_SERVE_FIXTURE_H_
