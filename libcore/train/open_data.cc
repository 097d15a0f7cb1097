// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_data.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/boxes_dataset.h"
#include "libcore/data/row_datasets.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_archives.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

// The class folders of all picture folders that are parts of `set`, sorted:
// each alone would number its own.
absl::Status AddFolderClasses(const job::DataSet& set,
                              std::set<std::string>* classes) {
  if (set.has_dataset_folder()) {
    PD_ASSIGN_OR_RETURN(const auto own,
                        ImageFolderClasses(set.dataset_folder().root()));
    classes->insert(own.begin(), own.end());
  }
  for (const job::DataSet& part : set.concat().dataset())
    PD_RETURN_IF_ERROR(AddFolderClasses(part, classes));
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> OpenFolderOf(OpenContext* context,
                                        const job::DatasetFolder& folder) {
  ImageFolderOptions options;
  options.root = folder.root();
  if (folder.extensions_size() > 0)
    options.extensions = ListOf<std::string>(folder.extensions());
  PD_ASSIGN_OR_RETURN(options.classes, context->Classes("label"));
  if (options.classes.empty()) options.classes = context->folder_classes();
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenImageFolder(options));
  const auto found =
      static_cast<int64_t>(dataset->FindField("label")->classes.size());
  if (folder.has_num_classes() && folder.num_classes() != found)
    return context->job().At(
        options.classes.empty()
            ? InvalidArgument("num_classes is %d; '%s' has %d folders",
                              folder.num_classes(), folder.root(), found)
            : InvalidArgument("num_classes is %d; training has %d classes",
                              folder.num_classes(), found),
        folder, "num_classes");
  return dataset;
}

absl::StatusOr<DatasetPtr> OpenMasksOf(OpenContext* context,
                                       const job::ImageMaskFolder& folder) {
  ImageMaskFolderOptions options;
  options.images = folder.images();
  options.masks = folder.masks();
  if (folder.extensions_size() > 0)
    options.extensions = ListOf<std::string>(folder.extensions());
  options.classes = folder.num_classes();
  options.skip_bad = context->skip_bad();
  return OpenImageMaskFolder(options);
}

BoxForm BoxFormOf(const job::Boxes& boxes) {
  return {boxes.format() == job::Boxes::cxcywh, boxes.normalized(),
          boxes.min_visible()};
}

template <typename Detection>
BoxesOptions BoxesOptionsOf(const OpenContext& context,
                            const Detection& detection) {
  BoxesOptions options;
  options.form = BoxFormOf(context.boxes());
  options.max_boxes = detection.max_boxes();
  options.background = detection.background();
  options.skip_bad = context.skip_bad();
  return options;
}

absl::StatusOr<DatasetPtr> OpenVocOf(OpenContext* context,
                                     const job::VOCDetection& voc) {
  const LoadedJob& job = context->job();
  VocDetectionOptions options;
  const bool folders = voc.has_images() || voc.has_annotations();
  if (voc.has_root() && (folders || voc.has_list()))
    return job.At(
        InvalidArgument("root is given; images, annotations and list are for "
                        "folders of one's own"),
        voc, "root");
  if (!voc.has_root() && !(voc.has_images() && voc.has_annotations()))
    return job.At(InvalidArgument("give root, or images and annotations"), voc);
  if (!voc.has_root() && voc.has_image_set())
    return job.At(
        InvalidArgument("image_set is a list of root; 'list' is the file of "
                        "folders of one's own"),
        voc, "image_set");
  options.images = voc.images();
  options.annotations = voc.annotations();
  options.list = voc.list();
  if (voc.has_root()) {
    options.images = absl::StrCat(voc.root(), "/JPEGImages");
    options.annotations = absl::StrCat(voc.root(), "/Annotations");
    options.list =
        absl::StrCat(voc.root(), "/ImageSets/Main/", voc.image_set(), ".txt");
  }
  options.boxes = BoxesOptionsOf(*context, voc);
  options.boxes.skip_difficult = voc.skip_difficult();
  options.classes = ListOf<std::string>(voc.class_());
  if (options.classes.empty()) {
    PD_ASSIGN_OR_RETURN(options.classes, context->Classes("gt_label"));
    if (voc.background() && !options.classes.empty())
      options.classes.erase(options.classes.begin());
  }
  return OpenVocDetection(options);
}

