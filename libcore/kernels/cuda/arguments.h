// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels: plain structs that host and device lay out alike.
// Pointers are of device memory.
#ifndef PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/low_precision.h"

namespace pd::cuda {

inline constexpr int kMostDims = 8;

/// Elements that a thread of element-wise kernels takes at once.
inline constexpr int kPack = 8;

/// From the number of an element to its place in K tensors. Dimensions without
/// an extent are not there.
template <int K>
struct Walk {
  int32_t dims = 0;
  int64_t extents[kMostDims] = {};
  int64_t strides[kMostDims][K] = {};
};

/// Numbers that a kernel reads and writes, by what it computes with: doubles,
/// or floats, which may be halves in memory.
template <typename T>
struct NumbersOf {
  using In = const T*;
  using Out = T*;
};
template <>
struct NumbersOf<float> {
  using In = FloatsIn;
  using Out = FloatsOut;
};
template <typename T>
using NumbersIn = typename NumbersOf<T>::In;
template <typename T>
using NumbersOut = typename NumbersOf<T>::Out;

/// out = F(x), or out = dout * D(v) with v = x or the forward's out.
template <typename T>
struct UnaryArgsOf {
  NumbersIn<T> v, dout;
  NumbersOut<T> out;
  int64_t n;
  T a, b, c;  ///< attributes of the function
};
using UnaryArgs = UnaryArgsOf<float>;

/// out = F(x, y) over `walk`, which gives the places in x and y.
template <typename T>
struct BinaryArgsOf {
  NumbersIn<T> x, y;
  NumbersOut<T> out;
  bool* answers;  ///< of a comparison, in the place of `out`
  int64_t n;
  int32_t same;   ///< no place differs: the walk is not looked at
  int32_t packs;  ///< 8 elements in a row are so in x and y, or are one there
  Walk<2> walk;
};
using BinaryArgs = BinaryArgsOf<float>;

/// out[i] = factor * sum (or maximum, ...) over j of F at the place of i and j
/// in x, y and z (the forward's out and its gradient have one shape).
struct ReduceShape {
  int64_t n, m;
  double factor;
  Walk<3> outer, inner;
  /// Of kernels that write partial results, out[part][i]: j is one of the
  /// `part_size` elements of a part.
  int64_t parts = 1, part_size = 0;
};
template <typename T>
struct ReduceArgsOf : ReduceShape {
  NumbersIn<T> x, y, z, dz;
  NumbersOut<T> out;
};
using ReduceArgs = ReduceArgsOf<float>;

/// to[walk 1] = from[walk 0] for n elements of `bytes` bytes.
struct CopyArgs {
  const void* from;
  void* to;
  int64_t n;
  Walk<2> walk;
};

struct FillArgs {
  void* out;
  int64_t n;
  uint64_t bits;  ///< of the value, in the lowest bytes
};

/// A loss of x and y by element, or its gradient; a, b: numbers of it.
template <typename T>
struct LossArgsOf {
  NumbersIn<T> x, y, dout;
  NumbersOut<T> out, second;  ///< second: y - x, where somebody wants it
  int64_t n;
  T a, b;
  int32_t* bad;  ///< null, or set to 1 by an x outside [0, 1]
};
using LossArgs = LossArgsOf<float>;

/// Lines of n elements, `inner` apart, as in AxisView.
template <typename T>
struct LinesArgsOf {
  NumbersIn<T> x, y, z;
  NumbersOut<T> out, second;
  const void* label;
  int64_t lines, n, inner;
  int64_t ignore;
  int32_t label64;  ///< labels are int64, else int32
  int32_t given;    ///< x is probabilities already
  int32_t* bad;     ///< set to 1 by a label that is out of range
};
using LinesArgs = LinesArgsOf<float>;

struct CastArgs {
  const void* from;
  void* to;
  int64_t n;
  NumberType from_type, to_type;
  int32_t truncates;  ///< to halves; else to the nearest
};

/// A matrix that lies row by row, in `chunks` parts of `chunk` rows, of which a
/// block takes `across` times `width` columns (columns.h).
struct ColumnGrid {
  int64_t rows, columns, chunk, chunks;
  int32_t across;  ///< threads beside each other, a power of two
  int32_t width;   ///< columns of a thread: 1, 4 or 8
};

/// Packs of a row of layer_norm that a thread keeps, of all tensors together.
inline constexpr int kRowPacks = 4;

/// layer_norm over rows of n elements, and its gradients.
template <typename T>
struct NormArgsOf {
  NumbersIn<T> x, scale, bias, dy;
  NumbersOut<T> y;     ///< of the gradients: dx
  T *mean, *variance;  ///< of the gradients: inputs
  NumbersOut<T> dscale, dbias;
  T* parts;  ///< of dscale and dbias: a row of each for a chunk
  int64_t rows, n;
  T epsilon;
  int32_t lanes;  ///< threads of a row: a power of two
  int32_t width;  ///< numbers that a thread takes at once: 1 or 4
  ColumnGrid grid;
};
using NormArgs = NormArgsOf<float>;

/// Channels of `count` elements each: element i is position i % positions of
/// image i / positions. Where channels are last, they are the grid's columns;
/// else a block takes a chunk of the elements of a channel, its threads
/// `grid.width` of them at once.
template <typename T>
struct ChannelArgsOf {
  NumbersIn<T> x, dy;
  const T *scale, *bias, *mean, *variance;
  NumbersOut<T> y;
  T *mean_out, *variance_out, *saved_mean, *saved_inverse;
  T *dscale, *dbias;
  T* parts;  ///< two numbers a chunk
  int64_t channels, count, positions;
  ColumnGrid grid;
  int32_t last;  ///< channels are
  T epsilon, keep;
  int32_t inverted;  ///< `variance` is 1 / sqrt(variance + epsilon)
  int32_t constant;  ///< mean and variance are not of x
  T top;             ///< of kernels with a ReLU: where it ends; 0: nowhere
};
using ChannelArgs = ChannelArgsOf<float>;

/// Windows of one axis; one that is missing has 1 everywhere, and no padding.
struct PoolAxis {
  int32_t in, out, kernel, stride, pad;
};
struct PoolWindows {
  int64_t n;  ///< elements that are written
  int64_t channels;
  int64_t position_step;  ///< 1, or `channels`: they are last
  PoolAxis axes[3];
  int32_t max, adaptive, exclusive;
};
template <typename T>
struct PoolArgsOf : PoolWindows {
  NumbersIn<T> x, dout;
  NumbersOut<T> out;
  int32_t* mask;  ///< null, or where each maximum is in its channel
  /// Null, or which tap of its window each maximum is: 255 for none.
  uint8_t* places;
};
using PoolArgs = PoolArgsOf<float>;

/// Rows of a table by number.
template <typename T>
struct LookupArgsOf {
  NumbersIn<T> from;  ///< the table
  NumbersOut<T> to;
  const void* ids;
  int64_t count, rows, width, padding;
  int32_t ids64;  ///< else int32
  int32_t* bad;   ///< set to 1 by an id that is out of range
};
using LookupArgs = LookupArgsOf<float>;

/// Groups of `width` channels of images, normalised each.
struct GroupArgs {
  FloatsIn x, dy, scale, bias;
  FloatsOut out;           ///< of gradients: dx
  float *mean, *variance;  ///< of gradients: inputs
  FloatsOut dscale, dbias;
  int64_t images, groups, width, positions;
  int64_t channel_step, position_step;
  float epsilon;
  int32_t instance;  ///< `variance` is 1 / sqrt(variance + epsilon)
};

/// Elements among `from` that each of `to` positions of an axis reads: the
/// entries from begins[i] to begins[i + 1].
struct ResizeAxis {
  const int32_t *begins, *index;
  const float* weight;
  int64_t from, to;
};
struct ResizeArgs {
  FloatsIn in;
  FloatsOut out;
  int64_t n, inner;  ///< n: elements of `out`, [planes, positions, inner]
  ResizeAxis axes[3];
};

/// Rows of k classes that were picked, and the label of each.
struct AccuracyArgs {
  const int64_t* picked;
  const void* labels;
  float* accuracy;
  int32_t *correct, *total;
  int64_t rows, k;
  int32_t labels64;  ///< else int32
};

/// n classes as rows of `depth` numbers.
struct OneHotArgs {
  const void* classes;
  float* out;
  int64_t n, depth;
  int32_t* bad;  ///< set to 1 by a class that is out of range; null: it may be
  int32_t classes64;  ///< else int32
};

/// out = x * mask * factor. `run`: the seed and the step of the run, of which
/// the numbers are, else of `seed`. Element 0 gets number `first`.
template <typename T>
struct DropoutArgsOf {
  NumbersIn<T> x;
  NumbersOut<T> out;
  uint8_t* mask;
  int64_t n, first;
  const uint64_t* run;
  uint64_t seed, stream;
  float threshold;
  T factor;
};
using DropoutArgs = DropoutArgsOf<float>;

/// Values that are looked through for what is not finite.
struct NonFiniteArgs {
  static constexpr int kMost = 64;
  enum Kind : int32_t { kFloat, kDouble, kHalf, kBrainFloat };
  struct Value {
    const void* numbers;
    int64_t n;
    uint32_t* found;  ///< largest, nan, inf, plus: NonFinite
    int32_t kind, unused;
  };
  Value values[kMost];
  int32_t count;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_
