// SPDX-License-Identifier: Apache-2.0
// reshape: the same elements in another shape, without a copy. shape: the
// extents of a tensor as elements. fill: a tensor of one value. range: numbers
// from one to another.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/loop.h"

namespace pd_run {
namespace {

using Extents = std::vector<int64_t>;

bool ToShape(Call* call, const Extents& extents, Shape* shape) {
  if (extents.size() > kMaxRank)
    return call->Fail("%zu dimensions; at most %d", extents.size(), kMaxRank);
  *shape = Shape();
  for (const int64_t extent : extents) shape->Append(extent);
  return true;
}

// 0 is the input's extent, -1 what is left over.
bool Reshaped(Call* call, Extents asked, Extents* extents) {
  const Shape& x = call->In(0).shape;
  int64_t product = 1;
  size_t open = asked.size();
  for (size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] == -1 && open == asked.size()) {
      open = i;
      continue;
    }
    if (asked[i] == 0 && i < static_cast<size_t>(x.rank))
      asked[i] = x[static_cast<int>(i)];
    if (!Multiply({product, asked[i]}, &product))
      return call->Fail("a shape that cannot be");
  }
  const int64_t size = call->In(0).size();
  if (open < asked.size()) {
    if (product == 0 || size % product != 0)
      return call->Fail("shape %s does not divide by %lld", ToString(x).c_str(),
                        static_cast<long long>(product));
    asked[open] = size / product;
  } else if (product != size) {
    return call->Fail("shape %s has no %lld elements", ToString(x).c_str(),
                      static_cast<long long>(product));
  }
  *extents = std::move(asked);
  return true;
}

bool Flattened(Call* call, const Extents& given, Extents* extents) {
  const Shape& x = call->In(0).shape;
  if (given.size() != 2) return call->Fail("%zu numbers", given.size());
  if (x.rank == 0) {
    *extents = {1};
    return true;
  }
  int first = 0, last = 0;
  if (!call->Axis(ReshapeInts::kDims, x.rank, &first) ||
      !call->Axis(ReshapeInts::kDims + 1, x.rank, &last))
    return false;
  if (last < first) return call->Fail("axes %d to %d", first, last);
  extents->assign(x.dims, x.dims + first);
  extents->push_back(Elements(x, first, last + 1));
  extents->insert(extents->end(), x.dims + last + 1, x.dims + x.rank);
  return true;
}

// Axes that are not of extent 1 stay.
bool Squeezed(Call* call, const Extents& axes, Extents* extents) {
  const Shape& x = call->In(0).shape;
  bool removed[kMaxRank] = {};
  for (int i = 0; i < x.rank; ++i) removed[i] = axes.empty() && x[i] == 1;
  for (int64_t axis : axes) {
    if (axis < 0) axis += x.rank;
    if (axis < 0 || axis >= x.rank)
      return call->Fail("an axis of shape %s that is not there",
                        ToString(x).c_str());
    removed[axis] = x[static_cast<int>(axis)] == 1;
  }
  for (int i = 0; i < x.rank; ++i)
    if (!removed[i]) extents->push_back(x[i]);
  return true;
}

bool Unsqueezed(Call* call, const Extents& axes, Extents* extents) {
  const Shape& x = call->In(0).shape;
  extents->assign(x.dims, x.dims + x.rank);
  for (int64_t axis : axes) {
    const auto rank = static_cast<int64_t>(extents->size());
    if (axis < 0) axis += rank + 1;
    if (axis < 0 || axis > rank || rank >= kMaxRank)
      return call->Fail("shape %s gets no axis %lld", ToString(x).c_str(),
                        static_cast<long long>(axis));
    extents->insert(extents->begin() + axis, 1);
  }
  return true;
}

bool PrepareReshape(Call* call) {
  if (!call->Within(ReshapeInts::kMode, 0, kReshapeModes - 1)) return false;
  Extents given, extents;
  for (size_t i = ReshapeInts::kDims; i < call->ints(); ++i)
    given.push_back(call->Int(i));
  if (call->Has(1) && !call->KnownInts(1, &given)) return false;
  bool fits = false;
  switch (static_cast<ReshapeMode>(call->Int(ReshapeInts::kMode))) {
    case ReshapeMode::kReshape:
      fits = Reshaped(call, given, &extents);
      break;
    case ReshapeMode::kFlatten:
      if (call->Has(1)) return call->Fail("its axes stand in a tensor");
      fits = Flattened(call, given, &extents);
      break;
    case ReshapeMode::kSqueeze:
      fits = Squeezed(call, given, &extents);
      break;
    case ReshapeMode::kUnsqueeze:
      fits = Unsqueezed(call, given, &extents);
  }
  Shape out;
  call->Share();
  return fits && ToShape(call, extents, &out) &&
         call->Give(0, call->In(0).dtype, out);
}

bool RunReshape(Call*) { return true; }

