// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/standard_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "libcore/base/error.h"

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
    : std::ostream(nullptr), fd_(fd), name_(std::move(name)) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  rdbuf(this);
}

OutputStream::~OutputStream() { WriteOut(); }

bool OutputStream::WriteOut() {
  const char* from = pbase();
  while (error_ == 0 && from < pptr()) {
    const ssize_t n = ::write(fd_, from, static_cast<size_t>(pptr() - from));
    if (n > 0) {
      from += n;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  setp(buffer_.data(), buffer_.data() + buffer_.size());
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
  if (error_ != 0) return ErrnoToStatus(error_, name_);
  return absl::OkStatus();
}

}  // namespace pd
