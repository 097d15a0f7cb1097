// SPDX-License-Identifier: Apache-2.0
// Kernels that move elements without looking at them: concat, expand, pad,
// slice, split, transpose. Most are a copy with other strides (loop.h).
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/axis_view.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/loop.h"

namespace pd_run {
namespace {

// Copies from input 0, `offset` elements behind its beginning, to output `out`.
void Copy(Call* call, const Loop<1>& loop, int64_t offset, size_t out) {
  WithBytes(SizeOf(call->In(0).dtype), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    CopyRows(loop, call->In(0).as<T>() + offset, call->Out(out).as<T>());
  });
}

bool PrepareTranspose(Call* call) {
  const Tensor& x = call->In(0);
  bool seen[kMaxRank] = {};
  Shape out;
  if (call->ints() != static_cast<size_t>(x.shape.rank))
    return call->Fail("%zu axes for an input of shape %s", call->ints(),
                      ToString(x.shape).c_str());
  for (size_t i = 0; i < call->ints(); ++i) {
    int axis = 0;
    if (!call->Axis(i, x.shape.rank, &axis)) return false;
    if (seen[axis]) return call->Fail("axis %d stands twice", axis);
    seen[axis] = true;
    out.Append(x.shape[axis]);
  }
  return call->Give(0, x.dtype, out);
}

bool RunTranspose(Call* call) {
  const Shape& x = call->In(0).shape;
  const auto strides = Strides(x);
  Loop<1> loop;
  for (size_t i = 0; i < call->ints(); ++i) {
    int axis = 0;
    if (!call->Axis(i, x.rank, &axis)) return false;
    loop.Add(x[axis], {strides[static_cast<size_t>(axis)]});
  }
  Copy(call, loop, 0, 0);
  return true;
}

struct Slice {
  Shape out;
  int64_t start[kMaxRank] = {}, step[kMaxRank] = {};
};

// Starts, ends and steps that inputs 1, 2 and 3 hold in place of the node's.
bool ReadGiven(Call* call, size_t input, size_t count,
               std::vector<int64_t>* values) {
  if (!call->Has(input)) return true;
  if (!call->KnownInts(input, values)) return false;
  if (values->size() == count) return true;
  return call->Fail("input %zu holds %zu numbers; expected %zu", input,
                    values->size(), count);
}

// One axis of `extent` elements. Starts and ends below 0 count from the end;
// where steps go down, an end of -1 is the place before the first element.
bool SliceAxis(Call* call, int64_t extent, int64_t start, int64_t end,
               int64_t step, int axis, Slice* slice) {
  constexpr int64_t kFar = int64_t{1} << 40;
  if (step == 0 || step < -kFar || step > kFar)
    return call->Fail("a step of %lld", static_cast<long long>(step));
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
  const auto place = [&](int64_t at) {
    at = std::clamp(at, -kFar, kFar);
    if (at < 0) at += extent;
    return std::clamp(at, low, std::max(low, high));
  };
  start = place(start);
  if (step > 0 || end != -1) end = std::max<int64_t>(place(end), 0);
  const int64_t span = step > 0 ? end - start : start - end;
  const int64_t size = step > 0 ? step : -step;
  slice->out[axis] = span <= 0 ? 0 : (span + size - 1) / size;
  slice->start[axis] = start;
  slice->step[axis] = step;
  return true;
}

bool ReadSlice(Call* call, Slice* slice) {
  const Shape& x = call->In(0).shape;
  slice->out = x;
  std::fill_n(slice->step, kMaxRank, 1);
  if (call->ints() % SliceInts::kEach != 0)
    return call->Fail("%zu numbers", call->ints());
  const size_t count = call->ints() / SliceInts::kEach;
  std::vector<int64_t> starts, ends, steps;
  if (!ReadGiven(call, 1, count, &starts) ||
      !ReadGiven(call, 2, count, &ends) || !ReadGiven(call, 3, count, &steps))
    return false;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * SliceInts::kEach;
    int axis = 0;
    if (!call->Axis(at + SliceInts::kAxis, x.rank, &axis)) return false;
    const auto number = [&](const std::vector<int64_t>& given, size_t own) {
      return given.empty() ? call->Int(at + own) : given[i];
    };
    if (!SliceAxis(call, x[axis], number(starts, SliceInts::kStart),
                   number(ends, SliceInts::kEnd),
                   number(steps, SliceInts::kStep), axis, slice))
      return false;
  }
  return true;
}

