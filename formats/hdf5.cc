// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5.h"

#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/byte_reader.h"
#include "formats/hdf5_types.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr char kSignature[] = "\x89HDF\r\n\x1a\n";
constexpr uint64_t kNowhere = ~uint64_t{0};  // an address that is not set
constexpr int kMostGroups = 64;              // inside of each other
constexpr int kMostLevels = 16;              // of the tree of a group

// Numbers of messages in the header of an object.
enum MessageType : uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kLayout = 0x08,
  kFilters = 0x0b,
  kAttribute = 0x0c,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
  kAttributeInfo = 0x15,
};

// The header of one object, whose parts are in any order.
struct Hdf5Header {
  std::optional<Shape> shape;
  std::optional<Hdf5Type> type;
  absl::string_view layout, symbol_table;
  std::vector<absl::string_view> attributes, links;
};

// Where the bytes of a heap that are an object lie, by its index.
using Collection = std::map<uint32_t, absl::string_view>;

absl::Status Expect(ByteReader* in, absl::string_view signature) {
  PD_ASSIGN_OR_RETURN(const absl::string_view found,
                      in->Take(signature.size(), "a signature"));
  if (found == signature) return absl::OkStatus();
  return DataLoss("no '%s' where one is to be", signature);
}

// An integer of 1, 2, 4 or 8 bytes, as a field of two bits says.
absl::StatusOr<uint64_t> OfWidth(ByteReader* in, int code, const char* what) {
  PD_ASSIGN_OR_RETURN(const absl::string_view bytes,
                      in->Take(uint64_t{1} << (code & 3), what));
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

class Hdf5Reader {
 public:
  explicit Hdf5Reader(const FileBytes& file)
      : file_(file.view()), left_(8 * uint64_t{file.size} + 1024) {}

  absl::StatusOr<Hdf5Object> Root() {
    PD_ASSIGN_OR_RETURN(const uint64_t address, RootAddress());
    Hdf5Object root;
    PD_RETURN_IF_ERROR(ReadObject(address, 0, &root));
    return root;
  }

 private:
  // The bytes [address, address + size) of the file. Whatever the file says,
  // it is not read many times over.
  absl::StatusOr<absl::string_view> At(uint64_t address, uint64_t size,
                                       const char* what) {
    if (address > file_.size() || size > file_.size() - address)
      return DataLoss("%s at byte %d takes %d bytes; the file has %d", what,
                      address, size, file_.size());
    PD_RETURN_IF_ERROR(Spend(size));
    return file_.substr(address, size);
  }
  absl::Status Spend(uint64_t size) {
    if (size > left_) return DataLoss("its parts lie in each other");
    left_ -= size;
    return absl::OkStatus();
  }
  // A reader from `address` to the file's end.
  absl::StatusOr<ByteReader> From(uint64_t address, const char* what) {
    PD_RETURN_IF_ERROR(At(address, 0, what).status());
    return CursorOver(file_.substr(address));
  }

  absl::StatusOr<uint64_t> RootAddress();
  absl::Status ReadHeader(uint64_t address, Hdf5Header* header);
  absl::Status ReadOldMessages(absl::string_view block, Hdf5Header* header);
  absl::Status ReadNewHeader(uint64_t address, Hdf5Header* header);
  absl::Status ReadNewMessages(absl::string_view block, bool ordered,
                               Hdf5Header* header);
  absl::Status TakeMessage(uint16_t type, uint8_t flags, absl::string_view data,
                           Hdf5Header* header);
  absl::Status TakeIndex(uint16_t type, absl::string_view data);
  absl::Status ReadObject(uint64_t address, int depth, Hdf5Object* out);
  absl::Status ReadMember(const std::string& name, uint64_t address, int depth,
                          Hdf5Object* out);
  absl::Status ReadSymbols(absl::string_view table, int depth, Hdf5Object* out);
  absl::Status ReadTree(uint64_t address, int above, absl::string_view heap,
                        int depth, Hdf5Object* out);
  absl::Status ReadLink(absl::string_view message, int depth, Hdf5Object* out);
  absl::Status ReadAttribute(absl::string_view message, Hdf5Object* out);
  absl::StatusOr<std::vector<std::string>> Texts(const Hdf5Type& type,
                                                 const Shape& shape,
                                                 absl::string_view data);
  absl::StatusOr<absl::string_view> InHeap(uint64_t address, uint32_t index);
  absl::Status ReadDataset(const Hdf5Header& header, Hdf5Object* out);

  absl::string_view file_;
  uint64_t left_;               // bytes that may be read yet
  std::set<uint64_t> visited_;  // addresses of objects
  std::map<uint64_t, Collection> heaps_;
  std::vector<std::pair<uint64_t, uint64_t>> continued_;  // of a header
};

absl::StatusOr<uint64_t> Hdf5Reader::RootAddress() {
  PD_ASSIGN_OR_RETURN(ByteReader in, From(0, "the superblock"));
  PD_RETURN_IF_ERROR(Expect(&in, kSignature));
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("the superblock"));
  const bool old = version < 2;
  if (version > 3) return Unimplemented("a superblock of version %d", version);
  if (old) PD_RETURN_IF_ERROR(in.Take(4, "the superblock").status());
  PD_ASSIGN_OR_RETURN(const auto sizes, in.Number<uint16_t>("the superblock"));
  if (sizes != 0x0808)
    return Unimplemented("addresses or lengths that are not of 8 bytes");
  PD_RETURN_IF_ERROR(
      in.Take(old ? 9 + 4 * version : 1, "the superblock").status());
  PD_ASSIGN_OR_RETURN(const auto base, in.Number<uint64_t>("an address"));
  if (base != 0) return Unimplemented("a file with a user's block");
  // Free space or extension, end, driver; the root is a symbol in old files.
  PD_RETURN_IF_ERROR(in.Take(old ? 32 : 16, "the superblock").status());
  return in.Number<uint64_t>("the root's address");
}

