// SPDX-License-Identifier: Apache-2.0
#include "formats/idx.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/gunzip_stream.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kMaxRank = 8;
constexpr size_t kMaxHeader = 4 + 4 * kMaxRank;

std::optional<DType> TypeOfCode(uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::kUInt8;
    case 0x09:
      return DType::kInt8;
    case 0x0B:
      return DType::kInt16;
    case 0x0C:
      return DType::kInt32;
    case 0x0D:
      return DType::kFloat32;
    case 0x0E:
      return DType::kFloat64;
    default:
      return std::nullopt;
  }
}

uint32_t BigEndian(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return __builtin_bswap32(value);
}

void SwapCopy(const std::byte* in, size_t size, size_t element,
              std::byte* out) {
  for (size_t i = 0; i < size; i += element)
    std::reverse_copy(in + i, in + i + element, out + i);
}

std::string Quoted(const std::string& path) {
  return absl::StrCat("'", path, "'");
}

}  // namespace

absl::StatusOr<IdxHeader> ParseIdxHeader(absl::string_view bytes) {
  if (bytes.empty()) return DataLoss("the file is empty; expected an idx file");
  if (bytes.size() < 4)
    return DataLoss("%d bytes are too few for an idx file", bytes.size());
  const auto dtype = TypeOfCode(static_cast<uint8_t>(bytes[2]));
  const size_t rank = static_cast<uint8_t>(bytes[3]);
  if (bytes[0] != 0 || bytes[1] != 0 || !dtype.has_value() || rank == 0 ||
      rank > kMaxRank) {
    return DataLoss("magic number 0x%08x is not that of an idx file",
                    BigEndian(bytes.data()));
  }
  IdxHeader header;
  header.dtype = *dtype;
  header.header_bytes = 4 + 4 * rank;
  if (bytes.size() < header.header_bytes) {
    return DataLoss("%d bytes are too few for an idx header of rank %d",
                    bytes.size(), rank);
  }
  for (size_t i = 0; i < rank; ++i)
    header.shape.push_back(BigEndian(bytes.data() + 4 + 4 * i));
  PD_ASSIGN_OR_RETURN(const int64_t size,
                      CheckedBytes(header.shape, SizeOf(header.dtype)));
  header.data_bytes = static_cast<size_t>(size);
  return header;
}

absl::StatusOr<IdxFile> OpenIdxFile(const std::string& path) {
  IdxFile idx;
  idx.path = path;
  PD_ASSIGN_OR_RETURN(idx.file, ReadFile(path));
  const absl::string_view bytes = idx.file.view();
  idx.gzip = IsGzip(bytes);
  FileBytes head = idx.file;
  if (idx.gzip) {
    auto inflated = GunzipHead(bytes, kMaxHeader);
    if (!inflated.ok()) return Annotate(inflated.status(), Quoted(path));
    head = *std::move(inflated);
  }
  auto header = ParseIdxHeader(head.view());
  if (!header.ok()) return Annotate(header.status(), Quoted(path));
  idx.header = *std::move(header);
  const size_t whole = idx.header.header_bytes + idx.header.data_bytes;
  const bool fits = idx.gzip ? PlausibleInflatedSize(bytes.size(), whole)
                             : bytes.size() == whole;
  if (!fits) {
    return DataLoss("'%s': %d %sbytes; the header says %s, %d bytes", path,
                    bytes.size(), idx.gzip ? "compressed " : "",
                    ToString(idx.header.shape), whole);
  }
  return idx;
}

absl::StatusOr<Array> ReadIdxData(const IdxFile& idx) {
  const IdxHeader& header = idx.header;
  const size_t whole = header.header_bytes + header.data_bytes;
  const size_t element = SizeOf(header.dtype);
  Array array;
  array.dtype = header.dtype;
  array.shape = header.shape;
  FileBytes bytes = idx.file;
  if (idx.gzip) {
    auto inflated = GunzipExactly(idx.file.view(), whole);
    if (!inflated.ok()) return Annotate(inflated.status(), Quoted(idx.path));
    bytes = *std::move(inflated);
  }
  if (element > 1) {
    std::byte* out = nullptr;
    PD_ASSIGN_OR_RETURN(array, NewArray(header.dtype, header.shape, &out));
    SwapCopy(bytes.data.get() + header.header_bytes, header.data_bytes, element,
             out);
    return array;
  }
  array.bytes = std::shared_ptr<const std::byte>(
      bytes.data, bytes.data.get() + header.header_bytes);
  return array;
}

absl::Status ScanIdxData(const IdxFile& idx, int64_t elements,
                         const std::function<void(const Array&)>& see) {
  if (!idx.gzip) {
    PD_ASSIGN_OR_RETURN(const Array whole, ReadIdxData(idx));
    if (whole.size() > 0) see(whole);
    return absl::OkStatus();
  }
  GunzipStream stream(idx.file);
  const auto read = [&](std::byte* to, size_t size) -> absl::Status {
    const auto got = stream.Read(reinterpret_cast<char*>(to), size);
    if (!got.ok()) return Annotate(got.status(), Quoted(idx.path));
    if (*got == size) return absl::OkStatus();
    return DataLoss(
        "'%s': its content ends inside of %s, which its header says", idx.path,
        ToString(idx.header.shape));
  };
  std::vector<std::byte> head(idx.header.header_bytes);
  PD_RETURN_IF_ERROR(read(head.data(), head.size()));
  const size_t size = SizeOf(idx.header.dtype);
  int64_t left = static_cast<int64_t>(idx.header.data_bytes / size);
  std::byte *raw = nullptr, *swapped = nullptr;
  PD_ASSIGN_OR_RETURN(Array block, NewArray(idx.header.dtype,
                                            {std::min(left, elements)}, &raw));
  const Array big_endian = block;
  if (size > 1) {
    PD_ASSIGN_OR_RETURN(block,
                        NewArray(idx.header.dtype, big_endian.shape, &swapped));
  }
  while (left > 0) {
    const int64_t count = std::min(left, elements);
    block.shape = {count};
    PD_RETURN_IF_ERROR(read(raw, block.size_bytes()));
    if (size > 1) SwapCopy(raw, block.size_bytes(), size, swapped);
    see(block);
    left -= count;
  }
  char more;
  const auto got = stream.Read(&more, 1);
  if (!got.ok()) return Annotate(got.status(), Quoted(idx.path));
  if (*got == 0) return absl::OkStatus();
  return DataLoss("'%s': its content goes on after %s, which its header says",
                  idx.path, ToString(idx.header.shape));
}

absl::StatusOr<Array> ReadIdx(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const IdxFile idx, OpenIdxFile(path));
  return ReadIdxData(idx);
}

bool IsIdx(absl::string_view bytes) {
  if (bytes.size() < 8 || bytes[0] != 0 || bytes[1] != 0) return false;
  const auto type = static_cast<unsigned char>(bytes[2]);
  const auto rank = static_cast<unsigned char>(bytes[3]);
  return (type == 0x08 || type == 0x09 || (type >= 0x0b && type <= 0x0e)) &&
         rank >= 1 && rank <= 8;
}

}  // namespace pd
