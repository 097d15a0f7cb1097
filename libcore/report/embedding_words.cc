// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/embedding_words.h"

#include "absl/strings/str_cat.h"
#include "libcore/data/vocabulary.h"

namespace pd {
namespace {

bool KeepsNumbers(const std::string& type) {
  for (const char* kept : {"assign", "cast", "reshape2", "squeeze2",
                           "unsqueeze2", "flatten_contiguous_range"})
    if (type == kept) return true;
  return false;
}

// The variable that `name` has its numbers from, through ops that only change
// their shape or type; ops are in the order of running.
std::string Source(const std::vector<OpDesc>& ops, size_t before,
                   std::string name) {
  for (size_t i = before; i-- > 0;)
    if (KeepsNumbers(ops[i].type) && ops[i].Out("Out") == name)
      name = ops[i].In("X");
  return name;
}

const Vocabulary* FindWords(const ProgramDesc& program,
                            const std::string& table, const Dataset& data) {
  const std::vector<OpDesc>& ops = program.blocks[0].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].type != "lookup_table_v2" || ops[i].In("W") != table) continue;
    const auto found =
        data.vocabularies().find(Source(ops, i, ops[i].In("Ids")));
    if (found != data.vocabularies().end()) return found->second.get();
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> EmbeddingLabels(const ProgramDesc& program,
                                         const std::string& table, int64_t rows,
                                         const Dataset& data) {
  const Vocabulary* words = FindWords(program, table, data);
  std::vector<std::string> labels;
  for (int64_t i = 0; i < rows; ++i)
    labels.push_back(
        words != nullptr && i < words->size()
            ? PrintableToken(words->tokens()[static_cast<size_t>(i)])
            : absl::StrCat(i));
  return labels;
}

}  // namespace pd
