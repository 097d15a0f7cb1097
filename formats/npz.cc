// SPDX-License-Identifier: Apache-2.0
#include "formats/npz.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/npy.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr uint64_t kMaxHeader = 1 << 20;

// Leaves `entry` at its first element.
absl::StatusOr<NpyHeader> ReadHeader(ZipEntry* from) {
  ZipEntry& entry = *from;
  constexpr size_t kStart = 12;
  std::string head(kStart, '\0');
  if (entry.size() < kStart) return DataLoss("it ends inside the header");
  auto* bytes = reinterpret_cast<std::byte*>(head.data());
  PD_RETURN_IF_ERROR(entry.Read(bytes, kStart));
  PD_ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(head));
  if (header_bytes < kStart ||
      header_bytes > std::min(entry.size(), kMaxHeader))
    return DataLoss("its header takes %d bytes; %d are there", header_bytes,
                    entry.size());
  head.resize(header_bytes);
  bytes = reinterpret_cast<std::byte*>(head.data());
  PD_RETURN_IF_ERROR(entry.Read(bytes + kStart, header_bytes - kStart));
  PD_ASSIGN_OR_RETURN(NpyHeader header, ParseNpyHeader(head));
  if (header.data_bytes != entry.size() - header_bytes)
    return DataLoss("a %s array of shape %s takes %d bytes; %d are there",
                    Name(header.layout.dtype), ToString(header.shape),
                    header.data_bytes, entry.size() - header_bytes);
  return header;
}

absl::StatusOr<Array> ReadEntry(ZipEntry entry) {
  PD_ASSIGN_OR_RETURN(NpyHeader header, ReadHeader(&entry));
  std::byte* data = nullptr;
  PD_ASSIGN_OR_RETURN(const Array raw,
                      NewArray(header.layout.dtype, header.shape, &data));
  PD_RETURN_IF_ERROR(entry.Read(data, header.data_bytes));
  PD_RETURN_IF_ERROR(entry.Finish());
  return ArrayFromRaw(raw.bytes, header.data_bytes, header.layout,
                      std::move(header.shape));
}

absl::Status ScanEntry(
    ZipEntry entry, const std::string& name, int64_t elements,
    const std::function<absl::Status(const ArrayBlock&)>& see) {
  PD_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(&entry));
  RawLayout layout = header.layout;
  layout.fortran_order = false;  // a block has one axis
  const auto size = static_cast<int64_t>(SizeOf(layout.dtype));
  int64_t left = static_cast<int64_t>(header.data_bytes) / size;
  std::byte* data = nullptr;
  PD_ASSIGN_OR_RETURN(
      const Array raw,
      NewArray(layout.dtype, {std::min(left, elements)}, &data));
  do {
    const int64_t count = std::min(left, elements);
    const auto bytes = static_cast<size_t>(count * size);
    PD_RETURN_IF_ERROR(entry.Read(data, bytes));
    PD_ASSIGN_OR_RETURN(const Array values,
                        ArrayFromRaw(raw.bytes, bytes, layout, {count}));
    left -= count;
    PD_RETURN_IF_ERROR(see({name, header.shape, values, left == 0}));
  } while (left > 0);
  return entry.Finish();
}

// Calls `take` with the name, without ".npy", of each entry and the entry.
template <typename Take>
absl::Status ForEachEntry(const FileBytes& file, const Take& take) {
  PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
  std::set<std::string> names;
  for (int64_t i = 0; i < zip.count(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::string full_name, zip.Name(i));
    absl::string_view name = full_name;
    const std::string place = absl::StrCat("entry '", name, "'");
    if (!absl::ConsumeSuffix(&name, ".npy"))
      return InvalidArgument("%s is not a .npy file", place);
    auto entry = zip.OpenEntry(i);
    if (!entry.ok()) return Annotate(entry.status(), place);
    if (!names.insert(std::string(name)).second)
      return InvalidArgument("%s is there twice", place);
    PD_RETURN_IF_ERROR(
        Annotate(take(std::string(name), *std::move(entry)), place));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NamedArrays> ParseNpz(const FileBytes& file) {
  NamedArrays arrays;
  PD_RETURN_IF_ERROR(
      ForEachEntry(file, [&](const std::string& name, ZipEntry entry) {
        auto array = ReadEntry(std::move(entry));
        if (array.ok()) arrays.emplace(name, *std::move(array));
        return array.status();
      }));
  return arrays;
}

absl::Status ScanNpz(
    const FileBytes& file, int64_t elements,
    const std::function<absl::Status(const ArrayBlock&)>& see) {
  return ForEachEntry(file, [&](const std::string& name, ZipEntry entry) {
    return ScanEntry(std::move(entry), name, elements, see);
  });
}

absl::StatusOr<NamedArrays> ReadNpz(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto arrays = ParseNpz(file);
  if (!arrays.ok())
    return Annotate(arrays.status(), absl::StrCat("'", path, "'"));
  arrays->erase(std::string(kNpzSideName));
  return arrays;
}

bool IsNpz(absl::string_view bytes) {
  // The entry's local header has its name's length in bytes 26 and 27.
  constexpr size_t kHeader = 30;
  if (!IsZip(bytes) || bytes.size() < kHeader) return false;
  const size_t length = static_cast<unsigned char>(bytes[26]) +
                        256u * static_cast<unsigned char>(bytes[27]);
  return absl::EndsWith(bytes.substr(kHeader, length), ".npy");
}

}  // namespace pd
