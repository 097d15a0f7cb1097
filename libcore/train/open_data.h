// SPDX-License-Identifier: Apache-2.0
// From the data section of a job to datasets, transforms and loaders.
#ifndef PD_LIBCORE_TRAIN_OPEN_DATA_H_
#define PD_LIBCORE_TRAIN_OPEN_DATA_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/datasets.h"
#include "libcore/data/loader.h"
#include "libcore/nn/job.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {
class World;
namespace job {
class DataSet;
}

/// The dataset of `set`, which is part of `job`. Errors of files name them;
/// what contradicts the job carries its place. Vocabularies that the job does
/// not give are those of `vocabularies`, else made of data.train and added.
absl::StatusOr<DatasetPtr> OpenDataset(const LoadedJob& job,
                                       const job::DataSet& set,
                                       RunVocabularies* vocabularies);

/// The transforms of `set`, in their order.
std::vector<Transform> TransformsOf(const job::DataSet& set);

/// The data of one process among several: shards of each batch, or some of the
/// batches.
struct OwnData {
  int64_t shards = 1, begin = 0, end = 1;  ///< [begin, end) of `shards`
  /// The stride of LoaderOptions, 1 and 0 for a stream, which each process
  /// reads whole.
  int64_t stride = 1, stride_begin = 0;
  /// The batches of an evaluation that this process computes; all of them
  /// where `world` is null.
  static OwnData BatchesOf(const World* world);
  /// The shards of a training's batches. InvalidArgument with a place where
  /// there are more processes than the job has shards.
  static absl::StatusOr<OwnData> ShardsOf(const LoadedJob& job,
                                          const World* world);
};

/// A loader over OpenDataset with the batch size, order and threads of `set`;
/// the data set's notes are warnings in the log. It gives what `own` says.
absl::StatusOr<std::unique_ptr<Loader>> OpenLoader(
    const LoadedJob& job, const job::DataSet& set, uint64_t seed,
    RunVocabularies* vocabularies, const OwnData& own = {});

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_OPEN_DATA_H_
