// SPDX-License-Identifier: Apache-2.0
// Convolutions of pictures, [N, C, H, W].
//
// conv: for each image and group a product of the filters [out, in * kh * kw]
// with a matrix of one column for each output position. The matrix is never
// there as a whole: the product asks for it in panels (gemm.h), which are
// gathered from the picture.
//
// depthwise_conv: each channel with its own filters, a vector of a row at a
// time, from a copy of some rows that has zeros around it.
#include <algorithm>
#include <cstring>

#include "libcore/bundle/runtime/gemm.h"
#include "libcore/bundle/runtime/kernels.h"
#include "libcore/bundle/runtime/processor.h"
#include "libcore/bundle/runtime/tile.h"
#include "libcore/bundle/runtime/window.h"

namespace pd_run {
namespace {

struct Conv {
  WindowAxis h, w;
  int64_t batch = 0, channels = 0, out = 0, groups = 1;
  int64_t depth = 0;  // numbers that one output is made of

  int64_t positions() const { return h.out * w.out; }
};

constexpr int64_t kMostChannels = int64_t{1} << 24;

bool ReadConv(Call* call, Conv* conv) {
  if (!ReadWindow(call, false, &conv->h, &conv->w) ||
      !call->Within(ConvInts::kOut, 1, kMostChannels) ||
      !call->Within(ConvInts::kGroups, 1, kMostChannels) ||
      !ExpectFunction(call, ConvInts::kFunction))
    return false;
  const Shape& x = call->In(0).shape;
  conv->batch = x[0];
  conv->channels = x[1];
  conv->out = call->Int(ConvInts::kOut);
  conv->groups = call->Int(ConvInts::kGroups);
  if (conv->channels % conv->groups != 0 || conv->out % conv->groups != 0)
    return call->Fail("channels do not divide into groups");
  if (!Multiply({conv->channels / conv->groups, conv->h.kernel, conv->w.kernel},
                &conv->depth))
    return call->Fail("a filter cannot be so large");
  return call->ExpectVector(2, conv->out) &&
         call->Give(0, DType::kFloat32,
                    {4, {x[0], conv->out, conv->h.out, conv->w.out}});
}

// Panels of the matrix of one image and group.
class PictureColumns : public Columns {
 public:
  PictureColumns(const Conv& conv, const float* picture)
      : conv_(conv), picture_(picture) {
    h_ = conv.h;
    w_ = conv.w;
    // Without paddings and strides a filter of one element reads the picture as
    // it is: as one long row.
    if (h_.kernel * w_.kernel == 1 && h_.stride * w_.stride == 1 &&
        h_.before + h_.after + w_.before + w_.after == 0) {
      w_.in *= h_.in;
      w_.out *= h_.out;
      h_.in = h_.out = 1;
      as_it_is_ = true;
    }
  }

  PanelRows Panel(int64_t panel, int64_t begin, int64_t end,
                  float* memory) const override {
    const int64_t first = panel * kPanelColumns;
    const int64_t count = std::min(kPanelColumns, conv_.positions() - first);
    if (as_it_is_ && count == kPanelColumns)
      return Rows(begin, end, first, memory);
    // The columns by rows of the result.
    Part parts[kPanelColumns];
    int64_t rows = 0, y = first / w_.out, x = first % w_.out;
    for (int64_t left = count; left > 0; x = 0, ++y) {
      parts[rows] = {y, x, std::min(x + left, w_.out)};
      left -= parts[rows].end - x;
      ++rows;
    }
    int64_t tap_w = begin % w_.kernel;
    int64_t tap_h = begin / w_.kernel % h_.kernel;
    const float* plane =
        picture_ + begin / (h_.kernel * w_.kernel) * (h_.in * w_.in);
    float* to = memory;
    for (int64_t k = begin; k < end; ++k, to += kPanelColumns) {
      Gather(plane, tap_h, tap_w, parts, rows, to);
      std::fill(to + count, to + kPanelColumns, 0.0f);
      if (++tap_w < w_.kernel) continue;
      tap_w = 0;
      if (++tap_h < h_.kernel) continue;
      tap_h = 0;
      plane += h_.in * w_.in;
    }
    return {memory, kPanelColumns};
  }