absl::Status Hdf5Reader::ReadHeader(uint64_t address, Hdf5Header* header) {
  PD_ASSIGN_OR_RETURN(ByteReader in, From(address, "an object"));
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("an object"));
  continued_.clear();
  if (version == 'O') return ReadNewHeader(address, header);
  if (version != 1)
    return DataLoss("byte %d: an object of version %d", address, version);
  PD_RETURN_IF_ERROR(in.Take(7, "an object").status());
  PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint32_t>("an object"));
  PD_ASSIGN_OR_RETURN(const absl::string_view block,
                      At(address + 16, size, "an object"));
  PD_RETURN_IF_ERROR(ReadOldMessages(block, header));
  for (size_t i = 0; i < continued_.size(); ++i) {
    PD_ASSIGN_OR_RETURN(
        const absl::string_view more,
        At(continued_[i].first, continued_[i].second, "a part of an object"));
    PD_RETURN_IF_ERROR(ReadOldMessages(more, header));
  }
  return absl::OkStatus();
}

absl::Status Hdf5Reader::ReadOldMessages(absl::string_view block,
                                         Hdf5Header* header) {
  ByteReader in = CursorOver(block);
  while (in.left() >= 8) {
    PD_ASSIGN_OR_RETURN(const auto type, in.Number<uint16_t>("a message"));
    PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint16_t>("a message"));
    PD_ASSIGN_OR_RETURN(const auto flags, in.Number<uint32_t>("a message"));
    PD_ASSIGN_OR_RETURN(const absl::string_view data,
                        in.Take(size, "a message"));
    PD_RETURN_IF_ERROR(
        TakeMessage(type, static_cast<uint8_t>(flags), data, header));
  }
  return absl::OkStatus();
}

// Headers of HDF5 1.8, whose parts end in a checksum.
absl::Status Hdf5Reader::ReadNewHeader(uint64_t address, Hdf5Header* header) {
  PD_ASSIGN_OR_RETURN(ByteReader in, From(address, "an object"));
  PD_RETURN_IF_ERROR(Expect(&in, "OHDR"));
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("an object"));
  if (version != 2) return DataLoss("an object of version %d", version);
  PD_ASSIGN_OR_RETURN(const auto flags, in.Number<uint8_t>("an object"));
  PD_RETURN_IF_ERROR(
      in.Take(((flags & 0x20) != 0 ? 16 : 0) + ((flags & 0x10) != 0 ? 4 : 0),
              "an object")
          .status());
  PD_ASSIGN_OR_RETURN(const uint64_t size, OfWidth(&in, flags, "an object"));
  const bool ordered = (flags & 0x04) != 0;
  PD_ASSIGN_OR_RETURN(const absl::string_view block,
                      At(address + in.offset(), size, "an object"));
  PD_RETURN_IF_ERROR(ReadNewMessages(block, ordered, header));
  for (size_t i = 0; i < continued_.size(); ++i) {
    PD_ASSIGN_OR_RETURN(
        absl::string_view more,
        At(continued_[i].first, continued_[i].second, "a part of an object"));
    if (more.size() < 8 || more.substr(0, 4) != "OCHK")
      return DataLoss("no 'OCHK' where one is to be");
    PD_RETURN_IF_ERROR(
        ReadNewMessages(more.substr(4, more.size() - 8), ordered, header));
  }
  return absl::OkStatus();
}

