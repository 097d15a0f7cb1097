// SPDX-License-Identifier: Apache-2.0
// generate: a decoder reads the beginnings of sequences, an id is chosen for
// each, and a loop has the decoder read what was chosen, as long as a sequence
// is open. The ids lie in a tensor that has its length from the beginning. With
// beam search the rows of all tensors are the sequences that are followed,
// those of a record beside each other. Keys and values that attention keeps lie
// in tensors of their final length, too (filled_caches.h).
#include <algorithm>
#include <climits>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/filled_caches.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/loop.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;
using Ints = std::vector<int32_t>;

// The logarithm of the probability of what must not come.
constexpr double kNever = -1e9;

// Where all sequences stand.
struct Sequences {
  std::string ids;       // int64 [rows, places]
  std::string last;      // int64 [rows, 1]: what was written last
  std::string place;     // int64 [1]: where the next ids go
  std::string finished;  // int64 [rows, 1]: 1 behind the id that ends it
  std::string scores;    // float32 [rows, 1]
  std::string lengths;   // int64 [rows, 1]: how many ids were written

  std::vector<std::string*> all() {
    return {&ids, &last, &place, &finished, &scores, &lengths};
  }
};

// The results of one step of the decoder.
struct Decoded {
  std::string logits;  // float32 [rows, words]
  std::vector<LayerInput> states;
};

class Generator {
 public:
  explicit Generator(LayerContext* c)
      : c_(c),
        p_(c->layer().generate()),
        ops_(c->main()),
        beams_(p_.decode_strategy() == job::DecodeStrategy::beam_search
                   ? p_.num_beams()
                   : 1) {}

  absl::StatusOr<std::string> Build() {
    PD_RETURN_IF_ERROR(Begin());
    PD_ASSIGN_OR_RETURN(Decoded made, Decode(first_ids_, inits_));
    cached_ = p_.use_cache() && !made.states.empty();
    PD_RETURN_IF_ERROR(CheckStates(made.states));
    grows_ = GrowingStates::Find(made.states, *c_);
    Sequences s = start_;
    PD_RETURN_IF_ERROR(Choose(made.logits, &s, &made.states));
    if (p_.max_length() > 1 || !prompt_lengths_.empty())
      PD_RETURN_IF_ERROR(GoOn(std::move(made.states), &s));
    return End(s);
  }

 private:
  bool searches() const {
    return p_.decode_strategy() == job::DecodeStrategy::beam_search;
  }

  // The error of the chain's ops, said to be this layer's.
  absl::Status Check() const {
    return Annotate(ops_.Give("").status(), c_->Described());
  }

  // [N, ...] -> [rows, ...]
  std::string ToRows(const std::string& x) {
    if (beams_ == 1) return x;
    return ops_.Unary("repeat_interleave", x,
                      {{"Repeats", int32_t{beams_}}, {"dim", int32_t{0}}});
  }

  // [as many as `like` has, width], all `value`.
  std::string Everywhere(const std::string& like, int32_t width, DType dtype,
                         double value) {
    return ops_.Op("fill_constant_batch_size_like", {{"Input", like}}, {"Out"},
                   {{"shape", Ints{-1, width}},
                    {"dtype", static_cast<int32_t>(dtype)},
                    {"value", static_cast<float>(value)},
                    {"str_value", absl::StrCat(static_cast<int64_t>(value))},
                    {"input_dim_idx", int32_t{0}},
                    {"output_dim_idx", int32_t{0}}});
  }

  // Places [begin, end) of axis 1; `end`, where it is given, is a tensor.
  std::string Slice(const std::string& x, int32_t begin,
                    const std::string& end = "", bool drops_axis = false) {
    return ops_.Op("slice", {{"Input", x}, {"EndsTensorList", end}}, {"Out"},
                   {{"axes", Ints{1}},
                    {"starts", Ints{begin}},
                    {"ends", Ints{end.empty() ? INT_MAX : -1}},
                    {"infer_flags", Ints{end.empty() ? 1 : -1}},
                    {"decrease_axis", drops_axis ? Ints{1} : Ints{}}});
  }

  std::string SumOfRow(const std::string& x) {
    return ops_.Reduce("reduce_sum", x, {1}, true);
  }

  // 1 - x
  std::string Not(const std::string& x) { return ops_.Scale(x, -1, 1); }

