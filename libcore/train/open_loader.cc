// SPDX-License-Identifier: Apache-2.0
// From a job's data set to batches: which records, in which order, how padded.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/shard_sum.h"
#include "libcore/dist/world.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

FieldPadding PaddingOf(const job::FieldPadding& pad) {
  FieldPadding padding;
  padding.field = pad.field();
  if (pad.has_value()) padding.value = pad.value();
  padding.length = pad.length();
  padding.multiple_of = pad.multiple_of();
  padding.max_length = pad.max_length();
  padding.left = pad.side() == job::FieldPadding::left;
  if (pad.truncate() == job::FieldPadding::start)
    padding.truncate = FieldPadding::Truncate::kStart;
  if (pad.truncate() == job::FieldPadding::never)
    padding.truncate = FieldPadding::Truncate::kNever;
  return padding;
}

absl::StatusOr<std::vector<double>> ReadWeights(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadInput(path));
  LineReader lines(file.view());
  absl::string_view line;
  std::vector<double> weights;
  while (lines.Next(&line)) {
    const auto weight = ParseNumber(line);
    if (!weight.ok())
      return Annotate(weight.status(),
                      absl::StrCat("'", path, "':", lines.number()));
    weights.push_back(*weight);
  }
  return weights;
}

// The class of each record, of an integer field with one element.
absl::StatusOr<std::vector<int64_t>> ReadClasses(const Dataset& dataset,
                                                 const std::string& name) {
  const auto& fields = dataset.fields();
  size_t field = 0;
  while (field < fields.size() && fields[field].name != name) ++field;
  if (field == fields.size())
    return NotFound("the data set has no field '%s'", name);
  const FieldSpec& spec = fields[field];
  if ((spec.dtype != DType::kInt64 && spec.dtype != DType::kInt32) ||
      IsDynamic(spec.shape) || NumElements(spec.shape) != 1)
    return InvalidArgument("field '%s' is %s%s; classes are one integer", name,
                           Name(spec.dtype), ToString(spec.shape));
  std::vector<int64_t> classes;
  Record record;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    PD_RETURN_IF_ERROR(dataset.Read(i, &record));
    const std::byte* data = record.fields[field].data;
    classes.push_back(spec.dtype == DType::kInt64
                          ? *reinterpret_cast<const int64_t*>(data)
                          : *reinterpret_cast<const int32_t*>(data));
  }
  return classes;
}

absl::StatusOr<std::vector<double>> ClassWeights(
    const Dataset& dataset, const job::WeightedRandomSampler& sampler) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> classes,
                      ReadClasses(dataset, sampler.field()));
  std::map<int64_t, int64_t> counts;
  for (int64_t c : classes) ++counts[c];
  std::vector<double> weights;
  for (int64_t c : classes) {
    if (sampler.class_weight_size() == 0) {
      weights.push_back(1.0 / static_cast<double>(counts[c]));
    } else if (c < 0 || c >= sampler.class_weight_size()) {
      return OutOfRange("class %d has no class_weight; there are %d", c,
                        sampler.class_weight_size());
    } else {
      weights.push_back(sampler.class_weight(static_cast<int>(c)));
    }
  }
  return weights;
}

absl::Status SetSampler(const job::DataSet& set, const Dataset& dataset,
                        LoaderOptions* options) {
  const job::Sampler& sampler = set.sampler();
  if (sampler.has_random()) {
    options->shuffle = true;
    options->sampling.replacement = sampler.random().replacement();
    options->sampling.num_samples = sampler.random().num_samples();
  }
  if (sampler.has_per_class()) {
    const job::PerClassSampler& per_class = sampler.per_class();
    options->sampling.per_class = per_class.records();
    options->sampling.num_samples = per_class.num_samples();
    PD_ASSIGN_OR_RETURN(options->sampling.classes,
                        ReadClasses(dataset, per_class.field()));
  }
  if (!sampler.has_weighted_random()) return absl::OkStatus();
  const job::WeightedRandomSampler& weighted = sampler.weighted_random();
  if (weighted.has_weights() == weighted.has_field())
    return InvalidArgument("give one of weights and field");
  if (weighted.has_weights() && weighted.class_weight_size() > 0)
    return InvalidArgument("class_weight is for classes, which field names");
  if (weighted.has_weights()) {
    PD_ASSIGN_OR_RETURN(options->sampling.weights,
                        ReadWeights(weighted.weights()));
  } else {
    PD_ASSIGN_OR_RETURN(options->sampling.weights,
                        ClassWeights(dataset, weighted));
  }
  options->sampling.replacement = weighted.replacement();
  options->sampling.num_samples = weighted.num_samples();
  return absl::OkStatus();
}

// One of several processes takes a part of the records; a process alone would
// leave the others out in silence.
absl::Status CheckOneProcess(const LoadedJob& job, const job::DataSet& set) {
  if (!set.has_distributed()) return absl::OkStatus();
  return job.At(
      Unimplemented("a data set's 'distributed' leaves records out; the job's "
                    "own 'distributed { shards: S }' divides batches among "
                    "processes"),
      set, "distributed");
}

