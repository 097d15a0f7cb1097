// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_data.h"

#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_archives.h"

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

}  // namespace

absl::StatusOr<DatasetPtr> OpenDataset(const LoadedJob& job,
                                       const job::DataSet& set) {
  switch (set.kind_case()) {
    case job::DataSet::kImageFolder: {
      ImageFolderOptions options;
      options.root = set.image_folder().root();
      options.labels = false;
      if (set.image_folder().extensions_size() > 0)
        options.extensions =
            ListOf<std::string>(set.image_folder().extensions());
      return OpenImageFolder(options);
    }
    case job::DataSet::kMnist:
    case job::DataSet::kFashionMnist:
    case job::DataSet::kCifar10:
    case job::DataSet::kCifar100:
    case job::DataSet::kFlowers:
    case job::DataSet::kVoc2012:
    case job::DataSet::kUciHousing:
    case job::DataSet::kMovielens:
    case job::DataSet::kImdb:
    case job::DataSet::kImikolov:
    case job::DataSet::kWmt14:
    case job::DataSet::kWmt16:
    case job::DataSet::kConll05St:
      return OpenArchiveOf(job, set);
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
