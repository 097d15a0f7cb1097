// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/resolve_job.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/field_facts.h"
#include "libcore/data/vocabulary.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_internal.h"
#include "libcore/train/open_networks.h"

namespace pd {
namespace {

using Scales = std::map<std::string, FieldScale>;  // by field

// Calls `see` for every field of rows: a Column* or a JsonField*.
template <typename See>
void EachField(job::DataSet* set, const See& see) {
  if (set->has_csv())
    for (auto& field : *set->mutable_csv()->mutable_field()) see(&field);
  if (set->has_tsv())
    for (auto& field : *set->mutable_tsv()->mutable_field()) see(&field);
  if (set->has_jsonl())
    for (auto& field : *set->mutable_jsonl()->mutable_field()) see(&field);
  if (set->has_concat())
    for (auto& part : *set->mutable_concat()->mutable_dataset())
      EachField(&part, see);
  if (set->has_compose())
    for (auto& part : *set->mutable_compose()->mutable_dataset())
      EachField(&part, see);
}

// The same, of pointers to const. (A kind that is not given has no fields.)
template <typename See>
void EachFieldOf(const job::DataSet& set, const See& see) {
  for (const auto& field : set.csv().field()) see(&field);
  for (const auto& field : set.tsv().field()) see(&field);
  for (const auto& field : set.jsonl().field()) see(&field);
  for (const auto& part : set.concat().dataset()) EachFieldOf(part, see);
  for (const auto& part : set.compose().dataset()) EachFieldOf(part, see);
}

void SetScale(const FieldScale& scale, job::Column* field) {
  field->mutable_mean()->Assign(scale.mean.begin(), scale.mean.end());
  field->mutable_std()->Assign(scale.std.begin(), scale.std.end());
}
void SetScale(const FieldScale& scale, job::JsonField* field) {
  field->set_mean(scale.mean[0]);
  field->set_std(scale.std[0]);
}

FieldScale ScaleOf(const job::Column& field) {
  return {ListOf<double>(field.mean()), ListOf<double>(field.std())};
}
FieldScale ScaleOf(const job::JsonField& field) {
  if (!field.has_mean()) return {};
  return {{field.mean()}, {field.std()}};
}

bool IsTogether(const job::Column&) { return false; }
bool IsTogether(const job::JsonField&) { return true; }

// Whether the field waits for its mean and std.
template <typename Field>
bool IsOpen(const Field& field) {
  return field.standardize() && ScaleOf(field).mean.empty();
}

// A message that holds the field `name` of rows, of any kind of text or number.
struct FieldNotes {
  int64_t hash_buckets = 0, num_classes = 0;
  bool has_unknown = false, is_bytes = false;
};

FieldNotes NotesOf(const job::DataSet& set, const std::string& name) {
  FieldNotes notes;
  EachFieldOf(set, [&](auto* field) {
    if (field->name() != name) return;
    notes.hash_buckets = field->hash_buckets();
    notes.num_classes = field->num_classes();
    notes.has_unknown = field->categories().unknown();
    notes.is_bytes = field->text().tokenizer() == job::Tokenizer::byte;
  });
  const job::LanguageModel& model = set.language_model();
  if (set.has_language_model() &&
      (name == model.input() || name == model.label()))
    notes.is_bytes = model.text().tokenizer() == job::Tokenizer::byte;
  if (name == "label") {
    if (set.has_mnist()) notes.num_classes = set.mnist().num_classes();
    if (set.has_fashion_mnist())
      notes.num_classes = set.fashion_mnist().num_classes();
    if (set.has_cifar10()) notes.num_classes = set.cifar10().num_classes();
    if (set.has_cifar100()) notes.num_classes = set.cifar100().num_classes();
    if (set.has_image_mask_folder())
      notes.num_classes = set.image_mask_folder().num_classes();
    if (set.has_libsvm()) notes.num_classes = set.libsvm().num_classes();
  }
  for (const job::PipeField& field : set.pipe().field())
    if (field.name() == name) notes.num_classes = field.num_classes();
  for (const job::NpzField& field : set.npz().field())
    if (field.name() == name) notes.num_classes = field.num_classes();
  return notes;
}

// Sizes and scales that follow from the training set.
class TrainingFacts {
 public:
  TrainingFacts(const LoadedJob& job, DatasetPtr dataset)
      : job_(job), dataset_(std::move(dataset)) {}

