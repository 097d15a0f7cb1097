// SPDX-License-Identifier: Apache-2.0
// MNIST and its kin. The labels are small and are read and checked at once;
// the images are inflated by a thread of their own while the caller builds its
// model.
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/idx.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"

namespace pd {
namespace {

class IdxDataset : public Dataset {
 public:
  IdxDataset(IdxFile images, const Array& labels, std::string label_path,
             std::vector<std::string> class_names)
      : image_path_(images.path), label_path_(std::move(label_path)) {
    const Shape& shape = images.header.shape;
    size_ = shape[0];
    height_ = shape[1];
    width_ = shape[2];
    fields_ = {{"image", DType::kUInt8, {height_, width_, 1}, true},
               {"label", DType::kInt64, {1}, false}};
    fields_[1].classes = std::move(class_names);
    const uint8_t* bytes = labels.data<uint8_t>();
    labels_.assign(bytes, bytes + size_);
    reader_ = std::thread([this, file = std::move(images)] {
      auto array = ReadIdxData(file);
      status_ = array.status();
      if (array.ok()) images_ = *std::move(array);
      ready_.store(true, std::memory_order_release);
    });
  }
  ~IdxDataset() override {
    if (reader_.joinable()) reader_.join();
  }

  absl::Status WaitReady() const override {
    if (!ready_.load(std::memory_order_acquire)) {
      std::lock_guard<std::mutex> lock(join_);
      if (reader_.joinable()) reader_.join();
    }
    return status_;
  }

  absl::Status Read(int64_t index, Record* record) const override {
    PD_RETURN_IF_ERROR(WaitReady());
    record->fields.resize(2);
    record->fields[0] = {images_.bytes.get() + index * height_ * width_,
                         height_, width_, 1};
    record->fields[1] = {
        reinterpret_cast<const std::byte*>(labels_.data() + index)};
    return absl::OkStatus();
  }

  void Prefetch(int64_t index) const override {
    if (!ready_.load(std::memory_order_acquire) || !status_.ok()) return;
    const int64_t bytes = height_ * width_;
    PrefetchBytes(images_.bytes.get() + index * bytes, bytes);
  }

  std::string Describe(int64_t index) const override {
    return absl::StrFormat("'%s' record %d", image_path_, index);
  }

 private:
  std::string image_path_, label_path_;
  int64_t height_ = 0, width_ = 0;
  std::vector<int64_t> labels_;
  // Written by reader_, read by others after ready_ or the join.
  Array images_;
  absl::Status status_;
  std::atomic<bool> ready_{false};
  mutable std::mutex join_;
  mutable std::thread reader_;
};

absl::Status CheckImages(const IdxFile& images) {
  const IdxHeader& header = images.header;
  if (header.dtype == DType::kUInt8 && header.shape.size() == 3 &&
      header.data_bytes > 0)
    return absl::OkStatus();
  return InvalidArgument(
      "'%s' holds %s of shape %s; expected uint8 images, [records, height, "
      "width]",
      images.path, Name(header.dtype), ToString(header.shape));
}

absl::StatusOr<Array> ReadLabels(const IdxFile& file, int64_t classes) {
  const IdxHeader& header = file.header;
  if (header.dtype != DType::kUInt8 || header.shape.size() != 1) {
    return InvalidArgument(
        "'%s' holds %s of shape %s; expected uint8 labels, [records]",
        file.path, Name(header.dtype), ToString(header.shape));
  }
  PD_ASSIGN_OR_RETURN(Array labels, ReadIdxData(file));
  const uint8_t* label = labels.data<uint8_t>();
  for (int64_t i = 0; i < header.shape[0]; ++i)
    PD_RETURN_IF_ERROR(CheckLabel(label[i], classes, file.path, i));
  return labels;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenIdx(const IdxDatasetOptions& options) {
  PD_ASSIGN_OR_RETURN(IdxFile images, OpenIdxFile(options.image_path));
  PD_RETURN_IF_ERROR(CheckImages(images));
  PD_ASSIGN_OR_RETURN(const IdxFile label_file,
                      OpenIdxFile(options.label_path));
  const int64_t count = images.header.shape[0];
  if (!label_file.header.shape.empty() && label_file.header.shape[0] != count) {
    return FailedPrecondition("'%s' holds %d labels; '%s' holds %d images",
                              options.label_path, label_file.header.shape[0],
                              options.image_path, count);
  }
  PD_ASSIGN_OR_RETURN(const Array labels,
                      ReadLabels(label_file, options.classes));
  return std::make_shared<IdxDataset>(std::move(images), labels,
                                      options.label_path, options.class_names);
}

absl::StatusOr<DatasetPtr> OpenMnist(const std::string& folder,
                                     const std::string& mode, int64_t classes,
                                     std::vector<std::string> class_names) {
  if (mode != "train" && mode != "test")
    return InvalidArgument("mode is '%s'; expected 'train' or 'test'", mode);
  const std::string prefix =
      absl::StrCat(folder, "/", mode == "train" ? "train" : "t10k");
  const auto find = [&prefix](const char* rest) {
    const std::string plain = absl::StrCat(prefix, rest);
    return Exists(plain) ? plain : plain + ".gz";
  };
  IdxDatasetOptions options;
  options.image_path = find("-images-idx3-ubyte");
  options.label_path = find("-labels-idx1-ubyte");
  options.classes = classes;
  options.class_names = std::move(class_names);
  return OpenIdx(options);
}

}  // namespace pd
