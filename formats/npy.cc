// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kVersion1Prefix = 10;  // magic, version, uint16 length
constexpr size_t kVersion2Prefix = 12;  // magic, version, uint32 length
constexpr size_t kMaxRank = 64;         // numpy 2's own limit

size_t ByteAt(absl::string_view bytes, size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

// Reads the dict literal of a header: strings, True and False, and a tuple of
// integers are all that it can hold.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : rest_(text) {}

  absl::Status Parse(NpyHeader* header) {
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return Bad("'{'");
    while (!Take('}')) {
      PD_ASSIGN_OR_RETURN(const std::string key, String());
      if (!Take(':')) return Bad("':'");
      if (key == "descr" && !descr) {
        PD_RETURN_IF_ERROR(Descr(header));
        descr = true;
      } else if (key == "fortran_order" && !order) {
        PD_ASSIGN_OR_RETURN(header->layout.fortran_order, Bool());
        order = true;
      } else if (key == "shape" && !shape) {
        PD_ASSIGN_OR_RETURN(header->shape, Tuple());
        shape = true;
      } else {
        return DataLoss("the header has key '%s' out of place", key);
      }
      if (!Take(',') && Peek() != '}') return Bad("',' or '}'");
    }
    if (Peek() != '\0') return Bad("its end");
    if (!descr || !order || !shape)
      return DataLoss("the header lacks '%s'",
                      !descr ? "descr" : (!order ? "fortran_order" : "shape"));
    return absl::OkStatus();
  }

 private:
  char Peek() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n'))
      rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeWord(absl::string_view word) {
    Peek();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  absl::Status Bad(absl::string_view expected) {
    return DataLoss("the header has '%s'; expected %s", rest_.substr(0, 16),
                    expected);
  }

  absl::StatusOr<std::string> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Bad("a quoted string");
    const size_t end = rest_.find(quote, 1);
    if (end == absl::string_view::npos) return Bad("a quoted string");
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }

  absl::Status Descr(NpyHeader* header) {
    if (Peek() == '[')
      return Unimplemented("its elements are records; expected numbers");
    const bool fortran = header->layout.fortran_order;
    PD_ASSIGN_OR_RETURN(const std::string descr, String());
    PD_ASSIGN_OR_RETURN(header->layout, ParseNumpyDtype(descr));
    header->layout.fortran_order = fortran;
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Bool() {
    if (TakeWord("True")) return true;
    if (TakeWord("False")) return false;
    return Bad("True or False");
  }

  absl::StatusOr<Shape> Tuple() {
    Shape shape;
    if (!Take('(')) return Bad("a tuple");
    while (!Take(')')) {
      Peek();
      size_t digits = 0;
      while (digits < rest_.size() && rest_[digits] >= '0' &&
             rest_[digits] <= '9')
        ++digits;
      int64_t extent = 0;
      if (digits == 0 || !absl::SimpleAtoi(rest_.substr(0, digits), &extent))
        return Bad("an extent of 0 or more");
      rest_.remove_prefix(digits);
      TakeWord("L");  // Python 2's long
      shape.push_back(extent);
      if (shape.size() > kMaxRank)
        return InvalidArgument("its rank is over %d", kMaxRank);
      if (!Take(',') && Peek() != ')') return Bad("',' or ')'");
    }
    return shape;
  }

  absl::string_view rest_;
};

}  // namespace

absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view start) {
  if (start.substr(0, kNpyMagic.size()) != kNpyMagic)
    return DataLoss("it does not start with numpy's magic bytes");
  if (start.size() < kVersion2Prefix)
    return DataLoss("it ends inside the header");
  const size_t major = ByteAt(start, 6);
  if (major < 1 || major > 3)
    return Unimplemented("its format version is %d.%d; expected 1 to 3", major,
                         ByteAt(start, 7));
  const size_t length = ByteAt(start, 8) | ByteAt(start, 9) << 8;
  if (major == 1) return kVersion1Prefix + length;
  return kVersion2Prefix +
         (length | ByteAt(start, 10) << 16 | ByteAt(start, 11) << 24);
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes) {
  NpyHeader header;
  PD_ASSIGN_OR_RETURN(header.header_bytes, NpyHeaderBytes(bytes));
  if (header.header_bytes > bytes.size())
    return DataLoss("its header takes %d bytes; %d are there",
                    header.header_bytes, bytes.size());
  const size_t prefix =
      ByteAt(bytes, 6) == 1 ? kVersion1Prefix : kVersion2Prefix;
  HeaderParser parser(bytes.substr(prefix, header.header_bytes - prefix));
  PD_RETURN_IF_ERROR(parser.Parse(&header));
  PD_ASSIGN_OR_RETURN(const int64_t size,
                      CheckedBytes(header.shape, SizeOf(header.layout.dtype)));
  header.data_bytes = static_cast<size_t>(size);
  return header;
}

std::string FormatNpyHeader(const Array& array) {
  std::string shape = absl::StrJoin(array.shape, ", ");
  if (array.shape.size() == 1) shape += ",";
  std::string dict =
      absl::StrCat("{'descr': '", NumpyDtype(array.dtype),
                   "', 'fortran_order': False, 'shape': (", shape, "), }");
  // numpy leaves room for the first extent to grow to 21 digits in place.
  constexpr size_t kGrowth = 21, kAlignment = 64;
  if (!array.shape.empty()) {
    const size_t digits = absl::StrCat(array.shape[0]).size();
    if (digits < kGrowth) dict.append(kGrowth - digits, ' ');
  }
  const size_t used = kVersion1Prefix + dict.size() + 1;
  dict.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header(kNpyMagic);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dict.size() & 0xff);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

absl::StatusOr<Array> ParseNpy(const FileBytes& file, Alignment alignment) {
  PD_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(file.view()));
  header.layout.alignment = alignment;
  const size_t available = file.size - header.header_bytes;
  if (available != header.data_bytes)
    return DataLoss("a %s array of shape %s takes %d bytes; %d are there",
                    Name(header.layout.dtype), ToString(header.shape),
                    header.data_bytes, available);
  std::shared_ptr<const std::byte> data(file.data,
                                        file.data.get() + header.header_bytes);
  return ArrayFromRaw(std::move(data), available, header.layout,
                      std::move(header.shape));
}

absl::StatusOr<Array> ReadNpy(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto array = ParseNpy(file);
  if (!array.ok())
    return Annotate(array.status(), absl::StrCat("'", path, "'"));
  return array;
}

absl::Status WriteNpy(const std::string& path, const Array& array) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  PD_RETURN_IF_ERROR(file->Append(FormatNpyHeader(array)));
  PD_RETURN_IF_ERROR(file->Append({array.data<char>(), array.size_bytes()}));
  return file->Commit();
}

bool IsNpy(absl::string_view bytes) {
  return absl::StartsWith(bytes, kNpyMagic);
}

}  // namespace pd
