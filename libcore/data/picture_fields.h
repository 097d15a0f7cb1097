// SPDX-License-Identifier: Apache-2.0
// The pictures of a record, and the mask and the boxes of the first:
// transformed alike, by the same random numbers, and written into a batch.
#ifndef PD_LIBCORE_DATA_PICTURE_FIELDS_H_
#define PD_LIBCORE_DATA_PICTURE_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/rng.h"
#include "libcore/base/shape.h"
#include "libcore/data/box_fields.h"
#include "libcore/data/dataset.h"
#include "libcore/data/pipeline.h"
#include "libcore/data/transforms.h"

namespace pd {

/// The buffers that one thread needs to transform pictures.
struct PictureScratch {
  TransformScratch picture, mask;
  std::vector<PixelBox> boxes;
};

class PictureFields {
 public:
  /// The pictures of a data set with a pipeline of the transforms for each.
  /// Where their sizes are open after them, record 0 decides. InvalidArgument
  /// where the transforms do not fit, or there are transforms and no picture,
  /// or a mask or boxes and no picture, or several masks or fields of boxes.
  static absl::StatusOr<PictureFields> Create(
      const Dataset& dataset, const std::vector<Transform>& transforms,
      uint64_t seed);

  bool empty() const { return pictures_.empty(); }
  /// True for a picture and for the mask: Write fills them.
  bool Has(size_t field) const;
  /// Element type and shape of such a field in a batch, for one record.
  DType dtype(size_t field) const;
  Shape shape(size_t field) const;

  /// Transforms a record's pictures and writes each to where `out` says for its
  /// field; boxes, and what is beside them, stay in the record.
  /// InvalidArgument where a size is not that of the batch.
  absl::Status Write(const RandomStream& random, PictureScratch* scratch,
                     absl::FunctionRef<std::byte*(size_t)> out,
                     Record* record) const;

 private:
  struct Field {
    size_t number;
    std::string name;
    Pipeline pipeline;
    int64_t height, width;  // after the pipeline
  };
  absl::Status Probe(const Dataset& dataset, uint64_t seed);
  const Field* Find(size_t field) const;
  static absl::Status CheckSize(const Field& field, const Picture& picture);

  std::vector<Field> pictures_;
  std::optional<size_t> mask_;  // of pictures_[0]
  std::optional<BoxFields> boxes_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PICTURE_FIELDS_H_
