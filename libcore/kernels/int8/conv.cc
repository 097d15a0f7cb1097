// SPDX-License-Identifier: Apache-2.0
// int8_conv2d and int8_matmul as products of matrices, without copying the
// image: a row of the left matrix is, for each tap, a pointer to the channels
// of the input's pixel (or to a pixel of zeros in the padding). Where channels
// are few or no multiple of four, rows are copied side by side instead; and
// where sums of pairs could saturate, as numbers of 16 bits.
//
// Rows come in chunks whose pointers are made once for all panels; panels of
// weights in the inner loop stay in the cache for the tiles of a chunk. Threads
// share the rows, or the panels where there are more weights than inputs.
#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/int8/bindings.h"
#include "libcore/kernels/int8/packed.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/window.h"

namespace pd {
namespace int8 {
namespace {

constexpr int64_t kMaxBlocks = 16;           // of rows in a chunk
constexpr int64_t kCopiedBytes = 256 << 10;  // in a chunk

struct Product : Packed {
  // Rows: pixels of the output, image by image.
  int64_t rows = 0, groups = 1, taps = 1;
  int64_t group_in = 0, group_out = 0;    // channels
  int64_t in_stride = 0, out_stride = 0;  // from pixel to pixel
  // A part of a transposed convolution writes some of the pixels: elements from
  // line to line and image to image, and the first's place.
  bool scattered = false;
  int64_t out_line = 0, out_image = 0, out_first = 0;
  bool copies = false;
  bool words = false;  // rows are copied as 16 bits
  int64_t quads = 0;   // of bytes for each tap; for all where rows are copied
  int64_t max_blocks = kMaxBlocks;
  int64_t panels = 0;         // of a group
  bool share_panels = false;  // threads do
  bool is_window = false;     // else pixels of input and output are the same
  WindowAxis h, w;
  std::vector<uint8_t> padding;  // a pixel of zeros
  size_t tail = 0;  // bytes of the input's end that rows are read behind

  Tensor *x = nullptr, *out = nullptr, *scratch = nullptr;
  int64_t x_bytes = 0;

  // The element of the output where a row begins.
  int64_t PlaceOf(int64_t row) const {
    if (!scattered) return row * out_stride;
    const int64_t line = row / w.out;
    return out_first + line / h.out * out_image + line % h.out * out_line +
           row % w.out * out_stride;
  }
  const uint8_t* In() const { return x->data<uint8_t>(); }
  const uint8_t* End() const { return In() + x_bytes; }
  PanelShape OfPanel() const {
    return {copies ? 1 : taps, quads, tiles->columns};
  }
  size_t PanelBytes() const {
    return static_cast<size_t>((copies ? 1 : taps) * quads * 4 *
                               tiles->columns);
  }
  size_t PointerBytes() const {
    return sizeof(void*) * kMaxRows *
           static_cast<size_t>(max_blocks * (copies ? 1 : taps));
  }
  int64_t Depth() const { return taps * group_in; }
  // Numbers that no cache would keep until they are read.
  bool Streams() const {
    const Tensor* numbers = floats != nullptr ? floats : out;
    return numbers->dtype() == DType::kFloat32 && out_stride % 16 == 0 &&
           group_out % 16 == 0 && out_first % 16 == 0 &&
           reinterpret_cast<uintptr_t>(numbers->raw()) % 64 == 0 &&
           numbers->bytes() > (size_t{16} << 20);
  }
  // Of one thread: pointers, copied rows, and one row of bytes; or the input's
  // end with room behind it. Whole lines: the next thread's begins with
  // pointers.
  size_t ScratchBytes() const {
    const auto row = static_cast<size_t>(4 * quads);
    const size_t rows = copies
                            ? row * kMaxRows * static_cast<size_t>(max_blocks) +
                                  static_cast<size_t>(Depth() + 64)
                        : tail > 0 ? tail + row
                                   : 0;
    return (PointerBytes() + rows + 63) / 64 * 64;
  }
};

// The pixel of the output that a row stands for.
struct Pixel {
  int64_t image = 0, y = 0, x = 0;

