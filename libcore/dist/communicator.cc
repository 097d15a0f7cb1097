// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/communicator.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/truncate_half.h"

namespace pd {
namespace {

// Below so many bytes from each process, one exchange of all elements is
// quicker than two of shares.
constexpr size_t kGatherBytes = 16384;

// PaddlePaddle adds and multiplies fp16 in float32 and rounds towards zero.
template <typename T, typename V>
T Rounded(V value) {
  if constexpr (std::is_same_v<T, Float16>)
    return TruncatedFloat16(value);
  else
    return static_cast<T>(value);
}

template <typename T, typename F>
void ReduceRows(int64_t count, const void* other, void* into, const F& f) {
  const T* from = static_cast<const T*>(other);
  T* to = static_cast<T*>(into);
  for (int64_t i = 0; i < count; ++i) to[i] = Rounded<T>(f(to[i], from[i]));
}

template <typename T>
void ReduceAs(Reduction op, int64_t count, const void* other, void* into) {
  // Halves are added as float32; signed integers wrap around.
  switch (op) {
    case Reduction::kSum:
      return ReduceRows<T>(count, other, into, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) +
                                static_cast<uint64_t>(b));
        else
          return a + b;
      });
    case Reduction::kProd:
      return ReduceRows<T>(count, other, into, [](T a, T b) {
        if constexpr (std::is_integral_v<T>)
          return static_cast<T>(static_cast<uint64_t>(a) *
                                static_cast<uint64_t>(b));
        else
          return a * b;
      });
    case Reduction::kMax:  // NaN stays NaN
      return ReduceRows<T>(count, other, into,
                           [](T a, T b) { return b > a || b != b ? b : a; });
    case Reduction::kMin:
      return ReduceRows<T>(count, other, into,
                           [](T a, T b) { return b < a || b != b ? b : a; });
  }
}

struct Shares {
  int64_t each = 0;  // elements of every process but the last ones
  std::vector<size_t> bytes;
};

// Divides `count` elements among `size` processes.
Shares Share(int64_t count, int size, size_t element) {
  Shares shares;
  shares.each = (count + size - 1) / size;
  for (int r = 0; r < size; ++r) {
    const int64_t left = count - r * shares.each;
    shares.bytes.push_back(
        static_cast<size_t>(std::clamp<int64_t>(left, 0, shares.each)) *
        element);
  }
  return shares;
}

// Room for one part of each of `size` processes.
class Parts {
 public:
  Parts(int size, size_t bytes)
      : bytes_(bytes), data_(static_cast<size_t>(size) * bytes) {
    for (int r = 0; r < size; ++r)
      parts_.push_back(data_.data() + static_cast<size_t>(r) * bytes);
  }
  void* data() { return data_.data(); }
  void* at(int r) { return parts_[static_cast<size_t>(r)]; }
  const std::vector<void*>& all() const { return parts_; }

 private:
  size_t bytes_;
  std::vector<std::byte> data_;
  std::vector<void*> parts_;
};

}  // namespace

absl::Status Reduce(Reduction op, DType dtype, int64_t count, const void* other,
                    void* into) {
  return DispatchTypes<float, double, Float16, BFloat16, int32_t, int64_t,
                       int16_t, int8_t, uint8_t>(
      dtype, [&](auto tag) -> absl::Status {
        ReduceAs<typename decltype(tag)::type>(op, count, other, into);
        return absl::OkStatus();
      });
}

absl::Status ReduceTree(Reduction op, DType dtype, int64_t count,
                        const std::vector<void*>& parts) {
  for (size_t stride = 1; stride < parts.size(); stride *= 2)
    for (size_t i = 0; i + stride < parts.size(); i += 2 * stride)
      PD_RETURN_IF_ERROR(Reduce(op, dtype, count, parts[i + stride], parts[i]));
  return absl::OkStatus();
}

absl::Status Communicator::CheckRank(int rank, const char* what) const {
  if (rank >= 0 && rank < size()) return absl::OkStatus();
  return InvalidArgument("%s is %d; the group has %d processes, from 0", what,
                         rank, size());
}

