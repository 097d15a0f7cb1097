// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "formats/array.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/pipeline.h"
#include "libcore/data/sampler.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What one thread needs to make batches.
struct Worker {
  Record record;
  TransformScratch scratch;
};

// One place of the ring.
struct Slot {
  Batch batch;
  std::vector<Array> buffers;  // own the fields' bytes
  absl::Status status;
  bool ready = false;
};

absl::Status CheckOptions(const LoaderOptions& options) {
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
  return absl::OkStatus();
}

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
      : dataset_(std::move(dataset)),
        options_(options),
        sampler_(dataset_->size(), {options.batch_size, options.shuffle,
                                    options.drop_last, options.seed}) {}
  ~Impl();

  absl::Status Init();
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch);
  absl::StatusOr<const Batch*> Next();
  LoaderStats stats() const;
  const std::vector<BatchField>& fields() const { return fields_; }
  int64_t batches() const { return sampler_.batches(); }

 private:
  absl::Status InitPipeline();
  absl::Status ProbePicture();
  absl::Status InitSlots();
  void Work(Worker* worker);
  absl::Status Fill(int64_t index, Worker* worker, Slot* slot);
  absl::Status FillRecord(int64_t record, int64_t place, Worker* worker,
                          const Batch& batch);
  absl::Status FillImage(int64_t record, const FieldView& view, Worker* worker,
                         std::byte* out);
  Slot& SlotOf(int64_t index) {
    return slots_[static_cast<size_t>(index) % slots_.size()];
  }

  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  std::vector<BatchField> fields_;
  std::vector<size_t> record_bytes_;  // of each field
  std::optional<Pipeline> pipeline_;  // where there is an image
  size_t image_ = 0;                  // the field it applies to
  int64_t height_ = 0, width_ = 0;    // of pictures after the pipeline
  std::vector<Slot> slots_;
  Worker own_;  // of Next() where there are no workers
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;

  // Set while no worker is busy, read by all.
  Sampler sampler_;
  int64_t epoch_ = 0;
  std::atomic<bool> cancel_{false};

  mutable std::mutex mutex_;
  std::condition_variable work_;   // something to do, or to stop
  std::condition_variable ready_;  // a slot got ready, or a worker idle
  bool stop_ = false;
  int busy_ = 0;
  int64_t next_fill_ = 0;  // next batch that a worker takes
  int64_t next_take_ = 0;  // next batch that Next() gives
  int64_t end_ = 0;        // batches of this epoch
  absl::Status error_;
  LoaderStats stats_;
};

