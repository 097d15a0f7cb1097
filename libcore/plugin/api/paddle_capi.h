// SPDX-License-Identifier: Apache-2.0
// The border between kernels of a plug-in and the library: C functions, in the
// names of PaddlePaddle's <paddle/phi/capi/all.h>. Both forms of kernels
// (paddle_capi_kernel.h, paddle_kernel_registry.h) stand on them. Functions
// with a last `status` always write it; where it is not C_SUCCESS,
// PD_PluginLastError says why.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_H_

#include <cstddef>
#include <cstdint>

#include "paddle_device_ext.h"
#include "paddle_plugin_abi.h"

extern "C" {

typedef C_Status PD_Status;
typedef C_DataLayout PD_DataLayout;
typedef C_Stream PD_Stream;

/// An array; the function that gives it says who owns it.
typedef struct {
  size_t size;
  void* data;
} PD_List;

typedef struct PD_Tensor PD_Tensor;
typedef struct PD_DeviceContext PD_DeviceContext;
typedef struct PD_KernelContext PD_KernelContext;
typedef struct PD_Kernel PD_Kernel;
typedef struct PD_KernelKey PD_KernelKey;
typedef struct PD_KernelArgsDef PD_KernelArgsDef;
typedef struct PD_TensorArgDef PD_TensorArgDef;
typedef struct PD_Scalar PD_Scalar;
typedef struct PD_IntArray PD_IntArray;
typedef struct PD_Place PD_Place;

/// The kind of a kernel's parameter.
typedef enum {
  PD_ARG_TYPE_CONTEXT = 0,
  PD_ARG_TYPE_TENSOR,
  PD_ARG_TYPE_BOOL,
  PD_ARG_TYPE_BFLOAT16,
  PD_ARG_TYPE_FLOAT16,
  PD_ARG_TYPE_FLOAT32,
  PD_ARG_TYPE_FLOAT64,
  PD_ARG_TYPE_INT32,
  PD_ARG_TYPE_INT64,
  PD_ARG_TYPE_STRING,
  PD_ARG_TYPE_SCALAR,
  PD_ARG_TYPE_INT_ARRAY,
  PD_ARG_TYPE_DATA_TYPE,
  PD_ARG_TYPE_DATA_LAYOUT,
  PD_ARG_TYPE_PLACE,
  PD_ARG_TYPE_LIST_BOOL,
  PD_ARG_TYPE_LIST_INT32,
  PD_ARG_TYPE_LIST_INT64,
  PD_ARG_TYPE_LIST_BFLOAT16,
  PD_ARG_TYPE_LIST_FLOAT16,
  PD_ARG_TYPE_LIST_FLOAT32,
  PD_ARG_TYPE_LIST_FLOAT64,
  PD_ARG_TYPE_LIST_STRING,
  PD_ARG_TYPE_LIST_SCALAR,
  PD_ARG_TYPE_OPTIONAL_TENSOR,
  PD_ARG_TYPE_LIST_TENSOR,
  PD_ARG_TYPE_OPTIONAL_MULTI_TENSOR,
} PD_KernelArgumentType;

/// One kernel for one element type. `inputs` begins with PD_ARG_TYPE_CONTEXT
/// where the function takes a context.
typedef struct {
  const char* name;     ///< "softmax_grad"
  const char* backend;  ///< "CPU", or the type of a device
  C_DataType dtype;
  PD_DataLayout layout;
  size_t input_count;
  const PD_KernelArgumentType* inputs;
  size_t attribute_count;
  const PD_KernelArgumentType* attributes;
  size_t output_count;
  const PD_KernelArgumentType* outputs;
  void (*define_arguments)(const PD_KernelKey* key, PD_Kernel* kernel);
  void (*run)(PD_KernelContext* context);
} PD_KernelDeclaration;

/// Declares a kernel; throws what is wrong with it.
PD_PLUGIN_DECL void PD_PluginRegisterKernel(
    int abi, const PD_KernelDeclaration* declaration);
/// The reason of this thread's last status that was not C_SUCCESS.
PD_PLUGIN_DECL const char* PD_PluginLastError(void);

// Arguments of a running kernel; inputs, attributes and outputs each count from
// 0. An absent tensor is null. Lists of tensors, strings, scalars and booleans
// are the caller's, to be given to PD_Delete*List; other lists are lent.
PD_PLUGIN_DECL PD_DeviceContext* PD_KernelContextGetDeviceContext(
    PD_KernelContext* context);
PD_PLUGIN_DECL PD_Tensor* PD_KernelContextInputAt(PD_KernelContext* context,
                                                  size_t index);
PD_PLUGIN_DECL PD_List PD_KernelContextMultiInputAt(PD_KernelContext* context,
                                                    size_t index);
PD_PLUGIN_DECL PD_Tensor* PD_KernelContextOutputAt(PD_KernelContext* context,
                                                   size_t index);
PD_PLUGIN_DECL PD_List PD_KernelContextMultiOutputAt(PD_KernelContext* context,
                                                     size_t index);
#define PD_ATTR_AT(name, type)                        \
  PD_PLUGIN_DECL type PD_KernelContext##name##AttrAt( \
      PD_KernelContext* context, size_t index)
