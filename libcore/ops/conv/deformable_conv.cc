// SPDX-License-Identifier: Apache-2.0
// deformable_conv, and deformable_conv_v1 without Mask: a conv2d whose taps are
// moved. For tap t at output position p the input is read, bilinearly and 0
// outside, at
//   (y, x) = conv2d's place + (Offset[2 t, p], Offset[2 t + 1, p])
// and multiplied by Mask[t, p]. Offset [n, groups * 2 * taps, h', w'] and Mask
// [n, groups * taps, h', w'] are given for each of deformable_groups runs of
// channels. As in conv_gemm.h the read values are columns of a matrix; the
// columns' gradients go to Input, Mask and, by the slope of the bilinear
// reading, to Offset.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/conv_gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Deformable {
  ConvGemm conv;
  int64_t channels_a_group;  // of a deformable group
  int64_t offset_channels;
};

absl::StatusOr<Deformable> ReadDeformable(const OpDesc& op, const Shape& input,
                                          const Shape& filter) {
  if (input.size() != 4)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g, ReadConv(op, input, filter));
  const int32_t groups = op.Attr<int32_t>("deformable_groups");
  if (groups < 1 || (g.in_channels >= 0 && g.in_channels % groups != 0))
    return InvalidArgument(
        "attr 'deformable_groups' is %d; 'Input' %s has %d "
        "channels",
        groups, ToString(input), g.in_channels);
  Deformable d{ConvGemm(g), 0, 0};
  d.channels_a_group = std::max<int64_t>(g.in_channels / groups, 1);
  d.offset_channels = 2 * groups * d.conv.taps;
  return d;
}

// The neighbours of a place that lie in the image, with weights and slopes.
template <typename T>
struct Reading {
  int count = 0;
  int64_t at[4];
  T weight[4], by_y[4], by_x[4];
};

template <typename T>
Reading<T> Read(const ConvGemm& c, T y, T x) {
  Reading<T> r;
  if (!(y > T(-1) && x > T(-1) && y < static_cast<T>(c.h.in) &&
        x < static_cast<T>(c.w.in)))
    return r;
  const int64_t top = static_cast<int64_t>(std::floor(y));
  const int64_t left = static_cast<int64_t>(std::floor(x));
  const T fy = y - static_cast<T>(top), fx = x - static_cast<T>(left);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      const int64_t row = top + i, column = left + j;
      if (row < 0 || row >= c.h.in || column < 0 || column >= c.w.in) continue;
      const T wy = i == 0 ? T(1) - fy : fy, wx = j == 0 ? T(1) - fx : fx;
      r.at[r.count] = row * c.w.in + column;
      r.weight[r.count] = wy * wx;
      r.by_y[r.count] = i == 0 ? -wx : wx;
      r.by_x[r.count++] = j == 0 ? -wy : wy;
    }
  return r;
}

// The tensors of one image. mask may be null.
template <typename T>
struct Image {
  const T *input, *offset, *mask;
};

// Where a row of columns (an input channel and a tap) finds its offsets.
struct Row {
  int64_t channel, tap, y_offset, x_offset, mask;
};

Row RowAt(const Deformable& d, int64_t group, int64_t r) {
  const ConvGemm& c = d.conv;
  Row row;
  row.channel = group * c.group_in + r / c.taps;
  row.tap = r % c.taps;
  const int64_t t = row.channel / d.channels_a_group * c.taps + row.tap;
  row.y_offset = 2 * t * c.out_size;
  row.x_offset = row.y_offset + c.out_size;
  row.mask = t * c.out_size;
  return row;
}

template <typename T>
Reading<T> ReadAt(const Deformable& d, const Image<T>& image, const Row& row,
                  int64_t p) {
  const ConvGemm& c = d.conv;
  const int64_t y = c.h.Source(p / c.w.out, row.tap / c.w.kernel);
  const int64_t x = c.w.Source(p % c.w.out, row.tap % c.w.kernel);
  return Read(c, static_cast<T>(y) + image.offset[row.y_offset + p],
              static_cast<T>(x) + image.offset[row.x_offset + p]);
}

template <typename T>
T Value(const Reading<T>& r, const T* plane) {
  T sum = T(0);
  for (int i = 0; i < r.count; ++i) sum += r.weight[i] * plane[r.at[i]];
  return sum;
}

