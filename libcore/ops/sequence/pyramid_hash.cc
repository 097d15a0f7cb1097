// SPDX-License-Identifier: Apache-2.0
// pyramid_hash: hashed embeddings of the words of X, int32 sequences, in twos,
// threes and up to pyramid_layer at a time. A group of words taken as floats
// has num_emb numbers, rand_len at a time: those from number k are W's from
//   XXH32(the bytes of the floats, seed k) mod space_len
// on. The groups of a sequence follow each other, shorter ones first; one
// without any has a row of zeros. A group counts when it is in WhiteList and
// not in BlackList, Bloom filters of MurmurHash3 (A. Appleby; as PaddlePaddle
// stores them: magic number, bits, hashes, members, 8 bytes each, and the bits)
// and, while training, when the numbers of C's rand_r from `seed` on do not
// drop it. Other runs multiply by drop_out_percent instead, unless W is int8.
// DropPos has a 1 for each group that counts. XXH32 is Y. Collet's hash.
// No gradient: PaddlePaddle's overwrites W with W - lr * gradient in place.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

template <typename Word>
Word RotatedLeft(Word v, int bits) {
  return static_cast<Word>((v << bits) |
                           (v >> (static_cast<int>(sizeof(Word)) * 8 - bits)));
}

// Of whole words.
uint32_t XxHash32(const uint32_t* words, size_t n, uint32_t seed) {
  constexpr uint32_t k1 = 2654435761u, k2 = 2246822519u, k3 = 3266489917u,
                     k4 = 668265263u, k5 = 374761393u;
  uint32_t sum = seed + k5;
  size_t i = 0;
  if (n >= 4) {
    uint32_t lanes[4] = {seed + k1 + k2, seed + k2, seed, seed - k1};
    for (; i + 4 <= n; i += 4)
      for (size_t k = 0; k < 4; ++k)
        lanes[k] = RotatedLeft(lanes[k] + words[i + k] * k2, 13) * k1;
    sum = RotatedLeft(lanes[0], 1) + RotatedLeft(lanes[1], 7) +
          RotatedLeft(lanes[2], 12) + RotatedLeft(lanes[3], 18);
  }
  sum += static_cast<uint32_t>(n * 4);
  for (; i < n; ++i) sum = RotatedLeft(sum + words[i] * k3, 17) * k4;
  sum = (sum ^ (sum >> 15)) * k2;
  sum = (sum ^ (sum >> 13)) * k3;
  return sum ^ (sum >> 16);
}

