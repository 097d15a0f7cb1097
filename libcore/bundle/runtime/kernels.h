// SPDX-License-Identifier: Apache-2.0
// All kernels, in alphabetical order. A table (kernel.h) refers to those that a
// program is to hold; no other is linked.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_KERNELS_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_KERNELS_H_

#include "libcore/bundle/runtime/kernel.h"

namespace pd_run {

extern const Kernel kArg;
extern const Kernel kBinary;
extern const Kernel kCast;
extern const Kernel kConcat;
extern const Kernel kConv;
extern const Kernel kConvTranspose;
extern const Kernel kCumsum;
extern const Kernel kDepthwiseConv;
extern const Kernel kExpand;
extern const Kernel kFill;
extern const Kernel kGather;
extern const Kernel kGroupNorm;
extern const Kernel kLayerNorm;
extern const Kernel kLinear;
extern const Kernel kMatmul;
extern const Kernel kPad;
extern const Kernel kPool;
extern const Kernel kRange;
extern const Kernel kRecurrence;
extern const Kernel kReduce;
extern const Kernel kReshape;
extern const Kernel kResize;
extern const Kernel kScale;
extern const Kernel kShape;
extern const Kernel kSlice;
extern const Kernel kSoftmax;
extern const Kernel kSplit;
extern const Kernel kTranspose;
extern const Kernel kUnary;
extern const Kernel kWhere;

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_KERNELS_H_
