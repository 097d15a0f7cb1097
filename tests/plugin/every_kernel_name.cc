// SPDX-License-Identifier: Apache-2.0
// Every name of <paddle/phi/capi/all.h> and of a device's table, and an
// operator that is declared together with its kernel.
#include "paddle/phi/backends/device_ext.h"
#include "paddle/phi/capi/all.h"

namespace {

template <typename T>
void Twice(const phi::Context& context, const phi::DenseTensor& x,
           const paddle::optional<phi::DenseTensor>& y,
           const std::vector<const phi::DenseTensor*>& more, float factor,
           const std::vector<int64_t>& shape, const std::string& text,
           phi::DenseTensor* out) {
  T* to = context.template Alloc<T>(out);
  const T* from = x.data<T>();
  PD_CHECK(x.valid() && x.initialized() && x.Holder() != nullptr);
  PD_CHECK(x.layout() == phi::DataLayout::NCHW && x.offset() == 0);
  PD_CHECK(x.strides().size() == x.dims().size());
  PD_CHECK(static_cast<size_t>(x.memory_size()) ==
           static_cast<size_t>(x.numel()) * sizeof(T));
  phi::DenseTensor mine;
  mine.Resize(x.dims());
  context.template HostAlloc<T>(&mine);
  mine.ShareDataWith(x);
  mine.share_lod(x);
  mine.ResetLoD({{0, 1}});
  PD_CHECK(mine.lod().size() == 1 && mine.dtype() == x.dtype());
  mine.set_dtype(phi::DataType::UINT8);
  mine.set_layout(PD_DATALAYOUT(NHWC));
  std::vector<double> numbers = {1, 2};
  const PD_List list = phi::capi::PDListFromVector(&numbers);
  PD_CHECK(phi::capi::PDListToVector<double>(list) == numbers);
  context.seed(7);
  PD_CHECK(context.seed() == 7 && context.random() != context.random());
  PD_CHECK(context.stream() == nullptr);
  const double sum = static_cast<double>(shape.size() + text.size() +
                                         more.size() + (y ? 1 : 0));
  for (int64_t i = 0; i < x.numel(); ++i)
    to[i] = static_cast<T>(static_cast<double>(from[i]) *
                           (static_cast<double>(factor) + sum));
}

void TwiceMeta(const phi::MetaTensor& x,
               const paddle::optional<phi::MetaTensor>& /*y*/,
               const std::vector<const phi::MetaTensor*>& more,
               float /*factor*/, const std::vector<int64_t>& shape,
               const std::string& text, phi::MetaTensor* out) {
  PD_CHECK(text != "refuse", "this text is refused");
  PD_CHECK(x.numel() >= 0 && more.at(0)->dims() == x.dims());
  out->set_dims(shape);
  out->set_dtype(x.dtype());
  out->set_layout(x.layout());
  PD_CHECK(out->strides().size() == shape.size());
}

// The functions behind the classes, by name.
void (*const kNames[])() = {
    reinterpret_cast<void (*)()>(&PD_RegisterOperator),
    reinterpret_cast<void (*)()>(&PD_DeleteInt64List),
    reinterpret_cast<void (*)()>(&PD_DeleteInt32List),
    reinterpret_cast<void (*)()>(&PD_DeleteFloat64List),
    reinterpret_cast<void (*)()>(&PD_DeleteFloat32List),
    reinterpret_cast<void (*)()>(&PD_MetaTensorIsValid),
    reinterpret_cast<void (*)()>(&PD_MetaTensorGetElementCount),
    reinterpret_cast<void (*)()>(&PD_MetaTensorGetStride),
    reinterpret_cast<void (*)()>(&PD_MetaTensorSetStrides),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextInputAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextMultiInputAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextMultiOutputAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextScalarAttrAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextIntArrayAttrAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextListBoolAttrAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextListScalarAttrAt),
    reinterpret_cast<void (*)()>(&PD_InferMetaContextPlaceAttrAt),
    reinterpret_cast<void (*)()>(&PD_KernelContextPlaceAttrAt)};

}  // namespace

PD_BUILD_NEW_PHI_KERNEL(custom_twice, CPU, ALL_LAYOUT, Twice, TwiceMeta, float,
                        double) {
  PD_CHECK(kNames[0] != nullptr);
  PD_CHECK(kernel->args_def().input_defs().size() == 3);
  kernel->InputAt(0).SetDataType(kernel_key.dtype());
  kernel->OutputAt(0).SetDataLayout(kernel_key.layout());
}
