// SPDX-License-Identifier: Apache-2.0
#include "formats/zip_archive.h"

#include <zip.h>

#include <utility>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/array.h"

namespace pd {
namespace {

// Deflate packs at most 1032 bytes into one; a little more for its trailer.
constexpr zip_uint64_t kMaxDeflateRatio = 1032;
constexpr zip_uint64_t kDeflateSlack = 1 << 10;

struct ZipDiscard {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
using ZipPtr = std::unique_ptr<zip_t, ZipDiscard>;

struct ZipFileClose {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using ZipFilePtr = std::unique_ptr<zip_file_t, ZipFileClose>;

struct SourceFree {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using SourcePtr = std::unique_ptr<zip_source_t, SourceFree>;

// A zip_error_t that frees what its message took.
struct ZipError {
  zip_error_t error;
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  const char* text() { return zip_error_strerror(&error); }
};

// Sizes that the zip's directory claims, against what deflate can do.
absl::Status CheckSizes(const zip_stat_t& stat, zip_uint64_t file_size) {
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                   ZIP_STAT_COMP_METHOD |
                                   ZIP_STAT_ENCRYPTION_METHOD;
  if ((stat.valid & kNeeded) != kNeeded)
    return DataLoss("the zip does not say its size");
  if (stat.encryption_method != ZIP_EM_NONE)
    return Unimplemented("it is encrypted");
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    return Unimplemented(
        "its compression method is %d; expected 0 (stored) or 8 (deflated)",
        stat.comp_method);
  if (stat.comp_size > file_size)
    return DataLoss("it takes %d bytes of a file of %d", stat.comp_size,
                    file_size);
  const zip_uint64_t most =
      stat.comp_method == ZIP_CM_STORE
          ? stat.comp_size
          : stat.comp_size * kMaxDeflateRatio + kDeflateSlack;
  if (stat.size > most)
    return DataLoss("it claims %d bytes; its %d packed bytes hold at most %d",
                    stat.size, stat.comp_size, most);
  return absl::OkStatus();
}

}  // namespace

struct ZipEntry::State {
  ZipFilePtr file;
  uint64_t size = 0;
};

ZipEntry::ZipEntry(std::unique_ptr<State> state) : state_(std::move(state)) {}
ZipEntry::ZipEntry(ZipEntry&&) noexcept = default;
ZipEntry::~ZipEntry() = default;

uint64_t ZipEntry::size() const { return state_->size; }

absl::Status ZipEntry::Read(std::byte* to, size_t size) {
  zip_file_t* file = state_->file.get();
  while (size > 0) {
    const zip_int64_t n = zip_fread(file, to, size);
    if (n < 0)
      return DataLoss("damaged: %s",
                      zip_error_strerror(zip_file_get_error(file)));
    if (n == 0) return DataLoss("it ends %d bytes early", size);
    to += n;
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::Status ZipEntry::Finish() {
  char past_end;  // reading to the end makes libzip compare the checksum
  if (zip_fread(state_->file.get(), &past_end, 1) == 0) return absl::OkStatus();
  return DataLoss("damaged: %s",
                  zip_error_strerror(zip_file_get_error(state_->file.get())));
}

struct ZipArchive::State {
  FileBytes file;
  ZipPtr zip;
  uint64_t packed = 0;  // bytes of the entries that were opened
};

ZipArchive::ZipArchive(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
ZipArchive::ZipArchive(ZipArchive&&) noexcept = default;
ZipArchive::~ZipArchive() = default;

absl::StatusOr<ZipArchive> ZipArchive::Open(const FileBytes& file) {
  ZipError error;
  SourcePtr source(
      zip_source_buffer_create(file.data.get(), file.size, 0, &error.error));
  if (source == nullptr) return ResourceExhausted("%s", error.text());
  ZipPtr zip(zip_open_from_source(source.get(), ZIP_RDONLY, &error.error));
  if (zip == nullptr) return DataLoss("not a whole zip: %s", error.text());
  source.release();  // the archive owns it now
  auto state = std::make_unique<State>();
  state->file = file;
  state->zip = std::move(zip);
  return ZipArchive(std::move(state));
}

int64_t ZipArchive::count() const {
  return zip_get_num_entries(state_->zip.get(), 0);
}

absl::StatusOr<std::string> ZipArchive::Name(int64_t index) const {
  const char* name =
      zip_get_name(state_->zip.get(), static_cast<zip_uint64_t>(index), 0);
  if (name == nullptr)
    return DataLoss("entry %d of the zip has no name", index);
  return std::string(name);
}

absl::StatusOr<ZipEntry> ZipArchive::OpenEntry(int64_t index) {
  zip_t* zip = state_->zip.get();
  const auto place = static_cast<zip_uint64_t>(index);
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat_index(zip, place, 0, &stat) != 0)
    return DataLoss("damaged: %s", zip_error_strerror(zip_get_error(zip)));
  PD_RETURN_IF_ERROR(CheckSizes(stat, state_->file.size));
  state_->packed += stat.comp_size;
  if (state_->packed > state_->file.size)
    return DataLoss("the entries take over %d bytes of a file of %d",
                    state_->packed, state_->file.size);
  auto entry = std::make_unique<ZipEntry::State>();
  entry->file.reset(zip_fopen_index(zip, place, 0));
  if (entry->file == nullptr)
    return DataLoss("damaged: %s", zip_error_strerror(zip_get_error(zip)));
  entry->size = stat.size;
  return ZipEntry(std::move(entry));
}

absl::StatusOr<FileBytes> ZipArchive::Read(absl::string_view name) {
  const zip_int64_t index =
      zip_name_locate(state_->zip.get(), std::string(name).c_str(), 0);
  if (index < 0) return NotFound("it holds no '%s'", name);
  PD_ASSIGN_OR_RETURN(ZipEntry entry, OpenEntry(index));
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(
      const Array content,
      NewArray(DType::kUInt8, {static_cast<int64_t>(entry.size())}, &bytes));
  PD_RETURN_IF_ERROR(entry.Read(bytes, entry.size()));
  PD_RETURN_IF_ERROR(entry.Finish());
  return FileBytes{content.bytes, entry.size()};
}

bool IsZip(absl::string_view bytes) {
  return absl::StartsWith(bytes, "PK\x03\x04") ||
         absl::StartsWith(bytes, "PK\x05\x06");
}

absl::string_view FirstZipName(absl::string_view bytes) {
  // Its length stands in bytes 26 and 27 of the entry's header.
  constexpr size_t kHeader = 30;
  if (!IsZip(bytes) || bytes.size() < kHeader) return "";
  const size_t length = static_cast<unsigned char>(bytes[26]) +
                        256u * static_cast<unsigned char>(bytes[27]);
  return bytes.substr(kHeader, length);
}

}  // namespace pd
