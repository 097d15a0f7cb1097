// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_data.h"

#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_archives.h"
#include "libcore/train/open_parts.h"

namespace pd {
namespace {

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

absl::StatusOr<DatasetPtr> OpenPart(OpenContext* context,
                                    const job::DataSet& set);

// The data sets that `combined` is made of.
template <typename Message>
absl::StatusOr<std::vector<DatasetPtr>> OpenParts(OpenContext* context,
                                                  const Message& combined) {
  std::vector<DatasetPtr> parts;
  for (const job::DataSet& set : combined.dataset()) {
    std::vector<const google::protobuf::FieldDescriptor*> given;
    set.GetReflection()->ListFields(set, &given);
    for (const auto* field : given)
      if (field->containing_oneof() == nullptr && field->name() != "subset" &&
          field->name() != "on_error")
        return context->job().At(
            InvalidArgument("%s is said of the whole, not of its parts",
                            field->name()),
            set, field->name());
    PD_ASSIGN_OR_RETURN(DatasetPtr part, OpenPart(context, set));
    parts.push_back(std::move(part));
  }
  return parts;
}

absl::StatusOr<DatasetPtr> OpenKind(OpenContext* context,
                                    const job::DataSet& set) {
  const LoadedJob& job = context->job();
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
      return OpenArchiveOf(job, set, context->skip_bad());
    case job::DataSet::kDatasetFolder:
      return OpenFolderOf(job, set.dataset_folder());
    case job::DataSet::kCsv:
    case job::DataSet::kTsv:
    case job::DataSet::kJsonl:
    case job::DataSet::kLibsvm:
      return OpenRowsOf(context, set);
    case job::DataSet::kLanguageModel:
    case job::DataSet::kParallelText:
      return OpenTextOf(context, set);
    case job::DataSet::kConcat: {
      PD_ASSIGN_OR_RETURN(auto parts, OpenParts(context, set.concat()));
      auto whole = ConcatDatasets(std::move(parts));
      return whole.ok() ? whole : job.At(whole.status(), set.concat());
    }
    case job::DataSet::kCompose: {
      PD_ASSIGN_OR_RETURN(auto parts, OpenParts(context, set.compose()));
      auto whole = ComposeDatasets(std::move(parts));
      return whole.ok() ? whole : job.At(whole.status(), set.compose());
    }
    case job::DataSet::kNpz:
      return OpenNpzOf(set.npz());
    case job::DataSet::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a data set without a kind passed the job's check");
  return absl::InternalError("unreachable");
}

// A set and what `subset` leaves of it.
absl::StatusOr<DatasetPtr> OpenPart(OpenContext* context,
                                    const job::DataSet& set) {
  OpenContext own = *context;
  own.set_skip_bad(context->skip_bad() || set.on_error() == job::DataSet::skip);
  if (set.concat().dataset_size() > 1) own.ForbidBuilding();
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenKind(&own, set));
  if (!set.has_subset()) return dataset;
  auto records = SubsetRecords(set.subset(), dataset->size());
  if (!records.ok()) return context->job().At(records.status(), set.subset());
  return SubsetOf(std::move(dataset), *std::move(records));
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenDataset(const LoadedJob& job,
                                       const job::DataSet& set,
                                       RunVocabularies* vocabularies) {
  const bool is_training = &set == &job.proto().data().train();
  OpenContext context(job, is_training, vocabularies);
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenPart(&context, set));
  if (is_training) vocabularies->Add(*dataset);
  return dataset;
}

}  // namespace pd
