// SPDX-License-Identifier: Apache-2.0
// Labelled chunks (named entities) in sequences of tags. A tag is chunk type *
// tags of the scheme + position; num_chunk_types * tags is "no chunk".
// Positions by scheme:
//   plain: none; IOB: begin, inside; IOE: inside, end; IOBES: begin, inside,
//   end, single
#ifndef PD_LIBCORE_OPS_METRIC_CHUNKS_H_
#define PD_LIBCORE_OPS_METRIC_CHUNKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// Numbers of positions; -1: the scheme has none.
struct ChunkScheme {
  int64_t tags = 1;
  int64_t begin = -1, inside = -1, end = -1, single = -1;
  int64_t types = 0;
  std::vector<int32_t> excluded;  ///< types that do not count

  /// InvalidArgument for another name than IOB, IOE, IOBES and plain.
  static absl::StatusOr<ChunkScheme> Of(absl::string_view name, int64_t types,
                                        std::vector<int32_t> excluded);
  bool Counts(int64_t type) const;
};

/// Positions [begin, end] of one type.
struct Chunk {
  int64_t begin = 0, end = 0, type = 0;
};

/// The chunks of a sequence, in its order. InvalidArgument on a tag that the
/// scheme does not have.
absl::Status FindChunks(const ChunkScheme& scheme,
                        const std::vector<int64_t>& tags,
                        std::vector<Chunk>* chunks);

/// A chunk is correct when begin, end and type agree.
struct ChunkCounts {
  int64_t inferred = 0, labelled = 0, correct = 0;

  void Add(const ChunkScheme& scheme, const std::vector<Chunk>& found,
           const std::vector<Chunk>& wanted);
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_METRIC_CHUNKS_H_