template <typename T>
void FillColumns(const Deformable& d, const Image<T>& image, int64_t group,
                 int64_t first, int64_t last, T* columns) {
  ParallelFor(d.conv.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const Row row = RowAt(d, group, r);
      const T* plane = image.input + row.channel * d.conv.in_size;
      T* to = columns + r * (last - first);
      for (int64_t p = first; p < last; ++p) {
        const T m = image.mask != nullptr ? image.mask[row.mask + p] : T(1);
        *to++ = m * Value(ReadAt(d, image, row, p), plane);
      }
    }
  });
}

// The gradients of one image; any may be null.
template <typename T>
struct ImageGrads {
  T *input, *offset, *mask;
};

// Hands the columns' gradients on.
template <typename T>
void AddColumns(const Deformable& d, const Image<T>& image, int64_t group,
                int64_t first, int64_t last, const T* columns,
                const ImageGrads<T>& to) {
  for (int64_t r = 0; r < d.conv.rows; ++r) {
    const Row row = RowAt(d, group, r);
    const int64_t plane = row.channel * d.conv.in_size;
    for (int64_t p = first; p < last; ++p) {
      const T g = *columns++;
      const Reading<T> reading = ReadAt(d, image, row, p);
      const T m = image.mask != nullptr ? image.mask[row.mask + p] : T(1);
      if (to.mask != nullptr)
        to.mask[row.mask + p] += g * Value(reading, image.input + plane);
      for (int i = 0; i < reading.count; ++i) {
        const T x = image.input[plane + reading.at[i]];
        if (to.input != nullptr)
          to.input[plane + reading.at[i]] += g * m * reading.weight[i];
        if (to.offset != nullptr) {
          to.offset[row.y_offset + p] += g * m * reading.by_y[i] * x;
          to.offset[row.x_offset + p] += g * m * reading.by_x[i] * x;
        }
      }
    }
  }
}

struct Tensors {
  Tensor *input, *offset, *filter, *mask, *dout;
  Tensor *out, *din, *doffset, *dfilter, *dmask;
  Tensor* scratch;
};

template <typename T>
T* At(Tensor* tensor, int64_t offset) {
  return tensor != nullptr ? tensor->data<T>() + offset : nullptr;
}

template <typename T>
Image<T> ImageAt(const Deformable& d, const Tensors& t, int64_t n) {
  const int64_t size = d.offset_channels * d.conv.out_size;
  return {At<T>(t.input, n * d.conv.in.image), At<T>(t.offset, n * size),
          At<T>(t.mask, n * size / 2)};
}

template <typename T>
void DeformableConvForward(const Deformable& d, const Tensors& t) {
  const ConvGemm& c = d.conv;
  T* columns = t.scratch->data<T>();
  T* result = columns + c.rows * c.block;
  conv_internal::ForEachBlock(c, [&](int64_t n, int64_t group, int64_t first,
                                     int64_t last) {
    FillColumns(d, ImageAt<T>(d, t, n), group, first, last, columns);
    const int64_t count = last - first;
    std::fill_n(result, c.group_out * count, T(0));
    conv_internal::AddProduct<T>(
        {c.group_out, count, c.rows},
        t.filter->data<T>() + group * c.group_out * c.rows, columns, result);
    T* to = t.out->data<T>() + n * c.out.image +
            group * c.group_out * c.out_size + first;
    for (int64_t o = 0; o < c.group_out; ++o)
      std::copy_n(result + o * count, count, to + o * c.out_size);
  });
}

template <typename T>
void DeformableConvBackward(const Deformable& d, const Tensors& t) {
  const ConvGemm& c = d.conv;
  for (Tensor* to : {t.din, t.doffset, t.dfilter, t.dmask})
    if (to != nullptr) std::fill_n(to->data<T>(), to->size(), T(0));
  T* columns = t.scratch->data<T>();
  T* outputs = columns + c.rows * c.block;
  conv_internal::ForEachBlock(
      c, [&](int64_t n, int64_t group, int64_t first, int64_t last) {
        const Image<T> image = ImageAt<T>(d, t, n);
        const int64_t count = last - first;
        const int64_t filter = group * c.group_out * c.rows;
        conv_internal::CopyOutputs(c,
                                   t.dout->data<T>() + n * c.out.image +
                                       group * c.group_out * c.out_size,
                                   first, last, outputs);
        if (t.dfilter != nullptr) {
          FillColumns(d, image, group, first, last, columns);
          GemmShape shape{c.group_out, c.rows, count};
          shape.trans_b = true;
          conv_internal::AddProduct<T>(shape, outputs, columns,
                                       t.dfilter->data<T>() + filter);
        }
        if (t.din == nullptr && t.doffset == nullptr && t.dmask == nullptr)
          return;
        std::fill_n(columns, c.rows * count, T(0));
        GemmShape shape{c.rows, count, c.group_out};
        shape.trans_a = true;
        conv_internal::AddProduct<T>(shape, t.filter->data<T>() + filter,
                                     outputs, columns);
        const int64_t size = d.offset_channels * c.out_size;
        AddColumns(d, image, group, first, last, columns,
                   ImageGrads<T>{At<T>(t.din, n * c.in.image),
                                 At<T>(t.doffset, n * size),
                                 At<T>(t.dmask, n * size / 2)});
      });
}