  absl::StatusOr<int64_t> Size(const OpenSize& size) const {
    PD_ASSIGN_OR_RETURN(const std::string name, FieldOf(size));
    const auto& fields = dataset_->fields();
    size_t field = 0;
    while (field < fields.size() && fields[field].name != name) ++field;
    if (field == fields.size())
      return InvalidArgument("data.train has no field '%s'; it has %s", name,
                             absl::StrJoin(Names(), ", "));
    if (size.kind == "columns") return Columns(fields[field]);
    const std::optional<int64_t> words = Words(name);
    if (words.has_value()) return *words;
    if (size.kind == "vocabulary")
      return InvalidArgument(
          "the values of field '%s' are no texts with "
          "numbers",
          name);
    const FieldNotes notes = NotesOf(job_.proto().data().train(), name);
    if (notes.num_classes > 0) return notes.num_classes;
    if (!fields[field].classes.empty())
      return static_cast<int64_t>(fields[field].classes.size());
    return CountClasses(*dataset_, field);
  }

  absl::StatusOr<FieldScale> Scale(const std::string& name,
                                   bool together) const {
    const auto& fields = dataset_->fields();
    for (size_t field = 0; field < fields.size(); ++field)
      if (fields[field].name == name)
        return MeasureScale(*dataset_, field, together);
    return InvalidArgument("data.train has no field '%s'", name);
  }

 private:
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const FieldSpec& spec : dataset_->fields())
      names.push_back(absl::StrCat("'", spec.name, "'"));
    return names;
  }

  static absl::StatusOr<int64_t> Columns(const FieldSpec& spec) {
    if (spec.shape.size() == 1 && spec.shape[0] >= 0) return spec.shape[0];
    return InvalidArgument("field '%s' has the shape %s, which are no columns",
                           spec.name, ToString(spec.shape));
  }

  // How many numbers stand for texts of this field.
  std::optional<int64_t> Words(const std::string& name) const {
    const FieldNotes notes = NotesOf(job_.proto().data().train(), name);
    if (notes.hash_buckets > 0) return notes.hash_buckets;
    const auto it = dataset_->vocabularies().find(name);
    if (it != dataset_->vocabularies().end())
      return it->second->size() + (notes.has_unknown ? 1 : 0);
    if (notes.is_bytes) return 256;
    return std::nullopt;
  }

  // The field that is meant where the text names none.
  absl::StatusOr<std::string> FieldOf(const OpenSize& size) const {
    if (!size.field.empty()) return size.field;
    const job::Job& job = job_.proto();
    const std::string label =
        job.loss_size() > 0 ? job.loss(0).label() : "label";
    if (size.kind == "classes") return label;
    std::vector<std::string> names;
    if (size.kind == "columns") {
      for (int i = 0; i < job.model().input_size(); ++i) {
        names.push_back(job.model().input(i).name());
        if (absl::StartsWith(size.path, absl::StrCat("model.input[", i, "]")))
          return names.back();
      }
    } else {
      for (const FieldSpec& spec : dataset_->fields())
        if (spec.name != label && Words(spec.name).has_value())
          names.push_back(spec.name);
    }
    if (names.size() == 1) return names[0];
    return InvalidArgument(
        "'%s' does not say which field is meant: %s", size.text,
        names.empty() ? "none of data.train has texts with numbers"
                      : absl::StrCat("there are ", absl::StrJoin(names, ", "),
                                     "; write @", size.kind, "(", names[0],
                                     ") or another"));
  }

  const LoadedJob& job_;
  const DatasetPtr dataset_;
};

// A field that training standardizes is not scaled otherwise in evaluation, and
// none is scaled by what the evaluation set has.
absl::Status CheckScales(const LoadedJob& job) {
  std::set<std::string> scaled;
  EachFieldOf(job.proto().data().train(), [&](auto* field) {
    if (field->standardize()) scaled.insert(field->name());
  });
  absl::Status status;
  EachFieldOf(job.proto().data().eval(), [&](auto* field) {
    const bool known = scaled.count(field->name()) > 0;
    if (known && !field->standardize() && ScaleOf(*field).mean.empty())
      status.Update(job.At(
          InvalidArgument("data.train standardizes field '%s'; say "
                          "standardize: true here too, or leave the fields of "
                          "data.eval out",
                          field->name()),
          *field));
    if (!known && IsOpen(*field) && job.proto().data().has_train())
      status.Update(job.At(
          InvalidArgument("field '%s' is standardized here alone; mean and std "
                          "are those of data.train, which must say so too",
                          field->name()),
          *field, "standardize"));
  });
  return status;
}

// Fields whose mean and std nobody has said: name -> whether all values of a
// record share them, and the first place that asks.
struct OpenScale {
  bool together = false;
  std::string place;
};
std::map<std::string, OpenScale> OpenScales(const LoadedJob& job) {
  std::map<std::string, OpenScale> open;
  const auto note = [&](auto* field) {
    if (IsOpen(*field))
      open.emplace(field->name(), OpenScale{IsTogether(*field),
                                            job.Where(*field, "standardize")});
  };
  EachFieldOf(job.proto().data().train(), note);
  EachFieldOf(job.proto().data().eval(), note);
  return open;
}