  // a where `which` is 0, b where it is 1.
  std::string Either(const std::string& a, const std::string& b,
                     const std::string& which) {
    return ops_.Add(a, ops_.Mul(which, ops_.Sub(b, a)));
  }

  // The beginnings of the sequences, [N, length].
  absl::StatusOr<std::string> Prompt() {
    if (p_.has_bos_token_id()) {
      if (c_->input_count() > 0)
        return InvalidArgument(
            "'bos_token_id' stands for the beginnings; leave out 'input', or "
            "it");
      const auto& kwargs = c_->AllNamed("kwargs");
      const auto& inits = c_->AllNamed("inits");
      if (kwargs.empty() && inits.empty())
        return InvalidArgument(
            "with 'bos_token_id' the layer reads no beginnings; 'kwargs' or "
            "'inits' says how many sequences there are");
      return Everywhere(kwargs.empty() ? inits[0].variable : kwargs[0].variable,
                        1, DType::kInt64,
                        static_cast<double>(p_.bos_token_id()));
    }
    if (c_->dtype() != DType::kInt64 || c_->shape().size() != 2)
      return c_->Misfit(
          absl::StrCat("ids int64 [N, length], not ", Name(c_->dtype())));
    return c_->input();
  }

  absl::Status Begin() {
    if (p_.has_seed() && p_.decode_strategy() != job::DecodeStrategy::sampling)
      return InvalidArgument("'seed' is for decode_strategy: sampling");
    for (const char* field : {"inits", "kwargs"})
      for (const LayerInput& one : c_->AllNamed(field))
        if (c_->ShapeOf(one.variable).empty())
          return c_->Misfit(absl::StrCat("[N, ...] for '", field, "'"), one);
    PD_ASSIGN_OR_RETURN(const std::string given, Prompt());
    const std::string prompt = ToRows(given);
    inits_ = c_->AllNamed("inits");
    kwargs_ = c_->AllNamed("kwargs");
    for (auto* list : {&inits_, &kwargs_})
      for (LayerInput& one : *list) one.variable = ToRows(one.variable);
    const double pad = static_cast<double>(
        p_.has_pad_token_id() ? p_.pad_token_id() : p_.eos_token_id());
    const std::string open =
        Everywhere(prompt, p_.max_length(), DType::kInt64, pad);
    if (!ops_.ok()) return Check();
    OpDesc concat;
    concat.type = "concat";
    concat.SetInput("X", {prompt, open});
    concat.attrs["axis"] = int32_t{1};
    PD_ASSIGN_OR_RETURN(start_.ids, c_->Append(std::move(concat), {"Out"}));
    // The decoder does not read the last id.
    if (p_.has_max_positions())
      start_.ids = Slice(
          start_.ids, 0,
          ops_.Binary("elementwise_min",
                      ops_.Cast(ops_.Extent(start_.ids, 1), DType::kInt64),
                      ops_.Full({1}, DType::kInt64, p_.max_positions() + 1.0)));
    places_ = ops_.Scale(
        ops_.Unary("cumsum",
                   ops_.Unary("fill_any_like", start_.ids,
                              {{"value", 1.0f},
                               {"dtype", static_cast<int32_t>(DType::kInt64)}}),
                   {{"axis", int32_t{1}}}),
        1, -1);
    end_ = ops_.Cast(ops_.Extent(start_.ids, 1), DType::kInt64);
    PD_RETURN_IF_ERROR(ReadLengths(prompt));
    start_.last = Slice(prompt, -1);
    start_.finished = Everywhere(prompt, 1, DType::kInt64, 0);
    start_.lengths = start_.finished;
    start_.scores = Everywhere(prompt, 1, DType::kFloat32, 0);
    if (p_.decode_strategy() == job::DecodeStrategy::sampling)
      random_ = ops_.Unary("uniform_random_inplace",
                           ops_.Cast(start_.ids, DType::kFloat32),
                           {{"min", 0.0f}, {"max", 1.0f}, {"seed", p_.seed()}});
    if (searches()) BeginSearch(given);
    return Check();
  }

