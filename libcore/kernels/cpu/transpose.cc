// SPDX-License-Identifier: Apache-2.0
// Changes between layouts without blocks that are a transpose of matrices of
// 4-byte elements: NCHW <-> CHWN, NCHW <-> NHWC, row- <-> column-major; and the
// ops transpose and transpose2 where they are one.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/targets.h"
#include "libcore/kernels/reorder.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/transpose.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// to[c, r] = from[r, c] for 4 rows and 4 columns.
void Transpose4x4(const float* from, int64_t from_stride, float* to,
                  int64_t to_stride) {
  const hn::FixedTag<float, 4> tag;
  const hn::RepartitionToWide<decltype(tag)> wide;
  const auto a = hn::LoadU(tag, from);
  const auto b = hn::LoadU(tag, from + from_stride);
  const auto c = hn::LoadU(tag, from + 2 * from_stride);
  const auto d = hn::LoadU(tag, from + 3 * from_stride);
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(tag, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(tag, a, b));
  const auto cd_low = hn::BitCast(wide, hn::InterleaveLower(tag, c, d));
  const auto cd_high = hn::BitCast(wide, hn::InterleaveUpper(tag, c, d));
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, ab_low, cd_low)), tag,
             to);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, ab_low, cd_low)), tag,
             to + to_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, ab_high, cd_high)), tag,
             to + 2 * to_stride);
  hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, ab_high, cd_high)), tag,
             to + 3 * to_stride);
}

