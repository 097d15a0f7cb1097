// SPDX-License-Identifier: Apache-2.0
#include "formats/text_pieces.h"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
// Of a compressed text, which is held whole.
constexpr size_t kMostCompressed = size_t{1} << 30;
constexpr size_t kMostInflated = size_t{1} << 32;
constexpr int kPauseMilliseconds = 50;

FileBytes BytesOf(std::string text) {
  auto kept = std::make_shared<const std::string>(std::move(text));
  const auto* bytes = reinterpret_cast<const std::byte*>(kept->data());
  return {std::shared_ptr<const std::byte>(kept, bytes), kept->size()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextPieces>> TextPieces::Open(
    const std::string& path, const TextPieceOptions& options) {
  std::unique_ptr<TextPieces> pieces(new TextPieces);
  pieces->options_ = options;
  PD_ASSIGN_OR_RETURN(pieces->input_, OpenInput(path));
  struct stat info;
  if (::fstat(pieces->input_.fd, &info) != 0)
    return ErrnoToStatus(errno,
                         absl::StrCat("cannot read ", pieces->input_.shown));
  pieces->pipe_ = !S_ISREG(info.st_mode);
  return pieces;
}

TextPieces::~TextPieces() {
  if (input_.fd >= 0) ::close(input_.fd);
}

// Whether nothing has come for a while.
bool TextPieces::Waits() const {
  if (!pipe_) return false;
  struct pollfd look = {input_.fd, POLLIN, 0};
  return ::poll(&look, 1, kPauseMilliseconds) == 0;
}

absl::Status TextPieces::ReadMore() {
  const size_t before = pending_.size();
  pending_.resize(before + kReadBytes);
  const auto got = ReadSome(
      &input_, reinterpret_cast<std::byte*>(&pending_[before]), kReadBytes);
  pending_.resize(before + got.value_or(0));
  end_ = got.ok() && *got == 0;
  return got.status();
}

// Reads on; at the first call also tells whether the input is compressed.
absl::Status TextPieces::Fill() {
  PD_RETURN_IF_ERROR(ReadMore());
  if (!first_) return absl::OkStatus();
  while (!end_ && pending_.size() < 2) PD_RETURN_IF_ERROR(ReadMore());
  first_ = false;
  if (!IsGzip(pending_)) return absl::OkStatus();
  while (!end_) {
    if (pending_.size() > kMostCompressed)
      return ResourceExhausted(
          "%s is gzip and longer than %d bytes, which are inflated at once; "
          "pipe what zcat makes of it instead",
          input_.shown, kMostCompressed);
    PD_RETURN_IF_ERROR(ReadMore());
  }
  const auto text = Gunzip(pending_, kMostInflated);
  if (!text.ok()) return Annotate(text.status(), input_.shown);
  pending_ = std::string(text->view());
  return absl::OkStatus();
}

// Looks at what has been read until a piece is full.
bool TextPieces::Scan() {
  for (; scanned_ < pending_.size(); ++scanned_) {
    const char c = pending_[scanned_];
    if (quoted_) {
      // A second quote opens again: "" is one quote of the field.
      quoted_ = c != '"';
      opens_ = !quoted_;
      continue;
    }
    if (options_.quoting && c == '"' && opens_) {
      quoted_ = true;
      continue;
    }
    opens_ = c == options_.delimiter || c == '\n';
    if (c != '\n') continue;
    cut_ = scanned_ + 1;
    if (++records_ < options_.records && cut_ < options_.bytes) continue;
    ++scanned_;
    return true;
  }
  return false;
}

void TextPieces::Take(size_t bytes, TextPiece* piece) {
  piece->first_line = line_;
  line_ +=
      std::count(pending_.begin(),
                 pending_.begin() + static_cast<std::ptrdiff_t>(bytes), '\n');
  std::string rest = pending_.substr(bytes);
  pending_.resize(bytes);
  piece->bytes = BytesOf(std::move(pending_));
  pending_ = std::move(rest);
  scanned_ -= bytes;
  cut_ = 0;
  records_ = 0;
}

absl::StatusOr<bool> TextPieces::Next(TextPiece* piece) {
  for (;;) {
    if (Scan() || (cut_ > 0 && !end_ && Waits())) {
      Take(cut_, piece);
      return true;
    }
    if (end_) break;
    if (pending_.size() - cut_ > options_.most_bytes)
      return ResourceExhausted(
          "%s:%d: the record that begins in this line is longer than %d "
          "bytes%s",
          input_.shown,
          line_ +
              std::count(pending_.begin(),
                         pending_.begin() + static_cast<std::ptrdiff_t>(cut_),
                         '\n'),
          options_.most_bytes, quoted_ ? "; is a quote never closed?" : "");
    PD_RETURN_IF_ERROR(Fill());
  }
  if (pending_.empty()) return false;
  Take(pending_.size(), piece);
  return true;
}

}  // namespace pd
