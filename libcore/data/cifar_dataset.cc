// SPDX-License-Identifier: Apache-2.0
// CIFAR's planes become interleaved pixels when a record is read: the file
// stays as it is, mapped where it is plain. Both versions: binary records, and
// the archive of pickled batches that PaddlePaddle reads.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/cifar.h"
#include "formats/pickle.h"
#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/class_lists.h"
#include "libcore/data/paddle_datasets.h"

namespace pd {
namespace {

constexpr int64_t kPlane = kCifarSide * kCifarSide;

class CifarDataset : public Dataset {
 public:
  explicit CifarDataset(std::vector<std::string> classes) {
    fields_ = {{"image", DType::kUInt8, {kCifarSide, kCifarSide, 3}, true},
               {"label", DType::kInt64, {1}, false}};
    fields_[1].classes = std::move(classes);
  }

  absl::Status Append(const std::string& path,
                      const CifarDatasetOptions& options) {
    const int64_t label_bytes = options.classes == 100 ? 2 : 1;
    PD_ASSIGN_OR_RETURN(CifarFile file, ReadCifar(path, label_bytes));
    const bool coarse = label_bytes == 2 && options.coarse_label;
    const int64_t classes = coarse ? 20 : options.classes;
    for (int64_t i = 0; i < file.records; ++i) {
      const int64_t label = file.labels(i)[coarse ? 0 : label_bytes - 1];
      PD_RETURN_IF_ERROR(CheckLabel(label, classes, path, i));
      labels_.push_back(label);
      planes_.push_back(file.planes(i));
    }
    EndPart(absl::StrCat("'", path, "'"), std::move(file.bytes.data));
    return absl::OkStatus();
  }

  // A pickled batch: {'data': uint8 [n, 3072], 'labels' or 'fine_labels':
  // [...]}. `place` names it.
  absl::Status AppendBatch(const std::string& place, const FileBytes& file,
                           int64_t classes) {
    auto batch = ParsePickle(file, Alignment::kAny);
    if (!batch.ok()) return batch.status();
    PD_ASSIGN_OR_RETURN(const Array data, DataOf(*batch));
    PD_ASSIGN_OR_RETURN(const std::vector<PickleValue>* labels,
                        LabelsOf(*batch));
    if (data.shape[0] != static_cast<int64_t>(labels->size()))
      return DataLoss("it holds %d images and %d labels", data.shape[0],
                      labels->size());
    for (int64_t i = 0; i < data.shape[0]; ++i) {
      const auto* label = (*labels)[static_cast<size_t>(i)].As<int64_t>();
      if (label == nullptr) return DataLoss("label %d is no integer", i);
      if (*label < 0 || *label >= classes)
        return OutOfRange("record %d: label is %d; expected 0 to %d", i, *label,
                          classes - 1);
      labels_.push_back(*label);
      planes_.push_back(data.data<uint8_t>() + i * kCifarPixels);
    }
    EndPart(place, data.bytes);
    return absl::OkStatus();
  }

  absl::Status Read(int64_t index, Record* record) const override {
    record->fields.resize(2);
    record->bytes.resize(1);
    std::vector<uint8_t>& pixels = record->bytes[0];
    pixels.resize(kCifarPixels);
    const uint8_t* planes = planes_[static_cast<size_t>(index)];
    for (int64_t i = 0; i < kPlane; ++i)
      for (int64_t c = 0; c < 3; ++c)
        pixels[3 * i + c] = planes[c * kPlane + i];
    record->fields[0] = {reinterpret_cast<const std::byte*>(pixels.data()),
                         kCifarSide, kCifarSide, 3};
    record->fields[1] = {
        reinterpret_cast<const std::byte*>(labels_.data() + index)};
    return absl::OkStatus();
  }

  void Prefetch(int64_t index) const override {
    PrefetchBytes(
        reinterpret_cast<const std::byte*>(planes_[static_cast<size_t>(index)]),
        kCifarPixels);
  }

