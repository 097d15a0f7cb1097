// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_data.h"

#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

DType DTypeOf(job::Element::Type type) {
  return *DTypeFromName(job::Element::Type_Name(type));
}

template <typename To, typename Repeated>
std::vector<To> ListOf(const Repeated& values) {
  return std::vector<To>(values.begin(), values.end());
}

absl::StatusOr<DatasetPtr> OpenCsvOf(const job::Csv& csv) {
  CsvDatasetOptions options;
  options.paths = ListOf<std::string>(csv.path());
  options.header = csv.header();
  options.delimiter = csv.delimiter().front();
  for (const job::Column& column : csv.field()) {
    CsvField field;
    field.name = column.name();
    field.columns = ListOf<std::string>(column.column());
    field.dtype = DTypeOf(column.dtype());
    field.mean = ListOf<double>(column.mean());
    field.std = ListOf<double>(column.std());
    field.classes = column.num_classes();
    options.fields.push_back(std::move(field));
  }
  return OpenCsv(options);
}

absl::StatusOr<DatasetPtr> OpenFolderOf(const LoadedJob& job,
                                        const job::DatasetFolder& folder) {
  ImageFolderOptions options;
  options.root = folder.root();
  if (folder.extensions_size() > 0)
    options.extensions = ListOf<std::string>(folder.extensions());
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenImageFolder(options));
  const int64_t found = static_cast<int64_t>(dataset->class_names().size());
  if (folder.has_num_classes() && folder.num_classes() != found)
    return job.At(InvalidArgument("num_classes is %d; '%s' has %d folders",
                                  folder.num_classes(), folder.root(), found),
                  folder, "num_classes");
  return dataset;
}

absl::StatusOr<DatasetPtr> OpenNpzOf(const job::Npz& npz) {
  ArrayDatasetOptions options;
  options.path = npz.path();
  for (const job::NpzField& field : npz.field()) {
    ArrayField chosen;
    chosen.name = field.name();
    chosen.array = field.has_array() ? field.array() : field.name();
    chosen.classes = field.num_classes();
    options.fields.push_back(std::move(chosen));
  }
  return OpenNpz(options);
}

std::string NameOf(job::Interpolation::Kind kind) {
  return job::Interpolation::Kind_Name(kind);
}

transforms::ColorJitter ColorJitterOf(const job::ColorJitter& t) {
  transforms::ColorJitter jitter;
  jitter.brightness = {static_cast<float>(t.brightness())};
  jitter.contrast = {static_cast<float>(t.contrast())};
  jitter.saturation = {static_cast<float>(t.saturation())};
  jitter.hue = {static_cast<float>(t.hue())};
  return jitter;
}

transforms::RandomCrop RandomCropOf(const job::RandomCrop& t) {
  transforms::RandomCrop crop;
  crop.size = ListOf<int>(t.size());
  crop.padding = ListOf<int>(t.padding());
  crop.pad_if_needed = t.pad_if_needed();
  crop.fill = {static_cast<float>(t.fill())};
  crop.padding_mode = job::PaddingMode::Kind_Name(t.padding_mode());
  return crop;
}

transforms::RandomResizedCrop RandomResizedCropOf(
    const job::RandomResizedCrop& t) {
  transforms::RandomResizedCrop crop;
  crop.size = ListOf<int>(t.size());
  if (t.scale_size() > 0) crop.scale = ListOf<float>(t.scale());
  if (t.ratio_size() > 0) crop.ratio = ListOf<float>(t.ratio());
  crop.interpolation = NameOf(t.interpolation());
  return crop;
}

transforms::Pad PadOf(const job::Pad& t) {
  transforms::Pad pad;
  pad.padding = ListOf<int>(t.padding());
  pad.fill = {static_cast<float>(t.fill())};
  pad.padding_mode = job::PaddingMode::Kind_Name(t.padding_mode());
  return pad;
}

transforms::Normalize NormalizeOf(const job::Normalize& t) {
  transforms::Normalize normalize;
  if (t.mean_size() > 0) normalize.mean = ListOf<float>(t.mean());
  if (t.std_size() > 0) normalize.std = ListOf<float>(t.std());
  return normalize;
}

Transform TransformOf(const job::Transform& t) {
  switch (t.kind_case()) {
    case job::Transform::kResize:
      return transforms::Resize{ListOf<int>(t.resize().size()),
                                NameOf(t.resize().interpolation())};
    case job::Transform::kCenterCrop:
      return transforms::CenterCrop{ListOf<int>(t.center_crop().size())};
    case job::Transform::kRandomCrop:
      return RandomCropOf(t.random_crop());
    case job::Transform::kRandomResizedCrop:
      return RandomResizedCropOf(t.random_resized_crop());
    case job::Transform::kRandomHorizontalFlip:
      return transforms::RandomHorizontalFlip{
          static_cast<float>(t.random_horizontal_flip().prob())};
    case job::Transform::kRandomVerticalFlip:
      return transforms::RandomVerticalFlip{
          static_cast<float>(t.random_vertical_flip().prob())};
    case job::Transform::kPad:
      return PadOf(t.pad());
    case job::Transform::kColorJitter:
      return ColorJitterOf(t.color_jitter());
    case job::Transform::kGrayscale:
      return transforms::Grayscale{t.grayscale().num_output_channels()};
    case job::Transform::kToTensor:
      return transforms::ToTensor{};
    case job::Transform::kNormalize:
      return NormalizeOf(t.normalize());
    case job::Transform::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a transform without a kind passed the job's check");
  return transforms::ToTensor{};
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenDataset(const LoadedJob& job,
                                       const job::DataSet& set) {
  switch (set.kind_case()) {
    case job::DataSet::kMnist:
      return OpenIdx({set.mnist().image_path(), set.mnist().label_path(),
                      set.mnist().num_classes()});
    case job::DataSet::kCifar10: {
      CifarDatasetOptions options;
      options.paths = ListOf<std::string>(set.cifar10().data_file());
      return OpenCifar(options);
    }
    case job::DataSet::kDatasetFolder:
      return OpenFolderOf(job, set.dataset_folder());
    case job::DataSet::kCsv:
      return OpenCsvOf(set.csv());
    case job::DataSet::kNpz:
      return OpenNpzOf(set.npz());
    case job::DataSet::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a data set without a kind passed the job's check");
  return absl::InternalError("unreachable");
}

std::vector<Transform> TransformsOf(const job::DataSet& set) {
  std::vector<Transform> list;
  for (const job::Transform& transform : set.transform())
    list.push_back(TransformOf(transform));
  return list;
}

absl::StatusOr<std::unique_ptr<Loader>> OpenLoader(const LoadedJob& job,
                                                   const job::DataSet& set,
                                                   uint64_t seed) {
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenDataset(job, set));
  LoaderOptions options;
  options.batch_size = set.batch_size();
  options.shuffle = set.shuffle();
  options.drop_last = set.drop_last();
  options.num_workers = set.num_workers();
  options.prefetch = set.prefetch_factor();
  options.seed = seed;
  options.transforms = TransformsOf(set);
  auto loader = Loader::Create(std::move(dataset), options);
  if (!loader.ok()) return job.At(loader.status(), set);
  return loader;
}

}  // namespace pd
