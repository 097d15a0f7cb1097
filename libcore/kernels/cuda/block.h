// SPDX-License-Identifier: Apache-2.0
// How our kernels are written: a body is a function of a Block of threads and
// of one struct of arguments. nvcc makes a kernel of it; the tests' fake driver
// for the driver compiles the same body for the CPU, and runs block after block
// and thread after thread. So what threads do between two barriers is a lambda
// that is given to Each, and what a thread keeps from one to the next is a
// PerThread. Sums are formed in the same order either way.
#ifndef PD_LIBCORE_KERNELS_CUDA_BLOCK_H_
#define PD_LIBCORE_KERNELS_CUDA_BLOCK_H_

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define PD_DEVICE __device__ __forceinline__
#define PD_UNROLL _Pragma("unroll")
#define PD_KEEP_LOOP _Pragma("unroll 1")
#else
#include <array>
#include <cstdlib>
#define PD_DEVICE inline
#define PD_UNROLL
#define PD_KEEP_LOOP
#endif

namespace pd::cuda {

inline constexpr int kMostThreads = 1024;
inline constexpr int kWarp = 32;
/// The most threads of a kernel that is declared by PD_SMALL_KERNEL.
inline constexpr int kSmallBlock = 256;

/// A variable of each thread.
template <typename T>
class PerThread {
 public:
#ifdef __CUDACC__
  PD_DEVICE PerThread() {}
  PD_DEVICE explicit PerThread(T value) : value_(value) {}
  PD_DEVICE T& operator[](int) { return value_; }

 private:
  T value_;
#else
  PerThread() = default;
  explicit PerThread(T value) { values_.fill(value); }
  T& operator[](int thread) { return values_[static_cast<size_t>(thread)]; }
  const T& operator[](int thread) const {
    return values_[static_cast<size_t>(thread)];
  }

 private:
  std::array<T, kMostThreads> values_;
#endif
};

/// The threads that can wait for each other; a multiple of kWarp.
class Block {
 public:
#ifdef __CUDACC__
  PD_DEVICE int64_t index() const { return blockIdx.x; }
  PD_DEVICE int64_t blocks() const { return gridDim.x; }
  PD_DEVICE int threads() const { return static_cast<int>(blockDim.x); }

