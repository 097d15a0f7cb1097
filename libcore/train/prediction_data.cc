// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/prediction_data.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/text_pieces.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/data/transforms.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

enum class Form {
  kOwn,
  kCsv,
  kTsv,
  kJsonl,
  kLibSvm,
  kText,
  kPictures,
  kArrays
};

constexpr std::pair<const char*, Form> kForms[] = {
    {"csv", Form::kCsv},     {"tsv", Form::kTsv},
    {"jsonl", Form::kJsonl}, {"libsvm", Form::kLibSvm},
    {"text", Form::kText},   {"txt", Form::kText},
    {"npz", Form::kArrays},  {"npy", Form::kArrays},
    {"svm", Form::kLibSvm},  {"pictures", Form::kPictures}};

std::optional<Form> FormNamed(absl::string_view name) {
  for (const auto& [known, form] : kForms)
    if (name == known) return form;
  return std::nullopt;
}

Form FormOfSet(const job::DataSet& leaf) {
  switch (leaf.kind_case()) {
    case job::DataSet::kCsv:
      return Form::kCsv;
    case job::DataSet::kTsv:
      return Form::kTsv;
    case job::DataSet::kJsonl:
      return Form::kJsonl;
    case job::DataSet::kLibsvm:
      return Form::kLibSvm;
    case job::DataSet::kNpz:
    case job::DataSet::kPipe:
    case job::DataSet::kEnvironment:
      return Form::kArrays;
    case job::DataSet::kLanguageModel:
    case job::DataSet::kParallelText:
      return Form::kText;
    default:
      return Form::kPictures;
  }
}

// By the name's ending, without ".gz".
std::optional<Form> FormOfPath(const std::string& path) {
  if (IsFolder(path) || IsPictureName(path)) return Form::kPictures;
  std::string name = absl::AsciiStrToLower(path);
  if (absl::EndsWith(name, ".gz")) name.resize(name.size() - 3);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return std::nullopt;
  return FormNamed(absl::string_view(name).substr(dot + 1));
}

// A text of a set, however the set calls it.
struct TextField {
  std::string name;
  const job::Text* text = nullptr;  // null: that of `model`
  const job::LanguageModel* model = nullptr;
};

std::vector<TextField> TextFieldsOf(const job::DataSet& leaf) {
  std::vector<TextField> fields;
  const auto add_columns = [&fields](const auto& all) {
    for (const auto& field : all)
      if (field.has_text()) fields.push_back({field.name(), &field.text()});
  };
  add_columns(leaf.csv().field());
  add_columns(leaf.tsv().field());
  add_columns(leaf.jsonl().field());
  if (leaf.has_language_model()) {
    const job::LanguageModel& model = leaf.language_model();
    for (const std::string& name : {model.input(), model.label()})
      fields.push_back({name, nullptr, &model});
  }
  if (leaf.has_parallel_text()) {
    const job::ParallelText& text = leaf.parallel_text();
    const job::Text& target = text.has_target() ? text.target() : text.source();
    fields.push_back({text.source_name(), &text.source()});
    if (text.target_path_size() > 0)
      for (const std::string& name : {text.target_name(), text.label_name()})
        fields.push_back({name, &target});
  }
  return fields;
}

absl::StatusOr<TextOptions> OptionsOf(OpenContext* context,
                                      const TextField& field) {
  return field.model != nullptr
             ? TextOptionsOf(context, *field.model, field.name)
             : TextOptionsOf(context, *field.text, field.name);
}

}  // namespace

const job::DataSet& FirstPartOf(const job::DataSet& set) {
  return set.has_concat() && set.concat().dataset_size() > 0
             ? FirstPartOf(set.concat().dataset(0))
             : set;
}

class PredictionData::Impl {
 public:
  Impl(const LoadedJob& job, const job::DataSet& set,
       std::vector<FeedSpec> inputs, RunVocabularies* vocabularies,
       PredictionSources sources)
      : job_(job),
        set_(set),
        leaf_(FirstPartOf(set)),
        inputs_(std::move(inputs)),
        vocabularies_(vocabularies),
        sources_(std::move(sources)),
        context_(job, false, vocabularies) {
    for (const FeedSpec& input : inputs_) {
      wanted_.insert(input.name);
      if (absl::EndsWith(input.name, "_length"))
        wanted_.insert(input.name.substr(0, input.name.size() - 7));
    }
    context_.set_wanted(&wanted_);
    context_.set_skip_bad(set.on_error() == job::DataSet::skip ||
                          leaf_.on_error() == job::DataSet::skip);
    if (sources_.paths.empty()) sources_.paths.push_back("");
  }

