// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/signature.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace serve {
namespace {

constexpr std::pair<DType, absl::string_view> kDatatypes[] = {
    {DType::kBool, "BOOL"},    {DType::kUInt8, "UINT8"},
    {DType::kInt8, "INT8"},    {DType::kInt16, "INT16"},
    {DType::kInt32, "INT32"},  {DType::kInt64, "INT64"},
    {DType::kFloat16, "FP16"}, {DType::kBFloat16, "BF16"},
    {DType::kFloat32, "FP32"}, {DType::kFloat64, "FP64"}};

absl::StatusOr<TensorInfo> InfoOf(const inference::SharedModel& model,
                                  const std::string& name) {
  TensorInfo info;
  info.name = name;
  const VarDesc* var = model.Declared(name);
  if (var == nullptr)
    return Unimplemented("the program does not declare '%s'", name);
  if (var->kind != VarKind::kLodTensor || DatatypeName(var->dtype).empty())
    return Unimplemented(
        "'%s' is of a kind or type (%s) that the protocol has no word for",
        name, Name(var->dtype));
  info.dtype = var->dtype;
  info.sequences = var->lod_level > 0;
  for (const int64_t extent : var->shape)
    info.shape.push_back(extent < 0 ? -1 : extent);
  return info;
}

std::string WhyAlone(const Signature& signature) {
  for (const auto* list : {&signature.inputs, &signature.outputs})
    for (const TensorInfo& info : *list) {
      if (info.sequences)
        return absl::StrCat("'", info.name, "' holds sequences");
      if (info.shape.empty() || info.shape[0] != -1)
        return absl::StrCat("'", info.name, "' has the shape ",
                            ToString(info.shape),
                            ", whose first extent is not open");
    }
  return "";
}

const TensorInfo* Find(const std::vector<TensorInfo>& list,
                       const std::string& name) {
  for (const TensorInfo& info : list)
    if (info.name == name) return &info;
  return nullptr;
}

}  // namespace

const TensorInfo* Signature::Input(const std::string& name) const {
  return Find(inputs, name);
}
const TensorInfo* Signature::Output(const std::string& name) const {
  return Find(outputs, name);
}

absl::StatusOr<Signature> SignatureOf(const inference::SharedModel& model) {
  Signature signature;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    PD_ASSIGN_OR_RETURN(TensorInfo info, InfoOf(model, model.inputs()[i]));
    info.needed = model.needs(i);
    signature.inputs.push_back(std::move(info));
  }
  for (const std::string& name : model.outputs()) {
    PD_ASSIGN_OR_RETURN(TensorInfo info, InfoOf(model, name));
    signature.outputs.push_back(std::move(info));
  }
  signature.why_alone = WhyAlone(signature);
  return signature;
}

absl::string_view DatatypeName(DType dtype) {
  for (const auto& [known, name] : kDatatypes)
    if (known == dtype) return name;
  return "";
}

std::optional<DType> DatatypeFromName(absl::string_view name) {
  for (const auto& [dtype, known] : kDatatypes)
    if (known == name) return dtype;
  return std::nullopt;
}

absl::Status CheckInput(const TensorInfo& info, DType dtype,
                        const Shape& shape) {
  if (dtype != info.dtype)
    return InvalidArgument("input '%s' has the datatype %s; the model takes %s",
                           info.name, DatatypeName(dtype),
                           DatatypeName(info.dtype));
  bool fits = shape.size() == info.shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = info.shape[i] < 0 || info.shape[i] == shape[i];
  if (!fits)
    return InvalidArgument(
        "input '%s' has the shape %s; the model takes %s (-1: any extent)",
        info.name, ToString(shape), ToString(info.shape));
  for (const int64_t extent : shape)
    if (extent < 1 || extent > std::numeric_limits<int>::max())
      return InvalidArgument(
          "input '%s' has the shape %s; extents are from 1 to %d", info.name,
          ToString(shape), std::numeric_limits<int>::max());
  return absl::OkStatus();
}

absl::Status CheckComplete(const Signature& signature,
                           const NamedArrays& inputs) {
  for (const TensorInfo& info : signature.inputs)
    if (info.needed && inputs.count(info.name) == 0)
      return InvalidArgument("input '%s' (%s%s) is missing", info.name,
                             DatatypeName(info.dtype), ToString(info.shape));
  return absl::OkStatus();
}

absl::Status NoSuchTensor(const char* kind, const std::string& name,
                          const std::vector<TensorInfo>& list) {
  std::vector<std::string> names;
  for (const TensorInfo& info : list) names.push_back(info.name);
  const std::string nearest = Nearest(name, names);
  return InvalidArgument(
      "the model has no %s '%s'%s", kind, Printable(name),
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

}  // namespace serve
}  // namespace pd
