// SPDX-License-Identifier: Apache-2.0
// hash: num_hash numbers of [0, mod_by) for each row of X, [rows, n]:
//   Out[r, k, 0] = XXH64(the bytes of row r, seed k) mod mod_by
// XXH64 is Y. Collet's hash function of 64 bits, as its specification has it.
// No gradient.
#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                   kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                   kPrime5 = 0x27D4EB2F165667C5;

uint64_t RotateLeft(uint64_t v, int bits) {
  return (v << bits) | (v >> (64 - bits));
}
uint64_t HashRound(uint64_t sum, uint64_t lane) {
  return RotateLeft(sum + lane * kPrime2, 31) * kPrime1;
}
template <typename Word>
uint64_t WordAt(const char* p) {
  Word word;  // little-endian, as the hosts that this is built for
  std::memcpy(&word, p, sizeof(word));
  return word;
}

uint64_t XxHash64(const char* p, size_t bytes, uint64_t seed) {
  const char* const end = p + bytes;
  uint64_t sum = seed + kPrime5;
  if (bytes >= 32) {
    uint64_t lanes[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed,
                         seed - kPrime1};
    for (; end - p >= 32; p += 32)
      for (int k = 0; k < 4; ++k)
        lanes[k] = HashRound(lanes[k], WordAt<uint64_t>(p + 8 * k));
    sum = RotateLeft(lanes[0], 1) + RotateLeft(lanes[1], 7) +
          RotateLeft(lanes[2], 12) + RotateLeft(lanes[3], 18);
    for (const uint64_t lane : lanes)
      sum = (sum ^ HashRound(0, lane)) * kPrime1 + kPrime4;
  }
  sum += bytes;
  for (; end - p >= 8; p += 8)
    sum = RotateLeft(sum ^ HashRound(0, WordAt<uint64_t>(p)), 27) * kPrime1 +
          kPrime4;
  for (; end - p >= 4; p += 4)
    sum = RotateLeft(sum ^ (WordAt<uint32_t>(p) * kPrime1), 23) * kPrime2 +
          kPrime3;
  for (; p < end; ++p)
    sum = RotateLeft(sum ^ (WordAt<uint8_t>(p) * kPrime5), 11) * kPrime1;
  sum = (sum ^ (sum >> 33)) * kPrime2;
  sum = (sum ^ (sum >> 29)) * kPrime3;
  return sum ^ (sum >> 32);
}

absl::Status InferHash(InferContext* context) {
  TensorMeta out = context->Input("X");
  PD_RETURN_IF_ERROR(CheckIndexType("X", out.dtype));
  const int64_t count = context->Attr<int32_t>("num_hash");
  if (out.shape.size() != 2 || count < 1 ||
      context->Attr<int64_t>("mod_by") < 1)
    return InvalidArgument(
        "'X' has shape %s, attrs 'num_hash' and 'mod_by' are %d and %d; "
        "expected rows, and 1 or more",
        ToString(out.shape), count, context->Attr<int64_t>("mod_by"));
  out.shape = {out.shape[0], count, 1};
  out.value = nullptr;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindHash(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t count = context->Attr<int32_t>("num_hash");
  const auto modulus = static_cast<uint64_t>(context->Attr<int64_t>("mod_by"));
  return DispatchTypes<int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) {
          const int64_t n = x->dim(1);
          for (int64_t r = 0; r < x->dim(0); ++r)
            for (int64_t k = 0; k < count; ++k)
              out->data<T>()[r * count + k] = static_cast<T>(
                  XxHash64(reinterpret_cast<const char*>(x->data<T>() + r * n),
                           static_cast<size_t>(n) * sizeof(T),
                           static_cast<uint64_t>(k)) %
                  modulus);
          return absl::OkStatus();
        });
      });
}

}  // namespace

absl::Status RegisterHash(OpRegistry* registry) {
  OpDef op("hash");
  op.Input("X").Output("Out").Attr("num_hash", int32_t{1});
  op.Attr("mod_by", int64_t{100000});
  op.Infer(InferHash).NoGrad().Reference(BindHash);
  return registry->Add(std::move(op));
}

}  // namespace pd
