// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "formats/framework.pb.h"
#include "formats/raw_array.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace pb = ::paddle::framework::proto;

absl::Status CheckVersion(ByteReader* in, const char* what) {
  const size_t at = in->offset();
  PD_ASSIGN_OR_RETURN(const auto version, in->Number<uint32_t>(what));
  if (version != 0)
    return Unimplemented("byte %d: %s is %d; expected 0", at, what, version);
  return absl::OkStatus();
}

absl::StatusOr<LoD> TakeLoD(ByteReader* in) {
  PD_ASSIGN_OR_RETURN(const auto levels,
                      in->Number<uint64_t>("the count of LoD levels"));
  if (levels > in->left() / sizeof(uint64_t))
    return DataLoss("byte %d: %d LoD levels do not fit in the %d bytes left",
                    in->offset(), levels, in->left());
  LoD lod;
  for (uint64_t i = 0; i < levels; ++i) {
    PD_ASSIGN_OR_RETURN(const auto size,
                        in->Number<uint64_t>("the size of a LoD level"));
    PD_ASSIGN_OR_RETURN(const auto bytes, in->Take(size, "a LoD level"));
    if (size % sizeof(uint64_t) != 0)
      return DataLoss(
          "byte %d: LoD level %d has %d bytes; expected offsets "
          "of 8",
          in->offset() - size, i, size);
    lod.emplace_back(size / sizeof(uint64_t));
    if (size > 0) std::memcpy(lod.back().data(), bytes.data(), size);
  }
  return lod;
}

// The part that a tensor and a SelectedRows share.
absl::StatusOr<Array> TakeValue(ByteReader* in, Alignment alignment) {
  PD_RETURN_IF_ERROR(CheckVersion(in, "the tensor's version"));
  PD_ASSIGN_OR_RETURN(const auto size,
                      in->Number<int32_t>("the description's size"));
  if (size < 0)
    return DataLoss("byte %d: the description's size is %d; expected 0 or more",
                    in->offset() - sizeof(size), size);
  PD_ASSIGN_OR_RETURN(const auto bytes,
                      in->Take(static_cast<uint64_t>(size), "the description"));
  pb::VarType::TensorDesc desc;
  if (!desc.ParsePartialFromArray(bytes.data(), size) || !desc.IsInitialized())
    return DataLoss("byte %d: not the description of a tensor",
                    in->offset() - bytes.size());
  const auto dtype = DTypeFromCode(desc.data_type());
  if (!dtype.has_value())
    return Unimplemented(
        "byte %d: the element type is %s; expected a number or bool",
        in->offset() - bytes.size(), pb::VarType::Type_Name(desc.data_type()));
  RawLayout layout;
  layout.dtype = *dtype;
  layout.alignment = alignment;
  const size_t at = in->offset();
  auto array = ArrayFromRaw(in->here(), in->left(), layout,
                            Shape(desc.dims().begin(), desc.dims().end()));
  if (!array.ok()) return Annotate(array.status(), absl::StrCat("byte ", at));
  PD_RETURN_IF_ERROR(in->Take(array->size_bytes(), "the data").status());
  return array;
}

absl::StatusOr<Array> TakeTensor(ByteReader* in, Alignment alignment) {
  PD_RETURN_IF_ERROR(CheckVersion(in, "the stream's version"));
  PD_ASSIGN_OR_RETURN(LoD lod, TakeLoD(in));
  PD_ASSIGN_OR_RETURN(Array array, TakeValue(in, alignment));
  if (!lod.empty() && array.shape.empty())
    return InvalidArgument("a scalar has LoD levels");
  if (!lod.empty()) PD_RETURN_IF_ERROR(CheckLoD(lod, array.shape[0]));
  array.lod = std::move(lod);
  return array;
}

absl::Status ExpectEnd(const ByteReader& in) {
  if (in.left() > 0)
    return DataLoss("byte %d: %d bytes follow; expected the end", in.offset(),
                    in.left());
  return absl::OkStatus();
}

template <typename T>
void AppendNumber(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendDescription(const Array& array, std::string* out) {
  pb::VarType::TensorDesc desc;
  desc.set_data_type(static_cast<pb::VarType::Type>(array.dtype));
  desc.mutable_dims()->Add(array.shape.begin(), array.shape.end());
  AppendNumber<uint32_t>(0, out);
  const std::string bytes = desc.SerializeAsString();
  AppendNumber(static_cast<int32_t>(bytes.size()), out);
  out->append(bytes);
}

absl::Status AppendTensor(const Array& array, AtomicFile* file) {
  std::string head;
  AppendNumber<uint32_t>(0, &head);
  AppendNumber<uint64_t>(array.lod.size(), &head);
  for (const auto& level : array.lod) {
    AppendNumber<uint64_t>(level.size() * sizeof(uint64_t), &head);
    for (const uint64_t offset : level) AppendNumber(offset, &head);
  }
  AppendDescription(array, &head);
  PD_RETURN_IF_ERROR(file->Append(head));
  return file->Append({array.data<char>(), array.size_bytes()});
}

// `parse` on a file's bytes, with its path before any message.
template <typename Parse>
auto OnFile(const std::string& path, const Parse& parse)
    -> decltype(parse(FileBytes())) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto result = parse(file);
  if (!result.ok())
    return Annotate(result.status(), absl::StrCat("'", path, "'"));
  return result;
}

}  // namespace