Loader::Impl::~Impl() {
  cancel_.store(true, std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Loader::Impl::Init() {
  PD_RETURN_IF_ERROR(InitPipeline());
  PD_RETURN_IF_ERROR(InitSlots());
  for (int i = 0; i < options_.num_workers; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    threads_.emplace_back(
        [this, worker = workers_.back().get()] { Work(worker); });
  }
  return absl::OkStatus();
}

absl::Status Loader::Impl::InitPipeline() {
  const std::vector<FieldSpec>& specs = dataset_->fields();
  const auto image =
      std::find_if(specs.begin(), specs.end(),
                   [](const FieldSpec& s) { return s.is_image; });
  if (image == specs.end()) {
    if (options_.transforms.empty()) return absl::OkStatus();
    return InvalidArgument(
        "there are transforms, but %s holds no uint8 images to apply them to",
        dataset_->Describe(0));
  }
  image_ = static_cast<size_t>(image - specs.begin());
  PD_ASSIGN_OR_RETURN(pipeline_,
                      Pipeline::Create(image->shape, options_.transforms));
  height_ = pipeline_->picture_shape()[0];
  width_ = pipeline_->picture_shape()[1];
  if (height_ < 0 || width_ < 0) return ProbePicture();
  return absl::OkStatus();
}

absl::Status Loader::Impl::ProbePicture() {
  PD_RETURN_IF_ERROR(dataset_->Read(0, &own_.record));
  const FieldView& view = own_.record.fields[image_];
  Picture picture = {reinterpret_cast<const uint8_t*>(view.data), view.height,
                     view.width, view.channels};
  RandomStream random = TransformStream(options_.seed, 0, 0);
  const absl::Status status =
      pipeline_->Apply(&random, &own_.scratch, &picture);
  if (!status.ok()) return Annotate(status, dataset_->Describe(0));
  height_ = picture.height;
  width_ = picture.width;
  return absl::OkStatus();
}

absl::Status Loader::Impl::InitSlots() {
  const std::vector<FieldSpec>& specs = dataset_->fields();
  for (size_t i = 0; i < specs.size(); ++i) {
    BatchField field;
    field.name = specs[i].name;
    field.dtype = specs[i].dtype;
    Shape shape = specs[i].shape;
    if (pipeline_.has_value() && i == image_) {
      field.dtype = pipeline_->output_dtype();
      shape = pipeline_->ArrayShape(height_, width_);
    }
    if (IsDynamic(shape))
      return Unimplemented("field '%s' has records of different shapes",
                           field.name);
    PD_ASSIGN_OR_RETURN(const int64_t bytes,
                        CheckedBytes(shape, SizeOf(field.dtype)));
    record_bytes_.push_back(static_cast<size_t>(bytes));
    field.shape = std::move(shape);
    field.shape.insert(field.shape.begin(), options_.batch_size);
    PD_RETURN_IF_ERROR(CheckedBytes(field.shape, SizeOf(field.dtype)).status());
    fields_.push_back(std::move(field));
  }
  // One more than is ready ahead: the consumer holds a batch meanwhile.
  slots_.resize(options_.num_workers == 0
                    ? 1
                    : static_cast<size_t>(options_.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.batch.fields = fields_;
    slot.batch.records.reserve(static_cast<size_t>(options_.batch_size));
    for (BatchField& field : slot.batch.fields)
      slot.buffers.push_back(NewArray(field.dtype, field.shape, &field.data));
  }
  return absl::OkStatus();
}

absl::Status Loader::Impl::StartEpoch(int64_t epoch, int64_t first_batch) {
  if (epoch < 0)
    return InvalidArgument("epoch is %d; expected 0 or more", epoch);
  if (first_batch < 0 || first_batch > batches())
    return OutOfRange("first batch is %d; expected 0 to %d", first_batch,
                      batches());
  {
    std::unique_lock<std::mutex> lock(mutex_);
    end_ = 0;  // workers take no more
    cancel_.store(true, std::memory_order_relaxed);
    ready_.wait(lock, [this] { return busy_ == 0; });
    cancel_.store(false, std::memory_order_relaxed);
    sampler_.StartEpoch(epoch);
    epoch_ = epoch;
    next_fill_ = next_take_ = first_batch;
    end_ = batches();
    error_ = absl::OkStatus();
    for (Slot& slot : slots_) slot.ready = false;
  }
  work_.notify_all();
  return absl::OkStatus();
}

absl::StatusOr<const Batch*> Loader::Impl::Next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!error_.ok()) return error_;
  if (next_take_ >= end_) return nullptr;
  const int64_t index = next_take_++;
  Slot& slot = SlotOf(index);
  if (options_.num_workers == 0) {
    const Clock::time_point start = Clock::now();
    slot.status = Fill(index, &own_, &slot);
    stats_.fill_seconds += SecondsSince(start);
    stats_.wait_seconds += SecondsSince(start);
  } else {
    // The slot of the batch given before is free from now on.
    work_.notify_one();
    if (!slot.ready) {
      const Clock::time_point start = Clock::now();
      ready_.wait(lock, [&slot] { return slot.ready; });
      stats_.wait_seconds += SecondsSince(start);
    }
    slot.ready = false;
  }
  if (!slot.status.ok()) {
    error_ = slot.status;
    return error_;
  }
  ++stats_.batches;
  return &slot.batch;
}

LoaderStats Loader::Impl::stats() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stats_;
}

