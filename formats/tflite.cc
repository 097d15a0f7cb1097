// SPDX-License-Identifier: Apache-2.0
#include "formats/tflite.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/byte_reader.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr absl::string_view kIdentifier = "TFL3";
constexpr size_t kMostFields = 32;  // of an operator's options
constexpr uint32_t kMostInList = 64;

// TFLite's numbers of dtypes.
constexpr std::pair<int, DType> kTfliteTypes[] = {
    {0, DType::kFloat32},  {1, DType::kFloat16}, {2, DType::kInt32},
    {3, DType::kUInt8},    {4, DType::kInt64},   {6, DType::kBool},
    {7, DType::kInt16},    {9, DType::kInt8},    {10, DType::kFloat64},
    {18, DType::kBFloat16}};

// A table: where its fields lie. A field that is not there has place 0.
struct FlatTable {
  size_t at = 0;      // of the table
  size_t fields = 0;  // of the list of their places
  size_t count = 0;
  size_t size = 0;  // of the table
};

struct FlatVector {
  size_t at = 0;  // of the first element
  uint32_t count = 0;
};

// A cursor over FlatBuffers. Whatever offsets the file has, no more is read
// than some times its size.
class FlatReader {
 public:
  explicit FlatReader(absl::string_view file)
      : file_(file), left_(8 * uint64_t{file.size()} + 1024) {}

  absl::StatusOr<absl::string_view> At(uint64_t at, uint64_t size) {
    if (at > file_.size() || size > file_.size() - at)
      return DataLoss("byte %d: %d bytes are wanted; the file has %d", at, size,
                      file_.size());
    PD_RETURN_IF_ERROR(Spend(size));
    return file_.substr(at, size);
  }
  absl::Status Spend(uint64_t size) {
    if (size > left_) return DataLoss("its parts lie in each other");
    left_ -= size;
    return absl::OkStatus();
  }

  template <typename T>
  absl::StatusOr<T> Number(uint64_t at) {
    PD_ASSIGN_OR_RETURN(const absl::string_view bytes, At(at, sizeof(T)));
    return NumberAt<T>(bytes, 0);
  }

  // The place that the offset at `at` leads to.
  absl::StatusOr<size_t> Follow(size_t at) {
    PD_ASSIGN_OR_RETURN(const auto offset, Number<uint32_t>(at));
    return at + offset;
  }

  absl::StatusOr<FlatTable> Table(size_t at) {
    FlatTable table;
    table.at = at;
    PD_ASSIGN_OR_RETURN(const auto back, Number<int32_t>(at));
    const int64_t fields = static_cast<int64_t>(at) - back;
    if (fields < 0) return DataLoss("byte %d: a table without fields", at);
    table.fields = static_cast<size_t>(fields) + 4;
    PD_ASSIGN_OR_RETURN(const auto size, Number<uint16_t>(table.fields - 4));
    PD_ASSIGN_OR_RETURN(table.size, Number<uint16_t>(table.fields - 2));
    table.count = size < 4 ? 0 : (size - 4u) / 2;
    return table;
  }

  // Where field `i` lies; 0: it is not there.
  absl::StatusOr<size_t> Place(const FlatTable& table, size_t i) {
    if (i >= table.count) return 0;
    PD_ASSIGN_OR_RETURN(const auto place,
                        Number<uint16_t>(table.fields + 2 * i));
    return place == 0 ? 0 : table.at + place;
  }

  template <typename T>
  absl::StatusOr<T> Scalar(const FlatTable& table, size_t i, T otherwise) {
    PD_ASSIGN_OR_RETURN(const size_t place, Place(table, i));
    if (place == 0) return otherwise;
    return Number<T>(place);
  }

  absl::StatusOr<FlatVector> Vector(const FlatTable& table, size_t i,
                                    size_t element) {
    PD_ASSIGN_OR_RETURN(const size_t place, Place(table, i));
    if (place == 0) return FlatVector();
    PD_ASSIGN_OR_RETURN(const size_t at, Follow(place));
    FlatVector vector;
    PD_ASSIGN_OR_RETURN(vector.count, Number<uint32_t>(at));
    vector.at = at + 4;
    PD_RETURN_IF_ERROR(
        At(vector.at, uint64_t{vector.count} * element).status());
    return vector;
  }

