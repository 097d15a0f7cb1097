// SPDX-License-Identifier: Apache-2.0
#include "formats/tar.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxExtension = uint64_t{1} << 20;  // of names, pax records
constexpr size_t kName = 0, kSize = 124, kChecksum = 148, kType = 156,
                 kMagic = 257, kPrefix = 345;
constexpr size_t kNameBytes = 100, kNumberBytes = 12, kChecksumBytes = 8,
                 kPrefixBytes = 155;

absl::string_view Text(const char* block, size_t at, size_t size) {
  const absl::string_view field(block + at, size);
  return field.substr(0, std::min(field.find('\0'), size));
}

// Octal digits among blanks, or GNU's big-endian number behind a high bit.
absl::StatusOr<uint64_t> Number(const char* block, size_t at, size_t size) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(block + at);
  uint64_t value = 0;
  if (bytes[0] == 0x80) {
    for (size_t i = 1; i < size; ++i) {
      if (value >> 56 != 0) return DataLoss("a number is over 64 bits");
      value = value << 8 | bytes[i];
    }
    return value;
  }
  absl::string_view digits = Text(block, at, size);
  while (absl::ConsumePrefix(&digits, " ")) {
  }
  while (absl::ConsumeSuffix(&digits, " ")) {
  }
  for (const char c : digits) {
    if (c < '0' || c > '7')
      return DataLoss("a number of the header is not octal");
    value = value << 3 | static_cast<uint64_t>(c - '0');
  }
  return value;
}

// The sum of the header's bytes, its own field taken as blanks; old writers
// added signed bytes.
absl::Status CheckSum(const char* block) {
  PD_ASSIGN_OR_RETURN(const uint64_t want,
                      Number(block, kChecksum, kChecksumBytes));
  uint64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum && i < kChecksum + kChecksumBytes;
    const char c = own ? ' ' : block[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  if (sum == want || signed_sum == static_cast<int64_t>(want))
    return absl::OkStatus();
  return DataLoss("not a tar header: its sum is %d; it says %d", sum, want);
}

std::string NameOf(const char* block) {
  std::string name(Text(block, kName, kNameBytes));
  const bool ustar = std::memcmp(block + kMagic, "ustar\0", 6) == 0;
  const absl::string_view prefix = Text(block, kPrefix, kPrefixBytes);
  if (ustar && !prefix.empty()) return absl::StrCat(prefix, "/", name);
  return name;
}

bool IsRegular(char type) { return type == '0' || type == '\0' || type == '7'; }

// Types without content whatever their size field says; unknown ones have it.
bool HasContent(char type) { return type < '1' || type > '6'; }

std::string Plain(absl::string_view name) {
  while (absl::ConsumePrefix(&name, "./")) {
  }
  while (absl::ConsumeSuffix(&name, "/")) {
  }
  return std::string(name);
}

}  // namespace

TarReader::TarReader(FileBytes file) : file_(std::move(file)) {
  if (IsGzip(file_.view())) gzip_ = std::make_unique<GunzipStream>(file_);
}

absl::StatusOr<FileBytes> TarReader::Take(uint64_t size) {
  const auto early = [&](uint64_t left) {
    return DataLoss(
        "byte %d: %d bytes should follow; the archive ends after %d", offset_,
        size, left);
  };
  if (gzip_ == nullptr) {
    const uint64_t left = file_.size - offset_;
    if (size > left) return early(left);
    FileBytes bytes = {{file_.data, file_.data.get() + offset_}, size};
    offset_ += size;
    return bytes;
  }
  if (!PlausibleInflatedSize(gzip_->left() + kBlock, size)) {
    return DataLoss(
        "byte %d: %d bytes should follow; %d bytes of gzip are left", offset_,
        size, gzip_->left());
  }
  // Grown as bytes arrive: a size alone gets no memory.
  auto content = std::make_shared<std::string>();
  while (content->size() < size) {
    constexpr uint64_t kFirst = 1 << 16;
    const uint64_t have = content->size();
    const uint64_t more = std::min(size - have, std::max(have, kFirst));
    content->resize(have + more);
    PD_ASSIGN_OR_RETURN(const size_t got,
                        gzip_->Read(content->data() + have, more));
    if (got < more) return early(have + got);
  }
  offset_ += size;
  const auto* data = reinterpret_cast<const std::byte*>(content->data());
  return FileBytes{{std::move(content), data}, size};
}