Shape OffsetShape(const Deformable& d, bool mask) {
  Shape shape = d.conv.g.OutputShape();
  shape[1] = mask ? d.offset_channels / 2 : d.offset_channels;
  return shape;
}

absl::StatusOr<Tensors> ReadTensors(BindContext* context, const Deformable& d) {
  Tensors t{};
  t.input = context->Input("Input");
  t.offset = context->Input("Offset");
  t.filter = context->Input("Filter");
  t.mask = context->Input("Mask");
  const DType dtype = t.input->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Offset", dtype, OffsetShape(d, false)));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Mask", dtype, OffsetShape(d, true)));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Filter", dtype, t.filter->shape()));
  t.scratch = context->Scratch(static_cast<size_t>(d.conv.ScratchSize()) *
                               SizeOf(dtype));
  return t;
}

absl::StatusOr<Step> BindDeformableConv(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Deformable d,
      ReadDeformable(context->op(), context->Input("Input")->shape(),
                     context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(Tensors t, ReadTensors(context, d));
  t.out = context->Output("Output");
  return DispatchFloat(t.input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      DeformableConvForward<T>(d, t);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Deformable d,
      ReadDeformable(context->op(), context->Input("Input")->shape(),
                     context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(Tensors t, ReadTensors(context, d));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Output@GRAD", t.input->dtype(),
                                 d.conv.g.OutputShape()));
  t.dout = context->Input("Output@GRAD");
  t.din = context->Output("Input@GRAD");
  t.doffset = context->Output("Offset@GRAD");
  t.dfilter = context->Output("Filter@GRAD");
  t.dmask = context->Output("Mask@GRAD");
  return DispatchFloat(t.input->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      DeformableConvBackward<T>(d, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferDeformableConv(InferContext* context) {
  const TensorMeta& input = context->Input("Input");
  const Shape& filter = context->Input("Filter").shape;
  if (input.shape.size() != 4)
    return InvalidArgument("'Input' has shape %s; expected rank 4",
                           ToString(input.shape));
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConv(context->op(), input.shape, filter));
  context->SetOutput("Output", g.OutputShape(), input.dtype);
  return absl::OkStatus();
}

void AddDeformableConvSlotsAndAttrs(OpDef* def, bool mask) {
  def->Input("Input").Input("Offset").Input("Filter");
  if (mask) def->Input("Mask");
  def->Attr("strides", std::vector<int32_t>{1, 1})
      .Attr("paddings", std::vector<int32_t>{0, 0})
      .Attr("dilations", std::vector<int32_t>{1, 1})
      .Attr("groups", int32_t{1})
      .Attr("deformable_groups", int32_t{1})
      .Attr("im2col_step", int32_t{64});
}

absl::Status Add(OpRegistry* registry, const std::string& type, bool mask) {
  std::vector<std::string> inputs = {"Input", "Offset", "Filter"};
  if (mask) inputs.push_back("Mask");
  OpDef op(type);
  AddDeformableConvSlotsAndAttrs(&op, mask);
  op.Output("Output").Infer(InferDeformableConv).Reference(BindDeformableConv);
  GradSpec spec{type + "_grad", {}, {}, {"Output"}, {}};
  spec.inputs = spec.in_grads = inputs;
  op.Grad(std::move(spec));
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  AddDeformableConvSlotsAndAttrs(&grad, mask);
  grad.Input("Output@GRAD");
  for (const std::string& slot : inputs) grad.OptionalOutput(GradName(slot));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterDeformableConv(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(Add(registry, "deformable_conv", true));
  return Add(registry, "deformable_conv_v1", false);
}

}  // namespace pd
