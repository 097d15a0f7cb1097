// SPDX-License-Identifier: Apache-2.0
#include "formats/npz.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/npy.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr uint64_t kMaxHeader = 1 << 20;

absl::StatusOr<Array> ReadEntry(ZipEntry entry) {
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
  std::byte* data = nullptr;
  PD_ASSIGN_OR_RETURN(const Array raw,
                      NewArray(header.layout.dtype, header.shape, &data));
  PD_RETURN_IF_ERROR(entry.Read(data, header.data_bytes));
  PD_RETURN_IF_ERROR(entry.Finish());
  return ArrayFromRaw(raw.bytes, header.data_bytes, header.layout,
                      std::move(header.shape));
}

}  // namespace

absl::StatusOr<NamedArrays> ParseNpz(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
  NamedArrays arrays;
  for (int64_t i = 0; i < zip.count(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::string full_name, zip.Name(i));
    absl::string_view name = full_name;
    const std::string place = absl::StrCat("entry '", name, "'");
    if (!absl::ConsumeSuffix(&name, ".npy"))
      return InvalidArgument("%s is not a .npy file", place);
    auto entry = zip.OpenEntry(i);
    if (!entry.ok()) return Annotate(entry.status(), place);
    auto array = ReadEntry(*std::move(entry));
    if (!array.ok()) return Annotate(array.status(), place);
    if (!arrays.emplace(std::string(name), *std::move(array)).second)
      return InvalidArgument("%s is there twice", place);
  }
  return arrays;
}

absl::StatusOr<NamedArrays> ReadNpz(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto arrays = ParseNpz(file);
  if (!arrays.ok())
    return Annotate(arrays.status(), absl::StrCat("'", path, "'"));
  return arrays;
}

}  // namespace pd
