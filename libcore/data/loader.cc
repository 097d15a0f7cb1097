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

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/pipeline.h"
#include "libcore/ir/array.h"
#include "libcore/trace/recorder.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The buffers that one thread needs to make batches.
struct Worker {
  std::vector<Record> records;  // one, or one for each place of a batch
  std::vector<Padder::Extents> extents;  // of the batch, by field
  TransformScratch scratch, mask_scratch;
};

Picture PictureOf(const FieldView& view) {
  return {reinterpret_cast<const uint8_t*>(view.data), view.height, view.width,
          view.channels};
}

// One place of the ring.
struct Slot {
  Batch batch;
  std::vector<Array> buffers;  // own the fields' bytes
  absl::Status status;
  BadRecords bad;
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
absl::StatusOr<LoaderOptions> Complete(const Dataset& dataset,
                                       LoaderOptions options) {
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

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
      : dataset_(std::move(dataset)),
        options_(options),
        sampler_(dataset_->size(), options.sampling) {}
  ~Impl();

  absl::Status Init();
  absl::Status StartEpoch(int64_t epoch, int64_t first_batch);
  absl::StatusOr<const Batch*> Next();
  LoaderStats stats() const;
  const std::vector<BatchField>& fields() const { return fields_; }
  int64_t batches() const { return sampler_.batches(); }
  const BadRecords& skipped() const { return skipped_; }
  const Dataset& dataset() const { return *dataset_; }

 private:
  absl::Status InitPipeline();
  absl::Status ProbePicture();
  absl::Status InitFields();
  absl::Status InitSlots();
  void InitWorker(Worker* worker) const;
  void Work(Worker* worker);
  absl::Status Take(int64_t index, std::unique_lock<std::mutex>* lock,
                    Slot* slot);
  absl::Status Fill(int64_t index, Worker* worker, Slot* slot);
  absl::Status FillRecord(int64_t record, int64_t place, Worker* worker,
                          const Batch& batch);
  absl::Status FillVarying(Worker* worker, Slot* slot);
  absl::Status FillImage(int64_t record, int64_t place, const Record& read,
                         Worker* worker, const Batch& batch);
  int64_t TraceId(int64_t index) const;
  Slot& SlotOf(int64_t index) {
    return slots_[static_cast<size_t>(index) % slots_.size()];
  }

  static int64_t NextNumber() {
    static std::atomic<int64_t> next{0};
    return next++;
  }

  const int64_t number_ = NextNumber();  // tells loaders apart
  const std::shared_ptr<const Dataset> dataset_;
  const LoaderOptions options_;
  std::vector<BatchField> fields_;
  std::vector<size_t> record_bytes_;            // of each field of one shape
  std::vector<std::optional<Padder>> padders_;  // of each field that varies
  std::vector<size_t> lengths_;  // fields whose lengths follow the others
  bool varying_ = false;
  std::optional<Pipeline> pipeline_;  // where there is an image
  size_t image_ = 0;                  // the field it applies to
  std::optional<size_t> mask_;        // and the image's mask
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
  BadRecords skipped_;
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
  PD_RETURN_IF_ERROR(InitFields());
  PD_RETURN_IF_ERROR(InitSlots());
  InitWorker(&own_);
  for (int i = 0; i < options_.num_workers; ++i) {
    workers_.push_back(std::make_unique<Worker>());
    InitWorker(workers_.back().get());
    threads_.emplace_back([this, i, worker = workers_.back().get()] {
      Recorder::NameThisThread(absl::StrCat("loader ", i));
      Work(worker);
    });
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
  const auto mask = std::find_if(specs.begin(), specs.end(),
                                 [](const FieldSpec& s) { return s.is_mask; });
  if (mask != specs.end()) mask_ = static_cast<size_t>(mask - specs.begin());
  PD_ASSIGN_OR_RETURN(pipeline_,
                      Pipeline::Create(image->shape, options_.transforms));
  height_ = pipeline_->picture_shape()[0];
  width_ = pipeline_->picture_shape()[1];
  if (height_ < 0 || width_ < 0) return ProbePicture();
  return absl::OkStatus();
}

absl::Status Loader::Impl::ProbePicture() {
  Record record;
  PD_RETURN_IF_ERROR(dataset_->Read(0, &record));
  Picture picture = PictureOf(record.fields[image_]);
  RandomStream random = TransformStream(options_.seed, 0, 0);
  const absl::Status status =
      pipeline_->Apply(&random, &own_.scratch, &picture);
  if (!status.ok()) return Annotate(status, dataset_->Describe(0));
  height_ = picture.height;
  width_ = picture.width;
  return absl::OkStatus();
}

absl::Status Loader::Impl::InitFields() {
  const std::vector<FieldSpec>& specs = dataset_->fields();
  PD_RETURN_IF_ERROR(CheckPaddings(specs, options_.paddings));
  padders_.resize(specs.size());
  record_bytes_.resize(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    BatchField field;
    field.name = specs[i].name;
    field.dtype = specs[i].dtype;
    field.shape = specs[i].shape;
    if (pipeline_.has_value() && i == image_) {
      field.dtype = pipeline_->output_dtype();
      field.shape = pipeline_->ArrayShape(height_, width_);
    }
    if (mask_ == i) {
      field.dtype = DType::kInt64;
      field.shape = {height_, width_};
    }
    const FieldPadding* padding = PaddingOf(specs[i].name, options_.paddings);
    if (IsDynamic(field.shape)) {
      PD_ASSIGN_OR_RETURN(
          padders_[i],
          Padder::Create(specs[i], padding != nullptr
                                       ? *padding
                                       : FieldPadding{specs[i].name}));
      field.shape = padders_[i]->shape();
      varying_ = true;
      if (specs[i].shape[0] < 0) lengths_.push_back(i);
    } else if (padding != nullptr) {
      return InvalidArgument(
          "field '%s' cannot be padded: all its records have the shape %s",
          field.name, ToString(field.shape));
    } else {
      PD_ASSIGN_OR_RETURN(const int64_t bytes,
                          CheckedBytes(field.shape, SizeOf(field.dtype)));
      record_bytes_[i] = static_cast<size_t>(bytes);
    }
    field.shape.insert(field.shape.begin(), options_.batch_size);
    if (!IsDynamic(field.shape))
      PD_RETURN_IF_ERROR(
          CheckedBytes(field.shape, SizeOf(field.dtype)).status());
    fields_.push_back(std::move(field));
  }
  for (size_t i : lengths_)
    fields_.push_back({absl::StrCat(specs[i].name, "_length"),
                       DType::kInt64,
                       {options_.batch_size}});
  return absl::OkStatus();
}

absl::Status Loader::Impl::InitSlots() {
  // One more than is ready ahead: the consumer holds a batch meanwhile.
  slots_.resize(options_.num_workers == 0
                    ? 1
                    : static_cast<size_t>(options_.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.batch.fields = fields_;
    slot.batch.records.reserve(static_cast<size_t>(options_.batch_size));
    for (BatchField& field : slot.batch.fields) {
      Shape shape = field.shape;
      if (IsDynamic(shape)) shape = {0};  // grows with the batches
      PD_ASSIGN_OR_RETURN(Array buffer,
                          NewArray(field.dtype, std::move(shape), &field.data));
      slot.buffers.push_back(std::move(buffer));
    }
  }
  return absl::OkStatus();
}

void Loader::Impl::InitWorker(Worker* worker) const {
  worker->records.resize(varying_ ? static_cast<size_t>(options_.batch_size)
                                  : 1);
  worker->extents.resize(padders_.size());
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
    skipped_ = BadRecords();
    for (Slot& slot : slots_) slot.ready = false;
  }
  work_.notify_all();
  return absl::OkStatus();
}

// Waits for batch `index`, or makes it.
absl::Status Loader::Impl::Take(int64_t index,
                                std::unique_lock<std::mutex>* lock,
                                Slot* slot) {
  const Clock::time_point start = Clock::now();
  if (options_.num_workers == 0) {
    slot->status = Fill(index, &own_, slot);
    stats_.fill_seconds += SecondsSince(start);
    stats_.wait_seconds += SecondsSince(start);
    return slot->status;
  }
  // The slot of the batch given before is free from now on.
  work_.notify_one();
  if (!slot->ready) {
    ready_.wait(*lock, [slot] { return slot->ready; });
    stats_.wait_seconds += SecondsSince(start);
  }
  slot->ready = false;
  return slot->status;
}

// The number that ties the making of a batch to its use in a trace.
int64_t Loader::Impl::TraceId(int64_t index) const {
  return number_ * (int64_t{1} << 40) + epoch_ * batches() + index + 1;
}

absl::StatusOr<const Batch*> Loader::Impl::Next() {
  RecordEvent event("DataLoader", EventType::kDataloader);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!error_.ok()) return error_;
  while (next_take_ < end_) {
    const int64_t index = next_take_++;
    event.set_id(TraceId(index));
    Slot& slot = SlotOf(index);
    error_ = Take(index, &lock, &slot);
    if (!error_.ok()) return error_;
    if (slot.bad.count > 0) skipped_.Add(slot.bad);
    if (slot.batch.size == 0) continue;
    ++stats_.batches;
    return &slot.batch;
  }
  return nullptr;
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
  RecordEvent event("make batch");
  event.set_id(TraceId(index));
  Batch& batch = slot->batch;
  batch.index = index;
  batch.records.clear();
  slot->bad = BadRecords();
  for (size_t i = 0; i < padders_.size(); ++i)
    if (padders_[i].has_value()) worker->extents[i] = padders_[i]->Smallest();
  const int64_t wanted = sampler_.BatchRecords(index);
  for (int64_t i = 0; i < wanted; ++i) {
    if (cancel_.load(std::memory_order_relaxed))
      return absl::CancelledError("the loader was stopped");
    constexpr int64_t kAhead = 2;
    if (i + kAhead < wanted)
      dataset_->Prefetch(sampler_.Record(index, i + kAhead));
    const int64_t record = sampler_.Record(index, i);
    const auto place = static_cast<int64_t>(batch.records.size());
    const absl::Status status = FillRecord(record, place, worker, batch);
    if (status.ok()) {
      batch.records.push_back(record);
    } else if (options_.skip_bad) {
      slot->bad.Add(status);
    } else {
      return status;
    }
  }
  batch.size = static_cast<int64_t>(batch.records.size());
  for (BatchField& field : batch.fields) field.shape[0] = batch.size;
  return varying_ ? FillVarying(worker, slot) : absl::OkStatus();
}

absl::Status Loader::Impl::FillRecord(int64_t record, int64_t place,
                                      Worker* worker, const Batch& batch) {
  // Where fields vary, records stay until the batch's extents are known.
  Record& read = worker->records[varying_ ? static_cast<size_t>(place) : 0];
  PD_RETURN_IF_ERROR(dataset_->Read(record, &read));
  for (size_t i = 0; i < padders_.size(); ++i) {
    if (!padders_[i].has_value()) continue;
    const absl::Status status = padders_[i]->Cut(&read.fields[i]);
    if (!status.ok()) return Annotate(status, dataset_->Describe(record));
  }
  for (size_t i = 0; i < padders_.size(); ++i) {
    if (padders_[i].has_value() || mask_ == i) continue;
    if (pipeline_.has_value() && i == image_) {
      PD_RETURN_IF_ERROR(FillImage(record, place, read, worker, batch));
    } else {
      std::memcpy(
          batch.fields[i].data + static_cast<size_t>(place) * record_bytes_[i],
          read.fields[i].data, record_bytes_[i]);
    }
  }
  for (size_t i = 0; i < padders_.size(); ++i)
    if (padders_[i].has_value())
      padders_[i]->Include(read.fields[i], &worker->extents[i]);
  return absl::OkStatus();
}

absl::Status Loader::Impl::FillVarying(Worker* worker, Slot* slot) {
  Batch& batch = slot->batch;
  for (size_t i = 0; i < padders_.size(); ++i) {
    if (!padders_[i].has_value()) continue;
    BatchField& field = batch.fields[i];
    Padder::Extents& extents = worker->extents[i];
    padders_[i]->Round(&extents);
    std::copy_n(extents.begin(), field.shape.size() - 1,
                field.shape.begin() + 1);
    PD_ASSIGN_OR_RETURN(const int64_t needed,
                        CheckedBytes(field.shape, SizeOf(field.dtype)));
    Array& buffer = slot->buffers[i];
    if (static_cast<size_t>(needed) > buffer.size_bytes()) {
      const int64_t room = needed + needed / 4;
      const auto element = static_cast<int64_t>(SizeOf(field.dtype));
      PD_ASSIGN_OR_RETURN(
          buffer, NewArray(field.dtype, {room / element + 1}, &field.data));
    }
    const int64_t stride = batch.size > 0 ? needed / batch.size : 0;
    for (int64_t place = 0; place < batch.size; ++place)
      padders_[i]->Write(worker->records[static_cast<size_t>(place)].fields[i],
                         extents, field.data + place * stride);
  }
  for (size_t n = 0; n < lengths_.size(); ++n) {
    auto* out =
        reinterpret_cast<int64_t*>(batch.fields[padders_.size() + n].data);
    for (int64_t place = 0; place < batch.size; ++place)
      out[place] = worker->records[static_cast<size_t>(place)]
                       .fields[lengths_[n]]
                       .extents[0];
  }
  return absl::OkStatus();
}

absl::Status Loader::Impl::FillImage(int64_t record, int64_t place,
                                     const Record& read, Worker* worker,
                                     const Batch& batch) {
  Picture picture = PictureOf(read.fields[image_]), mask;
  RandomStream random = TransformStream(options_.seed, epoch_, record);
  absl::Status status;
  if (mask_.has_value()) {
    mask = PictureOf(read.fields[*mask_]);
    status = pipeline_->ApplyWithMask(&random, &worker->scratch, &picture,
                                      &worker->mask_scratch, &mask);
  } else {
    status = pipeline_->Apply(&random, &worker->scratch, &picture);
  }
  if (!status.ok()) return Annotate(status, dataset_->Describe(record));
  if (picture.height != height_ || picture.width != width_) {
    return InvalidArgument(
        "%s: the image is %d x %d pixels after the transforms; the batch holds "
        "%d x %d (add Resize or a crop)",
        dataset_->Describe(record), picture.width, picture.height, width_,
        height_);
  }
  const auto out_of = [&](size_t field) {
    return batch.fields[field].data +
           static_cast<size_t>(place) * record_bytes_[field];
  };
  pipeline_->Write(picture, out_of(image_));
  if (mask_.has_value())
    std::copy_n(mask.pixels, height_ * width_,
                reinterpret_cast<int64_t*>(out_of(*mask_)));
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
  PD_ASSIGN_OR_RETURN(const LoaderOptions complete,
                      Complete(*dataset, options));
  auto impl = std::make_unique<Impl>(std::move(dataset), complete);
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
const BadRecords& Loader::skipped() const { return impl_->skipped(); }
const Dataset& Loader::dataset() const { return impl_->dataset(); }

}  // namespace pd
