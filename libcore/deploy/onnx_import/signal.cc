// SPDX-License-Identifier: Apache-2.0
// Windows, Fourier transforms, mel filters.
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kMaxSignal = 1 << 24;

// c0 - c1 cos(2 pi n / N) + c2 cos(4 pi n / N).
void GiveWindow(OnnxNode* node, double c0, double c1, double c2) {
  const double size = node->NeedNumber(0);
  const DType dtype = node->ElementType(node->Int("output_datatype", 1));
  const bool periodic = node->Int("periodic", 1) != 0;
  if (!node->ok()) return;
  if (!(size >= 0 && size <= kMaxSignal))
    return node->Fail(InvalidArgument("a window of %g", size));
  std::vector<double> values(static_cast<size_t>(size));
  const double whole = periodic ? size : size - 1;
  for (size_t n = 0; n < values.size(); ++n) {
    const double turn = 2 * kPi * static_cast<double>(n) / whole;
    values[n] = c0 - c1 * std::cos(turn) + c2 * std::cos(2 * turn);
  }
  node->GiveConstant(
      0, OnnxArray(dtype, {static_cast<int64_t>(values.size())}, values));
}

void ImportHann(OnnxNode* node) { GiveWindow(node, 0.5, 0.5, 0); }
void ImportHamming(OnnxNode* node) {
  GiveWindow(node, 25.0 / 46, 1 - 25.0 / 46, 0);
}
void ImportBlackman(OnnxNode* node) { GiveWindow(node, 0.42, 0.5, 0.08); }

// Triangles between points that are equally far apart in mel.
void ImportMelWeights(OnnxNode* node) {
  const double bins = node->NeedNumber(0), length = node->NeedNumber(1);
  const double rate = node->NeedNumber(2);
  const double low = node->NeedNumber(3), high = node->NeedNumber(4);
  const DType dtype = node->ElementType(node->Int("output_datatype", 1));
  if (!node->ok()) return;
  const double columns = std::floor(length / 2) + 1;
  if (!(bins >= 1 && columns >= 1 && bins * columns <= kMaxSignal && rate > 0 &&
        low >= 0 && high >= low && high < 1e9))
    return node->Fail(InvalidArgument("%g bins of %g from %g to %g Hz", bins,
                                      length, low, high));
  const auto mel = [](double hertz) {
    return 2595 * std::log10(1 + hertz / 700);
  };
  const auto count = static_cast<int64_t>(bins);
  const auto width = static_cast<int64_t>(columns);
  std::vector<int64_t> points(static_cast<size_t>(count) + 2);
  const double step = (mel(high) - mel(low)) / static_cast<double>(count + 2);
  for (size_t i = 0; i < points.size(); ++i) {
    const double at = static_cast<double>(i) * step + mel(low);
    const double hertz = 700 * (std::pow(10.0, at / 2595) - 1);
    points[i] = static_cast<int64_t>(std::floor((length + 1) * hertz / rate));
  }
  std::vector<double> values(static_cast<size_t>(count * width));
  const auto set = [&](int64_t row, int64_t column, double value) {
    if (row >= 0 && row < width)
      values[static_cast<size_t>(row * count + column)] = value;
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = points[static_cast<size_t>(i)];
    const int64_t middle = points[static_cast<size_t>(i) + 1];
    const int64_t end = points[static_cast<size_t>(i) + 2];
    const int64_t rise = middle - begin, fall = end - middle;
    if (rise == 0) set(middle, i, 1);
    for (int64_t j = begin; j <= std::min(middle, width) && rise > 0; ++j)
      set(j, i, static_cast<double>(j - begin) / static_cast<double>(rise));
    for (int64_t j = middle; j < std::min(end, width) && fall > 0; ++j)
      set(j, i, static_cast<double>(end - j) / static_cast<double>(fall));
  }
  node->GiveConstant(0, OnnxArray(dtype, {width, count}, values));
}

// x with `axis` cut or filled with zeros to `length`.
std::string WithLength(OnnxNode* node, const std::string& x, int64_t axis,
                       int64_t length) {
  const int64_t extent = node->Extent(x, axis);
  if (!node->ok() || extent == length) return x;
  if (extent < 0 || length < 1 || length > kMaxSignal) {
    node->Fail(Unimplemented("an extent of %d made %d", extent, length));
    return "";
  }
  if (extent > length) return node->Slice(x, {axis}, {0}, {length});
  std::vector<int32_t> pads(static_cast<size_t>(2 * node->Rank(x)));
  pads[static_cast<size_t>(2 * axis + 1)] =
      static_cast<int32_t>(length - extent);
  return node->Unary("pad", x, {{"paddings", pads}, {"pad_value", 0.0f}});
}