  /// f(thread) for every thread, whose results no other thread reads.
  template <typename F>
  PD_DEVICE void EachAlone(F f) const {
    f(static_cast<int>(threadIdx.x));
  }
  /// f(thread) for every thread, then a barrier.
  template <typename F>
  PD_DEVICE void Each(F f) const {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
#else
  Block(int64_t index, int64_t blocks, int threads)
      : index_(index), blocks_(blocks), threads_(threads) {}
  int64_t index() const { return index_; }
  int64_t blocks() const { return blocks_; }
  int threads() const { return threads_; }

  template <typename F>
  void EachAlone(F f) const {
    Each(f);
  }
  template <typename F>
  void Each(F f) const {
    for (int thread = 0; thread < threads_; ++thread) f(thread);
  }
#endif

  /// f(i) for every i in [0, n), spread over all threads of all blocks.
  template <typename F>
  PD_DEVICE void Spread(int64_t n, F f) const {
    const int64_t step = blocks() * threads();
#ifdef __CUDACC__
    for (int64_t i = index() * threads() + threadIdx.x; i < n; i += step) f(i);
#else
    for (int64_t first = index() * threads(); first < n; first += step)
      for (int64_t i = first; i < n && i < first + threads(); ++i) f(i);
#endif
  }

  /// op over all threads' values, given to all of them: a butterfly in each
  /// warp, then the warps in order.
  template <typename T, typename Op>
  PD_DEVICE T Reduce(PerThread<T>* values, Op op) const {
#ifdef __CUDACC__
    __shared__ T warps[kMostThreads / kWarp];
    T value = (*values)[0];
    for (int distance = kWarp / 2; distance > 0; distance /= 2)
      value = op(value, __shfl_xor_sync(0xffffffffu, value, distance));
    if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = value;
    __syncthreads();
    T result = warps[0];
    for (int w = 1; w < threads() / kWarp; ++w) result = op(result, warps[w]);
    __syncthreads();
    return result;
#else
    T result{};
    for (int warp = 0; warp < threads_ / kWarp; ++warp) {
      T lanes[kWarp], next[kWarp];
      for (int i = 0; i < kWarp; ++i) lanes[i] = (*values)[warp * kWarp + i];
      for (int distance = kWarp / 2; distance > 0; distance /= 2) {
        for (int i = 0; i < kWarp; ++i)
          next[i] = op(lanes[i], lanes[i ^ distance]);
        for (int i = 0; i < kWarp; ++i) lanes[i] = next[i];
      }
      result = warp == 0 ? lanes[0] : op(result, lanes[0]);
    }
    return result;
#endif
  }

  /// Gives each thread op over the values of its group, `size` neighbours: all
  /// threads of the block, or a power of two of at most kWarp.
  template <typename T, typename Op>
  PD_DEVICE void ReduceGroups(PerThread<T>* values, int size, Op op) const {
    if (size > kWarp) {
      const T result = Reduce(values, op);
      EachAlone([&](int thread) { (*values)[thread] = result; });
      return;
    }
    for (int distance = size / 2; distance > 0; distance /= 2) {
#ifdef __CUDACC__
      T& value = (*values)[0];
      value = op(value, __shfl_xor_sync(0xffffffffu, value, distance));
#else
      const PerThread<T> before = *values;
      for (int i = 0; i < threads_; ++i)
        (*values)[i] = op(before[i], before[i ^ distance]);
#endif
    }
  }

#ifndef __CUDACC__
 private:
  int64_t index_, blocks_;
  int threads_;
#endif
};

}  // namespace pd::cuda

/// PD_SHARED(T, name, count): an array of the block; its threads see what
/// others wrote before a barrier.
///
/// PD_KERNEL(name, Body, Args): the kernel `name`, which the host starts by
/// that name with an Args; Body::Run(block, args) is what a block does.
/// PD_SMALL_KERNEL: one whose threads, kSmallBlock at most, may have 85
/// registers instead of 64.
#ifdef __CUDACC__
#define PD_SHARED(T, name, count) __shared__ T name[count]
#define PD_BOUNDED_KERNEL(name, Body, Args, ...)            \
  extern "C" __global__ void __launch_bounds__(__VA_ARGS__) \
      name(const __grid_constant__ Args args) {             \
    Body::Run(pd::cuda::Block(), args);                     \
  }
#define PD_KERNEL(name, Body, Args) \
  PD_BOUNDED_KERNEL(name, Body, Args, pd::cuda::kMostThreads)
#define PD_SMALL_KERNEL(name, Body, Args) \
  PD_BOUNDED_KERNEL(name, Body, Args, pd::cuda::kSmallBlock, 3)
#else
#define PD_SHARED(T, name, count) T name[count]
#define PD_SMALL_KERNEL(name, Body, Args) \
  PD_BOUNDED_KERNEL(name, Body, Args, pd::cuda::kSmallBlock)
#define PD_KERNEL(name, Body, Args) \
  PD_BOUNDED_KERNEL(name, Body, Args, pd::cuda::kMostThreads)
#define PD_BOUNDED_KERNEL(name, Body, Args, most)            \
  extern "C" {                                               \
  extern const size_t name##_bytes;                          \
  const size_t name##_bytes = sizeof(Args);                  \
  void name(const void* args, int64_t blocks, int threads) { \
    if (threads > most) std::abort();                        \
    for (int64_t i = 0; i < blocks; ++i)                     \
      Body::Run(pd::cuda::Block(i, blocks, threads),         \
                *static_cast<const Args*>(args));            \
  }                                                          \
  }
#endif

#endif  // PD_LIBCORE_KERNELS_CUDA_BLOCK_H_
