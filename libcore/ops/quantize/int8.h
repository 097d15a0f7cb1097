// SPDX-License-Identifier: Apache-2.0
// The 8-bit arithmetic of int8_... ops, which stand for quantized parts of
// programs (passes/int8_chains.cc makes them). It is defined here once, to the
// bit: every kernel on every CPU gives these integers.
//
// A quantized tensor is uint8: u stands for (u - zero) * scale. PaddlePaddle's
// int8 q is kept as u = q + 128 with zero = 128, or as q itself where it is
// known to be no less than 0.
//   product:  acc = sum of (u - zero) * w in int32, which never overflows
//   real:     z = fma(float(acc), scale[o], bias[o])     (Int8Channels)
//   residual: z = fma(float(v - y_zero), y_scale, z), or z + y of a float one
//   z = activation(z)
//   result:   z, or u = int(round_half_even(clamp(z * factor, low - zero,
//             high - zero))) + zero
// with every named operation rounded to float32 once. NaN becomes `low`.
#ifndef PD_LIBCORE_OPS_QUANTIZE_INT8_H_
#define PD_LIBCORE_OPS_QUANTIZE_INT8_H_

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/conv/window.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// How an input is read: attrs "<slot>_scale" and "<slot>_zero" of the op; and
/// the greatest u that there is, "<slot>_high".
struct Int8In {
  float scale = 1;
  int32_t zero = 0;
  int32_t high = 255;
};

/// How the output is written: attrs out_factor, out_zero, out_low, out_high. A
/// factor of 0 stands for an output of float32.
struct Int8Out {
  float factor = 0;
  int32_t zero = 0, low = 0, high = 255;

  bool quantized() const { return factor != 0; }
  uint8_t operator()(float z) const {
    const float least = static_cast<float>(low - zero);
    const float most = static_cast<float>(high - zero);
    float v = z * factor;
    v = v > least ? v : least;
    v = v < most ? v : most;
    return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(v)) + zero);
  }
};

/// Attrs activation, act_a, act_b, act_c.
struct Int8Act {
  enum class Kind { kNone, kRelu, kClip, kLeaky, kHardSwish, kHardSigmoid };
  Kind kind = Kind::kNone;
  float a = 0, b = 0, c = 0;

  float operator()(float z) const {
    switch (kind) {
      case Kind::kNone:
        return z;
      case Kind::kRelu:
        return z > 0 ? z : 0;
      case Kind::kClip:  // to [a, b]
        return Clip(z, a, b);
      case Kind::kLeaky:  // z < 0 is multiplied by a
        return z > 0 ? z : z * a;
      case Kind::kHardSwish:  // z * clip(z + c, 0, a) * b
        return z * Clip(z + c, 0, a) * b;
      case Kind::kHardSigmoid:  // clip(a z + b, 0, 1)
        return Clip(std::fma(z, a, b), 0, 1);
    }
    return z;
  }
  static float Clip(float z, float low, float high) {
    z = z > low ? z : low;
    return z < high ? z : high;
  }
};

/// The operations that follow the sum of products.
struct Int8Epilogue {
  Int8Act act;
  Int8Out out;
  Int8In y;  ///< of a quantized residual
};

Int8In ReadInt8In(const OpDesc& op, const char* slot);
/// InvalidArgument: numbers that cannot be meant.
absl::StatusOr<Int8Epilogue> ReadInt8Epilogue(const OpDesc& op);
/// The dtype that the op's output has.
DType Int8OutDType(const OpDesc& op);

/// The weights of a product: values[o][tap][channel of the group], scales of
/// each output channel o (the tensor's own, not the input's).
struct Int8Weights {
  int64_t outputs = 0, taps = 1, channels = 0;
  std::vector<int8_t> values;
  std::vector<float> scales;

  /// The greatest sum of an output channel's |w|.
  int64_t LargestSum() const;
};

/// Reads 'Filter' of a convolution ([O, I, taps...]), of a transposed one
/// ([I, O, taps...]) or of a product ([I, O], or [O, I] where trans_y), which
/// must be constant, with attrs and inputs:
///   Filter       int8, uint8, or floats that are such integers; or, where attr
///                filter_floats, numbers to be quantized to 8 bits
///   FilterScale  of one number or one for each channel along filter_axis;
///                a weight w stands for w * FilterScale / filter_levels.
///                Without it (filter_floats) it is max |Filter| of the channel
///   FilterZero   subtracted from Filter; likewise
/// Integers without a FilterScale have 1.
/// InvalidArgument where a weight is none of [-128, 127].
absl::StatusOr<Int8Weights> ReadInt8Weights(BindContext* context);
/// The same of tensors, for those who ask before there is an op to bind.
absl::StatusOr<Int8Weights> ReadInt8Weights(const OpDesc& op,
                                            const Tensor& filter,
                                            const Tensor* scale,
                                            const Tensor* zero);

/// The factor and the addend of a sum, for each output channel: the
/// input's scale and the weights', 'Bias' (or 0), and a batch normalisation of
/// NormScale, NormBias, NormMean, NormVariance with attr norm_epsilon:
///   k = NormScale / sqrt(NormVariance + norm_epsilon)
///   scale * k and Bias * k + NormBias - NormMean * k, in float64 until the
///   end.
struct Int8Channels {
  std::vector<float> scales, bias;
};
absl::StatusOr<Int8Channels> ReadInt8Channels(BindContext* context,
                                              const Int8Weights& weights);
/// The slots that it reads, and the same of tensors by slot.
const std::vector<const char*>& Int8ChannelSlots();
absl::StatusOr<Int8Channels> ReadInt8Channels(
    const OpDesc& op, const std::map<std::string, const Tensor*>& tensors,
    const Int8Weights& weights);

/// An int8_matmul: out[rows, columns] = x[rows, depth] * Filter.
struct Int8Product {
  int64_t rows = 0, depth = 0, columns = 0;
  Shape shape;  ///< of the output
};
absl::StatusOr<Int8Product> ReadInt8Product(const OpDesc& op, const Shape& x,
                                            const Shape& filter);

/// Adds the slots and attrs above to a schema.
void AddInt8Input(const char* slot, OpDef* def);
void AddInt8Output(OpDef* def);
void AddInt8Weights(OpDef* def);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_QUANTIZE_INT8_H_
