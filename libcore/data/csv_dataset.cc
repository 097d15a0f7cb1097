// SPDX-License-Identifier: Apache-2.0
// Columns of a CSV file as fields, parsed once into arrays.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/csv.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"

namespace pd {
namespace {

// A column's number from its name or its number.
absl::StatusOr<size_t> FindColumn(const CsvFile& csv, const std::string& name) {
  const auto found = std::find(csv.names.begin(), csv.names.end(), name);
  if (found != csv.names.end())
    return static_cast<size_t>(found - csv.names.begin());
  uint64_t number;
  if (absl::SimpleAtoi(name, &number)) {
    if (number < csv.columns) return static_cast<size_t>(number);
    return OutOfRange("'%s': no column %d; expected 0 to %d", csv.path, number,
                      csv.columns - 1);
  }
  const std::string near = Nearest(name, csv.names);
  return NotFound("'%s' has no column '%s'%s", csv.path, name,
                  near.empty() ? "" : ", did you mean '" + near + "'?");
}

// The columns of one entry: a name, a number, or "first:last".
absl::Status AddColumns(const CsvFile& csv, const std::string& entry,
                        std::vector<size_t>* columns) {
  const size_t colon = entry.find(':');
  const bool named =
      std::find(csv.names.begin(), csv.names.end(), entry) != csv.names.end();
  if (named || colon == std::string::npos) {
    PD_ASSIGN_OR_RETURN(const size_t column, FindColumn(csv, entry));
    columns->push_back(column);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const size_t first,
                      FindColumn(csv, entry.substr(0, colon)));
  PD_ASSIGN_OR_RETURN(const size_t last,
                      FindColumn(csv, entry.substr(colon + 1)));
  if (first > last)
    return InvalidArgument("'%s': columns '%s' run backwards", csv.path, entry);
  for (size_t column = first; column <= last; ++column)
    columns->push_back(column);
  return absl::OkStatus();
}

// The columns of each field; "*" takes those that no other field names.
absl::StatusOr<std::vector<std::vector<size_t>>> ResolveColumns(
    const CsvFile& csv, const std::vector<CsvField>& fields) {
  std::vector<std::vector<size_t>> resolved(fields.size());
  std::set<size_t> named;
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const std::string& entry : fields[i].columns) {
      if (entry != "*")
        PD_RETURN_IF_ERROR(AddColumns(csv, entry, &resolved[i]));
    }
    named.insert(resolved[i].begin(), resolved[i].end());
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const std::string& entry : fields[i].columns) {
      for (size_t column = 0; entry == "*" && column < csv.columns; ++column)
        if (named.count(column) == 0) resolved[i].push_back(column);
    }
    if (resolved[i].empty())
      return InvalidArgument("'%s': field '%s' has no columns", csv.path,
                             fields[i].name);
  }
  return resolved;
}

// Of column i: the only number, the i-th, or what holds without any.
double At(const std::vector<double>& values, size_t i, double otherwise) {
  if (values.empty()) return otherwise;
  return values.size() == 1 ? values[0] : values[i];
}

