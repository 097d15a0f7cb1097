// SPDX-License-Identifier: Apache-2.0
#include "formats/detect.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

const FileFormat& RowOf(FileKind kind) {
  static const FileFormat unknown;
  for (const FileFormat& format : FileFormats())
    if (format.kind == kind) return format;
  return unknown;
}

const FileFormat* FormatOfName(absl::string_view name) {
  for (const FileFormat& format : FileFormats())
    for (const absl::string_view ending : format.endings)
      if (absl::EndsWithIgnoreCase(name, ending)) return &format;
  return nullptr;
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

}  // namespace

const FileFormat& DetectFormat(absl::string_view bytes,
                               absl::string_view name) {
  const FileFormat* by_name = FormatOfName(name);
  for (const FileFormat& format : FileFormats()) {
    if (format.begins == nullptr || !format.begins(bytes)) continue;
    // An npz without arrays is a zip without entries; the entries of a zip may
    // have been put into another order.
    if (format.kind == FileKind::kZip && by_name != nullptr &&
        (by_name->kind == FileKind::kNpz || by_name->kind == FileKind::kTorch ||
         by_name->kind == FileKind::kTorchExport ||
         by_name->kind == FileKind::kKeras))
      return *by_name;
    return format;
  }
  if (by_name != nullptr) return *by_name;
  return RowOf(bytes.empty() ? FileKind::kUnknown : TextKind(bytes));
}

FileKind DetectKind(absl::string_view bytes, absl::string_view name) {
  return DetectFormat(bytes, name).kind;
}

absl::StatusOr<FileKind> DetectFile(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  return DetectKind(file.view(), path);
}

absl::string_view Name(FileKind kind) {
  return kind == FileKind::kImage ? "image" : RowOf(kind).name;
}

}  // namespace pd
