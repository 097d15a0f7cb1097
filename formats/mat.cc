// SPDX-License-Identifier: Apache-2.0
// A file is a header of 128 bytes and elements: a tag (type, bytes), data, and
// padding to 8 bytes. A matrix is an element of elements: flags, extents, name,
// numbers, which may be stored in a narrower type than the matrix is of.
#include "formats/mat.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kHeaderBytes = 128, kTagBytes = 8, kVersionAt = 124,
                 kOrderAt = 126;

enum Type : uint32_t {
  kInt8 = 1,
  kUInt8 = 2,
  kInt16 = 3,
  kUInt16 = 4,
  kInt32 = 5,
  kUInt32 = 6,
  kSingle = 7,
  kDouble = 9,
  kInt64 = 12,
  kUInt64 = 13,
  kMatrix = 14,
  kCompressed = 15,
};

struct Element {
  uint32_t type = 0;
  absl::string_view data;
};

// Reads the elements of some bytes, one after the other.
class Elements {
 public:
  Elements(absl::string_view bytes, bool swapped)
      : rest_(bytes), swapped_(swapped) {}

  bool done() const { return rest_.empty(); }

  absl::StatusOr<Element> Next() {
    if (rest_.size() < kTagBytes)
      return DataLoss("an element's tag takes %d bytes; %d are left", kTagBytes,
                      rest_.size());
    const uint32_t first = Word(rest_), second = Word(rest_.substr(4));
    Element element;
    if (first >> 16 != 0) {  // up to four bytes inside the tag
      const uint32_t size = first >> 16;
      if (size > 4)
        return DataLoss("a small element says %d bytes; expected at most 4",
                        size);
      element.type = first & 0xffff;
      element.data = rest_.substr(4, size);
      rest_.remove_prefix(kTagBytes);
      return element;
    }
    element.type = first;
    rest_.remove_prefix(kTagBytes);
    if (second > rest_.size())
      return DataLoss("an element takes %d bytes; %d are left", second,
                      rest_.size());
    element.data = rest_.substr(0, second);
    // Compressed elements are not padded.
    const size_t padding =
        element.type == kCompressed ? 0 : (8 - second % 8) % 8;
    rest_.remove_prefix(std::min(rest_.size(), second + padding));
    return element;
  }

  uint32_t Word(absl::string_view bytes) const {
    uint32_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    return swapped_ ? __builtin_bswap32(word) : word;
  }
  bool swapped() const { return swapped_; }

 private:
  absl::string_view rest_;
  bool swapped_;
};

template <typename T>
T Load(const char* bytes, bool swapped) {
  char own[sizeof(T)];
  std::memcpy(own, bytes, sizeof(T));
  if (swapped) std::reverse(own, own + sizeof(T));
  T value;
  std::memcpy(&value, own, sizeof(T));
  return value;
}

template <typename T>
absl::Status Upcast(const Element& element, bool swapped,
                    std::vector<double>* values) {
  if (element.data.size() % sizeof(T) != 0)
    return DataLoss("%d bytes are not a whole number of elements of %d",
                    element.data.size(), sizeof(T));
  values->resize(element.data.size() / sizeof(T));
  for (size_t i = 0; i < values->size(); ++i) {
    const T value = Load<T>(element.data.data() + i * sizeof(T), swapped);
    (*values)[i] = static_cast<double>(value);
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (sizeof(T) == 8 && std::is_integral_v<T> &&
        std::fabs((*values)[i]) > kExact)
      return Unimplemented("integers beyond 2^53");
  }
  return absl::OkStatus();
}

absl::Status Numbers(const Element& element, bool swapped,
                     std::vector<double>* values) {
  switch (element.type) {
    case kInt8:
      return Upcast<int8_t>(element, swapped, values);
    case kUInt8:
      return Upcast<uint8_t>(element, swapped, values);
    case kInt16:
      return Upcast<int16_t>(element, swapped, values);
    case kUInt16:
      return Upcast<uint16_t>(element, swapped, values);
    case kInt32:
      return Upcast<int32_t>(element, swapped, values);
    case kUInt32:
      return Upcast<uint32_t>(element, swapped, values);
    case kSingle:
      return Upcast<float>(element, swapped, values);
    case kDouble:
      return Upcast<double>(element, swapped, values);
    case kInt64:
      return Upcast<int64_t>(element, swapped, values);
    case kUInt64:
      return Upcast<uint64_t>(element, swapped, values);
    default:
      return DataLoss("elements of type %d are no numbers", element.type);
  }
}

// The extents, and their product against the numbers that are there.
absl::StatusOr<Shape> Extents(const Element& element, const Elements& in,
                              size_t values) {
  const size_t rank = element.data.size() / 4;
  constexpr size_t kMostRank = 32;
  if (element.type != kInt32 || element.data.size() % 4 != 0 || rank < 1 ||
      rank > kMostRank)
    return DataLoss("its extents are not 1 to %d int32 numbers", kMostRank);
  Shape shape;
  for (size_t i = 0; i < rank; ++i)
    shape.push_back(static_cast<int32_t>(in.Word(element.data.substr(4 * i))));
  PD_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, 1));
  if (static_cast<uint64_t>(bytes) != values)
    return DataLoss("an array of shape %s takes %d numbers; %d are there",
                    ToString(shape), bytes, values);
  return shape;
}