  // The place of the first id to write, and what the decoder reads before it.
  absl::Status ReadLengths(const std::string& prompt) {
    const LayerInput* lengths = c_->Named("sequence_length");
    if (lengths == nullptr) {
      first_ids_ = prompt;
      start_.place = ops_.Cast(ops_.Extent(prompt, 1), DType::kInt64);
      return absl::OkStatus();
    }
    if (p_.has_bos_token_id())
      return InvalidArgument(
          "'sequence_length' is about beginnings, and 'bos_token_id' stands "
          "for "
          "them; leave one of the two out");
    const Shape& shape = c_->ShapeOf(lengths->variable);
    if (c_->TypeOf(lengths->variable) != DType::kInt64 || shape.empty() ||
        shape.size() > 2 || (shape.size() == 2 && shape[1] != 1))
      return c_->Misfit("int64 [N] for 'sequence_length'", *lengths);
    prompt_lengths_ =
        ToRows(ops_.Reshape(lengths->variable, {-1, 1}));  // [rows, 1]
    start_.place =
        ops_.Reshape(ops_.Reduce("reduce_min", prompt_lengths_), {1});
    first_ids_ = Slice(prompt, 0, start_.place);
    return absl::OkStatus();
  }

  // All sequences of a record begin alike: only the first one counts.
  void BeginSearch(const std::string& given) {
    std::vector<double> first(static_cast<size_t>(beams_), kNever), numbers;
    first[0] = 0;
    for (int i = 0; i < beams_; ++i) numbers.push_back(i);
    start_.scores =
        ops_.Reshape(ops_.Add(Everywhere(given, beams_, DType::kFloat32, 0),
                              ops_.Values({beams_}, DType::kFloat32, first)),
                     {-1, 1});
    own_ = ops_.Values({beams_}, DType::kInt64, numbers);
    // Where a record's rows begin, [N, 1].
    // (Not by `exclusive`: PaddlePaddle's executor runs it in place, to zeros.)
    rows_ = ops_.Scale(
        ops_.Unary("cumsum", Everywhere(given, 1, DType::kInt64, beams_),
                   {{"axis", int32_t{0}}}),
        1, -beams_);
  }

  // One step of the decoder.
  absl::StatusOr<Decoded> Decode(const std::string& ids,
                                 const std::vector<LayerInput>& states) {
    PD_RETURN_IF_ERROR(Check());
    LayerReads reads;
    reads.inputs.push_back({ids, absl::StrCat("a step of ", c_->Called())});
    reads.inputs.insert(reads.inputs.end(), kwargs_.begin(), kwargs_.end());
    reads.inputs.insert(reads.inputs.end(), states.begin(), states.end());
    PD_ASSIGN_OR_RETURN(LayerResults made,
                        c_->Part("decoder", std::move(reads)));
    Decoded decoded;
    PD_ASSIGN_OR_RETURN(decoded.logits, LastLogits(made.first.variable));
    for (LayerOutput& other : made.others)
      decoded.states.push_back({std::move(other.variable),
                                absl::StrCat("'", other.name, "'"),
                                std::move(other.group)});
    return decoded;
  }

  absl::StatusOr<std::string> LastLogits(const std::string& logits) {
    const Shape shape = c_->ShapeOf(logits);
    if (c_->TypeOf(logits) != DType::kFloat32 || shape.size() < 2 ||
        shape.size() > 3 || shape.back() < 1)
      return InvalidArgument(
          "the decoder gives %s%s; expected logits float32 [N, length, words] "
          "or "
          "[N, words]",
          Name(c_->TypeOf(logits)), ToString(shape));
    words_ = shape.back();
    if (p_.eos_token_id() >= words_)
      return InvalidArgument(
          "'eos_token_id' is %d; there are logits of %d words",
          p_.eos_token_id(), words_);
    if (words_ > std::numeric_limits<int32_t>::max() / beams_)
      return InvalidArgument("%d words for %d sequences are too many", words_,
                             beams_);
    const std::string last =
        shape.size() == 2 ? logits : Slice(logits, -1, "", true);
    PD_RETURN_IF_ERROR(Check());
    return last;
  }

  // A search picks rows of states, so these must be those of the sequences.
  absl::Status CheckStates(const std::vector<LayerInput>& states) const {
    if (!cached_) return absl::OkStatus();
    const int64_t rows = c_->ShapeOf(start_.ids)[0];
    for (const std::string& name : VariablesOf(states)) {
      const Shape& shape = c_->ShapeOf(name);
      if (searches() && (shape.empty() || shape[0] != rows))
        return InvalidArgument(
            "a state of the decoder is %s; beam_search takes states whose "
            "first "
            "axis is that of the sequences",
            ToString(shape));
    }
    return absl::OkStatus();
  }