absl::Status Hdf5Reader::ReadNewMessages(absl::string_view block, bool ordered,
                                         Hdf5Header* header) {
  ByteReader in = CursorOver(block);
  while (in.left() >= (ordered ? 6 : 4)) {
    PD_ASSIGN_OR_RETURN(const auto type, in.Number<uint8_t>("a message"));
    PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint16_t>("a message"));
    PD_ASSIGN_OR_RETURN(const auto flags, in.Number<uint8_t>("a message"));
    if (ordered) PD_RETURN_IF_ERROR(in.Take(2, "a message").status());
    PD_ASSIGN_OR_RETURN(const absl::string_view data,
                        in.Take(size, "a message"));
    PD_RETURN_IF_ERROR(TakeMessage(type, flags, data, header));
  }
  return absl::OkStatus();
}

absl::Status Hdf5Reader::TakeMessage(uint16_t type, uint8_t flags,
                                     absl::string_view data,
                                     Hdf5Header* header) {
  constexpr uint8_t kShared = 0x02;
  if ((flags & kShared) != 0 && (type == kDataspace || type == kDatatype))
    return Unimplemented("types that several objects share");
  switch (type) {
    case kDataspace: {
      PD_ASSIGN_OR_RETURN(header->shape, ParseDataspace(data));
      break;
    }
    case kDatatype: {
      PD_ASSIGN_OR_RETURN(header->type, ParseDatatype(data));
      break;
    }
    case kLayout:
      header->layout = data;
      break;
    case kFilters:
      return Unimplemented("packed datasets");
    case kAttribute:
      if ((flags & kShared) == 0) header->attributes.push_back(data);
      break;
    case kLink:
      header->links.push_back(data);
      break;
    case kSymbolTable:
      header->symbol_table = data;
      break;
    case kContinuation: {
      ByteReader in = CursorOver(data);
      PD_ASSIGN_OR_RETURN(const auto address, in.Number<uint64_t>("a part"));
      PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint64_t>("a part"));
      // So that parts that continue in themselves come to an end.
      PD_RETURN_IF_ERROR(Spend(16));
      continued_.push_back({address, size});
      break;
    }
    case kLinkInfo:
    case kAttributeInfo:
      return TakeIndex(type, data);
    default:
      break;
  }
  return absl::OkStatus();
}

// Many links or attributes lie in a heap with an index, which h5py makes only
// where it is asked for files of newer versions.
absl::Status Hdf5Reader::TakeIndex(uint16_t type, absl::string_view data) {
  ByteReader in = CursorOver(data);
  PD_ASSIGN_OR_RETURN(const auto head, in.Number<uint16_t>("an index"));
  const bool counted = (head & 0x0100) != 0;
  PD_RETURN_IF_ERROR(
      in.Take(counted ? (type == kLinkInfo ? 8 : 2) : 0, "an index").status());
  PD_ASSIGN_OR_RETURN(const auto heap, in.Number<uint64_t>("an index"));
  if (heap == kNowhere) return absl::OkStatus();
  return Unimplemented(
      "a group or attributes with an index of HDF5 1.8; expected a file that "
      "h5py wrote with libver='earliest'");
}