bool PrepareSlice(Call* call) {
  Slice slice;
  return ReadSlice(call, &slice) && call->Give(0, call->In(0).dtype, slice.out);
}

bool RunSlice(Call* call) {
  Slice slice;
  if (!ReadSlice(call, &slice)) return false;
  if (call->Out(0).size() == 0) return true;
  const auto strides = Strides(call->In(0).shape);
  Loop<1> loop;
  int64_t offset = 0;
  for (int i = 0; i < slice.out.rank; ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    offset += slice.start[i] * stride;
    loop.Add(slice.out[i], {slice.step[i] * stride});
  }
  Copy(call, loop, offset, 0);
  return true;
}

// The extent of each part.
bool ReadSections(Call* call, int* axis, std::vector<int64_t>* sections) {
  const Shape& x = call->In(0).shape;
  if (!call->Axis(SplitInts::kAxis, x.rank, axis)) return false;
  const int64_t extent = x[*axis];
  const size_t count = call->outputs();
  const size_t given = call->ints() - SplitInts::kSections;
  if (given == 0) {
    const auto parts = static_cast<int64_t>(count);
    if (extent % parts != 0)
      return call->Fail("%lld do not divide into %zu parts",
                        static_cast<long long>(extent), count);
    sections->assign(count, extent / parts);
    return true;
  }
  if (given != count)
    return call->Fail("%zu sections for %zu results", given, count);
  int64_t left = extent;
  size_t open = count;
  for (size_t i = 0; i < count; ++i) {
    const int64_t section = call->Int(SplitInts::kSections + i);
    sections->push_back(section);
    if (section == -1 && open == count)
      open = i;
    else if (section < 0 || section > left)
      return call->Fail("sections do not fit into shape %s",
                        ToString(x).c_str());
    else
      left -= section;
  }
  if (open < count)
    (*sections)[open] = left;
  else if (left != 0)
    return call->Fail("sections leave %lld of shape %s",
                      static_cast<long long>(left), ToString(x).c_str());
  return true;
}

bool PrepareSplit(Call* call) {
  int axis = 0;
  std::vector<int64_t> sections;
  if (!ReadSections(call, &axis, &sections)) return false;
  const bool remove = call->Int(SplitInts::kRemoveAxis) != 0;
  const Shape& x = call->In(0).shape;
  for (size_t i = 0; i < sections.size(); ++i) {
    Shape out;
    for (int d = 0; d < x.rank; ++d)
      if (d != axis)
        out.Append(x[d]);
      else if (!remove)
        out.Append(sections[i]);
    if (remove && sections[i] != 1)
      return call->Fail("a part of %lld cannot lose its axis",
                        static_cast<long long>(sections[i]));
    if (!call->Give(i, call->In(0).dtype, out)) return false;
  }
  return true;
}

bool RunSplit(Call* call) {
  int axis = 0;
  std::vector<int64_t> sections;
  if (!ReadSections(call, &axis, &sections)) return false;
  const AxisView view(call->In(0).shape, axis);
  int64_t first = 0;
  for (size_t i = 0; i < sections.size(); ++i) {
    Loop<1> loop;
    loop.Add(view.outer, {view.extent * view.inner});
    loop.Add(sections[i] * view.inner, {1});
    Copy(call, loop, first * view.inner, i);
    first += sections[i];
  }
  return true;
}

bool PrepareConcat(Call* call) {
  const Tensor& x = call->In(0);
  int axis = 0;
  if (!call->Axis(0, x.shape.rank, &axis)) return false;
  Shape out = x.shape;
  for (size_t i = 1; i < call->inputs(); ++i) {
    if (!call->Has(i)) return call->Fail("input %zu is missing", i);
    if (!call->Expect(i, x.dtype)) return false;
    Shape other = call->In(i).shape;
    const int64_t extent = axis < other.rank ? other[axis] : 0;
    if (other.rank == out.rank) other[axis] = out[axis];
    if (other != out)
      return call->Fail("shapes %s and %s do not fit", ToString(out).c_str(),
                        ToString(call->In(i).shape).c_str());
    int64_t bounded = 0;
    if (!Multiply({extent + out[axis]}, &bounded))
      return call->Fail("the result cannot be so large");
    out[axis] = bounded;
  }
  return call->Give(0, x.dtype, out);
}

