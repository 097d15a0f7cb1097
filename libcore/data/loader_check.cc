// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/loader_check.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A stream's records have the order that they have.
absl::Status CheckStream(const Dataset& dataset, const LoaderOptions& options) {
  const SamplerOptions& sampling = options.sampling;
  if (!dataset.is_stream() ||
      !(options.shuffle || sampling.contiguous || sampling.replacement ||
        !sampling.weights.empty() || sampling.num_samples > 0 ||
        sampling.per_class > 0 || sampling.num_replicas > 1 ||
        !options.bucket_field.empty()))
    return absl::OkStatus();
  return InvalidArgument(
      "records come in the order of the stream, and shuffle, sampler, bucket "
      "and contiguous ask for another");
}

}  // namespace

absl::Status CheckLoaderOptions(const LoaderOptions& options) {
  constexpr int64_t kMostBatch = int64_t{1} << 24;
  if (options.batch_size < 1 || options.batch_size > kMostBatch)
    return InvalidArgument("batch_size is %d; expected 1 to %d",
                           options.batch_size, kMostBatch);
  if (options.num_workers < 0 || options.num_workers > 1024)
    return InvalidArgument("num_workers is %d; expected 0 to 1024",
                           options.num_workers);
  if (options.prefetch < 1 || options.prefetch > 4096)
    return InvalidArgument("prefetch is %d; expected 1 to 4096",
                           options.prefetch);
  if (options.stride < 1 || options.stride_begin < 0 ||
      options.stride_begin >= options.stride ||
      (options.stride > 1 && options.shards > 1))
    return InvalidArgument(
        "stride is %d and begins at %d; expected one of "
        "[0, stride), and no shards",
        options.stride, options.stride_begin);
  return absl::OkStatus();
}

const FieldPadding* PaddingOf(const std::string& field,
                              const std::vector<FieldPadding>& paddings) {
  for (const FieldPadding& padding : paddings)
    if (padding.field == field) return &padding;
  return nullptr;
}

// Every padding has its field, and the name of a field's lengths is free.
absl::Status CheckPaddings(const std::vector<FieldSpec>& specs,
                           const std::vector<FieldPadding>& paddings) {
  std::vector<std::string> names;
  for (const FieldSpec& spec : specs) names.push_back(spec.name);
  const auto known = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const FieldPadding& padding : paddings) {
    if (!known(padding.field))
      return NotFound("the data set has no field '%s' to pad; it has '%s'",
                      padding.field, absl::StrJoin(names, "', '"));
    if (PaddingOf(padding.field, paddings) != &padding)
      return AlreadyExists("field '%s' is padded twice", padding.field);
  }
  for (const FieldSpec& spec : specs)
    if (!spec.shape.empty() && spec.shape[0] < 0 && !spec.is_image &&
        known(absl::StrCat(spec.name, "_length")))
      return AlreadyExists(
          "the data set has a field '%s_length', which is what the lengths of "
          "'%s' are called",
          spec.name, spec.name);
  return absl::OkStatus();
}

// The options with the sampler's part filled in.
absl::StatusOr<LoaderOptions> CompleteOptions(const Dataset& dataset,
                                              LoaderOptions options) {
  PD_RETURN_IF_ERROR(CheckStream(dataset, options));
  SamplerOptions& sampling = options.sampling;
  sampling.batch_size = options.batch_size;
  sampling.shuffle = options.shuffle;
  sampling.drop_last = options.drop_last;
  sampling.seed = options.seed;
  if (!options.bucket_field.empty()) {
    const auto& fields = dataset.fields();
    size_t i = 0;
    while (i < fields.size() && fields[i].name != options.bucket_field) ++i;
    if (i == fields.size())
      return NotFound("the data set has no field '%s' to sort by length",
                      options.bucket_field);
    PD_ASSIGN_OR_RETURN(sampling.lengths, dataset.Lengths(i));
  }
  PD_RETURN_IF_ERROR(Sampler::Check(dataset.size(), sampling));
  return options;
}

}  // namespace pd
