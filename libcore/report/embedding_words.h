// SPDX-License-Identifier: Apache-2.0
// The labels of the rows of an embedding's table.
#ifndef PD_LIBCORE_REPORT_EMBEDDING_WORDS_H_
#define PD_LIBCORE_REPORT_EMBEDDING_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/data/dataset.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// A name for each of `rows` rows of `table`: the words of the field that
/// `program` looks up there, as the run keeps them; the row's number where
/// `data` has no vocabulary for it or no word with that number.
std::vector<std::string> EmbeddingLabels(const ProgramDesc& program,
                                         const std::string& table, int64_t rows,
                                         const Dataset& data);

}  // namespace pd

#endif  // PD_LIBCORE_REPORT_EMBEDDING_WORDS_H_
