// SPDX-License-Identifier: Apache-2.0
// Every name of <paddle/extension.h> that sources for PaddlePaddle 2.0 to 2.6
// use, besides its tensor functions (test_plugin_functions.cc). An operator of
// each attribute type, and names that PaddlePaddle's header leaves to sources.
#include "paddle/extension.h"

// The C form of kernels has these; an operator's source has them for itself.
static const int SUM = 0;
static const float FLOAT32 = 1;

namespace {

void Places() {
  const paddle::Place places[] = {
      paddle::CPUPlace(),
      paddle::GPUPlace(1),
      paddle::GPUPinnedPlace(),
      paddle::XPUPlace(),
      paddle::IPUPlace(),
      paddle::CustomPlace("device", 2),
      paddle::DefaultGPUPlace(),
      paddle::PlaceType::kCPU,
      paddle::PlaceType::kGPU,
      paddle::PlaceType::kUNK,
      paddle::PlaceType::kNPU,
      paddle::PlaceType::kXPU,
      paddle::Place(paddle::experimental::AllocationType::IPU, 1)};
  for (const paddle::Place& place : places) {
    PD_CHECK(place == places[0] || place != places[0]);
    PD_CHECK(!place.DebugString().empty() && place.GetDeviceId() >= 0);
    (void)place.HashValue();
    (void)(place < places[0]);
    const paddle::XPUPlace xpu(place);
    const paddle::CustomPlace custom(place);
    PD_CHECK(xpu.GetType() == phi::AllocationType::XPU);
    PD_CHECK(custom.GetDeviceType() == place.GetDeviceType());
  }
}

void Types() {
  for (int i = 0; i < static_cast<int>(phi::DataType::NUM_DATA_TYPES); ++i) {
    const auto type = static_cast<paddle::experimental::DataType>(i);
    PD_CHECK(phi::DataTypeToString(type) != nullptr);
    (void)phi::SizeOf(type);
  }
  const paddle::DataLayout layouts[] = {
      paddle::DataLayout::kAnyLayout, paddle::DataLayout::UNDEFINED,
      paddle::DataLayout::NHWC,       paddle::DataLayout::kNCHW,
      paddle::DataLayout::kMKLDNN,    paddle::DataLayout::ONEDNN,
      paddle::DataLayout::SPARSE_COO, paddle::DataLayout::SPARSE_CSR,
      paddle::DataLayout::kNDHWC,     paddle::experimental::DataLayout::NCDHW};
  PD_CHECK(layouts[0] == layouts[1]);
  paddle::complex64 c(1, 2);
  c.real += paddle::complex128(3, 4).imag;
  const paddle::float16 half = static_cast<paddle::float16>(0.5f);
  const paddle::bfloat16 brain = static_cast<paddle::bfloat16>(2.0f);
  PD_CHECK(static_cast<float>(half) * static_cast<float>(brain) == 1.0f);
  PD_CHECK(half.x != brain.x);
  const paddle::Scalar numbers[] = {1, 2.5, true, int64_t{3}, half, c, "-inf"};
  PD_CHECK(numbers[1].to<int>() == 2 && !numbers[0].FromTensor());
  (void)numbers[2].dtype();
  const paddle::IntArray list = {1, 2};
  PD_CHECK(list.size() == 2 && list.GetData()[1] == 2);
  paddle::optional<int> maybe = paddle::none;
  PD_CHECK(!maybe.is_initialized() && maybe.get_ptr() == nullptr);
  maybe = 3;
  PD_CHECK(*maybe == maybe.get());
  const paddle::any something = 4;
  PD_CHECK(paddle::any_cast<int>(something) == 4);
  PADDLE_ENFORCE_EQ(SUM, 0, common::errors::InvalidArgument("%d", SUM));
  PADDLE_ENFORCE_GT(FLOAT32, 0, phi::errors::Unavailable("no"));
  PADDLE_ENFORCE_NOT_NULL(&c, paddle::platform::errors::Fatal("null"));
}

void TensorMethods(const paddle::Tensor& x) {
  paddle::Tensor y(paddle::PlaceType::kCPU, x.shape());
  y.mutable_data<float>(paddle::CPUPlace());
  y.copy_(x, paddle::CPUPlace(), true);
  y.set_name("y");
  PD_CHECK(y.name() == "y" && y.numel() == y.size() && y.dims() == x.dims());
  PD_CHECK(y.strides().size() == y.shape().size());
  PD_CHECK(y.dtype() == y.type() && y.layout() == paddle::DataLayout::NCHW);
  PD_CHECK(y.is_dense_tensor() && !y.is_selected_rows());
  PD_CHECK(!y.is_sparse_coo_tensor() && !y.is_sparse_csr_tensor());
  PD_CHECK(!y.is_string_tensor() && !y.is_dist_tensor());
  PD_CHECK(y.place() == paddle::PlaceType::kCPU && y.is_cpu() && !y.is_gpu());
  PD_CHECK(!y.is_gpu_pinned() && !y.is_xpu() && !y.is_custom_device());
  PD_CHECK(y.defined() && y.initialized() && y.is_initialized());
  PD_CHECK(y.contiguous().is_contiguous());
  y.bump_inplace_version();
  PD_CHECK(y.current_inplace_version() == 1);
  (void)y.copy_to<float>(paddle::PlaceType::kCPU);
  (void)y.copy_to(paddle::CPUPlace(), false).cast(paddle::DataType::FLOAT64);
  (void)y.slice(0, 1).data();
  (void)y.assign().max().sum().scale(2).pow(2);
  (void)y.roll({1}).tile({1}).expand({-1}).elementwise_pow(y).maximum(y);
  const paddle::Tensor at = paddle::full({1}, 0, paddle::DataType::INT64);
  const paddle::Tensor one = paddle::ones({1});
  (void)y.scatter(at, one);
  (void)y.scatter_nd_add(paddle::zeros({1, 1}, paddle::DataType::INT64), one);
  float numbers[] = {1, 2};
  (void)paddle::from_blob(numbers, {2}, paddle::DataType::FLOAT32);
  y.reset();
}

paddle::Tensor Plus(const paddle::Tensor& x, double sum) {
  paddle::Tensor out = paddle::empty_like(x);
  PD_DISPATCH_FLOATING_AND_INTEGRAL_TYPES(
      x.dtype(), "Plus", ([&] {
        for (int64_t k = 0; k < x.numel(); ++k)
          out.data<data_t>()[k] =
              static_cast<data_t>(x.data<data_t>()[k] + sum);
      }));
  return out;
}

std::vector<paddle::Tensor> Everything(
    const paddle::Tensor& x, const std::vector<paddle::Tensor>& many,
    const paddle::optional<paddle::Tensor>& maybe,
    const paddle::optional<std::vector<paddle::Tensor>>& maybe_many, bool b,
    int i, float f, double d) {
  Places();
  Types();
  TensorMethods(x);
  const auto* context =
      paddle::experimental::DeviceContextPool::Instance().Get(x.place());
  PD_CHECK(context->GetPlace() == x.place());
  PD_CHECK(context->eigen_device() != nullptr);
  return {Plus(x, (b ? 1 : 0) + i + static_cast<double>(f) + d +
                      static_cast<double>(many.size()) + (maybe ? 1 : 0) +
                      (maybe_many ? 1 : 0))};
}
std::vector<paddle::Tensor> TheRest(const paddle::Tensor& x, int64_t l,
                                    const std::string& s,
                                    const std::vector<int>& is,
                                    const std::vector<float>& fs,
                                    const std::vector<int64_t>& ls,
                                    const std::vector<std::string>& ss) {
  return {Plus(x, static_cast<double>(l) + static_cast<double>(s.size()) +
                      is.at(0) + static_cast<double>(fs.at(0)) +
                      static_cast<double>(ls.at(0)) +
                      static_cast<double>(ss.at(0).size()))};
}
std::vector<std::vector<int64_t>> Shape(
    const std::vector<int64_t>& x, const std::vector<std::vector<int64_t>>&,
    const paddle::optional<std::vector<int64_t>>&,
    const paddle::optional<std::vector<std::vector<int64_t>>>&) {
  return {x};
}
std::vector<paddle::DataType> Type(
    paddle::DataType x, const std::vector<paddle::DataType>&,
    const paddle::optional<paddle::DataType>&,
    const paddle::optional<std::vector<paddle::DataType>>&) {
  return {x};
}
int ForTensorRt(int x) { return x; }

}  // namespace

PD_BUILD_OP(custom_everything)
    .Inputs({"X", paddle::Vec("Many"), paddle::Optional("Maybe"),
             paddle::Optional(paddle::Vec("MaybeMany"))})
    .Outputs({"Out"})
    .Attrs({"b: bool", "i: int", "f: float", "d: double"})
    .SetKernelFn(PD_KERNEL(Everything))
    .SetInferShapeFn(PD_INFER_SHAPE(Shape))
    .SetInferDtypeFn(PD_INFER_DTYPE(Type))
    .SetTrtInferShapeFn(PD_TRT_INFER_SHAPE(ForTensorRt))
    .SetTrtSupportsFormatConfig({"float32:LINEAR+float32:LINEAR"});
PD_BUILD_OP(custom_the_rest)
    .Inputs({"X"})
    .Outputs({"Out"})
    .Attrs({"l: int64_t", "s: std::string", "is: std::vector<int>",
            "fs: std::vector<float>", "ls: std::vector<int64_t>",
            "ss: std::vector<std::string>"})
    .SetKernelFn(PD_KERNEL(TheRest));
