// SPDX-License-Identifier: Apache-2.0
// Every function of libcore/device/cuda_driver.h, cublaslt.h, cudnn.h and
// cupti.h has the exported name and the parameters that NVIDIA's headers give
// it, as far as a call can tell; and where the libraries are installed, they
// take our descriptors, which needs no GPU.
#include <cublasLt.h>
#include <cuda.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/device/cublaslt.h"
#include "libcore/device/cuda_driver.h"
#include "libcore/device/cuda_libraries.h"
#include "libcore/device/cudnn.h"
#include "libcore/device/cudnn_graph.h"
#include "libcore/device/cupti.h"
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#if __has_include(<cupti.h>)
#include <cupti.h>
#endif

namespace pd {
namespace {

// The type a call passes: enumerators as int, every pointer as one, flags too.
template <typename T>
using Passed = std::conditional_t<
    std::is_pointer_v<T>, void*,
    typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                std::common_type<T>>::type>;
template <typename T>
using Abi =
    std::conditional_t<std::is_integral_v<Passed<T>>,
                       std::integral_constant<size_t, sizeof(T)>, Passed<T>>;

template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
struct SameCall<R (*)(P...), S (*)(Q...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(P) != sizeof...(Q))
      return false;
    else
      return (std::is_same_v<Abi<P>, Abi<Q>> && ...) &&
             std::is_same_v<Abi<R>, Abi<S>>;
  }();
};