absl::Status CheckLoD(const LoD& lod, int64_t rows) {
  for (size_t i = 0; i < lod.size(); ++i) {
    const auto& level = lod[i];
    if (level.empty() || level.front() != 0)
      return InvalidArgument("LoD level %d does not start at 0", i);
    for (size_t k = 1; k < level.size(); ++k)
      if (level[k] < level[k - 1])
        return InvalidArgument("LoD level %d falls from %d to %d", i,
                               level[k - 1], level[k]);
    const uint64_t end = i + 1 < lod.size() ? lod[i + 1].size() - 1
                                            : static_cast<uint64_t>(rows);
    if (level.back() != end)
      return InvalidArgument("LoD level %d ends at %d; %d rows are below it", i,
                             level.back(), end);
  }
  return absl::OkStatus();
}

absl::StatusOr<Array> ParseTensor(const FileBytes& file, Alignment alignment) {
  ByteReader in(file);
  PD_ASSIGN_OR_RETURN(Array array, TakeTensor(&in, alignment));
  PD_RETURN_IF_ERROR(ExpectEnd(in));
  return array;
}

absl::StatusOr<std::vector<Array>> ParseTensorList(const FileBytes& file,
                                                   Alignment alignment) {
  ByteReader in(file);
  std::vector<Array> arrays;
  while (in.left() > 0) {
    auto array = TakeTensor(&in, alignment);
    if (!array.ok())
      return Annotate(array.status(),
                      absl::StrCat("tensor number ", arrays.size()));
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

absl::StatusOr<NamedArrays> ParseTensors(const FileBytes& file,
                                         const std::vector<std::string>& names,
                                         Alignment alignment) {
  ByteReader in(file);
  NamedArrays arrays;
  for (const std::string& name : names) {
    if (in.left() == 0)
      return DataLoss(
          "it holds %d tensors; the names are %d, '%s' the first "
          "without one",
          arrays.size(), names.size(), name);
    auto array = TakeTensor(&in, alignment);
    if (!array.ok())
      return Annotate(array.status(), absl::StrCat("tensor '", name, "'"));
    if (!arrays.emplace(name, *std::move(array)).second)
      return InvalidArgument("the name '%s' is given twice", name);
  }
  PD_RETURN_IF_ERROR(ExpectEnd(in));
  return arrays;
}

absl::StatusOr<SelectedRowsArray> ParseSelectedRows(const FileBytes& file,
                                                    Alignment alignment) {
  ByteReader in(file);
  PD_RETURN_IF_ERROR(CheckVersion(&in, "the version of SelectedRows"));
  PD_ASSIGN_OR_RETURN(const auto count,
                      in.Number<uint64_t>("the count of rows"));
  if (count > in.left() / sizeof(int64_t))
    return DataLoss("byte %d: %d rows do not fit in the %d bytes left",
                    in.offset(), count, in.left());
  SelectedRowsArray out;
  PD_ASSIGN_OR_RETURN(const auto rows,
                      in.Take(count * sizeof(int64_t), "the rows"));
  out.rows.resize(count);
  if (count > 0) std::memcpy(out.rows.data(), rows.data(), rows.size());
  PD_ASSIGN_OR_RETURN(out.height, in.Number<int64_t>("the height"));
  PD_ASSIGN_OR_RETURN(out.value, TakeValue(&in, alignment));
  PD_RETURN_IF_ERROR(ExpectEnd(in));
  for (const int64_t row : out.rows)
    if (row < 0 || row >= out.height)
      return InvalidArgument("row %d is outside the height %d", row,
                             out.height);
  if (out.value.shape.empty() ||
      static_cast<uint64_t>(out.value.shape[0]) != count)
    return InvalidArgument("it names %d rows; its value has shape %s", count,
                           ToString(out.value.shape));
  return out;
}

absl::StatusOr<Array> ReadTensor(const std::string& path) {
  return OnFile(path, [](const FileBytes& file) { return ParseTensor(file); });
}

absl::StatusOr<NamedArrays> ReadTensors(const std::string& path,
                                        const std::vector<std::string>& names) {
  return OnFile(path, [&names](const FileBytes& file) {
    return ParseTensors(file, names);
  });
}

absl::StatusOr<SelectedRowsArray> ReadSelectedRows(const std::string& path) {
  return OnFile(path,
                [](const FileBytes& file) { return ParseSelectedRows(file); });
}

absl::Status WriteTensor(const std::string& path, const Array& array) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  PD_RETURN_IF_ERROR(AppendTensor(array, file.get()));
  return file->Commit();
}

absl::Status WriteTensors(const std::string& path, const NamedArrays& arrays) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  for (const auto& [name, array] : arrays)
    PD_RETURN_IF_ERROR(AppendTensor(array, file.get()));
  return file->Commit();
}

absl::Status WriteSelectedRows(const std::string& path,
                               const SelectedRowsArray& rows) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  std::string head;
  AppendNumber<uint32_t>(0, &head);
  AppendNumber<uint64_t>(rows.rows.size(), &head);
  for (const int64_t row : rows.rows) AppendNumber(row, &head);
  AppendNumber<int64_t>(rows.height, &head);
  AppendDescription(rows.value, &head);
  PD_RETURN_IF_ERROR(file->Append(head));
  PD_RETURN_IF_ERROR(
      file->Append({rows.value.data<char>(), rows.value.size_bytes()}));
  return file->Commit();
}

namespace {

// Where the description of a tensor stands at `at`: version 0, a small size
// and a message that starts with field 1, a varint.
bool HasDescription(absl::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < 10) return false;
  const auto size = NumberAt<int32_t>(bytes, at + 4);
  return NumberAt<uint32_t>(bytes, at) == 0 && size >= 2 && size < 4096 &&
         bytes[at + 8] == 0x08;
}

}  // namespace

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

}  // namespace pd
