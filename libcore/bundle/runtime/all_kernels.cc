// SPDX-License-Identifier: Apache-2.0
// The table of the library libpd_run, which holds all kernels.
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {

const Kernel* const kKernels[] = {
    &kArg,           &kBinary,    &kCast,          &kConcat,     &kConv,
    &kConvTranspose, &kCumsum,    &kDepthwiseConv, &kExpand,     &kFill,
    &kGather,        &kGroupNorm, &kLayerNorm,     &kLinear,     &kMatmul,
    &kPad,           &kPool,      &kRange,         &kRecurrence, &kReduce,
    &kReshape,       &kResize,    &kScale,         &kShape,      &kSlice,
    &kSoftmax,       &kSplit,     &kTranspose,     &kUnary,      &kWhere,
    nullptr};

}  // namespace pd_run
