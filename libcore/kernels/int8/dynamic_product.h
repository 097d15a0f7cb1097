// SPDX-License-Identifier: Apache-2.0
// Float32 rows times 8-bit weights, as ops/int8_dynamic.h says it: the product
// of int8_dynamic_matmul and int8_dynamic_rnn.
#ifndef PD_LIBCORE_KERNELS_INT8_DYNAMIC_PRODUCT_H_
#define PD_LIBCORE_KERNELS_INT8_DYNAMIC_PRODUCT_H_

#include <memory>
#include <vector>

#include "libcore/kernels/int8/packed.h"

namespace pd {
namespace int8 {

class DynamicProduct {
 public:
  /// Packs the weights for this CPU's tiles.
  explicit DynamicProduct(const Int8Weights& weights);

  int64_t depth() const { return depth_; }
  int64_t columns() const { return columns_; }
  /// Bytes of scratch memory for so many rows.
  size_t ScratchBytes(int64_t rows) const;
  /// out[rows, columns] = x[rows, depth] * weights.
  void Run(const float* x, int64_t rows, float* out, uint8_t* scratch) const;

 private:
  struct Call;
  bool words() const { return kind_ == DotKind::kWords; }
  int64_t RowBytes() const { return 4 * quads_; }
  PanelShape OfPanel() const { return {1, quads_, tiles_->columns}; }
  int64_t PanelBytes() const { return RowBytes() * tiles_->columns; }
  void Pack(const Int8Weights& weights);
  void QuantizeRows(const Call& call) const;
  void Multiply(const Call& call, int64_t panel, int64_t block) const;

  const Tiles* tiles_;
  DotKind kind_;
  int64_t depth_, columns_, quads_, panels_;
  std::shared_ptr<int8_t[]> weights_;
  std::vector<int32_t> order_;  // of each panel
  // Of each column, in the order of the weights, with whole panels.
  std::vector<int32_t> sums_;
  std::vector<float> scales_;
};

}  // namespace int8
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_INT8_DYNAMIC_PRODUCT_H_