  template <typename T>
  absl::StatusOr<std::vector<T>> Numbers(const FlatTable& table, size_t i) {
    PD_ASSIGN_OR_RETURN(const FlatVector vector, Vector(table, i, sizeof(T)));
    std::vector<T> numbers(vector.count);
    if (vector.count > 0)
      std::memcpy(numbers.data(), file_.data() + vector.at,
                  vector.count * sizeof(T));
    return numbers;
  }

  absl::StatusOr<std::string> Text(const FlatTable& table, size_t i) {
    PD_ASSIGN_OR_RETURN(const FlatVector vector, Vector(table, i, 1));
    return std::string(file_.substr(vector.at, vector.count));
  }

  // Table `k` of a list of tables.
  absl::StatusOr<FlatTable> TableOf(const FlatVector& tables, size_t k) {
    PD_ASSIGN_OR_RETURN(const size_t at, Follow(tables.at + 4 * k));
    return Table(at);
  }

 private:
  absl::string_view file_;
  uint64_t left_;
};

class TfliteReader {
 public:
  explicit TfliteReader(const FileBytes& file) : in_(file.view()) {}

  absl::StatusOr<TfliteFile> Read() {
    PD_ASSIGN_OR_RETURN(const size_t root, in_.Follow(0));
    PD_ASSIGN_OR_RETURN(model_, in_.Table(root));
    PD_ASSIGN_OR_RETURN(buffers_, in_.Vector(model_, 4, 4));
    PD_RETURN_IF_ERROR(ReadCodes());
    PD_ASSIGN_OR_RETURN(const FlatVector graphs, in_.Vector(model_, 2, 4));
    if (graphs.count == 0) return DataLoss("the file has no graph");
    PD_RETURN_IF_ERROR(ReadGraph(graphs, 0));
    static_cast<TfliteGraph&>(out_) = std::move(graph_);
    for (size_t i = 1; i < graphs.count; ++i) {
      PD_RETURN_IF_ERROR(
          Annotate(ReadGraph(graphs, i), absl::StrCat("graph ", i)));
      out_.others.push_back(std::move(graph_));
    }
    return std::move(out_);
  }

 private:
  // Graph `k` into `graph_`.
  absl::Status ReadGraph(const FlatVector& graphs, size_t k) {
    graph_ = TfliteGraph();
    PD_ASSIGN_OR_RETURN(const FlatTable graph, in_.TableOf(graphs, k));
    PD_ASSIGN_OR_RETURN(const FlatVector tensors, in_.Vector(graph, 0, 4));
    for (size_t i = 0; i < tensors.count; ++i) {
      PD_ASSIGN_OR_RETURN(const FlatTable table, in_.TableOf(tensors, i));
      TfliteTensor tensor;
      PD_RETURN_IF_ERROR(
          Annotate(ReadTensor(table, &tensor), absl::StrCat("tensor ", i)));
      graph_.tensors.push_back(std::move(tensor));
    }
    PD_ASSIGN_OR_RETURN(graph_.inputs, Indices(graph, 1, false));
    PD_ASSIGN_OR_RETURN(graph_.outputs, Indices(graph, 2, false));
    PD_ASSIGN_OR_RETURN(const FlatVector operators, in_.Vector(graph, 3, 4));
    for (size_t i = 0; i < operators.count; ++i) {
      PD_ASSIGN_OR_RETURN(const FlatTable table, in_.TableOf(operators, i));
      PD_RETURN_IF_ERROR(
          Annotate(ReadOperator(table), absl::StrCat("operator ", i)));
    }
    return absl::OkStatus();
  }

