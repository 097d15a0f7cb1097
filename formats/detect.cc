// SPDX-License-Identifier: Apache-2.0
#include "formats/detect.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "formats/image_header.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

struct Magic {
  absl::string_view bytes;
  FileKind kind;
};

// Beginnings that no other format here can have.
constexpr Magic kMagics[] = {
    {absl::string_view("\x93NUMPY", 6), FileKind::kNpy},
    {absl::string_view("\x89PNG\r\n\x1a\n", 8), FileKind::kPng},
    {absl::string_view("\xff\xd8\xff", 3), FileKind::kJpeg},
    {absl::string_view("\x1f\x8b\x08", 3), FileKind::kGzip},
    {absl::string_view("\x89HDF\r\n\x1a\n", 8), FileKind::kHdf5},
};

template <typename T>
T NumberAt(absl::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

bool IsIdx(absl::string_view bytes) {
  if (bytes.size() < 8 || bytes[0] != 0 || bytes[1] != 0) return false;
  const auto type = static_cast<unsigned char>(bytes[2]);
  const auto rank = static_cast<unsigned char>(bytes[3]);
  return (type == 0x08 || type == 0x09 || (type >= 0x0b && type <= 0x0e)) &&
         rank >= 1 && rank <= 8;
}

// Where the description of a tensor stands at `at`: version 0, a small size
// and a message that starts with field 1, a varint.
bool HasDescription(absl::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < 10) return false;
  const auto size = NumberAt<int32_t>(bytes, at + 4);
  return NumberAt<uint32_t>(bytes, at) == 0 && size >= 2 && size < 4096 &&
         bytes[at + 8] == 0x08;
}

bool IsTensorStream(absl::string_view bytes) {
  if (bytes.size() < 12 || NumberAt<uint32_t>(bytes, 0) != 0) return false;
  uint64_t at = 12;
  const auto levels = NumberAt<uint64_t>(bytes, 4);
  if (levels > 16) return false;
  for (uint64_t i = 0; i < levels; ++i) {
    if (bytes.size() - at < 8) return false;
    const auto size = NumberAt<uint64_t>(bytes, at);
    if (size > bytes.size() - at - 8) return false;
    at += 8 + size;
  }
  return HasDescription(bytes, at);
}

bool IsSelectedRows(absl::string_view bytes) {
  if (bytes.size() < 20 || NumberAt<uint32_t>(bytes, 0) != 0) return false;
  const auto rows = NumberAt<uint64_t>(bytes, 4);
  if (rows > bytes.size() / 8) return false;
  return HasDescription(bytes, 12 + rows * 8 + 8);
}

bool IsSafetensors(absl::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  const auto size = NumberAt<uint64_t>(bytes, 0);
  return size >= 2 && size <= bytes.size() - 8;
}

// A record file of TensorFlow: uint64 length, its checksum, then an Event.
bool IsTensorBoard(absl::string_view bytes) {
  if (bytes.size() < 16 || bytes[12] != 0x09) return false;
  const auto size = NumberAt<uint64_t>(bytes, 0);
  return size >= 9 && size <= bytes.size() - 12;
}

bool IsTar(absl::string_view bytes) {
  return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar";
}

bool IsPickle(absl::string_view bytes) {
  if (bytes.size() < 3) return false;
  if (bytes[0] == '\x80') return bytes[1] >= 2 && bytes[1] <= 5;
  return bytes.back() == '.' &&
         (absl::StartsWith(bytes, "(dp") || absl::StartsWith(bytes, "}q") ||
          absl::StartsWith(bytes, "(lp"));
}

// The fields of a protobuf message from its start on, as far as `bytes` go.
struct ProtoField {
  uint32_t number = 0, wire_type = 0;
  absl::string_view payload;  ///< length-delimited fields
};

bool TakeVarint(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>((*bytes)[0]);
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool TakeField(absl::string_view* bytes, ProtoField* field) {
  uint64_t tag = 0, size = 0;
  if (!TakeVarint(bytes, &tag) || tag >> 3 == 0 || tag >> 3 > 1000)
    return false;
  field->number = static_cast<uint32_t>(tag >> 3);
  field->wire_type = static_cast<uint32_t>(tag & 7);
  switch (field->wire_type) {
    case 0:
      return TakeVarint(bytes, &size);
    case 1:
      size = 8;
      break;
    case 5:
      size = 4;
      break;
    case 2:
      if (!TakeVarint(bytes, &size)) return false;
      break;
    default:
      return false;
  }
  if (size > bytes->size()) return false;
  field->payload = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

// ModelProto starts with ir_version = 1 (varint) and has a graph = 7.
bool IsOnnx(absl::string_view bytes) {
  ProtoField field;
  bool version = false, graph = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field)) return false;
    version |= field.number == 1 && field.wire_type == 0;
    graph |= field.number == 7 && field.wire_type == 2;
    if (field.number == 1 && field.wire_type != 0) return false;
  }
  return version && graph;
}

