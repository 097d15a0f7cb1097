// SPDX-License-Identifier: Apache-2.0
// Word vectors of a text file as the first values of an embedding.
#ifndef PD_LIBCORE_TRAIN_INITIAL_WORDS_H_
#define PD_LIBCORE_TRAIN_INITIAL_WORDS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/ir/program_desc.h"
#include "libcore/train/initial_values.h"

namespace pd {

/// Sets the rows of `from.words`' parameter that the file `from.model` has a
/// word for, in the parameter's element type, and says in the log how many, and
/// which words the file does not have, or refuses them as `from.missing` says;
/// tokens that stand for no text are not counted. Returns the number of rows.
/// InvalidArgument, which begins with the source's place, where the parameter
/// is no matrix [words, numbers of a word] of the network `test`, the field has
/// no vocabulary, or the file has none of its words.
absl::StatusOr<int64_t> TakeWordVectors(const ProgramDesc& test,
                                        const InitialParameters& from,
                                        const FieldVocabularies& vocabularies,
                                        Session* session);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INITIAL_WORDS_H_