absl::Status Communicator::AllReduce(Reduction op, DType dtype, int64_t count,
                                     const void* in, void* out) const {
  const size_t element = SizeOf(dtype);
  const size_t bytes = static_cast<size_t>(count) * element;
  if (size() == 1) {
    if (in != out) std::memcpy(out, in, bytes);
    return absl::OkStatus();
  }
  if (bytes <= kGatherBytes) {
    Parts parts(size(), bytes);
    PD_RETURN_IF_ERROR(AllGather(in, bytes, parts.data()));
    PD_RETURN_IF_ERROR(ReduceTree(op, dtype, count, parts.all()));
    std::memcpy(out, parts.at(0), bytes);
    return absl::OkStatus();
  }
  const Shares shares = Share(count, size(), element);
  const size_t own = shares.bytes[static_cast<size_t>(rank())];
  Parts parts(size(), own);
  PD_RETURN_IF_ERROR(AllToAll(in, shares.bytes, parts.data(),
                              std::vector<size_t>(shares.bytes.size(), own)));
  PD_RETURN_IF_ERROR(
      ReduceTree(op, dtype, static_cast<int64_t>(own / element), parts.all()));
  const size_t each = static_cast<size_t>(shares.each) * element;
  if (each * static_cast<size_t>(size()) == bytes)
    return AllGather(parts.at(0), each, out);
  Parts sums(size(), each);
  std::vector<std::byte> padded(each);
  std::memcpy(padded.data(), parts.at(0), own);
  PD_RETURN_IF_ERROR(AllGather(padded.data(), each, sums.data()));
  std::memcpy(out, sums.data(), bytes);
  return absl::OkStatus();
}

absl::Status Communicator::ReduceScatter(Reduction op, DType dtype,
                                         int64_t count, const void* in,
                                         void* out) const {
  const size_t bytes = static_cast<size_t>(count) * SizeOf(dtype);
  Parts parts(size(), bytes);
  const std::vector<size_t> each(static_cast<size_t>(size()), bytes);
  PD_RETURN_IF_ERROR(AllToAll(in, each, parts.data(), each));
  PD_RETURN_IF_ERROR(ReduceTree(op, dtype, count, parts.all()));
  std::memcpy(out, parts.at(0), bytes);
  return absl::OkStatus();
}

absl::Status Communicator::Broadcast(int root, void* data, size_t bytes) const {
  PD_RETURN_IF_ERROR(CheckRank(root, "the root"));
  if (size() == 1 || bytes == 0) return absl::OkStatus();
  return transport_->Broadcast(root, data, bytes);
}

absl::Status Communicator::AllGather(const void* in, size_t bytes,
                                     void* out) const {
  if (bytes == 0) return absl::OkStatus();
  if (size() > 1) return transport_->AllGather(in, bytes, out);
  std::memmove(out, in, bytes);
  return absl::OkStatus();
}

absl::Status Communicator::AllToAll(const void* in,
                                    const std::vector<size_t>& sends, void* out,
                                    const std::vector<size_t>& receives) const {
  const size_t members = static_cast<size_t>(size());
  PD_INVARIANT(sends.size() == members && receives.size() == members);
  if (size() > 1) return transport_->AllToAll(in, sends, out, receives);
  if (sends[0] != receives[0])
    return InvalidArgument("a process sends itself %d bytes and expects %d",
                           sends[0], receives[0]);
  if (sends[0] > 0) std::memmove(out, in, sends[0]);
  return absl::OkStatus();
}

absl::Status Communicator::Send(int to, const void* data, size_t bytes) const {
  PD_RETURN_IF_ERROR(CheckRank(to, "the process to send to"));
  if (to == rank()) return InvalidArgument("rank %d sends to itself", to);
  return bytes == 0 ? absl::OkStatus() : transport_->Send(to, data, bytes);
}

absl::Status Communicator::Receive(int from, void* data, size_t bytes) const {
  PD_RETURN_IF_ERROR(CheckRank(from, "the process to receive from"));
  if (from == rank())
    return InvalidArgument("rank %d receives from itself", from);
  return bytes == 0 ? absl::OkStatus() : transport_->Receive(from, data, bytes);
}

absl::Status Communicator::Barrier() const {
  return size() == 1 ? absl::OkStatus() : transport_->Barrier();
}

absl::StatusOr<std::vector<std::string>> Communicator::GatherTexts(
    const std::string& text) const {
  const size_t members = static_cast<size_t>(size());
  const uint64_t length = text.size();
  std::vector<uint64_t> lengths(members);
  PD_RETURN_IF_ERROR(AllGather(&length, sizeof(length), lengths.data()));
  const uint64_t most = *std::max_element(lengths.begin(), lengths.end());
  std::string padded = text, all(static_cast<size_t>(most) * members, '\0');
  padded.resize(static_cast<size_t>(most));
  PD_RETURN_IF_ERROR(
      AllGather(padded.data(), static_cast<size_t>(most), all.data()));
  std::vector<std::string> texts;
  for (size_t r = 0; r < members; ++r)
    texts.push_back(all.substr(r * static_cast<size_t>(most),
                               static_cast<size_t>(lengths[r])));
  return texts;
}

}  // namespace pd