  std::string Describe(int64_t index) const override {
    size_t part = parts_.size() - 1;
    while (parts_[part].first > index) --part;
    return absl::StrFormat("%s record %d", parts_[part].place,
                           index - parts_[part].first);
  }

 private:
  struct Part {
    int64_t first;
    std::string place;
    std::shared_ptr<const std::byte> bytes;
  };

  void EndPart(std::string place, std::shared_ptr<const std::byte> bytes) {
    parts_.push_back({size_, std::move(place), std::move(bytes)});
    size_ = static_cast<int64_t>(labels_.size());
  }

  // Keys are bytes as Python 2 wrote them, or text.
  static const PickleValue* Find(const PickleValue& batch,
                                 absl::string_view key) {
    const auto* dict = batch.As<PickleDict>();
    if (dict == nullptr) return nullptr;
    for (const auto& [name, value] : dict->items) {
      const auto* bytes = name.As<PickleBytes>();
      if (bytes != nullptr && bytes->bytes == key) return &value;
    }
    return dict->Find(key);
  }

  static absl::StatusOr<Array> DataOf(const PickleValue& batch) {
    const PickleValue* value = Find(batch, "data");
    const Array* data = value == nullptr ? nullptr : value->As<Array>();
    if (data == nullptr)
      return DataLoss("it holds no array 'data'; expected a batch of CIFAR");
    if (data->dtype != DType::kUInt8 || data->shape.size() != 2 ||
        data->shape[1] != kCifarPixels)
      return DataLoss("'data' is %s of shape %s; expected uint8 [records, %d]",
                      Name(data->dtype), ToString(data->shape), kCifarPixels);
    return *data;
  }

  static absl::StatusOr<const std::vector<PickleValue>*> LabelsOf(
      const PickleValue& batch) {
    const PickleValue* value = Find(batch, "labels");
    if (value == nullptr) value = Find(batch, "fine_labels");
    const auto* list = value == nullptr ? nullptr : value->As<PickleList>();
    if (list == nullptr)
      return DataLoss("it holds no list 'labels' or 'fine_labels'");
    return &list->items;
  }

  std::vector<Part> parts_;
  std::vector<int64_t> labels_;
  std::vector<const uint8_t*> planes_;
};

}  // namespace

absl::StatusOr<DatasetPtr> OpenCifar(const CifarDatasetOptions& options) {
  if (options.classes != 10 && options.classes != 100)
    return InvalidArgument("CIFAR has 10 or 100 classes, not %d",
                           options.classes);
  if (options.paths.empty()) return InvalidArgument("no CIFAR file is given");
  auto dataset = std::make_shared<CifarDataset>(
      options.classes == 10  ? Cifar10Classes()
      : options.coarse_label ? std::vector<std::string>()
                             : Cifar100Classes());
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(dataset->Append(path, options));
  return dataset;
}

absl::StatusOr<DatasetPtr> OpenCifarPython(const CifarPythonOptions& options) {
  const std::string& path = options.data_file;
  const bool ten = !options.hundred;
  std::string flag = options.mode;
  if (ten) flag = options.mode == "train" ? "data_batch" : "test_batch";
  PD_ASSIGN_OR_RETURN(std::vector<TarFile> files,
                      ReadTarFiles(path, [&flag](absl::string_view name) {
                        return absl::StrContains(name, flag);
                      }));
  if (files.empty())
    return NotFound("'%s' holds no member with '%s' in its name", path, flag);
  std::stable_sort(
      files.begin(), files.end(),
      [](const TarFile& a, const TarFile& b) { return a.name < b.name; });
  auto dataset = std::make_shared<CifarDataset>(ten ? Cifar10Classes()
                                                    : Cifar100Classes());
  for (const TarFile& file : files) {
    const std::string place =
        absl::StrCat("'", path, "': member '", file.name, "'");
    PD_RETURN_IF_ERROR(Annotate(
        dataset->AppendBatch(place, file.content, options.classes), place));
  }
  if (dataset->size() == 0) return DataLoss("'%s' holds no images", path);
  return dataset;
}

}  // namespace pd