bool RunConcat(Call* call) {
  int axis = 0;
  if (!call->Axis(0, call->In(0).shape.rank, &axis)) return false;
  const AxisView view(call->Out(0).shape, axis);
  const size_t bytes = SizeOf(call->Out(0).dtype);
  const size_t line = static_cast<size_t>(view.extent * view.inner) * bytes;
  char* to = call->Out(0).as<char>();
  for (size_t i = 0; i < call->inputs(); ++i) {
    const Tensor& x = call->In(i);
    const size_t part = static_cast<size_t>(x.shape[axis] * view.inner) * bytes;
    const char* from = x.as<char>();
    for (int64_t o = 0; part > 0 && o < view.outer; ++o)
      std::memcpy(to + static_cast<size_t>(o) * line,
                  from + static_cast<size_t>(o) * part, part);
    to += part;
  }
  return true;
}

// The extents asked for: the node's, or what input 1 holds.
bool ReadExtents(Call* call, std::vector<int64_t>* extents) {
  if (call->Has(1)) return call->KnownInts(1, extents);
  for (size_t i = ExpandInts::kDims; i < call->ints(); ++i)
    extents->push_back(call->Int(i));
  return true;
}

bool ReadExpand(Call* call, Shape* out) {
  const Shape& x = call->In(0).shape;
  const auto mode = static_cast<ExpandMode>(call->Int(ExpandInts::kMode));
  std::vector<int64_t> extents;
  if (mode == ExpandMode::kLike && call->Has(1)) {
    const Shape& like = call->In(1).shape;
    extents.assign(like.dims, like.dims + like.rank);
  } else if (!ReadExtents(call, &extents)) {
    return false;
  }
  const int rank = std::max(
      x.rank, static_cast<int>(std::min<size_t>(extents.size(), kMaxRank + 1)));
  if (rank > kMaxRank) return call->Fail("more than %d dimensions", kMaxRank);
  const int count = static_cast<int>(extents.size());
  for (int i = 0; i < rank; ++i) {
    const int in_x = i - (rank - x.rank), in_extents = i - (rank - count);
    const int64_t own = in_x < 0 ? 1 : x[in_x];
    const int64_t asked = in_extents < 0
                              ? (mode == ExpandMode::kTile ? 1 : -1)
                              : extents[static_cast<size_t>(in_extents)];
    if (mode == ExpandMode::kTile) {
      int64_t extent = 0;
      if (!Multiply({own, asked}, &extent))
        return call->Fail("%lld repetitions", static_cast<long long>(asked));
      out->Append(extent);
      continue;
    }
    if (asked != -1 && asked != own && own != 1)
      return call->Fail("an extent of %lld cannot become %lld",
                        static_cast<long long>(own),
                        static_cast<long long>(asked));
    out->Append(asked == -1 ? own : asked);
  }
  return true;
}

bool PrepareExpand(Call* call) {
  Shape out;
  return call->Within(ExpandInts::kMode, 0, kExpandModes - 1) &&
         ReadExpand(call, &out) && call->Give(0, call->In(0).dtype, out);
}

bool RunExpand(Call* call) {
  const Shape &x = call->In(0).shape, &out = call->Out(0).shape;
  if (call->Out(0).size() == 0) return true;
  const auto strides = Strides(x);
  Loop<1> loop;
  for (int i = 0; i < out.rank; ++i) {
    const int in_x = i - (out.rank - x.rank);
    const int64_t own = in_x < 0 ? 1 : x[in_x];
    loop.Add(out[i] / own, {0});
    loop.Add(own, {in_x < 0 ? 0 : strides[static_cast<size_t>(in_x)]});
  }
  Copy(call, loop, 0, 0);
  return true;
}

constexpr int64_t kMostPad = int64_t{1} << 32;

