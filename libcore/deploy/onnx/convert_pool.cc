// SPDX-License-Identifier: Apache-2.0
// Pooling. An adaptive pool whose windows differ in size becomes slices and
// reductions, one dimension after the other: windows are rectangles, so the
// mean (or maximum) over one is that over its rows of those over its columns.
#include <algorithm>
#include <string>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"
#include "libcore/deploy/onnx/window.h"

namespace pd {
namespace {

struct Pool {
  OnnxWindow window;
  bool max = false;
  bool exclusive = true;
  bool ceil_mode = false;
  std::vector<int64_t> kernel;
  Shape extents;  // of the spatial dimensions of the input
};

Shape SpatialExtents(OnnxOp* op, const Pool& pool) {
  const Shape& x = op->ShapeOf("X");
  const size_t first = pool.window.channels_last ? 1 : 2;
  Shape extents;
  for (size_t i = 0; i < pool.kernel.size(); ++i)
    extents.push_back(first + i < x.size() ? x[first + i] : -1);
  return extents;
}

// Pads the end of each dimension so far that the last window, which ceil_mode
// lets stick out, fits. False when ONNX would not take such padding.
bool PadForCeilMode(Pool* pool) {
  const size_t n = pool->kernel.size();
  for (size_t i = 0; i < n; ++i) {
    int64_t& end = pool->window.pads[n + i];
    const int64_t padded = pool->extents[i] + pool->window.pads[i] + end;
    const int64_t left = (padded - pool->kernel[i]) % pool->window.strides[i];
    if (left != 0) end += pool->window.strides[i] - left;
    if (end >= pool->kernel[i]) return false;
  }
  return true;
}

// The count of an average includes the padding, but not what ceil_mode adds
// beyond it: so pads become part of the data.
std::string PadData(OnnxOp* op, Pool* pool, const std::string& x) {
  const size_t n = pool->kernel.size();
  std::vector<int64_t> pads = {0, 0};
  pads.insert(pads.end(), pool->window.pads.begin(),
              pool->window.pads.begin() + static_cast<ptrdiff_t>(n));
  pads.insert(pads.end(), {0, 0});
  pads.insert(pads.end(), pool->window.pads.begin() + static_cast<ptrdiff_t>(n),
              pool->window.pads.end());
  for (size_t i = 0; i < n; ++i)
    if (pool->extents[i] >= 0)
      pool->extents[i] += pool->window.pads[i] + pool->window.pads[n + i];
  pool->window.pads.assign(2 * n, 0);
  pool->exclusive = true;
  return op->Pad(x, pads, "constant", 0, op->TypeOf("X"));
}

void GivePool(OnnxOp* op, Pool pool, std::string x) {
  OnnxAttrs attrs = {{"kernel_shape", pool.kernel},
                     {"strides", pool.window.strides}};
  if (pool.ceil_mode && !pool.window.same) {
    if (!pool.max && !pool.exclusive) x = PadData(op, &pool, x);
    Pool padded = pool;
    if (!IsDynamic(pool.extents) && PadForCeilMode(&padded)) {
      pool = padded;
    } else if (op->opset() >= 10) {
      attrs.emplace_back("ceil_mode", int64_t{1});
    } else {
      op->Fail(
          Unimplemented("attr 'ceil_mode' on an input of shape %s, whose "
                        "extents are not known",
                        ToString(op->ShapeOf("X"))));
      return;
    }
  }
  if (pool.window.same)
    attrs.emplace_back("auto_pad", std::string("SAME_UPPER"));
  else
    attrs.emplace_back("pads", pool.window.pads);
  if (!pool.max)
    attrs.emplace_back("count_include_pad", int64_t{!pool.exclusive});
  GiveChannelsFirst(op, pool.window, "Out",
                    pool.max ? "MaxPool" : "AveragePool", {x}, attrs);
}

// One spatial dimension of an adaptive pool: window o of n spans
// [o * extent / n, ceil((o + 1) * extent / n)).
std::string AdaptiveAxis(OnnxOp* op, const Pool& pool, size_t i,
                         const std::string& x) {
  const int64_t extent = pool.extents[i], n = pool.kernel[i];
  const auto axis = static_cast<int64_t>(i) + 2;
  const char* reduce = pool.max ? "ReduceMax" : "ReduceMean";
  if (n == extent) return x;
  if (n == 1) return op->Reduce(reduce, x, {axis}, true);
  OnnxValues windows;
  for (int64_t o = 0; o < n; ++o) {
    const std::string part = op->Slice(x, {axis}, {o * extent / n},
                                       {((o + 1) * extent + n - 1) / n});
    windows.push_back(op->Reduce(reduce, part, {axis}, true));
  }
  return op->Emit("Concat", windows, {{"axis", axis}});
}

void GiveAdaptivePool(OnnxOp* op, Pool pool, const std::string& x) {
  // kernel is the shape of the output here.
  if (IsDynamic(pool.extents)) {
    op->Fail(Unimplemented(
        "an adaptive pool to %s of an input of shape %s; the extents must be "
        "known",
        ToString(pool.kernel), ToString(op->ShapeOf("X"))));
    return;
  }
  bool even = true;
  for (size_t i = 0; i < pool.kernel.size(); ++i)
    even = even && pool.extents[i] % pool.kernel[i] == 0;
  if (even) {
    for (size_t i = 0; i < pool.kernel.size(); ++i)
      pool.kernel[i] = pool.extents[i] / pool.kernel[i];
    pool.window.strides = pool.kernel;
    pool.window.pads.assign(2 * pool.kernel.size(), 0);
    pool.window.same = pool.ceil_mode = false;
    GivePool(op, pool, x);
    return;
  }
  std::string y = x;
  for (size_t i = 0; i < pool.kernel.size(); ++i)
    y = AdaptiveAxis(op, pool, i, y);
  GiveChannelsFirst(op, pool.window, "Out", "Identity", {y}, {});
}

void ConvertPool(OnnxOp* op) {
  Pool pool;
  pool.window = ReadWindow(op, "X");
  const bool with_index = op->type() == "max_pool2d_with_index";
  pool.max = with_index || op->Str("pooling_type") == "max";
  pool.exclusive = !with_index && op->Bool("exclusive");
  pool.ceil_mode = !with_index && op->Bool("ceil_mode");
  pool.kernel = op->Ints("ksize");
  pool.extents = SpatialExtents(op, pool);
  if (pool.kernel.size() != pool.window.strides.size() ||
      *std::min_element(pool.kernel.begin(), pool.kernel.end()) < 1) {
    op->Fail(InvalidArgument("attr 'ksize' is %s; expected %d positive extents",
                             ToString(pool.kernel),
                             pool.window.strides.size()));
    return;
  }
  const std::string x = ToChannelsFirst(op, pool.window, op->In("X"));
  const bool adaptive = op->Bool("adaptive");
  const bool to_one = std::all_of(pool.kernel.begin(), pool.kernel.end(),
                                  [](int64_t k) { return k == 1; });
  if (adaptive && pool.max && !with_index)
    // It has the extents of an adaptive pool with plain windows.
    op->Fail(
        Unimplemented("attr 'adaptive' with a maximum; PaddlePaddle's "
                      "adaptive maximum is max_pool2d_with_index"));
  else if (op->Bool("global_pooling") || (adaptive && to_one))
    GiveChannelsFirst(op, pool.window, "Out",
                      pool.max ? "GlobalMaxPool" : "GlobalAveragePool", {x},
                      {});
  else if (adaptive)
    GiveAdaptivePool(op, pool, x);
  else
    GivePool(op, pool, x);
}

}  // namespace

OnnxConverters PoolConverters() {
  return {
      {"max_pool2d_with_index", ConvertPool},
      {"pool2d", ConvertPool},
      {"pool3d", ConvertPool},
  };
}

}  // namespace pd