  // The loop behind the first ids.
  absl::Status GoOn(std::vector<LayerInput> states, Sequences* s) {
    if (!cached_) states.clear();
    GrowingStates growing(c_, grows_);
    PD_ASSIGN_OR_RETURN(Names counts, growing.MakeRoom(end_, &states));
    PD_RETURN_IF_ERROR(Check());
    Loop loop(c_);
    const std::string condition = Open(*s);
    PD_RETURN_IF_ERROR(Check());
    for (std::string* one : s->all()) {
      PD_ASSIGN_OR_RETURN(*one, loop.Add(*one, "what was written"));
    }
    Names carried;
    for (const std::string& name : VariablesOf(states)) {
      PD_ASSIGN_OR_RETURN(
          std::string one,
          loop.Add(name, absl::StrCat("state ", carried.size() + 1,
                                      " of the decoder")));
      carried.push_back(std::move(one));
    }
    states = WithVariables(std::move(states), carried);
    for (std::string& count : counts) {
      PD_ASSIGN_OR_RETURN(count, loop.Add(count, "how many keys there are"));
    }
    const absl::Status status =
        loop.Build(condition, [&]() -> absl::StatusOr<Loop::Run> {
          growing.BeginRun(states, counts, places_);
          Sequences next = *s;
          const std::string ids =
              cached_ ? next.last : Slice(next.ids, 0, next.place);
          PD_ASSIGN_OR_RETURN(Decoded made,
                              Decode(ids, cached_ ? states : inits_));
          if (!cached_) made.states.clear();
          PD_ASSIGN_OR_RETURN(const Names filled,
                              growing.CountsOf(made.states));
          PD_RETURN_IF_ERROR(Choose(made.logits, &next, &made.states));
          Loop::Run run;
          run.condition = Open(next);
          for (std::string* one : next.all()) run.values.push_back(*one);
          for (std::string& one : VariablesOf(made.states))
            run.values.push_back(std::move(one));
          run.values.insert(run.values.end(), filled.begin(), filled.end());
          PD_RETURN_IF_ERROR(Check());
          return run;
        });
    c_->filled()->BeginRun(kNoBlock);
    return status;
  }

  // Whether there is a place left and a sequence that has not ended.
  std::string Open(const Sequences& s) {
    const std::string left = ops_.Binary("less_than", s.place, end_);
    if (!p_.has_eos_token_id()) return left;
    const std::string ended =
        ops_.Reshape(ops_.Reduce("reduce_min", s.finished), {1});
    const std::string one = ops_.Full({1}, DType::kInt64, 1);
    return ops_.Binary("logical_and", left,
                       ops_.Binary("less_than", ended, one));
  }

  // Writes the next id of each sequence.
  absl::Status Choose(const std::string& logits, Sequences* s,
                      std::vector<LayerInput>* states) {
    PD_RETURN_IF_ERROR(Check());
    const std::string here =
        ops_.Cast(ops_.Binary("equal", places_, s->place), DType::kInt64);
    std::string begun;  // [rows, 1]: 1 where the beginning has an id here
    if (!prompt_lengths_.empty())
      begun = ops_.Cast(ops_.Binary("greater_than", prompt_lengths_, s->place),
                        DType::kInt64);
    const std::string log_probs =
        ops_.Unary("log_softmax", logits, {{"axis", int32_t{-1}}});
    std::string id, gain;
    if (searches()) {
      id = Search(log_probs, begun, s, states);
    } else {
      id = p_.decode_strategy() == job::DecodeStrategy::sampling
               ? Sample(logits, here)
               : ops_.Unary("arg_max", logits,
                            {{"axis", int64_t{-1}},
                             {"keepdims", true},
                             {"flatten", false},
                             {"dtype", static_cast<int32_t>(DType::kInt64)}});
      gain =
          ops_.Op("index_sample", {{"X", log_probs}, {"Index", id}}, {"Out"});
    }
    Write(std::move(id), gain, here, begun, s);
    return Check();
  }