  // The codes of operators, which operators name by their places.
  absl::Status ReadCodes() {
    PD_ASSIGN_OR_RETURN(const FlatVector codes, in_.Vector(model_, 1, 4));
    for (size_t i = 0; i < codes.count; ++i) {
      PD_ASSIGN_OR_RETURN(const FlatTable table, in_.TableOf(codes, i));
      TfliteOperator code;
      // The first field held numbers up to 127 before there were more.
      PD_ASSIGN_OR_RETURN(const int8_t old, in_.Scalar<int8_t>(table, 0, 0));
      PD_ASSIGN_OR_RETURN(code.code, in_.Scalar<int32_t>(table, 3, 0));
      code.code = std::max<int>(code.code, old);
      PD_ASSIGN_OR_RETURN(code.custom, in_.Text(table, 1));
      codes_.push_back(std::move(code));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int32_t>> Indices(const FlatTable& table, size_t i,
                                               bool optional) {
    PD_ASSIGN_OR_RETURN(std::vector<int32_t> tensors,
                        in_.Numbers<int32_t>(table, i));
    for (const int32_t tensor : tensors)
      if (tensor < (optional ? -1 : 0) ||
          tensor >= static_cast<int64_t>(graph_.tensors.size()))
        return DataLoss("tensor %d of %d", tensor, graph_.tensors.size());
    return tensors;
  }

  absl::Status ReadTensor(const FlatTable& table, TfliteTensor* out) {
    PD_ASSIGN_OR_RETURN(out->name, in_.Text(table, 3));
    PD_ASSIGN_OR_RETURN(const auto shape, in_.Numbers<int32_t>(table, 0));
    PD_ASSIGN_OR_RETURN(const auto open, in_.Numbers<int32_t>(table, 7));
    const bool opens = open.size() == shape.size();
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0 || (opens && open[i] < -1))
        return DataLoss("an extent of %d", shape[i]);
      out->shape.push_back(opens ? open[i] : shape[i]);
    }
    PD_ASSIGN_OR_RETURN(out->type, in_.Scalar<int8_t>(table, 1, 0));
    for (const auto& [type, dtype] : kTfliteTypes)
      if (type == out->type) out->dtype = dtype;
    PD_RETURN_IF_ERROR(ReadQuantization(table, out));
    PD_ASSIGN_OR_RETURN(const auto buffer, in_.Scalar<uint32_t>(table, 2, 0));
    PD_ASSIGN_OR_RETURN(const size_t sparsity, in_.Place(table, 6));
    // Buffer 0 is empty by convention.
    if (buffer == 0 || !out->dtype.has_value()) return absl::OkStatus();
    if (buffer >= buffers_.count)
      return DataLoss("buffer %d of %d", buffer, buffers_.count);
    PD_ASSIGN_OR_RETURN(const absl::string_view data, Buffer(buffer));
    if (data.empty()) return absl::OkStatus();
    if (sparsity != 0) return Unimplemented("a sparse constant");
    if (IsDynamic(out->shape)) return DataLoss("a constant without a shape");
    PD_ASSIGN_OR_RETURN(const int64_t bytes,
                        CheckedBytes(out->shape, SizeOf(*out->dtype)));
    if (static_cast<uint64_t>(bytes) != data.size())
      return DataLoss("shape %s takes %d bytes; its buffer has %d",
                      ToString(out->shape), bytes, data.size());
    std::byte* to = nullptr;
    PD_ASSIGN_OR_RETURN(out->constant, NewArray(*out->dtype, out->shape, &to));
    std::memcpy(to, data.data(), data.size());
    return absl::OkStatus();
  }

  // Large files keep the bytes behind the tables.
  absl::StatusOr<absl::string_view> Buffer(uint32_t i) {
    PD_ASSIGN_OR_RETURN(const FlatTable table, in_.TableOf(buffers_, i));
    PD_ASSIGN_OR_RETURN(const FlatVector data, in_.Vector(table, 0, 1));
    if (data.count > 0) return in_.At(data.at, data.count);
    PD_ASSIGN_OR_RETURN(const auto at, in_.Scalar<uint64_t>(table, 1, 0));
    PD_ASSIGN_OR_RETURN(const auto size, in_.Scalar<uint64_t>(table, 2, 0));
    return in_.At(at > 1 ? at : 0, at > 1 ? size : 0);
  }

