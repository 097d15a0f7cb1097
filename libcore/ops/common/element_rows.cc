// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/common/element_rows.h"

#include <algorithm>
#include <array>

#include "libcore/base/parallel.h"

namespace pd {
namespace {

constexpr int64_t kMostBytes = 16;  // of an element: complex128
// An operand of stride 0 is repeated this many times at most; longer rows are
// computed in pieces.
constexpr int64_t kPiece = 256;

// Copies `element` to count places at `to`.
void Repeat(const char* element, int64_t bytes, int64_t count, char* to) {
  if (bytes == 4) {  // the usual size
    uint32_t value;
    std::memcpy(&value, element, sizeof(value));
    auto* values = reinterpret_cast<uint32_t*>(to);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) values[i] = value;
    return;
  }
  std::memcpy(to, element, static_cast<size_t>(bytes));
  for (int64_t done = bytes, all = bytes * count; done < all;) {
    const int64_t more = std::min(done, all - done);
    std::memcpy(to + done, to, static_cast<size_t>(more));
    done += more;
  }
}

// The bytes of an operand, when a step runs.
struct Bytes {
  char* data;
  int64_t size;  // of an element
  size_t offsets;
  int64_t stride;  // within a row
};

Bytes BytesOf(const LoopOperand& o, const StridedLoop<3>& loop) {
  return {static_cast<char*>(o.tensor->raw()),
          static_cast<int64_t>(SizeOf(o.dtype)), o.offsets,
          loop.row_strides()[o.offsets]};
}

// Computes elements of loops with broadcasting.
class LoopRows {
 public:
  LoopRows(const RowFunction& row, const StridedLoop<3>& loop,
           const std::vector<LoopOperand>& in, const LoopOperand& out)
      : row_(row), loop_(loop), count_(in.size()), out_(BytesOf(out, loop)) {
    for (size_t k = 0; k < count_; ++k) in_[k] = BytesOf(in[k], loop);
  }

  void Compute(int64_t begin, int64_t end) const {
    loop_.ForParts(begin, end,
                   [&](const auto& at, int64_t n) { ComputeRow(at, n); });
  }

 private:
  using Offsets = StridedLoop<3>::Offsets;

  void ComputeRow(const Offsets& at, int64_t n) const {
    alignas(64) char repeated[RowFunction::kOperands][kPiece * kMostBytes];
    const void* from[RowFunction::kOperands];
    int64_t piece = n;
    for (size_t k = 0; k < count_; ++k) {
      const Bytes& in = in_[k];
      const char* first = in.data + at[in.offsets] * in.size;
      from[k] = first;
      if (in.stride != 0 || n == 1) continue;
      piece = std::min(n, kPiece);
      Repeat(first, in.size, piece, repeated[k]);
      from[k] = repeated[k];
    }
    char* to = out_.data + at[out_.offsets] * out_.size;
    for (int64_t done = 0; done < n; done += piece) {
      row_(from, to + done * out_.size, std::min(piece, n - done));
      for (size_t k = 0; k < count_; ++k)
        from[k] = static_cast<const char*>(from[k]) +
                  piece * in_[k].stride * in_[k].size;
    }
  }

  const RowFunction& row_;
  const StridedLoop<3>& loop_;
  size_t count_;
  std::array<Bytes, RowFunction::kOperands> in_{};
  Bytes out_;
};

}  // namespace

Step ElementStep(const RowFunction& row, const std::vector<Tensor*>& in,
                 Tensor* out, int64_t grain) {
  return [row, in, out, grain, n = out->size()](const RunContext&) {
    ParallelFor(n, grain, [&](int64_t begin, int64_t end) {
      const void* from[RowFunction::kOperands];
      for (size_t k = 0; k < in.size(); ++k)
        from[k] = static_cast<const char*>(in[k]->raw()) +
                  static_cast<size_t>(begin) * SizeOf(in[k]->dtype());
      row(from,
          static_cast<char*>(out->raw()) +
              static_cast<size_t>(begin) * SizeOf(out->dtype()),
          end - begin);
    });
    return absl::OkStatus();
  };
}

Step LoopStep(const RowFunction& row, const StridedLoop<3>& loop,
              const std::vector<LoopOperand>& in, const LoopOperand& out) {
  return [row, loop, in, out](const RunContext&) {
    const LoopRows rows(row, loop, in, out);
    ParallelFor(loop.size(), kElementGrain,
                [&](int64_t begin, int64_t end) { rows.Compute(begin, end); });
    return absl::OkStatus();
  };
}

Step BroadcastStep(const RowFunction& row, const Broadcast& broadcast,
                   Tensor* x, Tensor* y, Tensor* out) {
  return LoopStep(row, BroadcastLoop(broadcast),
                  {{x, 0, x->dtype()}, {y, 1, y->dtype()}},
                  {out, 2, out->dtype()});
}

}  // namespace pd