uint64_t MurmurMixed(uint64_t v) {
  v = (v ^ (v >> 33)) * 0xff51afd7ed558ccdull;
  v = (v ^ (v >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return v ^ (v >> 33);
}

struct MurmurHash {
  uint64_t low, high;
};

// MurmurHash3 of 128 bits, of whole words.
MurmurHash Murmur3(const uint32_t* words, size_t n, uint32_t seed) {
  constexpr uint64_t k1 = 0x87c37b91114253d5ull, k2 = 0x4cf5ad432745937full;
  uint64_t low = seed, high = seed;
  const auto pair = [words, n](size_t i) {
    const uint64_t first = i < n ? words[i] : 0;
    const uint64_t second = i + 1 < n ? words[i + 1] : 0;
    return first | (second << 32);
  };
  for (size_t i = 0; i < n; i += 4) {
    const bool whole = i + 4 <= n;
    low ^= RotatedLeft(pair(i) * k1, 31) * k2;
    if (whole) low = (RotatedLeft(low, 27) + high) * 5 + 0x52dce729;
    high ^= RotatedLeft(pair(i + 2) * k2, 33) * k1;
    if (whole) high = (RotatedLeft(high, 31) + low) * 5 + 0x38495ab5;
  }
  low ^= n * 4;
  high ^= n * 4;
  low += high;
  high += low;
  low = MurmurMixed(low);
  high = MurmurMixed(high);
  low += high;
  high += low;
  return {low, high};
}

// A Bloom filter in a tensor; without bits it has every group.
class GroupFilter {
 public:
  absl::Status Read(const char* slot, const Tensor& tensor) {
    constexpr uint64_t kMagic = 17070416, kHead = 32, kMostHashes = 1024;
    if (tensor.bytes() < kHead)
      return InvalidArgument("'%s' has %d bytes; expected a Bloom filter", slot,
                             tensor.bytes());
    uint64_t head[4];
    std::memcpy(head, tensor.raw(), kHead);
    bits_ = head[1];
    hashes_ = head[2];
    if (head[0] != kMagic || bits_ == 0 || hashes_ > kMostHashes ||
        (bits_ - 1) / 8 >= tensor.bytes() - kHead)
      return InvalidArgument(
          "'%s' begins with %d, %d bits and %d hashes in %d bytes; expected "
          "%d, bits that are there and at most %d hashes",
          slot, head[0], bits_, hashes_, tensor.bytes(), kMagic, kMostHashes);
    bytes_ = static_cast<const uint8_t*>(tensor.raw()) + kHead;
    return absl::OkStatus();
  }
  bool is_there() const { return bytes_ != nullptr; }
  bool Has(const uint32_t* words, size_t n) const {
    for (uint64_t k = 0; k < hashes_; ++k) {
      const MurmurHash hash = Murmur3(words, n, static_cast<uint32_t>(k));
      if (!IsSet(hash.low % bits_) || !IsSet(hash.high % bits_)) return false;
    }
    return true;
  }

 private:
  bool IsSet(uint64_t bit) const {
    return ((bytes_[bit / 8] >> (7 - bit % 8)) & 1) != 0;
  }
  const uint8_t* bytes_ = nullptr;
  uint64_t bits_ = 0, hashes_ = 0;
};

// The numbers of rand_r, as the GNU C library makes them, from 0 to 1.
class ReentrantRandom {
 public:
  explicit ReentrantRandom(uint32_t seed) : state_(seed) {}
  float Next() {
    uint32_t number = Bits(2048);
    number = (number << 10) ^ Bits(1024);
    number = (number << 10) ^ Bits(1024);
    return static_cast<float>(number) / 2147483647;
  }

 private:
  uint32_t Bits(uint32_t below) {
    state_ = state_ * 1103515245u + 12345u;
    return (state_ >> 16) % below;
  }
  uint32_t state_;
};

struct PyramidHash {
  Tensor *x, *w, *white, *black, *out, *drop, *words;
  int64_t numbers, space, part, layers;
  float keep;
  bool training;
  uint32_t seed;

  // Calls body(first word, words) for each group of a sequence of `n` words.
  template <typename Body>
  void ForEachGroup(int64_t n, const Body& body) const {
    for (int64_t more = 1; more < layers && more < n; ++more)
      for (int64_t first = 0; first + more < n; ++first) body(first, more + 1);
  }
  absl::Status Run() const;
  absl::StatusOr<Offsets> ChooseGroups(const Offsets& sequences,
                                       const uint32_t* bits) const;
  template <typename T>
  void Embed(const Offsets& sequences, const Offsets& rows,
             const uint32_t* bits) const;
};

// Sets DropPos; gives the rows of Out by sequence.
absl::StatusOr<Offsets> PyramidHash::ChooseGroups(const Offsets& sequences,
                                                  const uint32_t* bits) const {
  GroupFilter wanted, unwanted;
  if (white != nullptr) PD_RETURN_IF_ERROR(wanted.Read("WhiteList", *white));
  if (black != nullptr) PD_RETURN_IF_ERROR(unwanted.Read("BlackList", *black));
  ReentrantRandom random(seed);
  int32_t* next = drop->data<int32_t>();
  std::fill_n(next, drop->size(), 0);
  Offsets rows = {0};
  for (size_t i = 0; i + 1 < sequences.size(); ++i) {
    int64_t count = 0;
    const uint32_t* words_of = bits + sequences[i];
    ForEachGroup(sequences[i + 1] - sequences[i], [&](int64_t at, int64_t n) {
      const auto length = static_cast<size_t>(n);
      bool counts =
          (!wanted.is_there() || wanted.Has(words_of + at, length)) &&
          !(unwanted.is_there() && unwanted.Has(words_of + at, length));
      if (counts && training) counts = !(random.Next() < keep);
      *next++ = counts ? 1 : 0;
      count += counts ? 1 : 0;
    });
    rows.push_back(rows.back() + std::max<int64_t>(count, 1));
  }
  return rows;
}

template <typename T>
void PyramidHash::Embed(const Offsets& sequences, const Offsets& rows,
                        const uint32_t* bits) const {
  const T* from = w->data<T>();
  T* to = out->data<T>();
  std::fill_n(to, out->size(), T(0));
  const int32_t* next = drop->data<int32_t>();
  for (size_t i = 0; i + 1 < sequences.size(); ++i) {
    T* row = to + rows[i] * numbers;
    ForEachGroup(sequences[i + 1] - sequences[i], [&](int64_t at, int64_t n) {
      if (*next++ == 0) return;
      for (int64_t k = 0; k < numbers; k += part) {
        const uint32_t hash =
            XxHash32(bits + sequences[i] + at, static_cast<size_t>(n),
                     static_cast<uint32_t>(k));
        std::copy_n(from + hash % static_cast<uint32_t>(space), part, row + k);
      }
      row += numbers;
    });
  }
  if (training || std::is_same_v<T, int8_t>) return;
  for (int64_t k = 0; k < out->size(); ++k) to[k] *= static_cast<T>(keep);
}

absl::Status PyramidHash::Run() const {
  PD_ASSIGN_OR_RETURN(const Offsets sequences, SequencesOf(x, "X"));
  const int64_t n = x->size();
  std::vector<uint32_t> bits(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const auto word = static_cast<float>(x->data<int32_t>()[i]);
    std::memcpy(&bits[static_cast<size_t>(i)], &word, sizeof(word));
  }
  if (words != nullptr) {
    PD_RETURN_IF_ERROR(words->Resize(DType::kFloat32, x->shape()));
    std::memcpy(words->raw(), bits.data(), bits.size() * sizeof(uint32_t));
  }
  PD_RETURN_IF_ERROR(CheckedBytes({n, layers}, sizeof(int32_t)).status());
  PD_RETURN_IF_ERROR(drop->Resize(DType::kInt32, {n * layers, 1}));
  PD_ASSIGN_OR_RETURN(const Offsets rows, ChooseGroups(sequences, bits.data()));
  PD_RETURN_IF_ERROR(out->Resize(w->dtype(), {rows.back(), numbers}));
  out->set_lod(OneLevel(rows));
  return DispatchTypes<float, double, int8_t>(
      w->dtype(), [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        Embed<T>(sequences, rows, bits.data());
        return absl::OkStatus();
      });
}

absl::Status InferPyramidHash(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& w = context->Input("W");
  const int64_t numbers = context->Attr<int32_t>("num_emb");
  const int64_t part = context->Attr<int32_t>("rand_len");
  const int64_t space = context->Attr<int32_t>("space_len");
  const int64_t layers = context->Attr<int32_t>("pyramid_layer");
  if (part < 1 || numbers < 1 || numbers % part != 0 || space < 1 || layers < 2)
    return InvalidArgument(
        "attr 'num_emb' is %d, 'rand_len' %d, 'space_len' %d and "
        "'pyramid_layer' %d; expected a multiple of 'rand_len', 1 or more, and "
        "2 or more layers",
        numbers, part, space, layers);
  if (x.shape.size() != 2 || (x.shape[1] >= 0 && x.shape[1] != 1) ||
      x.dtype != DType::kInt32)
    return InvalidArgument("'X' is %s %s; expected int32 [words, 1]",
                           Name(x.dtype), ToString(x.shape));
  if (w.shape.size() != 2 || (w.shape[0] >= 0 && w.shape[0] != space + part) ||
      (w.shape[1] >= 0 && w.shape[1] != 1))
    return InvalidArgument("'W' has shape %s; expected [%d, 1]",
                           ToString(w.shape), space + part);
  TensorMeta out;
  out.dtype = w.dtype;
  out.shape = {-1, numbers};
  out.lod_level = 1;
  context->SetOutput("Out", out);
  context->SetOutput("DropPos", {-1, 1}, DType::kInt32);
  context->SetOutput("X_Temp_Out", x.shape, DType::kFloat32);
  return absl::OkStatus();
}

// The tensor of a list that has `length` numbers by its attribute; null where
// there is none.
absl::StatusOr<Tensor*> FilterOf(BindContext* context, const char* slot,
                                 int64_t length) {
  if (length == 0 || !context->Attr<bool>("use_filter")) return nullptr;
  PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DType::kFloat32, length));
  return context->Input(slot);
}

