// SPDX-License-Identifier: Apache-2.0
// Pictures as their files' bytes, in place of an input's numbers: decoded and
// transformed as the job says that stands beside an exported model, or in a
// run. What clients send is hostile.
#ifndef PD_LIBCORE_SERVE_PICTURE_READER_H_
#define PD_LIBCORE_SERVE_PICTURE_READER_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/data/pipeline.h"
#include "libcore/ir/array.h"
#include "libcore/model/load_model.h"

namespace pd {
namespace serve {

/// The datatype of pictures in requests.
inline constexpr char kBytesDatatype[] = "BYTES";

/// Any number of threads may use it.
class PictureReader {
 public:
  /// Null for a model whose job says nothing of pictures, that has several
  /// inputs, or no job beside it. The errors of reading the job.
  static absl::StatusOr<std::shared_ptr<const PictureReader>> Open(
      const LoadedModel& model);
  PictureReader(int channels, Pipeline pipeline)
      : channels_(channels), pipeline_(std::move(pipeline)) {}

  /// A row for each picture, of the input's shape where as many elements fit
  /// it. InvalidArgument names the picture that cannot be read, and the first
  /// of another size, and says when the rows take more than 1 GiB.
  absl::StatusOr<Array> Read(const std::vector<absl::string_view>& pictures,
                             DType dtype, const Shape& input,
                             const std::string& where) const;

 private:
  const int channels_;
  const Pipeline pipeline_;
};

/// InvalidArgument unless `shape`, [n] or [n, 1], is one of pictures.
absl::StatusOr<int64_t> PictureCount(const Shape& shape,
                                     const std::string& where);
/// `count` elements of BYTES as KServe lays them: four bytes of length, little
/// endian, then so many bytes.
absl::StatusOr<std::vector<absl::string_view>> SplitBytes(
    absl::string_view bytes, int64_t count, const std::string& where);
/// Whether `value` is {"b64": "..."}, a picture in JSON.
bool IsEncodedPicture(const nlohmann::json& value);
/// The bytes of a list of such pictures.
absl::StatusOr<std::vector<std::string>> PicturesOfJson(
    const nlohmann::json& list, const std::string& where);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_PICTURE_READER_H_
