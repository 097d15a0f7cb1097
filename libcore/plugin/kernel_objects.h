// SPDX-License-Identifier: Apache-2.0
// The objects behind the C functions of api/paddle_capi.h: tensors, arguments
// and declarations of kernels. Internal to libcore/plugin.
#ifndef PD_LIBCORE_PLUGIN_KERNEL_OBJECTS_H_
#define PD_LIBCORE_PLUGIN_KERNEL_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/plugin/api/paddle_capi.h"

namespace pd {

/// InvalidArgument for types that tensors do not have here (uint32).
absl::StatusOr<DType> DTypeOfC(C_DataType dtype);
C_DataType CTypeOf(DType dtype);
/// "float32", as in messages; also of types that we do not have.
std::string NameOfC(C_DataType dtype);
size_t SizeOfC(C_DataType dtype);

/// Bytes of the host or of a device; `owner` keeps them.
struct KernelMemory {
  void* data = nullptr;
  size_t bytes = 0;
  bool on_device = false;
  std::shared_ptr<void> owner;
};

/// A number; exactly one of the fields is its value.
struct KernelScalar {
  C_DataType dtype = FLOAT64;
  double real = 0;
  int64_t integer = 0;
};

struct KernelPlace {
  bool host = true;
  int8_t id = 0;
};

/// The value of an attribute in the type that a kernel's parameter has.
/// Booleans of a list are bytes.
using KernelAttr =
    std::variant<bool, int32_t, int64_t, float, double, std::string,
                 std::vector<uint8_t>, std::vector<int32_t>, std::vector<float>,
                 std::vector<double>, std::vector<std::string>,
                 std::vector<int64_t>, C_DataType, PD_DataLayout,
                 std::unique_ptr<PD_Scalar>, std::unique_ptr<PD_IntArray>,
                 std::unique_ptr<PD_Place>, std::vector<PD_Scalar>>;

/// Memory of a device.
using AllocateFn =
    std::function<absl::StatusOr<std::shared_ptr<void>>(size_t bytes)>;

/// Keeps the text for PD_PluginLastError.
void SetPluginError(std::string text);

}  // namespace pd

struct PD_Scalar : pd::KernelScalar {};
struct PD_IntArray {
  std::vector<int64_t> values;
};
struct PD_Place : pd::KernelPlace {};

struct PD_Tensor {
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;  // empty: row-major
  C_DataType dtype = UNDEFINED;
  PD_DataLayout layout = NCHW;
  std::shared_ptr<pd::KernelMemory> memory;
  size_t offset = 0;  // bytes
  std::vector<std::vector<size_t>> lod;
  // Memory that the first allocation takes where it suffices: an output's.
  std::shared_ptr<pd::KernelMemory> offered;
};

struct PD_DeviceContext {
  std::string type = "cpu";
  int id = 0;
  PD_Stream stream = nullptr;
  pd::AllocateFn allocate;  // null: of the host
  mutable uint64_t seed = 0;
  mutable std::mt19937_64 engine;
};

struct PD_KernelContext {
  PD_DeviceContext* device = nullptr;
  // By parameter; a single tensor that is absent is null.
  std::vector<std::vector<PD_Tensor*>> inputs, outputs;
  std::vector<pd::KernelAttr>* attrs = nullptr;
};

struct PD_TensorArgDef {
  C_DataType dtype = UNDEFINED;
  PD_DataLayout layout = ALL_LAYOUT;
  bool on_host = false;
};
struct PD_KernelArgsDef {
  std::vector<PD_TensorArgDef> inputs, outputs;
};
struct PD_Kernel {
  PD_KernelArgsDef arguments;
};
struct PD_KernelKey {
  C_DataType dtype = UNDEFINED;
  PD_DataLayout layout = ALL_LAYOUT;
};

#endif  // PD_LIBCORE_PLUGIN_KERNEL_OBJECTS_H_