// ProgramDesc: blocks = 1, version = 4, op_version_map = 5, all messages; a
// block starts with idx = 1 and parent_idx = 2.
bool IsProgram(absl::string_view bytes) {
  ProtoField field;
  bool block = false;
  while (!bytes.empty()) {
    if (!TakeField(&bytes, &field)) return false;
    if (field.wire_type != 2) return false;
    if (field.number != 1) continue;
    ProtoField idx;
    if (!TakeField(&field.payload, &idx) || idx.number != 1 ||
        idx.wire_type != 0)
      return false;
    block = true;
  }
  return block;
}

FileKind ZipKind(absl::string_view bytes, absl::string_view name) {
  if (absl::EndsWith(name, ".npz")) return FileKind::kNpz;
  // The first entry's name: 26 bytes into its local header is its length.
  if (bytes.size() < 30) return FileKind::kZip;
  const auto length = NumberAt<uint16_t>(bytes, 26);
  return absl::EndsWith(bytes.substr(30, length), ".npy") ? FileKind::kNpz
                                                          : FileKind::kZip;
}

FileKind TextKind(absl::string_view bytes) {
  const absl::string_view start = bytes.substr(0, 4096);
  for (const char c : start)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' &&
        c != '\t')
      return FileKind::kUnknown;
  const auto first = absl::StripLeadingAsciiWhitespace(start).substr(0, 1);
  return first == "{" || first == "[" ? FileKind::kJson : FileKind::kText;
}

// For files whose bytes say nothing certain: empty ones and damaged ones.
FileKind KindOfName(absl::string_view name) {
  constexpr Magic kEndings[] = {
      {".pdmodel", FileKind::kPdModel},
      {"__model__", FileKind::kPdModel},
      {".pdiparams", FileKind::kTensorStream},
      {"__params__", FileKind::kTensorStream},
      {".pdparams", FileKind::kPickle},
      {".pdopt", FileKind::kPickle},
      {".pdiparams.info", FileKind::kPickle},
      {".onnx", FileKind::kOnnx},
      {".npy", FileKind::kNpy},
      {".npz", FileKind::kNpz},
      {".safetensors", FileKind::kSafetensors},
  };
  for (const Magic& ending : kEndings)
    if (absl::EndsWith(name, ending.bytes)) return ending.kind;
  return FileKind::kUnknown;
}

}  // namespace

absl::string_view Name(FileKind kind) {
  static constexpr absl::string_view kNames[] = {
      "unknown", "pdmodel", "tensor stream", "selected rows", "pickle", "npy",
      "npz",     "zip",     "onnx",          "safetensors",   "hdf5",   "idx",
      "png",     "jpeg",    "tiff",          "webp",          "bmp",    "pnm",
      "gzip",    "tar",     "tensorboard",   "json",          "text"};
  return kNames[static_cast<size_t>(kind)];
}

FileKind DetectKind(absl::string_view bytes, absl::string_view name) {
  for (const Magic& magic : kMagics)
    if (absl::StartsWith(bytes, magic.bytes)) return magic.kind;
  if (absl::StartsWith(bytes, "PK\x03\x04") ||
      absl::StartsWith(bytes, "PK\x05\x06"))
    return ZipKind(bytes, name);
  if (IsTensorStream(bytes)) return FileKind::kTensorStream;
  if (IsSelectedRows(bytes)) return FileKind::kSelectedRows;
  if (IsIdx(bytes)) return FileKind::kIdx;
  if (IsPickle(bytes)) return FileKind::kPickle;
  if (IsSafetensors(bytes)) return FileKind::kSafetensors;
  if (IsTar(bytes)) return FileKind::kTar;
  if (IsProgram(bytes)) return FileKind::kPdModel;
  if (IsOnnx(bytes)) return FileKind::kOnnx;
  if (IsTensorBoard(bytes)) return FileKind::kTensorBoard;
  if (IsTiff(bytes)) return FileKind::kTiff;
  if (IsWebp(bytes)) return FileKind::kWebp;
  if (IsBmp(bytes)) return FileKind::kBmp;
  if (IsPnm(bytes)) return FileKind::kPnm;
  const FileKind by_name = KindOfName(name);
  if (by_name != FileKind::kUnknown || bytes.empty()) return by_name;
  return TextKind(bytes);
}

absl::StatusOr<FileKind> DetectFile(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  return DetectKind(file.view(), path);
}

}  // namespace pd
