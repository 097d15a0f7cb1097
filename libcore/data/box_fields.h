// SPDX-License-Identifier: Apache-2.0
// The boxes of a record and what is beside them, class numbers and flags:
// taken out as pixels for transforms to move, and put back as they are written.
#ifndef PD_LIBCORE_DATA_BOX_FIELDS_H_
#define PD_LIBCORE_DATA_BOX_FIELDS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/data/picture.h"

namespace pd {

/// The four numbers of a box as the form has them, of a picture of this size.
void WriteBox(const BoxForm& form, const PixelBox& box, int64_t height,
              int64_t width, float* out);

class BoxFields {
 public:
  /// The boxes among a data set's fields; nothing where no field holds boxes.
  /// InvalidArgument where there is no picture, where several fields are boxes,
  /// and on shapes that do not fit.
  static absl::StatusOr<std::optional<BoxFields>> Create(
      const std::vector<FieldSpec>& specs);

  double min_visible() const { return form_.min_visible; }

  /// The boxes of a record with this picture; those without width or height are
  /// left out. InvalidArgument where fields beside have another number of rows.
  absl::Status Take(const Record& record, const Picture& picture,
                    std::vector<PixelBox>* boxes) const;
  /// Makes the record's fields those of `boxes`, in this order, which
  /// transforms have moved to `picture`. In fields of one shape zeros follow.
  void Put(const std::vector<PixelBox>& boxes, const Picture& picture,
           Record* record) const;

 private:
  struct Field {
    size_t number = 0;
    std::string name;
    bool varying = false;  // as many rows as the record has boxes
    int64_t rows = 0;      // where it does not vary
    size_t row_bytes = 0;
  };
  static absl::StatusOr<Field> FieldOf(const FieldSpec& spec, size_t number);
  int64_t RowsOf(const Field& field, const Record& record) const;

  BoxForm form_;
  std::vector<Field> fields_;  // the boxes, then what is beside them
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_BOX_FIELDS_H_
