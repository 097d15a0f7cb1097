// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/printable.h"

namespace pd {
namespace {
using Traits = std::char_traits<char>;
}  // namespace

void OccupyClosedStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // A descriptor that can neither be read nor written, the lowest free one.
    if (::open("/", O_PATH) < 0) return;
  }
}

OutputStream::OutputStream(int fd, std::string name)
    : std::ostream(nullptr),
      fd_(fd),
      terminal_(isatty(fd) != 0),
      name_(std::move(name)) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  rdbuf(this);
}

OutputStream::~OutputStream() { WriteOut(/*last=*/true); }

void OutputStream::Write(absl::string_view bytes) {
  while (error_ == 0 && !bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n > 0) {
      bytes.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
}

bool OutputStream::WriteOut(bool last) {
  const absl::string_view held(pbase(), static_cast<size_t>(pptr() - pbase()));
  // A character that the buffer's end cuts waits for the rest of it.
  const size_t whole = terminal_ && !last ? WholeCharacters(held) : held.size();
  if (terminal_)
    Write(PrintableLines(held.substr(0, whole)));
  else
    Write(held);
  const std::string cut(held.substr(whole));
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  for (const char c : cut) sputc(c);
  return error_ == 0;
}

int OutputStream::overflow(int c) {
  if (!WriteOut()) return Traits::eof();
  if (c != Traits::eof()) sputc(static_cast<char>(c));
  return Traits::not_eof(c);
}

int OutputStream::sync() { return WriteOut() ? 0 : -1; }

absl::Status OutputStream::Finish() {
  flush();
  WriteOut(/*last=*/true);
  if (error_ != 0) return ErrnoToStatus(error_, name_);
  return absl::OkStatus();
}

}  // namespace pd
