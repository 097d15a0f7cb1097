// SPDX-License-Identifier: Apache-2.0
#include "formats/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/byte_reader.h"
#include "formats/json_text.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr absl::string_view kMetadata = "__metadata__";
constexpr uint64_t kMaxHeader = 100'000'000;  // the reference's own limit
constexpr size_t kMaxRank = 64;
constexpr size_t kHeaderAlignment = 8;

struct TypeName {
  absl::string_view name;
  DType dtype;
};

constexpr TypeName kTypes[] = {
    {"BOOL", DType::kBool},     {"U8", DType::kUInt8},
    {"I8", DType::kInt8},       {"I16", DType::kInt16},
    {"I32", DType::kInt32},     {"I64", DType::kInt64},
    {"F16", DType::kFloat16},   {"BF16", DType::kBFloat16},
    {"F32", DType::kFloat32},   {"F64", DType::kFloat64},
    {"C64", DType::kComplex64},
};

// The header's entry of a tensor.
struct Entry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  int64_t begin = 0, end = 0;
};

absl::StatusOr<DType> ParseType(const std::string& name) {
  for (const TypeName& type : kTypes)
    if (type.name == name) return type.dtype;
  return Unimplemented(
      "element type '%s' is not supported; expected one of BOOL, U8, I8, I16, "
      "I32, I64, F16, BF16, F32, F64, C64",
      name);
}

class HeaderReader {
 public:
  explicit HeaderReader(absl::string_view text) : in_(text) {}

  absl::Status Read(std::vector<Entry>* entries,
                    std::map<std::string, std::string>* metadata) {
    PD_RETURN_IF_ERROR(in_.Object([&](std::string name) -> absl::Status {
      if (!names_.insert(name).second)
        return DataLoss("the name '%s' is there twice", name);
      if (name == kMetadata) return Metadata(metadata);
      entries->emplace_back();
      entries->back().name = name;
      return Annotate(Tensor(&entries->back()),
                      absl::StrCat("tensor '", name, "'"));
    }));
    return in_.End();
  }

 private:
  absl::Status Metadata(std::map<std::string, std::string>* metadata) {
    return in_.Object([&](std::string key) -> absl::Status {
      PD_ASSIGN_OR_RETURN(std::string value, in_.String());
      if (!metadata->emplace(key, std::move(value)).second)
        return DataLoss("'%s' has '%s' twice", kMetadata, key);
      return absl::OkStatus();
    });
  }

  absl::Status Tensor(Entry* entry) {
    std::set<std::string> keys;
    PD_RETURN_IF_ERROR(in_.Object([&](std::string key) -> absl::Status {
      if (!keys.insert(key).second) return DataLoss("'%s' is there twice", key);
      if (key == "dtype") {
        PD_ASSIGN_OR_RETURN(const std::string name, in_.String());
        PD_ASSIGN_OR_RETURN(entry->dtype, ParseType(name));
        return absl::OkStatus();
      }
      if (key == "shape") return Extents(entry);
      if (key == "data_offsets") return Offsets(entry);
      return DataLoss("'%s' is none of dtype, shape, data_offsets", key);
    }));
    if (keys.size() == 3) return absl::OkStatus();
    return DataLoss("it has %s; expected dtype, shape and data_offsets",
                    keys.empty() ? "nothing" : absl::StrJoin(keys, ", "));
  }

  absl::Status Extents(Entry* entry) {
    return in_.Array([&]() -> absl::Status {
      if (entry->shape.size() == kMaxRank)
        return InvalidArgument("its rank is over %d", kMaxRank);
      PD_ASSIGN_OR_RETURN(const int64_t extent, in_.Count());
      entry->shape.push_back(extent);
      return absl::OkStatus();
    });
  }

  absl::Status Offsets(Entry* entry) {
    int count = 0;
    PD_RETURN_IF_ERROR(in_.Array([&]() -> absl::Status {
      PD_ASSIGN_OR_RETURN(const int64_t offset, in_.Count());
      if (count == 2) return DataLoss("data_offsets are more than two");
      (count++ == 0 ? entry->begin : entry->end) = offset;
      return absl::OkStatus();
    }));
    if (count == 2) return absl::OkStatus();
    return DataLoss("data_offsets are %d; expected two", count);
  }

  JsonReader in_;
  std::set<std::string> names_;
};

// Every byte belongs to one tensor: neither holes nor overlaps, as the
// specification asks, so that no file can hide or share data.
absl::Status CheckPlaces(const std::vector<Entry>& entries, size_t available) {
  std::vector<const Entry*> by_place;
  for (const Entry& entry : entries) by_place.push_back(&entry);
  std::sort(by_place.begin(), by_place.end(),
            [](const Entry* a, const Entry* b) {
              return std::make_pair(a->begin, a->end) <
                     std::make_pair(b->begin, b->end);
            });
  int64_t at = 0;
  for (const Entry* entry : by_place) {
    auto bytes = CheckedBytes(entry->shape, SizeOf(entry->dtype));
    if (bytes.ok() &&
        (entry->end < entry->begin || entry->end - entry->begin != *bytes))
      bytes = DataLoss("a %s array of shape %s takes %d bytes; it has %d to %d",
                       Name(entry->dtype), ToString(entry->shape), *bytes,
                       entry->begin, entry->end);
    if (bytes.ok() && entry->begin != at)
      bytes = DataLoss("it begins at byte %d of the data; expected %d",
                       entry->begin, at);
    if (!bytes.ok())
      return Annotate(bytes.status(),
                      absl::StrCat("tensor '", entry->name, "'"));
    at = entry->end;
  }
  if (static_cast<uint64_t>(at) != available)
    return DataLoss("its tensors take %d bytes; %d are there", at, available);
  return absl::OkStatus();
}