 private:
  struct Part {
    int64_t y, begin, end;
  };

  // Rows of the picture as they lie. Where they are read often, or their
  // distance would have them compete for one line of the cache, copies of them.
  PanelRows Rows(int64_t begin, int64_t end, int64_t first,
                 float* memory) const {
    constexpr int64_t kFewReaders = 4, kLines = 1024;
    const float* from = picture_ + begin * w_.in + first;
    if (RowPanels(conv_.out / conv_.groups) <= kFewReaders &&
        w_.in % kLines != 0)
      return {from, w_.in};
    for (int64_t k = begin; k < end; ++k, from += w_.in)
      std::memcpy(memory + (k - begin) * kPanelColumns, from,
                  kPanelColumns * sizeof(float));
    return {memory, kPanelColumns};
  }

  // The elements that one tap of the windows in `parts` reads.
  void Gather(const float* plane, int64_t tap_h, int64_t tap_w,
              const Part* parts, int64_t rows, float* to) const {
    const auto [inside, inside_end] = w_.Inside(tap_w);
    for (int64_t i = 0; i < rows; ++i) {
      const Part& part = parts[i];
      const int64_t row = h_.Source(part.y, tap_h);
      int64_t at = part.begin;
      if (row >= 0 && row < h_.in) {
        const float* from = plane + (row * w_.in + w_.Source(0, tap_w));
        const int64_t low = std::min(std::max(inside, at), part.end);
        const int64_t high = std::min(std::max(inside_end, low), part.end);
        for (; at < low; ++at) *to++ = 0.0f;
        if (w_.stride == 1)
          for (; at < high; ++at) *to++ = from[at];
        else
          for (; at < high; ++at) *to++ = from[at * w_.stride];
      }
      for (; at < part.end; ++at) *to++ = 0.0f;
    }
  }

  const Conv& conv_;
  WindowAxis h_, w_;
  const float* picture_;
  bool as_it_is_ = false;
};

bool PrepareConv(Call* call) {
  Conv conv;
  if (!ReadConv(call, &conv)) return false;
  int64_t weights = 0;
  if (!Multiply({RowPanels(conv.out / conv.groups), kPanelRows, conv.groups,
                 conv.depth},
                &weights))
    return call->Fail("the filters cannot be so large");
  return call->ExpectVector(1, weights) && call->NeedScratch(kPanelFloats);
}

bool RunConv(Call* call) {
  Conv conv;
  if (!ReadConv(call, &conv)) return false;
  const int64_t group_in = conv.channels / conv.groups;
  const int64_t group_out = conv.out / conv.groups;
  const int64_t column_panels = ColumnPanels(conv.positions());
  const int64_t row_panels = RowPanels(group_out);
  // Where there are few panels of columns, threads share those of rows, too.
  const int64_t tasks = conv.batch * conv.groups * column_panels;
  const int64_t wanted = 2 * call->threads()->count();
  const int64_t shares =
      call->threads()->count() == 1 || tasks >= wanted
          ? 1
          : std::min(row_panels,
                     (wanted + tasks - 1) / std::max<int64_t>(tasks, 1));
  call->threads()->For(
      tasks * shares, [&](int64_t begin, int64_t end, int thread) {
        for (int64_t task = begin; task < end; ++task) {
          const int64_t share = task % shares;
          const int64_t panel = task / shares % column_panels;
          const int64_t group = task / shares / column_panels % conv.groups;
          const int64_t image = task / shares / column_panels / conv.groups;
          const PictureColumns columns(
              conv, call->In(0).as<float>() +
                        (image * conv.channels + group * group_in) * conv.h.in *
                            conv.w.in);
          Gemm gemm;
          gemm.a = call->In(1).as<float>() +
                   group * row_panels * kPanelRows * conv.depth;
          gemm.b = &columns;
          gemm.c = call->Out(0).as<float>() +
                   (image * conv.out + group * group_out) * conv.positions();
          gemm.rows = group_out;
          gemm.columns = gemm.c_stride = conv.positions();
          gemm.depth = conv.depth;
          if (call->Has(2))
            gemm.row_bias = call->In(2).as<float>() + group * group_out;
          gemm.activation = FunctionOf(*call, ConvInts::kFunction);
          gemm.Run(panel, panel + 1, share * row_panels / shares,
                   (share + 1) * row_panels / shares, call->Scratch(thread));
        }
      });
  return true;
}

// Some rows of a channel's result and the rows of the picture that they read,
// which are copied with zeros around them, so that no tap leaves them. With a
// stride of s, a copied row is s rows, of each s-th element: then neighbours of
// the result read neighbours, whatever the stride is.
struct Band {
  static constexpr int64_t kMostTaps = 64;
  static constexpr int64_t kFloats = 12288;  // wanted: they stay in the cache
  static constexpr int64_t kSlack = 16;      // a vector may read so far beyond

