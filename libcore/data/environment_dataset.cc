// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/environment_dataset.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/experience.h"

namespace pd {
namespace {

using Options = EnvironmentDatasetOptions;

// Returns of training are a mean over so many episodes.
constexpr size_t kWindow = 100;

// One environment, and what it has seen since its roll-out began.
struct Seat {
  std::unique_ptr<Environment> environment;
  std::vector<std::byte> before, actions, after;  // by step
  std::vector<float> rewards;
  std::vector<EpisodeEnd> ends;
  double episode_return = 0;  // of the episode that goes on
  int64_t episodes = 0;       // that have ended in this pass
  bool plays = true;          // in this roll-out

  void Forget() {
    before.clear();
    actions.clear();
    after.clear();
    rewards.clear();
    ends.clear();
  }
};

void Append(const std::byte* from, size_t bytes, std::vector<std::byte>* to) {
  to->insert(to->end(), from, from + bytes);
}

const std::byte* Bytes(const float& value) {
  return reinterpret_cast<const std::byte*>(&value);
}

// All random numbers of a pass come of it.
uint64_t SeedOf(const StreamPass& pass, const std::string& set) {
  const uint64_t stream = StreamOf(absl::StrCat("environments of ", set)) +
                          static_cast<uint64_t>(pass.first_batch);
  const auto block =
      Philox(pass.seed, stream).Block(static_cast<uint64_t>(pass.epoch));
  return (uint64_t{block[0]} << 32) | block[1];
}

class EnvironmentStream : public RecordStream {
 public:
  EnvironmentStream(const Options& options, const Dataset& dataset,
                    const StreamPass& pass)
      : options_(options),
        experience_(*dataset.experience()),
        pass_(pass),
        seed_(SeedOf(pass, options.program.set)),
        batch_(pass.first_batch),
        rollout_(dataset.fields(), options.batch_size),
        seats_(static_cast<size_t>(options.environments)),
        observation_bytes_(options.program.observation.bytes()),
        action_bytes_(options.program.action.bytes()),
        observations_(seats_.size() * observation_bytes_),
        chosen_(seats_.size() * action_bytes_) {}

