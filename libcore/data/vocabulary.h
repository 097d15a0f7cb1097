// SPDX-License-Identifier: Apache-2.0
// Tokens and their numbers: read from a file of lines, or counted in a text and
// ordered by frequency.
#ifndef PD_LIBCORE_DATA_VOCABULARY_H_
#define PD_LIBCORE_DATA_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// Tokens that stand for something else than text.
struct SpecialTokens {
  std::string pad = "<pad>", unk = "<unk>", bos = "<s>", eos = "</s>";
};

class Vocabulary {
 public:
  /// Numbers are places in `tokens`. AlreadyExists when one comes twice.
  static absl::StatusOr<Vocabulary> Make(std::vector<std::string> tokens,
                                         const SpecialTokens& special = {});
  /// A file of lines, gzip or not; what stands behind a tab does not count.
  /// Messages name path and line.
  static absl::StatusOr<Vocabulary> Read(const std::string& path,
                                         const SpecialTokens& special = {});
  Vocabulary(Vocabulary&&) = default;
  Vocabulary& operator=(Vocabulary&&) = default;

  int64_t size() const { return static_cast<int64_t>(tokens_->size()); }
  const std::vector<std::string>& tokens() const { return *tokens_; }
  /// The token's number; -1 where it has none.
  int64_t Find(absl::string_view token) const;
  /// -1 where the vocabulary does not hold such a token.
  int64_t pad() const { return pad_; }
  int64_t unk() const { return unk_; }
  int64_t bos() const { return bos_; }
  int64_t eos() const { return eos_; }

 private:
  Vocabulary() = default;
  absl::Status Index(const SpecialTokens& special);

  // The keys of `numbers_` point into the tokens.
  std::unique_ptr<std::vector<std::string>> tokens_;
  std::unordered_map<absl::string_view, int64_t, absl::Hash<absl::string_view>>
      numbers_;
  int64_t pad_ = -1, unk_ = -1, bos_ = -1, eos_ = -1;
};

/// A token on one line: control characters and backslashes as "\ooo", octal.
std::string PrintableToken(absl::string_view token);

/// Counts tokens while a text is encoded with numbers for the time being.
class VocabularyBuilder {
 public:
  explicit VocabularyBuilder(const SpecialTokens& special);
  /// Without special tokens, for Sorted.
  VocabularyBuilder() = default;

  /// The token's number for the time being; counts it.
  int64_t Add(absl::string_view token);
  // Numbers for the time being of the special tokens.
  static constexpr int64_t kPad = 0, kUnk = 1, kBos = 2, kEos = 3;

  /// pad, unk, bos, eos, then tokens that came `min_freq` times or more, the
  /// most frequent first and among equals in the order of their bytes, until
  /// there are `max_size` (0: no limit). `renumber` gets the final number of
  /// each number for the time being; the left-out ones become unk.
  absl::StatusOr<Vocabulary> Build(int64_t min_freq, int64_t max_size,
                                   std::vector<int64_t>* renumber) const;
  /// Everything in the order of its bytes.
  absl::StatusOr<Vocabulary> Sorted() const;
  /// By their numbers for the time being.
  std::vector<std::string> tokens() const;

 private:
  struct Entry {
    std::string token;
    int64_t count = 0;
  };
  SpecialTokens special_;
  std::vector<std::unique_ptr<Entry>> entries_;  // behind the special ones
  std::unordered_map<absl::string_view, int64_t, absl::Hash<absl::string_view>>
      numbers_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_VOCABULARY_H_
