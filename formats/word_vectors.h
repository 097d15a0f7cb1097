// SPDX-License-Identifier: Apache-2.0
// Text files of word vectors as GloVe, word2vec and fastText write them: a
// word and its numbers a line, between blanks; in front, of the last two, a
// line with the number of words and the numbers of each.
#ifndef PD_FORMATS_WORD_VECTORS_H_
#define PD_FORMATS_WORD_VECTORS_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// How many numbers a word has, by the first lines. DataLoss "line 1: ..."
/// where they are no word vectors.
absl::StatusOr<int64_t> WordVectorSize(absl::string_view text);

/// Gives the word of each line to `place`, which says where its `size` numbers
/// go; null: nowhere. A word may hold blanks. DataLoss "line 7: ..." on a line
/// with fewer numbers, on a number that is none, and where there are fewer
/// words than the first line says. Returns the number of words.
absl::StatusOr<int64_t> ReadWordVectors(
    absl::string_view text, int64_t size,
    absl::FunctionRef<float*(absl::string_view)> place);

}  // namespace pd

#endif  // PD_FORMATS_WORD_VECTORS_H_
