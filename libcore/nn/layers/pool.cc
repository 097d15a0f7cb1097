// SPDX-License-Identifier: Apache-2.0
// Pools over one to three axes: windows of a given size, windows for a given
// size of the result (adaptive), and the largest values put back (unpool).
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

struct Pool {
  Space space;
  Windows windows;
  bool max = false, mask = false, ceil = false, exclusive = true;
  double divisor = 0;  // 0: the window's size
};

template <typename P>
Pool ReadPool(const P& p, int axes, bool channels_last) {
  Pool pool;
  pool.space = {axes, channels_last};
  pool.windows.kernel = Spread(p.kernel_size(), axes, 1);
  pool.windows.stride =
      p.stride().empty() ? pool.windows.kernel : Spread(p.stride(), axes, 1);
  pool.windows.padding = Spread(p.padding(), axes, 0);
  pool.windows.algorithm = job::Padding::Algorithm_Name(p.padding_algorithm());
  pool.ceil = p.ceil_mode();
  return pool;
}

template <typename P>
Pool ReadMax(const P& p, int axes, bool channels_last) {
  Pool pool = ReadPool(p, axes, channels_last);
  pool.max = true;
  pool.mask = p.return_mask();
  return pool;
}

template <typename P>
Pool ReadAvg(const P& p, int axes, bool channels_last) {
  Pool pool = ReadPool(p, axes, channels_last);
  pool.exclusive = p.exclusive();
  return pool;
}

absl::StatusOr<Pool> ReadPool(const job::Layer& l) {
  Pool pool;
  switch (l.kind_case()) {
    case job::Layer::kMaxPool1D:
      return ReadMax(l.max_pool1d(), 1, false);
    case job::Layer::kMaxPool2D:
      return ReadMax(l.max_pool2d(), 2, l.max_pool2d().data_format() != 0);
    case job::Layer::kMaxPool3D:
      return ReadMax(l.max_pool3d(), 3, l.max_pool3d().data_format() != 0);
    case job::Layer::kAvgPool1D:
      return ReadAvg(l.avg_pool1d(), 1, false);
    case job::Layer::kAvgPool2D:
      pool = ReadAvg(l.avg_pool2d(), 2, l.avg_pool2d().data_format() != 0);
      pool.divisor = l.avg_pool2d().divisor_override();
      return pool;
    case job::Layer::kAvgPool3D:
      pool = ReadAvg(l.avg_pool3d(), 3, l.avg_pool3d().data_format() != 0);
      pool.divisor = l.avg_pool3d().divisor_override();
      return pool;
    default:
      return Internal("not a pool");
  }
}

OpDesc PoolOp(const Pool& pool, const Ints& ksize, const std::string& x) {
  OpDesc op;
  op.type = pool.space.axes == 3 ? "pool3d" : "pool2d";
  op.SetInput("X", {x});
  op.attrs = {{"pooling_type", std::string(pool.max ? "max" : "avg")},
              {"ksize", ksize},
              {"strides", Ints(ksize.size(), 1)},
              {"paddings", Ints(ksize.size(), 0)},
              {"padding_algorithm", std::string("EXPLICIT")},
              {"ceil_mode", pool.ceil},
              {"exclusive", pool.exclusive},
              {"adaptive", false},
              {"global_pooling", false},
              {"data_format", pool.space.format()}};
  return op;
}

// Appends max_pool?d_with_index; its Mask becomes the layer's result "mask".
absl::StatusOr<std::string> WithIndex(LayerContext* c, const Pool& pool,
                                      OpDesc op, bool mask) {
  op.type =
      pool.space.axes == 3 ? "max_pool3d_with_index" : "max_pool2d_with_index";
  for (const char* name : {"pooling_type", "padding_algorithm", "ceil_mode",
                           "exclusive", "data_format"})
    op.attrs.erase(name);
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> made,
                      c->AppendAll(std::move(op), {"Out", "Mask"}));
  if (mask) {
    PD_ASSIGN_OR_RETURN(std::string index, Lower(c, pool.space, made[1]));
    c->AddOutput("mask", std::move(index));
  }
  return Lower(c, pool.space, made[0]);
}

// PaddlePaddle's op with the mask knows neither of these.
absl::Status CheckMask(const Pool& pool) {
  const bool uneven = pool.windows.padding.size() > pool.windows.kernel.size();
  const char* other = pool.ceil ? "ceil_mode"
                      : pool.windows.algorithm == "SAME"
                          ? "padding_algorithm SAME"
                      : uneven                   ? "padding of single sides"
                      : pool.space.channels_last ? "channels last"
                                                 : nullptr;
  if (!pool.mask || other == nullptr) return absl::OkStatus();
  return InvalidArgument("'return_mask' does not go with %s", other);
}