  Pixel(const Product& p, int64_t row) {
    if (!p.is_window) return;
    const int64_t plane = p.h.out * p.w.out;
    image = row / plane;
    y = row % plane / p.w.out;
    x = row % p.w.out;
  }
  void Next(const Product& p) {
    if (++x < p.w.out) return;
    x = 0;
    if (++y < p.h.out) return;
    y = 0;
    ++image;
  }
};

// Calls put(tap, count, source) for `count` taps whose channels lie one after
// the other (`joined`: as many as there are), from the first tap on.
template <typename Put>
void ForTaps(const Product& p, const Pixel& at, int64_t group, bool joined,
             const Put& put) {
  const uint8_t* in = p.In() + group * p.group_in;
  const int64_t left = at.x * p.w.stride - p.w.pad_before;
  const int64_t width = p.w.kernel;
  const bool inside = left >= 0 && left + (width - 1) * p.w.dilation < p.w.in;
  for (int64_t i = 0; i < p.h.kernel; ++i) {
    const int64_t y = p.h.Source(at.y, i);
    if (y < 0 || y >= p.h.in) {
      for (int64_t j = 0; j < width; ++j)
        put(i * width + j, 1, p.padding.data());
      continue;
    }
    const uint8_t* row = in + (at.image * p.h.in + y) * p.w.in * p.in_stride;
    if (inside && joined) {
      put(i * width, width, row + left * p.in_stride);
      continue;
    }
    for (int64_t j = 0; j < width; ++j) {
      const int64_t x = left + j * p.w.dilation;
      put(i * width + j, 1,
          x >= 0 && x < p.w.in ? row + x * p.in_stride : p.padding.data());
    }
  }
}

// Some bytes, mostly few: what a call of memcpy costs is more than they do.
void CopyFew(const uint8_t* from, int64_t count, uint8_t* to) {
  constexpr int64_t kWord = 8;
  if (count < kWord) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kWord < count; i += kWord)
    std::memcpy(to + i, from + i, kWord);
  std::memcpy(to + count - kWord, from + count - kWord, kWord);
}

// The row's bytes side by side: where they lie, or copied to `room`.
const uint8_t* RowBytes(const Product& p, const Pixel& at, int64_t row,
                        int64_t group, uint8_t* room) {
  if (!p.is_window) return p.In() + row * p.in_stride + group * p.group_in;
  const bool joined = p.groups == 1 && p.w.dilation == 1;
  ForTaps(p, at, group, joined,
          [&](int64_t tap, int64_t count, const uint8_t* from) {
            CopyFew(from, count * p.group_in, room + tap * p.group_in);
          });
  return room;
}

// Bytes as words.
void Upcast(const uint8_t* from, int64_t count, uint8_t* to) {
  int64_t k = 0;
  const __m128i none = _mm_setzero_si128();
  for (; k + 16 <= count; k += 16) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k));
    __m128i* words = reinterpret_cast<__m128i*>(to + 2 * k);
    _mm_storeu_si128(words, _mm_unpacklo_epi8(bytes, none));
    _mm_storeu_si128(words + 1, _mm_unpackhi_epi8(bytes, none));
  }
  for (; k < count; ++k) reinterpret_cast<uint16_t*>(to)[k] = from[k];
}

// Copies the rows of pixels from `at` on, in one line of the output, whose
// windows are inside of the image: `most` of them, less, or none. Each line of
// a window is copied with what is behind it, which later ones overwrite, or
// which meets weights of 0. Returns how many.
template <int64_t kLine>
int64_t CopyLines(const Product& p, const Pixel& at, int64_t most, uint8_t* to,
                  int64_t to_step) {
  const int64_t line = p.w.kernel * p.group_in;
  const int64_t y = at.y * p.h.stride - p.h.pad_before;
  const int64_t x = at.x * p.w.stride - p.w.pad_before;
  if (y < 0 || y + p.h.kernel > p.h.in || x < 0 || x + p.w.kernel > p.w.in)
    return 0;
  const int64_t step = p.w.in * p.in_stride, next = p.w.stride * p.in_stride;
  const uint8_t* from =
      p.In() + ((at.image * p.h.in + y) * p.w.in + x) * p.in_stride;
  // Whole lines may be read of the pixels before this one.
  const int64_t readable =
      (p.End() - from - (p.h.kernel - 1) * step - kLine) / next;
  const int64_t count =
      std::min({most, p.w.out - at.x,
                (p.w.in - p.w.kernel - x) / p.w.stride + 1, readable});
  for (int64_t i = 0; i < count; ++i, from += next, to += to_step)
    for (int64_t j = 0; j < p.h.kernel; ++j)
      if (p.words)
        Upcast(from + j * step, kLine, to + 2 * j * line);
      else
        std::memcpy(to + j * line, from + j * step, kLine);
  return std::max<int64_t>(count, 0);
}

