// SPDX-License-Identifier: Apache-2.0
// Output of `--version`: this build, the libraries it runs on, CPU and GPUs.
#ifndef PD_CMD_COMMON_VERSION_H_
#define PD_CMD_COMMON_VERSION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "libcore/device/gpu_list.h"

namespace pd {

/// "0.1.0".
absl::string_view Version();

/// The CPU's name with the widest vectors it has: "AMD EPYC, AVX-512".
std::string CpuName();

/// Names and values that say what computed: version, CPU, threads.
std::vector<std::pair<std::string, std::string>> MachineFacts();

/// The text or the JSON object of `--version`, with a line break at the end.
std::string VersionText(absl::string_view tool, const GpuList& gpus, bool json);

}  // namespace pd

#endif  // PD_CMD_COMMON_VERSION_H_
