// SPDX-License-Identifier: Apache-2.0
// All rows become bytes first; then threads share pairs of a panel of weights
// and a block of rows, panel by panel, so that a panel stays in the cache.
#include "libcore/kernels/int8/dynamic_product.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/parallel.h"
#include "libcore/ops/quantize/int8_dynamic.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kBehind = 64;  // a tile may read a whole vector
constexpr int32_t kHigh = 255;

template <typename Byte>
void QuantizeRow(const DynamicRow& row, const float* x, int64_t depth,
                 Byte* to) {
  if (!(row.scale > 0)) {
    std::fill(to, to + depth, static_cast<Byte>(row.zero));
    return;
  }
  const float zero = static_cast<float>(row.zero);
#pragma omp simd
  for (int64_t k = 0; k < depth; ++k) {
    float q = std::nearbyint(x[k] / row.scale) + zero;
    q = q > 0 ? q : 0;
    q = q < 255 ? q : 255;
    to[k] = static_cast<Byte>(static_cast<int32_t>(q));
  }
}

int64_t Padded(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

// The arguments of Run, and the parts of its scratch memory.
struct DynamicProduct::Call {
  const float* x;
  int64_t rows, blocks;
  float* out;
  DynamicRow* read;
  uint8_t* bytes;

  int64_t Begin(int64_t block) const { return rows * block / blocks; }
};

DynamicProduct::DynamicProduct(const Int8Weights& w)
    : tiles_(&BestTiles(w.channels)),
      kind_(KindOf(*tiles_, w, kHigh)),
      depth_(w.channels),
      columns_(w.outputs) {
  quads_ = (depth_ * (words() ? 2 : 1) + 3) / 4;
  quads_ = (quads_ + tiles_->step - 1) / tiles_->step * tiles_->step;
  panels_ = (columns_ + tiles_->columns - 1) / tiles_->columns;
  Pack(w);
}

void DynamicProduct::Pack(const Int8Weights& w) {
  const int64_t width = tiles_->columns;
  weights_ = ZeroedWeights(static_cast<size_t>(PanelBytes() * panels_));
  sums_.assign(static_cast<size_t>(panels_ * width), 0);
  scales_.assign(sums_.size(), 0.0f);
  for (int64_t o = 0; o < columns_; ++o) {
    int8_t* panel = weights_.get() + o / width * PanelBytes();
    const int64_t column = o % width;
    const auto at = static_cast<size_t>(o);
    scales_[at] = w.scales[at];
    for (int64_t k = 0; k < depth_; ++k) {
      const int8_t v = w.values[static_cast<size_t>(o * depth_ + k)];
      sums_[at] += v;
      if (words())
        reinterpret_cast<int16_t*>(
            panel)[(k / 2 * width + column) * 2 + k % 2] = v;
      else
        panel[(k / 4 * width + column) * 4 + k % 4] = v;
    }
  }
  if (kind_ == DotKind::kPairs)
    for (int64_t p = 0; p < panels_; ++p)
      GroupQuads(OfPanel(), kHigh, weights_.get() + p * PanelBytes(), &order_);
  ShareWeights(static_cast<size_t>(PanelBytes() * panels_), &weights_);
}

size_t DynamicProduct::ScratchBytes(int64_t rows) const {
  return static_cast<size_t>(
      Padded(rows * static_cast<int64_t>(sizeof(DynamicRow))) +
      rows * RowBytes() + kBehind);
}

void DynamicProduct::QuantizeRows(const Call& call) const {
  const int64_t grain = std::max<int64_t>(1, 4096 / depth_);
  ParallelFor(call.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = call.x + r * depth_;
      uint8_t* to = call.bytes + r * RowBytes();
      const DynamicRow row = DynamicRow::Of(x, depth_);
      call.read[r] = row;
      if (words())
        QuantizeRow(row, x, depth_, reinterpret_cast<uint16_t*>(to));
      else
        QuantizeRow(row, x, depth_, to);
      const int64_t used = depth_ * (words() ? 2 : 1);
      std::memset(to + used, 0, static_cast<size_t>(RowBytes() - used));
    }
  });
}

void DynamicProduct::Multiply(const Call& call, int64_t panel,
                              int64_t block) const {
  alignas(64) static constexpr int32_t kNone[kMaxColumns] = {};
  alignas(64) int32_t tile[kMaxRows * kMaxColumns];
  const uint8_t* rows[kMaxRows];
  const int64_t first = call.Begin(block), width = tiles_->columns;
  GemmChunk g;
  g.rows = rows;
  g.count = call.Begin(block + 1) - first;
  g.blocks = 1;
  g.quads = quads_;
  g.weights = weights_.get() + panel * PanelBytes();
  if (kind_ == DotKind::kPairs)
    g.order = order_.data() + panel * OfPanel().OrderSize();
  g.offsets = kNone;
  g.kind = kind_;
  g.out.columns = static_cast<int>(std::min(width, columns_ - panel * width));
  g.out.out = tile;
  g.out.out_stride = width;
  for (int64_t r = 0; r < g.count; ++r)
    rows[r] = call.bytes + (first + r) * RowBytes();
  tiles_->gemm(g);
  const int32_t* sums = sums_.data() + panel * width;
  const float* scales = scales_.data() + panel * width;
  for (int64_t r = 0; r < g.count; ++r) {
    const DynamicRow row = call.read[first + r];
    const int32_t* from = tile + r * width;
    float* to = call.out + (first + r) * columns_ + panel * width;
#pragma omp simd
    for (int c = 0; c < g.out.columns; ++c)
      to[c] = static_cast<float>(from[c] - row.zero * sums[c]) *
              (row.scale * scales[c]);
  }
}

void DynamicProduct::Run(const float* x, int64_t rows, float* out,
                         uint8_t* scratch) const {
  Call call;
  call.x = x;
  call.rows = rows;
  call.blocks = (rows + tiles_->max_rows - 1) / tiles_->max_rows;
  call.out = out;
  call.read = reinterpret_cast<DynamicRow*>(scratch);
  call.bytes =
      scratch + Padded(rows * static_cast<int64_t>(sizeof(DynamicRow)));
  QuantizeRows(call);
  // Less work than this is not worth a thread.
  const int64_t grain = std::max<int64_t>(
      1, (1 << 18) / (PanelBytes() * std::min<int64_t>(rows, kMaxRows)));
  ParallelFor(panels_ * call.blocks, grain, [&](int64_t begin, int64_t end) {
    if (tiles_->begin != nullptr) tiles_->begin();
    for (int64_t i = begin; i < end; ++i)
      Multiply(call, i / call.blocks, i % call.blocks);
    if (tiles_->end != nullptr) tiles_->end();
  });
}

}  // namespace int8
}  // namespace pd