  absl::StatusOr<std::unique_ptr<Loader>> Next();
  const BadRecords& left_out() const { return left_out_; }

 private:
  absl::Status Begin();
  absl::Status BeginCsv(Form form);
  absl::Status BeginText();
  std::vector<TextField> TextsRead() const;
  absl::StatusOr<DatasetPtr> OpenPiece();
  absl::StatusOr<DatasetPtr> InForm(absl::StatusOr<DatasetPtr> opened) const;
  absl::StatusOr<DatasetPtr> OpenWhole();
  absl::StatusOr<DatasetPtr> OpenPicturesFrom();
  absl::StatusOr<DatasetPtr> OpenArrays() const;
  absl::StatusOr<Form> FormOf(const std::string& path) const;
  absl::StatusOr<std::unique_ptr<Loader>> Load(DatasetPtr dataset);
  absl::Status NotDescribed(const char* what) const;
  absl::Status CheckTransforms() const;

  const LoadedJob& job_;
  const job::DataSet& set_;
  const job::DataSet& leaf_;
  const std::vector<FeedSpec> inputs_;
  RunVocabularies* vocabularies_;
  PredictionSources sources_;
  OpenContext context_;
  std::set<std::string> wanted_;
  BadRecords left_out_;

  size_t next_ = 0;  // source
  std::string path_;
  Form form_ = Form::kOwn;
  std::unique_ptr<TextPieces> pieces_;  // of the source under way
  std::optional<CsvFile> head_;         // its header, once it was read
  TextPiece piece_;
  // How its pieces are read, by form.
  CsvDatasetOptions csv_;
  JsonlDatasetOptions jsonl_;
  LibSvmDatasetOptions libsvm_;
  ParallelTextOptions text_;
  std::vector<FieldPadding> paddings_;  // besides the set's
};

absl::Status PredictionData::Impl::NotDescribed(const char* what) const {
  return job_.At(
      InvalidArgument("'%s' is to be read as %s, which this data set does not "
                      "describe (--from says what it is)",
                      path_, what),
      leaf_);
}

absl::StatusOr<Form> PredictionData::Impl::FormOf(
    const std::string& path) const {
  if (path.empty()) return Form::kOwn;
  if (!sources_.form.empty()) {
    const auto form = FormNamed(sources_.form);
    if (!form.has_value())
      return InvalidArgument("'%s' is no form of data", sources_.form);
    return *form;
  }
  return FormOfPath(path).value_or(FormOfSet(leaf_));
}

absl::Status PredictionData::Impl::BeginCsv(Form form) {
  if (!leaf_.has_csv() && !leaf_.has_tsv())
    return NotDescribed("columns of a table");
  const job::Csv& csv = leaf_.has_csv() ? leaf_.csv() : leaf_.tsv();
  PD_ASSIGN_OR_RETURN(
      csv_, CsvOptionsOf(&context_, csv, form == Form::kTsv ? '\t' : ','));
  return absl::OkStatus();
}

std::vector<TextField> PredictionData::Impl::TextsRead() const {
  std::vector<TextField> fields;
  for (const TextField& field : TextFieldsOf(leaf_))
    if (context_.Wants(field.name)) fields.push_back(field);
  return fields;
}

// An error of reading a source whose form is a guess says so: most often the
// source holds the texts alone.
absl::StatusOr<DatasetPtr> PredictionData::Impl::InForm(
    absl::StatusOr<DatasetPtr> opened) const {
  if (opened.ok() || !sources_.form.empty() || FormOfPath(path_).has_value())
    return opened;
  return absl::Status(
      opened.status().code(),
      absl::StrCat(
          opened.status().message(), "; it was read as ",
          form_ == Form::kJsonl ? "lines of JSON" : "a table",
          ", like the job's data set: --from says what it is",
          TextsRead().size() == 1 ? ", --from text a text a line" : ""));
}

