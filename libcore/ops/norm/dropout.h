// SPDX-License-Identifier: Apache-2.0
// The attributes of dropout. Shared by its implementations.
#ifndef PD_LIBCORE_OPS_NORM_DROPOUT_H_
#define PD_LIBCORE_OPS_NORM_DROPOUT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

struct Dropout {
  double probability = 0.5;
  bool is_test = false, upscale = false;

  /// The factor of a kept element.
  double KeptFactor() const {
    if (is_test) return upscale ? 1.0 : 1.0 - probability;
    if (!upscale) return 1.0;
    return probability < 1 ? 1.0 / (1.0 - probability) : 0.0;
  }
};

/// InvalidArgument on a probability outside [0, 1] and on other names of
/// implementations than PaddlePaddle's two.
absl::StatusOr<Dropout> ReadDropout(const BindContext& context);

/// Where the random numbers of a run come from.
struct DropoutSource {
  uint64_t name = 0;
  bool fixed = false;
  int32_t seed = 0;
  Tensor* seed_tensor = nullptr;

  /// The seed and the stream of Philox. Element i of the mask is 1 where
  /// uniform number i is not below the probability.
  struct Numbers {
    uint64_t seed, stream;
  };
  Numbers At(const RunContext& run) const;
};

/// The first `draws` elements of the mask.
void DrawMask(DropoutSource::Numbers numbers, const Dropout& dropout,
              int64_t draws, uint8_t* mask);

/// InvalidArgument when the input Seed is not one integer.
absl::StatusOr<DropoutSource> ReadDropoutSource(const BindContext& context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_NORM_DROPOUT_H_