  absl::Status ReadQuantization(const FlatTable& tensor, TfliteTensor* out) {
    PD_ASSIGN_OR_RETURN(const size_t place, in_.Place(tensor, 4));
    if (place == 0) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const size_t at, in_.Follow(place));
    PD_ASSIGN_OR_RETURN(const FlatTable table, in_.Table(at));
    PD_ASSIGN_OR_RETURN(out->scales, in_.Numbers<float>(table, 2));
    PD_ASSIGN_OR_RETURN(out->zero_points, in_.Numbers<int64_t>(table, 3));
    PD_ASSIGN_OR_RETURN(out->axis, in_.Scalar<int32_t>(table, 6, 0));
    const size_t count = out->scales.size();
    const bool along = count > 1;
    if (out->zero_points.empty()) out->zero_points.assign(count, 0);
    for (const int64_t point : out->zero_points)
      if (point < INT32_MIN || point > INT32_MAX)
        return DataLoss("a zero point of %d", point);
    if (out->zero_points.size() != count ||
        (along && (out->axis < 0 ||
                   out->axis >= static_cast<int64_t>(out->shape.size()) ||
                   out->shape[static_cast<size_t>(out->axis)] !=
                       static_cast<int64_t>(count))))
      return DataLoss("%d scales and %d zero points of axis %d of shape %s",
                      count, out->zero_points.size(), out->axis,
                      ToString(out->shape));
    return absl::OkStatus();
  }

  absl::Status ReadOperator(const FlatTable& table) {
    PD_ASSIGN_OR_RETURN(const auto code, in_.Scalar<uint32_t>(table, 0, 0));
    if (code >= codes_.size())
      return DataLoss("code %d of %d", code, codes_.size());
    TfliteOperator out = codes_[code];
    PD_RETURN_IF_ERROR(in_.Spend(out.custom.size()));
    PD_ASSIGN_OR_RETURN(out.inputs, Indices(table, 1, true));
    PD_ASSIGN_OR_RETURN(out.outputs, Indices(table, 2, false));
    PD_ASSIGN_OR_RETURN(const size_t place, in_.Place(table, 4));
    if (place != 0) {
      PD_ASSIGN_OR_RETURN(const size_t at, in_.Follow(place));
      PD_ASSIGN_OR_RETURN(const FlatTable options, in_.Table(at));
      for (size_t i = 0; i < std::min(options.count, kMostFields); ++i) {
        PD_ASSIGN_OR_RETURN(const size_t field, in_.Place(options, i));
        out.options.push_back(FieldAt(field));
      }
    }
    graph_.operators.push_back(std::move(out));
    return absl::OkStatus();
  }

  // The types of fields stand nowhere in the file: a field is read in every
  // form that there is room for.
  TfliteField FieldAt(size_t at) {
    TfliteField field;
    if (at == 0) return field;
    const auto byte = in_.Number<int8_t>(at);
    field.is_set = byte.ok();
    field.byte = byte.ok() ? *byte : 0;
    const auto word = in_.Number<int32_t>(at);
    if (!word.ok()) return field;
    field.word = *word;
    const auto list = in_.Follow(at);
    if (!list.ok()) return field;
    const auto count = in_.Number<uint32_t>(*list);
    if (!count.ok() || *count > kMostInList) return field;
    for (uint32_t i = 0; i < *count; ++i) {
      const auto number = in_.Number<int32_t>(*list + 4 + 4 * uint64_t{i});
      if (!number.ok()) {
        field.list.clear();
        return field;
      }
      field.list.push_back(*number);
    }
    return field;
  }

  FlatReader in_;
  FlatTable model_;
  FlatVector buffers_;
  std::vector<TfliteOperator> codes_;
  TfliteGraph graph_;  // the one that is read
  TfliteFile out_;
};

}  // namespace

bool IsTflite(absl::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == kIdentifier;
}

absl::StatusOr<TfliteFile> ParseTflite(const FileBytes& file) {
  if (!IsTflite(file.view())) return DataLoss("it does not begin as 'TFL3'");
  return TfliteReader(file).Read();
}

}  // namespace pd
