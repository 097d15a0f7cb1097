// SPDX-License-Identifier: Apache-2.0
// The families of device kernels, a file each: each adds its ops.
#ifndef PD_LIBCORE_KERNELS_CUDA_FAMILIES_H_
#define PD_LIBCORE_KERNELS_CUDA_FAMILIES_H_

#include "libcore/ops/device_kernels.h"

namespace pd::cuda {

void AddActivations(DeviceKernels* kernels);
void AddAttention(DeviceKernels* kernels);
void AddBilinear(DeviceKernels* kernels);
void AddChoices(DeviceKernels* kernels);
void AddConvolutions(DeviceKernels* kernels);
void AddCrf(DeviceKernels* kernels);
void AddCtc(DeviceKernels* kernels);
void AddCumsum(DeviceKernels* kernels);
void AddDecoding(DeviceKernels* kernels);
void AddElementwise(DeviceKernels* kernels);
void AddGrids(DeviceKernels* kernels);
void AddGroups(DeviceKernels* kernels);
void AddGru(DeviceKernels* kernels);
void AddHierarchicalSigmoid(DeviceKernels* kernels);
void AddImages(DeviceKernels* kernels);
void AddInt8Dynamic(DeviceKernels* kernels);
void AddInt8Products(DeviceKernels* kernels);
void AddInt8Tensors(DeviceKernels* kernels);
void AddLines(DeviceKernels* kernels);
void AddLosses(DeviceKernels* kernels);
void AddLstm(DeviceKernels* kernels);
void AddMoves(DeviceKernels* kernels);
void AddNce(DeviceKernels* kernels);
void AddParts(DeviceKernels* kernels);
void AddPicks(DeviceKernels* kernels);
void AddPlaces(DeviceKernels* kernels);
void AddPrecision(DeviceKernels* kernels);
void AddProducts(DeviceKernels* kernels);
void AddQuantizing(DeviceKernels* kernels);
void AddRecurrences(DeviceKernels* kernels);
void AddReductions(DeviceKernels* kernels);
void AddResizing(DeviceKernels* kernels);
void AddRowConv(DeviceKernels* kernels);
void AddRows(DeviceKernels* kernels);
void AddSelectedRows(DeviceKernels* kernels);
void AddSequenceConv(DeviceKernels* kernels);
void AddSequenceRows(DeviceKernels* kernels);
void AddSequences(DeviceKernels* kernels);
void AddSpectralNorm(DeviceKernels* kernels);
void AddStatistics(DeviceKernels* kernels);
void AddTrustRatios(DeviceKernels* kernels);
void AddUpdates(DeviceKernels* kernels);
void AddWholeNumbers(DeviceKernels* kernels);
void AddWindows(DeviceKernels* kernels);
void AddYolo(DeviceKernels* kernels);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_FAMILIES_H_
