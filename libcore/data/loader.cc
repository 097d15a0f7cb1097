// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/loader_check.h"
#include "libcore/data/picture_fields.h"
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
  PictureScratch scratch;
};

// One place of the ring.
struct Slot {
  Batch batch;
  std::vector<Array> buffers;  // own the fields' bytes
  absl::Status status;
  BadRecords bad;
  bool last = false;  // the stream ended in it
  bool ready = false;
};

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
  bool is_stream() const { return dataset_->is_stream(); }
  int64_t stride() const { return options_.stride; }
  const BadRecords& skipped() const { return skipped_; }
  const Dataset& dataset() const { return *dataset_; }
  void set_interrupted(std::function<bool()> interrupted) {
    interrupted_ = std::move(interrupted);
  }
  void set_actor(Actor* actor) { actor_ = actor; }

 private:
  absl::Status InitFields();
  absl::Status InitSlots();
  void InitWorker(Worker* worker) const;
  void Work(Worker* worker);
  absl::Status Take(int64_t index, std::unique_lock<std::mutex>* lock,
                    Slot* slot);
  absl::Status Await(std::unique_lock<std::mutex>* lock, const Slot* slot);
  // A stream has one reader, of its own; what a network acts in has none.
  int workers() const {
    if (acts()) return 0;
    return is_stream() ? 1 : options_.num_workers;
  }
  bool acts() const { return dataset_->experience() != nullptr; }
  absl::Status Fill(int64_t index, Worker* worker, Slot* slot);
  absl::Status FillOrRepeat(int64_t index, Worker* worker, Slot* slot);
  absl::StatusOr<bool> ReadStream(int64_t record, Record* read,
                                  absl::Status* bad);
  absl::Status PutRecord(int64_t record, int64_t place, Record* read,
                         Worker* worker, const Batch& batch);
  absl::Status FillVarying(Worker* worker, Slot* slot);
  // Pieces, that is shards or batches, count through the epoch.
  int64_t RecordOf(int64_t piece, int64_t place) const {
    return is_stream()
               ? piece * options_.batch_size + place
               : sampler_.Record(BatchOf(piece), BeginOf(piece) + place);
  }
  // Records of a piece; of a stream whose end is not known, as many as fit.
  int64_t RecordsOf(int64_t piece) const {
    return ends_unknown() ? options_.batch_size
                          : BeginOf(piece, 1) - BeginOf(piece);
  }
  // Shards of a batch that Next gives.
  int64_t pieces() const { return options_.end_shard - options_.first_shard; }
  int64_t BatchOf(int64_t piece) const {
    return piece / pieces() * options_.stride + options_.stride_begin;
  }
  // Batches of an epoch before number `batch` that Next gives.
  int64_t OwnBatches(int64_t batch) const {
    return (batch + options_.stride - 1 - options_.stride_begin) /
           options_.stride;
  }
  int64_t ShardOf(int64_t piece) const {
    return options_.first_shard + piece % pieces();
  }
  // The first record of the piece, or of the one behind it, in its batch.
  int64_t BeginOf(int64_t piece, int64_t behind = 0) const {
    return sampler_.BatchRecords(BatchOf(piece)) * (ShardOf(piece) + behind) /
           options_.shards;
  }
  // Records of a full piece.
  int64_t FullPiece() const {
    return (options_.batch_size + options_.shards - 1) / options_.shards;
  }
  bool ends_unknown() const { return is_stream() && dataset_->size() == 0; }
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
  const bool repeats_ = GetFlag<bool>("FLAGS_reader_queue_speed_test_mode");
  std::optional<PictureFields> pictures_;
  std::vector<Slot> slots_;
  Worker own_;  // of Next() where there are no workers
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;

  // Set while no worker is busy, read by all.
  Sampler sampler_;
  int64_t epoch_ = 0;
  std::unique_ptr<RecordStream> stream_;  // of this epoch
  int64_t stream_record_ = 0;             // the next that it gives
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
  std::function<bool()> interrupted_;
  Actor* actor_ = nullptr;
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
  if (stream_ != nullptr) stream_->Stop();
  for (std::thread& thread : threads_) thread.join();
}