void Loader::Impl::Work(Worker* worker) {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    // The consumer holds batch next_take_ - 1 in its slot.
    const int64_t places = static_cast<int64_t>(slots_.size());
    work_.wait(lock, [&] {
      return stop_ ||
             (next_fill_ < end_ && next_fill_ < next_take_ + places - 1);
    });
    if (stop_) return;
    const int64_t index = next_fill_++;
    Slot& slot = SlotOf(index);
    ++busy_;
    lock.unlock();
    const Clock::time_point start = Clock::now();
    absl::Status status = Fill(index, worker, &slot);
    const double seconds = SecondsSince(start);
    lock.lock();
    slot.status = std::move(status);
    slot.ready = true;
    stats_.fill_seconds += seconds;
    --busy_;
    ready_.notify_all();
  }
}

absl::Status Loader::Impl::Fill(int64_t index, Worker* worker, Slot* slot) {
  Batch& batch = slot->batch;
  batch.index = index;
  batch.size = sampler_.BatchRecords(index);
  batch.records.resize(static_cast<size_t>(batch.size));
  for (BatchField& field : batch.fields) field.shape[0] = batch.size;
  for (int64_t place = 0; place < batch.size; ++place) {
    if (cancel_.load(std::memory_order_relaxed))
      return absl::CancelledError("the loader was stopped");
    constexpr int64_t kAhead = 2;
    if (place + kAhead < batch.size)
      dataset_->Prefetch(sampler_.Record(index, place + kAhead));
    const int64_t record = sampler_.Record(index, place);
    batch.records[static_cast<size_t>(place)] = record;
    PD_RETURN_IF_ERROR(FillRecord(record, place, worker, batch));
  }
  return absl::OkStatus();
}

absl::Status Loader::Impl::FillRecord(int64_t record, int64_t place,
                                      Worker* worker, const Batch& batch) {
  PD_RETURN_IF_ERROR(dataset_->Read(record, &worker->record));
  for (size_t i = 0; i < batch.fields.size(); ++i) {
    const FieldView& view = worker->record.fields[i];
    std::byte* out =
        batch.fields[i].data + static_cast<size_t>(place) * record_bytes_[i];
    if (pipeline_.has_value() && i == image_) {
      PD_RETURN_IF_ERROR(FillImage(record, view, worker, out));
    } else {
      std::memcpy(out, view.data, record_bytes_[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status Loader::Impl::FillImage(int64_t record, const FieldView& view,
                                     Worker* worker, std::byte* out) {
  Picture picture = {reinterpret_cast<const uint8_t*>(view.data), view.height,
                     view.width, view.channels};
  RandomStream random = TransformStream(options_.seed, epoch_, record);
  const absl::Status status =
      pipeline_->Apply(&random, &worker->scratch, &picture);
  if (!status.ok()) return Annotate(status, dataset_->Describe(record));
  if (picture.height != height_ || picture.width != width_) {
    return InvalidArgument(
        "%s: the image is %d x %d pixels after the transforms; the batch holds "
        "%d x %d (add Resize or a crop)",
        dataset_->Describe(record), picture.width, picture.height, width_,
        height_);
  }
  pipeline_->Write(picture, out);
  return absl::OkStatus();
}

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(
    std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  PD_RETURN_IF_ERROR(CheckOptions(options));
  constexpr int64_t kMostRecords = int64_t{1} << 32;
  if (dataset->size() < 1 || dataset->size() >= kMostRecords)
    return InvalidArgument("the dataset holds %d records; expected 1 to %d",
                           dataset->size(), kMostRecords - 1);
  auto impl = std::make_unique<Impl>(std::move(dataset), options);
  PD_RETURN_IF_ERROR(impl->Init());
  return std::unique_ptr<Loader>(new Loader(std::move(impl)));
}

const std::vector<BatchField>& Loader::fields() const {
  return impl_->fields();
}
int64_t Loader::batches() const { return impl_->batches(); }
absl::Status Loader::StartEpoch(int64_t epoch, int64_t first_batch) {
  return impl_->StartEpoch(epoch, first_batch);
}
absl::StatusOr<const Batch*> Loader::Next() { return impl_->Next(); }
LoaderStats Loader::stats() const { return impl_->stats(); }

}  // namespace pd