PD_ATTR_AT(Bool, bool);
PD_ATTR_AT(Int32, int32_t);
PD_ATTR_AT(Int64, int64_t);
PD_ATTR_AT(Float, float);
PD_ATTR_AT(Double, double);
PD_ATTR_AT(Scalar, PD_Scalar*);
PD_ATTR_AT(IntArray, PD_IntArray*);
PD_ATTR_AT(DataType, C_DataType);
PD_ATTR_AT(DataLayout, PD_DataLayout);
PD_ATTR_AT(String, char*);
PD_ATTR_AT(ListBool, PD_List);
PD_ATTR_AT(ListInt32, PD_List);
PD_ATTR_AT(ListInt64, PD_List);
PD_ATTR_AT(ListFloat, PD_List);
PD_ATTR_AT(ListDouble, PD_List);
PD_ATTR_AT(ListString, PD_List);
PD_ATTR_AT(ListScalar, PD_List);
PD_ATTR_AT(Place, PD_Place*);
#undef PD_ATTR_AT

// Tensors.
PD_PLUGIN_DECL PD_Tensor* PD_NewTensor(void);
PD_PLUGIN_DECL void PD_DeleteTensor(PD_Tensor* tensor);
#define PD_TENSOR_GET(name, type)                                 \
  PD_PLUGIN_DECL type PD_TensorGet##name(const PD_Tensor* tensor, \
                                         PD_Status* status)
PD_TENSOR_GET(PDDataType, C_DataType);
PD_TENSOR_GET(DataLayout, PD_DataLayout);
PD_TENSOR_GET(ByteSize, int64_t);
PD_TENSOR_GET(DataPointer, void*);
PD_TENSOR_GET(ElementCount, int64_t);
PD_TENSOR_GET(NumDims, int64_t);
PD_TENSOR_GET(NumStrides, int64_t);
PD_TENSOR_GET(Holder, void*);
PD_TENSOR_GET(Offset, size_t);
#undef PD_TENSOR_GET
PD_PLUGIN_DECL int64_t PD_TensorGetDim(const PD_Tensor* tensor, size_t index,
                                       PD_Status* status);
PD_PLUGIN_DECL int64_t PD_TensorGetStride(const PD_Tensor* tensor, size_t index,
                                          PD_Status* status);
/// `data`: the numbers of all levels; `offset`: where the levels begin, and the
/// end. Both are the caller's, to be given to PD_DeleteUInt64List.
PD_PLUGIN_DECL void PD_TensorGetLoD(const PD_Tensor* tensor, PD_List* data,
                                    PD_List* offset, PD_Status* status);
PD_PLUGIN_DECL bool PD_TensorIsInitialized(const PD_Tensor* tensor,
                                           PD_Status* status);
PD_PLUGIN_DECL bool PD_TensorIsValid(const PD_Tensor* tensor,
                                     PD_Status* status);
PD_PLUGIN_DECL void PD_TensorSetDims(PD_Tensor* tensor, int64_t ndims,
                                     const int64_t* dims, PD_Status* status);
PD_PLUGIN_DECL void PD_TensorSetStrides(PD_Tensor* tensor, int64_t nstrides,
                                        const int64_t* strides,
                                        PD_Status* status);
PD_PLUGIN_DECL void PD_TensorSetOffset(PD_Tensor* tensor, int64_t offset,
                                       PD_Status* status);
PD_PLUGIN_DECL void PD_TensorSetDataType(PD_Tensor* tensor, C_DataType dtype,
                                         PD_Status* status);
PD_PLUGIN_DECL void PD_TensorSetDataLayout(PD_Tensor* tensor,
                                           PD_DataLayout layout,
                                           PD_Status* status);
PD_PLUGIN_DECL void PD_TensorResetLoD(PD_Tensor* tensor, PD_List data,
                                      PD_List offset, PD_Status* status);
PD_PLUGIN_DECL void PD_TensorShareDataWith(PD_Tensor* to, const PD_Tensor* from,
                                           PD_Status* status);
