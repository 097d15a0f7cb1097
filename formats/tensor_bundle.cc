// SPDX-License-Identifier: Apache-2.0
// A table is blocks of entries, an index of the blocks, and a footer that says
// where the index is. A block is entries whose keys leave out what they share
// with the one before, the offsets of those that share nothing, and a trailer
// of a byte for the compression and a checksum.
#include "formats/tensor_bundle.h"

#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "formats/byte_reader.h"
#include "formats/tensorflow.pb.h"
#include "formats/tensorflow_file.h"
#include "formats/tfevents.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace format = tensorflow_format;

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57u;
constexpr size_t kFooterSize = 48, kTrailerSize = 5;

bool TakeTableNumber(absl::string_view* bytes, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>((*bytes)[0]);
    bytes->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

struct BlockHandle {
  uint64_t offset = 0, size = 0;
};

bool TakeHandle(absl::string_view* bytes, BlockHandle* handle) {
  return TakeTableNumber(bytes, &handle->offset) &&
         TakeTableNumber(bytes, &handle->size);
}

// The entries of a block, without its trailer and its offsets.
absl::StatusOr<absl::string_view> BlockAt(absl::string_view table,
                                          const BlockHandle& handle) {
  if (handle.offset > table.size() ||
      table.size() - handle.offset < kTrailerSize ||
      handle.size > table.size() - handle.offset - kTrailerSize)
    return DataLoss("a block of %d bytes at byte %d; the table has %d",
                    handle.size, handle.offset, table.size());
  const absl::string_view block = table.substr(handle.offset, handle.size + 1);
  const auto stored =
      NumberAt<uint32_t>(table, handle.offset + handle.size + 1);
  if (MaskedCrc32c(block) != stored)
    return DataLoss("the block at byte %d has another checksum than was saved",
                    handle.offset);
  if (block.back() != 0)
    return Unimplemented(
        "the block at byte %d is compressed (%d); TensorFlow writes variables "
        "without compression",
        handle.offset, static_cast<int>(block.back()));
  if (handle.size < sizeof(uint32_t))
    return DataLoss("the block at byte %d has %d bytes", handle.offset,
                    handle.size);
  const auto restarts =
      NumberAt<uint32_t>(block, handle.size - sizeof(uint32_t));
  const uint64_t room = handle.size / sizeof(uint32_t) - 1;
  if (restarts > room)
    return DataLoss("the block at byte %d has %d offsets; %d fit into it",
                    handle.offset, restarts, room);
  return block.substr(0, handle.size - sizeof(uint32_t) * (restarts + 1));
}

// Calls `take` with the key and the value of each entry.
template <typename Take>
absl::Status ForEveryEntry(absl::string_view block, Take take) {
  std::string key;
  while (!block.empty()) {
    uint64_t shared = 0, own = 0, size = 0;
    if (!TakeTableNumber(&block, &shared) || !TakeTableNumber(&block, &own) ||
        !TakeTableNumber(&block, &size) || shared > key.size() ||
        own > block.size() || size > block.size() - own)
      return DataLoss("an entry of the table after '%s' is damaged", key);
    key.resize(shared);
    key.append(block.data(), own);
    PD_RETURN_IF_ERROR(take(key, block.substr(own, size)));
    block.remove_prefix(own + size);
  }
  return absl::OkStatus();
}

absl::Status TakeHeader(absl::string_view value, TensorBundle* bundle) {
  format::BundleHeader header;
  if (!header.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
      header.num_shards() < 1)
    return DataLoss("its header is damaged");
  if (header.endianness() != 0)
    return Unimplemented("variables of a machine that is big-endian");
  bundle->shards = header.num_shards();
  return absl::OkStatus();
}

absl::Status TakeEntry(const std::string& key, absl::string_view value,
                       TensorBundle* bundle) {
  if (value.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return DataLoss("variable '%s': an entry of %d bytes", key, value.size());
  if (key.empty()) return TakeHeader(value, bundle);
  format::BundleEntry in;
  if (!in.ParseFromArray(value.data(), static_cast<int>(value.size())))
    return DataLoss("variable '%s': its entry is damaged", key);
  BundleEntry entry;
  entry.dtype = in.dtype();
  for (const auto& dim : in.shape().dim()) entry.shape.push_back(dim.size());
  // Of texts the element's size is not known.
  const auto bytes = CheckedBytes(entry.shape, 1);
  if (!bytes.ok() || in.offset() < 0 || in.size() < 0 || in.shard_id() < 0 ||
      in.shard_id() >= bundle->shards)
    return DataLoss("variable '%s' of shape %s: %d bytes at %d of file %d", key,
                    ToString(entry.shape), in.size(), in.offset(),
                    in.shard_id());
  entry.shard = in.shard_id();
  entry.offset = static_cast<uint64_t>(in.offset());
  entry.size = static_cast<uint64_t>(in.size());
  entry.checksum = in.crc32c();
  entry.sliced = in.slices_size() > 0;
  bundle->entries[key] = std::move(entry);
  return absl::OkStatus();
}

}  // namespace

bool IsTensorBundle(absl::string_view bytes) {
  return bytes.size() >= kFooterSize &&
         NumberAt<uint64_t>(bytes, bytes.size() - sizeof(uint64_t)) ==
             kTableMagic;
}

absl::StatusOr<TensorBundle> ParseTensorBundle(absl::string_view index) {
  if (!IsTensorBundle(index))
    return DataLoss("%d bytes are no index of TensorFlow's variables",
                    index.size());
  absl::string_view footer = index.substr(index.size() - kFooterSize);
  const absl::string_view table = index.substr(0, index.size() - kFooterSize);
  BlockHandle unused, blocks;
  if (!TakeHandle(&footer, &unused) || !TakeHandle(&footer, &blocks))
    return DataLoss("the end of the table is damaged");
  TensorBundle bundle;
  // Blocks lie one after the other: one that is named twice would let a small
  // file stand for a large table.
  uint64_t end = 0;
  PD_ASSIGN_OR_RETURN(const absl::string_view top, BlockAt(table, blocks));
  PD_RETURN_IF_ERROR(
      ForEveryEntry(top, [&](const std::string& key, absl::string_view value) {
        BlockHandle handle;
        if (!TakeHandle(&value, &handle))
          return DataLoss("the block of '%s' is not said", key);
        if (handle.offset < end)
          return DataLoss("the block at byte %d lies before byte %d",
                          handle.offset, end);
        auto block = BlockAt(table, handle);
        if (!block.ok()) return block.status();
        end = handle.offset + handle.size;
        return ForEveryEntry(
            *block, [&](const std::string& name, absl::string_view entry) {
              return TakeEntry(name, entry, &bundle);
            });
      }));
  return bundle;
}

std::string BundleShardName(const std::string& name, int64_t shard,
                            int64_t shards) {
  return absl::StrFormat("%s.data-%05d-of-%05d", name, shard, shards);
}

absl::StatusOr<Array> BundleTensor(const BundleEntry& entry,
                                   const FileBytes& data) {
  if (entry.sliced) return Unimplemented("it is saved in slices");
  const auto dtype = DTypeFromTensorflow(entry.dtype);
  if (!dtype.has_value())
    return Unimplemented("a variable of %s", TensorflowTypeName(entry.dtype));
  const auto bytes = CheckedBytes(entry.shape, SizeOf(*dtype));
  if (!bytes.ok()) return DataLoss("%s", bytes.status().message());
  if (static_cast<uint64_t>(*bytes) != entry.size)
    return DataLoss("it has %d bytes; its shape is %s of %s", entry.size,
                    ToString(entry.shape), Name(*dtype));
  if (entry.offset > data.size || entry.size > data.size - entry.offset)
    return DataLoss("%d bytes at byte %d; the file has %d", entry.size,
                    entry.offset, data.size);
  if (MaskedCrc32c(data.view().substr(entry.offset, entry.size)) !=
      entry.checksum)
    return DataLoss("its bytes have another checksum than was saved");
  const std::byte* begin = data.data.get() + entry.offset;
  if (*dtype == DType::kBool)
    for (uint64_t i = 0; i < entry.size; ++i)
      if (static_cast<uint8_t>(begin[i]) > 1)
        return DataLoss("element %d of a bool variable is %d", i,
                        static_cast<int>(begin[i]));
  Array array;
  array.dtype = *dtype;
  array.shape = entry.shape;
  if (reinterpret_cast<uintptr_t>(begin) % SizeOf(*dtype) == 0) {
    array.bytes = std::shared_ptr<const std::byte>(data.data, begin);
    return array;
  }
  std::byte* out = nullptr;
  PD_ASSIGN_OR_RETURN(array, NewArray(*dtype, entry.shape, &out));
  if (entry.size > 0) std::memcpy(out, begin, entry.size);
  return array;
}

}  // namespace pd
