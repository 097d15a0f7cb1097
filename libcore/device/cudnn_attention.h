// SPDX-License-Identifier: Apache-2.0
// Attention by one of cuDNN's graphs: products, softmax and what is between
// them in one piece of work, for which the library has an engine or not.
#ifndef PD_LIBCORE_DEVICE_CUDNN_ATTENTION_H_
#define PD_LIBCORE_DEVICE_CUDNN_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/device/cuda_device.h"

namespace pd {

/// output = softmax(scale * query key^T + bias) value, of float16 or bfloat16,
/// row-major: query [batch, heads, queries, width], key [batch, heads, keys,
/// width], value [batch, heads, keys, values]. Scores are float32,
/// probabilities are rounded as the values are.
struct AttentionGraph {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, width = 0, values = 0;
  float scale = 1;
  /// Four, each 1 or that of the scores; none: there is no bias.
  std::vector<int64_t> bias;
  DType dtype = DType::kFloat16;
  bool deterministic = false;  ///< the same bits in every run
  size_t most_workspace = 0;   ///< bytes
};

/// Where the tensors lie; `bias` is not read where there is none.
struct AttentionData {
  const void *query, *key, *value, *bias;
  void* output;
};

/// The graph with the engine that was chosen for it.
class BoundAttention {
 public:
  virtual ~BoundAttention() = default;
  /// Bytes of device memory that Run wants, 256-byte aligned.
  virtual size_t workspace() const = 0;
  virtual absl::Status Run(const AttentionData& data,
                           void* workspace) const = 0;
};

/// Unavailable when the library is missing; Unimplemented when it has no engine
/// for this attention on this device.
absl::StatusOr<std::shared_ptr<const BoundAttention>> BindAttentionGraph(
    CudaDevice* device, const AttentionGraph& attention);

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDNN_ATTENTION_H_
