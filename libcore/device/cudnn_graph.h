// SPDX-License-Identifier: Apache-2.0
// The functions and numbers of cuDNN's graph API: descriptors of tensors and
// operations, for which the library has an engine or not. The declarations are
// ours, as in cuda_driver.h, and tested against NVIDIA's.
#ifndef PD_LIBCORE_DEVICE_CUDNN_GRAPH_H_
#define PD_LIBCORE_DEVICE_CUDNN_GRAPH_H_

#include <cstdint>

#include "libcore/device/cudnn.h"

namespace pd {

// Numbers of cudnn_graph.h: kinds of descriptors, their attributes, and the
// attributes' types.
namespace cudnn_graph {
inline constexpr int kPointwise = 0, kConvolution = 1, kEngine = 2,
                     kEngineConfig = 3, kHeuristics = 4, kPlan = 5,
                     kConvolutionForward = 10, kConvolutionBackwardFilter = 11,
                     kConvolutionBackwardData = 12, kPointwiseOperation = 13,
                     kOperationGraph = 15, kVariantPack = 16, kTensor = 17,
                     kMatmul = 18, kMatmulOperation = 19, kReduction = 21,
                     kReductionOperation = 22;
inline constexpr int kTypeHandle = 0, kTypeDataType = 1, kTypeBoolean = 2,
                     kTypeInt64 = 3, kTypeFloat = 4, kTypeDouble = 5,
                     kTypePointer = 6, kTypeConvolutionMode = 7,
                     kTypeHeuristicsMode = 8, kTypeNumericalNote = 11,
                     kTypePointwiseMode = 14, kTypeDescriptor = 15,
                     kTypeReduction = 18, kTypeBehaviorNote = 19;
inline constexpr int kPointwiseMode = 0, kPointwiseMathType = 1,
                     kPointwiseReluUpper = 4;
inline constexpr int kConvolutionType = 100, kConvolutionMode = 101,
                     kConvolutionDilations = 102, kConvolutionStrides = 103,
                     kConvolutionPostPaddings = 104,
                     kConvolutionPrePaddings = 105, kConvolutionDims = 106;
inline constexpr int kHeuristicsMode = 200, kHeuristicsGraph = 201,
                     kHeuristicsResults = 202;
inline constexpr int kConfigEngine = 300;
inline constexpr int kPlanHandle = 400, kPlanConfig = 401, kPlanWorkspace = 402;
inline constexpr int kForwardAlpha = 700, kForwardBeta = 701,
                     kForwardConvolution = 702, kForwardW = 703,
                     kForwardX = 704, kForwardY = 705;
inline constexpr int kDataAlpha = 706, kDataBeta = 707, kDataConvolution = 708,
                     kDataW = 709, kDataDx = 710, kDataDy = 711;
inline constexpr int kFilterAlpha = 712, kFilterBeta = 713,
                     kFilterConvolution = 714, kFilterDw = 715, kFilterX = 716,
                     kFilterDy = 717;
inline constexpr int kOperationPointwise = 750, kOperationX = 751,
                     kOperationB = 752, kOperationY = 753;
inline constexpr int kGraphHandle = 800, kGraphOperations = 801;
inline constexpr int kTensorAlignment = 900, kTensorType = 901,
                     kTensorDims = 902, kTensorStrides = 903, kTensorId = 906,
                     kTensorIsVirtual = 907, kTensorIsByValue = 908;
inline constexpr int kPackIds = 1000, kPackPointers = 1001,
                     kPackWorkspace = 1003;
inline constexpr int kEngineNumber = 1301, kEngineNotes = 1303,
                     kEngineBehavior = 1305;
inline constexpr int kMatmulType = 1500, kMatmulA = 1520, kMatmulB = 1521,
                     kMatmulC = 1522, kOperationMatmul = 1523;
inline constexpr int kReductionMode = 1600, kReductionType = 1601,
                     kReductionX = 1610, kReductionY = 1611,
                     kOperationReduction = 1612;
inline constexpr int kAdd = 0, kMultiply = 1, kDivide = 6, kSubtract = 9,
                     kExp = 13, kReluForward = 100;
inline constexpr int kReduceAdd = 0, kReduceMax = 3;
inline constexpr int kModeA = 3, kModeFallback = 2;
inline constexpr int kNoteTensorCore = 0, kNoteDownConvert = 1,
                     kNoteReducedReduction = 2, kNoteNondeterministic = 4,
                     kNotes = 10;
inline constexpr int kBehaviorCompiles = 0, kBehaviors = 5;
}  // namespace cudnn_graph

// PD_CUDNN_GRAPH(X): X(member, parameters); the exported name is
// "cudnnBackend" and the member.
#define PD_CUDNN_GRAPH(X)                                      \
  X(CreateDescriptor, (int, void**))                           \
  X(DestroyDescriptor, (void*))                                \
  X(Finalize, (void*))                                         \
  X(SetAttribute, (void*, int, int, int64_t, const void*))     \
  X(GetAttribute, (void*, int, int, int64_t, int64_t*, void*)) \
  X(Execute, (void*, void*, void*))

struct CudnnGraph {
#define PD_MEMBER(member, parameters) CudnnStatus(*member) parameters = nullptr;
  PD_CUDNN_GRAPH(PD_MEMBER)
#undef PD_MEMBER
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDNN_GRAPH_H_