// Column-major numbers as a row-major array.
Array RowMajor(const std::vector<double>& values, Shape shape) {
  std::byte* bytes = nullptr;
  Array array = NewCopy(DType::kFloat64, shape, &bytes);
  auto* out = reinterpret_cast<double*>(bytes);
  std::vector<int64_t> at(shape.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t place = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      place = place * shape[axis] + at[axis];
    out[place] = values[i];
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  return array;
}

absl::Status AddMatrix(const Element& matrix, bool swapped,
                       NamedArrays* arrays) {
  Elements in(matrix.data, swapped);
  PD_ASSIGN_OR_RETURN(const Element flags, in.Next());
  if (flags.type != kUInt32 || flags.data.size() != 8)
    return DataLoss("its flags are not two uint32 numbers");
  const uint32_t word = in.Word(flags.data);
  constexpr uint32_t kFirstNumber = 6, kLastNumber = 15, kComplex = 0x800;
  const uint32_t kind = word & 0xff;
  if (kind < kFirstNumber || kind > kLastNumber || (word & kComplex) != 0)
    return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const Element extents, in.Next());
  PD_ASSIGN_OR_RETURN(const Element name, in.Next());
  if (name.type != kInt8) return DataLoss("its name is no text");
  PD_ASSIGN_OR_RETURN(const Element numbers, in.Next());
  std::vector<double> values;
  const std::string place = absl::StrCat("array '", name.data, "'");
  PD_RETURN_IF_ERROR(Annotate(Numbers(numbers, swapped, &values), place));
  auto shape = Extents(extents, in, values.size());
  if (!shape.ok()) return Annotate(shape.status(), place);
  (*arrays)[std::string(name.data)] = RowMajor(values, *std::move(shape));
  return absl::OkStatus();
}

// The data of a zlib stream; grown as it comes, since nothing says its size.
absl::StatusOr<std::string> Inflate(absl::string_view bytes) {
  z_stream stream;
  std::memset(&stream, 0, sizeof(stream));
  if (inflateInit(&stream) != Z_OK)
    return ResourceExhausted("no memory for a zlib decompressor");
  std::string content(std::max<size_t>(4 * bytes.size(), 64), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  size_t made = 0;
  int result = Z_OK;
  while (result == Z_OK) {
    if (made == content.size()) content.resize(2 * made);
    const uInt room = static_cast<uInt>(
        std::min<size_t>(content.size() - made, size_t{1} << 30));
    stream.next_out = reinterpret_cast<Bytef*>(content.data() + made);
    stream.avail_out = room;
    result = inflate(&stream, Z_NO_FLUSH);
    made += room - stream.avail_out;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END)
    return DataLoss("a compressed element is truncated or damaged");
  content.resize(made);
  return content;
}

}  // namespace

absl::StatusOr<NamedArrays> ParseMat(const FileBytes& file) {
  const absl::string_view bytes = file.view();
  if (bytes.size() < kHeaderBytes)
    return DataLoss("a .mat file's header takes %d bytes; %d are there",
                    kHeaderBytes, bytes.size());
  const absl::string_view order = bytes.substr(kOrderAt, 2);
  if (order != "IM" && order != "MI")
    return DataLoss(
        "not a .mat file of version 5: it says '%s' for its order "
        "of bytes; expected 'IM' or 'MI'",
        absl::CHexEscape(order));
  const bool swapped = order == "MI";
  const auto version = Load<uint16_t>(bytes.data() + kVersionAt, swapped);
  if (version == 0x0200)
    return Unimplemented(
        "a .mat file of version 7.3 (HDF5); expected version 5, MATLAB's "
        "save -v7");
  if (version != 0x0100)
    return DataLoss("its version is %#x; expected 0x100", version);
  NamedArrays arrays;
  Elements in(bytes.substr(kHeaderBytes), swapped);
  while (!in.done()) {
    PD_ASSIGN_OR_RETURN(Element element, in.Next());
    std::string content;
    if (element.type == kCompressed) {
      PD_ASSIGN_OR_RETURN(content, Inflate(element.data));
      PD_ASSIGN_OR_RETURN(element, Elements(content, swapped).Next());
    }
    if (element.type == kMatrix)
      PD_RETURN_IF_ERROR(AddMatrix(element, swapped, &arrays));
  }
  return arrays;
}

absl::StatusOr<NamedArrays> ReadMat(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto arrays = ParseMat(file);
  if (!arrays.ok())
    return Annotate(arrays.status(), absl::StrCat("'", path, "'"));
  return arrays;
}

}  // namespace pd
