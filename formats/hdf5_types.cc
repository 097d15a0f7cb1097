// SPDX-License-Identifier: Apache-2.0
#include "formats/hdf5_types.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

Hdf5Type NumberType(int kind, bool is_signed, uint64_t size, int mantissa) {
  Hdf5Type type;
  type.size = size;
  const std::pair<uint64_t, DType> floats[] = {
      {2, DType::kFloat16}, {4, DType::kFloat32}, {8, DType::kFloat64}};
  const std::pair<uint64_t, DType> ints[] = {{1, DType::kInt8},
                                             {2, DType::kInt16},
                                             {4, DType::kInt32},
                                             {8, DType::kInt64}};
  if (kind == 0 && !is_signed && size == 1) {
    type.kind = Hdf5Type::Kind::kNumber;
    type.dtype = DType::kUInt8;
  } else if (kind == 1) {
    for (const auto& [bytes, dtype] : floats)
      if (bytes == size) {
        const int bits = size == 2 ? 10 : size == 4 ? 23 : 52;
        if (mantissa == bits) type.kind = Hdf5Type::Kind::kNumber;
        type.dtype = dtype;
      }
    if (size == 2 && mantissa == 7) {
      type.kind = Hdf5Type::Kind::kNumber;
      type.dtype = DType::kBFloat16;
    }
  } else if (is_signed) {
    for (const auto& [bytes, dtype] : ints)
      if (bytes == size) {
        type.kind = Hdf5Type::Kind::kNumber;
        type.dtype = dtype;
      }
  }
  return type;
}

}  // namespace

ByteReader CursorOver(absl::string_view bytes) {
  return ByteReader({std::shared_ptr<const std::byte>(
                         std::shared_ptr<const std::byte>(),
                         reinterpret_cast<const std::byte*>(bytes.data())),
                     bytes.size()});
}

absl::StatusOr<Shape> ParseDataspace(absl::string_view message) {
  ByteReader in = CursorOver(message);
  PD_ASSIGN_OR_RETURN(const auto version, in.Number<uint8_t>("a dataspace"));
  PD_ASSIGN_OR_RETURN(const auto rank, in.Number<uint8_t>("a dataspace"));
  if (version != 1 && version != 2)
    return Unimplemented("a dataspace of version %d", version);
  PD_RETURN_IF_ERROR(in.Take(version == 1 ? 6 : 1, "a dataspace").status());
  if (version == 2) {
    PD_ASSIGN_OR_RETURN(const auto type, in.Number<uint8_t>("a dataspace"));
    if (type > 1) return Shape{0};
  }
  Shape shape;
  for (int i = 0; i < rank; ++i) {
    PD_ASSIGN_OR_RETURN(const auto extent, in.Number<int64_t>("an extent"));
    shape.push_back(extent);
  }
  return shape;
}

absl::StatusOr<Hdf5Type> ParseDatatype(absl::string_view message) {
  ByteReader in = CursorOver(message);
  PD_ASSIGN_OR_RETURN(const auto head, in.Number<uint32_t>("a datatype"));
  PD_ASSIGN_OR_RETURN(const auto size, in.Number<uint32_t>("a datatype"));
  const int kind = head & 15;
  const uint32_t bits = head >> 8;
  Hdf5Type type;
  type.size = size;
  if (kind == 0 || kind == 1) {
    if ((bits & 1) != 0) return type;  // the highest byte comes first
    int mantissa = 0;
    if (kind == 1) {
      PD_ASSIGN_OR_RETURN(const absl::string_view rest,
                          in.Take(8, "a datatype"));
      mantissa = static_cast<uint8_t>(rest[7]);
    }
    return NumberType(kind, (bits & 8) != 0, size, mantissa);
  }
  if (kind == 3) type.kind = Hdf5Type::Kind::kText;
  if (kind == 9 && (bits & 15) == 1) {
    type.kind = Hdf5Type::Kind::kTextElsewhere;
    if (size != 16) return DataLoss("a string's place takes %d bytes", size);
  }
  return type;
}

}  // namespace pd
