// SPDX-License-Identifier: Apache-2.0
// The numbers of a node, by the place at which they stand. The writer and the
// kernels read them here.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_ATTRIBUTES_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_ATTRIBUTES_H_

#include <cstddef>
#include <cstdint>

namespace pd_run {

/// Functions of one number, f(x), with numbers a, b and c of the node:
/// the nodes `unary`, and what other kernels do to their results.
enum class Function : int64_t {
  kNone,
  kAbs,
  kCeil,
  kCelu,   // x, below 0 a (exp(x / a) - 1)
  kClamp,  // x within [a, b]
  kCos,
  kElu,  // x, below 0 a (exp(x) - 1)
  kErf,
  kExp,
  kFloor,
  kGelu,
  kGeluTanh,
  kHardShrink,   // 0 within [-a, a], else x
  kHardSigmoid,  // a x + b within [0, 1]
  kHardSwish,    // x (x + c within [0, a]) / b
  kLeakyRelu,    // x, below 0 a x
  kLog,
  kLog10,
  kLog1p,
  kLog2,
  kLogSigmoid,
  kMish,  // x tanh(log(1 + exp(x))), above a x tanh(x)
  kPow,   // x to the power of a
  kReciprocal,
  kRelu,
  kRound,
  kRsqrt,
  kScale,  // a x + b
  kSelu,   // a (x, below 0 b (exp(x) - 1))
  kSigmoid,
  kSign,
  kSilu,
  kSin,
  kSoftShrink,  // x nearer to 0 by a
  kSoftplus,    // log(1 + exp(a x)) / a, x where a x is above b
  kSoftsign,
  kSqrt,
  kSquare,
  kStanh,  // b tanh(a x)
  kTanh,
  kTanhShrink,
  kThresholdedRelu,  // x above a, else 0
};
inline constexpr int64_t kFunctions =
    static_cast<int64_t>(Function::kThresholdedRelu) + 1;
/// Every node with a function has so many float numbers.
inline constexpr size_t kFunctionFloats = 3;

/// Functions of two numbers.
enum class Binary : int64_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMax,
  kMin,
  kPow,
  kFloorDiv,
  kMod,
  kPrelu,  // x, below 0 x y
  kEqual,  // from here on the result is bool
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,  // from here on the operands are bool, too
  kOr,
  kXor,
};
inline constexpr int64_t kBinaries = static_cast<int64_t>(Binary::kXor) + 1;

/// The integers that conv, depthwise_conv and pool begin with.
struct WindowInts {
  enum : size_t {
    kKernelH,
    kKernelW,
    kStrideH,
    kStrideW,
    kDilationH,
    kDilationW,
    kTop,
    kBottom,
    kLeft,
    kRight,
    kSame,  // paddings follow from the extents
    kCount
  };
};

struct ConvInts : WindowInts {
  enum : size_t { kOut = WindowInts::kCount, kGroups, kFunction, kAll };
};

/// The window is that of the convolution whose gradient this is. What the
/// result has beyond the least, or its extents, 0 where they are not given.
struct ConvTransposeInts : ConvInts {
  enum : size_t { kExtraH = ConvInts::kAll, kExtraW, kHeight, kWidth, kAll };
};

struct PoolInts : WindowInts {
  enum : size_t {
    kMax = WindowInts::kCount,
    kCeil,
    kExclusive,
    kAdaptive,  // kernel extents are the output's
    kGlobal,
    kAll
  };
};

/// x [..., depth] times weights; the dimensions before kAxis stay.
struct LinearInts {
  enum : size_t { kDepth, kColumns, kAxis, kFunction, kAll };
};

/// One layer of one direction of a recurrence. The gates lie as those of
/// PaddlePaddle's op rnn do.
struct RecurrenceInts {
  enum : size_t { kCell, kHidden, kReverse, kAll };
};
enum class Cell : int64_t { kTanh, kRelu, kLstm, kGru };
inline constexpr int64_t kCells = 4;

struct MatmulInts {
  enum : size_t { kTransposeA, kTransposeB, kAll };
};

/// kAxis: -1 as numpy does, else the dimension of the larger operand at which
/// the smaller one begins.
struct BinaryInts {
  enum : size_t { kOperation, kAxis, kFunction, kAll };
};

struct ReduceInts {
  enum : size_t { kOperation, kKeep, kAxes };  // no axes: all
};
enum class Reduction : int64_t { kSum, kMean, kMax, kMin, kProd };
inline constexpr int64_t kReductions = 5;

struct ReshapeInts {
  enum : size_t { kMode, kDims };
};
enum class ReshapeMode : int64_t {
  kReshape,    // extents; 0 as in the input, -1 what is left over
  kFlatten,    // first and last axis to join
  kSqueeze,    // axes of extent 1 to remove; none: all
  kUnsqueeze,  // axes of extent 1 to add, one after the other
};
inline constexpr int64_t kReshapeModes = 4;

struct SliceInts {
  enum : size_t { kAxis, kStart, kEnd, kStep, kEach };  // for each axis again
};

struct SplitInts {
  enum : size_t { kAxis, kRemoveAxis, kSections };  // one is -1: the rest
};

struct ExpandInts {
  enum : size_t { kMode, kDims };
};
enum class ExpandMode : int64_t { kShape, kLike, kTile };
inline constexpr int64_t kExpandModes = 3;

/// The extents of the result: kDims, those of the input, or kDims with the one
/// at kToAxis being the input's at kFromAxis.
struct FillInts {
  enum : size_t { kType, kMode, kValue, kFromAxis, kToAxis, kDims };
};
enum class FillMode : int64_t { kShape, kLike, kBatch };
inline constexpr int64_t kFillModes = 3;

struct PadInts {
  enum : size_t { kMode, kPads };  // before and after, of each axis
};
enum class PadMode : int64_t { kConstant, kReflect, kEdge, kCircular };
inline constexpr int64_t kPadModes = 4;

struct ResizeInts {
  enum : size_t { kLinear, kAlignCorners, kCenters, kHeight, kWidth, kAll };
};
/// Scales, 0 where the extents are given; of the second, whether coordinates
/// follow the scale rather than the extents.
struct ResizeFloats {
  enum : size_t { kHeight, kWidth, kCoordinates, kAll };
};

struct GatherInts {
  enum : size_t { kAxis, kPadding, kAll };  // the row that gives zeros, or -1
};

struct ArgInts {
  enum : size_t { kMin, kAxis, kKeep, kFlatten, kType, kAll };
};

struct CumsumInts {
  enum : size_t { kAxis, kFlatten, kExclusive, kReverse, kAll };
};

struct SoftmaxInts {
  enum : size_t { kAxis, kLog, kAll };
};

struct NormInts {
  enum : size_t { kAxis, kAll };  // layer_norm: first axis; group_norm: groups
};

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_ATTRIBUTES_H_
