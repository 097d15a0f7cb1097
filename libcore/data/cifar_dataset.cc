// SPDX-License-Identifier: Apache-2.0
// CIFAR's planes become interleaved pixels when a record is read: the file
// stays as it is, mapped where it is plain.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "formats/cifar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"

namespace pd {
namespace {

constexpr int64_t kPlane = kCifarSide * kCifarSide;

class CifarDataset : public Dataset {
 public:
  CifarDataset() {
    fields_ = {{"image", DType::kUInt8, {kCifarSide, kCifarSide, 3}, true},
               {"label", DType::kInt64, {1}, false}};
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
    parts_.push_back({size_, path, std::move(file)});
    size_ = static_cast<int64_t>(labels_.size());
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
    return absl::StrFormat("'%s' record %d", parts_[part].path,
                           index - parts_[part].first);
  }

 private:
  struct Part {
    int64_t first;
    std::string path;
    CifarFile file;
  };
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
  auto dataset = std::make_shared<CifarDataset>();
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(dataset->Append(path, options));
  return dataset;
}

}  // namespace pd
