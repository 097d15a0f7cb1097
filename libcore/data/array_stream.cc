// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/array_stream.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"

namespace pd {

std::string ProgramName(const std::string& command) {
  constexpr size_t kMostShown = 60;
  const std::string shown = Printable(
      command.substr(0, WholeCharacters(command.substr(0, kMostShown))));
  return absl::StrCat("program '", shown,
                      command.size() > kMostShown ? "..." : "", "'");
}

// Copies up to `size` bytes; fewer at the end.
absl::StatusOr<size_t> ArrayStream::ReadBytes(std::byte* to, size_t size) {
  size_t done = 0;
  while (done < size) {
    if (begin_ == end_) {
      // Large arrays go where they belong at once.
      const bool direct = size - done >= buffer_.size();
      char* const room =
          direct ? reinterpret_cast<char*>(to) + done : buffer_.data();
      PD_ASSIGN_OR_RETURN(
          const size_t got,
          child_->Read(room, direct ? size - done : buffer_.size()));
      if (got == 0) break;
      if (direct) {
        done += got;
        continue;
      }
      begin_ = 0;
      end_ = got;
    }
    const size_t n = std::min(size - done, end_ - begin_);
    std::memcpy(to + done, buffer_.data() + begin_, n);
    begin_ += n;
    done += n;
  }
  return done;
}

// The stream ends inside an array: because the program failed, or as it is.
absl::Status ArrayStream::Cut(const std::string& name) {
  PD_RETURN_IF_ERROR(child_->Finish());
  return DataLoss("the stream ends inside field '%s'", name);
}

// False where the stream ends in the array's place.
absl::StatusOr<bool> ArrayStream::ReadHeader(const std::string& name,
                                             bool may_end, NpyHeader* header) {
  constexpr size_t kStart = 12, kMostHeader = size_t{1} << 20;
  header_.resize(kStart);
  const auto room = [this](size_t at) {
    return reinterpret_cast<std::byte*>(header_.data()) + at;
  };
  PD_ASSIGN_OR_RETURN(size_t got, ReadBytes(room(0), kStart));
  if (got == 0 && may_end) {
    PD_RETURN_IF_ERROR(child_->Finish());
    return false;
  }
  const absl::string_view start(header_.data(), got);
  // A program that prints, too, is the most usual mistake.
  if (start.substr(0, kNpyMagic.size()) !=
      kNpyMagic.substr(0, std::min(got, kNpyMagic.size())))
    return DataLoss(
        "field '%s': the stream has '%s' where an array begins; the program "
        "may write nothing but arrays to its standard output",
        name, Printable(start));
  if (got < kStart) return Cut(name);
  PD_ASSIGN_OR_RETURN(const size_t size, NpyHeaderBytes(start));
  if (size > kMostHeader)
    return DataLoss("field '%s': an array's header takes %d bytes", name, size);
  if (size > kStart) {
    header_.resize(size);
    PD_ASSIGN_OR_RETURN(got, ReadBytes(room(kStart), size - kStart));
    if (got < size - kStart) return Cut(name);
  }
  auto parsed = ParseNpyHeader({header_.data(), header_.size()});
  if (!parsed.ok())
    return Annotate(parsed.status(), absl::StrCat("field '", name, "'"));
  *header = *std::move(parsed);
  return true;
}

absl::Status ArrayStream::ReadElements(const std::string& name,
                                       const NpyHeader& header,
                                       StreamedArray* array) {
  // Memory grows with what has come, not with what a header promises.
  constexpr size_t kStep = size_t{1} << 24;
  size_t done = 0;
  array->raw.clear();
  while (done < header.data_bytes) {
    const size_t step = std::min(kStep, header.data_bytes - done);
    array->raw.resize(done + step);
    PD_ASSIGN_OR_RETURN(const size_t got,
                        ReadBytes(array->raw.data() + done, step));
    if (got < step) return Cut(name);
    done += step;
  }
  array->data = array->raw.data();
  array->bytes = done;
  const RawLayout& layout = header.layout;
  if (!layout.big_endian && !layout.fortran_order &&
      layout.dtype != DType::kBool)
    return absl::OkStatus();
  const std::shared_ptr<const std::byte> unowned(array->raw.data(),
                                                 [](const std::byte*) {});
  PD_ASSIGN_OR_RETURN(array->converted,
                      ArrayFromRaw(unowned, done, layout, header.shape));
  array->data = array->converted.bytes.get();
  return absl::OkStatus();
}

absl::StatusOr<bool> ArrayStream::Read(
    const ExpectedArray& expected, bool may_end,
    const std::function<absl::Status(const Shape&)>& check,
    StreamedArray* array) {
  NpyHeader header;
  PD_ASSIGN_OR_RETURN(const bool more,
                      ReadHeader(expected.name, may_end, &header));
  if (!more) return false;
  if (header.layout.dtype != expected.dtype)
    return InvalidArgument(
        "field '%s' is %s; %s %s (.astype(\"%s\") converts it)", expected.name,
        Name(header.layout.dtype), expected.by, Name(expected.dtype),
        Name(expected.dtype));
  PD_RETURN_IF_ERROR(check(header.shape));
  if (header.data_bytes > static_cast<size_t>(kMostArrayBytes))
    return ResourceExhausted(
        "field '%s': an array of the shape %s takes %d bytes; expected at "
        "most %d",
        expected.name, ToString(header.shape), header.data_bytes,
        kMostArrayBytes);
  array->shape = header.shape;
  PD_RETURN_IF_ERROR(ReadElements(expected.name, header, array));
  return true;
}

}  // namespace pd