  absl::Status StartPrograms() {
    for (size_t i = 0; i < seats_.size(); ++i) {
      // Many programs take a positive int.
      const uint32_t seed = Philox(seed_, StreamOf("programs")).U32(i) >> 1;
      PD_ASSIGN_OR_RETURN(
          seats_[i].environment,
          Environment::Start(options_.program, {static_cast<int64_t>(i), seed,
                                                pass_.interrupted}));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Next(Record* record) override {
    if (next_ == rows_.size()) {
      PD_ASSIGN_OR_RETURN(const bool more, MakeBatch());
      if (!more) return false;
    }
    const FieldTable& table =
        options_.memory > 0 ? experience_.memory : rollout_;
    const int64_t row = rows_[next_++];
    record->fields.resize(kFields);
    for (size_t i = 0; i < kFields; ++i)
      record->fields[i].data = table.Row(i, row);
    return true;
  }
  bool EndsBatch() const override { return next_ == rows_.size(); }

  void Stop() override {
    for (Seat& seat : seats_)
      if (seat.environment != nullptr) seat.environment->Stop();
  }

  static constexpr size_t kFields = 6;

 private:
  absl::StatusOr<bool> MakeBatch();
  absl::Status FillMemory();
  absl::Status Play(int64_t steps, bool whole, FieldTable* out);
  absl::Status PlayStep();
  absl::Status TakeAnswer(Seat* seat, size_t number);
  void AddRows(const Seat& seat, FieldTable* out) const;
  // An environment plays its share of the pass's episodes.
  bool HasEpisodes(size_t seat) const {
    const int64_t share = options_.episodes / options_.environments;
    const int64_t rest = options_.episodes % options_.environments;
    return options_.episodes == 0 ||
           seats_[seat].episodes <
               share + (static_cast<int64_t>(seat) < rest ? 1 : 0);
  }
  bool AnyPlays() const {
    return std::any_of(seats_.begin(), seats_.end(),
                       [](const Seat& seat) { return seat.plays; });
  }

  const Options& options_;
  Experience& experience_;
  const StreamPass pass_;
  const uint64_t seed_;
  int64_t batch_;       // the next one
  uint64_t calls_ = 0;  // of the actor
  FieldTable rollout_;
  std::vector<Seat> seats_;
  const size_t observation_bytes_, action_bytes_;
  std::vector<std::byte> observations_, chosen_;  // of all environments
  std::vector<int64_t> rows_;  // of the batch, in the memory or the roll-out
  size_t next_ = 0;
};

// The rows of the next batch; false at the pass's end.
absl::StatusOr<bool> EnvironmentStream::MakeBatch() {
  rows_.clear();
  next_ = 0;
  for (size_t i = 0; i < seats_.size(); ++i) seats_[i].plays = HasEpisodes(i);
  if (!AnyPlays() || (options_.batches > 0 && batch_ == options_.batches))
    return false;
  if (options_.memory > 0) {
    PD_RETURN_IF_ERROR(FillMemory());
    RandomStream random(seed_,
                        StreamOf("draws") + static_cast<uint64_t>(batch_));
    const auto kept = static_cast<uint64_t>(experience_.memory.rows());
    for (int64_t i = 0; i < options_.batch_size; ++i)
      rows_.push_back(static_cast<int64_t>(random.Below(kept)));
  } else {
    rollout_.Clear();
    PD_RETURN_IF_ERROR(Play(options_.batch_size / options_.environments,
                            options_.whole_episodes, &rollout_));
    for (int64_t i = 0; i < rollout_.rows(); ++i) rows_.push_back(i);
  }
  ++batch_;
  return true;
}

absl::Status EnvironmentStream::FillMemory() {
  FieldTable& memory = experience_.memory;
  const int64_t wanted = std::min(options_.memory_begin, memory.capacity());
  int64_t steps = options_.memory_steps;
  while (AnyPlays() && (steps > 0 || memory.rows() < wanted)) {
    PD_RETURN_IF_ERROR(Play(1, false, &memory));
    --steps;
    for (size_t i = 0; i < seats_.size(); ++i) seats_[i].plays = HasEpisodes(i);
  }
  return absl::OkStatus();
}

// Up to `steps` of each environment that plays, and their rows.
absl::Status EnvironmentStream::Play(int64_t steps, bool whole,
                                     FieldTable* out) {
  for (Seat& seat : seats_) seat.Forget();
  for (int64_t step = 0; step < steps && AnyPlays(); ++step) {
    PD_RETURN_IF_ERROR(PlayStep());
    for (size_t i = 0; i < seats_.size(); ++i) {
      Seat& seat = seats_[i];
      if (seat.plays && seat.ends.back() != EpisodeEnd::kNone)
        seat.plays = !whole && HasEpisodes(i);
    }
  }
  for (const Seat& seat : seats_) AddRows(seat, out);
  return absl::OkStatus();
}

absl::Status EnvironmentStream::PlayStep() {
  for (size_t i = 0; i < seats_.size(); ++i) {
    if (!seats_[i].plays) continue;
    Environment& environment = *seats_[i].environment;
    PD_RETURN_IF_ERROR(environment.Begin());
    std::memcpy(observations_.data() + i * observation_bytes_,
                environment.observation(), observation_bytes_);
  }
  PD_RETURN_IF_ERROR(Annotate(
      pass_.actor->Act(observations_.data(), seed_, calls_++, chosen_.data()),
      "choosing actions"));
  // All get their actions before the first one's answer is waited for.
  for (size_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].plays)
      PD_RETURN_IF_ERROR(
          seats_[i].environment->Send(chosen_.data() + i * action_bytes_));
  for (size_t i = 0; i < seats_.size(); ++i)
    if (seats_[i].plays) PD_RETURN_IF_ERROR(TakeAnswer(&seats_[i], i));
  return absl::OkStatus();
}

absl::Status EnvironmentStream::TakeAnswer(Seat* seat, size_t number) {
  Environment& environment = *seat->environment;
  PD_RETURN_IF_ERROR(environment.Receive());
  Append(observations_.data() + number * observation_bytes_, observation_bytes_,
         &seat->before);
  Append(chosen_.data() + number * action_bytes_, action_bytes_,
         &seat->actions);
  Append(environment.observation(), observation_bytes_, &seat->after);
  seat->rewards.push_back(static_cast<float>(environment.reward()));
  seat->ends.push_back(environment.end());
  seat->episode_return += environment.reward();
  if (environment.end() == EpisodeEnd::kNone) return absl::OkStatus();
  experience_.returns.Add(seat->episode_return);
  seat->episode_return = 0;
  ++seat->episodes;
  return absl::OkStatus();
}

// From the last step to the first, each with the return from there on.
void EnvironmentStream::AddRows(const Seat& seat, FieldTable* out) const {
  const size_t steps = seat.rewards.size();
  std::vector<float> returns(steps), discounts(steps);
  std::vector<size_t> last(steps);  // of the sum
  double sum = 0, factor = 1;
  for (size_t i = steps; i-- > 0;) {
    const bool over = seat.ends[i] != EpisodeEnd::kNone;
    if (over || i + 1 == steps) {
      sum = 0;
      factor = seat.ends[i] == EpisodeEnd::kEnded ? 0 : 1;
      last[i] = i;
    } else {
      last[i] = last[i + 1];
    }
    sum = static_cast<double>(seat.rewards[i]) + options_.discount * sum;
    factor *= options_.discount;
    returns[i] = static_cast<float>(sum);
    discounts[i] = static_cast<float>(factor);
  }
  for (size_t i = 0; i < steps; ++i)
    out->Add({seat.before.data() + i * observation_bytes_,
              seat.actions.data() + i * action_bytes_, Bytes(seat.rewards[i]),
              Bytes(returns[i]), Bytes(discounts[i]),
              seat.after.data() + last[i] * observation_bytes_});
}

class EnvironmentDataset : public Dataset {
 public:
  explicit EnvironmentDataset(const Options& options) : options_(options) {
    const auto add = [this](const char* name, DType dtype, const Shape& shape) {
      FieldSpec spec;
      spec.name = name;
      spec.dtype = dtype;
      spec.shape = shape;
      fields_.push_back(std::move(spec));
    };
    const EnvironmentTensor& seen = options.program.observation;
    const EnvironmentTensor& done = options.program.action;
    add("observation", seen.dtype, seen.shape);
    add("action", done.dtype, done.shape);
    for (const char* name : {"reward", "return", "discount"})
      add(name, DType::kFloat32, {1});
    add("next_observation", seen.dtype, seen.shape);
    size_ = options.batches * options.batch_size;
    // An evaluation is over all of its episodes.
    experience_ = std::make_unique<Experience>(
        fields_, std::max<int64_t>(options.memory, 1),
        options.program.set == "eval" ? 0 : kWindow);
  }