absl::StatusOr<DatasetPtr> OpenCocoOf(OpenContext* context,
                                      const job::COCODetection& coco) {
  CocoDetectionOptions options;
  options.images = coco.images();
  options.annotations = coco.annotations();
  options.boxes = BoxesOptionsOf(*context, coco);
  options.boxes.skip_difficult = coco.skip_crowd();
  return OpenCocoDetection(options);
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
      return OpenFolderOf(context, set.dataset_folder());
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
    case job::DataSet::kPipe:
      return OpenPipeOf(context, set.pipe());
    case job::DataSet::kEnvironment:
      return OpenEnvironmentOf(context, set);
    case job::DataSet::kImageMaskFolder:
      return OpenMasksOf(context, set.image_mask_folder());
    case job::DataSet::kVocDetection:
      return OpenVocOf(context, set.voc_detection());
    case job::DataSet::kCocoDetection:
      return OpenCocoOf(context, set.coco_detection());
    case job::DataSet::KIND_NOT_SET:
      break;
  }
  PD_INVARIANT(!"a data set without a kind passed the job's check");
  return absl::InternalError("unreachable");
}

// A set and what `subset` leaves of it.
absl::StatusOr<DatasetPtr> OpenPart(OpenContext* context,
                                    const job::DataSet& set) {
  PD_RETURN_IF_ERROR(CheckStreamUse(context->job(), set));
  OpenContext own = *context;
  own.set_skip_bad(context->skip_bad() || set.on_error() == job::DataSet::skip);
  if (set.concat().dataset_size() > 1) {
    own.ForbidBuilding();
    std::set<std::string> classes = {context->folder_classes().begin(),
                                     context->folder_classes().end()};
    PD_RETURN_IF_ERROR(AddFolderClasses(set, &classes));
    own.set_folder_classes({classes.begin(), classes.end()});
  }
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenKind(&own, set));
  if (!set.has_subset()) return dataset;
  auto records = SubsetRecords(set.subset(), dataset->size());
  if (!records.ok()) return context->job().At(records.status(), set.subset());
  return SubsetOf(std::move(dataset), *std::move(records));
}

// A set beside the training set: its class numbers must mean the same, and
// where it has numbers alone, the names are those of training.
absl::StatusOr<DatasetPtr> NameAsTraining(const LoadedJob& job,
                                          const job::DataSet& set,
                                          DatasetPtr dataset,
                                          RunVocabularies* vocabularies) {
  NamesByField missing;
  for (const FieldSpec& field : dataset->fields()) {
    PD_ASSIGN_OR_RETURN(const auto known, vocabularies->Classes(field.name));
    if (known.empty() || known == field.classes) continue;
    if (!field.classes.empty())
      return job.At(
          InvalidArgument("the classes of field '%s' are %s; training's are %s",
                          field.name, ClassesText(field.classes),
                          ClassesText(known)),
          set);
    missing[field.name] = known;
  }
  return missing.empty() ? dataset : WithClasses(std::move(dataset), missing);
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenDataset(const LoadedJob& job,
                                       const job::DataSet& set,
                                       RunVocabularies* vocabularies) {
  const bool is_training = &set == &job.proto().data().train();
  OpenContext context(job, is_training, vocabularies);
  context.set_boxes(&set.boxes());
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenPart(&context, set));
  if (set.has_boxes()) {
    auto boxed = WithBoxes(std::move(dataset),
                           {set.boxes().field(), BoxFormOf(set.boxes()),
                            ListOf<std::string>(set.boxes().beside())});
    if (!boxed.ok()) return job.At(boxed.status(), set.boxes());
    dataset = *std::move(boxed);
  }
  if (is_training) {
    vocabularies->Add(*dataset);
  } else {
    PD_ASSIGN_OR_RETURN(
        dataset, NameAsTraining(job, set, std::move(dataset), vocabularies));
  }
  return dataset;
}

absl::StatusOr<std::vector<std::string>> OpenContext::Classes(
    const std::string& field) {
  PD_ASSIGN_OR_RETURN(auto known, vocabularies_->Classes(field));
  if (!known.empty() || is_training_ || !job_.proto().data().has_train())
    return known;
  const auto training =
      OpenDataset(job_, job_.proto().data().train(), vocabularies_);
  if (!training.ok())
    return Annotate(training.status(),
                    "data.train, which numbers the classes, cannot be read "
                    "(-o data.train= numbers the folders by themselves)");
  return vocabularies_->Classes(field);
}

}  // namespace pd