bool PrepareShape(Call* call) {
  return call->Give(0, DType::kInt32, {1, {call->In(0).shape.rank}});
}

bool RunShape(Call* call) {
  const Shape& x = call->In(0).shape;
  for (int i = 0; i < x.rank; ++i)
    call->Out(0).as<int32_t>()[i] = static_cast<int32_t>(x[i]);
  return true;
}

bool PrepareFill(Call* call) {
  if (!call->Within(FillInts::kType, 0, kDTypes - 1) ||
      !call->Within(FillInts::kMode, 0, kFillModes - 1))
    return false;
  const auto dtype = static_cast<DType>(call->Int(FillInts::kType));
  const auto mode = static_cast<FillMode>(call->Int(FillInts::kMode));
  if (mode != FillMode::kShape && !call->Has(0))
    return call->Fail("its input is missing");
  if (mode == FillMode::kLike) return call->Give(0, dtype, call->In(0).shape);
  Extents extents;
  for (size_t i = FillInts::kDims; i < call->ints(); ++i)
    extents.push_back(call->Int(i));
  if (mode == FillMode::kShape && call->Has(1) && !call->KnownInts(1, &extents))
    return false;
  Shape out;
  if (!ToShape(call, extents, &out)) return false;
  if (mode == FillMode::kBatch) {
    int from = 0, to = 0;
    const Shape& x = call->In(0).shape;
    if (!call->Axis(FillInts::kFromAxis, x.rank, &from) ||
        !call->Axis(FillInts::kToAxis, out.rank, &to))
      return false;
    out[to] = x[from];
  }
  return call->Give(0, dtype, out);
}

bool RunFill(Call* call) {
  const Tensor& out = call->Out(0);
  const int64_t value = call->Int(FillInts::kValue);
  switch (out.dtype) {
    case DType::kFloat32:
      std::fill_n(out.as<float>(), out.size(), call->Float(0));
      break;
    case DType::kInt64:
      std::fill_n(out.as<int64_t>(), out.size(), value);
      break;
    case DType::kInt32:
      std::fill_n(out.as<int32_t>(), out.size(), static_cast<int32_t>(value));
      break;
    case DType::kUint8:
    case DType::kBool:
      std::fill_n(out.as<uint8_t>(), out.size(), static_cast<uint8_t>(value));
  }
  return true;
}

// Start, end and step, one number each.
template <typename T>
bool ReadRange(Call* call, T* start, T* step, int64_t* count) {
  const T from = *call->In(0).as<T>(), to = *call->In(1).as<T>(),
          by = *call->In(2).as<T>();
  const double steps =
      std::ceil((static_cast<double>(to) - static_cast<double>(from)) /
                static_cast<double>(by));
  constexpr double kMost = 1e12;
  if (by == T(0) || !(steps < kMost))
    return call->Fail("steps that do not end");
  *start = from;
  *step = by;
  *count = static_cast<int64_t>(std::max(steps, 0.0));
  return true;
}

template <typename T>
bool RangeOf(Call* call, bool prepare) {
  T start = 0, step = 0;
  int64_t count = 0;
  if (!ReadRange(call, &start, &step, &count)) return false;
  if (prepare) return call->Give(0, call->In(0).dtype, {1, {count}});
  for (int64_t i = 0; i < count; ++i)
    call->Out(0).as<T>()[i] = static_cast<T>(start + static_cast<T>(i) * step);
  return true;
}

bool Range(Call* call, bool prepare) {
  const DType dtype = call->In(0).dtype;
  for (size_t i = 0; i < 3; ++i) {
    if (!call->Expect(i, dtype)) return false;
    if (!call->In(i).known || call->In(i).size() != 1)
      return call->Fail(
          "a shape depends on data that is not known before it "
          "runs");
  }
  if (dtype == DType::kFloat32) return RangeOf<float>(call, prepare);
  if (dtype == DType::kInt64) return RangeOf<int64_t>(call, prepare);
  if (dtype == DType::kInt32) return RangeOf<int32_t>(call, prepare);
  return call->Fail("it is computed for numbers, not for %s", Name(dtype));
}

bool PrepareRange(Call* call) { return Range(call, true); }

bool RunRange(Call* call) { return Range(call, false); }

}  // namespace

const Kernel kRange = {"range", {3, 3},       {1, 1},  {0, 0},
                       {0, 0},  PrepareRange, RunRange};

const Kernel kFill = {
    "fill", {0, 2},      {1, 1},  {FillInts::kDims, FillInts::kDims + kMaxRank},
    {1, 1}, PrepareFill, RunFill, true};

const Kernel kReshape = {
    "reshape", {1, 2},
    {1, 1},    {ReshapeInts::kDims, ReshapeInts::kDims + kMaxRank},
    {0, 0},    PrepareReshape,
    RunReshape};

const Kernel kShape = {"shape", {1, 1},       {1, 1},   {0, 0},
                       {0, 0},  PrepareShape, RunShape, true};

}  // namespace pd_run