int64_t CopyWindows(const Product& p, const Pixel& at, int64_t most,
                    uint8_t* to, int64_t to_step) {
  const int64_t line = p.w.kernel * p.group_in;
  if (!p.is_window || p.groups > 1 || p.w.dilation > 1 || p.h.dilation > 1)
    return 0;
  if (line <= 16) return CopyLines<16>(p, at, most, to, to_step);
  if (line <= 32) return CopyLines<32>(p, at, most, to, to_step);
  return 0;
}

// Copies a row to 4 * quads bytes; what stands behind its numbers meets weights
// of 0.
void CopyRow(const Product& p, const Pixel& at, int64_t row, int64_t group,
             uint8_t* room, uint8_t* to) {
  const int64_t depth = p.Depth();
  if (p.words) return Upcast(RowBytes(p, at, row, group, room), depth, to);
  const uint8_t* from = RowBytes(p, at, row, group, to);
  if (from != to) std::memcpy(to, from, static_cast<size_t>(depth));
}

// Rows near the input's end lie in `copy`, where more than them may be read.
const uint8_t* Readable(const Product& p, const uint8_t* row,
                        const uint8_t* copy) {
  if (p.tail == 0) return row;
  const int64_t left = p.End() - row;
  return left >= 4 * p.quads || left < 0 || left > static_cast<int64_t>(p.tail)
             ? row
             : copy + static_cast<int64_t>(p.tail) - left;
}

// Pointers to the rows of a chunk that begins with row `first`.
void Gather(const Product& p, const GemmChunk& chunk, int64_t first,
            int64_t group, uint8_t* scratch) {
  const auto pointers = reinterpret_cast<const uint8_t**>(scratch);
  uint8_t* copy = scratch + p.PointerBytes();
  uint8_t* room = copy + 4 * p.quads * kMaxRows * p.max_blocks;
  Pixel at(p, first);
  int64_t row = first;
  const uint8_t* from = p.In() + first * p.in_stride + group * p.group_in;
  int64_t copied = 0;  // rows that are there already
  if (p.words && !p.is_window && p.groups == 1 && p.Depth() == 2 * p.quads) {
    Upcast(from, chunk.count * p.Depth(), copy);
    copied = chunk.count;
  }
  for (int64_t b = 0; b < chunk.blocks; ++b) {
    const uint8_t** to = pointers + b * chunk.taps * kMaxRows;
    for (int r = chunk.RowsOf(b); r > 0; --r, ++row, ++to) {
      if (p.copies) {
        if (copied == 0)
          copied =
              CopyWindows(p, at, first + chunk.count - row, copy, 4 * p.quads);
        if (copied > 0)
          --copied;
        else
          CopyRow(p, at, row, group, room, copy);
        *to = copy;
        copy += 4 * p.quads;
      } else if (!p.is_window) {
        *to = Readable(p, from, copy);
        from += p.in_stride;
      } else {
        ForTaps(p, at, group, false,
                [&](int64_t tap, int64_t, const uint8_t* pixel) {
                  to[tap * kMaxRows] = Readable(p, pixel, copy);
                });
      }
      if (p.is_window) at.Next(p);
    }
  }
}

// One panel against the rows of a chunk that begins with row `first`.
void Multiply(const Product& p, int64_t first, int64_t group, int64_t panel,
              GemmChunk* chunk) {
  const int64_t width = p.tiles->columns, column = panel * width;
  const auto at_panel = static_cast<size_t>(group * p.panels + panel);
  const size_t place = at_panel * static_cast<size_t>(width);
  chunk->weights = p.weights.get() + at_panel * p.PanelBytes();
  if (p.kind == DotKind::kPairs)
    chunk->order = p.order.data() +
                   at_panel * static_cast<size_t>(p.OfPanel().OrderSize());
  chunk->offsets = p.offsets.data() + place;
  FinishTile& f = chunk->out;
  f.columns = static_cast<int>(std::min(width, p.group_out - column));
  f.scales = p.scales.data() + place;
  f.bias = p.bias.data() + place;
  const int64_t at = p.PlaceOf(first) + group * p.group_out + column;
  const auto offset = [at](const Tensor& tensor) {
    return static_cast<char*>(tensor.raw()) +
           at * static_cast<int64_t>(SizeOf(tensor.dtype()));
  };
  if (p.residual != nullptr) f.residual = offset(*p.residual);
  f.out = offset(*p.out);
  if (p.floats != nullptr) f.floats = p.floats->data<float>() + at;
  p.tiles->gemm(*chunk);
}

