// SPDX-License-Identifier: Apache-2.0
#include "formats/gzip.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/array.h"

namespace pd {
namespace {

// A member is at least a 10-byte header, an empty block and an 8-byte trailer.
constexpr size_t kMinMember = 18;
// Deflate's longest match is 258 bytes and takes at least 2 bits.
constexpr size_t kMaxRatio = 1032;

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* d) const {
    libdeflate_free_decompressor(d);
  }
};
using Decompressor = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

absl::StatusOr<Decompressor> NewDecompressor() {
  Decompressor decompressor(libdeflate_alloc_decompressor());
  if (decompressor == nullptr)
    return ResourceExhausted("no memory for a gzip decompressor");
  return decompressor;
}

absl::StatusOr<FileBytes> NewBytes(size_t size, std::byte** bytes) {
  auto array = NewArray(DType::kUInt8, {static_cast<int64_t>(size)}, bytes);
  if (!array.ok()) return Annotate(array.status(), "gzip content");
  return FileBytes{std::move(array->bytes), size};
}

// ISIZE of the last member: a first guess at the size of the whole.
size_t TrailingSize(absl::string_view bytes) {
  uint32_t size;
  std::memcpy(&size, bytes.data() + bytes.size() - sizeof(size), sizeof(size));
  return size;
}

absl::Status Damaged(libdeflate_result result) {
  if (result == LIBDEFLATE_SHORT_OUTPUT)
    return DataLoss("gzip data ends before the length that it states");
  return DataLoss("gzip data is truncated or damaged");
}

bool AllZeros(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return c == '\0'; });
}

}  // namespace

bool IsGzip(absl::string_view bytes) {
  return bytes.size() >= 2 && bytes[0] == '\x1f' && bytes[1] == '\x8b';
}

bool PlausibleInflatedSize(size_t compressed, size_t size) {
  return size / kMaxRatio <= compressed;
}

absl::StatusOr<FileBytes> GunzipExactly(absl::string_view bytes, size_t size) {
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(FileBytes content, NewBytes(size, &out));
  PD_ASSIGN_OR_RETURN(const Decompressor decompressor, NewDecompressor());
  size_t used = 0, made = 0;
  const libdeflate_result result = libdeflate_gzip_decompress_ex(
      decompressor.get(), bytes.data(), bytes.size(), out, size, &used, &made);
  if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
    return DataLoss("gzip data holds more than the %d bytes expected", size);
  if (result != LIBDEFLATE_SUCCESS) return Damaged(result);
  if (made != size) {
    return DataLoss("gzip data holds %d bytes; %d were expected", made, size);
  }
  if (!AllZeros(bytes.substr(used)))
    return DataLoss("gzip data is followed by %d bytes of something else",
                    bytes.size() - used);
  return content;
}

absl::StatusOr<FileBytes> Gunzip(absl::string_view bytes, size_t max_bytes) {
  if (bytes.size() < kMinMember || !IsGzip(bytes))
    return DataLoss("not a gzip file, or only its first %d bytes",
                    bytes.size());
  PD_ASSIGN_OR_RETURN(const Decompressor decompressor, NewDecompressor());
  const size_t limit =
      std::min(max_bytes, std::max<size_t>(bytes.size(), 64) * kMaxRatio);
  size_t room = std::min(std::max<size_t>(TrailingSize(bytes), 1), limit);
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(FileBytes content, NewBytes(room, &out));
  size_t total = 0;
  for (absl::string_view rest = bytes; !rest.empty();) {
    if (total > 0 && AllZeros(rest)) break;
    size_t used = 0, made = 0;
    const libdeflate_result result = libdeflate_gzip_decompress_ex(
        decompressor.get(), rest.data(), rest.size(), out + total, room - total,
        &used, &made);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (room >= limit)
        return ResourceExhausted("gzip data holds more than %d bytes", limit);
      room = std::min(limit, room * 2);
      std::byte* larger = nullptr;
      PD_ASSIGN_OR_RETURN(FileBytes grown, NewBytes(room, &larger));
      std::memcpy(larger, out, total);
      content = std::move(grown);
      out = larger;
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) return Damaged(result);
    total += made;
    rest.remove_prefix(used);
  }
  content.size = total;
  return content;
}

absl::StatusOr<FileBytes> GunzipHead(absl::string_view bytes, size_t size) {
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(FileBytes head, NewBytes(size, &out));
  z_stream stream;
  std::memset(&stream, 0, sizeof(stream));
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK)
    return ResourceExhausted("no memory for a gzip decompressor");
  constexpr size_t kMaxInput = size_t{1} << 20;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kMaxInput));
  stream.next_out = reinterpret_cast<Bytef*>(out);
  stream.avail_out = static_cast<uInt>(size);
  const int result = inflate(&stream, Z_SYNC_FLUSH);
  const size_t made = size - stream.avail_out;
  inflateEnd(&stream);
  if (result != Z_OK && result != Z_STREAM_END)
    return DataLoss("gzip data is truncated or damaged");
  head.size = made;
  return head;
}

absl::StatusOr<std::string> Gzip(absl::string_view bytes) {
  constexpr int kLevel = 6;
  const std::unique_ptr<libdeflate_compressor,
                        decltype(&libdeflate_free_compressor)>
      compressor(libdeflate_alloc_compressor(kLevel),
                 libdeflate_free_compressor);
  if (compressor == nullptr)
    return ResourceExhausted("no memory for a gzip compressor");
  std::string out(
      libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(compressor.get(), bytes.data(),
                                      bytes.size(), &out[0], out.size()));
  PD_INVARIANT(!out.empty());  // there was room for the worst case
  return out;
}

absl::StatusOr<FileBytes> ReadFileGunzip(const std::string& path) {
  PD_ASSIGN_OR_RETURN(FileBytes file, ReadFile(path));
  if (!IsGzip(file.view())) return file;
  auto content = Gunzip(file.view());
  if (!content.ok())
    return Annotate(content.status(), absl::StrCat("'", path, "'"));
  return content;
}

}  // namespace pd