// Windows that would hold nothing but padding.
absl::Status CheckPadding(const Pool& pool) {
  if (pool.windows.algorithm != "EXPLICIT") return absl::OkStatus();
  for (int i = 0; i < pool.space.axes; ++i) {
    const int32_t kernel = pool.windows.kernel[static_cast<size_t>(i)];
    const int32_t most =
        std::max(pool.windows.before(i), pool.windows.behind(i));
    if (most >= kernel)
      return InvalidArgument(
          "'padding' is %d along the %s; it must be below the kernel %d", most,
          pool.space.axis_name(i), kernel);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> BuildPool(LayerContext* c) {
  PD_ASSIGN_OR_RETURN(const Pool pool, ReadPool(c->layer()));
  const Space& space = pool.space;
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  PD_RETURN_IF_ERROR(CheckMask(pool));
  PD_RETURN_IF_ERROR(CheckPadding(pool));
  PD_RETURN_IF_ERROR(CheckFits(c, space, pool.windows, c->input()));
  PD_ASSIGN_OR_RETURN(const std::string x, Lift(c, space, c->input()));
  OpDesc op = PoolOp(pool, Lift(space, pool.windows.kernel, 1), x);
  op.attrs["strides"] = Lift(space, pool.windows.stride, 1);
  op.attrs["paddings"] = LiftedPadding(space, pool.windows);
  op.attrs["padding_algorithm"] = pool.windows.algorithm;
  if (pool.mask) return WithIndex(c, pool, std::move(op), true);
  PD_ASSIGN_OR_RETURN(std::string out, c->Append(std::move(op), {"Out"}));
  if (pool.divisor > 0) {
    double size = 1;
    for (const int32_t extent : pool.windows.kernel) size *= extent;
    PD_ASSIGN_OR_RETURN(out, Scale(c, out, size / pool.divisor));
  }
  return Lower(c, space, out);
}

// The adaptive pool of `p`; a size of 0 is the input's.
template <typename P>
absl::StatusOr<std::string> BuildAdaptive(LayerContext* c, const P& p,
                                          Pool pool) {
  const Space& space = pool.space;
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  Ints size = Spread(p.output_size(), space.axes, 1);
  for (int i = 0; i < space.axes; ++i) {
    int32_t& extent = size[static_cast<size_t>(i)];
    if (extent > 0) continue;
    PD_ASSIGN_OR_RETURN(const int64_t own,
                        c->Extent(space.first_axis() + i, nullptr,
                                  space.axis_name(i), "output_size"));
    extent = static_cast<int32_t>(own);
  }
  PD_ASSIGN_OR_RETURN(const std::string x, Lift(c, space, c->input()));
  OpDesc op = PoolOp(pool, Lift(space, std::move(size), 1), x);
  op.attrs["adaptive"] = true;
  if (pool.max) return WithIndex(c, pool, std::move(op), pool.mask);
  PD_ASSIGN_OR_RETURN(const std::string out, c->Append(std::move(op), {"Out"}));
  return Lower(c, space, out);
}

template <typename P>
absl::StatusOr<std::string> AdaptiveMax(LayerContext* c, const P& p, int axes) {
  Pool pool;
  pool.space = {axes, false};
  pool.max = true;
  pool.mask = p.return_mask();
  return BuildAdaptive(c, p, pool);
}

template <typename P>
absl::StatusOr<std::string> AdaptiveAvg(LayerContext* c, const P& p, int axes,
                                        bool channels_last) {
  Pool pool;
  pool.space = {axes, channels_last};
  return BuildAdaptive(c, p, pool);
}

absl::StatusOr<std::string> BuildAnyAdaptive(LayerContext* c) {
  const job::Layer& l = c->layer();
  switch (l.kind_case()) {
    case job::Layer::kAdaptiveAvgPool1D:
      return AdaptiveAvg(c, l.adaptive_avg_pool1d(), 1, false);
    case job::Layer::kAdaptiveAvgPool2D:
      return AdaptiveAvg(c, l.adaptive_avg_pool2d(), 2,
                         l.adaptive_avg_pool2d().data_format() != 0);
    case job::Layer::kAdaptiveAvgPool3D:
      return AdaptiveAvg(c, l.adaptive_avg_pool3d(), 3,
                         l.adaptive_avg_pool3d().data_format() != 0);
    case job::Layer::kAdaptiveMaxPool1D:
      return AdaptiveMax(c, l.adaptive_max_pool1d(), 1);
    case job::Layer::kAdaptiveMaxPool2D:
      return AdaptiveMax(c, l.adaptive_max_pool2d(), 2);
    default:
      return AdaptiveMax(c, l.adaptive_max_pool3d(), 3);
  }
}

// The result's size: (in - 1) * stride - 2 * padding + kernel, or what is
// given, which may be up to a stride away.
template <typename P>
absl::StatusOr<Ints> UnpooledSize(LayerContext* c, const P& p,
                                  const Space& space, const Windows& w) {
  Ints size = Spread(p.output_size(), space.axes, 0);
  for (int i = 0; i < space.axes; ++i) {
    const size_t k = static_cast<size_t>(i);
    PD_ASSIGN_OR_RETURN(const int64_t in,
                        c->Extent(space.first_axis() + i, nullptr,
                                  space.axis_name(i), "output_size"));
    const int64_t usual =
        (in - 1) * w.stride[k] - 2 * int64_t{w.padding[k]} + w.kernel[k];
    if (size[k] == 0 && usual > 0) size[k] = static_cast<int32_t>(usual);
    if (size[k] <= usual - w.stride[k] || size[k] >= usual + w.stride[k] ||
        usual <= 0)
      return InvalidArgument(
          "'output_size' is %d for the %s; a pool with these windows gives %d "
          "from %d to %d",
          size[k], space.axis_name(i), in, usual - w.stride[k] + 1,
          usual + w.stride[k] - 1);
  }
  return size;
}

template <typename P>
absl::StatusOr<std::string> Unpool(LayerContext* c, const P& p, int axes) {
  const Space space = {axes, false};
  Windows w;
  w.kernel = Spread(p.kernel_size(), axes, 1);
  w.stride = p.stride().empty() ? w.kernel : Spread(p.stride(), axes, 1);
  w.padding = Spread(p.padding(), axes, 0);
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  PD_RETURN_IF_ERROR(ExpectSpace(c, space, 1));
  if (c->dtype(1) != DType::kInt32 && c->dtype(1) != DType::kInt64)
    return c->Misfit("a pool's mask (int32 or int64) as second input", 1);
  PD_ASSIGN_OR_RETURN(Ints size, UnpooledSize(c, p, space, w));
  PD_ASSIGN_OR_RETURN(const std::string x, Lift(c, space, c->input()));
  PD_ASSIGN_OR_RETURN(const std::string mask, Lift(c, space, c->input(1)));
  OpDesc op;
  op.type = axes == 3 ? "unpool3d" : "unpool";
  op.SetInput("X", {x});
  op.SetInput("Indices", {mask});
  op.attrs = {{"unpooling_type", std::string("max")},
              {"ksize", Lift(space, w.kernel, 1)},
              {"strides", Lift(space, w.stride, 1)},
              {"paddings", Lift(space, w.padding, 0)},
              {"output_size", Lift(space, std::move(size), 1)},
              {"data_format", space.format()}};
  PD_ASSIGN_OR_RETURN(const std::string out, c->Append(std::move(op), {"Out"}));
  return Lower(c, space, out);
}

absl::StatusOr<std::string> BuildUnpool(LayerContext* c) {
  const job::Layer& l = c->layer();
  switch (l.kind_case()) {
    case job::Layer::kMaxUnpool1D:
      return Unpool(c, l.max_unpool1d(), 1);
    case job::Layer::kMaxUnpool2D:
      return Unpool(c, l.max_unpool2d(), 2);
    default:
      return Unpool(c, l.max_unpool3d(), 3);
  }
}

}  // namespace

void AddPoolLayers(LayerTable* table) {
  for (const int kind :
       {job::Layer::kMaxPool1D, job::Layer::kMaxPool2D, job::Layer::kMaxPool3D,
        job::Layer::kAvgPool1D, job::Layer::kAvgPool2D, job::Layer::kAvgPool3D})
    (*table)[kind] = {BuildPool};
  for (const int kind :
       {job::Layer::kAdaptiveAvgPool1D, job::Layer::kAdaptiveAvgPool2D,
        job::Layer::kAdaptiveAvgPool3D, job::Layer::kAdaptiveMaxPool1D,
        job::Layer::kAdaptiveMaxPool2D, job::Layer::kAdaptiveMaxPool3D})
    (*table)[kind] = {BuildAnyAdaptive};
  for (const int kind : {job::Layer::kMaxUnpool1D, job::Layer::kMaxUnpool2D,
                         job::Layer::kMaxUnpool3D})
    (*table)[kind] = {BuildUnpool, 2, 2};
}

}  // namespace pd
