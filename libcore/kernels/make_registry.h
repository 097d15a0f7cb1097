// SPDX-License-Identifier: Apache-2.0
// The one call that gives a program every operator as fast as this machine has
// it. The other headers of this room are not installed.
#ifndef PD_LIBCORE_KERNELS_MAKE_REGISTRY_H_
#define PD_LIBCORE_KERNELS_MAKE_REGISTRY_H_

#include <memory>

#include "absl/status/statusor.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Every operator with all implementations that this machine can use: the fast
/// kernels first, the reference kernel last. RegisterAllOps alone gives the
/// reference kernels, which are many times slower. FLAGS_use_mkldnn=false, in
/// the environment or set before, leaves oneDNN's kernels out. A Session
/// borrows the registry, which must outlive it, and computes on `device`; null:
/// on the CPU. The kernels of a plug-in's device come with AddPluginOps.
absl::StatusOr<std::unique_ptr<OpRegistry>> MakeRegistry(
    std::shared_ptr<const DevicePlace> device = nullptr);

}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_MAKE_REGISTRY_H_