void RunPart(const Product& p, int64_t part, int64_t parts) {
  const auto share = [&](int64_t n, bool shared, int64_t i) {
    return shared ? n * i / parts : n * (i - part);
  };
  const int64_t row_end = share(p.rows, !p.share_panels, part + 1);
  const int64_t panel_begin = share(p.panels, p.share_panels, part);
  const int64_t panel_end = share(p.panels, p.share_panels, part + 1);
  if (panel_begin == panel_end) return;
  uint8_t* scratch =
      p.scratch->data<uint8_t>() + static_cast<size_t>(part) * p.ScratchBytes();
  const int64_t height = p.tiles->max_rows;
  if (p.tail > 0)
    std::memcpy(scratch + p.PointerBytes(), p.End() - p.tail, p.tail);
  GemmChunk chunk;
  if (p.tiles->step > 1) chunk.height = static_cast<int>(height);
  chunk.rows = reinterpret_cast<const uint8_t**>(scratch);
  chunk.taps = p.copies ? 1 : p.taps;
  chunk.quads = p.quads;
  chunk.kind = p.kind;
  chunk.out.out_stride = p.out_stride;
  chunk.out.finish = &p.finish;
  chunk.out.streams = p.Streams();
  chunk.out.residual_floats =
      p.residual != nullptr && p.residual->dtype() == DType::kFloat32;
  if (p.tiles->begin != nullptr) p.tiles->begin();
  for (int64_t first = share(p.rows, !p.share_panels, part); first < row_end;
       first += chunk.count) {
    chunk.count = std::min(p.max_blocks * height, row_end - first);
    if (p.scattered)  // one line
      chunk.count = std::min(chunk.count, p.w.out - first % p.w.out);
    chunk.blocks = (chunk.count + height - 1) / height;
    for (int64_t group = 0; group < p.groups; ++group) {
      Gather(p, chunk, first, group, scratch);
      for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
        chunk.first = panel == panel_begin;
        Multiply(p, first, group, panel, &chunk);
      }
    }
  }
  if (p.tiles->end != nullptr) p.tiles->end();
  if (chunk.out.streams) _mm_sfence();
}

// Puts the weights of each group into panels.
void Pack(const Int8Weights& w, Product* p) {
  const int64_t width = p->tiles->columns;
  p->weight_bytes =
      p->PanelBytes() * static_cast<size_t>(p->panels * p->groups);
  p->weights = ZeroedWeights(p->weight_bytes);
  const int64_t depth = w.taps * w.channels;
  for (int64_t o = 0; o < w.outputs; ++o) {
    const int64_t group = o / p->group_out, within = o % p->group_out;
    int8_t* panel = p->weights.get() +
                    static_cast<size_t>(group * p->panels + within / width) *
                        p->PanelBytes();
    for (int64_t i = 0; i < depth; ++i) {
      const int8_t v = w.values[static_cast<size_t>(o * depth + i)];
      const int64_t column = within % width;
      if (p->words) {
        reinterpret_cast<int16_t*>(
            panel)[(i / 2 * width + column) * 2 + i % 2] = v;
        continue;
      }
      // Where tap and channel stand in a row of the left matrix.
      const int64_t k =
          p->copies ? i : i / w.channels * 4 * p->quads + i % w.channels;
      panel[(k / 4 * width + column) * 4 + k % 4] = v;
    }
  }
}