absl::Status Loader::Impl::Init() {
  PD_ASSIGN_OR_RETURN(
      pictures_,
      PictureFields::Create(*dataset_, options_.transforms, options_.seed));
  PD_RETURN_IF_ERROR(InitFields());
  PD_RETURN_IF_ERROR(InitSlots());
  InitWorker(&own_);
  for (int i = 0; i < workers(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    InitWorker(workers_.back().get());
    threads_.emplace_back([this, i, worker = workers_.back().get()] {
      Recorder::NameThisThread(absl::StrCat("loader ", i));
      Work(worker);
    });
  }
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
    if (pictures_->Has(i)) {
      field.dtype = pictures_->dtype(i);
      field.shape = pictures_->shape(i);
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
    field.shape.insert(field.shape.begin(), FullPiece());
    if (!IsDynamic(field.shape))
      PD_RETURN_IF_ERROR(
          CheckedBytes(field.shape, SizeOf(field.dtype)).status());
    fields_.push_back(std::move(field));
  }
  for (size_t i : lengths_)
    fields_.push_back(
        {absl::StrCat(specs[i].name, "_length"), DType::kInt64, {FullPiece()}});
  return absl::OkStatus();
}

absl::Status Loader::Impl::InitSlots() {
  // One more than is ready ahead: the consumer holds a batch meanwhile.
  slots_.resize(workers() == 0 ? 1
                               : static_cast<size_t>(options_.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.batch.fields = fields_;
    slot.batch.records.reserve(static_cast<size_t>(FullPiece()));
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
  worker->records.resize(varying_ ? static_cast<size_t>(FullPiece()) : 1);
  worker->extents.resize(padders_.size());
}

absl::Status Loader::Impl::StartEpoch(int64_t epoch, int64_t first_batch) {
  if (epoch < 0)
    return InvalidArgument("epoch is %d; expected 0 or more", epoch);
  if (first_batch < 0 || (!ends_unknown() && first_batch > batches()))
    return OutOfRange("first batch is %d; expected 0 to %d", first_batch,
                      batches());
  {
    std::unique_lock<std::mutex> lock(mutex_);
    end_ = 0;  // workers take no more
    cancel_.store(true, std::memory_order_relaxed);
    if (stream_ != nullptr) stream_->Stop();
    ready_.wait(lock, [this] { return busy_ == 0; });
    cancel_.store(false, std::memory_order_relaxed);
    sampler_.StartEpoch(epoch);
    epoch_ = epoch;
    next_fill_ = next_take_ = OwnBatches(first_batch) * pieces();
    if (is_stream()) {
      stream_ = nullptr;  // one program at a time
      PD_ASSIGN_OR_RETURN(
          stream_, dataset_->Start({options_.seed, epoch, first_batch, actor_,
                                    interrupted_}));
      stream_record_ = 0;
    }
    end_ = ends_unknown() ? std::numeric_limits<int64_t>::max()
                          : OwnBatches(batches()) * pieces();
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
  if (workers() == 0) {
    slot->status = FillOrRepeat(index, &own_, slot);
    if (slot->last) end_ = index + 1;
    stats_.fill_seconds += SecondsSince(start);
    stats_.wait_seconds += SecondsSince(start);
    return slot->status;
  }
  // The slot of the batch given before is free from now on.
  work_.notify_one();
  if (!slot->ready) {
    PD_RETURN_IF_ERROR(Await(lock, slot));
    stats_.wait_seconds += SecondsSince(start);
  }
  slot->ready = false;
  return slot->status;
}

// A stream may keep one waiting for long, and whoever waits may be told to end.
absl::Status Loader::Impl::Await(std::unique_lock<std::mutex>* lock,
                                 const Slot* slot) {
  const auto ready = [slot] { return slot->ready; };
  if (interrupted_ == nullptr || !is_stream()) {
    ready_.wait(*lock, ready);
    return absl::OkStatus();
  }
  constexpr std::chrono::milliseconds kBetweenLooks(100);
  while (!ready_.wait_for(*lock, kBetweenLooks, ready))
    if (interrupted_())
      return absl::CancelledError("waiting for a record was interrupted");
  return absl::OkStatus();
}

// The number that ties the making of a batch to its use in a trace.
int64_t Loader::Impl::TraceId(int64_t index) const {
  constexpr int64_t kMostOfStream = int64_t{1} << 28;
  return number_ * (int64_t{1} << 40) +
         epoch_ * (ends_unknown() ? kMostOfStream : batches() * pieces()) +
         index + 1;
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
    if (slot.batch.size == 0 && options_.shards == 1 && options_.stride == 1)
      continue;
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
    absl::Status status = FillOrRepeat(index, worker, &slot);
    const double seconds = SecondsSince(start);
    lock.lock();
    slot.status = std::move(status);
    slot.ready = true;
    // A stream ends, and cannot be read on after an error.
    if ((slot.last || (is_stream() && !slot.status.ok())) && index < end_)
      end_ = index + 1;
    stats_.fill_seconds += seconds;
    --busy_;
    ready_.notify_all();
  }
}

// In the test mode a full batch that stands in a slot is given once more.
absl::Status Loader::Impl::FillOrRepeat(int64_t index, Worker* worker,
                                        Slot* slot) {
  if (!repeats_ || is_stream() || slot->batch.size == 0 ||
      slot->batch.size != RecordsOf(index))
    return Fill(index, worker, slot);
  slot->batch.index = BatchOf(index);
  slot->batch.shard = ShardOf(index);
  slot->batch.whole = sampler_.BatchRecords(slot->batch.index);
  return absl::OkStatus();
}

absl::Status Loader::Impl::Fill(int64_t index, Worker* worker, Slot* slot) {
  RecordEvent event("make batch");
  event.set_id(TraceId(index));
  Batch& batch = slot->batch;
  batch.index = BatchOf(index);
  batch.shard = ShardOf(index);
  batch.records.clear();
  slot->bad = BadRecords();
  slot->last = false;
  for (size_t i = 0; i < padders_.size(); ++i)
    if (padders_[i].has_value()) worker->extents[i] = padders_[i]->Smallest();
  const int64_t wanted = RecordsOf(index);
  batch.whole = is_stream() ? 0 : sampler_.BatchRecords(batch.index);
  int64_t i = 0;
  bool full = false;
  for (; i < wanted && !slot->last && !full; ++i) {
    if (cancel_.load(std::memory_order_relaxed))
      return absl::CancelledError("the loader was stopped");
    constexpr int64_t kAhead = 2;
    if (i + kAhead < wanted && !is_stream())
      dataset_->Prefetch(RecordOf(index, i + kAhead));
    const int64_t record = RecordOf(index, i);
    const auto place = static_cast<int64_t>(batch.records.size());
    // Where fields vary, records stay until the batch's extents are known.
    Record& read = worker->records[varying_ ? static_cast<size_t>(place) : 0];
    absl::Status bad;
    if (is_stream()) {
      PD_ASSIGN_OR_RETURN(const bool more, ReadStream(record, &read, &bad));
      slot->last = !more;
      if (!more) break;
      full = stream_->EndsBatch();
    } else {
      bad = dataset_->Read(record, &read);
    }
    if (bad.ok()) bad = PutRecord(record, place, &read, worker, batch);
    if (bad.ok()) {
      batch.records.push_back(record);
    } else if (options_.skip_bad) {
      slot->bad.Add(bad);
    } else {
      return bad;
    }
  }
  // The sampler leaves out what it knows of.
  if (slot->last && options_.drop_last && i < wanted) batch.records.clear();
  batch.size = static_cast<int64_t>(batch.records.size());
  for (BatchField& field : batch.fields) field.shape[0] = batch.size;
  return varying_ ? FillVarying(worker, slot) : absl::OkStatus();
}

// Reads a record of the stream; false at its end. What is wrong with the record
// alone is `bad`. The records before the first batch of a resumed epoch, which
// were seen, are read and dropped.
absl::StatusOr<bool> Loader::Impl::ReadStream(int64_t record, Record* read,
                                              absl::Status* bad) {
  for (;;) {
    if (cancel_.load(std::memory_order_relaxed))
      return absl::CancelledError("the loader was stopped");
    const absl::StatusOr<bool> more = stream_->Next(read);
    if (!more.ok() && !absl::IsOutOfRange(more.status())) return more.status();
    if (acts()) return more;  // begins where it is told to
    // The last batch that was seen may have had one record.
    if (more.ok() && !*more && stream_record_ + options_.batch_size <= record)
      return FailedPrecondition(
          "%s: the stream ended before it, and the run has seen more of this "
          "epoch: the program writes other records than before",
          dataset_->Describe(stream_record_));
    if (more.ok() && !*more) return false;
    if (stream_record_++ < record) continue;
    *bad = more.status();
    return true;
  }
}

absl::Status Loader::Impl::PutRecord(int64_t record, int64_t place,
                                     Record* read, Worker* worker,
                                     const Batch& batch) {
  const auto out_of = [&](size_t field) {
    return batch.fields[field].data +
           static_cast<size_t>(place) * record_bytes_[field];
  };
  if (!pictures_->empty()) {
    const absl::Status status =
        pictures_->Write(TransformStream(options_.seed, epoch_, record),
                         &worker->scratch, out_of, read);
    if (!status.ok()) return Annotate(status, dataset_->Describe(record));
  }
  for (size_t i = 0; i < padders_.size(); ++i) {
    if (!padders_[i].has_value()) continue;
    const absl::Status status = padders_[i]->Cut(&read->fields[i]);
    if (!status.ok()) return Annotate(status, dataset_->Describe(record));
  }
  for (size_t i = 0; i < padders_.size(); ++i) {
    if (padders_[i].has_value())
      padders_[i]->Include(read->fields[i], &worker->extents[i]);
    else if (!pictures_->Has(i))
      std::memcpy(out_of(i), read->fields[i].data, record_bytes_[i]);
  }
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

Loader::Loader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Loader::~Loader() = default;

absl::StatusOr<std::unique_ptr<Loader>> Loader::Create(
    std::shared_ptr<const Dataset> dataset, const LoaderOptions& options) {
  PD_RETURN_IF_ERROR(CheckLoaderOptions(options));
  constexpr int64_t kMostRecords = int64_t{1} << 32;
  if ((dataset->size() < 1 && !dataset->is_stream()) ||
      dataset->size() >= kMostRecords)
    return InvalidArgument("the dataset holds %d records; expected 1 to %d",
                           dataset->size(), kMostRecords - 1);
  PD_ASSIGN_OR_RETURN(const LoaderOptions complete,
                      CompleteOptions(*dataset, options));
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
int64_t Loader::stride() const { return impl_->stride(); }
bool Loader::is_stream() const { return impl_->is_stream(); }
void Loader::set_interrupted(std::function<bool()> interrupted) {
  impl_->set_interrupted(std::move(interrupted));
}
void Loader::set_actor(Actor* actor) { impl_->set_actor(actor); }
LoaderStats Loader::stats() const { return impl_->stats(); }
const BadRecords& Loader::skipped() const { return impl_->skipped(); }
const Dataset& Loader::dataset() const { return impl_->dataset(); }

}  // namespace pd
