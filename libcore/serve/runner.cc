// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/runner.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace serve {
namespace {

using inference::Variable;

std::vector<int> Extents(const Shape& shape) {
  return std::vector<int>(shape.begin(), shape.end());
}

absl::StatusOr<const std::byte*> ValueOf(const Variable& output) {
  PD_ASSIGN_OR_RETURN(const void* value, output.Value(output.dtype()));
  return static_cast<const std::byte*>(value);
}

// Rows [begin, begin + rows) of an output; all of it where `rows` is -1.
absl::StatusOr<Array> Part(const Variable& output, int64_t begin,
                           int64_t rows) {
  PD_ASSIGN_OR_RETURN(const std::byte* value, ValueOf(output));
  Shape shape = output.shape();
  if (rows >= 0) shape[0] = rows;
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array part, NewArray(output.dtype(), shape, &bytes));
  const int64_t row_bytes =
      rows > 0 ? static_cast<int64_t>(part.size_bytes()) / rows : 0;
  if (part.size_bytes() > 0)
    std::memcpy(bytes, value + begin * row_bytes, part.size_bytes());
  if (rows < 0) part.lod = output.lod();
  return part;
}

}  // namespace

std::string JoinKey(const NamedArrays& inputs) {
  std::string key;
  int64_t rows = -1;
  for (const auto& [name, array] : inputs) {
    if (array.shape.empty() || !array.lod.empty()) return "";
    if (rows >= 0 && array.shape[0] != rows) return "";
    rows = array.shape[0];
    absl::StrAppend(
        &key, key.empty() ? "" : ", ", "'", name, "' ", Name(array.dtype),
        "[n]", ToString(Shape(array.shape.begin() + 1, array.shape.end())));
  }
  return key;
}

int64_t Rows(const NamedArrays& inputs) {
  return inputs.empty() ? 0 : inputs.begin()->second.shape[0];
}

absl::StatusOr<Outputs> Runner::Run(const NamedArrays& inputs) {
  return Guarded([&]() -> absl::StatusOr<Outputs> {
    for (const auto& [name, array] : inputs) {
      PD_ASSIGN_OR_RETURN(const auto variable, engine_.Input(name));
      PD_RETURN_IF_ERROR(variable->Share(array.bytes.get(), array.dtype,
                                         Extents(array.shape)));
      PD_RETURN_IF_ERROR(variable->SetLoD(array.lod));
    }
    PD_RETURN_IF_ERROR(engine_.Run());
    Outputs outputs;
    for (const auto& output : engine_.outputs()) {
      PD_ASSIGN_OR_RETURN(Array array, Part(*output, 0, -1));
      outputs.push_back(std::move(array));
    }
    return outputs;
  });
}

absl::StatusOr<std::vector<Outputs>> Runner::RunJoined(
    const std::vector<const NamedArrays*>& requests) {
  return Guarded([&]() -> absl::StatusOr<std::vector<Outputs>> {
    int64_t rows = 0;
    for (const NamedArrays* request : requests)
      rows += pd::serve::Rows(*request);
    for (const auto& [name, first] : *requests[0]) {
      PD_ASSIGN_OR_RETURN(const auto variable, engine_.Input(name));
      Shape shape = first.shape;
      shape[0] = rows;
      PD_RETURN_IF_ERROR(variable->SetLoD({}));
      PD_RETURN_IF_ERROR(variable->Reshape(Extents(shape)));
      PD_ASSIGN_OR_RETURN(void* memory, variable->Mutable(first.dtype));
      auto* to = static_cast<std::byte*>(memory);
      for (const NamedArrays* request : requests) {
        const Array& array = request->at(name);
        std::memcpy(to, array.bytes.get(), array.size_bytes());
        to += array.size_bytes();
      }
    }
    PD_RETURN_IF_ERROR(engine_.Run());
    for (const auto& output : engine_.outputs())
      if (output->shape().empty() || output->shape()[0] != rows ||
          !output->lod().empty())
        return FailedPrecondition(
            "output '%s' has the shape %s for %d rows of inputs",
            output->name(), ToString(output->shape()), rows);
    std::vector<Outputs> answers(requests.size());
    int64_t begin = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      const int64_t own = pd::serve::Rows(*requests[i]);
      for (const auto& output : engine_.outputs()) {
        PD_ASSIGN_OR_RETURN(Array part, Part(*output, begin, own));
        answers[i].push_back(std::move(part));
      }
      begin += own;
    }
    return answers;
  });
}

}  // namespace serve
}  // namespace pd