absl::Status TarReader::Skip(uint64_t size) {
  if (gzip_ == nullptr) return Take(size).status();
  constexpr uint64_t kStep = 1 << 16;
  while (size > 0) {
    const uint64_t step = std::min(size, kStep);
    PD_RETURN_IF_ERROR(Take(step).status());
    size -= step;
  }
  return absl::OkStatus();
}

// False at the end of the archive, with or without its blocks of zeros.
absl::StatusOr<bool> TarReader::Block(char* block) {
  size_t got = kBlock;
  if (gzip_ != nullptr) {
    PD_ASSIGN_OR_RETURN(got, gzip_->Read(block, kBlock));
  } else {
    got = std::min(file_.size - offset_, kBlock);
    std::memcpy(block, file_.data.get() + offset_, got);
  }
  if (got == 0 && offset_ > 0) return false;
  if (got < kBlock)
    return DataLoss("byte %d: a tar header takes %d bytes; %d are left",
                    offset_, kBlock, got);
  offset_ += kBlock;
  return std::any_of(block, block + kBlock, [](char c) { return c != '\0'; });
}

// Reads what is behind the end, so that a gzip file's checksum is compared.
absl::Status TarReader::Finish() {
  ended_ = true;
  if (gzip_ == nullptr) return absl::OkStatus();
  std::string rest(1 << 16, '\0');
  for (size_t got = rest.size(); got == rest.size();) {
    PD_ASSIGN_OR_RETURN(got, gzip_->Read(rest.data(), rest.size()));
  }
  return absl::OkStatus();
}

void TarReader::Forget() {
  long_name_.clear();
  has_size_ = sparse_ = false;
}

// "25 path=some/long/name\n", one after the other.
absl::Status TarReader::Pax(absl::string_view records) {
  while (!records.empty() && records[0] != '\0') {
    const size_t space = records.find(' ');
    uint64_t size;
    if (space == absl::string_view::npos ||
        !absl::SimpleAtoi(records.substr(0, space), &size) ||
        size > records.size() || size < space + 2)
      return DataLoss("byte %d: a pax record has no length that fits", offset_);
    absl::string_view record = records.substr(0, size);
    records.remove_prefix(size);
    record.remove_prefix(space + 1);
    const size_t equals = record.find('=');
    if (!absl::ConsumeSuffix(&record, "\n") ||
        equals == absl::string_view::npos || equals >= record.size())
      return DataLoss("byte %d: a pax record is not 'key=value'", offset_);
    const absl::string_view key = record.substr(0, equals);
    const absl::string_view value = record.substr(equals + 1);
    if (key == "path") long_name_ = std::string(value);
    if (absl::StartsWith(key, "GNU.sparse.")) sparse_ = true;
    if (key != "size") continue;
    has_size_ = true;
    if (!absl::SimpleAtoi(value, &pax_size_))
      return DataLoss("byte %d: the pax size '%s' is not a number", offset_,
                      value.substr(0, 32));
  }
  return absl::OkStatus();
}

// An entry that describes the next one.
absl::Status TarReader::Extension(char type, uint64_t size) {
  if (size > kMaxExtension)
    return DataLoss(
        "byte %d: a header's extension takes %d bytes; expected at "
        "most %d",
        offset_, size, kMaxExtension);
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, Take(size));
  PD_RETURN_IF_ERROR(Skip((kBlock - size % kBlock) % kBlock));
  if (type == 'L')
    long_name_ = std::string(bytes.view().substr(
        0, std::min<size_t>(bytes.view().find('\0'), bytes.size)));
  if (type == 'x') return Pax(bytes.view());
  return absl::OkStatus();
}