  bool few = false;    // taps
  int64_t rows = 0;    // of the result
  int64_t part = 0;    // elements of a row between one of s rows and the next
  int64_t parts = 0;   // s, or how many of them are read
  int64_t pitch = 0;   // elements of them all
  int64_t floats = 0;  // in all
};

int64_t CopiedRows(const WindowAxis& h, int64_t rows) {
  return (rows - 1) * h.stride + (h.kernel - 1) * h.dilation + 1;
}

bool PlanBand(const Conv& conv, Band* band) {
  const WindowAxis& w = conv.w;
  band->few = conv.depth <= Band::kMostTaps;
  if (!band->few) return true;
  // Columns that no tap reads are left out.
  band->parts = std::min(w.stride, (w.kernel - 1) * w.dilation + 1);
  band->part = w.out + (w.kernel - 1) * w.dilation / w.stride + Band::kSlack;
  if (!Multiply({band->part, band->parts}, &band->pitch)) return false;
  band->rows = 1;
  while (band->rows < conv.h.out &&
         CopiedRows(conv.h, band->rows + 1) <= Band::kFloats / band->pitch)
    ++band->rows;
  return Multiply({CopiedRows(conv.h, band->rows), band->pitch}, &band->floats);
}

bool PrepareDepthwise(Call* call) {
  Conv conv;
  Band band;
  if (!ReadConv(call, &conv)) return false;
  if (conv.groups != conv.channels)
    return call->Fail("%lld groups; expected one for each channel",
                      static_cast<long long>(conv.groups));
  int64_t weights = 0;
  if (!Multiply({conv.out, conv.depth}, &weights))
    return call->Fail("the filters cannot be so large");
  if (!PlanBand(conv, &band))
    return call->Fail("the picture cannot be so large");
  return call->ExpectVector(1, weights) && call->NeedScratch(band.floats);
}

struct Plane {
  const float* in;
  const float* filter;
  float bias;
  float* out;
  Clamp clamp;
};

// The numbers of a filter, and which elements of a band each reads for the
// first column of its first row.
struct Taps {
  int64_t count = 0;
  const float* weight = nullptr;
  int64_t from[Band::kMostTaps];
};

Taps TapsOf(const Conv& conv, const Band& band) {
  Taps taps;
  if (!band.few) return taps;
  for (int64_t kh = 0; kh < conv.h.kernel; ++kh)
    for (int64_t kw = 0; kw < conv.w.kernel; ++kw) {
      const int64_t column = kw * conv.w.dilation;
      taps.from[taps.count++] = kh * conv.h.dilation * band.pitch +
                                column % conv.w.stride * band.part +
                                column / conv.w.stride;
    }
  return taps;
}

// Row `y` of the padded picture. kStride is the stride, or 0 for those that
// are rare: divisions by constants are cheap.
template <int kStride>
PD_RUN_INLINE void CopyRow(const Conv& conv, const Band& band,
                           const float* plane, int64_t y, float* to) {
  const WindowAxis& w = conv.w;
  const int64_t stride = kStride > 0 ? kStride : w.stride;
  const int64_t row = y - conv.h.before;
  if (row < 0 || row >= conv.h.in) {
    std::fill_n(to, band.pitch, 0.0f);
    return;
  }
  const float* const from = plane + row * w.in;
  for (int64_t s = 0; s < band.parts; ++s, to += band.part) {
    // Element i is the picture's column i * stride + s - before.
    const int64_t shift = s - w.before;
    const int64_t first =
        shift < 0 ? std::min((stride - 1 - shift) / stride, band.part) : 0;
    const int64_t room = w.in - shift;
    const int64_t end = std::max(
        first,
        std::min(room > 0 ? (room + stride - 1) / stride : 0, band.part));
    std::fill_n(to, first, 0.0f);
    for (int64_t i = first; i < end; ++i) to[i] = from[i * stride + shift];
    std::fill(to + end, to + band.part, 0.0f);
  }
}

// A row of the result with all that it is made of in registers: for all the
// compiler knows, stores change what lies in memory.
template <int kLanes, int kCount>
struct Row {
  using Vector = typename Lanes<kLanes>::Vector;