  // `gain`: the logarithms of the probabilities of `id`; "" where the scores
  // have them already.
  void Write(std::string id, const std::string& gain, const std::string& here,
             const std::string& begun, Sequences* s) {
    std::string counts = Not(s->finished);
    if (!begun.empty()) {
      id = Either(id, SumOfRow(ops_.Mul(s->ids, here)), begun);
      counts = ops_.Mul(counts, Not(begun));
    }
    if (p_.has_eos_token_id()) {
      const double pad = static_cast<double>(
          p_.has_pad_token_id() ? p_.pad_token_id() : p_.eos_token_id());
      const std::string eos =
          ops_.Full({1}, DType::kInt64, static_cast<double>(p_.eos_token_id()));
      const std::string ends = ops_.Mul(
          counts, ops_.Cast(ops_.Binary("equal", id, eos), DType::kInt64));
      id = ops_.Add(ops_.Mul(id, Not(s->finished)),
                    ops_.Scale(s->finished, pad));
      s->finished = ops_.Binary("elementwise_max", s->finished, ends);
    }
    if (!gain.empty())
      s->scores = ops_.Add(s->scores,
                           ops_.Mul(gain, ops_.Cast(counts, DType::kFloat32)));
    s->lengths = ops_.Add(s->lengths, counts);
    s->ids = ops_.Sub(s->ids, ops_.Mul(here, ops_.Sub(s->ids, id)));
    s->last = id;
    s->place = ops_.Scale(s->place, 1, 1);
  }

  // The likeliest words and their probabilities, as they may be drawn; then the
  // first one up to which the sum passes a random number.
  std::string Sample(std::string logits, const std::string& here) {
    if (p_.temperature() != 1)
      logits = ops_.Scale(logits, 1 / p_.temperature());
    std::string probs = ops_.Unary("softmax", logits, {{"axis", int32_t{-1}}});
    const bool sorts = p_.top_k() > 0 || p_.top_p() < 1;
    std::string words;
    if (sorts) {
      const int64_t k =
          p_.top_k() > 0 ? std::min<int64_t>(p_.top_k(), words_) : words_;
      OpChain::Largest largest = ops_.TopK(probs, static_cast<int>(k));
      probs = std::move(largest.values);
      words = std::move(largest.indices);
    }
    const auto sums = [&](const std::string& x) {
      return ops_.Unary("cumsum", x, {{"axis", int32_t{1}}});
    };
    if (p_.top_p() < 1) {
      const std::string before = ops_.Sub(sums(probs), probs);
      const std::string most = ops_.Full({1}, DType::kFloat32, p_.top_p());
      probs = ops_.Mul(probs, ops_.Cast(ops_.Binary("less_equal", before, most),
                                        DType::kFloat32));
    }
    const std::string drawn =
        ops_.Mul(SumOfRow(ops_.Mul(random_, ops_.Cast(here, DType::kFloat32))),
                 SumOfRow(probs));
    const auto count = [&](const std::string& holds) {
      return SumOfRow(ops_.Cast(holds, DType::kInt64));
    };
    // Rounding may leave a number that no sum passes.
    const std::string zero = ops_.Full({1}, DType::kFloat32, 0);
    const std::string chosen = ops_.Binary(
        "elementwise_min", count(ops_.Binary("less_equal", sums(probs), drawn)),
        sorts
            ? ops_.Scale(count(ops_.Binary("greater_than", probs, zero)), 1, -1)
            : ops_.Full({1}, DType::kInt64, static_cast<double>(words_ - 1)));
    if (!sorts) return chosen;
    return ops_.Op("index_sample", {{"X", words}, {"Index", chosen}}, {"Out"});
  }