// The common part of all products; x, out, residual and floats are set.
absl::StatusOr<Step> BindWeights(BindContext* context, const Int8Weights& w,
                                 std::shared_ptr<Product> p) {
  p->x_bytes = p->x->size();
  p->copies = p->group_in % 4 != 0 || (p->taps > 1 && p->group_in < 16);
  p->tiles = &BestTiles(p->copies ? p->Depth() : p->group_in);
  const int32_t high = ReadInt8In(context->op(), "x").high;
  p->kind = KindOf(*p->tiles, w, high);
  p->words = p->kind == DotKind::kWords;
  p->copies |= p->words;
  const int64_t depth = p->copies ? p->Depth() : p->group_in;
  p->quads = (depth * (p->words ? 2 : 1) + 3) / 4;
  p->quads = (p->quads + p->tiles->step - 1) / p->tiles->step * p->tiles->step;
  if (!p->copies && p->tiles->step > 1)
    p->tail = std::min(static_cast<size_t>(p->x_bytes),
                       static_cast<size_t>(4 * p->quads));
  if (p->copies)
    p->max_blocks = std::clamp<int64_t>(
        kCopiedBytes / (4 * p->quads * p->tiles->max_rows + 1), 1, kMaxBlocks);
  p->panels = (p->group_out + p->tiles->columns - 1) / p->tiles->columns;
  std::vector<int64_t> order;
  for (int64_t g = 0; g < p->groups; ++g)
    for (int64_t c = 0; c < p->panels * p->tiles->columns; ++c)
      order.push_back(c < p->group_out ? g * p->group_out + c : -1);
  PD_RETURN_IF_ERROR(FillChannels(context, w, order, p.get()));
  Pack(w, p.get());
  if (p->kind == DotKind::kPairs)
    for (int64_t panel = 0; panel < p->panels * p->groups; ++panel)
      GroupQuads(
          p->OfPanel(), high,
          p->weights.get() + static_cast<size_t>(panel) * p->PanelBytes(),
          &p->order);
  ShareWeights(p->weight_bytes, &p->weights);
  p->padding.assign(static_cast<size_t>(p->in_stride + 4 * p->quads),
                    static_cast<uint8_t>(p->zero));
  p->share_panels =
      p->weight_bytes > p->x->bytes() && p->panels >= 2 * Threads();
  PrepareFinish(w, p.get());
  const int threads = Threads();
  p->scratch =
      context->Scratch(p->ScratchBytes() * static_cast<size_t>(threads));
  return Step([p, threads](const RunContext&) {
    ParallelParts([&](int part, int parts) {
      PD_INVARIANT(parts <= threads);
      RunPart(*p, part, parts);
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindProduct(BindContext* context,
                                 std::shared_ptr<Product> p) {
  PD_ASSIGN_OR_RETURN(const Int8Weights w, ReadInt8Weights(context));
  PD_ASSIGN_OR_RETURN(p->residual, BindResidual(context, p->x, p->out));
  PD_ASSIGN_OR_RETURN(p->floats, BindFloats(context, *p->out));
  return BindWeights(context, w, std::move(p));
}

// The taps of one axis that output positions first, first + stride, ... of a
// transposed convolution meet, as a window over its input: each tap is one
// further in the kernel's other direction.
struct PhaseAxis {
  WindowAxis window;
  std::vector<int64_t> taps;  // of the kernel, in the window's order

  PhaseAxis(const WindowAxis& axis, int64_t first) {
    window.in = axis.out;
    window.out = (axis.in - first + axis.stride - 1) / axis.stride;
    const auto offset = [&](int64_t k) {
      return first + axis.pad_before - k * axis.dilation;
    };
    for (int64_t k = axis.kernel - 1; k >= 0; --k)
      if (offset(k) % axis.stride == 0) taps.push_back(k);
    window.kernel = static_cast<int64_t>(taps.size());
    if (taps.empty()) return;
    window.pad_before = -offset(taps[0]) / axis.stride;
    if (taps.size() > 1)
      window.dilation = (offset(taps[1]) - offset(taps[0])) / axis.stride;
  }
};

// The weights of a phase's taps.
Int8Weights WeightsOf(const Int8Weights& w, const WindowAxis& axis,
                      const PhaseAxis& h, const PhaseAxis& v) {
  Int8Weights part = w;
  part.taps = h.window.kernel * v.window.kernel;
  part.values.clear();
  for (int64_t o = 0; o < w.outputs; ++o)
    for (const int64_t i : h.taps)
      for (const int64_t j : v.taps) {
        const int8_t* tap =
            w.values.data() + (o * w.taps + i * axis.kernel + j) * w.channels;
        part.values.insert(part.values.end(), tap, tap + w.channels);
      }
  return part;
}

absl::Status ExpectBytes(BindContext* context) {
  if (context->Input("Input")->dtype() != DType::kUInt8)
    return Unimplemented("it is for uint8");
  if (context->Input("Input")->size() == 0 ||
      context->Output("Output")->size() == 0)
    return Unimplemented("there is nothing to do");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Step> BindConv(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  auto p = std::make_shared<Product>();
  p->x = context->Input("Input");
  p->out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConv(context->op(), p->x->shape(),
                               context->Input("Filter")->shape()));
  p->h = g.axes[0];
  p->w = g.axes[1];
  p->rows = g.batch * p->h.out * p->w.out;
  p->groups = g.groups;
  p->taps = p->h.kernel * p->w.kernel;
  p->group_in = g.in_channels / g.groups;
  p->group_out = g.out_channels / g.groups;
  p->in_stride = g.in_channels;
  p->out_stride = g.out_channels;
  p->is_window = p->taps > 1 || p->h.in != p->h.out || p->w.in != p->w.out ||
                 p->h.pad_before != 0 || p->w.pad_before != 0;
  PD_ASSIGN_OR_RETURN(p->x, context->In(p->x, ChannelsLast(p->x->shape())));
  PD_ASSIGN_OR_RETURN(p->out,
                      context->Out(p->out, ChannelsLast(p->out->shape())));
  return BindProduct(context, std::move(p));
}

// Output pixels (stride * i + y, stride * j + x) are a convolution of stride 1
// for each phase (y, x).
absl::StatusOr<Step> BindTranspose(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  Tensor *x = context->Input("Input"), *out = context->Output("Output");
  PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                      ReadConvTranspose(context->op(), x->shape(),
                                        context->Input("Filter")->shape()));
  PD_ASSIGN_OR_RETURN(const Int8Weights w, ReadInt8Weights(context));
  PD_ASSIGN_OR_RETURN(x, context->In(x, ChannelsLast(x->shape())));
  PD_ASSIGN_OR_RETURN(out, context->Out(out, ChannelsLast(out->shape())));
  PD_ASSIGN_OR_RETURN(Tensor * residual, BindResidual(context, x, out));
  PD_ASSIGN_OR_RETURN(Tensor * floats, BindFloats(context, *out));
  const WindowAxis &h = g.axes[0], &v = g.axes[1];
  std::vector<Step> phases;
  for (int64_t at = 0; at < h.stride * v.stride; ++at) {
    const int64_t y = at / v.stride, z = at % v.stride;
    if (y >= h.in || z >= v.in) continue;
    const PhaseAxis rows(h, y), columns(v, z);
    auto p = std::make_shared<Product>();
    p->x = x;
    p->out = out;
    p->residual = residual;
    p->floats = floats;
    p->h = rows.window;
    p->w = columns.window;
    p->is_window = p->scattered = true;
    p->rows = g.batch * p->h.out * p->w.out;
    p->taps = p->h.kernel * p->w.kernel;
    p->group_in = p->in_stride = w.channels;
    p->group_out = w.outputs;
    p->out_stride = v.stride * w.outputs;
    p->out_line = h.stride * v.in * w.outputs;
    p->out_image = h.in * v.in * w.outputs;
    p->out_first = (y * v.in + z) * w.outputs;
    PD_ASSIGN_OR_RETURN(
        Step phase,
        BindWeights(context, WeightsOf(w, v, rows, columns), std::move(p)));
    phases.push_back(std::move(phase));
  }
  return Step([phases](const RunContext& run) {
    for (const Step& phase : phases) PD_RETURN_IF_ERROR(phase(run));
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMatmul(BindContext* context) {
  PD_RETURN_IF_ERROR(ExpectBytes(context));
  auto p = std::make_shared<Product>();
  p->x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(const Int8Product product,
                      ReadInt8Product(context->op(), p->x->shape(),
                                      context->Input("Filter")->shape()));
  p->rows = product.rows;
  p->group_in = p->in_stride = product.depth;
  p->group_out = p->out_stride = product.columns;
  PD_ASSIGN_OR_RETURN(p->x, context->In(p->x, nullptr));
  PD_ASSIGN_OR_RETURN(p->out, context->Out(context->Output("Output"), nullptr));
  return BindProduct(context, std::move(p));
}

}  // namespace int8
}  // namespace pd
