// SPDX-License-Identifier: Apache-2.0
// Lines of LIBSVM's and SVMlight's files: "LABEL INDEX:VALUE INDEX:VALUE ...",
// indices ascending, "# comment" behind, "qid:N" in front passed over.
#ifndef PD_FORMATS_LIBSVM_H_
#define PD_FORMATS_LIBSVM_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace pd {

struct LibSvmRow {
  double label = 0;
  std::vector<int64_t> indices;  ///< as the file counts
  std::vector<float> values;
};

/// False in `*row_found` on a line that holds nothing but blanks or a comment.
/// DataLoss "column 7: ..." on anything else that is no such line.
absl::Status ParseLibSvm(absl::string_view line, LibSvmRow* row,
                         bool* row_found);

}  // namespace pd

#endif  // PD_FORMATS_LIBSVM_H_