  // The likeliest continuations of a record's sequences. All rows become those
  // of the sequences that go on.
  std::string Search(const std::string& log_probs, const std::string& begun,
                     Sequences* s, std::vector<LayerInput>* states) {
    const auto words = static_cast<int32_t>(words_);
    std::string step = log_probs;
    // A sequence that has ended goes on with the end only, at no cost.
    if (p_.has_eos_token_id()) {
      std::vector<double> costs(static_cast<size_t>(words), kNever);
      costs[static_cast<size_t>(p_.eos_token_id())] = 0;
      const std::string ended = ops_.Cast(s->finished, DType::kFloat32);
      step = ops_.Add(
          ops_.Mul(step, Not(ended)),
          ops_.Mul(ended, ops_.Values({1, words}, DType::kFloat32, costs)));
    }
    const std::string all =
        ops_.Reshape(ops_.Add(step, s->scores), {-1, beams_ * words});
    auto [scores, parents, next] = ops_.BestContinuations(all, beams_, words);
    if (!begun.empty()) {
      const std::string stays = ops_.Reshape(begun, {-1, beams_});
      parents = ops_.Add(ops_.Mul(parents, Not(stays)), ops_.Mul(stays, own_));
      const std::string stays_float = ops_.Cast(stays, DType::kFloat32);
      scores = ops_.Add(
          ops_.Mul(scores, Not(stays_float)),
          ops_.Mul(ops_.Reshape(s->scores, {-1, beams_}), stays_float));
    }
    const std::string from = ops_.Reshape(ops_.Add(parents, rows_), {-1});
    const auto follow = [&](const std::string& x) {
      return ops_.Op("gather", {{"X", x}, {"Index", from}}, {"Out"},
                     {{"axis", int32_t{0}}});
    };
    for (std::string* one : {&s->ids, &s->finished, &s->lengths})
      *one = follow(*one);
    Names moved = VariablesOf(*states);
    for (std::string& one : moved) one = follow(one);
    *states = WithVariables(std::move(*states), moved);
    s->scores = ops_.Reshape(scores, {-1, 1});
    return ops_.Reshape(next, {-1, 1});
  }

  absl::StatusOr<std::string> End(const Sequences& s) {
    std::string ids = s.ids;
    if (p_.has_bos_token_id()) ids = Slice(ids, 1);
    std::string scores = s.scores, lengths = s.lengths;
    if (searches()) {
      c_->AddOutput("beams", Beams(ids));
      c_->AddOutput("beam_scores", ops_.Reshape(scores, {-1, beams_}));
      const std::string first = ops_.Reshape(rows_, {-1});
      for (std::string* one : {&ids, &scores, &lengths})
        *one = ops_.Op("gather", {{"X", *one}, {"Index", first}}, {"Out"},
                       {{"axis", int32_t{0}}});
    }
    scores = ops_.Reshape(scores, {-1});
    lengths = ops_.Reshape(lengths, {-1});
    PD_RETURN_IF_ERROR(Check());
    c_->AddOutput("scores", scores);
    c_->AddOutput("lengths", lengths);
    return ids;
  }

  // [rows, places] -> [N, beams, places]
  std::string Beams(const std::string& ids) {
    const std::string places = ops_.Extent(ids, 1);
    const std::string beams = ops_.Full({1}, DType::kInt32, beams_);
    const std::string records =
        ops_.Binary("elementwise_floordiv", ops_.Extent(ids, 0), beams);
    if (!ops_.ok()) return "";
    OpDesc op;
    op.type = "reshape2";
    op.SetInput("X", {ids});
    op.SetInput("ShapeTensor", {records, beams, places});
    op.attrs["shape"] = Ints{-1, beams_, -1};
    auto made = c_->Append(std::move(op), {"Out", "XShape"});
    ops_.Update(made.status());
    return made.ok() ? *made : std::string();
  }

  LayerContext* c_;
  const job::Generate& p_;
  OpChain ops_;
  const int32_t beams_;
  int64_t words_ = 0;
  bool cached_ = false;      // the decoder reads the last id and its states
  std::vector<bool> grows_;  // by state: keys and values, one for each id
  std::vector<LayerInput> inits_, kwargs_;  // [rows, ...]
  std::string first_ids_;                   // the beginnings
  std::string places_;                      // int64 [rows, places]: 0, 1, ...
  std::string end_;                         // int64 [1]: how many places
  std::string prompt_lengths_;              // int64 [rows, 1], or ""
  std::string random_;                      // float32 [rows, places]
  std::string rows_;                        // int64 [N, 1]
  std::string own_;                         // int64 [beams]: 0, 1, ...
  Sequences start_;
};

absl::StatusOr<std::string> BuildGenerate(LayerContext* c) {
  return Generator(c).Build();
}

bool ReadsLast(const job::Layer& layer, const OpRegistry&) {
  return !layer.generate().has_bos_token_id();
}

}  // namespace

void AddGenerateLayers(LayerTable* table) {
  (*table)[job::Layer::kGenerate] = {BuildGenerate, 0, 1, ReadsLast};
}

}  // namespace pd
