// SPDX-License-Identifier: Apache-2.0
// A libcudnn.so.9 for machines without a GPU: convolutions by plain loops over
// what the descriptors describe, run by the fake driver beside it when it gets
// to them. Descriptors that do not fit together are refused, as the real
// library does. It rates three algorithms: one that it does not have, a greedy
// one that is not deterministic, and a modest one. Whoever has them run learns
// that the modest one is the faster, unless the greedy one may round.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/device/fake_convolution.h"
#include "tests/device/fake_queue.h"

namespace {

using namespace fake;  // NOLINT: what both interfaces do

constexpr int kSuccess = 0, kBadParam = 2000, kNotSupported = 3000;
constexpr size_t kGreedy = size_t{3} << 20, kModest = 4096;

struct Rated {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

enum Part { kOutput, kInput, kFilter };

// Sums of doubles by place, stored where the result's elements lie.
void Compute(Part part, const Tensor& x, const Tensor& w, const Tensor& y,
             const Work& work, const void* first, const void* second,
             void* result) {
  const Tensor& to = part == kOutput ? y : part == kInput ? x : w;
  std::vector<double> sums(static_cast<size_t>(SizeOf(to)), 0.0);
  ForEachProduct(x, w, y, work, [&](int64_t i, int64_t j, int64_t k) {
    const int64_t a = part == kInput ? j : i;
    const int64_t b = part == kOutput ? j : k;
    const int64_t c = part == kOutput ? k : part == kInput ? i : j;
    sums[static_cast<size_t>(c)] +=
        double{Load(x.type, first, a)} * Load(x.type, second, b);
  });
  for (size_t i = 0; i < sums.size(); ++i)
    Store(x.type, result, static_cast<int64_t>(i), sums[i]);
}

int Rate(Part part, void* a, void* b, void* work, void* c, int most, int* count,
         Rated* rated) {
  const auto* first = static_cast<Tensor*>(a);
  const auto* second = static_cast<Tensor*>(b);
  const auto* result = static_cast<Tensor*>(c);
  const Work& w = *static_cast<Work*>(work);
  const bool fits = part == kOutput  ? Fits(*first, *second, *result, w)
                    : part == kInput ? Fits(*result, *first, *second, w)
                                     : Fits(*first, *result, *second, w);
  *count = 0;
  // Halves go with tensor cores.
  const bool halves = first->type != kFloat32;
  if (!fits || (halves && w.math != 1) || most < 3) return kBadParam;
  rated[0] = {0, kNotSupported, -1, 0, 1, w.math, {}};
  rated[1] = {1, kSuccess, 0.5f, kGreedy, 0, w.math, {}};
  rated[2] = {2, kSuccess, 1.0f, kModest, 1, w.math, {}};
  *count = 3;
  return kSuccess;
}

// NVIDIA's parameters are more than a function of ours may have.
struct Call {
  const void *alpha, *beta;
  void *a_tensor, *b_tensor, *work, *c_tensor;
  const void *a, *b;
  void* c;
  int algorithm;
  void* workspace;
  size_t bytes;
};

int Start(Part part, const Call& call) {
  const Tensor first = *static_cast<Tensor*>(call.a_tensor);
  const Tensor second = *static_cast<Tensor*>(call.b_tensor);
  const Tensor result = *static_cast<Tensor*>(call.c_tensor);
  const Work work = *static_cast<Work*>(call.work);
  const size_t wanted = call.algorithm == 1 ? kGreedy : kModest;
  if (*static_cast<const float*>(call.alpha) != 1 ||
      *static_cast<const float*>(call.beta) != 0 || call.algorithm < 1 ||
      call.algorithm > 2 || call.workspace == nullptr || call.bytes < wanted ||
      reinterpret_cast<uintptr_t>(call.workspace) % 64 != 0)
    return kBadParam;
  const Tensor x = part == kInput ? result : first;
  const Tensor w = part == kOutput ? second : part == kInput ? first : result;
  const Tensor y = part == kOutput ? result : second;
  if (!Fits(x, w, y, work) || (x.type != kFloat32 && work.math != 1))
    return kBadParam;
  pd::Enqueue([=] {
    std::memset(call.workspace, 0xff, wanted);
    Compute(part, x, w, y, work, call.a, call.b, call.c);
  });
  return kSuccess;
}

int searches = 0;

// Runs every algorithm on the caller's memory; the fastest comes first. Times
// of math that nobody asked for are among them.
int Try(Part part, Call call, int most, int* count, Rated* tried) {
  Rated rated[3];
  int known = 0;
  const int status = Rate(part, call.a_tensor, call.b_tensor, call.work,
                          call.c_tensor, 3, &known, rated);
  *count = 0;
  if (status != kSuccess || most < 4) return kBadParam;
  ++searches;
  static const float kOne = 1, kNone = 0;
  call.alpha = &kOne;
  call.beta = &kNone;
  for (const int algorithm : {2, 1}) {
    call.algorithm = algorithm;
    if (call.bytes < (algorithm == 1 ? kGreedy : kModest)) continue;
    const int started = Start(part, call);
    if (started != kSuccess) return started;
  }
  const int math = static_cast<Work*>(call.work)->math;
  const int greedy = call.bytes < kGreedy ? kNotSupported : kSuccess;
  tried[0] = {1, greedy, 0.125f, kGreedy, 0, 1, {}};
  tried[1] = {2, kSuccess, 0.25f, kModest, 1, math, {}};
  tried[2] = {1, greedy, 0.5f, kGreedy, 0, math, {}};
  tried[3] = rated[0];
  *count = 4;
  return kSuccess;
}

int Measure(int algorithm, size_t* bytes) {
  *bytes = algorithm == 1 ? kGreedy : kModest;
  return algorithm == 1 || algorithm == 2 ? kSuccess : kNotSupported;
}

template <typename T>
int Make(void** handle) {
  *handle = new T;
  return kSuccess;
}
template <typename T>
int Delete(void* handle) {
  delete static_cast<T*>(handle);
  return kSuccess;
}
bool Known(int type) {
  return type == kFloat32 || type == kFloat16 || type == kBFloat16;
}

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return 91902; }
int cudnnCreate(void** handle) { return Make<int>(handle); }
int cudnnSetStream(void*, void* stream) {
  return stream == nullptr ? kBadParam : kSuccess;
}

int cudnnCreateTensorDescriptor(void** t) { return Make<Tensor>(t); }
int cudnnDestroyTensorDescriptor(void* t) { return Delete<Tensor>(t); }
int cudnnSetTensorNdDescriptor(void* t, int type, int n, const int* dims,
                               const int* strides) {
  if (!Known(type) || n < 4) return kBadParam;
  *static_cast<Tensor*>(t) = {type, {dims, dims + n}, {strides, strides + n}};
  return kSuccess;
}
int cudnnCreateFilterDescriptor(void** t) { return Make<Tensor>(t); }
int cudnnDestroyFilterDescriptor(void* t) { return Delete<Tensor>(t); }
int cudnnSetFilterNdDescriptor(void* t, int type, int format, int n,
                               const int* dims) {
  if (!Known(type) || format < 0 || format > 1 || n < 4) return kBadParam;
  Tensor filter{type, {dims, dims + n}, std::vector<int>(dims, dims + n)};
  filter.last = format == 1;
  int step = filter.last ? dims[1] : 1;
  for (size_t d = static_cast<size_t>(n); d-- > 0;) {
    if (d == 1 && filter.last) continue;
    filter.strides[d] = step;
    step *= dims[d];
  }
  if (filter.last) filter.strides[1] = 1;
  *static_cast<Tensor*>(t) = filter;
  return kSuccess;
}
int cudnnCreateConvolutionDescriptor(void** w) { return Make<Work>(w); }
int cudnnDestroyConvolutionDescriptor(void* w) { return Delete<Work>(w); }
#define PD_NUMBERS const int *paddings, const int *strides, const int *dilations
int cudnnSetConvolutionNdDescriptor(void* w, int n, PD_NUMBERS, int mode,
                                    int compute) {
  if (mode != 1 || compute != kFloat32) return kNotSupported;
  *static_cast<Work*>(w) = {{paddings, paddings + n},
                            {strides, strides + n},
                            {dilations, dilations + n},
                            1,
                            0};
  return kSuccess;
}
int cudnnSetConvolutionGroupCount(void* w, int groups) {
  static_cast<Work*>(w)->groups = groups;
  return groups > 0 ? kSuccess : kBadParam;
}
int cudnnSetConvolutionMathType(void* w, int math) {
  static_cast<Work*>(w)->math = math;
  return kSuccess;
}

#define PD_RATE(name, part)                                                   \
  int cudnnGet##name##Algorithm_v7(void*, void* a, void* b, void* w, void* c, \
                                   int most, int* count, Rated* rated) {      \
    return Rate(part, a, b, w, c, most, count, rated);                        \
  }
