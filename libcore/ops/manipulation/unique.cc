// SPDX-License-Identifier: Apache-2.0
// Equal elements of X (or equal slices along the only axis in `axis`) once:
//   unique: in ascending order; Indices are their first places, Index the rank
//     of every element's value, Counts how often each was there. With
//     is_sorted = false in order of appearance, with Index always
//   unique_with_counts: in order of appearance, with Index and Count
//   unique_consecutive: runs of equal neighbours, with Index and Counts
// `dtype` is that of places, ranks and counts. A NaN equals nothing and comes
// last. How many there are is known only when the op runs. No gradient.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

DType IndexType(const OpDesc& op) {
  return op.Attr<int32_t>("dtype") == static_cast<int32_t>(DType::kInt32)
             ? DType::kInt32
             : DType::kInt64;
}

// The axis whose slices are compared; -1: elements of the flattened X.
absl::StatusOr<int> SliceAxis(const OpDesc& op, size_t rank) {
  const std::vector<int64_t> axes = IntsAttr(op, "axis");
  if (axes.empty()) return -1;
  if (axes.size() > 1)
    return InvalidArgument("attr 'axis' is %s; expected one axis at most",
                           ToString(axes));
  return NormalizeAxis(axes[0], rank);
}

absl::Status InferUnique(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const int axis, SliceAxis(context->op(), x.shape.size()));
  Shape shape = {-1};
  int64_t count = axis < 0 ? (IsDynamic(x.shape) ? -1 : NumElements(x.shape))
                           : x.shape[static_cast<size_t>(axis)];
  if (axis >= 0) {
    shape = x.shape;
    shape[static_cast<size_t>(axis)] = -1;
  }
  const DType index = IndexType(context->op());
  context->SetOutput("Out", std::move(shape), x.dtype);
  context->SetOutput("Index", {count}, index);
  for (const char* slot : {"Indices", "Counts", "Count"})
    context->SetOutput(slot, {-1}, index);
  return absl::OkStatus();
}

// X as items: [outer, count, inner], item i is x[:, i, :].
struct Items {
  int64_t outer = 1, count = 1, inner = 1;
};

// Which items are the same.
struct Groups {
  std::vector<int64_t> first;  // an item of each group
  std::vector<int64_t> of;     // the group of each item
  std::vector<int64_t> sizes;
};

// The places of n integers in ascending order, of equal ones in theirs: sorted
// by one byte after the other from the lowest on, but for bytes that are the
// same everywhere.
template <typename T>
std::vector<int64_t> StableOrder(const T* x, int64_t n) {
  using Key = std::make_unsigned_t<T>;
  struct Keyed {
    Key key;
    int64_t at;
  };
  constexpr Key kSign = std::is_signed_v<T> ? Key(1) << (8 * sizeof(T) - 1) : 0;
  std::vector<Keyed> items(static_cast<size_t>(n)), next(items.size());
  for (int64_t i = 0; i < n; ++i)
    items[static_cast<size_t>(i)] = {static_cast<Key>(Key(x[i]) ^ kSign), i};
  for (size_t shift = 0; shift < 8 * sizeof(T); shift += 8) {
    size_t begins[257] = {};
    for (const Keyed& item : items) ++begins[(item.key >> shift & 255) + 1];
    if (*std::max_element(begins, begins + 257) == items.size()) continue;
    std::partial_sum(begins, begins + 257, begins);
    for (const Keyed& item : items)
      next[begins[item.key >> shift & 255]++] = item;
    items.swap(next);
  }
  std::vector<int64_t> order;
  order.reserve(items.size());
  for (const Keyed& item : items) order.push_back(item.at);
  return order;
}

template <typename T>
class Grouping {
 public:
  Grouping(const T* x, const Items& items) : x_(x), items_(items) {}

  bool Equal(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < items_.outer; ++o)
      for (int64_t i = 0; i < items_.inner; ++i)
        if (!(At(o, a, i) == At(o, b, i))) return false;
    return true;
  }

  // -1: a is before b, 1: after, 0: neither; a NaN is after every number.
  int Compare(int64_t a, int64_t b) const {
    for (int64_t o = 0; o < items_.outer; ++o) {
      for (int64_t i = 0; i < items_.inner; ++i) {
        const T p = At(o, a, i), q = At(o, b, i);
        if (p < q || (p == p && q != q)) return -1;
        if (q < p || (q == q && p != p)) return 1;
      }
    }
    return 0;
  }

  // Neighbours in `order` that are equal make up a group.
  Groups Runs(const std::vector<int64_t>& order) const {
    Groups g;
    g.of.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || !Equal(order[i - 1], order[i])) {
        g.first.push_back(order[i]);
        g.sizes.push_back(0);
      }
      g.of[static_cast<size_t>(order[i])] =
          static_cast<int64_t>(g.first.size()) - 1;
      ++g.sizes.back();
    }
    return g;
  }

  Groups Sorted() const {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (items_.outer == 1 && items_.inner == 1)
        return Runs(StableOrder(x_, items_.count));
    }
    std::vector<int64_t> order = InOrder();
    std::stable_sort(order.begin(), order.end(), [this](int64_t a, int64_t b) {
      return Compare(a, b) < 0;
    });
    return Runs(order);
  }

  Groups Consecutive() const { return Runs(InOrder()); }

  Groups ByAppearance() const {
    Groups sorted = Sorted();
    std::vector<int64_t> by_first(sorted.first.size());
    std::iota(by_first.begin(), by_first.end(), 0);
    std::sort(by_first.begin(), by_first.end(), [&](int64_t a, int64_t b) {
      return sorted.first[static_cast<size_t>(a)] <
             sorted.first[static_cast<size_t>(b)];
    });
    Groups g;
    std::vector<int64_t> renamed(by_first.size());
    for (size_t i = 0; i < by_first.size(); ++i) {
      const size_t from = static_cast<size_t>(by_first[i]);
      renamed[from] = static_cast<int64_t>(i);
      g.first.push_back(sorted.first[from]);
      g.sizes.push_back(sorted.sizes[from]);
    }
    for (int64_t group : sorted.of)
      g.of.push_back(renamed[static_cast<size_t>(group)]);
    return g;
  }

 private:
  const T& At(int64_t o, int64_t item, int64_t i) const {
    return x_[(o * items_.count + item) * items_.inner + i];
  }
  std::vector<int64_t> InOrder() const {
    std::vector<int64_t> order(static_cast<size_t>(items_.count));
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  const T* x_;
  Items items_;
};

