// SPDX-License-Identifier: Apache-2.0
// --device and what --devices and --version say of the GPUs of a machine and
// of the devices of plug-ins.
#ifndef PD_CMD_COMMON_DEVICES_H_
#define PD_CMD_COMMON_DEVICES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/device/gpu_list.h"

namespace pd {

struct DevicePlace;

/// The place of `device`, "auto", "cpu", "gpu", "gpu:N", or "TYPE:N" of a
/// plug-in's device, null for the CPU; logs the choice. For a TYPE the folder
/// of CUSTOM_DEVICE_ROOT is loaded. CommandLineError for other texts;
/// Unavailable, with all that is missing, for a GPU that machine or build
/// cannot compute on, or that `tool` does not take.
absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenDevice(
    absl::string_view device, absl::string_view tool, bool takes_gpu);

/// The output of --devices: a table, or one JSON object. Of plug-ins it lists
/// the devices of `files` and of the folder of CUSTOM_DEVICE_ROOT.
std::string DevicesText(const GpuList& list,
                        const std::vector<std::string>& files, bool json);

/// Name and value of the lines of --version about GPUs and their libraries.
std::vector<std::pair<std::string, std::string>> GpuRows(const GpuList& list);

/// One JSON object: "built", "driver", "gpus", "cublaslt", "cudnn"; what is
/// missing is null, and "missing" says why.
std::string GpuJson(const GpuList& list);

}  // namespace pd

#endif  // PD_CMD_COMMON_DEVICES_H_
