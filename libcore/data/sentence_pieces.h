// SPDX-License-Identifier: Apache-2.0
// The SentencePiece library behind an interface of the standard library's: its
// header and Debian's Abseil disagree about what absl::string_view is, so no
// file can see both.
#ifndef PD_LIBCORE_DATA_SENTENCE_PIECES_H_
#define PD_LIBCORE_DATA_SENTENCE_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pd {

class SentencePieces {
 public:
  /// Null, and why in `error`, when the model cannot be read.
  static std::unique_ptr<SentencePieces> Read(const std::string& path,
                                              std::string* error);
  ~SentencePieces();

  /// Puts the text's numbers behind `ids`; false, and why, on failure.
  bool Encode(const char* text, size_t size, std::vector<int64_t>* ids,
              std::string* error);
  /// The text of numbers, each of which must be below size().
  std::string Decode(const std::vector<int>& ids) const;
  int64_t size() const;
  /// -1 where the model has none.
  int64_t pad() const;
  int64_t bos() const;
  int64_t eos() const;

 private:
  SentencePieces();
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_SENTENCE_PIECES_H_
