// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/gpu_support.h"

namespace pd {
namespace {

// The manual's page on NVIDIA GPUs, with the chips of Jetson at the end.
constexpr GpuGeneration kTable[] = {
    {2, 0, "Fermi", "GeForce 400, 500, 600, GT-630", "none"},
    {3, 0, "Kepler", "GeForce 700, GT-730", "none"},
    {3, 5, "Kepler", "Tesla K40", "CUDA10"},
    {3, 7, "Kepler", "Tesla K80", "CUDA10"},
    {5, 0, "Maxwell", "Tesla M, Quadro M", "CUDA10, CUDA11"},
    {5, 2, "Maxwell", "Quadro M6000, GeForce 900, GTX Titan X",
     "CUDA10, CUDA11"},
    {6, 0, "Pascal", "Quadro GP100, Tesla P100", "CUDA10, CUDA11"},
    {6, 1, "Pascal", "GTX 1010 to 1080, Titan Xp, Tesla P4, P40",
     "CUDA10, CUDA11"},
    {7, 0, "Volta", "Tesla V100, Titan V, Quadro GV100", "CUDA10, CUDA11"},
    {7, 5, "Turing", "GTX 1660 Ti, RTX 2060 to 2080, Quadro RTX, Tesla T4",
     "CUDA10, CUDA11"},
    {8, 0, "Ampere", "A100", "CUDA11"},
    {8, 6, "Ampere", "RTX 3050 to 3090, RTX A2000 to A6000, A2, A10, A16, A40",
     "CUDA11, CUDA11.2 (recommended)"},
    {5, 3, "Maxwell", "Jetson TX1, Nano", "Jetson's own"},
    {6, 2, "Pascal", "Jetson TX2", "Jetson's own"},
    {7, 2, "Volta", "Jetson AGX Xavier", "Jetson's own"},
};

}  // namespace

const GpuGeneration* FindGeneration(int major, int minor) {
  for (const GpuGeneration& row : kTable)
    if (row.major == major && row.minor == minor) return &row;
  return nullptr;
}

absl::string_view ArchitectureName(int major, int minor) {
  const GpuGeneration* row = FindGeneration(major, minor);
  if (row != nullptr) return row->architecture;
  if (major == 8) return minor == 9 ? "Ada" : "Ampere";
  if (major == 9) return "Hopper";
  if (major == 10 || major == 11 || major == 12) return "Blackwell";
  return "";
}

int BuiltCudaVersion() { return PD_CUDA_VERSION; }

}  // namespace pd
