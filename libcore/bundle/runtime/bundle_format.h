// SPDX-License-Identifier: Apache-2.0
// The file of a bundle, all numbers little endian:
//
//   header    magic, uint32 version, uint32 zero, uint64 bytes of the file,
//             uint64 bytes of the graph
//   graph     values: uint32 count, then for each
//               string name, uint32 dtype, uint32 rank, int64 extents,
//               uint64 place of its elements in the file, 0: none
//             inputs, outputs: uint32 count, then uint32 values
//             nodes: uint32 count, then for each
//               string kernel, string layer,
//               inputs, outputs as above, kNoValue where there is none,
//               uint32 count, int64 numbers, uint32 count, float32 numbers
//   weights   each at a multiple of kAlignment
//
// A string is uint32 length and bytes. Values without a place are inputs and
// results; nodes stand in the order in which they run.
//
// Weights of products lie as the kernels read them, for every processor alike
// (gemm.h), so that opening a bundle reads no weight at all.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_BUNDLE_FORMAT_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_BUNDLE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace pd_run {

inline constexpr char kMagic[] = "pdbundle";  // without the zero
inline constexpr size_t kMagicBytes = 8;
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kHeaderBytes = 32;
inline constexpr size_t kAlignment = 64;
inline constexpr uint32_t kNoValue = 0xffffffffu;

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_BUNDLE_FORMAT_H_