// The transform over `axis` of x [..., 1 or 2]; gives [..., 2].
std::string Transform(OnnxNode* node, const std::string& x, int64_t axis,
                      bool inverse, bool onesided) {
  const int64_t last = node->Rank(x) - 1;
  const int64_t parts = node->Extent(x, last);
  if (node->ok() && (axis >= last || parts < 1 || parts > 2))
    node->Fail(InvalidArgument("axis %d of shape %s", axis,
                               ToString(node->ShapeOf(x))));
  if (!node->ok()) return "";
  OnnxNode::Attrs attrs = {{"axes", std::vector<int64_t>{axis}},
                           {"normalization", std::string("backward")},
                           {"forward", !inverse}};
  std::string out;
  if (parts == 1 && !inverse) {
    attrs["onesided"] = onesided;
    out = node->Unary("fft_r2c", node->Squeeze(x, {last}), attrs);
  } else {
    std::string both = x;
    if (parts == 1) both = node->Concat({x, node->Affine(x, 0, 0)}, last);
    out = node->Unary("fft_c2c", node->Unary("as_complex", both), attrs);
    const int64_t extent = node->Extent(x, axis);
    if (onesided && extent >= 0)
      return node->Slice(node->Unary("as_real", out), {axis}, {0},
                         {extent / 2 + 1});
  }
  return node->Unary("as_real", out);
}

// The real signal [..., 1] of which x [..., 2] is the first half of the
// transform over `axis`.
std::string RealFromHalf(OnnxNode* node, const std::string& x, int64_t axis) {
  const int64_t last = node->Rank(x) - 1;
  if (node->ok() && (axis >= last || node->Extent(x, last) != 2))
    node->Fail(InvalidArgument("axis %d of shape %s", axis,
                               ToString(node->ShapeOf(x))));
  const double length = node->Has(1) ? node->NeedNumber(1) : 0;
  if (node->ok() && !(length >= 0 && length <= kMaxSignal))
    node->Fail(InvalidArgument("a signal of %g", length));
  if (!node->ok()) return "";
  return node->Unsqueeze(
      node->Unary("fft_c2r", node->Unary("as_complex", x),
                  {{"axes", std::vector<int64_t>{axis}},
                   {"normalization", std::string("backward")},
                   {"forward", false},
                   {"last_dim_size", static_cast<int64_t>(length)}}),
      {last});
}

void ImportDft(OnnxNode* node) {
  std::string x = node->In(0);
  const int64_t rank = node->Rank(x);
  int64_t axis = node->Int("axis", 1);
  if (node->opset() >= 20)
    axis = node->Has(2) ? static_cast<int64_t>(node->NeedNumber(2)) : -2;
  axis = node->Axis(axis, rank);
  const bool half =
      node->Int("inverse", 0) != 0 && node->Int("onesided", 0) != 0;
  if (half) return node->Give(0, RealFromHalf(node, x, axis));
  if (node->Has(1))
    x = WithLength(node, x, axis, static_cast<int64_t>(node->NeedNumber(1)));
  node->Give(0, Transform(node, x, axis, node->Int("inverse", 0) != 0,
                          node->Int("onesided", 0) != 0));
}

// Frames of the signal [batch, length, 1 or 2], each times the window.
void ImportStft(OnnxNode* node) {
  const std::string x = node->In(0);
  const double step = node->NeedNumber(1);
  const int64_t length = node->Extent(x, 1);
  int64_t size = -1;
  if (node->Has(3)) size = static_cast<int64_t>(node->NeedNumber(3));
  if (node->Has(2) && size < 0) size = node->Extent(node->In(2), 0);
  if (!node->ok()) return;
  if (node->Rank(x) != 3 || length < 0 || size < 1 || size > length ||
      !(step >= 1 && step <= kMaxSignal))
    return node->Fail(
        Unimplemented("frames of %d each %g in %d", size, step, length));
  const int64_t frames = (length - size) / static_cast<int64_t>(step) + 1;
  if (frames * size > kMaxSignal)
    return node->Fail(Unimplemented("%d frames of %d", frames, size));
  OnnxNode::Ints index;
  for (int64_t i = 0; i < frames; ++i)
    for (int64_t j = 0; j < size; ++j)
      index.push_back(i * static_cast<int64_t>(step) + j);
  const std::string all = node->Gather(x, node->ConstInts(index), 1);
  std::string framed =
      node->ReshapeTo(all, {{-1, x, 0}, {frames}, {size}, {-1, x, 2}});
  if (node->Has(2))
    framed = node->Mul(framed, node->Reshape(node->In(2), {size, 1}));
  node->Give(0,
             Transform(node, framed, 2, false, node->Int("onesided", 1) != 0));
}

}  // namespace

OnnxImportEntries SignalImports() {
  return {
      {"BlackmanWindow", ImportBlackman},    {"DFT", ImportDft},
      {"HammingWindow", ImportHamming},      {"HannWindow", ImportHann},
      {"MelWeightMatrix", ImportMelWeights}, {"STFT", ImportStft},
  };
}

}  // namespace pd
