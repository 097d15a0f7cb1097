// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/place.h"

#include "libcore/base/status_macros.h"
#include "libcore/device/cublaslt.h"
#include "libcore/device/gpu_support.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"

namespace pd {

absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenGpu(int index) {
  PD_ASSIGN_OR_RETURN(const GpuInfo gpu, FindGpu(index));
  PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  PD_RETURN_IF_ERROR(CheckGpu(gpu, driver->version, BuiltCudaVersion()));
  return MakePlace(index, KernelImages());
}

absl::StatusOr<std::shared_ptr<const DevicePlace>> MakePlace(
    int index, const std::vector<KernelImage>& images) {
  auto place = std::make_shared<DevicePlace>();
  PD_ASSIGN_OR_RETURN(place->device, CudaDevice::Open(index, images));
  place->look = cuda::Look;
  place->reorder = cuda::BindReorder;
  cuda::AddElementwise(&place->kernels);
  cuda::AddReductions(&place->kernels);
  cuda::AddMoves(&place->kernels);
  cuda::AddParts(&place->kernels);
  cuda::AddLines(&place->kernels);
  cuda::AddLosses(&place->kernels);
  cuda::AddGroups(&place->kernels);
  cuda::AddPicks(&place->kernels);
  cuda::AddImages(&place->kernels);
  cuda::AddResizing(&place->kernels);
  cuda::AddRows(&place->kernels);
  cuda::AddSelectedRows(&place->kernels);
  cuda::AddChoices(&place->kernels);
  cuda::AddWholeNumbers(&place->kernels);
  cuda::AddActivations(&place->kernels);
  cuda::AddSequences(&place->kernels);
  cuda::AddSequenceRows(&place->kernels);
  cuda::AddCrf(&place->kernels);
  cuda::AddCtc(&place->kernels);
  cuda::AddDecoding(&place->kernels);
  cuda::AddNce(&place->kernels);
  cuda::AddHierarchicalSigmoid(&place->kernels);
  cuda::AddRowConv(&place->kernels);
  cuda::AddWindows(&place->kernels);
  cuda::AddPrecision(&place->kernels);
  cuda::AddQuantizing(&place->kernels);
  cuda::AddGrids(&place->kernels);
  cuda::AddBilinear(&place->kernels);
  cuda::AddSpectralNorm(&place->kernels);
  cuda::AddYolo(&place->kernels);
  cuda::AddStatistics(&place->kernels);
  cuda::AddPlaces(&place->kernels);
  cuda::AddCumsum(&place->kernels);
  cuda::AddUpdates(&place->kernels);
  cuda::AddTrustRatios(&place->kernels);
  // Without it every product would be the CPU's: better no GPU than a slow one.
  PD_RETURN_IF_ERROR(LoadCublasLt().status());
  cuda::AddProducts(&place->kernels);
  cuda::AddInt8Products(&place->kernels);
  cuda::AddInt8Tensors(&place->kernels);
  cuda::AddInt8Dynamic(&place->kernels);
  cuda::AddRecurrences(&place->kernels);
  cuda::AddLstm(&place->kernels);
  cuda::AddGru(&place->kernels);
  cuda::AddSequenceConv(&place->kernels);
  // Without cuDNN a program with convolutions says that it is missing.
  cuda::AddConvolutions(&place->kernels);
  // Attention without it is three steps.
  cuda::AddAttention(&place->kernels);
  return place;
}

}  // namespace pd
