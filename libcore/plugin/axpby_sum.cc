// SPDX-License-Identifier: Apache-2.0
// sum, by which gradients of a variable that several ops read come together, on
// a device by its driver's blas_axpby (y = alpha x + beta y), where plug-ins
// have no kernel add_n.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/device_binding.h"
#include "libcore/plugin/kernel_objects.h"
#include "libcore/plugin/plugin_device.h"

namespace pd {
namespace {

// into += term on `count` elements of the device.
absl::Status AddInto(PluginDevice* device, DType dtype, int64_t count,
                     const void* term, void* into) {
  PD_RETURN_IF_ERROR(device->Enter());
  C_Device self = device->handle();
  return device->driver().Call("blas_axpby", device->driver().table.blas_axpby,
                               self, device->stream(), CTypeOf(dtype),
                               static_cast<size_t>(count), 1.0F,
                               const_cast<void*>(term), 1.0F, into);
}

// Drivers for tests may do nothing, and others know some types only: two sums
// are tried.
absl::Status TryAxpby(PluginDevice* device, DType dtype) {
  return DispatchFloat(dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T x[] = {T(1.0F), T(2.5F)}, sums[] = {T(9.0F), T(10.5F)};
    T y[] = {T(8.0F), T(8.0F)};
    PD_ASSIGN_OR_RETURN(const auto term, device->Allocate(sizeof(x)));
    PD_ASSIGN_OR_RETURN(const auto into, device->Allocate(sizeof(y)));
    PD_RETURN_IF_ERROR(device->ToDevice(term.get(), x, sizeof(x)));
    PD_RETURN_IF_ERROR(device->ToDevice(into.get(), y, sizeof(y)));
    const absl::Status added =
        AddInto(device, dtype, 2, term.get(), into.get());
    if (!added.ok()) return Unimplemented("%s", std::string(added.message()));
    PD_RETURN_IF_ERROR(device->ToHost(y, into.get(), sizeof(y)));
    PD_RETURN_IF_ERROR(device->Synchronize());
    return std::equal(y, y + 2, sums)
               ? absl::OkStatus()
               : Unimplemented(
                     "the driver's blas_axpby gives other numbers "
                     "than the host");
  });
}

absl::StatusOr<Step> BindAxpbySum(BindContext* context,
                                  DeviceBinding* binding) {
  auto* device = static_cast<PluginDevice*>(binding->device());
  std::vector<Tensor*> terms;
  Tensor* out = context->Output("Out");
  for (size_t i = 0; i < context->InputCount("X"); ++i) {
    Tensor* x = context->Input("X", i);
    if (x == nullptr) continue;
    terms.push_back(x);
    // A variable that is summed into itself comes first: it is written over.
    if (x == out) std::swap(terms.front(), terms.back());
  }
  if (terms.empty() || !IsFloating(out->dtype()))
    return Unimplemented("blas_axpby is for floats");
  for (const Tensor* term : terms)
    if (term->dtype() != out->dtype() || term->shape() != out->shape())
      return Unimplemented("X has %s %s and Out %s %s", Name(term->dtype()),
                           ToString(term->shape()), Name(out->dtype()),
                           ToString(out->shape()));
  if (std::count(terms.begin(), terms.end(), out) > 1)
    return Unimplemented("it adds a variable to itself more than once");
  PD_RETURN_IF_ERROR(TryAxpby(device, out->dtype()));
  // A term that is added twice has to stay as it is.
  if (std::count(terms.begin(), terms.end(), terms[0]) == 1)
    context->MayShare(terms[0], out);
  return Step([=, terms = std::move(terms)](const RunContext&) -> absl::Status {
    if (out->size() == 0) return absl::OkStatus();
    if (terms[0]->raw() != out->raw())
      PD_RETURN_IF_ERROR(
          device->Copy(out->raw(), terms[0]->raw(), out->bytes()));
    for (size_t i = 1; i < terms.size(); ++i)
      PD_RETURN_IF_ERROR(AddInto(device, out->dtype(), out->size(),
                                 terms[i]->raw(), out->raw()));
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status AttachAxpbySum(const PluginDevice& device, OpRegistry* registry) {
  if (device.driver().table.blas_axpby == nullptr ||
      registry->Find("sum") == nullptr)
    return absl::OkStatus();
  return registry->AddImplementation(
      "sum", Implementation("blas_axpby", BindAxpbySum).FollowsInputs());
}

}  // namespace pd
