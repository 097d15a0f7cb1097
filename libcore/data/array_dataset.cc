// SPDX-License-Identifier: Apache-2.0
// Datasets of arrays in memory, as .npz files hold them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"

namespace pd {
namespace {

class ArrayDataset : public Dataset {
 public:
  explicit ArrayDataset(std::string path) : path_(std::move(path)) {}

  absl::Status Add(const std::string& name, const Array& array) {
    if (array.shape.empty())
      return InvalidArgument("'%s': array '%s' is a scalar; expected records",
                             path_, name);
    if (!arrays_.empty() && array.shape[0] != size_) {
      return FailedPrecondition(
          "'%s': array '%s' holds %d records; array '%s' holds %d", path_, name,
          array.shape[0], fields_[0].name, size_);
    }
    size_ = array.shape[0];
    FieldSpec field;
    field.name = name;
    field.dtype = array.dtype;
    field.shape.assign(array.shape.begin() + 1, array.shape.end());
    if (field.dtype == DType::kUInt8 && field.shape.size() == 2)
      field.shape.push_back(1);  // grey images without a channel axis
    field.is_image = field.dtype == DType::kUInt8 && field.shape.size() == 3 &&
                     (field.shape[2] == 1 || field.shape[2] == 3);
    if (!field.is_image)
      field.shape.assign(array.shape.begin() + 1, array.shape.end());
    FieldView view;
    if (field.is_image) {
      view.height = field.shape[0];
      view.width = field.shape[1];
      view.channels = field.shape[2];
    }
    views_.push_back(view);
    strides_.push_back(NumElements(field.shape) *
                       static_cast<int64_t>(SizeOf(field.dtype)));
    fields_.push_back(std::move(field));
    arrays_.push_back(array);
    return absl::OkStatus();
  }

  absl::Status Read(int64_t index, Record* record) const override {
    record->fields.assign(views_.begin(), views_.end());
    for (size_t i = 0; i < arrays_.size(); ++i)
      record->fields[i].data = arrays_[i].bytes.get() + index * strides_[i];
    return absl::OkStatus();
  }

  void Prefetch(int64_t index) const override {
    for (size_t i = 0; i < arrays_.size(); ++i)
      PrefetchBytes(arrays_[i].bytes.get() + index * strides_[i], strides_[i]);
  }

  std::string Describe(int64_t index) const override {
    return absl::StrFormat("'%s' record %d", path_, index);
  }

 private:
  std::string path_;
  std::vector<Array> arrays_;
  std::vector<FieldView> views_;
  std::vector<int64_t> strides_;
};

template <typename T>
absl::Status CheckLabels(const Array& array, const ArrayField& field,
                         const std::string& path) {
  const T* label = array.data<T>();
  const int64_t records = array.shape.empty() ? 1 : array.shape[0];
  const int64_t each = records > 0 ? array.size() / records : 0;
  for (int64_t i = 0; i < records * each; ++i) {
    PD_RETURN_IF_ERROR(CheckLabel(static_cast<int64_t>(label[i]), field.classes,
                                  path, i / each));
  }
  return absl::OkStatus();
}

absl::Status CheckLabelArray(const Array& array, const ArrayField& field,
                             const std::string& path) {
  switch (array.dtype) {
    case DType::kInt64:
      return CheckLabels<int64_t>(array, field, path);
    case DType::kInt32:
      return CheckLabels<int32_t>(array, field, path);
    case DType::kInt16:
      return CheckLabels<int16_t>(array, field, path);
    case DType::kUInt8:
      return CheckLabels<uint8_t>(array, field, path);
    case DType::kInt8:
      return CheckLabels<int8_t>(array, field, path);
    default:
      return InvalidArgument("'%s': labels '%s' are %s; expected integers",
                             path, field.name, Name(array.dtype));
  }
}

}  // namespace

absl::StatusOr<DatasetPtr> MakeArrayDataset(
    const NamedArrays& arrays, const ArrayDatasetOptions& options) {
  std::vector<ArrayField> fields = options.fields;
  if (fields.empty()) {
    for (const auto& [name, array] : arrays) fields.push_back({name, name});
  }
  if (fields.empty()) return DataLoss("'%s' holds no arrays", options.path);
  auto dataset = std::make_shared<ArrayDataset>(options.path);
  for (const ArrayField& field : fields) {
    const auto found = arrays.find(field.array);
    if (found == arrays.end()) {
      std::vector<std::string> known;
      for (const auto& [other, array] : arrays) known.push_back(other);
      const std::string near = Nearest(field.array, known);
      return NotFound("'%s' holds no array '%s'%s", options.path, field.array,
                      near.empty() ? "" : ", did you mean '" + near + "'?");
    }
    PD_RETURN_IF_ERROR(dataset->Add(field.name, found->second));
    if (field.classes > 0)
      PD_RETURN_IF_ERROR(CheckLabelArray(found->second, field, options.path));
  }
  if (dataset->size() == 0)
    return DataLoss("'%s' holds no records", options.path);
  return dataset;
}

absl::StatusOr<NamedArrays> ReadNpzOrNpy(const std::string& path) {
  if (!absl::EndsWith(path, ".npy")) return ReadNpz(path);
  NamedArrays arrays;
  PD_ASSIGN_OR_RETURN(arrays["x"], ReadNpy(path));
  return arrays;
}

absl::StatusOr<DatasetPtr> OpenNpz(const ArrayDatasetOptions& options) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays, ReadNpzOrNpy(options.path));
  return MakeArrayDataset(arrays, options);
}

}  // namespace pd
