// SPDX-License-Identifier: Apache-2.0
// Batches of transformed records, prepared ahead by worker threads in a ring
// of buffers that is allocated once. Batches come in the sampler's order and
// hold the same bytes whatever the number of workers. Fields whose records
// differ in their extents are padded batch by batch, and a field "NAME_length",
// int64 [records], says how long each record was.
#ifndef PD_LIBCORE_DATA_LOADER_H_
#define PD_LIBCORE_DATA_LOADER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/data/dataset.h"
#include "libcore/data/padding.h"
#include "libcore/data/sampler.h"
#include "libcore/data/transforms.h"

namespace pd {

/// One field of a batch; the bytes are 64-byte aligned.
struct BatchField {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< [records of this batch, ...]
  std::byte* data = nullptr;
};

/// Valid until the next Next(), StartEpoch() or the loader's end.
struct Batch {
  int64_t index = 0;  ///< in its epoch, from 0
  int64_t size = 0;   ///< records in it
  /// Where batches are divided into shards (LoaderOptions::shards): this one's
  /// number, and the records of the whole batch.
  int64_t shard = 0, whole = 0;
  /// In the dataset's order; lengths of those that were padded at the end.
  std::vector<BatchField> fields;
  std::vector<int64_t> records;  ///< `size` record numbers
};

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;
  int num_workers = 1;  ///< 0: batches are made inside Next()
  int prefetch = 2;     ///< batches ready ahead of the consumer, at least 1
  uint64_t seed = 0;    ///< of the order and of the random transforms
  std::vector<Transform> transforms;   ///< applied to the image fields
  std::vector<FieldPadding> paddings;  ///< others are padded as by default
  /// The rest of how records are drawn; batch_size, shuffle, drop_last and seed
  /// of it are those above.
  SamplerOptions sampling;
  std::string bucket_field;  ///< takes sampling.lengths from this field
  bool skip_bad = false;     ///< leaves out records that cannot be read
  /// Each batch is divided into so many shards, equal where the batch is full.
  /// Next gives those of [first_shard, end_shard) one after the other, each as
  /// a batch of its own, also where it has no record. Not of a stream.
  int64_t shards = 1, first_shard = 0, end_shard = 1;
  /// Next gives batch `stride_begin` of an epoch and from there on every
  /// `stride`-th, each also where it has no record. Streams have stride 1, and
  /// so have shards.
  int64_t stride = 1, stride_begin = 0;
};

/// Since the loader was made.
struct LoaderStats {
  int64_t batches = 0;      ///< handed out
  double wait_seconds = 0;  ///< that Next() waited (or worked, 0 workers)
  double fill_seconds = 0;  ///< that workers spent making batches
};

class Loader {
 public:
  /// Checks the transforms against the dataset and allocates the buffers.
  /// Where image sizes differ and no transform fixes them, record 0 decides
  /// and the others must agree. InvalidArgument on options out of range.
  static absl::StatusOr<std::unique_ptr<Loader>> Create(
      std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);

  /// Stops the workers at once, in the middle of an epoch too.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The fields of a batch, or of a shard of a full one; the first extent is
  /// its records, others are -1 where each batch decides.
  const std::vector<BatchField>& fields() const;
  /// Batches of an epoch, those that a stride leaves out too; 0 also for a
  /// stream whose end shows how many.
  int64_t batches() const;
  /// LoaderOptions::stride.
  int64_t stride() const;
  /// True where records come from a stream (Dataset::is_stream): one thread
  /// reads it whatever num_workers says, from StartEpoch on and not before.
  bool is_stream() const;

  /// Begins (again) at batch `first_batch`, [0, batches()], of `epoch`. A
  /// stream is begun anew, and what is before that batch read and dropped.
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch = 0);

  /// The next batch or shard, or null at the end of the epoch. A batch of which
  /// every record was left out is passed over (Batch::index goes on counting).
  /// After an error, which names file and record, Next repeats it until
  /// StartEpoch.
  absl::StatusOr<const Batch*> Next();

  /// The network that acts where records come from environments, from the next
  /// StartEpoch on; outlives the loader's epochs. Batches are then made inside
  /// Next, whatever num_workers says.
  void set_actor(Actor* actor);

  /// Asked ten times a second while Next waits for a stream: where it gives
  /// true, Next gives Cancelled.
  void set_interrupted(std::function<bool()> interrupted);

  LoaderStats stats() const;

  /// Records that are missing from the batches given since StartEpoch.
  const BadRecords& skipped() const;
  const Dataset& dataset() const;

 private:
  class Impl;
  explicit Loader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_LOADER_H_