// Writes numbers, or nothing when nobody asked for them.
absl::Status WriteInts(const std::vector<int64_t>& values, bool wanted,
                       DType dtype, Tensor* to) {
  if (to == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(
      to->Resize(dtype, {wanted ? static_cast<int64_t>(values.size()) : 0}));
  if (!wanted) return absl::OkStatus();
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kInt32)
      to->data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    else
      to->data<int64_t>()[i] = values[i];
  }
  return absl::OkStatus();
}

// The outputs and which of them are asked for.
struct Outputs {
  Tensor *out, *indices, *index, *counts;
  bool want_indices, want_index, want_counts;
  DType dtype;
  int axis;
};

template <typename T>
absl::Status Write(const Tensor& x, const Items& items, const Groups& groups,
                   const Outputs& to) {
  const int64_t n = static_cast<int64_t>(groups.first.size());
  Shape shape = {n};
  if (to.axis >= 0) {
    shape = x.shape();
    shape[static_cast<size_t>(to.axis)] = n;
  }
  PD_RETURN_IF_ERROR(to.out->Resize(x.dtype(), std::move(shape)));
  T* result = to.out->data<T>();
  for (int64_t o = 0; o < items.outer; ++o)
    for (int64_t item : groups.first)
      result = std::copy_n(x.data<T>() + (o * items.count + item) * items.inner,
                           items.inner, result);
  PD_RETURN_IF_ERROR(
      WriteInts(groups.first, to.want_indices, to.dtype, to.indices));
  PD_RETURN_IF_ERROR(WriteInts(groups.of, to.want_index, to.dtype, to.index));
  PD_RETURN_IF_ERROR(
      WriteInts(groups.sizes, to.want_counts, to.dtype, to.counts));
  return absl::OkStatus();
}

enum class Order { kSorted, kAppearance, kConsecutive };

absl::StatusOr<Step> BindUnique(BindContext* context) {
  Tensor* x = context->Input("X");
  const OpDesc& op = context->op();
  Outputs to;
  to.out = context->Output("Out");
  to.indices = context->Output("Indices");
  to.index = context->Output("Index");
  to.counts = context->Output("Counts");
  to.dtype = IndexType(op);
  PD_ASSIGN_OR_RETURN(to.axis, SliceAxis(op, x->rank()));
  to.want_indices = op.AttrOr("return_index", false);
  to.want_index = op.AttrOr("return_inverse", false);
  to.want_counts = op.AttrOr("return_counts", false);
  Order order = Order::kSorted;
  if (op.type == "unique_consecutive") {
    order = Order::kConsecutive;
  } else if (op.type == "unique_with_counts" || !op.Attr<bool>("is_sorted")) {
    order = Order::kAppearance;
    to.axis = -1;
    to.want_index = true;
  }
  if (op.type == "unique_with_counts") {
    to.counts = context->Output("Count");
    to.want_counts = true;
  }
  return DispatchNumeric(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Items items;
      items.count = x->size();
      if (to.axis >= 0) {
        const size_t axis = static_cast<size_t>(to.axis);
        items.outer = NumElements(x->shape(), 0, axis);
        items.count = x->dim(axis);
        items.inner = NumElements(x->shape(), axis + 1, x->rank());
      }
      const Grouping<T> grouping(x->data<T>(), items);
      return Write<T>(*x, items,
                      order == Order::kSorted       ? grouping.Sorted()
                      : order == Order::kAppearance ? grouping.ByAppearance()
                                                    : grouping.Consecutive(),
                      to);
    });
  });
}

}  // namespace

absl::Status RegisterUnique(OpRegistry* registry) {
  OpDef unique("unique");
  unique.Input("X").Output("Out").OptionalOutput("Indices");
  unique.OptionalOutput("Index").OptionalOutput("Counts");
  unique.Attr("return_index", false).Attr("return_inverse", false);
  unique.Attr("return_counts", false).Attr("axis", std::vector<int32_t>());
  unique.Attr("dtype", int32_t{3}).Attr("is_sorted", false);
  unique.Infer(InferUnique).ShapeFromData().NoGrad().Reference(BindUnique);
  PD_RETURN_IF_ERROR(registry->Add(std::move(unique)));

  OpDef counted("unique_with_counts");
  counted.Input("X").Output("Out").Output("Index").Output("Count");
  counted.RequiredAttr("dtype", AttrType::kInt);
  counted.Infer(InferUnique).ShapeFromData().NoGrad().Reference(BindUnique);
  PD_RETURN_IF_ERROR(registry->Add(std::move(counted)));

  OpDef runs("unique_consecutive");
  runs.Input("X").Output("Out").OptionalOutput("Index");
  runs.OptionalOutput("Counts").Attr("return_inverse", false);
  runs.Attr("return_counts", false).Attr("axis", std::vector<int32_t>());
  runs.Attr("dtype", int32_t{5});
  runs.Infer(InferUnique).ShapeFromData().NoGrad().Reference(BindUnique);
  return registry->Add(std::move(runs));
}

}  // namespace pd