// Takes the scales of fields from the training set of an earlier run.
absl::Status TakeScalesOf(const std::string& run,
                          std::map<std::string, OpenScale>* open,
                          Scales* scales) {
  PD_ASSIGN_OR_RETURN(const LoadedJob before,
                      ReadJob(absl::StrCat(run, "/job.pbtxt")));
  EachFieldOf(before.proto().data().train(), [&](auto* field) {
    if (!field->standardize() || IsOpen(*field) ||
        open->erase(field->name()) == 0)
      return;
    (*scales)[field->name()] = ScaleOf(*field);
  });
  return absl::OkStatus();
}

// The training set with what is to be measured as it stands in the files.
absl::StatusOr<LoadedJob> Unscaled(const LoadedJob& job) {
  return EditJob(job, [](job::Job* edited) {
    EachField(edited->mutable_data()->mutable_train(), [](auto* field) {
      if (!IsOpen(*field)) return;
      field->clear_standardize();
      field->set_dtype(job::Element::float64);
    });
  });
}

absl::Status NeedsTraining(const LoadedJob& job, const std::string& place,
                           const std::string& what) {
  if (!job.proto().data().has_train())
    return InvalidArgument(
        "%s: %s is what data.train says, which the job does not have", place,
        what);
  if (ReadsStandardInput(job.proto().data().train()))
    return InvalidArgument(
        "%s: data.train is read for %s before training, and standard input "
        "can be read only once (put the data into a file)",
        place, what);
  return absl::OkStatus();
}

absl::StatusOr<LoadedJob> WithScales(const LoadedJob& job,
                                     const Scales& scales) {
  return EditJob(job, [&](job::Job* edited) {
    const auto set = [&](auto* field) {
      const auto scale = scales.find(field->name());
      if (IsOpen(*field) && scale != scales.end())
        SetScale(scale->second, field);
    };
    if (edited->data().has_train())
      EachField(edited->mutable_data()->mutable_train(), set);
    if (edited->data().has_eval())
      EachField(edited->mutable_data()->mutable_eval(), set);
  });
}

absl::StatusOr<LoadedJob> ResolveSizes(const LoadedJob& job,
                                       const std::string& run) {
  PD_RETURN_IF_ERROR(CheckScales(job));
  const std::vector<OpenSize> sizes = OpenSizes(job);
  std::map<std::string, OpenScale> open = OpenScales(job);
  if (sizes.empty() && open.empty()) return job;
  const bool goes_on = !run.empty() && NewestCheckpoint(run).ok();
  Scales scales;
  if (goes_on && !open.empty())
    PD_RETURN_IF_ERROR(TakeScalesOf(run, &open, &scales));
  if (sizes.empty() && open.empty()) return WithScales(job, scales);
  PD_RETURN_IF_ERROR(
      sizes.empty()
          ? NeedsTraining(job, open.begin()->second.place, "standardize")
          : NeedsTraining(job, sizes[0].place, sizes[0].text));
  PD_ASSIGN_OR_RETURN(const LoadedJob scaled, WithScales(job, scales));
  PD_ASSIGN_OR_RETURN(const LoadedJob unscaled, Unscaled(scaled));
  RunVocabularies vocabularies(goes_on ? run : "");
  PD_ASSIGN_OR_RETURN(
      DatasetPtr dataset,
      OpenDataset(unscaled, unscaled.proto().data().train(), &vocabularies));
  const TrainingFacts facts(job, std::move(dataset));
  for (const auto& [name, one] : open) {
    auto scale = facts.Scale(name, one.together);
    if (!scale.ok()) return Annotate(scale.status(), one.place);
    scales[name] = *std::move(scale);
  }
  PD_ASSIGN_OR_RETURN(const LoadedJob whole, WithScales(job, scales));
  std::set<std::string> said;
  auto filled =
      FillSizes(whole, [&](const OpenSize& size) -> absl::StatusOr<int64_t> {
        auto number = facts.Size(size);
        if (!number.ok()) return Annotate(number.status(), size.place);
        said.insert(absl::StrCat(size.text, " is ", *number));
        return number;
      });
  if (filled.ok() && !said.empty())
    LogInfo("of the training data: %s", absl::StrJoin(said, ", "));
  return filled;
}

}  // namespace

absl::StatusOr<LoadedJob> ResolveJob(const LoadedJob& job,
                                     const std::string& run) {
  PD_ASSIGN_OR_RETURN(const LoadedJob whole, ResolveSizes(job, run));
  return OpenNetworks(whole, run);
}

}  // namespace pd