// Each line is the only text that the network reads.
absl::Status PredictionData::Impl::BeginText() {
  const std::vector<TextField> fields = TextsRead();
  if (fields.size() != 1)
    return fields.empty()
               ? NotDescribed("lines of text")
               : job_.At(InvalidArgument("the network reads %d texts, '%s' and "
                                         "'%s'; a line of '%s' is one",
                                         fields.size(), fields[0].name,
                                         fields[1].name, path_),
                         leaf_);
  text_ = {};
  PD_ASSIGN_OR_RETURN(text_.source, OptionsOf(&context_, fields[0]));
  text_.source_name = fields[0].name;
  text_.source_paths = {path_};
  text_.skip_bad = context_.skip_bad();
  // A window of a running text has as many tokens as the network takes.
  for (const FeedSpec& input : inputs_) {
    if (fields[0].model == nullptr || input.name != fields[0].name ||
        input.shape.size() < 2 || input.shape[1] < 0)
      continue;
    FieldPadding padding;
    padding.field = input.name;
    padding.length = padding.max_length = input.shape[1];
    padding.truncate = FieldPadding::Truncate::kNever;
    paddings_ = {padding};
  }
  return absl::OkStatus();
}

// Opens the next source.
absl::Status PredictionData::Impl::Begin() {
  path_ = sources_.paths[next_++];
  PD_ASSIGN_OR_RETURN(form_, FormOf(path_));
  head_.reset();
  paddings_.clear();
  TextPieceOptions pieces;
  switch (form_) {
    case Form::kCsv:
    case Form::kTsv:
      PD_RETURN_IF_ERROR(BeginCsv(form_));
      pieces.quoting = csv_.quoting;
      pieces.delimiter = csv_.delimiter;
      break;
    case Form::kJsonl: {
      if (!leaf_.has_jsonl()) return NotDescribed("lines of JSON");
      PD_ASSIGN_OR_RETURN(jsonl_, JsonlOptionsOf(&context_, leaf_.jsonl()));
      jsonl_.paths = {path_};
      break;
    }
    case Form::kLibSvm: {
      if (!leaf_.has_libsvm()) return NotDescribed("LIBSVM's lines");
      PD_ASSIGN_OR_RETURN(libsvm_, LibSvmOptionsOf(&context_, leaf_.libsvm()));
      libsvm_.paths = {path_};
      break;
    }
    case Form::kText:
      PD_RETURN_IF_ERROR(BeginText());
      break;
    default:
      return absl::OkStatus();
  }
  // Whole batches, so that there are few sizes to plan for.
  const int64_t batch = set_.batch_size();
  pieces.records = (pieces.records + batch - 1) / batch * batch;
  PD_ASSIGN_OR_RETURN(pieces_, TextPieces::Open(path_, pieces));
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> PredictionData::Impl::OpenPiece() {
  switch (form_) {
    case Form::kJsonl:
      jsonl_.piece = &piece_;
      return InForm(OpenJsonl(jsonl_));
    case Form::kLibSvm:
      libsvm_.piece = &piece_;
      return OpenLibSvm(libsvm_);
    case Form::kText:
      text_.piece = &piece_;
      return OpenParallelText(text_);
    default:
      break;
  }
  CsvFile rows;
  if (!head_.has_value()) {
    CsvOptions options;
    options.header = csv_.header;
    options.delimiter = csv_.delimiter;
    options.quoting = csv_.quoting;
    PD_ASSIGN_OR_RETURN(head_, ParseCsvHead(path_, piece_.bytes, options));
    rows = *head_;
    head_->file = {};
  } else {
    rows = *head_;
    rows.file = piece_.bytes;
    rows.body = 0;
    rows.body_line = piece_.first_line;
  }
  csv_.piece = &rows;
  auto dataset = OpenCsv(csv_);
  csv_.piece = nullptr;
  return InForm(std::move(dataset));
}

// Predictions of a picture are the same each time.
absl::Status PredictionData::Impl::CheckTransforms() const {
  const std::vector<Transform> transforms = TransformsOf(set_);
  if (std::none_of(transforms.begin(), transforms.end(), IsRandom))
    return absl::OkStatus();
  return job_.At(
      InvalidArgument("this data set changes pictures at random; data.eval "
                      "with transforms that do not is needed to predict"),
      set_);
}

// This source, and those behind it that are pictures too.
absl::StatusOr<DatasetPtr> PredictionData::Impl::OpenPicturesFrom() {
  if (inputs_.size() != 1)
    return job_.At(InvalidArgument("the network has %d inputs; a picture is "
                                   "one ('%s')",
                                   inputs_.size(), path_),
                   leaf_);
  const std::vector<Transform> transforms = TransformsOf(set_);
  PicturesOptions options;
  options.field = inputs_[0].name;
  // MNIST's digits are grey, and may lie in a network's input in any shape.
  options.channels = leaf_.has_mnist() || leaf_.has_fashion_mnist()
                         ? 1
                         : PictureChannels(inputs_[0].shape, transforms);
  options.paths = {path_};
  for (; next_ < sources_.paths.size(); ++next_) {
    PD_ASSIGN_OR_RETURN(const Form form, FormOf(sources_.paths[next_]));
    if (form != Form::kPictures) break;
    options.paths.push_back(sources_.paths[next_]);
  }
  return OpenPictures(options);
}

absl::StatusOr<DatasetPtr> PredictionData::Impl::OpenArrays() const {
  ArrayDatasetOptions options;
  options.path = path_;
  for (const std::string& name : wanted_)
    options.fields.push_back({name, name});
  for (const job::NpzField& field : leaf_.npz().field())
    for (ArrayField& wanted : options.fields)
      if (wanted.name == field.name() && field.has_array())
        wanted.array = field.array();
  return OpenNpz(options);
}

absl::StatusOr<DatasetPtr> PredictionData::Impl::OpenWhole() {
  if (form_ == Form::kPictures) return OpenPicturesFrom();
  if (form_ == Form::kArrays) return OpenArrays();
  return OpenDataset(job_, set_, vocabularies_);
}

absl::StatusOr<std::unique_ptr<Loader>> PredictionData::Impl::Load(
    DatasetPtr dataset) {
  LoaderOptions options = PlainLoaderOptions(set_, job_.proto().train().seed());
  options.skip_bad = context_.skip_bad();
  const auto& fields = dataset->fields();
  const bool image = std::any_of(fields.begin(), fields.end(),
                                 [](const FieldSpec& f) { return f.is_image; });
  if (!image) options.transforms.clear();
  if (image && form_ != Form::kOwn && form_ != Form::kArrays)
    PD_RETURN_IF_ERROR(CheckTransforms());
  const auto missing = [&dataset](const FieldPadding& padding) {
    return dataset->FindField(padding.field) == nullptr;
  };
  auto& paddings = options.paddings;
  paddings.erase(std::remove_if(paddings.begin(), paddings.end(), missing),
                 paddings.end());
  if (paddings.empty()) paddings = paddings_;
  auto loader = Loader::Create(std::move(dataset), options);
  if (!loader.ok()) return job_.At(loader.status(), set_);
  return loader;
}

absl::StatusOr<std::unique_ptr<Loader>> PredictionData::Impl::Next() {
  for (;;) {
    if (pieces_ != nullptr) {
      PD_ASSIGN_OR_RETURN(const bool more, pieces_->Next(&piece_));
      if (more) {
        PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenPiece());
        left_out_.Add(dataset->left_out());
        if (dataset->size() > 0) return Load(std::move(dataset));
        continue;
      }
      pieces_ = nullptr;
    }
    if (next_ == sources_.paths.size()) return nullptr;
    PD_RETURN_IF_ERROR(Begin());
    if (pieces_ != nullptr) continue;
    PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenWhole());
    left_out_.Add(dataset->left_out());
    return Load(std::move(dataset));
  }
}

