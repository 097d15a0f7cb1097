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
#define PD_SHARED __shared__  // memory of the block
#else
#include <array>
#define PD_DEVICE inline
#define PD_SHARED
#endif

namespace pd::cuda {

inline constexpr int kMostThreads = 1024;
inline constexpr int kWarp = 32;

/// A variable of each thread.
template <typename T>
class PerThread {
 public:
#ifdef __CUDACC__
  PD_DEVICE explicit PerThread(T value) : value_(value) {}
  PD_DEVICE T& operator[](int) { return value_; }

 private:
  T value_;
#else
  explicit PerThread(T value) { values_.fill(value); }
  T& operator[](int thread) { return values_[static_cast<size_t>(thread)]; }

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

#ifndef __CUDACC__
 private:
  int64_t index_, blocks_;
  int threads_;
#endif
};

}  // namespace pd::cuda

/// PD_KERNEL(name, Body, Args): the kernel `name`, which the host starts by
/// that name with an Args; Body::Run(block, args) is what a block does.
#ifdef __CUDACC__
#define PD_KERNEL(name, Body, Args)                                    \
  extern "C" __global__ void __launch_bounds__(pd::cuda::kMostThreads) \
      name(const __grid_constant__ Args args) {                        \
    Body::Run(pd::cuda::Block(), args);                                \
  }
#else
#define PD_KERNEL(name, Body, Args)                          \
  extern "C" {                                               \
  extern const size_t name##_bytes;                          \
  const size_t name##_bytes = sizeof(Args);                  \
  void name(const void* args, int64_t blocks, int threads) { \
    for (int64_t i = 0; i < blocks; ++i)                     \
      Body::Run(pd::cuda::Block(i, blocks, threads),         \
                *static_cast<const Args*>(args));            \
  }                                                          \
  }
#endif

#endif  // PD_LIBCORE_KERNELS_CUDA_BLOCK_H_
