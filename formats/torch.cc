// SPDX-License-Identifier: Apache-2.0
#include "formats/torch.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/byte_reader.h"
#include "formats/pickle_machine.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using pickle::Kind;
using pickle::Machine;
using pickle::Node;
using pickle::StorageSource;

constexpr absl::string_view kPickleName = "/data.pkl";
// The pickle of 0x1950a86a20f9469cfc6c, with which the older form begins.
constexpr absl::string_view kLegacyMagic =
    "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.";
constexpr int64_t kLegacyVersion = 1001;

FileBytes Slice(const FileBytes& file, size_t begin, size_t size) {
  return {std::shared_ptr<const std::byte>(file.data, file.data.get() + begin),
          size};
}

// The storages of a zip, read when they are first named.
class ZipStorages : public StorageSource {
 public:
  ZipStorages(ZipArchive* zip, std::string folder, bool big_endian,
              uint64_t file_size)
      : zip_(zip),
        folder_(std::move(folder)),
        big_endian_(big_endian),
        file_size_(file_size) {}

  absl::StatusOr<FileBytes> Storage(absl::string_view key, const RawLayout&,
                                    int64_t) override {
    const auto known = read_.find(std::string(key));
    if (known != read_.end()) return known->second;
    const std::string name = absl::StrCat(folder_, "/data/", key);
    auto bytes = zip_->Read(name);
    if (!bytes.ok())
      return Annotate(bytes.status(), absl::StrCat("entry '", name, "'"));
    return read_[std::string(key)] = *std::move(bytes);
  }
  bool big_endian() const override { return big_endian_; }
  uint64_t file_size() const override { return file_size_; }

 private:
  ZipArchive* zip_;
  std::string folder_;
  bool big_endian_;
  uint64_t file_size_;
  std::map<std::string, FileBytes> read_;
};

// The folder of the pickle; "" where there is none. The name before the first
// '/' is that of the file when it was saved.
absl::StatusOr<std::string> FolderIn(const ZipArchive& zip) {
  std::string folder;
  bool script = false;
  for (int64_t i = 0; i < zip.count(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::string full_name, zip.Name(i));
    absl::string_view name = full_name;
    script |= absl::EndsWith(name, "/constants.pkl");
    if (absl::ConsumeSuffix(&name, kPickleName) &&
        name.find('/') == absl::string_view::npos)
      folder = std::string(name);
  }
  if (script)
    return InvalidArgument(
        "it is a TorchScript module, a program of PyTorch's; "
        "torch.save(module.state_dict(), FILE) writes the parameters");
  if (folder.empty())
    return DataLoss("it has no entry 'NAME%s', the pickle of torch.save",
                    kPickleName);
  return folder;
}

absl::StatusOr<PickleValue> ParseZip(const FileBytes& file,
                                     Alignment alignment) {
  PD_ASSIGN_OR_RETURN(ZipArchive zip, ZipArchive::Open(file));
  PD_ASSIGN_OR_RETURN(const std::string folder, FolderIn(zip));
  const auto order = zip.Read(absl::StrCat(folder, "/byteorder"));
  if (!order.ok() && !absl::IsNotFound(order.status()))
    return Annotate(order.status(), "entry 'byteorder'");
  if (order.ok() && order->view() != "little" && order->view() != "big")
    return DataLoss("its byte order is '%s'; expected 'little' or 'big'",
                    order->view().substr(0, 16));
  const std::string name = absl::StrCat(folder, kPickleName);
  auto bytes = zip.Read(name);
  const std::string place = absl::StrCat("entry '", name, "'");
  if (!bytes.ok()) return Annotate(bytes.status(), place);
  ZipStorages storages(&zip, folder, order.ok() && order->view() == "big",
                       file.size);
  Machine machine(*bytes, alignment, &storages);
  const auto root = machine.Run();
  if (!root.ok()) return Annotate(root.status(), place);
  return pickle::TreeOf(**root, file.size);
}

// The storages that stand behind the pickles. The first pass over the pickle
// lists them, for only it says their element types; the second makes arrays.
class LegacyStorages : public StorageSource {
 public:
  LegacyStorages(uint64_t file_size, bool big_endian)
      : file_size_(file_size), big_endian_(big_endian) {}