absl::Status CheckScaling(const CsvFile& csv, const CsvField& field,
                          size_t width) {
  for (const std::vector<double>* values : {&field.mean, &field.std}) {
    if (values->size() > 1 && values->size() != width)
      return InvalidArgument(
          "'%s': field '%s' has %d columns and %d numbers to scale them",
          csv.path, field.name, width, values->size());
    if (!values->empty() && !IsFloating(field.dtype))
      return InvalidArgument("'%s': field '%s' is %s; only floats are scaled",
                             csv.path, field.name, Name(field.dtype));
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<Array> Convert(const CsvFile& csv, const CsvNumbers& numbers,
                              const CsvField& field, size_t offset,
                              size_t width) {
  std::byte* bytes = nullptr;
  Array array = NewArray(DTypeOf<T>(),
                         {numbers.rows, static_cast<int64_t>(width)}, &bytes);
  T* out = reinterpret_cast<T*>(bytes);
  const size_t stride =
      numbers.values.size() / static_cast<size_t>(numbers.rows);
  // Whole numbers up to here are exact in a double.
  const double limit = std::min(
      9007199254740992.0, static_cast<double>(std::numeric_limits<T>::max()));
  for (int64_t row = 0; row < numbers.rows; ++row) {
    const double* values = numbers.values.data() + row * stride + offset;
    for (size_t i = 0; i < width; ++i) {
      const double value = values[i];
      if constexpr (std::numeric_limits<T>::is_integer) {
        const int64_t line = numbers.lines[static_cast<size_t>(row)];
        if (!(std::fabs(value) <= limit) || value != std::floor(value)) {
          return DataLoss("'%s':%d: %g in field '%s' is not a whole number",
                          csv.path, line, value, field.name);
        }
        if (field.classes > 0 && (value < 0 || value >= field.classes)) {
          return OutOfRange("'%s':%d: record %d: label is %g; expected 0 to %d",
                            csv.path, line, row, value, field.classes - 1);
        }
      }
      *out++ =
          static_cast<T>((value - At(field.mean, i, 0)) / At(field.std, i, 1));
    }
  }
  return array;
}

absl::StatusOr<Array> ConvertField(const CsvFile& csv,
                                   const CsvNumbers& numbers,
                                   const CsvField& field, size_t offset,
                                   size_t width) {
  switch (field.dtype) {
    case DType::kFloat32:
      return Convert<float>(csv, numbers, field, offset, width);
    case DType::kFloat64:
      return Convert<double>(csv, numbers, field, offset, width);
    case DType::kInt32:
      return Convert<int32_t>(csv, numbers, field, offset, width);
    case DType::kInt64:
      return Convert<int64_t>(csv, numbers, field, offset, width);
    default:
      return Unimplemented(
          "field '%s' is %s; expected float32, float64, int32 or int64",
          field.name, Name(field.dtype));
  }
}

// One field of one column each.
void FieldPerColumn(const CsvFile& csv, std::vector<CsvField>* fields,
                    std::vector<std::vector<size_t>>* columns) {
  fields->resize(csv.columns);
  for (size_t i = 0; i < csv.columns; ++i) {
    (*fields)[i].name =
        csv.names.empty() ? absl::StrCat("column", i) : csv.names[i];
    columns->push_back({i});
  }
}

// The fields of one file.
absl::StatusOr<NamedArrays> LoadCsv(const std::string& path,
                                    const CsvDatasetOptions& options,
                                    std::vector<ArrayField>* order) {
  CsvOptions csv_options;
  csv_options.header = options.header;
  csv_options.delimiter = options.delimiter;
  csv_options.allow_nan = options.allow_nan;
  PD_ASSIGN_OR_RETURN(const CsvFile csv, OpenCsvFile(path, csv_options));
  std::vector<CsvField> fields = options.fields;
  std::vector<std::vector<size_t>> resolved;
  if (fields.empty()) {
    FieldPerColumn(csv, &fields, &resolved);
  } else {
    PD_ASSIGN_OR_RETURN(resolved, ResolveColumns(csv, fields));
  }
  std::vector<size_t> columns;
  for (const auto& part : resolved)
    columns.insert(columns.end(), part.begin(), part.end());
  PD_ASSIGN_OR_RETURN(const CsvNumbers numbers, ReadCsvNumbers(csv, columns));
  NamedArrays arrays;
  order->clear();
  size_t offset = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    PD_RETURN_IF_ERROR(CheckScaling(csv, fields[i], resolved[i].size()));
    PD_ASSIGN_OR_RETURN(Array array, ConvertField(csv, numbers, fields[i],
                                                  offset, resolved[i].size()));
    offset += resolved[i].size();
    if (!arrays.emplace(fields[i].name, std::move(array)).second)
      return AlreadyExists("'%s': two fields are named '%s'", path,
                           fields[i].name);
    order->push_back({fields[i].name, fields[i].name});
  }
  return arrays;
}

// `more` behind `array`; their rows must be of one shape.
absl::StatusOr<Array> Joined(const Array& array, const Array& more,
                             const std::string& name, const std::string& path) {
  if (array.dtype != more.dtype || array.shape[1] != more.shape[1])
    return InvalidArgument(
        "'%s': field '%s' has %d columns; the file before it has %d", path,
        name, more.shape[1], array.shape[1]);
  std::byte* bytes = nullptr;
  Array joined = NewArray(
      array.dtype, {array.shape[0] + more.shape[0], array.shape[1]}, &bytes);
  std::memcpy(bytes, array.bytes.get(), array.size_bytes());
  std::memcpy(bytes + array.size_bytes(), more.bytes.get(), more.size_bytes());
  return joined;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenCsv(const CsvDatasetOptions& options) {
  NamedArrays all;
  ArrayDatasetOptions array_options;
  array_options.path = absl::StrJoin(options.paths, "', '");
  for (const std::string& path : options.paths) {
    PD_ASSIGN_OR_RETURN(NamedArrays arrays,
                        LoadCsv(path, options, &array_options.fields));
    if (all.empty()) {
      all = std::move(arrays);
      continue;
    }
    for (auto& [name, array] : all) {
      const auto more = arrays.find(name);
      if (more == arrays.end())
        return InvalidArgument("'%s' has no column '%s', which '%s' has", path,
                               name, options.paths[0]);
      PD_ASSIGN_OR_RETURN(array, Joined(array, more->second, name, path));
    }
  }
  return MakeArrayDataset(all, array_options);
}

}  // namespace pd
