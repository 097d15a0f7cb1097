// SPDX-License-Identifier: Apache-2.0
// A convolution and what follows it in one piece of work, by cuDNN's graphs:
// descriptors of tensors and operations, for which the library has an engine or
// not. The declarations are ours, as in cuda_driver.h, and tested against
// NVIDIA's.
#ifndef PD_LIBCORE_DEVICE_CUDNN_GRAPH_H_
#define PD_LIBCORE_DEVICE_CUDNN_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cudnn.h"

namespace pd {

/// output = activation(convolution + residual + bias)
struct ConvolutionTail {
  bool residual = false;  ///< of the output's extents
  bool bias = false;      ///< a number for each channel
  bool relu = false;
  float top = 0;  ///< where relu's results end; 0: nowhere
};

/// Where the parts of one lie; what the tail does not have is not read.
struct ConvolutionData {
  const void *input, *filter, *residual, *bias;
  void* output;
};

/// A convolution with its tail and the engine that was chosen for it.
class BoundGraph {
 public:
  virtual ~BoundGraph() = default;
  /// Bytes of device memory that Run wants, 256-byte aligned.
  virtual size_t workspace() const = 0;
  virtual absl::Status Run(const ConvolutionData& data,
                           void* workspace) const = 0;
};

/// Takes the engine that cuDNN recommends first of those that fit and compute
/// as the convolution says (`exhaustive` is for convolutions alone).
/// Unavailable when the library is missing; Unimplemented when it has no
/// engine for the whole.
absl::StatusOr<std::shared_ptr<const BoundGraph>> BindConvolutionGraph(
    CudaDevice* device, const Convolution& convolution,
    const ConvolutionTail& tail);

// Numbers of cudnn_graph.h: kinds of descriptors, their attributes, and the
// attributes' types.
namespace cudnn_graph {
inline constexpr int kPointwise = 0, kConvolution = 1, kEngine = 2,
                     kEngineConfig = 3, kHeuristics = 4, kPlan = 5,
                     kConvolutionForward = 10, kPointwiseOperation = 13,
                     kOperationGraph = 15, kVariantPack = 16, kTensor = 17,
                     kMatmul = 18, kMatmulOperation = 19, kReduction = 21,
                     kReductionOperation = 22;
inline constexpr int kTypeHandle = 0, kTypeDataType = 1, kTypeBoolean = 2,
                     kTypeInt64 = 3, kTypeFloat = 4, kTypeDouble = 5,
                     kTypePointer = 6, kTypeConvolutionMode = 7,
                     kTypeHeuristicsMode = 8, kTypeNumericalNote = 11,
                     kTypePointwiseMode = 14, kTypeDescriptor = 15,
                     kTypeReduction = 18;
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
inline constexpr int kOperationPointwise = 750, kOperationX = 751,
                     kOperationB = 752, kOperationY = 753;
inline constexpr int kGraphHandle = 800, kGraphOperations = 801;
inline constexpr int kTensorAlignment = 900, kTensorType = 901,
                     kTensorDims = 902, kTensorStrides = 903, kTensorId = 906,
                     kTensorIsVirtual = 907, kTensorIsByValue = 908;
inline constexpr int kPackIds = 1000, kPackPointers = 1001,
                     kPackWorkspace = 1003;
inline constexpr int kEngineNotes = 1303;
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
