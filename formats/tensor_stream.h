// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's tensor streams: `.pdiparams` (many in one file, without their
// names, which the program gives), the files of legacy model folders (one
// each), `paddle.save(..., use_binary_format=True)`. PaddlePaddle believes what
// a stream says; here every size is checked against the bytes left first.
#ifndef PD_FORMATS_TENSOR_STREAM_H_
#define PD_FORMATS_TENSOR_STREAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// Rows of a tall matrix: value[i] is row rows[i] of `height`.
struct SelectedRowsArray {
  std::vector<int64_t> rows;
  int64_t height = 0;
  Array value;  ///< [rows.size(), ...]
};

/// Whether bytes begin as one tensor or many do.
bool IsTensorStream(absl::string_view bytes);
/// Whether bytes begin as a SelectedRows does.
bool IsSelectedRows(absl::string_view bytes);

/// The only tensor of a file: a view of its bytes where alignment permits.
/// DataLoss when the stream is damaged or followed by more, Unimplemented for
/// a version other than 0 or element types without a DType.
absl::StatusOr<Array> ParseTensor(const FileBytes& file,
                                  Alignment alignment = Alignment::kNatural);

/// All tensors of a joint file in its order, for want of names.
absl::StatusOr<std::vector<Array>> ParseTensorList(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

/// The tensors of a joint file, the i-th under names[i]. Errors of
/// ParseTensor name the tensor; DataLoss when the counts differ.
absl::StatusOr<NamedArrays> ParseTensors(
    const FileBytes& file, const std::vector<std::string>& names,
    Alignment alignment = Alignment::kNatural);

/// The only SelectedRows of a file.
absl::StatusOr<SelectedRowsArray> ParseSelectedRows(
    const FileBytes& file, Alignment alignment = Alignment::kNatural);

/// The same on files; messages name the path.
absl::StatusOr<Array> ReadTensor(const std::string& path);
absl::StatusOr<NamedArrays> ReadTensors(const std::string& path,
                                        const std::vector<std::string>& names);
absl::StatusOr<SelectedRowsArray> ReadSelectedRows(const std::string& path);

/// Writes one tensor, byte for byte as PaddlePaddle does.
absl::Status WriteTensor(const std::string& path, const Array& array);

/// Writes a joint file in name order, the order of a `.pdiparams`.
absl::Status WriteTensors(const std::string& path, const NamedArrays& arrays);

/// Writes a SelectedRows file.
absl::Status WriteSelectedRows(const std::string& path,
                               const SelectedRowsArray& rows);

/// InvalidArgument unless the levels start at 0, never fall, and each ends at
/// the rows of the next, the last at `rows`.
absl::Status CheckLoD(const LoD& lod, int64_t rows);

}  // namespace pd

#endif  // PD_FORMATS_TENSOR_STREAM_H_