// to[c, r] = from[r, c] for the columns [begin, end) of a matrix.
void TransposeColumns(const float* from, int64_t rows, int64_t columns,
                      int64_t begin, int64_t end, float* to) {
  constexpr int64_t kTile = 64;  // rows whose lines stay in the cache
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    const int64_t r1 = std::min(rows, r0 + kTile);
    int64_t c = begin;
    for (; c + 4 <= end; c += 4) {
      int64_t r = r0;
      for (; r + 4 <= r1; r += 4)
        Transpose4x4(from + r * columns + c, columns, to + c * rows + r, rows);
      for (; r < r1; ++r)
        for (int64_t i = c; i < c + 4; ++i)
          to[i * rows + r] = from[r * columns + i];
    }
    for (; c < end; ++c)
      for (int64_t r = r0; r < r1; ++r)
        to[c * rows + r] = from[r * columns + c];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(TransposeColumns);

namespace {

// `batch` matrices [rows, columns] one after the other.
struct Matrices {
  int64_t batch = 1, rows = 1, columns = 1;
};

std::vector<int64_t> StridesOf(const Tensor& tensor) {
  return tensor.layout() != nullptr ? tensor.layout()->strides
                                    : RowMajorStrides(tensor.shape());
}

bool IsPermuted(const Tensor& tensor) {
  const LayoutPtr& layout = tensor.layout();
  return layout == nullptr ||
         (layout->blocks.empty() && layout->padded == layout->shape &&
          layout->Elements() == tensor.size());
}

// The dimensions, outermost in `from` first, where those that stay neighbours
// in `to` are one: each is {extent, stride in to}.
struct Axis {
  int64_t extent, from, to;
};
std::vector<Axis> MergedAxes(std::vector<Axis> axes) {
  axes.erase(std::remove_if(axes.begin(), axes.end(),
                            [](const Axis& a) { return a.extent == 1; }),
             axes.end());
  std::sort(axes.begin(), axes.end(),
            [](const Axis& a, const Axis& b) { return a.from > b.from; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().from == axis.from * axis.extent &&
        merged.back().to == axis.to * axis.extent) {
      merged.back() = {merged.back().extent * axis.extent, axis.from, axis.to};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

absl::StatusOr<Matrices> ReadMatrices(std::vector<Axis> all) {
  const std::vector<Axis> axes = MergedAxes(std::move(all));
  if (axes.size() == 2 && axes[0].to == 1)
    return Matrices{1, axes[0].extent, axes[1].extent};
  if (axes.size() == 3 && axes[1].to == 1 && axes[0].to == axes[0].from)
    return Matrices{axes[0].extent, axes[1].extent, axes[2].extent};
  return Unimplemented("it is not a transpose of matrices");
}

// The loop for this CPU.
auto ColumnsLoop() { return HWY_DYNAMIC_DISPATCH(TransposeColumns); }

Step TransposeStep(const Matrices& m, Tensor* from, Tensor* to) {
  return [=](const RunContext&) {
    const auto run = ColumnsLoop();
    constexpr int64_t kGrain = 16384;  // elements per thread at least
    const float* source = from->data<float>();
    float* destination = to->data<float>();
    const int64_t size = m.rows * m.columns;
    if (m.batch == 1) {
      // Parts are whole groups of 4 columns, so no store is split.
      ParallelFor((m.columns + 3) / 4, 1 + kGrain / (4 * m.rows),
                  [&](int64_t begin, int64_t end) {
                    run(source, m.rows, m.columns, 4 * begin,
                        std::min(m.columns, 4 * end), destination);
                  });
    } else {
      ParallelFor(m.batch, 1 + kGrain / size, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          run(source + b * size, m.rows, m.columns, 0, m.columns,
              destination + b * size);
      });
    }
    return absl::OkStatus();
  };
}

// Axis i of `to` is axis axes[i] of `from`, or, `back`, the other way round.
absl::StatusOr<Step> BindPermuted(const BindContext& context, Tensor* from,
                                  Tensor* to, bool back) {
  const auto& axes = context.Attr<std::vector<int32_t>>("axis");
  if (SizeOf(from->dtype()) != 4 || from->size() == 0 ||
      from->dtype() != to->dtype() || from->size() != to->size() ||
      axes.size() != from->rank() || axes.size() != to->rank())
    return Unimplemented("it is for elements of 4 bytes");
  const auto f = RowMajorStrides(from->shape());
  const auto t = RowMajorStrides(to->shape());
  std::vector<Axis> moved;
  for (size_t i = 0; i < axes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axes[i], axes.size()));
    const auto k = static_cast<size_t>(axis);
    moved.push_back(back ? Axis{from->dim(i), f[i], t[k]}
                         : Axis{to->dim(i), f[k], t[i]});
  }
  PD_ASSIGN_OR_RETURN(const Matrices m, ReadMatrices(std::move(moved)));
  return TransposeStep(m, from, to);
}

}  // namespace

absl::StatusOr<Step> BindTransposeOp(BindContext* context) {
  return BindPermuted(*context, context->Input("X"), context->Output("Out"),
                      false);
}

absl::StatusOr<Step> BindTransposeOpGrad(BindContext* context) {
  for (const char* slot : {"XShape", "X"})
    if (Tensor* t = context->Input(slot)) context->NoBuffer(t);
  return BindPermuted(*context, context->Input("Out@GRAD"),
                      context->Output("X@GRAD"), true);
}

}  // namespace cpu

absl::StatusOr<Step> BindTranspose(Tensor* from, Tensor* to) {
  if (SizeOf(from->dtype()) != 4 || from->size() == 0)
    return Unimplemented("it is for elements of 4 bytes");
  if (!cpu::IsPermuted(*from) || !cpu::IsPermuted(*to))
    return Unimplemented("a layout has blocks or gaps");
  const std::vector<int64_t> f = cpu::StridesOf(*from), t = cpu::StridesOf(*to);
  std::vector<cpu::Axis> axes;
  for (size_t i = 0; i < f.size(); ++i)
    axes.push_back({from->dim(i), f[i], t[i]});
  PD_ASSIGN_OR_RETURN(const cpu::Matrices m,
                      cpu::ReadMatrices(std::move(axes)));
  return cpu::TransposeStep(m, from, to);
}

}  // namespace pd
#endif  // HWY_ONCE
