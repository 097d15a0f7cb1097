// SPDX-License-Identifier: Apache-2.0
// The real cuDNN, where it is, takes the parts of our graphs: its checks of
// descriptors need no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/device/cuda_libraries.h"
#include "libcore/device/cudnn_nodes.h"

namespace pd {
namespace {

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

}  // namespace
}  // namespace pd