  absl::StatusOr<FileBytes> Storage(absl::string_view key,
                                    const RawLayout& layout, int64_t) override {
    if (found_.empty()) {
      element_bytes_[std::string(key)] = SizeOf(layout.dtype);
      return FileBytes{};
    }
    const auto it = found_.find(std::string(key));
    if (it == found_.end())
      return DataLoss("storage '%s' is not in the file", key.substr(0, 64));
    return it->second;
  }
  bool big_endian() const override { return big_endian_; }
  uint64_t file_size() const override { return file_size_; }

  // The bytes behind the list of keys: of each its number of elements and them.
  absl::Status Find(const Node& keys, const FileBytes& rest) {
    if (keys.kind != Kind::kList)
      return DataLoss("the keys of its storages are no list");
    ByteReader in(rest);
    for (const Node* key : keys.items) {
      const auto listed = element_bytes_.find(std::string(key->text));
      if (!key->IsText() || listed == element_bytes_.end())
        return DataLoss("it has a storage '%s' that no tensor is of",
                        key->text.substr(0, 64));
      PD_ASSIGN_OR_RETURN(const auto count,
                          in.Number<int64_t>("a storage's size"));
      PD_ASSIGN_OR_RETURN(const int64_t size,
                          CheckedBytes({count}, listed->second));
      const size_t begin = in.offset();
      PD_RETURN_IF_ERROR(
          in.Take(static_cast<uint64_t>(size), "a storage").status());
      found_[std::string(key->text)] =
          Slice(rest, begin, static_cast<size_t>(size));
    }
    if (in.left() > 0)
      return DataLoss("%d bytes follow the storages; expected the end",
                      in.left());
    return absl::OkStatus();
  }

 private:
  uint64_t file_size_;
  bool big_endian_;
  std::map<std::string, size_t> element_bytes_;
  std::map<std::string, FileBytes> found_;
};

// Whether the writer's elements lie in big-endian order, as its dict says.
absl::StatusOr<bool> IsBigEndian(const Node& info) {
  for (size_t i = 0; info.kind == Kind::kDict && i + 1 < info.items.size();
       i += 2)
    if (info.items[i]->IsText() && info.items[i]->text == "little_endian")
      return info.items[i + 1]->integer == 0;
  return DataLoss("it does not say its byte order");
}

absl::StatusOr<PickleValue> ParseLegacy(const FileBytes& file,
                                        Alignment alignment) {
  size_t begin = kLegacyMagic.size(), end = 0;
  const auto rest = [&] { return Slice(file, begin, file.size - begin); };
  Machine version(rest(), alignment);
  PD_ASSIGN_OR_RETURN(const Node* number, version.RunFirst(&end));
  if (number->kind != Kind::kInt || number->integer != kLegacyVersion)
    return DataLoss("its version is not %d", kLegacyVersion);
  begin += end;
  Machine info(rest(), alignment);
  PD_ASSIGN_OR_RETURN(const Node* system, info.RunFirst(&end));
  PD_ASSIGN_OR_RETURN(const bool big_endian, IsBigEndian(*system));
  begin += end;
  const FileBytes object = rest();
  LegacyStorages storages(file.size, big_endian);
  Machine listing(object, alignment, &storages);
  PD_RETURN_IF_ERROR(listing.RunFirst(&end).status());
  const size_t size = end;
  begin += end;
  Machine keys(rest(), alignment);
  PD_ASSIGN_OR_RETURN(const Node* list, keys.RunFirst(&end));
  begin += end;
  PD_RETURN_IF_ERROR(storages.Find(*list, rest()));
  Machine machine(Slice(object, 0, size), alignment, &storages);
  PD_ASSIGN_OR_RETURN(const Node* root, machine.Run());
  return pickle::TreeOf(*root, file.size);
}

}  // namespace

bool IsTorch(absl::string_view bytes) {
  if (absl::StartsWith(bytes, kLegacyMagic)) return true;
  // The pickle is the first entry.
  return absl::EndsWith(FirstZipName(bytes), kPickleName);
}

absl::StatusOr<PickleValue> ParseTorch(const FileBytes& file,
                                       Alignment alignment) {
  return absl::StartsWith(file.view(), kLegacyMagic)
             ? ParseLegacy(file, alignment)
             : ParseZip(file, alignment);
}

}  // namespace pd
