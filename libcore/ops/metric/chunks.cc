// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/metric/chunks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libcore/base/error.h"

namespace pd {
namespace {

struct Tag {
  int64_t position = -1, type = 0;
};

bool Ends(const ChunkScheme& s, const Tag& before, const Tag& tag) {
  if (before.type == s.types) return false;
  if (tag.type != before.type) return true;
  if (before.position < 0) return false;
  if (before.position == s.begin || before.position == s.inside)
    return tag.position == s.begin || tag.position == s.single;
  return before.position == s.end || before.position == s.single;
}

bool Begins(const ChunkScheme& s, const Tag& before, const Tag& tag) {
  if (tag.type == s.types) return false;
  if (tag.type != before.type) return true;
  if (tag.position < 0) return false;
  if (tag.position == s.begin || tag.position == s.single) return true;
  // Inside or end: the chunk before is over.
  return before.position == s.end || before.position == s.single;
}

}  // namespace

absl::StatusOr<ChunkScheme> ChunkScheme::Of(absl::string_view name,
                                            int64_t types,
                                            std::vector<int32_t> excluded) {
  ChunkScheme s;
  if (name == "IOB") {
    s.tags = 2;
    s.begin = 0;
    s.inside = 1;
  } else if (name == "IOE") {
    s.tags = 2;
    s.inside = 0;
    s.end = 1;
  } else if (name == "IOBES") {
    s.tags = 4;
    s.begin = 0;
    s.inside = 1;
    s.end = 2;
    s.single = 3;
  } else if (name != "plain") {
    return InvalidArgument(
        "'chunk_scheme' is '%s'; expected 'IOB', "
        "'IOE', 'IOBES' or 'plain'",
        name);
  }
  s.types = types;
  s.excluded = std::move(excluded);
  return s;
}

bool ChunkScheme::Counts(int64_t type) const {
  return std::find(excluded.begin(), excluded.end(), type) == excluded.end();
}

absl::Status FindChunks(const ChunkScheme& s, const std::vector<int64_t>& tags,
                        std::vector<Chunk>* chunks) {
  chunks->clear();
  Tag before{-1, s.types};
  bool in_chunk = false;
  int64_t start = 0;
  const auto length = static_cast<int64_t>(tags.size());
  for (int64_t i = 0; i < length; ++i) {
    const int64_t value = tags[static_cast<size_t>(i)];
    if (value < 0 || value > s.types * s.tags)
      return InvalidArgument("a tag is %d; expected 0 to %d", value,
                             s.types * s.tags);
    const Tag tag{value % s.tags, value / s.tags};
    if (in_chunk && Ends(s, before, tag)) {
      chunks->push_back({start, i - 1, before.type});
      in_chunk = false;
    }
    if (Begins(s, before, tag)) {
      start = i;
      in_chunk = true;
    }
    before = tag;
  }
  if (in_chunk) chunks->push_back({start, length - 1, before.type});
  return absl::OkStatus();
}

void ChunkCounts::Add(const ChunkScheme& s, const std::vector<Chunk>& found,
                      const std::vector<Chunk>& wanted) {
  for (const Chunk& c : found) inferred += s.Counts(c.type) ? 1 : 0;
  for (const Chunk& c : wanted) labelled += s.Counts(c.type) ? 1 : 0;
  for (size_t i = 0, j = 0; i < found.size() && j < wanted.size();) {
    const Chunk &a = found[i], &b = wanted[j];
    if (a.begin == b.begin && a.end == b.end && a.type == b.type &&
        s.Counts(a.type))
      ++correct;
    if (a.end <= b.end) ++i;
    if (b.end <= a.end) ++j;
  }
}

}  // namespace pd
