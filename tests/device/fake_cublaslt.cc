// SPDX-License-Identifier: Apache-2.0
// A libcublasLt.so.13 for machines without a GPU: products by plain
// loops over the column-major matrices that the descriptors describe, run by
// the fake driver beside it when it gets to them. Descriptors that do not fit
// together are refused, as the real library does; so are products of int8 that
// a GPU's units for integers do not take.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "libcore/base/half.h"
#include "tests/device/fake_queue.h"

namespace {

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr int kFloat32 = 0, kFloat64 = 1, kFloat16 = 2, kInt8 = 3, kInt32 = 10,
              kBFloat16 = 14;
constexpr int kCompute64 = 70, kComputeInt32 = 72;
// The library may ask for memory; the loops write all of it.
constexpr size_t kWorkspace = 1024;

struct Operation {
  int compute = 0;
  int scale = kFloat32;
  int32_t trans_a = 0, trans_b = 0;
  int32_t epilogue = 1;  // none; 4: a bias, 6: and a ReLU
  const void* bias = nullptr;
};
struct Layout {
  int type = 0;
  int64_t rows = 0, columns = 0, ld = 0, stride = 0;
  int32_t batch = 1;
};
// For which addresses, multiples of this, the algorithm was asked.
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment = 256;
};
struct Algo {
  uint64_t data[8];
};
struct Heuristic {
  Algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

struct Problem {
  Operation op;
  Layout a, b, c;
  double alpha, beta;
  const void *x, *y, *z;
  void* out;
};

double Load(int type, const void* data, int64_t i) {
  if (type == kFloat64) return static_cast<const double*>(data)[i];
  if (type == kFloat16) return double{static_cast<const pd::Float16*>(data)[i]};
  if (type == kBFloat16)
    return double{static_cast<const pd::BFloat16*>(data)[i]};
  return double{static_cast<const float*>(data)[i]};
}
// The product and what is added to it, in the type that sums are scaled in.
void Store(int type, void* data, int64_t i, double product, double before,
           bool relu) {
  float value = static_cast<float>(product) + static_cast<float>(before);
  if (relu && value < 0) value = 0;
  if (type == kFloat64)
    static_cast<double*>(data)[i] = product + before;
  else if (type == kFloat16)
    static_cast<pd::Float16*>(data)[i] = pd::Float16(value);
  else if (type == kBFloat16)
    static_cast<pd::BFloat16*>(data)[i] = pd::BFloat16(value);
  else
    static_cast<float*>(data)[i] = value;
}

// Of matrix `batch`.
double At(const void* data, const Layout& layout, int32_t batch,
          bool transposed, int64_t row, int64_t column) {
  if (transposed) std::swap(row, column);
  return Load(layout.type, data,
              batch * layout.stride + row + column * layout.ld);
}

// Of integers: A transposed, B not, m, k and distances in fours, addresses too.
bool TypesFit(const Problem& p) {
  // A bias is for floats, and one bias for one product.
  if (p.op.epilogue != 1 &&
      ((p.op.epilogue != 4 && p.op.epilogue != 6) || p.op.bias == nullptr ||
       p.op.compute == kCompute64 || p.op.compute == kComputeInt32 ||
       p.c.batch != 1))
    return false;
  if (p.op.compute == kCompute64)
    return p.op.scale == kFloat64 && p.a.type == kFloat64 &&
           p.b.type == kFloat64 && p.c.type == kFloat64;
  if (p.op.compute != kComputeInt32)
    return p.op.scale == kFloat32 && p.a.type == p.c.type &&
           p.b.type == p.c.type && p.c.type != kInt8 && p.c.type != kInt32 &&
           p.c.type != kFloat64 && (p.op.compute == 68 || p.op.compute == 77);
  for (const Layout* l : {&p.a, &p.b, &p.c})
    if (l->ld % 4 != 0 || l->stride % 4 != 0) return false;
  for (const void* data : {p.x, p.y, p.z, const_cast<const void*>(p.out)})
    if (reinterpret_cast<uintptr_t>(data) % 4 != 0) return false;
  return p.op.scale == kInt32 && p.a.type == kInt8 && p.b.type == kInt8 &&
         p.c.type == kInt32 && p.op.trans_a != 0 && p.op.trans_b == 0 &&
         p.c.rows % 4 == 0 && p.a.rows % 4 == 0;
}

bool Fits(const Problem& p) {
  const int64_t a_rows = p.op.trans_a ? p.a.columns : p.a.rows;
  const int64_t a_columns = p.op.trans_a ? p.a.rows : p.a.columns;
  const int64_t b_rows = p.op.trans_b ? p.b.columns : p.b.rows;
  const int64_t b_columns = p.op.trans_b ? p.b.rows : p.b.columns;
  return a_rows == p.c.rows && b_columns == p.c.columns &&
         a_columns == b_rows && p.a.ld >= p.a.rows && p.b.ld >= p.b.rows &&
         p.c.ld >= p.c.rows && p.a.batch == p.c.batch &&
         p.b.batch == p.c.batch && TypesFit(p);
}

// Modulo 2^32, as the units do.
void ComputeIntegers(const Problem& p) {
  const auto* x = static_cast<const int8_t*>(p.x);
  const auto* y = static_cast<const int8_t*>(p.y);
  auto* out = static_cast<int32_t*>(p.out);
  for (int32_t batch = 0; batch < p.c.batch; ++batch)
    for (int64_t j = 0; j < p.c.columns; ++j)
      for (int64_t i = 0; i < p.c.rows; ++i) {
        const int8_t* a = x + batch * p.a.stride + i * p.a.ld;
        const int8_t* b = y + batch * p.b.stride + j * p.b.ld;
        uint32_t sum = 0;
        for (int64_t k = 0; k < p.a.rows; ++k)
          sum += static_cast<uint32_t>(a[k] * b[k]);
        out[batch * p.c.stride + i + j * p.c.ld] = static_cast<int32_t>(sum);
      }
}

void Compute(const Problem& p) {
  if (p.op.compute == kComputeInt32) return ComputeIntegers(p);
  const int64_t inner = p.op.trans_a ? p.a.rows : p.a.columns;
  for (int32_t batch = 0; batch < p.c.batch; ++batch) {
    for (int64_t j = 0; j < p.c.columns; ++j) {
      for (int64_t i = 0; i < p.c.rows; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += At(p.x, p.a, batch, p.op.trans_a != 0, i, k) *
                 At(p.y, p.b, batch, p.op.trans_b != 0, k, j);
        const int64_t at = batch * p.c.stride + i + j * p.c.ld;
        double before = p.beta == 0 ? 0 : p.beta * Load(p.c.type, p.z, at);
        if (p.op.epilogue != 1) before += Load(p.c.type, p.op.bias, i);
        Store(p.c.type, p.out, at, p.alpha * sum, before, p.op.epilogue == 6);
      }
    }
  }
}

double FactorOf(const Operation& op, const void* factor) {
  return op.scale == kFloat64 ? *static_cast<const double*>(factor)
                              : double{*static_cast<const float*>(factor)};
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
template <typename T>
int Read(const void* buffer, size_t bytes, T* value) {
  if (bytes != sizeof(T)) return kInvalidValue;
  std::memcpy(value, buffer, bytes);
  return kSuccess;
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130002; }
int cublasLtCreate(void** handle) { return Make<int>(handle); }

int cublasLtMatmulDescCreate(void** handle, int compute, int scale) {
  if (scale != (compute == kComputeInt32 ? kInt32
                : compute == kCompute64  ? kFloat64
                                         : kFloat32))
    return kNotSupported;
  *handle = new Operation{compute, scale};
  return kSuccess;
}
int cublasLtMatmulDescDestroy(void* handle) {
  return Delete<Operation>(handle);
}
int cublasLtMatmulDescSetAttribute(void* handle, int which, const void* buffer,
                                   size_t bytes) {
  auto* op = static_cast<Operation*>(handle);
  if (which == 3) return Read(buffer, bytes, &op->trans_a);
  if (which == 4) return Read(buffer, bytes, &op->trans_b);
  if (which == 7) return Read(buffer, bytes, &op->epilogue);
  if (which == 8) return Read(buffer, bytes, &op->bias);
  return kNotSupported;
}
int cublasLtMatrixLayoutCreate(void** handle, int type, uint64_t rows,
                               uint64_t columns, int64_t ld) {
  if (type != kFloat32 && type != kFloat64 && type != kFloat16 &&
      type != kBFloat16 && type != kInt8 && type != kInt32)
    return kNotSupported;
  *handle = new Layout{
      type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), ld, 0,
      1};
  return kSuccess;
}
int cublasLtMatrixLayoutDestroy(void* handle) { return Delete<Layout>(handle); }
int cublasLtMatrixLayoutSetAttribute(void* handle, int which,
                                     const void* buffer, size_t bytes) {
  auto* layout = static_cast<Layout*>(handle);
  if (which == 5) return Read(buffer, bytes, &layout->batch);
  if (which == 6) return Read(buffer, bytes, &layout->stride);
  return kNotSupported;
}
int cublasLtMatmulPreferenceCreate(void** handle) {
  return Make<Preference>(handle);
}
int cublasLtMatmulPreferenceDestroy(void* handle) {
  return Delete<Preference>(handle);
}
int cublasLtMatmulPreferenceSetAttribute(void* handle, int which,
                                         const void* buffer, size_t bytes) {
  auto* preference = static_cast<Preference*>(handle);
  if (which == 1) return Read(buffer, bytes, &preference->workspace);
  if (which < 5 || which > 8) return kNotSupported;
  return Read(buffer, bytes, &preference->alignment);
}
// NVIDIA's parameters are more than a function of ours may have.
#define PD_LAYOUTS void *a, void *b, void *c, void *
#define PD_RESULTS int, Heuristic *results, int *found
int cublasLtMatmulAlgoGetHeuristic(void*, void* op, PD_LAYOUTS,
                                   void* preference, PD_RESULTS) {
  const Problem p{*static_cast<Operation*>(op),
                  *static_cast<Layout*>(a),
                  *static_cast<Layout*>(b),
                  *static_cast<Layout*>(c),
                  1,
                  0,
                  nullptr,
                  nullptr,
                  nullptr,
                  nullptr};
  *found = 0;
  const auto& wanted = *static_cast<Preference*>(preference);
  if (!Fits(p) || wanted.workspace < kWorkspace) return kNotSupported;
  *results = {{{42, wanted.alignment}}, kWorkspace, kSuccess, 1.0f, {}};
  *found = 1;
  return kSuccess;
}
bool IsAligned(const void* address, uint64_t to) {
  return reinterpret_cast<uintptr_t>(address) % to == 0;
}
#define PD_FACTORS \
  const void *alpha, const void *x, void *a, const void *y, void *b
#define PD_SUMMANDS const void *beta, const void *z, void *c, void *out, void *
#define PD_MEMORY void *workspace, size_t bytes
int cublasLtMatmul(void*, void* op, PD_FACTORS, PD_SUMMANDS, const Algo* algo,
                   PD_MEMORY, void*) {
  const Operation& operation = *static_cast<Operation*>(op);
  const bool integers = operation.compute == kComputeInt32;
  // Of integers only 1 and 0 are computed here.
  if (integers && (*static_cast<const int32_t*>(alpha) != 1 ||
                   *static_cast<const int32_t*>(beta) != 0))
    return kNotSupported;
  const Problem p{operation,
                  *static_cast<Layout*>(a),
                  *static_cast<Layout*>(b),
                  *static_cast<Layout*>(c),
                  integers ? 1.0 : FactorOf(operation, alpha),
                  integers ? 0.0 : FactorOf(operation, beta),
                  x,
                  y,
                  z,
                  out};
  if (!Fits(p) || algo->data[0] != 42 || bytes < kWorkspace ||
      workspace == nullptr || !IsAligned(workspace, 256))
    return kInvalidValue;
  for (const void* matrix : {x, y, z, static_cast<const void*>(out)})
    if (!IsAligned(matrix, algo->data[1])) return kInvalidValue;
  pd::Enqueue([p, workspace] {
    std::memset(workspace, 0xff, kWorkspace);
    Compute(p);
  });
  return kSuccess;
}

}  // extern "C"