absl::Status Hdf5Reader::ReadObject(uint64_t address, int depth,
                                    Hdf5Object* out) {
  if (depth > kMostGroups)
    return DataLoss("more than %d groups in each other", kMostGroups);
  if (!visited_.insert(address).second)
    return Unimplemented("an object that is linked twice");
  Hdf5Header header;
  PD_RETURN_IF_ERROR(ReadHeader(address, &header));
  for (const absl::string_view attribute : header.attributes)
    PD_RETURN_IF_ERROR(ReadAttribute(attribute, out));
  if (!header.layout.empty()) return ReadDataset(header, out);
  for (const absl::string_view link : header.links)
    PD_RETURN_IF_ERROR(ReadLink(link, depth, out));
  return header.symbol_table.empty()
             ? absl::OkStatus()
             : ReadSymbols(header.symbol_table, depth, out);
}

absl::Status Hdf5Reader::ReadMember(const std::string& name, uint64_t address,
                                    int depth, Hdf5Object* out) {
  const auto [member, is_new] = out->members.emplace(name, Hdf5Object());
  if (!is_new) return DataLoss("two objects have the name '%s'", name);
  return Annotate(ReadObject(address, depth + 1, &member->second),
                  absl::StrCat("'", name, "'"));
}

absl::Status Hdf5Reader::ReadSymbols(absl::string_view table, int depth,
                                     Hdf5Object* out) {
  ByteReader in = CursorOver(table);
  PD_ASSIGN_OR_RETURN(const auto tree, in.Number<uint64_t>("a group"));
  PD_ASSIGN_OR_RETURN(const auto heap, in.Number<uint64_t>("a group"));
  PD_ASSIGN_OR_RETURN(ByteReader names, From(heap, "names of a group"));
  PD_RETURN_IF_ERROR(Expect(&names, "HEAP"));
  PD_RETURN_IF_ERROR(names.Take(4, "names of a group").status());
  PD_ASSIGN_OR_RETURN(const auto size, names.Number<uint64_t>("a heap"));
  PD_RETURN_IF_ERROR(names.Take(8, "names of a group").status());
  PD_ASSIGN_OR_RETURN(const auto data, names.Number<uint64_t>("a heap"));
  PD_ASSIGN_OR_RETURN(const absl::string_view bytes,
                      At(data, size, "names of a group"));
  return ReadTree(tree, kMostLevels, bytes, depth, out);
}

// The B-tree of a group: nodes of nodes, each of a lower level, and at the end
// tables of symbols.
absl::Status Hdf5Reader::ReadTree(uint64_t address, int above,
                                  absl::string_view heap, int depth,
                                  Hdf5Object* out) {
  PD_ASSIGN_OR_RETURN(ByteReader in, From(address, "a group"));
  PD_RETURN_IF_ERROR(Expect(&in, "TREE"));
  PD_ASSIGN_OR_RETURN(const auto type, in.Number<uint8_t>("a group"));
  PD_ASSIGN_OR_RETURN(const auto level, in.Number<uint8_t>("a group"));
  PD_ASSIGN_OR_RETURN(const auto count, in.Number<uint16_t>("a group"));
  if (type != 0 || level >= above)
    return DataLoss("byte %d: no node of a group", address);
  PD_RETURN_IF_ERROR(in.Take(24, "a group").status());
  PD_RETURN_IF_ERROR(Spend(32 + 16 * uint64_t{count}));
  for (int i = 0; i < count; ++i) {
    PD_ASSIGN_OR_RETURN(const auto child, in.Number<uint64_t>("a group"));
    PD_RETURN_IF_ERROR(in.Take(8, "a group").status());
    if (level > 0) {
      PD_RETURN_IF_ERROR(ReadTree(child, level, heap, depth, out));
      continue;
    }
    PD_ASSIGN_OR_RETURN(ByteReader node, From(child, "a group's members"));
    PD_RETURN_IF_ERROR(Expect(&node, "SNOD"));
    PD_RETURN_IF_ERROR(node.Take(2, "a group's members").status());
    PD_ASSIGN_OR_RETURN(const auto symbols, node.Number<uint16_t>("a group"));
    for (int k = 0; k < symbols; ++k) {
      PD_RETURN_IF_ERROR(Spend(40));
      PD_ASSIGN_OR_RETURN(const absl::string_view symbol,
                          node.Take(40, "a group's member"));
      const auto name = NumberAt<uint64_t>(symbol, 0);
      const size_t end = name < heap.size() ? heap.find('\0', name) : heap.npos;
      if (end == heap.npos) return DataLoss("a member has no name");
      if (NumberAt<uint32_t>(symbol, 16) > 1)
        return Unimplemented("a symbolic link");
      PD_RETURN_IF_ERROR(Spend(end - name));
      PD_RETURN_IF_ERROR(ReadMember(std::string(heap.substr(name, end - name)),
                                    NumberAt<uint64_t>(symbol, 8), depth, out));
    }
  }
  return absl::OkStatus();
}

