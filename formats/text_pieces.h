// SPDX-License-Identifier: Apache-2.0
// A text of records, a line or a CSV row each, read in pieces of whole records:
// a stream of any length is never held in memory. Pieces hold the same number
// of records but for the last; where the writer of a pipe pauses, what has come
// is handed on.
#ifndef PD_FORMATS_TEXT_PIECES_H_
#define PD_FORMATS_TEXT_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"
#include "libcore/base/file_input.h"

namespace pd {

struct TextPiece {
  FileBytes bytes;
  int64_t first_line = 1;  ///< of the text, at the beginning of `bytes`
};

struct TextPieceOptions {
  /// Line breaks in double quotes end no record (RFC 4180); a quote opens at
  /// the beginning of a field.
  bool quoting = false;
  char delimiter = ',';                 ///< of those fields
  int64_t records = 8192;               ///< of a piece
  size_t bytes = size_t{8} << 20;       ///< a piece of so many ends early
  size_t most_bytes = size_t{1} << 28;  ///< of a single record
};

class TextPieces {
 public:
  /// Opens a file or a stream as OpenInput does (file_input.h); "-" is standard
  /// input. What is gzip is read and inflated whole.
  static absl::StatusOr<std::unique_ptr<TextPieces>> Open(
      const std::string& path, const TextPieceOptions& options = {});
  ~TextPieces();
  TextPieces(const TextPieces&) = delete;
  TextPieces& operator=(const TextPieces&) = delete;

  /// False at the end. ResourceExhausted when a record is too long; errors of
  /// ReadSome and of Gunzip.
  absl::StatusOr<bool> Next(TextPiece* piece);

 private:
  TextPieces() = default;
  absl::Status ReadMore();
  absl::Status Fill();
  bool Scan();
  void Take(size_t bytes, TextPiece* piece);
  bool Waits() const;

  FileInput input_;
  TextPieceOptions options_;
  bool pipe_ = false;    // may pause
  bool first_ = true;    // nothing was read yet
  bool end_ = false;     // of the input
  std::string pending_;  // read and not handed on
  size_t scanned_ = 0;   // bytes of it that were looked at
  size_t cut_ = 0;       // behind its last whole record
  int64_t records_ = 0;  // before `cut_`
  bool quoted_ = false;  // `scanned_` is inside of quotes
  bool opens_ = true;    // a quote at `scanned_` would open
  int64_t line_ = 1;
};

}  // namespace pd

#endif  // PD_FORMATS_TEXT_PIECES_H_