absl::StatusOr<Step> BindPyramidHash(BindContext* context) {
  PyramidHash p = {};
  p.x = context->Input("X");
  p.w = context->Input("W");
  PD_ASSIGN_OR_RETURN(
      p.white,
      FilterOf(context, "WhiteList", context->Attr<int32_t>("white_list_len")));
  PD_ASSIGN_OR_RETURN(
      p.black,
      FilterOf(context, "BlackList", context->Attr<int32_t>("black_list_len")));
  p.out = context->Output("Out");
  p.drop = context->Output("DropPos");
  p.words = context->Output("X_Temp_Out");
  p.numbers = context->Attr<int32_t>("num_emb");
  p.space = context->Attr<int32_t>("space_len");
  p.part = context->Attr<int32_t>("rand_len");
  p.layers = context->Attr<int32_t>("pyramid_layer");
  p.keep = context->Attr<float>("drop_out_percent");
  p.training = context->Attr<int32_t>("is_training") != 0;
  p.seed = static_cast<uint32_t>(context->Attr<int32_t>("seed"));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "W", p.w->dtype(), p.space + p.part));
  return Step([p](const RunContext&) { return p.Run(); });
}

}  // namespace

absl::Status RegisterPyramidHash(OpRegistry* registry) {
  OpDef op("pyramid_hash");
  op.Input("X").Input("W").OptionalInput("WhiteList");
  op.OptionalInput("BlackList").Output("Out").Output("DropPos");
  op.IntermediateOutput("X_Temp_Out");
  for (const char* name : {"num_emb", "space_len", "rand_len", "is_training",
                           "white_list_len", "black_list_len", "seed"})
    op.Attr(name, int32_t{0});
  op.Attr("pyramid_layer", int32_t{2}).Attr("drop_out_percent", 0.0f);
  op.Attr("use_filter", true).Attr("lr", 0.0f);
  op.Attr("distribute_update_vars", std::string());
  op.Infer(InferPyramidHash).ShapeFromData().NoGrad();
  op.Reference(BindPyramidHash);
  return registry->Add(std::move(op));
}

}  // namespace pd