absl::Status Hdf5Reader::ReadLink(absl::string_view message, int depth,
                                  Hdf5Object* out) {
  ByteReader in = CursorOver(message);
  PD_RETURN_IF_ERROR(in.Take(1, "a link").status());
  PD_ASSIGN_OR_RETURN(const auto flags, in.Number<uint8_t>("a link"));
  uint8_t type = 0;
  if ((flags & 0x08) != 0) {
    PD_ASSIGN_OR_RETURN(type, in.Number<uint8_t>("a link"));
  }
  if (type != 0) return Unimplemented("a link that is not hard");
  PD_RETURN_IF_ERROR(
      in.Take(((flags & 0x04) != 0 ? 8 : 0) + ((flags & 0x10) != 0 ? 1 : 0),
              "a link")
          .status());
  PD_ASSIGN_OR_RETURN(const uint64_t size, OfWidth(&in, flags, "a link"));
  PD_ASSIGN_OR_RETURN(const absl::string_view name, in.Take(size, "a link"));
  PD_ASSIGN_OR_RETURN(const auto address, in.Number<uint64_t>("a link"));
  return ReadMember(std::string(name), address, depth, out);
}

absl::Status Hdf5Reader::ReadAttribute(absl::string_view message,
                                       Hdf5Object* out) {
  ByteReader in = CursorOver(message);
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("an attribute"));
  PD_ASSIGN_OR_RETURN(const auto flags, in.Number<uint8_t>("an attribute"));
  if (version < 1 || version > 3)
    return DataLoss("an attribute of version %d", version);
  absl::string_view parts[3];  // name, datatype, dataspace
  uint64_t sizes[3];
  for (uint64_t& size : sizes) {
    PD_ASSIGN_OR_RETURN(size, in.Number<uint16_t>("an attribute"));
  }
  if (version == 3) PD_RETURN_IF_ERROR(in.Take(1, "an attribute").status());
  for (int i = 0; i < 3; ++i) {
    PD_ASSIGN_OR_RETURN(parts[i], in.Take(sizes[i], "an attribute"));
    const uint64_t padding = version == 1 ? -sizes[i] & 7 : 0;
    PD_RETURN_IF_ERROR(in.Take(padding, "an attribute").status());
  }
  if (version > 1 && (flags & 3) != 0) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const Hdf5Type type, ParseDatatype(parts[1]));
  if (type.kind != Hdf5Type::Kind::kText &&
      type.kind != Hdf5Type::Kind::kTextElsewhere)
    return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const Shape shape, ParseDataspace(parts[2]));
  const std::string name(parts[0].substr(0, parts[0].find('\0')));
  PD_ASSIGN_OR_RETURN(const absl::string_view data,
                      in.Take(in.left(), "an attribute"));
  PD_ASSIGN_OR_RETURN(out->texts[name], Texts(type, shape, data));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> Hdf5Reader::Texts(
    const Hdf5Type& type, const Shape& shape, absl::string_view data) {
  if (type.size == 0) return DataLoss("strings of 0 bytes");
  PD_ASSIGN_OR_RETURN(const int64_t bytes, CheckedBytes(shape, type.size));
  if (static_cast<uint64_t>(bytes) > data.size())
    return DataLoss("%s strings of %d bytes in %d", ToString(shape), type.size,
                    data.size());
  std::vector<std::string> texts;
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    const size_t at = static_cast<size_t>(i) * type.size;
    absl::string_view text = data.substr(at, type.size);
    if (type.kind == Hdf5Type::Kind::kTextElsewhere) {
      const auto size = NumberAt<uint32_t>(text, 0);
      absl::string_view held;
      if (size > 0) {
        PD_ASSIGN_OR_RETURN(held, InHeap(NumberAt<uint64_t>(text, 4),
                                         NumberAt<uint32_t>(text, 12)));
      }
      if (size > held.size())
        return DataLoss("a string of %d bytes in %d", size, held.size());
      text = held.substr(0, size);
    } else {
      text = text.substr(0, text.find('\0'));
    }
    PD_RETURN_IF_ERROR(Spend(text.size() + 1));
    texts.emplace_back(text);
  }
  return texts;
}