// cuda.h names the function of today, "cuMemAlloc", by a macro for the one that
// is exported, "cuMemAlloc_v2".
#define PD_TEXT_OF(x) #x
#define PD_TEXT(x) PD_TEXT_OF(x)
#define PD_SAME(member, function)                                          \
  static_assert(                                                           \
      SameCall<decltype(CudaDriver::member), decltype(&function)>::value); \
  EXPECT_STREQ(NameOf(#member), PD_TEXT(function))

const char* NameOf(const std::string& member) {
#define PD_NAME(m, name, parameters) \
  if (member == #m) return name;
  PD_CUDA_DRIVER(PD_NAME)
#undef PD_NAME
  return "";
}

TEST(CudaDeclarations, Devices) {
  PD_SAME(GetErrorName, cuGetErrorName);
  PD_SAME(GetErrorString, cuGetErrorString);
  PD_SAME(Init, cuInit);
  PD_SAME(DriverGetVersion, cuDriverGetVersion);
  PD_SAME(DeviceGetCount, cuDeviceGetCount);
  PD_SAME(DeviceGet, cuDeviceGet);
  PD_SAME(DeviceGetName, cuDeviceGetName);
  PD_SAME(DeviceTotalMem, cuDeviceTotalMem);
  PD_SAME(DeviceGetAttribute, cuDeviceGetAttribute);
  PD_SAME(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
  PD_SAME(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease);
  PD_SAME(CtxSetCurrent, cuCtxSetCurrent);
}

TEST(CudaDeclarations, Memory) {
  PD_SAME(MemGetInfo, cuMemGetInfo);
  PD_SAME(MemAlloc, cuMemAlloc);
  PD_SAME(MemFree, cuMemFree);
  PD_SAME(MemAllocHost, cuMemAllocHost);
  PD_SAME(MemFreeHost, cuMemFreeHost);
  PD_SAME(MemcpyHtoDAsync, cuMemcpyHtoDAsync);
  PD_SAME(MemcpyDtoHAsync, cuMemcpyDtoHAsync);
  PD_SAME(MemcpyDtoDAsync, cuMemcpyDtoDAsync);
  PD_SAME(MemsetD8Async, cuMemsetD8Async);
}

TEST(CudaDeclarations, Work) {
  PD_SAME(StreamCreate, cuStreamCreate);
  PD_SAME(StreamDestroy, cuStreamDestroy);
  PD_SAME(StreamSynchronize, cuStreamSynchronize);
  PD_SAME(StreamWaitEvent, cuStreamWaitEvent);
  PD_SAME(EventCreate, cuEventCreate);
  PD_SAME(EventDestroy, cuEventDestroy);
  PD_SAME(EventRecord, cuEventRecord);
  PD_SAME(EventSynchronize, cuEventSynchronize);
  PD_SAME(EventElapsedTime, cuEventElapsedTime);
  PD_SAME(ModuleLoadData, cuModuleLoadData);
  PD_SAME(ModuleUnload, cuModuleUnload);
  PD_SAME(ModuleGetFunction, cuModuleGetFunction);
  PD_SAME(LaunchKernel, cuLaunchKernel);
  PD_SAME(StreamBeginCapture, cuStreamBeginCapture);
  PD_SAME(StreamEndCapture, cuStreamEndCapture);
  PD_SAME(GraphInstantiate, cuGraphInstantiate);
  PD_SAME(GraphLaunch, cuGraphLaunch);
  PD_SAME(GraphExecDestroy, cuGraphExecDestroy);
  PD_SAME(GraphDestroy, cuGraphDestroy);
}

TEST(CudaDeclarations, Numbers) {
  EXPECT_EQ(kCudaSuccess, CUDA_SUCCESS);
  EXPECT_EQ(kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kCudaNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kCudaMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(kCudaCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kCudaCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kCudaStreamNonBlocking,
            static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(kCudaCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

#define PD_SAME_LT(member)                           \
  static_assert(SameCall<decltype(CublasLt::member), \
                         decltype(&cublasLt##member)>::value)

TEST(CudaDeclarations, Products) {
#define PD_EACH(member, parameters) PD_SAME_LT(member);
  PD_CUBLASLT(PD_EACH)
#undef PD_EACH
  EXPECT_EQ(sizeof(CublasAlgo), sizeof(cublasLtMatmulAlgo_t));
  EXPECT_EQ(sizeof(CublasHeuristic), sizeof(cublasLtMatmulHeuristicResult_t));
  EXPECT_EQ(offsetof(CublasHeuristic, state),
            offsetof(cublasLtMatmulHeuristicResult_t, state));
  EXPECT_EQ(kCublasFloat32, CUDA_R_32F);
  EXPECT_EQ(kCublasFloat64, CUDA_R_64F);
  EXPECT_EQ(kCublasFloat16, CUDA_R_16F);
  EXPECT_EQ(kCublasBFloat16, CUDA_R_16BF);
  EXPECT_EQ(kCublasInt8, CUDA_R_8I);
  EXPECT_EQ(kCublasInt32, CUDA_R_32I);
  EXPECT_EQ(kCublasCompute32, CUBLAS_COMPUTE_32F);
  EXPECT_EQ(kCublasCompute64, CUBLAS_COMPUTE_64F);
  EXPECT_EQ(kCublasComputeInt32, CUBLAS_COMPUTE_32I);
  EXPECT_EQ(kCublasComputeTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
  EXPECT_EQ(kCublasTransA, CUBLASLT_MATMUL_DESC_TRANSA);
  EXPECT_EQ(kCublasTransB, CUBLASLT_MATMUL_DESC_TRANSB);
  EXPECT_EQ(kCublasBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
  EXPECT_EQ(kCublasBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
  EXPECT_EQ(kCublasMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
  EXPECT_EQ(kCublasEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
  EXPECT_EQ(kCublasBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
  EXPECT_EQ(kCublasEpilogueBias, CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(kCublasEpilogueReluBias, CUBLASLT_EPILOGUE_RELU_BIAS);
  EXPECT_EQ(kCublasAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
  EXPECT_EQ(kCublasAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
  EXPECT_EQ(kCublasAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
  EXPECT_EQ(kCublasAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
  EXPECT_EQ(0, CUBLAS_OP_N);
  EXPECT_EQ(1, CUBLAS_OP_T);
}

TEST(CudaDeclarations, RealCublasLtTakesTheDescriptors) {
  const auto library = OpenCublasLt();
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  CublasLt lt;
#define PD_BIND(member, parameters) \
  ASSERT_TRUE(library->Bind("cublasLt" #member, &lt.member).ok());
  PD_CUBLASLT(PD_BIND)
#undef PD_BIND
  void *operation = nullptr, *layout = nullptr, *preference = nullptr;
  ASSERT_EQ(lt.MatmulDescCreate(&operation, kCublasComputeTf32, kCublasFloat32),
            0);
  const int32_t transposed = 1, batch = 3;
  const int64_t stride = 12;
  const size_t most = 1 << 20;
  EXPECT_EQ(lt.MatmulDescSetAttribute(operation, kCublasTransA, &transposed,
                                      sizeof(transposed)),
            0);
  EXPECT_EQ(lt.MatmulDescSetAttribute(operation, kCublasTransB, &transposed,
                                      sizeof(transposed)),
            0);
  ASSERT_EQ(lt.MatrixLayoutCreate(&layout, kCublasFloat32, 4, 3, 4), 0);
  EXPECT_EQ(lt.MatrixLayoutSetAttribute(layout, kCublasBatchCount, &batch,
                                        sizeof(batch)),
            0);
  EXPECT_EQ(lt.MatrixLayoutSetAttribute(layout, kCublasBatchStride, &stride,
                                        sizeof(stride)),
            0);
  ASSERT_EQ(lt.MatmulPreferenceCreate(&preference), 0);
  EXPECT_EQ(lt.MatmulPreferenceSetAttribute(preference, kCublasMaxWorkspace,
                                            &most, sizeof(most)),
            0);
  EXPECT_EQ(lt.MatmulPreferenceDestroy(preference), 0);
  EXPECT_EQ(lt.MatrixLayoutDestroy(layout), 0);
  EXPECT_EQ(lt.MatmulDescDestroy(operation), 0);
}

#ifdef CUDNN_MAJOR
TEST(CudaDeclarations, Cudnn) {
#define PD_EACH(member, parameters) \
  static_assert(                    \
      SameCall<decltype(Cudnn::member), decltype(&cudnn##member)>::value);
  PD_CUDNN(PD_EACH)
#undef PD_EACH
  EXPECT_EQ(kCudnnFloat32, CUDNN_DATA_FLOAT);
  EXPECT_EQ(kCudnnFloat16, CUDNN_DATA_HALF);
  EXPECT_EQ(kCudnnBFloat16, CUDNN_DATA_BFLOAT16);
  EXPECT_EQ(kCudnnCrossCorrelation, CUDNN_CROSS_CORRELATION);
  EXPECT_EQ(0, CUDNN_STATUS_SUCCESS);
}

TEST(CudaDeclarations, Graphs) {
#define PD_EACH(member, parameters)                    \
  static_assert(SameCall<decltype(CudnnGraph::member), \
                         decltype(&cudnnBackend##member)>::value);
  PD_CUDNN_GRAPH(PD_EACH)
#undef PD_EACH
  using namespace cudnn_graph;  // NOLINT: its numbers
  const std::pair<int, int> pairs[] = {
      {kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
      {kConvolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR},
      {kEngine, CUDNN_BACKEND_ENGINE_DESCRIPTOR},
      {kEngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
      {kHeuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR},
      {kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR},
      {kConvolutionForward,
       CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR},
      {kConvolutionBackwardData,
       CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR},
      {kConvolutionBackwardFilter,
       CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR},
      {kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR},
      {kOperationGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
      {kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR},
      {kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
      {kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR},
      {kMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR},
      {kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR},
      {kReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR},
      {kTypeReduction, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
      {kTypeHandle, CUDNN_TYPE_HANDLE},
      {kTypeDataType, CUDNN_TYPE_DATA_TYPE},
      {kTypeBoolean, CUDNN_TYPE_BOOLEAN},
      {kTypeInt64, CUDNN_TYPE_INT64},
      {kTypeFloat, CUDNN_TYPE_FLOAT},
      {kTypeDouble, CUDNN_TYPE_DOUBLE},
      {kTypePointer, CUDNN_TYPE_VOID_PTR},
      {kTypeConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE},
      {kTypeHeuristicsMode, CUDNN_TYPE_HEUR_MODE},
      {kTypeNumericalNote, CUDNN_TYPE_NUMERICAL_NOTE},
      {kTypeBehaviorNote, CUDNN_TYPE_BEHAVIOR_NOTE},
      {kTypePointwiseMode, CUDNN_TYPE_POINTWISE_MODE},
      {kTypeDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR}};
  for (size_t i = 0; i < std::size(pairs); ++i)
    EXPECT_EQ(pairs[i].first, pairs[i].second) << i;
}

TEST(CudaDeclarations, AttributesOfConvolutions) {
  using namespace cudnn_graph;  // NOLINT: its numbers
  const std::pair<int, int> pairs[] = {
      {kConvolutionType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE},
      {kConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE},
      {kConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS},
      {kConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES},
      {kConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS},
      {kConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS},
      {kConvolutionDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS},
      {kForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA},
      {kForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {kForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC},
      {kForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W},
      {kForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X},
      {kForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
      {kDataAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA},
      {kDataBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {kDataConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC},
      {kDataW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W},
      {kDataDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX},
      {kDataDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
      {kFilterAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA},
      {kFilterBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
      {kFilterConvolution,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC},
      {kFilterDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW},
      {kFilterX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X},
      {kFilterDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  for (size_t i = 0; i < std::size(pairs); ++i)
    EXPECT_EQ(pairs[i].first, pairs[i].second) << i;
}

TEST(CudaDeclarations, AttributesOfGraphs) {
  using namespace cudnn_graph;  // NOLINT: its numbers
  const std::pair<int, int> pairs[] = {
      {kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE},
      {kPointwiseMathType, CUDNN_ATTR_POINTWISE_MATH_PREC},
      {kPointwiseReluUpper, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP},
      {kHeuristicsMode, CUDNN_ATTR_ENGINEHEUR_MODE},
      {kHeuristicsGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH},
      {kHeuristicsResults, CUDNN_ATTR_ENGINEHEUR_RESULTS},
      {kConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE},
      {kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE},
      {kPlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG},
      {kPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE},
      {kOperationPointwise, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR},
      {kOperationX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC},
      {kOperationB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC},
      {kOperationY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC},
      {kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE},
      {kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS},
      {kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT},
      {kTensorType, CUDNN_ATTR_TENSOR_DATA_TYPE},
      {kTensorDims, CUDNN_ATTR_TENSOR_DIMENSIONS},
      {kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES},
      {kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID},
      {kTensorIsVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL},
      {kTensorIsByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE},
      {kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS},
      {kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS},
      {kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE},
      {kEngineNumber, CUDNN_ATTR_ENGINE_GLOBAL_INDEX},
      {kEngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE},
      {kEngineBehavior, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE},
      {kMatmulType, CUDNN_ATTR_MATMUL_COMP_TYPE},
      {kMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC},
      {kMatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
      {kMatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC},
      {kOperationMatmul, CUDNN_ATTR_OPERATION_MATMUL_DESC},
      {kReductionMode, CUDNN_ATTR_REDUCTION_OPERATOR},
      {kReductionType, CUDNN_ATTR_REDUCTION_COMP_TYPE},
      {kReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC},
      {kReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC},
      {kOperationReduction, CUDNN_ATTR_OPERATION_REDUCTION_DESC},
      {kReduceAdd, CUDNN_REDUCE_TENSOR_ADD},
      {kReduceMax, CUDNN_REDUCE_TENSOR_MAX},
      {kMultiply, CUDNN_POINTWISE_MUL},
      {kDivide, CUDNN_POINTWISE_DIV},
      {kSubtract, CUDNN_POINTWISE_SUB},
      {kExp, CUDNN_POINTWISE_EXP},
      {kAdd, CUDNN_POINTWISE_ADD},
      {kReluForward, CUDNN_POINTWISE_RELU_FWD},
      {kModeA, CUDNN_HEUR_MODE_A},
      {kModeFallback, CUDNN_HEUR_MODE_FALLBACK},
      {kBehaviorCompiles, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION},
      {kNoteTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      {kNoteDownConvert, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
      {kNoteReducedReduction, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
      {kNoteNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}};
  for (size_t i = 0; i < std::size(pairs); ++i)
    EXPECT_EQ(pairs[i].first, pairs[i].second) << i;
  EXPECT_GE(kNotes, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  EXPECT_GE(kBehaviors, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
}
#endif

#ifdef CUPTI_API_VERSION
#define PD_SAME_FIELD(Ours, ours, Theirs, theirs)            \
  EXPECT_EQ(offsetof(Ours, ours), offsetof(Theirs, theirs)); \
  EXPECT_EQ(sizeof(Ours::ours), sizeof(Theirs::theirs))

template <typename Kernel>
void SameKernel() {
  PD_SAME_FIELD(CuptiKernelRecord, kind, Kernel, kind);
  PD_SAME_FIELD(CuptiKernelRecord, registers, Kernel, registersPerThread);
  PD_SAME_FIELD(CuptiKernelRecord, start, Kernel, start);
  PD_SAME_FIELD(CuptiKernelRecord, end, Kernel, end);
  PD_SAME_FIELD(CuptiKernelRecord, device, Kernel, deviceId);
  PD_SAME_FIELD(CuptiKernelRecord, stream, Kernel, streamId);
  EXPECT_EQ(offsetof(CuptiKernelRecord, grid), offsetof(Kernel, gridX));
  EXPECT_EQ(offsetof(CuptiKernelRecord, grid[2]), offsetof(Kernel, gridZ));
  EXPECT_EQ(offsetof(CuptiKernelRecord, block), offsetof(Kernel, blockX));
  EXPECT_EQ(offsetof(CuptiKernelRecord, block[2]), offsetof(Kernel, blockZ));
  PD_SAME_FIELD(CuptiKernelRecord, static_shared, Kernel, staticSharedMemory);
  PD_SAME_FIELD(CuptiKernelRecord, dynamic_shared, Kernel, dynamicSharedMemory);
  PD_SAME_FIELD(CuptiKernelRecord, correlation, Kernel, correlationId);
  PD_SAME_FIELD(CuptiKernelRecord, name, Kernel, name);
}

template <typename Theirs, typename Ours>
void SameMove() {
  PD_SAME_FIELD(Ours, kind, Theirs, kind);
  PD_SAME_FIELD(Ours, bytes, Theirs, bytes);
  PD_SAME_FIELD(Ours, start, Theirs, start);
  PD_SAME_FIELD(Ours, end, Theirs, end);
  PD_SAME_FIELD(Ours, device, Theirs, deviceId);
  PD_SAME_FIELD(Ours, stream, Theirs, streamId);
  PD_SAME_FIELD(Ours, correlation, Theirs, correlationId);
}

// CUPTI records of CUDA 12 and of 13.
TEST(CudaDeclarations, Activities) {
#define PD_EACH(member, parameters) \
  static_assert(                    \
      SameCall<decltype(Cupti::member), decltype(&cupti##member)>::value);
  PD_CUPTI(PD_EACH)
#undef PD_EACH
  SameKernel<CUpti_ActivityKernel8>();
  SameKernel<CUpti_ActivityKernel9>();
#if CUPTI_API_VERSION >= 130000
  SameKernel<CUpti_ActivityKernel10>();
  SameMove<CUpti_ActivityMemcpy6, CuptiMemcpyRecord>();
  PD_SAME_FIELD(CuptiMemcpyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
#endif
  SameMove<CUpti_ActivityMemcpy5, CuptiMemcpyRecord>();
  PD_SAME_FIELD(CuptiMemcpyRecord, copy_kind, CUpti_ActivityMemcpy5, copyKind);
  SameMove<CUpti_ActivityMemset4, CuptiMemsetRecord>();
  using Api = CUpti_ActivityAPI;
  PD_SAME_FIELD(CuptiApiRecord, callback, Api, cbid);
  PD_SAME_FIELD(CuptiApiRecord, start, Api, start);
  PD_SAME_FIELD(CuptiApiRecord, end, Api, end);
  PD_SAME_FIELD(CuptiApiRecord, correlation, Api, correlationId);
  using External = CUpti_ActivityExternalCorrelation;
  PD_SAME_FIELD(CuptiExternalRecord, external_kind, External, externalKind);
  PD_SAME_FIELD(CuptiExternalRecord, external_id, External, externalId);
  PD_SAME_FIELD(CuptiExternalRecord, correlation, External, correlationId);
}

TEST(CudaDeclarations, NumbersOfCupti) {
  EXPECT_EQ(kCuptiSuccess, CUPTI_SUCCESS);
  EXPECT_EQ(kCuptiMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(kCuptiMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_EQ(kCuptiMemset, CUPTI_ACTIVITY_KIND_MEMSET);
  EXPECT_EQ(kCuptiDriver, CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(kCuptiRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
  EXPECT_EQ(kCuptiKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(kCuptiExternalCorrelation,
            CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  EXPECT_EQ(kCuptiDriverApi, CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(kCuptiRuntimeApi, CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_EQ(kCuptiCustom0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);
  EXPECT_EQ(1, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  EXPECT_EQ(2, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  EXPECT_EQ(8, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD);
  EXPECT_EQ(10, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
}
#endif

// Of the real library, which needs no GPU to tell its names.
TEST(CudaDeclarations, RealCuptiHasTheFunctions) {
  const auto cupti = LoadCupti();
  if (!cupti.ok()) GTEST_SKIP() << cupti.status().message();
  const char* name = nullptr;
  ASSERT_EQ((*cupti)->GetCallbackName(kCuptiDriverApi, 307, &name), 0);
  EXPECT_STREQ(name, "cuLaunchKernel");
  EXPECT_EQ((*cupti)->Check(35, "what").message(),
            absl::StrCat("what of CUPTI in '", (*cupti)->path,
                         "': CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"));
}

}  // namespace
}  // namespace pd