bool PreparePad(Call* call) {
  const Tensor& x = call->In(0);
  if (!call->Within(PadInts::kMode, 0, kPadModes - 1)) return false;
  const auto mode = static_cast<PadMode>(call->Int(PadInts::kMode));
  if (call->ints() != PadInts::kPads + 2 * static_cast<size_t>(x.shape.rank))
    return call->Fail("%zu numbers for an input of shape %s", call->ints(),
                      ToString(x.shape).c_str());
  if (x.dtype != DType::kFloat32 && mode == PadMode::kConstant)
    return call->Fail("it pads float32, not %s", Name(x.dtype));
  Shape out;
  for (int i = 0; i < x.shape.rank; ++i) {
    const size_t at = PadInts::kPads + 2 * static_cast<size_t>(i);
    // Reflections and repetitions reach once beyond the input.
    const int64_t extent = x.shape[i];
    const int64_t most = mode == PadMode::kReflect               ? extent - 1
                         : mode == PadMode::kCircular            ? extent
                         : mode == PadMode::kEdge && extent == 0 ? 0
                                                                 : kMostPad;
    if (!call->Within(at, 0, std::max<int64_t>(most, 0)) ||
        !call->Within(at + 1, 0, std::max<int64_t>(most, 0)))
      return false;
    out.Append(extent + call->Int(at) + call->Int(at + 1));
  }
  return call->Give(0, x.dtype, out);
}

// The input position at `i`, which may lie outside.
int64_t Reflected(PadMode mode, int64_t i, int64_t extent) {
  if (mode == PadMode::kReflect)
    return i < 0 ? -i : (i >= extent ? 2 * extent - 2 - i : i);
  if (mode == PadMode::kCircular)
    return i < 0 ? i + extent : (i >= extent ? i - extent : i);
  return std::clamp<int64_t>(i, 0, extent - 1);
}

// Writes the dimensions from `d` on.
template <typename T>
void PadFrom(const Call& call, int d, const T* from, T value, T* to) {
  const Shape &x = call.In(0).shape, &out = call.Out(0).shape;
  if (d == x.rank) {
    *to = *from;
    return;
  }
  const auto mode = static_cast<PadMode>(call.Int(PadInts::kMode));
  const int64_t in_size = Elements(x, d + 1, x.rank);
  const int64_t out_size = Elements(out, d + 1, x.rank);
  const int64_t before = call.Int(PadInts::kPads + 2 * static_cast<size_t>(d));
  for (int64_t i = 0; i < out[d]; ++i, to += out_size) {
    const int64_t at = i - before;
    const bool outside = at < 0 || at >= x[d];
    if (outside && mode == PadMode::kConstant)
      std::fill_n(to, out_size, value);
    else
      PadFrom(call, d + 1, from + Reflected(mode, at, x[d]) * in_size, value,
              to);
  }
}

bool RunPad(Call* call) {
  if (call->Out(0).size() == 0) return true;
  if (call->In(0).dtype == DType::kFloat32) {
    PadFrom(*call, 0, call->In(0).as<float>(), call->Float(0),
            call->Out(0).as<float>());
    return true;
  }
  WithBytes(SizeOf(call->In(0).dtype), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    PadFrom(*call, 0, call->In(0).as<T>(), T(0), call->Out(0).as<T>());
  });
  return true;
}

}  // namespace

const Kernel kConcat = {"concat", {1, Kernel::kMany}, {1, 1},   {1, 1},
                        {0, 0},   PrepareConcat,      RunConcat};

const Kernel kExpand = {
    "expand", {1, 2},
    {1, 1},   {ExpandInts::kDims, ExpandInts::kDims + kMaxRank},
    {0, 0},   PrepareExpand,
    RunExpand};

const Kernel kPad = {
    "pad",  {1, 1},     {1, 1}, {PadInts::kPads, PadInts::kPads + 2 * kMaxRank},
    {1, 1}, PreparePad, RunPad};

const Kernel kSlice = {
    "slice", {1, 4},       {1, 1},  {0, SliceInts::kEach* kMaxRank},
    {0, 0},  PrepareSlice, RunSlice};

const Kernel kSplit = {"split",
                       {1, 1},
                       {1, Kernel::kMany},
                       {SplitInts::kSections, Kernel::kMany},
                       {0, 0},
                       PrepareSplit,
                       RunSplit};

const Kernel kTranspose = {"transpose",   {1, 1}, {1, 1},
                           {0, kMaxRank}, {0, 0}, PrepareTranspose,
                           RunTranspose};

}  // namespace pd_run
