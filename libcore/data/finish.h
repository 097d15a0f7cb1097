// SPDX-License-Identifier: Apache-2.0
// The end of a pipeline: ToTensor, Normalize and Transpose folded into one
// table of 256 floats per channel and one order of the axes, so each byte is
// looked up once and written where it belongs in the batch.
#ifndef PD_LIBCORE_DATA_FINISH_H_
#define PD_LIBCORE_DATA_FINISH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/dtype.h"
#include "libcore/data/picture.h"
#include "libcore/data/transforms.h"

namespace pd {

class Finish {
 public:
  /// For pictures of 1 or 3 channels.
  explicit Finish(int64_t channels);

  /// Puts a transform behind the ones so far. InvalidArgument when it does not
  /// fit what they have made of the picture.
  absl::Status Add(const transforms::ToTensor& t);
  absl::Status Add(const transforms::Normalize& t);
  absl::Status Add(const transforms::Transpose& t);
  /// True once a transform has been added: pictures are arrays from then on.
  bool started() const { return started_; }

  DType dtype() const { return is_float_ ? DType::kFloat32 : DType::kUInt8; }
  /// The order of axes applied to [height, width, channels].
  std::array<int64_t, 3> OutputShape(int64_t height, int64_t width) const;

  /// Writes the picture's elements to `out`.
  void Run(const Picture& picture, std::byte* out) const;

 private:
  template <typename T, typename Look>
  void Write(const Picture& picture, const Look& look, T* out) const;
  void StartFloat();

  bool RunGrey(const Picture& picture, float* out) const;

  int64_t channels_;
  bool started_ = false, is_float_ = false, is_tensor_ = false;
  // The tables as a formula, for vectors: (x [* 1/255] - mean_) / std_.
  bool scaled_ = false;
  int normalized_ = 0;  ///< how often
  float mean_ = 0.0f, std_ = 1.0f;
  std::array<int, 3> axes_ = {0, 1, 2};  ///< of [height, width, channels]
  std::vector<int> source_;  ///< input channel of each output channel
  std::vector<std::array<float, 256>> tables_;  ///< of each output channel
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_FINISH_H_
