// SPDX-License-Identifier: Apache-2.0
// Operators of <paddle/phi/capi/all.h> that are declared together with their
// kernel:
//   PD_BUILD_NEW_PHI_KERNEL(twice, CPU, ALL_LAYOUT, Twice, TwiceShape, float)
//   {}
// TwiceShape has the parameters of the kernel without the context, with
// phi::MetaTensor for its tensors, and sets shapes and types of the outputs.
// The slots of such an operator are Input_1, Input_2, ..., Output_0, ..., its
// attributes Attr_0, ..., where inputs count from the context.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_META_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_META_H_

#include <string>
#include <vector>

#include "paddle_capi_types.h"

/// Arguments of inference are those of a kernel, whose tensors have no memory.
typedef PD_Tensor PD_MetaTensor;
typedef PD_KernelContext PD_InferMetaContext;

extern "C" {

/// Declares an operator, unless there is one of that name; throws what is wrong
/// with it.
PD_PLUGIN_DECL void PD_RegisterOperator(
    const char* name, size_t input_count, const PD_KernelArgumentType* inputs,
    size_t attribute_count, const PD_KernelArgumentType* attributes,
    size_t output_count, const PD_KernelArgumentType* outputs,
    void (*infer)(PD_InferMetaContext* context));

#define PD_INFER_AT(name, type)                      \
  PD_PLUGIN_DECL type PD_InferMetaContext##name##At( \
      PD_InferMetaContext* context, size_t index)
PD_INFER_AT(Input, PD_MetaTensor*);
PD_INFER_AT(MultiInput, PD_List);
PD_INFER_AT(Output, PD_MetaTensor*);
PD_INFER_AT(MultiOutput, PD_List);
PD_INFER_AT(BoolAttr, bool);
PD_INFER_AT(Int32Attr, int32_t);
PD_INFER_AT(Int64Attr, int64_t);
PD_INFER_AT(FloatAttr, float);
PD_INFER_AT(DoubleAttr, double);
PD_INFER_AT(ScalarAttr, PD_Scalar*);
PD_INFER_AT(IntArrayAttr, PD_IntArray*);
PD_INFER_AT(DataTypeAttr, C_DataType);
PD_INFER_AT(DataLayoutAttr, PD_DataLayout);
PD_INFER_AT(StringAttr, char*);
PD_INFER_AT(ListBoolAttr, PD_List);
PD_INFER_AT(ListInt32Attr, PD_List);
PD_INFER_AT(ListInt64Attr, PD_List);
PD_INFER_AT(ListFloatAttr, PD_List);
PD_INFER_AT(ListDoubleAttr, PD_List);
PD_INFER_AT(ListStringAttr, PD_List);
PD_INFER_AT(ListScalarAttr, PD_List);
PD_INFER_AT(PlaceAttr, PD_Place*);
#undef PD_INFER_AT

#define PD_META_GET(name, type)                                        \
  PD_PLUGIN_DECL type PD_MetaTensor##name(const PD_MetaTensor* tensor, \
                                          PD_Status* status)
PD_META_GET(GetPDDataType, C_DataType);
PD_META_GET(GetDataLayout, PD_DataLayout);
PD_META_GET(GetElementCount, int64_t);
PD_META_GET(GetNumDims, int64_t);
PD_META_GET(GetNumStrides, int64_t);
PD_META_GET(IsValid, bool);
#undef PD_META_GET
PD_PLUGIN_DECL int64_t PD_MetaTensorGetDim(const PD_MetaTensor* tensor,
                                           size_t index, PD_Status* status);
PD_PLUGIN_DECL int64_t PD_MetaTensorGetStride(const PD_MetaTensor* tensor,
                                              size_t index, PD_Status* status);
PD_PLUGIN_DECL void PD_MetaTensorSetDims(PD_MetaTensor* tensor, int64_t ndims,
                                         const int64_t* dims,
                                         PD_Status* status);
PD_PLUGIN_DECL void PD_MetaTensorSetStrides(PD_MetaTensor* tensor,
                                            int64_t nstrides,
                                            const int64_t* strides,
                                            PD_Status* status);
PD_PLUGIN_DECL void PD_MetaTensorSetDataType(PD_MetaTensor* tensor,
                                             C_DataType dtype,
                                             PD_Status* status);
PD_PLUGIN_DECL void PD_MetaTensorSetDataLayout(PD_MetaTensor* tensor,
                                               PD_DataLayout layout,
                                               PD_Status* status);

}  // extern "C"

namespace phi {
namespace capi {

/// Shape, type and layout of a tensor.
class MetaTensor : public detail::TensorHandle {
 public:
  explicit MetaTensor(PD_MetaTensor* lent) : TensorHandle(lent) {}

  std::vector<int64_t> dims() const { return extents(); }
  std::vector<int64_t> strides() const { return steps(); }
  DataType dtype() const { return Type(); }
  DataLayout layout() const { return Layout(); }
  void set_dims(const std::vector<int64_t>& dims) { SetExtents(dims); }
  void set_dtype(DataType dtype) { SetType(dtype); }
  void set_layout(DataLayout layout) { SetLayout(layout); }
};

}  // namespace capi

using MetaTensor = capi::MetaTensor;

namespace detail {

PD_KERNEL_TENSORS(capi::MetaTensor);

/// Declares the operator of a kernel; made by PD_BUILD_NEW_PHI_KERNEL.
class OperatorRegistrar {
 public:
  OperatorRegistrar(const char* name, const KernelEntry& kernel,
                    void (*infer)(PD_InferMetaContext*)) {
    PD_RegisterOperator(name, kernel.inputs.size(), kernel.inputs.data(),
                        kernel.attributes.size(), kernel.attributes.data(),
                        kernel.outputs.size(), kernel.outputs.data(), infer);
  }
};

}  // namespace detail
}  // namespace phi

#define PHI_CAPI_INFER_META(infer)                              \
  ::phi::detail::KernelCall<decltype(&infer), &infer>::EntryOf( \
      ::C_DataType::UNDEFINED)                                  \
      .run
#define PD_BUILD_NEW_PHI_KERNEL(name, backend, layout, fn, infer, ...)    \
  static const ::phi::detail::OperatorRegistrar                           \
      pd_operator_##name##_##backend##_##layout __attribute__((unused)) ( \
          #name, PD_CAPI_ENTRY(fn, PD_FIRST_TYPE(__VA_ARGS__, void)),     \
          PHI_CAPI_INFER_META(infer));                                    \
  PD_BUILD_PHI_KERNEL(name, backend, layout, fn, __VA_ARGS__)
#define PD_FIRST_TYPE(T, ...) T

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_META_H_
