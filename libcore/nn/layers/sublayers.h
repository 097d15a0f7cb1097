// SPDX-License-Identifier: Apache-2.0
// Parts of layers that hold other layers: a matrix, a convolution, a
// normalisation, a dropout. Their parameters are called in the scope in force
// (Sublayer). Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_SUBLAYERS_H_
#define PD_LIBCORE_NN_LAYERS_SUBLAYERS_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

namespace job {
class LayerNorm;  // libcore/nn/job_norm.pb.h
}

/// How a matrix [in, out] and its bias are made; `bias` null: without.
struct MatrixSpec {
  int64_t in = 0, out = 0;
  const job::ParamAttr* weight = nullptr;
  const job::ParamAttr* bias = nullptr;
};

/// x W + b over the last axis of x: paddle.nn.Linear.
absl::StatusOr<std::string> Affine(const MatrixSpec& spec, const std::string& x,
                                   LayerContext* c);

/// A square window over pictures [N, C, H, W], with zeros around them.
struct ConvolutionSpec {
  int64_t out = 0;  ///< channels
  int32_t kernel = 1, stride = 1, pad = 0;
  job::Initializer weight;
};

/// The convolution and its bias: paddle.nn.Conv2D.
absl::StatusOr<std::string> Convolve(const ConvolutionSpec& spec,
                                     const std::string& x, LayerContext* c);

/// Normalises the last axis, or those that `p` names: paddle.nn.LayerNorm.
absl::StatusOr<std::string> NormalizeLayer(const job::LayerNorm& p,
                                           const LayerInput& x,
                                           LayerContext* c);

/// Dropout that keeps the mean in training; x itself when p is 0.
absl::StatusOr<std::string> DropOut(double p, const std::string& x,
                                    LayerContext* c);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_SUBLAYERS_H_
