// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's ChunkEvaluator over chunk_eval's chunks: F1, precision and
// recall, 0 where nothing is below the line.
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/ops/metric/chunks.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/metrics/sequences.h"

namespace pd {
namespace {

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(whole);
}

class ChunkF1Metric : public Metric {
 public:
  ChunkF1Metric(ChunkScheme scheme, ResultNames names)
      : Metric(std::move(names)), scheme_(std::move(scheme)) {}

  absl::Status Check(const MetricSpecs& specs) const override {
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kInput));
    PD_RETURN_IF_ERROR(CheckSequences(specs, MetricSlot::kLabel));
    PD_RETURN_IF_ERROR(CheckLengths(specs, MetricSlot::kLength));
    const TensorSpec& input = *specs[MetricSlot::kInput];
    const int64_t tags = scheme_.types * scheme_.tags + 1;
    if (!IsInteger(input.dtype) && input.shape[2] > tags)
      return InvalidArgument(
          "the predictions are scores %s; %d chunk types in this scheme have "
          "%d tags",
          ToString(input.shape), scheme_.types, tags);
    if (!specs[MetricSlot::kLabel].has_value()) return absl::OkStatus();
    const TensorSpec& label = *specs[MetricSlot::kLabel];
    for (size_t i : {0u, 1u})
      if (input.shape[i] >= 0 && label.shape[i] >= 0 &&
          input.shape[i] != label.shape[i])
        return LabelsDoNotFit(input, label, "a tag for each position");
    return absl::OkStatus();
  }

  void Reset() override { counts_ = ChunkCounts(); }

 private:
  absl::Status Count(const MetricBatch& batch) override {
    const Tensor* lengths = batch[MetricSlot::kLength];
    PD_ASSIGN_OR_RETURN(
        const Sequences found,
        Sequences::Of(*batch[MetricSlot::kInput], lengths, form_));
    PD_ASSIGN_OR_RETURN(
        const Sequences wanted,
        Sequences::Of(*batch[MetricSlot::kLabel], lengths, form_));
    std::vector<int64_t> tags;
    std::vector<Chunk> inferred, labelled;
    for (int64_t n = 0; n < found.count(); ++n) {
      PD_RETURN_IF_ERROR(found.Get(n, &tags));
      PD_RETURN_IF_ERROR(FindChunks(scheme_, tags, &inferred));
      PD_RETURN_IF_ERROR(wanted.Get(n, &tags));
      PD_RETURN_IF_ERROR(FindChunks(scheme_, tags, &labelled));
      counts_.Add(scheme_, inferred, labelled);
    }
    return absl::OkStatus();
  }

  std::vector<double> Values() const override {
    return {Ratio(2 * counts_.correct, counts_.inferred + counts_.labelled),
            Ratio(counts_.correct, counts_.inferred),
            Ratio(counts_.correct, counts_.labelled)};
  }

  const ChunkScheme scheme_;
  const SequenceForm form_;
  ChunkCounts counts_;
};

}  // namespace

MetricPtr MakeChunkF1(const job::Metric& metric, ResultNames names) {
  const job::ChunkF1& p = metric.chunk_f1();
  auto scheme = ChunkScheme::Of(
      job::ChunkF1::Scheme_Name(p.chunk_scheme()), p.num_chunk_types(),
      {p.excluded_chunk_types().begin(), p.excluded_chunk_types().end()});
  PD_INVARIANT(scheme.ok());  // the enum has no other names
  return std::make_unique<ChunkF1Metric>(*std::move(scheme), std::move(names));
}

}  // namespace pd