absl::StatusOr<absl::string_view> Hdf5Reader::InHeap(uint64_t address,
                                                     uint32_t index) {
  auto heap = heaps_.find(address);
  if (heap == heaps_.end()) {
    PD_ASSIGN_OR_RETURN(ByteReader in, From(address, "a heap"));
    PD_RETURN_IF_ERROR(Expect(&in, "GCOL"));
    PD_RETURN_IF_ERROR(in.Take(4, "a heap").status());
    PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint64_t>("a heap"));
    PD_ASSIGN_OR_RETURN(const absl::string_view bytes,
                        At(address, size, "a heap"));
    in = CursorOver(bytes);
    PD_RETURN_IF_ERROR(in.Take(16, "a heap").status());
    Collection collection;
    while (in.left() >= 16) {
      PD_ASSIGN_OR_RETURN(const auto number, in.Number<uint16_t>("a heap"));
      PD_RETURN_IF_ERROR(in.Take(6, "a heap").status());
      PD_ASSIGN_OR_RETURN(const auto length, in.Number<uint64_t>("a heap"));
      if (number == 0) break;  // the space that is free
      PD_ASSIGN_OR_RETURN(collection[number], in.Take(length, "a string"));
      PD_RETURN_IF_ERROR(
          in.Take(std::min<uint64_t>(-length & 7, in.left()), "a heap")
              .status());
    }
    heap = heaps_.emplace(address, std::move(collection)).first;
  }
  const auto object = heap->second.find(index);
  if (object == heap->second.end())
    return DataLoss("a heap has no object %d", index);
  return object->second;
}

absl::Status Hdf5Reader::ReadDataset(const Hdf5Header& header,
                                     Hdf5Object* out) {
  if (!header.shape.has_value() || !header.type.has_value())
    return DataLoss("a dataset without shape or type");
  // Datasets of strings or of objects hold nothing that is asked for.
  if (header.type->kind != Hdf5Type::Kind::kNumber) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(const int64_t bytes,
                      CheckedBytes(*header.shape, header.type->size));
  ByteReader in = CursorOver(header.layout);
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("a layout"));
  PD_ASSIGN_OR_RETURN(const auto kind, in.Number<uint8_t>("a layout"));
  if (version != 3 && version != 4)
    return Unimplemented("a layout of version %d", version);
  absl::string_view data;
  if (kind == 0) {
    PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint16_t>("a layout"));
    PD_ASSIGN_OR_RETURN(data, in.Take(size, "a dataset"));
  } else if (kind == 1) {
    PD_ASSIGN_OR_RETURN(const auto address, in.Number<uint64_t>("a layout"));
    if (address == kNowhere && bytes > 0)
      return DataLoss("a dataset that was never written");
    if (bytes > 0) {
      PD_ASSIGN_OR_RETURN(
          data, At(address, static_cast<uint64_t>(bytes), "a dataset"));
    }
  } else {
    return Unimplemented("a dataset in chunks");
  }
  if (data.size() < static_cast<uint64_t>(bytes))
    return DataLoss("a dataset of shape %s in %d bytes",
                    ToString(*header.shape), data.size());
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(out->array,
                      NewArray(header.type->dtype, *header.shape, &to));
  if (bytes > 0) std::memcpy(to, data.data(), static_cast<size_t>(bytes));
  return absl::OkStatus();
}

}  // namespace

const Hdf5Object* Hdf5Object::Find(absl::string_view path) const {
  const Hdf5Object* at = this;
  for (const absl::string_view name : absl::StrSplit(path, '/')) {
    if (name.empty()) continue;
    const auto member = at->members.find(std::string(name));
    if (member == at->members.end()) return nullptr;
    at = &member->second;
  }
  return at;
}

const std::string* Hdf5Object::Text(const std::string& name) const {
  const auto text = texts.find(name);
  return text == texts.end() || text->second.size() != 1 ? nullptr
                                                         : &text->second[0];
}

bool IsHdf5(absl::string_view bytes) {
  return absl::StartsWith(bytes, kSignature);
}

absl::StatusOr<Hdf5Object> ParseHdf5(const FileBytes& file) {
  return Hdf5Reader(file).Root();
}

}  // namespace pd
