// SPDX-License-Identifier: Apache-2.0
// Multi-head attention, for the layers that are made of it. Internal to
// libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_ATTENTION_H_
#define PD_LIBCORE_NN_LAYERS_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

struct AttentionSpec {
  int64_t embed_dim = 0, num_heads = 0, kdim = 0, vdim = 0;
  double dropout = 0;
  const job::ParamAttr* weight = nullptr;
  const job::ParamAttr* bias = nullptr;  ///< null: without
};

/// The keys and values of heads, [N, num_heads, keys, embed_dim / num_heads];
/// empty names where there are none.
struct KeysValues {
  LayerInput k, v;
  bool given() const { return !k.variable.empty(); }
};

struct AttentionReads {
  std::string query, key, value;
  std::string mask;  ///< of AdditiveMask; "" for none
  KeysValues cache, static_cache;
};

struct AttentionResult {
  std::string out, weights, k, v;
};

/// paddle.nn.MultiHeadAttention with the parameters 'q_proj.weight' and so on.
absl::StatusOr<AttentionResult> Attend(const AttentionSpec& spec,
                                       const AttentionReads& reads,
                                       LayerContext* c);

/// A mask as it is added to the products; "" for null.
absl::StatusOr<std::string> AdditiveMask(const LayerInput* mask,
                                         LayerContext* c);

/// The pairs that the list `field` names, one for each of `layers` layers, or
/// as many that are not given. InvalidArgument when there are others.
absl::StatusOr<std::vector<KeysValues>> ReadCaches(const char* field,
                                                   int layers,
                                                   const LayerContext& c);

/// Checks that x is float32 [N, length, width] and gives the width, which must
/// be `given` unless that is null.
absl::StatusOr<int64_t> SequenceWidth(const LayerInput& x, const int64_t* given,
                                      const char* field, const LayerContext& c);

/// OK when the heads divide the features.
absl::Status CheckHeads(int64_t features, const char* features_field,
                        int64_t heads, const char* heads_field);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_ATTENTION_H_