// The header's text, the data behind it.
absl::StatusOr<std::string> FormatHeader(
    const std::vector<std::pair<std::string, Array>>& tensors,
    const std::map<std::string, std::string>& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    AppendJsonString(kMetadata, &header);
    char before = ':';
    for (const auto& [key, value] : metadata) {
      header += before;
      if (before == ':') header += '{';
      if (!IsUtf8(key) || !IsUtf8(value))
        return InvalidArgument("the metadata under '%s' are no UTF-8", key);
      AppendJsonString(key, &header);
      header += ':';
      AppendJsonString(value, &header);
      before = ',';
    }
    header += '}';
  }
  int64_t at = 0;
  for (const auto& [name, array] : tensors) {
    if (header.size() > 1) header += ',';
    AppendJsonString(name, &header);
    absl::string_view type;
    for (const TypeName& known : kTypes)
      if (known.dtype == array.dtype) type = known.name;
    const auto end = at + static_cast<int64_t>(array.size_bytes());
    absl::StrAppend(&header, ":{\"dtype\":\"", type, "\",\"shape\":[",
                    absl::StrJoin(array.shape, ","), "],\"data_offsets\":[", at,
                    ",", end, "]}");
    at = end;
  }
  header += '}';
  header.append(
      (kHeaderAlignment - header.size() % kHeaderAlignment) % kHeaderAlignment,
      ' ');
  if (header.size() > kMaxHeader)
    return OutOfRange("its header takes %d bytes; the format allows %d",
                      header.size(), kMaxHeader);
  return header;
}

absl::Status CheckNames(
    const std::vector<std::pair<std::string, Array>>& tensors) {
  std::set<absl::string_view> names;
  for (const auto& [name, array] : tensors) {
    if (!IsUtf8(name) || name == kMetadata)
      return InvalidArgument("'%s' is no name of a tensor there", name);
    if (!names.insert(name).second)
      return InvalidArgument("the name '%s' is given twice", name);
    if (array.dtype == DType::kComplex128)
      return Unimplemented(
          "tensor '%s' is complex128, which safetensors cannot hold", name);
  }
  return absl::OkStatus();
}

absl::Status WriteTo(const Safetensors& content, AtomicFile* file) {
  PD_RETURN_IF_ERROR(CheckNames(content.tensors));
  auto tensors = content.tensors;  // shares the bytes
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    const size_t x = SizeOf(a.second.dtype), y = SizeOf(b.second.dtype);
    return x != y ? x > y : a.first < b.first;
  });
  PD_ASSIGN_OR_RETURN(const std::string header,
                      FormatHeader(tensors, content.metadata));
  const uint64_t size = header.size();
  PD_RETURN_IF_ERROR(
      file->Append({reinterpret_cast<const char*>(&size), sizeof(size)}));
  PD_RETURN_IF_ERROR(file->Append(header));
  for (const auto& [name, array] : tensors)
    PD_RETURN_IF_ERROR(file->Append({array.data<char>(), array.size_bytes()}));
  return file->Commit();
}

}  // namespace

absl::StatusOr<Safetensors> ParseSafetensors(const FileBytes& file,
                                             Alignment alignment) {
  ByteReader in(file);
  PD_ASSIGN_OR_RETURN(const auto size,
                      in.Number<uint64_t>("the header's size"));
  if (size > kMaxHeader)
    return DataLoss("its header claims %d bytes; the format allows %d", size,
                    kMaxHeader);
  PD_ASSIGN_OR_RETURN(const auto header, in.Take(size, "the header"));
  std::vector<Entry> entries;
  Safetensors content;
  PD_RETURN_IF_ERROR(HeaderReader(header).Read(&entries, &content.metadata));
  PD_RETURN_IF_ERROR(CheckPlaces(entries, in.left()));
  const auto data = in.here();
  for (Entry& entry : entries) {
    RawLayout layout;
    layout.dtype = entry.dtype;
    layout.alignment = alignment;
    const auto bytes = static_cast<size_t>(entry.end - entry.begin);
    auto array = ArrayFromRaw({data, data.get() + entry.begin}, bytes, layout,
                              std::move(entry.shape));
    if (!array.ok())
      return Annotate(array.status(),
                      absl::StrCat("tensor '", entry.name, "'"));
    content.tensors.emplace_back(std::move(entry.name), *std::move(array));
  }
  return content;
}

absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto content = ParseSafetensors(file);
  if (!content.ok())
    return Annotate(content.status(), absl::StrCat("'", path, "'"));
  return content;
}

absl::Status WriteSafetensors(const std::string& path,
                              const Safetensors& content) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  return Annotate(WriteTo(content, file.get()), absl::StrCat("'", path, "'"));
}

bool IsSafetensors(absl::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  const auto size = NumberAt<uint64_t>(bytes, 0);
  return size >= 2 && size <= bytes.size() - 8;
}

}  // namespace pd