  bool is_stream() const override { return true; }
  Experience* experience() const override { return experience_.get(); }

  absl::StatusOr<std::unique_ptr<RecordStream>> Start(
      const StreamPass& pass) const override {
    if (pass.actor == nullptr)
      return FailedPrecondition(
          "%s: there is no network that acts in it; pd-train and pd-eval of a "
          "run have one",
          ProgramName(options_.program.command));
    if (options_.program.set == "eval") experience_->returns.Clear();
    auto stream = std::make_unique<EnvironmentStream>(options_, *this, pass);
    PD_RETURN_IF_ERROR(stream->StartPrograms());
    return stream;
  }

  absl::Status Read(int64_t index, Record*) const override {
    return FailedPrecondition("%s: records come one after the other",
                              Describe(index));
  }
  std::string Describe(int64_t index) const override {
    return absl::StrCat(ProgramName(options_.program.command), " record ",
                        index);
  }

 private:
  const Options options_;
  std::unique_ptr<Experience> experience_;
};

absl::Status CheckTensor(const EnvironmentTensor& tensor, const char* name) {
  for (int64_t extent : tensor.shape)
    if (extent < 1)
      return InvalidArgument("%s has the shape %s; every extent is 1 or more",
                             name, ToString(tensor.shape));
  PD_ASSIGN_OR_RETURN(const int64_t bytes,
                      CheckedBytes(tensor.shape, SizeOf(tensor.dtype)));
  if (bytes <= kMostArrayBytes) return absl::OkStatus();
  return ResourceExhausted("%s takes %d bytes; expected at most %d", name,
                           bytes, kMostArrayBytes);
}

// The rows that are kept fit into an array, which checkpoints need.
absl::Status CheckRows(const Options& options) {
  const int64_t rows = std::max(options.memory, options.batch_size);
  for (const EnvironmentTensor* tensor :
       {&options.program.observation, &options.program.action}) {
    Shape shape = tensor->shape;
    shape.insert(shape.begin(), rows);
    PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(tensor->dtype)).status());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenEnvironments(const Options& options) {
  PD_RETURN_IF_ERROR(CheckTensor(options.program.observation, "observation"));
  PD_RETURN_IF_ERROR(CheckTensor(options.program.action, "action"));
  PD_RETURN_IF_ERROR(CheckRows(options));
  if ((options.batches > 0) == (options.episodes > 0))
    return InvalidArgument(
        "an epoch has a number of 'batches' or of "
        "'episodes': give one of them");
  constexpr int64_t kMostRecords = int64_t{1} << 32;
  if (options.batches >= kMostRecords / options.batch_size)
    return InvalidArgument(
        "%d batches of %d records; expected fewer than %d "
        "records",
        options.batches, options.batch_size, kMostRecords);
  if (options.memory > 0 && options.whole_episodes)
    return InvalidArgument(
        "batches of a memory are of single steps: "
        "'whole_episodes' cannot stand beside 'memory'");
  if (options.memory == 0 && options.batch_size % options.environments != 0)
    return InvalidArgument(
        "a batch of %d steps does not divide among %d "
        "environments",
        options.batch_size, options.environments);
  return std::make_shared<EnvironmentDataset>(options);
}

}  // namespace pd