PD_PLUGIN_DECL void PD_TensorShareLoDWith(PD_Tensor* to, const PD_Tensor* from,
                                          PD_Status* status);

// The context. Null stands for the host.
PD_PLUGIN_DECL PD_Stream
PD_DeviceContextGetStream(const PD_DeviceContext* context, PD_Status* status);
/// Memory for the tensor, whose element type becomes `dtype`. `bytes` 0: as
/// many as its shape needs.
PD_PLUGIN_DECL void* PD_DeviceContextAllocateTensor(
    const PD_DeviceContext* context, PD_Tensor* tensor, size_t bytes,
    C_DataType dtype, PD_Status* status);
PD_PLUGIN_DECL void PD_DeviceContextSetSeed(const PD_DeviceContext* context,
                                            uint64_t seed, PD_Status* status);
PD_PLUGIN_DECL uint64_t PD_DeviceContextGetSeed(const PD_DeviceContext* context,
                                                PD_Status* status);
PD_PLUGIN_DECL uint64_t
PD_DeviceContextGetRandom(const PD_DeviceContext* context, PD_Status* status);
/// "cpu", or the type of the device, and its number.
PD_PLUGIN_DECL const char* PD_PluginContextDevice(
    const PD_DeviceContext* context, int* id);

// A kernel as its declaration's body sees it.
PD_PLUGIN_DECL PD_KernelArgsDef* PD_KernelGetArgsDef(PD_Kernel* kernel,
                                                     PD_Status* status);
PD_PLUGIN_DECL PD_List PD_KernelArgsDefGetInputArgDefs(PD_KernelArgsDef* defs,
                                                       PD_Status* status);
PD_PLUGIN_DECL PD_List PD_KernelArgsDefGetOutputArgDefs(PD_KernelArgsDef* defs,
                                                        PD_Status* status);
PD_PLUGIN_DECL void PD_TensorArgDefSetDataLayout(PD_TensorArgDef* def,
                                                 PD_DataLayout layout,
                                                 PD_Status* status);
PD_PLUGIN_DECL void PD_TensorArgDefSetDataType(PD_TensorArgDef* def,
                                               C_DataType dtype,
                                               PD_Status* status);
/// Whether the host has the bytes, whatever the kernel's backend.
PD_PLUGIN_DECL void PD_PluginArgDefSetOnHost(PD_TensorArgDef* def, bool host);
PD_PLUGIN_DECL PD_DataLayout PD_KernelKeyGetLayout(const PD_KernelKey* key,
                                                   PD_Status* status);
PD_PLUGIN_DECL C_DataType PD_KernelKeyGetDataType(const PD_KernelKey* key,
                                                  PD_Status* status);

// Numbers, lists of integers, places.
#define PD_SCALAR_GET(name, type) \
  PD_PLUGIN_DECL type PD_ScalarGet##name##Data(PD_Scalar* scalar)
PD_SCALAR_GET(Bool, bool);
PD_SCALAR_GET(Int8, int8_t);
PD_SCALAR_GET(Int16, int16_t);
PD_SCALAR_GET(Int32, int32_t);
PD_SCALAR_GET(Int64, int64_t);
PD_SCALAR_GET(UInt8, uint8_t);
PD_SCALAR_GET(UInt16, uint16_t);
PD_SCALAR_GET(UInt32, uint32_t);
PD_SCALAR_GET(UInt64, uint64_t);
PD_SCALAR_GET(Float32, float);
PD_SCALAR_GET(Float64, double);
#undef PD_SCALAR_GET
PD_PLUGIN_DECL C_DataType PD_ScalarGetDataType(PD_Scalar* scalar);
/// Lent.
PD_PLUGIN_DECL PD_List PD_IntArrayGetDataPointer(PD_IntArray* array);
PD_PLUGIN_DECL size_t PD_IntArrayGetElementCount(PD_IntArray* array);
PD_PLUGIN_DECL bool PD_PlaceIsHost(PD_Place* place);
PD_PLUGIN_DECL int8_t PD_PlaceGetDeviceId(PD_Place* place);

PD_PLUGIN_DECL void PD_DeletePointerList(PD_List list);
PD_PLUGIN_DECL void PD_DeleteUInt8List(PD_List list);
PD_PLUGIN_DECL void PD_DeleteUInt64List(PD_List list);
PD_PLUGIN_DECL void PD_DeleteInt64List(PD_List list);
PD_PLUGIN_DECL void PD_DeleteInt32List(PD_List list);
PD_PLUGIN_DECL void PD_DeleteFloat64List(PD_List list);
PD_PLUGIN_DECL void PD_DeleteFloat32List(PD_List list);

}  // extern "C"

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CAPI_H_
