// SPDX-License-Identifier: Apache-2.0
// The real cuDNN, where it is, takes the parts of our graphs, and has engines
// for them: its checks of descriptors need no GPU, and its recommendations only
// a GPU's properties.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libcore/device/cuda_libraries.h"
#include "libcore/device/cudnn_convolution.h"
#include "libcore/device/cudnn_nodes.h"

namespace pd {
namespace test_real_cudnn {

struct DestroyNode {
  CudnnStatus (*destroy)(void*);
  void operator()(void* node) const { EXPECT_EQ(destroy(node), 0); }
};

// As far as a GPU is not asked: the operations of a chain.
TEST(RealCudnn, TakesTheOperationsOfAConvolution) {
  const auto library = OpenCudnn();
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  CudnnGraph cudnn;
#define PD_BIND(member, parameters) \
  ASSERT_TRUE(library->Bind("cudnnBackend" #member, &cudnn.member).ok());
  PD_CUDNN_GRAPH(PD_BIND)
#undef PD_BIND
  using namespace cudnn_graph;  // NOLINT: its numbers
  std::vector<std::unique_ptr<void, DestroyNode>> nodes;
  const auto make = [&](int kind) {
    void* made = nullptr;
    EXPECT_EQ(cudnn.CreateDescriptor(kind, &made), 0) << kind;
    nodes.emplace_back(made, DestroyNode{cudnn.DestroyDescriptor});
    return made;
  };
  const auto set = [&](void* to, int attribute, int type, auto value) {
    EXPECT_EQ(cudnn.SetAttribute(to, attribute, type, 1, &value), 0)
        << attribute;
  };
  const auto list = [&](void* to, int attribute,
                        const std::vector<int64_t>& values) {
    EXPECT_EQ(
        cudnn.SetAttribute(to, attribute, kTypeInt64,
                           static_cast<int64_t>(values.size()), values.data()),
        0)
        << attribute;
  };
  const auto finish = [&](void* node) {
    EXPECT_EQ(cudnn.Finalize(node), 0);
    return node;
  };
  const auto tensor = [&](int64_t id, const std::vector<int64_t>& dims,
                          bool is_virtual = false) {
    void* node = make(kTensor);
    set(node, kTensorType, kTypeDataType, kCudnnFloat32);
    list(node, kTensorDims, dims);
    list(node, kTensorStrides, CudnnStrides(dims, false));
    set(node, kTensorId, kTypeInt64, id);
    set(node, kTensorAlignment, kTypeInt64, int64_t{16});
    set(node, kTensorIsVirtual, kTypeBoolean, static_cast<uint8_t>(is_virtual));
    return finish(node);
  };
  void* work = make(kConvolution);
  set(work, kConvolutionType, kTypeDataType, kCudnnFloat32);
  set(work, kConvolutionMode, kTypeConvolutionMode, kCudnnCrossCorrelation);
  set(work, kConvolutionDims, kTypeInt64, int64_t{2});
  for (const int attribute : {kConvolutionPrePaddings, kConvolutionPostPaddings,
                              kConvolutionStrides, kConvolutionDilations})
    list(work, attribute, {1, 1});
  finish(work);
  void* const y = tensor(4, {2, 8, 5, 7}, true);
  void* forward = make(kConvolutionForward);
  set(forward, kForwardX, kTypeDescriptor, tensor(1, {2, 6, 5, 7}));
  set(forward, kForwardW, kTypeDescriptor, tensor(2, {8, 6, 3, 3}));
  set(forward, kForwardY, kTypeDescriptor, y);
  set(forward, kForwardConvolution, kTypeDescriptor, work);
  set(forward, kForwardAlpha, kTypeFloat, 1.0f);
  set(forward, kForwardBeta, kTypeFloat, 0.0f);
  finish(forward);
  void* sum = make(kPointwise);
  set(sum, kPointwiseMode, kTypePointwiseMode, kAdd);
  set(sum, kPointwiseMathType, kTypeDataType, kCudnnFloat32);
  void* add = make(kPointwiseOperation);
  set(add, kOperationPointwise, kTypeDescriptor, finish(sum));
  set(add, kOperationX, kTypeDescriptor, y);
  set(add, kOperationB, kTypeDescriptor, tensor(5, {1, 8, 1, 1}));
  void* const z = tensor(6, {2, 8, 5, 7}, true);
  set(add, kOperationY, kTypeDescriptor, z);
  finish(add);
  void* relu = make(kPointwise);
  set(relu, kPointwiseMode, kTypePointwiseMode, kReluForward);
  set(relu, kPointwiseReluUpper, kTypeDouble, 6.0);
  set(relu, kPointwiseMathType, kTypeDataType, kCudnnFloat32);
  void* last = make(kPointwiseOperation);
  set(last, kOperationPointwise, kTypeDescriptor, finish(relu));
  set(last, kOperationX, kTypeDescriptor, z);
  set(last, kOperationY, kTypeDescriptor, tensor(7, {2, 8, 5, 7}));
  finish(last);
}

// The same of attention's: products of halves around a softmax of floats.
TEST(RealCudnn, TakesTheOperationsOfAttention) {
  const auto library = OpenCudnn();
  if (!library.ok()) GTEST_SKIP() << library.status().message();
  CudnnGraph cudnn;
#define PD_BIND(member, parameters) \
  ASSERT_TRUE(library->Bind("cudnnBackend" #member, &cudnn.member).ok());
  PD_CUDNN_GRAPH(PD_BIND)
#undef PD_BIND
  using namespace cudnn_graph;  // NOLINT: its numbers
  int64_t id = 0;
  const auto finish = [](CudnnNode node, const char* what) {
    const absl::Status finished = node.Finalize(what);
    EXPECT_TRUE(finished.ok()) << finished;
    return node;
  };
  const auto tensor = [&](const std::vector<int64_t>& dims, int type,
                          int attribute, std::vector<int64_t> strides = {}) {
    if (strides.empty()) strides = CudnnStrides(dims, false);
    CudnnNode node(&cudnn, kTensor);
    node.Set(kTensorType, kTypeDataType, type)
        .Set(kTensorDims, kTypeInt64, dims)
        .Set(kTensorStrides, kTypeInt64, strides)
        .Set(kTensorId, kTypeInt64, ++id)
        .Set(kTensorAlignment, kTypeInt64, int64_t{16});
    if (attribute != 0) node.Set(attribute, kTypeBoolean, uint8_t{1});
    return finish(node, "a tensor");
  };
  const auto between = [&](int64_t keys, int type = kCudnnFloat32) {
    return tensor({2, 3, 5, keys}, type, kTensorIsVirtual);
  };
  const auto multiply = [&](const CudnnNode& a, const CudnnNode& b,
                            const CudnnNode& c) {
    CudnnNode product(&cudnn, kMatmul), operation(&cudnn, kMatmulOperation);
    product.Set(kMatmulType, kTypeDataType, kCudnnFloat32);
    product = finish(product, "a product");
    operation.SetNode(kMatmulA, a).SetNode(kMatmulB, b).SetNode(kMatmulC, c);
    finish(operation.SetNode(kOperationMatmul, product), "its tensors");
  };
  const CudnnNode scores = between(7), top = between(1), less = between(7),
                  weights = between(7, kCudnnBFloat16);
  multiply(tensor({2, 3, 5, 8}, kCudnnBFloat16, 0),
           tensor({2, 3, 8, 7}, kCudnnBFloat16, 0, {168, 56, 1, 8}), scores);
  CudnnNode reduction(&cudnn, kReduction), reduce(&cudnn, kReductionOperation);
  reduction.Set(kReductionMode, kTypeReduction, kReduceMax)
      .Set(kReductionType, kTypeDataType, kCudnnFloat32);
  reduction = finish(reduction, "a reduction");
  reduce.SetNode(kReductionX, scores).SetNode(kReductionY, top);
  finish(reduce.SetNode(kOperationReduction, reduction), "its tensors");
  const auto apply = [&](int mode, const CudnnNode& b, const CudnnNode& y) {
    CudnnNode function(&cudnn, kPointwise),
        operation(&cudnn, kPointwiseOperation);
    function.Set(kPointwiseMode, kTypePointwiseMode, mode)
        .Set(kPointwiseMathType, kTypeDataType, kCudnnFloat32);
    function = finish(function, "a function");
    operation.SetNode(kOperationX, scores).SetNode(kOperationB, b);
    operation.SetNode(kOperationY, y);
    finish(operation.SetNode(kOperationPointwise, function), "its tensors");
  };
  apply(kMultiply, tensor({1, 1, 1, 1}, kCudnnFloat32, kTensorIsByValue), less);
  apply(kAdd, tensor({2, 1, 1, 7}, kCudnnBFloat16, 0), less);
  apply(kSubtract, top, less);
  apply(kDivide, top, weights);
  multiply(weights, tensor({2, 3, 7, 8}, kCudnnBFloat16, 0),
           tensor({2, 3, 5, 8}, kCudnnBFloat16, 0));
}

// The properties of an H100 as cuDNN writes them.
constexpr char kProperties[] =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
    R"("regsPerBlock":65536,"multiProcessorCount":132,"warpSize":32,)"
    R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
    R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,)"
    R"("pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,)"
    R"("totalGlobalMem":85000000000,"smClockRateKHz":1980000,)"
    R"("memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,)"
    R"("deviceVer":900,"driverVer":13000,"deviceName":"NVIDIA H100"})";

class RealConvolutions : public ::testing::Test {
 protected:
  // Numbers that the library does not need.
  static constexpr int kProperty = 38, kPropertyText = 2702,
                       kHeuristicsProperty = 204, kPlanProperty = 407,
                       kTypeChar = 24;

  void SetUp() override {
    const auto library = OpenCudnn();
    if (!library.ok()) GTEST_SKIP() << library.status().message();
#define PD_BIND(member, parameters) \
  ASSERT_TRUE(library->Bind("cudnnBackend" #member, &cudnn_.member).ok());
    PD_CUDNN_GRAPH(PD_BIND)
#undef PD_BIND
  }

  static CudnnNode Finish(CudnnNode node, const char* what) {
    const absl::Status finished = node.Finalize(what);
    EXPECT_TRUE(finished.ok()) << finished;
    return node;
  }

  CudnnNode Tensor(const std::vector<int64_t>& dims, const Convolution& c,
                   int64_t id) const {
    CudnnNode node(&cudnn_, cudnn_graph::kTensor);
    node.Set(cudnn_graph::kTensorType, cudnn_graph::kTypeDataType,
             *CudnnTypeOf(c.dtype))
        .Set(cudnn_graph::kTensorDims, cudnn_graph::kTypeInt64, dims)
        .Set(cudnn_graph::kTensorStrides, cudnn_graph::kTypeInt64,
             CudnnStrides(dims, c.channels_last))
        .Set(cudnn_graph::kTensorId, cudnn_graph::kTypeInt64, id)
        .Set(cudnn_graph::kTensorAlignment, cudnn_graph::kTypeInt64,
             int64_t{16});
    return Finish(node, "a tensor");
  }

  // The operation of a part.
  CudnnNode Operation(const Convolution& c, ConvolutionPart part) const {
    using namespace cudnn_graph;  // NOLINT: its numbers
    CudnnNode work(&cudnn_, kConvolution);
    work.Set(kConvolutionType, kTypeDataType, kCudnnFloat32)
        .Set(kConvolutionMode, kTypeConvolutionMode, kCudnnCrossCorrelation)
        .Set(kConvolutionDims, kTypeInt64,
             static_cast<int64_t>(c.paddings.size()));
    for (const auto& [attribute, list] :
         {std::pair(kConvolutionPrePaddings, &c.paddings),
          std::pair(kConvolutionPostPaddings, &c.paddings),
          std::pair(kConvolutionStrides, &c.strides),
          std::pair(kConvolutionDilations, &c.dilations)})
      work.Set(attribute, kTypeInt64, *list);
    work = Finish(work, "a convolution");
    const CudnnNode x = Tensor(c.input, c, 1), w = Tensor(c.filter, c, 2),
                    y = Tensor(c.output, c, 3);
    constexpr int kNumbers[][7] = {
        {kConvolutionForward, kForwardX, kForwardW, kForwardY,
         kForwardConvolution, kForwardAlpha, kForwardBeta},
        {kConvolutionBackwardData, kDataDx, kDataW, kDataDy, kDataConvolution,
         kDataAlpha, kDataBeta},
        {kConvolutionBackwardFilter, kFilterX, kFilterDw, kFilterDy,
         kFilterConvolution, kFilterAlpha, kFilterBeta}};
    const auto& numbers = kNumbers[static_cast<int>(part)];
    CudnnNode operation(&cudnn_, numbers[0]);
    operation.SetNode(numbers[1], x)
        .SetNode(numbers[2], w)
        .SetNode(numbers[3], y)
        .SetNode(numbers[4], work)
        .Set(numbers[5], kTypeFloat, 1.0f)
        .Set(numbers[6], kTypeFloat, 0.0f);
    return Finish(operation, "an operation");
  }

  // Whether cuDNN recommends an engine for it that tells about itself and makes
  // a plan.
  bool HasEngine(const CudnnNode& operation, const CudnnNode& property) const {
    using namespace cudnn_graph;  // NOLINT: its numbers
    CudnnNode graph(&cudnn_, kOperationGraph), heuristics(&cudnn_, kHeuristics);
    graph.SetNode(kGraphOperations, operation);
    graph = Finish(graph, "a graph");
    heuristics.SetNode(kHeuristicsGraph, graph)
        .SetNode(kHeuristicsProperty, property)
        .Set(kHeuristicsMode, kTypeHeuristicsMode, kModeA);
    heuristics = Finish(heuristics, "recommendations");
    CudnnNode config(&cudnn_, kEngineConfig), engine(&cudnn_, kEngine);
    void *configs = config.get(), *engines = engine.get();
    int64_t number = -1;
    int notes[kNotes], behaviors[kBehaviors];
    const auto count =
        heuristics.Get(kHeuristicsResults, kTypeDescriptor, 1, &configs);
    EXPECT_TRUE(config.Get(kConfigEngine, kTypeDescriptor, 1, &engines).ok());
    EXPECT_TRUE(engine.Get(kEngineNumber, kTypeInt64, 1, &number).ok());
    EXPECT_TRUE(
        engine.Get(kEngineNotes, kTypeNumericalNote, kNotes, notes).ok());
    EXPECT_TRUE(
        engine.Get(kEngineBehavior, kTypeBehaviorNote, kBehaviors, behaviors)
            .ok());
    CudnnNode plan(&cudnn_, kPlan);
    plan.SetNode(kPlanConfig, config).SetNode(kPlanProperty, property);
    Finish(plan, "a plan");
    return count.ok() && *count == 1 && number >= 0;
  }

  static Convolution Describe(int dims, int64_t groups, bool last,
                              DType dtype) {
    Convolution c;
    c.input = {2, 8, 9, 7};
    c.filter = {16, 8 / groups, 3, 3};
    c.output = {2, 16, 5, 4};
    c.paddings = {1, 1};
    c.strides = {2, 2};
    c.dilations = {1, 1};
    if (dims == 3) {
      for (auto* extents : {&c.input, &c.output}) extents->push_back(6);
      c.filter.push_back(1);
      c.paddings.push_back(0);
      for (auto* list : {&c.strides, &c.dilations}) list->push_back(1);
    }
    c.channels_last = last;
    c.dtype = dtype;
    return c;
  }

  CudnnGraph cudnn_;
};

TEST_F(RealConvolutions, HaveEnginesForEveryPart) {
  CudnnNode property(&cudnn_, kProperty);
  property.Set(
      kPropertyText, kTypeChar,
      std::vector<char>(kProperties, kProperties + sizeof(kProperties) - 1));
  // cuDNN 9.8 is the first that takes them.
  const bool asks = property.Finalize("a GPU's properties").ok();
  for (const auto part : {ConvolutionPart::kOutput, ConvolutionPart::kInput,
                          ConvolutionPart::kFilter})
    for (const int dims : {2, 3})
      for (const int64_t groups : {1, 2, 8})
        for (const bool last : {false, true})
          for (const DType dtype :
               {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
            SCOPED_TRACE(::testing::Message()
                         << static_cast<int>(part) << " " << dims << " "
                         << groups << last << Name(dtype));
            const CudnnNode operation =
                Operation(Describe(dims, groups, last, dtype), part);
            if (asks) {
              EXPECT_TRUE(HasEngine(operation, property));
            }
          }
}

}  // namespace test_real_cudnn
}  // namespace pd