PD_RATE(ConvolutionForward, kOutput)
PD_RATE(ConvolutionBackwardData, kInput)
PD_RATE(ConvolutionBackwardFilter, kFilter)

#define PD_TRY(name, part)                                                     \
  int cudnnFind##name##AlgorithmEx(void*, void* da, const void* a, void* db,   \
                                   const void* b, void* w, void* dc, void* c,  \
                                   int most, int* count, Rated* tried,         \
                                   void* workspace, size_t bytes) {            \
    return Try(                                                                \
        part, {nullptr, nullptr, da, db, w, dc, a, b, c, 0, workspace, bytes}, \
        most, count, tried);                                                   \
  }                                                                            \
  int cudnnGet##name##WorkspaceSize(void*, void*, void*, void*, void*,         \
                                    int algorithm, size_t* bytes) {            \
    return Measure(algorithm, bytes);                                          \
  }
PD_TRY(ConvolutionForward, kOutput)
PD_TRY(ConvolutionBackwardData, kInput)
PD_TRY(ConvolutionBackwardFilter, kFilter)

// For tests: how often algorithms were run.
int fake_cudnn_searches() { return searches; }

#define PD_RUN(name, part)                                                     \
  int cudnn##name(void*, const void* alpha, void* da, const void* a, void* db, \
                  const void* b, void* w, int algorithm, void* workspace,      \
                  size_t bytes, const void* beta, void* dc, void* c) {         \
    return Start(part, {alpha, beta, da, db, w, dc, a, b, c, algorithm,        \
                        workspace, bytes});                                    \
  }
PD_RUN(ConvolutionForward, kOutput)
PD_RUN(ConvolutionBackwardData, kInput)
PD_RUN(ConvolutionBackwardFilter, kFilter)

}  // extern "C"
