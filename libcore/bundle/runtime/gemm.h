// SPDX-License-Identifier: Apache-2.0
// Products of matrices, C = A B, which convolutions are, too. The operands lie
// in panels (panels.h).
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_GEMM_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_GEMM_H_

#include <cstdint>
#include <limits>

#include "libcore/bundle/runtime/functions.h"
#include "libcore/bundle/runtime/panels.h"

namespace pd_run {

/// Depth at a time: a panel of B of so many rows fits into the first cache, and
/// one of A beside it.
inline constexpr int64_t kDepthAtOnce = 192;
/// Floats of memory that a panel of B is made in.
inline constexpr int64_t kPanelFloats = kDepthAtOnce * kPanelColumns;

/// Rows of a panel of B: where the first lies, and the floats from one to the
/// next. All have kPanelColumns.
struct PanelRows {
  const float* first;
  int64_t stride;
};

/// The right operand.
class Columns {
 public:
  virtual ~Columns() = default;
  /// Rows [begin, end) of panel `panel`, made in `memory` where they do not lie
  /// there already.
  virtual PanelRows Panel(int64_t panel, int64_t begin, int64_t end,
                          float* memory) const = 0;
};

/// B in panels, as the weights of a bundle.
class PackedColumns : public Columns {
 public:
  PackedColumns(const float* panels, int64_t depth)
      : panels_(panels), depth_(depth) {}
  PanelRows Panel(int64_t panel, int64_t begin, int64_t end,
                  float* memory) const override;

 private:
  const float* panels_;
  int64_t depth_;
};

/// B with any strides.
class StridedColumns : public Columns {
 public:
  StridedColumns(const float* b, int64_t columns, int64_t row_stride,
                 int64_t column_stride)
      : b_(b),
        columns_(columns),
        row_stride_(row_stride),
        column_stride_(column_stride) {}
  PanelRows Panel(int64_t panel, int64_t begin, int64_t end,
                  float* memory) const override;

 private:
  const float* b_;
  int64_t columns_, row_stride_, column_stride_;
};

/// Bounds of results. A NaN stays one.
struct Clamp {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool any() const {
    return low > -std::numeric_limits<float>::infinity() ||
           high < std::numeric_limits<float>::infinity();
  }
};

/// The function as bounds, where it does nothing else; false for others.
bool IsClamp(const Activation& activation, Clamp* clamp);

/// A block of C: += or = over `depth`.
struct Tile {
  int64_t depth;
  const float* a;  ///< [depth][6]
  const float* b;  ///< a row every b_stride floats, of 32 that can be read
  int64_t b_stride;
  float* c;
  int64_t c_stride;
  int64_t rows, columns;  ///< at most 6 and 32
  bool add;
  const float* row_bias;  ///< of the first rows, where C is set; may be null
  Clamp clamp;            ///< of the results
};

/// A product, then biases (either may be null), then a function.
struct Gemm {
  const float* a = nullptr;  ///< in panels
  const Columns* b = nullptr;
  float* c = nullptr;
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t c_stride = 0;  ///< from one row of C to the next
  const float* row_bias = nullptr;
  const float* column_bias = nullptr;
  Activation activation;

  /// Computes panels [begin, end) of C's columns in panels [row_begin, row_end)
  /// of its rows; `memory` holds kPanelFloats.
  void Run(int64_t begin, int64_t end, int64_t row_begin, int64_t row_end,
           float* memory) const;

 private:
  void Multiply(int64_t row, int64_t column, bool finish, float* beside,
                Tile* tile) const;
  void Finish(int64_t column, int64_t width, float* line) const;
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_GEMM_H_