absl::Status TarReader::Header(const char* block) {
  const char type = block[kType];
  member_.name = Plain(long_name_.empty() ? NameOf(block) : long_name_);
  PD_ASSIGN_OR_RETURN(member_.size, Number(block, kSize, kNumberBytes));
  if (has_size_) member_.size = pax_size_;
  member_.sparse = sparse_ || type == 'S';
  // Old archives mark folders by their names alone.
  const std::string raw = long_name_.empty() ? NameOf(block) : long_name_;
  member_.file = (IsRegular(type) || type == 'S') && !absl::EndsWith(raw, "/");
  Forget();
  if (!HasContent(type)) member_.size = 0;
  if (member_.size > uint64_t{1} << 62)
    return DataLoss("member '%s' claims %d bytes", member_.name, member_.size);
  unread_ = member_.size;
  padding_ = (kBlock - member_.size % kBlock) % kBlock;
  return absl::OkStatus();
}

absl::StatusOr<const TarMember*> TarReader::Next() {
  if (ended_) return nullptr;
  PD_RETURN_IF_ERROR(Skip(unread_));
  unread_ = 0;
  PD_RETURN_IF_ERROR(Skip(padding_));
  padding_ = 0;
  for (;;) {
    char block[kBlock];
    PD_ASSIGN_OR_RETURN(const bool more, Block(block));
    if (!more) {
      PD_RETURN_IF_ERROR(Finish());
      return nullptr;
    }
    const std::string place = absl::StrCat("byte ", offset_ - kBlock);
    PD_RETURN_IF_ERROR(Annotate(CheckSum(block), place));
    const char type = block[kType];
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
      PD_ASSIGN_OR_RETURN(const uint64_t size,
                          Number(block, kSize, kNumberBytes));
      PD_RETURN_IF_ERROR(Extension(type, size));
      continue;
    }
    PD_RETURN_IF_ERROR(Annotate(Header(block), place));
    return &member_;
  }
}

absl::StatusOr<FileBytes> TarReader::Read() {
  if (!member_.file)
    return InvalidArgument("it is a folder or a link; expected a file");
  if (member_.sparse) return Unimplemented("it is a sparse file");
  const uint64_t size = std::exchange(unread_, 0);
  return Take(size);
}

bool LooksLikeTar(const FileBytes& file) {
  std::string head(file.view().substr(0, kBlock));
  if (IsGzip(head)) {
    const auto unpacked = GunzipHead(file.view(), kBlock);
    if (!unpacked.ok()) return false;
    head = std::string(unpacked->view());
  }
  return head.size() == kBlock && head[0] != '\0' && CheckSum(head.data()).ok();
}

absl::Status ForEachTarFile(
    const std::string& path,
    const std::function<absl::Status(const TarMember&, TarReader*)>& visit) {
  PD_ASSIGN_OR_RETURN(FileBytes file, ReadFile(path));
  const std::string place = absl::StrCat("'", path, "'");
  if (file.size == 0)
    return DataLoss("%s: the file is empty; expected a tar archive", place);
  TarReader reader(std::move(file));
  for (;;) {
    auto member = reader.Next();
    if (!member.ok()) return Annotate(member.status(), place);
    if (*member == nullptr) return absl::OkStatus();
    if (!(*member)->file) continue;
    PD_RETURN_IF_ERROR(
        Annotate(visit(**member, &reader),
                 absl::StrCat(place, ": member '", (*member)->name, "'")));
  }
}

absl::StatusOr<std::vector<TarFile>> ReadTarFiles(
    const std::string& path,
    const std::function<bool(absl::string_view name)>& wanted) {
  std::vector<TarFile> files;
  PD_RETURN_IF_ERROR(ForEachTarFile(
      path, [&](const TarMember& member, TarReader* reader) -> absl::Status {
        if (!wanted(member.name)) return absl::OkStatus();
        PD_ASSIGN_OR_RETURN(FileBytes content, reader->Read());
        files.push_back({member.name, std::move(content)});
        return absl::OkStatus();
      }));
  return files;
}

absl::StatusOr<FileBytes> FindTarFile(const std::vector<TarFile>& files,
                                      absl::string_view name,
                                      const std::string& path) {
  for (auto file = files.rbegin(); file != files.rend(); ++file)
    if (file->name == name) return file->content;
  return NotFound("'%s' holds no member '%s'", path, name);
}

bool IsTar(absl::string_view bytes) {
  return bytes.size() >= 512 && bytes.substr(257, 5) == "ustar";
}

}  // namespace pd
