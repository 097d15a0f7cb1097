// SPDX-License-Identifier: Apache-2.0
// The place of a kernel, with its memory. Operators see it by
// <paddle/extension.h>, where the names of the C form (FLOAT32, SUM) are not.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_CONTEXT_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_CONTEXT_H_

#include <cstddef>
#include <string>

#include "paddle_dtype.h"
#include "paddle_place.h"
#include "paddle_plugin_abi.h"

extern "C" {
typedef struct PD_DeviceContext PD_DeviceContext;
/// "cpu", or the type of the device, and its number. Null stands for the host.
PD_PLUGIN_DECL const char* PD_PluginContextDevice(
    const PD_DeviceContext* context, int* id);
}

namespace Eigen {
struct DefaultDevice;
}  // namespace Eigen

namespace phi {

namespace detail {

inline Place PlaceOf(const PD_DeviceContext* context) {
  int id = 0;
  const std::string type = PD_PluginContextDevice(context, &id);
  return type == "cpu" ? Place(CPUPlace()) : Place(CustomPlace(type, id));
}

}  // namespace detail

class DeviceContext {
 public:
  DeviceContext() : DeviceContext(nullptr) {}
  explicit DeviceContext(PD_DeviceContext* context)
      : context_(context), place_(detail::PlaceOf(context)) {}
  virtual ~DeviceContext() = default;

  PD_DeviceContext* raw_data() const { return context_; }
  const Place& GetPlace() const { return place_; }
  /// Memory for a tensor; its element type becomes T. `bytes` 0: as many as
  /// its shape needs.
  template <typename T, typename Tensor>
  T* Alloc(Tensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(Alloc(tensor, CppTypeToDataType<T>::Type(), bytes));
  }
  template <typename Tensor>
  void* Alloc(Tensor* tensor, DataType dtype, size_t bytes = 0) const {
    return tensor->AllocateIn(context_, dtype, bytes);
  }
  /// The same in the host's memory.
  template <typename T, typename Tensor>
  T* HostAlloc(Tensor* tensor, size_t bytes = 0) const {
    return static_cast<T*>(
        HostAlloc(tensor, CppTypeToDataType<T>::Type(), bytes));
  }
  template <typename Tensor>
  void* HostAlloc(Tensor* tensor, DataType dtype, size_t bytes = 0) const {
    return tensor->AllocateIn(nullptr, dtype, bytes);
  }
  /// Work of this device's stream is started in order, so nothing is awaited.
  void Wait() const {}

 private:
  PD_DeviceContext* context_;
  Place place_;
};

/// The context of the host.
class CPUContext : public DeviceContext {
 public:
  using DeviceContext::DeviceContext;
  /// Not null. A program that computes with it includes Eigen, whose
  /// DefaultDevice is an empty struct.
  Eigen::DefaultDevice* eigen_device() const {
    return reinterpret_cast<Eigen::DefaultDevice*>(&device_);
  }

 private:
  mutable char device_ = 0;
};

}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_CONTEXT_H_
