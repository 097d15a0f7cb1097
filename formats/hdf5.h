// SPDX-License-Identifier: Apache-2.0
// HDF5 files as Keras writes them through h5py: groups, attributes of numbers
// and strings, datasets that lie in one piece. A reader of this subset instead
// of libhdf5, which has had errors of memory on damaged files; here every
// address is checked against the file, no object is read twice, and all that is
// read together is bounded by the file's size. Links lead nowhere outside of
// the file, and no filter is loaded.
#ifndef PD_FORMATS_HDF5_H_
#define PD_FORMATS_HDF5_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// A group or a dataset.
struct Hdf5Object {
  std::map<std::string, Hdf5Object> members;  ///< of a group
  std::optional<Array> array;                 ///< of a dataset of numbers
  /// Attributes of strings, one or several. Others are left out.
  std::map<std::string, std::vector<std::string>> texts;

  /// The object at "a/b/c" below this one; null where there is none.
  const Hdf5Object* Find(absl::string_view path) const;
  /// The attribute when it is one string; null otherwise.
  const std::string* Text(const std::string& name) const;
};

/// Whether bytes begin as an HDF5 file does.
bool IsHdf5(absl::string_view bytes);

/// The root group. DataLoss when the file is damaged; Unimplemented for forms
/// that h5py does not write unless asked: chunks, filters, links that are not
/// hard, groups with an index of HDF5 1.8, numbers without a DType.
absl::StatusOr<Hdf5Object> ParseHdf5(const FileBytes& file);

}  // namespace pd

#endif  // PD_FORMATS_HDF5_H_