PredictionData::PredictionData(const LoadedJob& job, const job::DataSet& set,
                               std::vector<FeedSpec> inputs,
                               RunVocabularies* vocabularies,
                               PredictionSources sources)
    : impl_(std::make_unique<Impl>(job, set, std::move(inputs), vocabularies,
                                   std::move(sources))) {}

PredictionData::~PredictionData() = default;

absl::StatusOr<std::unique_ptr<Loader>> PredictionData::Next() {
  return impl_->Next();
}

const BadRecords& PredictionData::left_out() const { return impl_->left_out(); }

absl::StatusOr<WordsByField> AllWordsOf(const LoadedJob& job,
                                        const job::DataSet& set,
                                        RunVocabularies* vocabularies) {
  OpenContext context(job, false, vocabularies);
  WordsByField words;
  for (const TextField& text : TextFieldsOf(FirstPartOf(set))) {
    PD_ASSIGN_OR_RETURN(const TextOptions options, OptionsOf(&context, text));
    PD_ASSIGN_OR_RETURN(words[text.name], TextEncoder::Create(options));
  }
  return words;
}

absl::StatusOr<std::unique_ptr<TextEncoder>> WordsOf(
    const LoadedJob& job, const job::DataSet& set, const std::string& field,
    RunVocabularies* vocabularies) {
  OpenContext context(job, false, vocabularies);
  for (const TextField& text : TextFieldsOf(FirstPartOf(set))) {
    if (text.name != field) continue;
    PD_ASSIGN_OR_RETURN(const TextOptions options, OptionsOf(&context, text));
    return TextEncoder::Create(options);
  }
  return nullptr;
}

}  // namespace pd
