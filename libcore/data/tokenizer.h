// SPDX-License-Identifier: Apache-2.0
// Texts as token numbers: cut at blanks, into characters or bytes, as BERT
// does, or by a SentencePiece model.
#ifndef PD_LIBCORE_DATA_TOKENIZER_H_
#define PD_LIBCORE_DATA_TOKENIZER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/data/vocabulary.h"

namespace pd {

enum class TokenizerKind {
  kWhitespace,
  kCharacter,
  kByte,
  kBasic,
  kWordpiece,
  kSentencePiece,
};

struct TextOptions {
  TokenizerKind kind = TokenizerKind::kWhitespace;
  SpecialTokens special;
  /// Null, where the kind needs one: it is built from what is encoded.
  std::shared_ptr<const Vocabulary> vocabulary;
  int64_t min_freq = 1, max_size = 0;  ///< of a built one
  std::string model;                   ///< of SentencePiece
  bool lower = false;
  bool add_bos = false, add_eos = false;
  int64_t max_len = 0;  ///< 0: no limit
};

class SentencePieces;

/// Not for several threads at once.
class TextEncoder {
 public:
  /// NotFound, DataLoss on files; InvalidArgument when the vocabulary lacks a
  /// special token that is to be added.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(
      const TextOptions& options);
  ~TextEncoder();

  /// Puts the text's numbers behind `ids`. DataLoss where it is not UTF-8 (byte
  /// takes any); NotFound on a token without a number.
  absl::Status Encode(absl::string_view text, std::vector<int64_t>* ids);

  /// The text that ids stand for, up to the first end token; padding and
  /// beginnings are left out. Numbers without a token become U+FFFD. What
  /// cutting took away (lower case, blanks) does not come back.
  std::string Decode(const int64_t* ids, size_t count) const;

  /// Where the vocabulary is being built: ends that, and gives the final number
  /// of each number that Encode gave; after that numbers are final.
  absl::StatusOr<std::vector<int64_t>> Finish();
  bool building() const { return builder_.has_value(); }

  /// Of padding, 0 where there is no token for it.
  int64_t pad() const;
  /// -1 where there is none.
  int64_t bos() const;
  int64_t eos() const;
  /// Null for byte and sentencepiece, and while it is being built.
  const std::shared_ptr<const Vocabulary>& vocabulary() const {
    return options_.vocabulary;
  }

 private:
  TextEncoder() = default;
  absl::Status Number(absl::string_view token, std::vector<int64_t>* ids);
  absl::Status Pieces(absl::string_view word, std::vector<int64_t>* ids);
  absl::Status Tokens(absl::string_view text, std::vector<int64_t>* ids);

  TextOptions options_;
  std::optional<VocabularyBuilder> builder_;
  std::unique_ptr<SentencePieces> sentence_pieces_;
  std::string lowered_, piece_;  // reused
};

/// Cuts a text as `kind`, which is none of wordpiece, byte and sentencepiece,
/// says. `text` must be UTF-8.
absl::Status SplitText(
    TokenizerKind kind, absl::string_view text,
    const std::function<absl::Status(absl::string_view)>& token);

/// BERT's cleaning: no control characters, blanks around Chinese characters;
/// with `lower`, lower case without accents.
std::string CleanForBert(absl::string_view text, bool lower);

/// Lower case of every character.
void LowerUtf8(absl::string_view text, std::string* lower);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_TOKENIZER_H_