absl::Status CheckOrder(const LoadedJob& job, const job::DataSet& set) {
  if (set.has_sampler() && set.shuffle())
    return job.At(
        InvalidArgument("the sampler says the order; shuffle says another"),
        set, "shuffle");
  const bool random = set.shuffle() || set.sampler().has_random() ||
                      set.sampler().has_weighted_random() ||
                      set.sampler().has_per_class();
  if (random && ReadsStandardInput(set))
    return job.At(
        InvalidArgument("standard input is taken in the order in which it "
                        "comes; %s asks for another (put the data into a file)",
                        set.shuffle() ? "shuffle" : "sampler"),
        set, set.shuffle() ? "shuffle" : "sampler");
  const auto& boundaries = set.bucket().boundaries();
  for (int i = 1; i < boundaries.size(); ++i)
    if (boundaries[i] <= boundaries[i - 1])
      return job.At(InvalidArgument("boundary %d stands behind %d; expected "
                                    "ascending lengths",
                                    boundaries[i], boundaries[i - 1]),
                    set.bucket(), "boundaries");
  return absl::OkStatus();
}

bool IsStdin(const google::protobuf::RepeatedPtrField<std::string>& paths) {
  return std::find(paths.begin(), paths.end(), "-") != paths.end();
}

template <typename Parts>
bool AnyReadsStandardInput(const Parts& parts) {
  return std::any_of(parts.begin(), parts.end(), ReadsStandardInput);
}

}  // namespace

bool ReadsStandardInput(const job::DataSet& set) {
  return IsStdin(set.csv().path()) || IsStdin(set.tsv().path()) ||
         IsStdin(set.jsonl().path()) || IsStdin(set.libsvm().path()) ||
         IsStdin(set.language_model().path()) ||
         IsStdin(set.parallel_text().source_path()) ||
         IsStdin(set.parallel_text().target_path()) ||
         AnyReadsStandardInput(set.concat().dataset()) ||
         AnyReadsStandardInput(set.compose().dataset());
}

LoaderOptions PlainLoaderOptions(const job::DataSet& set, uint64_t seed) {
  LoaderOptions options;
  options.batch_size = set.batch_size();
  options.num_workers = set.num_workers();
  options.prefetch = set.prefetch_factor();
  options.seed = seed;
  options.transforms = TransformsOf(set);
  for (const job::FieldPadding& pad : set.pad())
    options.paddings.push_back(PaddingOf(pad));
  options.skip_bad = set.on_error() == job::DataSet::skip;
  return options;
}

OwnData OwnData::BatchesOf(const World* world) {
  OwnData own;
  if (world == nullptr) return own;
  own.stride = world->size();
  own.stride_begin = world->rank();
  return own;
}

absl::StatusOr<OwnData> OwnData::ShardsOf(const LoadedJob& job,
                                          const World* world) {
  OwnData own;
  own.shards = job.proto().distributed().shards();
  const int rank = world == nullptr ? 0 : world->rank();
  const int size = world == nullptr ? 1 : world->size();
  if (size > own.shards)
    return job.At(InvalidArgument("%d processes cannot share %d shards", size,
                                  own.shards),
                  job.proto().distributed(), "shards");
  const ShardRange range = ShardRange::Of(own.shards, rank, size);
  own.begin = range.begin;
  own.end = range.end;
  return own;
}

absl::StatusOr<std::unique_ptr<Loader>> OpenLoader(
    const LoadedJob& job, const job::DataSet& set, uint64_t seed,
    RunVocabularies* vocabularies, const OwnData& own) {
  PD_RETURN_IF_ERROR(CheckOneProcess(job, set));
  PD_RETURN_IF_ERROR(CheckOrder(job, set));
  PD_ASSIGN_OR_RETURN(DatasetPtr dataset, OpenDataset(job, set, vocabularies));
  // Here, since a set is opened for its sizes and classes too.
  for (const std::string& note : dataset->notes()) LogWarning("%s", note);
  if (own.shards > 1 && dataset->is_stream())
    return job.At(
        Unimplemented("a stream of records cannot be divided into %d shards",
                      own.shards),
        set);
  LoaderOptions options = PlainLoaderOptions(set, seed);
  options.shards = own.shards;
  options.first_shard = own.begin;
  options.end_shard = own.end;
  if (!dataset->is_stream()) {
    options.stride = own.stride;
    options.stride_begin = own.stride_begin;
  }
  options.shuffle = set.shuffle();
  options.drop_last = set.drop_last();
  options.sampling.contiguous = set.contiguous();
  options.bucket_field = set.bucket().field();
  options.sampling.boundaries = ListOf<int64_t>(set.bucket().boundaries());
  options.sampling.pool = set.bucket().pool();
  absl::Status status = SetSampler(set, *dataset, &options);
  if (!status.ok()) return job.At(status, set.sampler());
  auto loader = Loader::Create(std::move(dataset), options);
  if (!loader.ok()) return job.At(loader.status(), set);
  return loader;
}

}  // namespace pd
