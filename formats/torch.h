// SPDX-License-Identifier: Apache-2.0
// The files of PyTorch's torch.save (.pt, .pth): a zip with a pickle and a file
// for each storage, or, before PyTorch 1.6, pickles one after the other with
// the storages behind them. The pickle is read as data (pickle.h); a tensor is
// a window on a storage, with an offset and strides.
#ifndef PD_FORMATS_TORCH_H_
#define PD_FORMATS_TORCH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/pickle.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"

namespace pd {

/// Whether bytes begin as a file of torch.save does, in either form.
bool IsTorch(absl::string_view bytes);

/// The object in the bytes of a file: mostly a dict of tensors, or a dict with
/// such a dict under "state_dict" or "model". Tensors are arrays, contiguous;
/// those that share a storage may share bytes. DataLoss when it is damaged or a
/// tensor reaches beyond its storage, PermissionDenied for names other than
/// those of tensors, InvalidArgument for a TorchScript module and for what is
/// no tree of values, Unimplemented for element types without a DType.
absl::StatusOr<PickleValue> ParseTorch(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

}  // namespace pd

#endif  // PD_FORMATS_TORCH_H_
