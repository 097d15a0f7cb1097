// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/selected_rows.h"

#include <cstring>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

int64_t RowWidth(const Tensor& tensor) {
  int64_t width = 1;
  for (size_t i = 1; i < tensor.rank(); ++i) width *= tensor.dim(i);
  return width;
}

absl::Status CheckRows(absl::string_view name, const Tensor& selected,
                       int64_t height) {
  const int64_t n = selected.rank() == 0 ? 0 : selected.dim(0);
  if (static_cast<int64_t>(selected.rows().size()) != n)
    return InvalidArgument("'%s' has %d row numbers for %d rows", name,
                           selected.rows().size(), n);
  for (const int64_t row : selected.rows())
    if (row < 0 || row >= height)
      return InvalidArgument("'%s' has row %d; expected one in [0, %d)", name,
                             row, height);
  return absl::OkStatus();
}

void RowOrder::Sort(const std::vector<int64_t>& rows) {
  places_.resize(rows.size());
  std::iota(places_.begin(), places_.end(), int64_t{0});
  // By one byte after the other, from the lowest: several times as fast as by
  // comparisons for the few hundred rows of a batch.
  constexpr int kBits = 8;
  uint64_t bits = 0;  // those that some row has
  for (const int64_t row : rows) bits |= static_cast<uint64_t>(row);
  moved_.resize(rows.size());
  for (int shift = 0; shift < 64 && bits >> shift != 0; shift += kBits) {
    const auto digit = [&](int64_t place) {
      const auto row = static_cast<uint64_t>(rows[static_cast<size_t>(place)]);
      return static_cast<size_t>(row >> shift & ((1u << kBits) - 1));
    };
    size_t ends[(1 << kBits) + 1] = {0};
    for (const int64_t place : places_) ++ends[digit(place) + 1];
    std::partial_sum(std::begin(ends), std::end(ends), std::begin(ends));
    for (const int64_t place : places_) moved_[ends[digit(place)]++] = place;
    places_.swap(moved_);
  }
  rows_.clear();
  starts_.clear();
  for (size_t i = 0; i < places_.size(); ++i) {
    const int64_t row = rows[static_cast<size_t>(places_[i])];
    if (!rows_.empty() && rows_.back() == row) continue;
    rows_.push_back(row);
    starts_.push_back(i);
  }
  starts_.push_back(places_.size());
}

Step KeepingRows(const Tensor* x, Tensor* out, Step step) {
  if (!IsSelectedRows(x) || !IsSelectedRows(out)) return step;
  return [x, out, step = std::move(step)](const RunContext& run) {
    if (x != out) {
      out->rows() = x->rows();
      out->set_height(x->height());
    }
    return step != nullptr ? step(run) : absl::OkStatus();
  };
}

absl::StatusOr<Step> MergeDuplicates(BindContext* context, Tensor* x,
                                     Tensor* out) {
  if (!IsSelectedRows(x)) return Step();
  const int64_t width = RowWidth(*x);
  Tensor* sums = context->Scratch(x->bytes() + 1);
  auto order = std::make_shared<RowOrder>();
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return KeepingRows(
        x, out, Step([=](const RunContext&) {
          order->Sort(x->rows());
          SumRows<T>(*x, *order, sums->data<T>());
          T* to = out->data<T>();
          for (size_t k = 0; k < order->size(); ++k) {
            const T* sum = sums->data<T>() + static_cast<int64_t>(k) * width;
            for (const int64_t* p = order->begin(k); p != order->end(k); ++p)
              for (int64_t j = 0; j < width; ++j)
                to[*p * width + j] = p == order->begin(k) ? sum[j] : T(0);
          }
          return absl::OkStatus();
        }));
  });
}

Step AliasOrCopy(BindContext* context, Tensor* x, Tensor* out) {
  if (!IsSelectedRows(x)) {
    context->Alias(x, out);
    return Step();
  }
  return KeepingRows(x, out, [x, out](const RunContext&) {
    if (x->bytes() > 0 && x->raw() != out->raw())
      std::memcpy(out->raw(), x->raw(), x->bytes());
    return absl::OkStatus();
  });
}

}  // namespace pd
