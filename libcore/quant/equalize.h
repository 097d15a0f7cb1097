// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation (Nagel, van Baalen, Blankevoort, Welling, "Data-Free
// Quantization through Weight Equalization and Bias Correction", ICCV 2019).
// One scale has to do for all channels of an activation, and for all inputs of
// an output's weights. Where channel i of what a layer gives is divided by s_i
// and what reads it is multiplied by s_i, the network computes the same.
#ifndef PD_LIBCORE_QUANT_EQUALIZE_H_
#define PD_LIBCORE_QUANT_EQUALIZE_H_

#include "libcore/deploy/inference_model.h"

namespace pd {

/// Equalises every pair of layers (conv2d, depthwise_conv2d, mul, matmul_v2
/// with a weight) between which each channel passes on its own and in
/// proportion: an added bias, relu, leaky_relu, pool2d, dropout, flatten,
/// squeeze and reshapes that keep channels apart. With r_i the greatest weight
/// of channel i in the first layer and t_i that of its readers in the second,
/// s_i = sqrt(r_i / t_i), so that both become sqrt(r_i t_i). A depthwise layer
/// between two others belongs to both pairs; all pairs are gone through until
/// nothing changes by more than 1 %. relu6, hard_swish and the like bend at a
/// fixed size: what they divide is left alone. Batch norms in between are in
/// the way: fold them first. The ops are normalized (NormalizeOps). Gives the
/// number of pairs.
int EqualizeLayers(InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_EQUALIZE_H_
