// SPDX-License-Identifier: Apache-2.0
// A cursor over the bytes of a binary file: whoever asks for more than is left
// gets a DataLoss that says where and how much.
#ifndef PD_FORMATS_BYTE_READER_H_
#define PD_FORMATS_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {

/// The little-endian number at byte `at` of `bytes`, which hold it.
template <typename T>
T NumberAt(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

class ByteReader {
 public:
  explicit ByteReader(FileBytes file) : file_(std::move(file)) {}

  size_t offset() const { return offset_; }
  size_t left() const { return file_.size - offset_; }

  /// The next `size` bytes, called `what` in the error; they live as long as
  /// the file's.
  absl::StatusOr<absl::string_view> Take(uint64_t size, const char* what) {
    if (size > left())
      return DataLoss("byte %d: %s takes %d bytes; %d are left", offset_, what,
                      size, left());
    const absl::string_view bytes = file_.view().substr(offset_, size);
    offset_ += size;
    return bytes;
  }

  /// A little-endian number.
  template <typename T>
  absl::StatusOr<T> Number(const char* what) {
    PD_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  /// A pointer to the next byte that keeps the file's bytes alive.
  std::shared_ptr<const std::byte> here() const {
    return {file_.data, file_.data.get() + offset_};
  }

 private:
  FileBytes file_;
  size_t offset_ = 0;
};

}  // namespace pd

#endif  // PD_FORMATS_BYTE_READER_H_