  PD_RUN_INLINE Row(const Taps& taps, const Plane& plane, const float* first)
      : all(taps), from(first), clamp(plane.clamp) {
    Lanes<kLanes>::Fill(plane.bias, &bias);
    PD_RUN_UNROLL
    for (int t = 0; t < kCount; ++t) {
      Lanes<kLanes>::Fill(taps.weight[t], &weights[t]);
      taps_from[t] = first + taps.from[t];
    }
  }

  PD_RUN_INLINE void Sum(int64_t x, Vector* result) const {
    Vector sum = bias, right;
    if (kCount > 0) {
      PD_RUN_UNROLL
      for (int t = 0; t < kCount; ++t) {
        std::memcpy(&right, taps_from[t] + x, sizeof(right));
        sum += weights[t] * right;
      }
    } else {
      for (int64_t t = 0; t < all.count; ++t) {
        std::memcpy(&right, from + (all.from[t] + x), sizeof(right));
        sum += all.weight[t] * right;
      }
    }
    Lanes<kLanes>::Bound(clamp.low, clamp.high, &sum);
    *result = sum;
  }

  const Taps& all;
  const float* from;
  const Clamp clamp;
  Vector bias, weights[kCount + 1];
  const float* taps_from[kCount + 1];
};

// A row of the result from `from` on. The elements behind the row, up to a
// vector, are written where `beyond` says that they may be.
template <int kLanes, int kCount>
PD_RUN_INLINE void ConvolveRow(const Taps& taps, const Plane& plane,
                               const float* from, int64_t width, bool beyond,
                               float* to) {
  const Row<kLanes, kCount> row(taps, plane, from);
  typename Lanes<kLanes>::Vector sum;
  int64_t x = 0;
  for (; x + (beyond ? 1 : kLanes) <= width; x += kLanes) {
    row.Sum(x, &sum);
    std::memcpy(to + x, &sum, sizeof(sum));
  }
  if (x >= width) return;
  float last[kLanes];
  row.Sum(x, &sum);
  std::memcpy(last, &sum, sizeof(sum));
  for (int64_t i = x; i < width; ++i) to[i] = last[i - x];
}

// Filters of more taps than a Band takes.
void ConvolveSlowly(const Conv& conv, const Plane& plane) {
  for (int64_t i = 0; i < conv.positions(); ++i) {
    float sum = plane.bias;
    for (int64_t kh = 0; kh < conv.h.kernel; ++kh) {
      const int64_t row = conv.h.Source(i / conv.w.out, kh);
      if (row < 0 || row >= conv.h.in) continue;
      for (int64_t kw = 0; kw < conv.w.kernel; ++kw) {
        const int64_t column = conv.w.Source(i % conv.w.out, kw);
        if (column >= 0 && column < conv.w.in)
          sum += plane.filter[kh * conv.w.kernel + kw] *
                 plane.in[row * conv.w.in + column];
      }
    }
    plane.out[i] = sum;
  }
}

// One channel of the result.
template <int kLanes, int kStride>
PD_RUN_INLINE void ConvolveBands(const Conv& conv, const Band& band,
                                 const Taps& taps, const Plane& plane,
                                 float* memory) {
  const WindowAxis& h = conv.h;
  const int64_t width = conv.w.out;
  for (int64_t begin = 0; begin < h.out; begin += band.rows) {
    const int64_t rows = std::min(band.rows, h.out - begin);
    const int64_t copied = CopiedRows(h, rows);
    for (int64_t i = 0; i < copied; ++i)
      CopyRow<kStride>(conv, band, plane.in, begin * h.stride + i,
                       memory + i * band.pitch);
    for (int64_t i = 0; i < rows; ++i) {
      const float* const from = memory + i * h.stride * band.pitch;
      const int64_t y = begin + i;
      float* const to = plane.out + y * width;
      // The next row is computed after this one; there is none after the last.
      const bool beyond = (h.out - 1 - y) * width >= kLanes;
      if (taps.count == 9)
        ConvolveRow<kLanes, 9>(taps, plane, from, width, beyond, to);
      else
        ConvolveRow<kLanes, 0>(taps, plane, from, width, beyond, to);
    }
  }
}

template <int kLanes>
PD_RUN_INLINE void ConvolvePlane(const Conv& conv, const Band& band,
                                 const Taps& taps, const Plane& plane,
                                 float* memory) {
  if (conv.w.stride == 1)
    ConvolveBands<kLanes, 1>(conv, band, taps, plane, memory);
  else if (conv.w.stride == 2)
    ConvolveBands<kLanes, 2>(conv, band, taps, plane, memory);
  else
    ConvolveBands<kLanes, 0>(conv, band, taps, plane, memory);
}

using PlaneFunction = void (*)(const Conv&, const Band&, const Taps&,
                               const Plane&, float*);

void PlanePortable(const Conv& conv, const Band& band, const Taps& taps,
                   const Plane& plane, float* memory) {
  ConvolvePlane<4>(conv, band, taps, plane, memory);
}

#ifdef PD_RUN_X86
PD_RUN_AVX2 void PlaneAvx2(const Conv& conv, const Band& band, const Taps& taps,
                           const Plane& plane, float* memory) {
  ConvolvePlane<8>(conv, band, taps, plane, memory);
}
#endif

// For rows of a few dozen AVX2 is as good as AVX-512.
PlaneFunction ChoosePlane() {
#ifdef PD_RUN_X86
  if (Available() != Instructions::kPortable) return PlaneAvx2;
#endif
  return PlanePortable;
}

bool RunDepthwise(Call* call) {
  Conv conv;
  if (!ReadConv(call, &conv)) return false;
  const Activation activation = FunctionOf(*call, ConvInts::kFunction);
  Band band;
  if (!PlanBand(conv, &band)) return false;
  const PlaneFunction convolve = ChoosePlane();
  Clamp clamp;
  const bool clamps = IsClamp(activation, &clamp) && band.few;
  const int64_t each = conv.out / conv.groups;
  const Taps all = TapsOf(conv, band);
  call->threads()->For(conv.batch * conv.out, [&](int64_t begin, int64_t end,
                                                  int thread) {
    Taps taps = all;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % conv.out;
      const int64_t from = i / conv.out * conv.channels + channel / each;
      float* out = call->Out(0).as<float>() + i * conv.positions();
      const Plane plane = {
          call->In(0).as<float>() + from * conv.h.in * conv.w.in,
          call->In(1).as<float>() + channel * conv.depth,
          call->Has(2) ? call->In(2).as<float>()[channel] : 0.0f, out, clamp};
      taps.weight = plane.filter;
      if (band.few)
        convolve(conv, band, taps, plane, call->Scratch(thread));
      else
        ConvolveSlowly(conv, plane);
      if (!clamps) activation.Apply(conv.positions(), out, out);
    }
  });
  return true;
}

}  // namespace

const Kernel kConv = {"conv",
                      {2, 3},
                      {1, 1},
                      {ConvInts::kAll, ConvInts::kAll},
                      {kFunctionFloats, kFunctionFloats},
                      PrepareConv,
                      RunConv};

const Kernel kDepthwiseConv = {"depthwise_conv",
                               {2, 3},
                               {1, 1},
                               {ConvInts::kAll, ConvInts::kAll},
                               {kFunctionFloats, kFunctionFloats},
                               PrepareDepthwise,
                               RunDepthwise};

}  // namespace pd_run
