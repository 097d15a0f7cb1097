// SPDX-License-Identifier: Apache-2.0
// The arguments of scaled_dot_product_attention and its gradient op. Shared by
// their implementations.
#ifndef PD_LIBCORE_OPS_FUSED_ATTENTION_H_
#define PD_LIBCORE_OPS_FUSED_ATTENTION_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/norm/dropout.h"

namespace pd {

struct Attention {
  int64_t batch = 0, heads = 0;
  int64_t queries = 0, keys = 0;  ///< lengths
  int64_t width = 0;              ///< of a query and a key
  int64_t values = 0;             ///< of a value
  double scale = 1;
  /// Steps of the bias from batch to batch, head to head, query to query, key
  /// to key; 0 where it has extent 1.
  std::array<int64_t, 4> bias = {0, 0, 0, 0};
  Dropout dropout;
  DropoutSource source;

  int64_t Heads() const { return batch * heads; }
  /// Whether elements are dropped: there is a mask.
  bool Drops() const { return !dropout.is_test && dropout.probability > 0; }
  /// Where the bias of a head of [0, Heads()) begins.
  int64_t BiasOf(int64_t head) const {
    return head / heads * bias[0] + head % heads * bias[1];
  }
};

/// InvalidArgument unless the inputs of the op, or of its gradient op, are of
/// one type and fit.
absl::StatusOr<Attention> ReadAttention(const BindContext& context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_FUSED_ATTENTION_H_
