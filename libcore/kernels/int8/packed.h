// SPDX-License-Identifier: Apache-2.0
// Weights as the tiles read them, prepared once when a plan is made.
#ifndef PD_LIBCORE_KERNELS_INT8_PACKED_H_
#define PD_LIBCORE_KERNELS_INT8_PACKED_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/kernels/int8/tiles.h"
#include "libcore/ops/bind_context.h"

namespace pd {
namespace int8 {

/// Zeroed bytes on a cache line's border.
std::shared_ptr<int8_t[]> ZeroedWeights(size_t bytes);

/// Members that every product has.
struct Packed {
  const Tiles* tiles = nullptr;
  std::shared_ptr<int8_t[]> weights;
  size_t weight_bytes = 0;
  std::vector<int32_t> order;  ///< of each panel, GroupQuads
  /// Of each output channel, in the order of the weights, with whole vectors.
  std::vector<int32_t> offsets;
  std::vector<float> scales, bias;
  DotKind kind = DotKind::kQuads;
  Finish finish;
  int32_t zero = 0;                               ///< of the input
  Tensor *residual = nullptr, *floats = nullptr;  ///< null: none
};

/// The order of output channels: at place i channel order[i], -1 for none.
/// Reads the epilogue, and fills offsets, scales and bias.
absl::Status FillChannels(BindContext* context, const Int8Weights& w,
                          const std::vector<int64_t>& order, Packed* packed);

/// Takes the equal weights that another step holds, where there are any, so
/// that clones of a predictor and further shapes of its inputs need no more.
/// Weights are not written afterwards.
void ShareWeights(size_t bytes, std::shared_ptr<int8_t[]>* weights);

/// Sees whether the finish only clamps; all else of `packed` is set.
void PrepareFinish(const Int8Weights& w, Packed* packed);

/// Whether no sum of the products of two neighbouring weights leaves 16 bits,
/// for inputs of at most `high`: for each of `count` pairs of bytes.
bool NoPairSaturates(const int8_t* weights, size_t count, int32_t high);

/// How these tiles multiply rows of such weights.
DotKind KindOf(const Tiles& tiles, const Int8Weights& w, int32_t high);

/// For kPairs: brings the quads of each tap of a panel, [taps][quads][columns]
/// [4], into an order in which the sums of up to kMaxGroup neighbours stay
/// within 16 bits for inputs of at most `high`, the longest groups first.
/// Appends to `order` for each tap how many groups have 1, 2, ... kMaxGroup
/// quads, then where each quad's input stands in a row.
struct PanelShape {
  int64_t taps = 1, quads = 0, columns = 0;

  /// The number of elements appended for a panel.
  int64_t OrderSize() const { return taps * (kMaxGroup + quads); }
};
void GroupQuads(const PanelShape& shape, int32_t high, int8_t* panel,
                std::vector<int32_t>* order);

/// The residual, if there is one, lying as `out`; MayShare where it may.
absl::StatusOr<Tensor*> BindResidual(BindContext* context, const Tensor* src,
                                     Tensor* out);

/// OutputFloat, if it is wanted, lying as `out`.
absl::StatusOr<Tensor*> BindFloats(BindContext* context, const Tensor& out);

}  // namespace int8
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_INT8_PACKED_H_
