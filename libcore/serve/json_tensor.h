// SPDX-License-Identifier: Apache-2.0
// Tensors as JSON. Numbers are checked: none is cut to fit its type.
#ifndef PD_LIBCORE_SERVE_JSON_TENSOR_H_
#define PD_LIBCORE_SERVE_JSON_TENSOR_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"

namespace pd {
namespace serve {

/// InvalidArgument says where the text stops to be JSON; more than 32 levels
/// are refused.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text);

/// The numbers of `data`, a flat list or lists in lists that have the shape.
/// `where` begins messages: "input 'x'".
absl::StatusOr<Array> ArrayOfJson(const nlohmann::json& data, DType dtype,
                                  const Shape& shape, const std::string& where);

/// The shape of lists in lists; InvalidArgument where they differ in length.
absl::StatusOr<Shape> ShapeOfJson(const nlohmann::json& data,
                                  const std::string& where);

/// The parameter "lod" of an input: lengths of its sequences, by level.
absl::Status ReadLoD(const nlohmann::json& levels, const std::string& where,
                     Array* to);
nlohmann::json LengthsOf(const LoD& lod);

/// Appends the elements as one list, or as lists in lists. InvalidArgument for
/// NaN and infinite numbers.
absl::Status AppendFlat(const Array& array, const std::string& where,
                        std::string* text);
absl::Status AppendNested(const Array& array, const std::string& where,
                          std::string* text);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_JSON_TENSOR_H_
