// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/join_proof.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/half.h"
#include "libcore/base/log.h"
#include "libcore/base/printable.h"

namespace pd {
namespace serve {
namespace {

// Shapes come from clients: only so many are remembered.
constexpr size_t kMostKeys = 256;
constexpr int kMostFailed = 3;

// The elements of `array` in another order; false where that changes nothing.
bool Turned(const Array& array, Array* turned) {
  std::byte* bytes = nullptr;
  auto made = NewArray(array.dtype, array.shape, &bytes);
  if (!made.ok()) {
    *turned = array;
    return false;
  }
  const size_t size = array.size_bytes(), one = SizeOf(array.dtype);
  // By an odd number of elements, so that rows that are equal change too.
  const size_t shift = array.size() > 5 ? 5 * one : one % size;
  std::memcpy(bytes, array.bytes.get() + shift, size - shift);
  std::memcpy(bytes + size - shift, array.bytes.get(), shift);
  bool differs = std::memcmp(bytes, array.bytes.get(), size) != 0;
  if (!differs && array.dtype == DType::kFloat32) {
    // Numbers that are all the same, as in a client's first try.
    auto* values = reinterpret_cast<float*>(bytes);
    for (int64_t i = 0; i < array.size(); ++i)
      values[i] += 0.125f * static_cast<float>(i % 7 + 1);
    differs = true;
  }
  *turned = *std::move(made);
  return differs;
}

template <typename T>
bool Close(const Array& a, const Array& b, double tolerance) {
  const T* x = a.data<T>();
  const T* y = b.data<T>();
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const double value = std::fabs(static_cast<double>(y[i]));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (int64_t i = 0; i < a.size(); ++i) {
    const double left = static_cast<double>(x[i]);
    const double right = static_cast<double>(y[i]);
    if (left == right || (std::isnan(left) && std::isnan(right))) continue;
    if (!(std::fabs(left - right) <= tolerance * largest)) return false;
  }
  return true;
}

// Kernels sum in another order for another number of rows.
bool Agree(const Array& a, const Array& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  switch (a.dtype) {
    case DType::kFloat32:
      return Close<float>(a, b, 1e-4);
    case DType::kFloat64:
      return Close<double>(a, b, 1e-9);
    case DType::kFloat16:
      return Close<Float16>(a, b, 1e-2);
    case DType::kBFloat16:
      return Close<BFloat16>(a, b, 5e-2);
    default:
      return std::memcmp(a.bytes.get(), b.bytes.get(), a.size_bytes()) == 0;
  }
}

bool Agree(const Outputs& a, const Outputs& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Array& x, const Array& y) { return Agree(x, y); });
}

}  // namespace

bool JoinProof::Refuted(const std::string& key) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = findings_.find(key);
  return found != findings_.end() && found->second.finding == Finding::kNo;
}

JoinProof::Finding JoinProof::Try(const NamedArrays& request, Runner* runner,
                                  std::string* why) {
  NamedArrays other;
  bool differs = false;
  for (const auto& [name, array] : request)
    differs |= Turned(array, &other[name]);
  if (!differs) return Finding::kUnknown;
  const auto first = runner->Run(request);
  const auto second = first.ok() ? runner->Run(other) : first;
  if (!second.ok()) {
    *why = std::string(second.status().message());
    return Finding::kUnknown;
  }
  const auto joined = runner->RunJoined({&request, &other});
  if (!joined.ok()) {
    *why = std::string(joined.status().message());
    return Finding::kNo;
  }
  if (Agree((*joined)[0], *first) && Agree((*joined)[1], *second))
    return Finding::kYes;
  *why = "a row's answer depends on the other rows";
  return Finding::kNo;
}

bool JoinProof::MayJoin(const std::string& key, const NamedArrays& request,
                        Runner* runner) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = findings_.find(key);
    if (found != findings_.end() && found->second.finding != Finding::kUnknown)
      return found->second.finding == Finding::kYes;
    if (found == findings_.end() && findings_.size() >= kMostKeys) return false;
  }
  std::string why;
  Finding finding = Try(request, runner, &why);
  const std::lock_guard<std::mutex> lock(mutex_);
  Found& found = findings_[key];
  // Requests whose trial fails again and again would each cost two runs.
  if (finding == Finding::kUnknown && !why.empty() &&
      ++found.failed == kMostFailed)
    finding = Finding::kNo;
  found.finding = finding;
  if (finding == Finding::kNo)
    LogWarning("requests like %s are answered one by one: %s", Printable(key),
               Printable(why));
  return finding == Finding::kYes;
}

}  // namespace serve
}  // namespace pd
