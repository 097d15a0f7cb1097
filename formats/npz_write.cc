// SPDX-License-Identifier: Apache-2.0
// Writing a stored npz in one pass: sizes are known before anything is written,
// so an archive of any length goes straight from its arrays to the file.
// Entries or offsets beyond 32 bits use zip64.
#include <libdeflate.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "formats/json_text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr uint64_t kMax32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t kMax16 = std::numeric_limits<uint16_t>::max();
constexpr uint16_t kFirstDay = (1 << 5) | 1;  // 1980-01-01, as numpy
constexpr uint16_t kUtf8Name = 0x0800;
constexpr uint16_t kVersion = 20, kZip64Version = 45;
constexpr uint16_t kZip64Field = 1;

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t Low32(uint64_t value) {
  return static_cast<uint32_t>(value < kMax32 ? value : kMax32);
}

struct Entry {
  std::string name;
  uint64_t size = 0, offset = 0;
  uint32_t crc = 0;
};

// The fields that a local header and a directory entry share.
void PutCommon(const Entry& entry, bool zip64, uint16_t extra_bytes,
               std::string* out) {
  Put<uint16_t>(zip64 ? kZip64Version : kVersion, out);
  Put<uint16_t>(kUtf8Name, out);
  Put<uint16_t>(0, out);  // stored
  Put<uint16_t>(0, out);  // midnight
  Put<uint16_t>(kFirstDay, out);
  Put<uint32_t>(entry.crc, out);
  Put<uint32_t>(Low32(entry.size), out);  // packed
  Put<uint32_t>(Low32(entry.size), out);
  Put<uint16_t>(static_cast<uint16_t>(entry.name.size()), out);
  Put<uint16_t>(extra_bytes, out);
}

std::string LocalHeader(const Entry& entry) {
  const bool zip64 = entry.size >= kMax32;
  std::string extra;
  if (zip64) {
    Put<uint16_t>(kZip64Field, &extra);
    Put<uint16_t>(2 * sizeof(uint64_t), &extra);
    Put<uint64_t>(entry.size, &extra);
    Put<uint64_t>(entry.size, &extra);
  }
  std::string out = "PK\x03\x04";
  PutCommon(entry, zip64, static_cast<uint16_t>(extra.size()), &out);
  return absl::StrCat(out, entry.name, extra);
}

std::string DirectoryEntry(const Entry& entry) {
  std::string values;
  if (entry.size >= kMax32) {
    Put<uint64_t>(entry.size, &values);
    Put<uint64_t>(entry.size, &values);
  }
  if (entry.offset >= kMax32) Put<uint64_t>(entry.offset, &values);
  std::string extra;
  if (!values.empty()) {
    Put<uint16_t>(kZip64Field, &extra);
    Put<uint16_t>(static_cast<uint16_t>(values.size()), &extra);
    extra += values;
  }
  std::string out = "PK\x01\x02";
  Put<uint16_t>(kZip64Version, &out);  // made by
  PutCommon(entry, !extra.empty(), static_cast<uint16_t>(extra.size()), &out);
  Put<uint16_t>(0, &out);  // comment
  Put<uint16_t>(0, &out);  // disk
  Put<uint16_t>(0, &out);  // internal attributes
  Put<uint32_t>(0, &out);  // external attributes
  Put<uint32_t>(Low32(entry.offset), &out);
  return absl::StrCat(out, entry.name, extra);
}

// The end of the archive; its 64-bit form goes before where a number is large.
std::string End(uint64_t entries, uint64_t offset, uint64_t size) {
  std::string out;
  if (entries >= kMax16 || offset >= kMax32 || size >= kMax32) {
    out = "PK\x06\x06";
    Put<uint64_t>(44, &out);  // bytes of this record that follow
    Put<uint16_t>(kZip64Version, &out);
    Put<uint16_t>(kZip64Version, &out);
    Put<uint32_t>(0, &out);
    Put<uint32_t>(0, &out);
    Put<uint64_t>(entries, &out);
    Put<uint64_t>(entries, &out);
    Put<uint64_t>(size, &out);
    Put<uint64_t>(offset, &out);
    out += "PK\x06\x07";
    Put<uint32_t>(0, &out);
    Put<uint64_t>(offset + size, &out);
    Put<uint32_t>(1, &out);
  }
  const auto count = static_cast<uint16_t>(std::min(entries, kMax16));
  out += "PK\x05\x06";
  Put<uint32_t>(0, &out);
  Put<uint16_t>(count, &out);
  Put<uint16_t>(count, &out);
  Put<uint32_t>(Low32(size), &out);
  Put<uint32_t>(Low32(offset), &out);
  Put<uint16_t>(0, &out);
  return out;
}

absl::StatusOr<Entry> WriteEntry(const std::string& name, const Array& array,
                                 AtomicFile* out) {
  Entry entry;
  entry.name = absl::StrCat(name, ".npy");
  if (entry.name.size() > kMax16 || !IsUtf8(entry.name) ||
      entry.name.find('\0') != std::string::npos)
    return InvalidArgument("array '%s': it is no name of a zip's entry", name);
  const std::string header = FormatNpyHeader(array);
  entry.size = header.size() + array.size_bytes();
  entry.offset = out->size();
  entry.crc = libdeflate_crc32(0, header.data(), header.size());
  if (array.size_bytes() > 0)
    entry.crc =
        libdeflate_crc32(entry.crc, array.bytes.get(), array.size_bytes());
  PD_RETURN_IF_ERROR(out->Append(LocalHeader(entry)));
  PD_RETURN_IF_ERROR(out->Append(header));
  PD_RETURN_IF_ERROR(out->Append({array.data<char>(), array.size_bytes()}));
  return entry;
}

absl::Status WriteTo(const NamedArrays& arrays, AtomicFile* out) {
  std::vector<Entry> entries;
  for (const auto& [name, array] : arrays) {
    PD_ASSIGN_OR_RETURN(Entry entry, WriteEntry(name, array, out));
    entries.push_back(std::move(entry));
  }
  const uint64_t directory = out->size();
  for (const Entry& entry : entries)
    PD_RETURN_IF_ERROR(out->Append(DirectoryEntry(entry)));
  PD_RETURN_IF_ERROR(
      out->Append(End(entries.size(), directory, out->size() - directory)));
  return out->Commit();
}

}  // namespace

absl::Status WriteNpz(const std::string& path, const NamedArrays& arrays) {
  PD_ASSIGN_OR_RETURN(auto out, AtomicFile::Create(path));
  return Annotate(WriteTo(arrays, out.get()), absl::StrCat("'", path, "'"));
}

}  // namespace pd
