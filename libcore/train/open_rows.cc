// SPDX-License-Identifier: Apache-2.0
// Data sets of rows of a job.
#include <memory>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

absl::StatusOr<CategoryOptions> CategoriesOf(OpenContext* context,
                                             const job::Categories& categories,
                                             const std::string& field) {
  CategoryOptions options;
  options.unknown = categories.unknown();
  if (categories.has_path() && categories.value_size() > 0)
    return context->job().At(
        InvalidArgument("give the names either in a file or as values"),
        categories, "value");
  if (categories.has_path()) {
    PD_ASSIGN_OR_RETURN(Vocabulary names, Vocabulary::Read(categories.path()));
    options.names = std::make_shared<const Vocabulary>(std::move(names));
  } else if (categories.value_size() > 0) {
    auto names = Vocabulary::Make(ListOf<std::string>(categories.value()));
    if (!names.ok())
      return context->job().At(names.status(), categories, "value");
    options.names = std::make_shared<const Vocabulary>(*std::move(names));
  } else {
    PD_ASSIGN_OR_RETURN(options.names, context->Words(field, {}, categories));
  }
  return options;
}

bool HasMean(const job::Column& field) { return field.mean_size() > 0; }
bool HasMean(const job::JsonField& field) { return field.has_mean(); }

// The options that Column and JsonField have in common.
template <typename Message>
absl::StatusOr<ValueOptions> ValueOf(OpenContext* context,
                                     const Message& field) {
  ValueOptions options;
  options.dtype = DTypeOf(field.dtype());
  options.classes = field.num_classes();
  if (field.has_missing()) options.missing = field.missing();
  options.log1p = field.log1p();
  options.hash_buckets = field.hash_buckets();
  if (field.standardize() && !HasMean(field))
    return context->job().At(
        InvalidArgument("the mean and std of field '%s' in data.train are not "
                        "known yet",
                        field.name()),
        field, "standardize");
  const bool text =
      field.has_text() || field.has_categories() || field.has_hash_buckets();
  if (text && field.has_dtype() && options.dtype != DType::kInt64)
    return context->job().At(
        InvalidArgument("field '%s' is a text as numbers, which are int64",
                        field.name()),
        field, "dtype");
  if (field.has_picture() && field.has_dtype())
    return context->job().At(
        InvalidArgument("field '%s' is a picture, whose pixels are uint8 until "
                        "the transforms make floats of them, or a mask, whose "
                        "classes are int64: leave dtype out",
                        field.name()),
        field, "dtype");
  if (field.has_picture())
    options.picture = {field.picture().folder(), field.picture().grey(),
                       field.picture().mask()};
  if (field.has_categories()) {
    PD_ASSIGN_OR_RETURN(
        options.categories,
        CategoriesOf(context, field.categories(), field.name()));
  }
  if (field.has_text()) {
    PD_ASSIGN_OR_RETURN(options.text,
                        TextOptionsOf(context, field.text(), field.name()));
  }
  return options;
}

}  // namespace

absl::StatusOr<CsvDatasetOptions> CsvOptionsOf(OpenContext* context,
                                               const job::Csv& csv,
                                               char delimiter) {
  CsvDatasetOptions options;
  options.paths = ListOf<std::string>(csv.path());
  options.header = csv.header();
  options.quoting = csv.quoting();
  options.delimiter = delimiter;
  options.skip_bad = context->skip_bad();
  if (csv.has_delimiter()) {
    if (csv.delimiter().size() != 1 || csv.delimiter() == "\n" ||
        csv.delimiter() == "\r" || (csv.quoting() && csv.delimiter() == "\""))
      return context->job().At(
          InvalidArgument("the delimiter is %d bytes long or ends lines or "
                          "fields; expected one character",
                          csv.delimiter().size()),
          csv, "delimiter");
    options.delimiter = csv.delimiter().front();
  }
  for (const job::Column& column : csv.field()) {
    CsvField field;
    field.name = column.name();
    field.columns = ListOf<std::string>(column.column());
    if (!context->Wants(column.name())) {
      field.unused = true;
      options.fields.push_back(std::move(field));
      continue;
    }
    PD_ASSIGN_OR_RETURN(field.value, ValueOf(context, column));
    PD_ASSIGN_OR_RETURN(field.known, context->Columns(column.name()));
    field.value.mean = ListOf<double>(column.mean());
    field.value.std = ListOf<double>(column.std());
    options.fields.push_back(std::move(field));
  }
  return options;
}

absl::StatusOr<JsonlDatasetOptions> JsonlOptionsOf(OpenContext* context,
                                                   const job::Jsonl& jsonl) {
  JsonlDatasetOptions options;
  options.paths = ListOf<std::string>(jsonl.path());
  options.skip_bad = context->skip_bad();
  for (const job::JsonField& wanted : jsonl.field()) {
    if (!context->Wants(wanted.name())) continue;
    JsonlField field;
    field.name = wanted.name();
    field.path = wanted.path();
    field.shape = ListOf<int64_t>(wanted.shape());
    PD_ASSIGN_OR_RETURN(field.value, ValueOf(context, wanted));
    if (wanted.has_mean()) field.value.mean = {wanted.mean()};
    if (wanted.has_std()) field.value.std = {wanted.std()};
    options.fields.push_back(std::move(field));
  }
  return options;
}

absl::StatusOr<LibSvmDatasetOptions> LibSvmOptionsOf(OpenContext* context,
                                                     const job::LibSvm& svm) {
  LibSvmDatasetOptions options;
  options.paths = ListOf<std::string>(svm.path());
  options.features = svm.num_features();
  options.sparse = svm.sparse();
  options.zero_based = svm.zero_based();
  options.classes = svm.num_classes();
  options.label_values = ListOf<double>(svm.label_value());
  options.skip_bad = context->skip_bad();
  if (options.classes > 0 && !options.label_values.empty() &&
      static_cast<int64_t>(options.label_values.size()) != options.classes)
    return context->job().At(
        InvalidArgument("there are %d label values for %d classes",
                        options.label_values.size(), options.classes),
        svm, "label_value");
  if (options.classes == 0 && !options.label_values.empty())
    options.classes = static_cast<int64_t>(options.label_values.size());
  // Lines begin with a number all the same.
  if (!context->Wants("label")) {
    options.classes = 0;
    options.label_values.clear();
  }
  return options;
}

absl::StatusOr<DatasetPtr> OpenRowsOf(OpenContext* context,
                                      const job::DataSet& set) {
  if (set.has_csv() || set.has_tsv()) {
    PD_ASSIGN_OR_RETURN(const CsvDatasetOptions options,
                        set.has_csv() ? CsvOptionsOf(context, set.csv(), ',')
                                      : CsvOptionsOf(context, set.tsv(), '\t'));
    return OpenCsv(options);
  }
  if (set.has_jsonl()) {
    PD_ASSIGN_OR_RETURN(const JsonlDatasetOptions options,
                        JsonlOptionsOf(context, set.jsonl()));
    return OpenJsonl(options);
  }
  PD_ASSIGN_OR_RETURN(const LibSvmDatasetOptions options,
                      LibSvmOptionsOf(context, set.libsvm()));
  return OpenLibSvm(options);
}

}  // namespace pd
