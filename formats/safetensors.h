// SPDX-License-Identifier: Apache-2.0
// `.safetensors`: the size of a JSON header, the header (name -> type, shape,
// place), the tensors' bytes. As its specification demands, the bytes are used
// up without holes or overlaps, and no name is there twice.
#ifndef PD_FORMATS_SAFETENSORS_H_
#define PD_FORMATS_SAFETENSORS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

struct Safetensors {
  /// In the order of the header.
  std::vector<std::pair<std::string, Array>> tensors;
  std::map<std::string, std::string> metadata;  ///< free text by name
};

/// Whether bytes begin as a safetensors file does.
bool IsSafetensors(absl::string_view bytes);

/// The tensors in the bytes of a file: views of them where alignment permits.
/// DataLoss when header and bytes do not fit together, Unimplemented for
/// element types without a DType; errors name the tensor.
absl::StatusOr<Safetensors> ParseSafetensors(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

/// ParseSafetensors on a file; messages name the path.
absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path);

/// Writes the tensors as the reference implementation orders them: by falling
/// size of an element, which aligns all of them, then by name. InvalidArgument
/// for a name that is no UTF-8 or there twice, Unimplemented for complex128,
/// which the format lacks.
absl::Status WriteSafetensors(const std::string& path,
                              const Safetensors& content);

}  // namespace pd

#endif  // PD_FORMATS_SAFETENSORS_H_
