// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/sub_graphs.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/file.h"
#include "libcore/program/text_dump.h"

namespace pd {

std::vector<std::vector<size_t>> SubGraphsOf(const ProgramDesc& program) {
  const std::vector<OpDesc>& ops = program.global().ops;
  // A forest over ops: the roots of two ops that share a variable are united.
  std::vector<size_t> parent(ops.size());
  std::iota(parent.begin(), parent.end(), size_t{0});
  const auto root = [&parent](size_t op) {
    while (parent[op] != op) op = parent[op] = parent[parent[op]];
    return op;
  };
  std::unordered_map<std::string, size_t> first;  // op that uses a variable
  for (size_t i = 0; i < ops.size(); ++i)
    for (const auto* slots : {&ops[i].inputs, &ops[i].outputs})
      for (const auto& [slot, names] : *slots)
        for (const std::string& name : names) {
          if (name == kEmptyVar) continue;
          const size_t a = root(first.emplace(name, i).first->second);
          const size_t b = root(i);
          parent[std::max(a, b)] = std::min(a, b);
        }
  std::map<size_t, std::vector<size_t>> groups;
  for (size_t i = 0; i < ops.size(); ++i) groups[root(i)].push_back(i);
  std::vector<std::vector<size_t>> result;
  for (auto& [op, group] : groups) result.push_back(std::move(group));
  return result;
}

absl::Status AddSubGraphs(const std::string& label, const ProgramDesc& program,
                          const std::string& path) {
  static std::mutex mutex;
  static auto* text = new std::string;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto groups = SubGraphsOf(program);
  absl::StrAppend(text, "program '", label, "': ", groups.size(),
                  groups.size() == 1 ? " sub-graph\n" : " sub-graphs\n");
  for (size_t g = 0; g < groups.size(); ++g) {
    absl::StrAppend(text, "sub-graph ", g, "\n");
    for (const size_t op : groups[g])
      absl::StrAppend(text, DumpOp(program, 0, program.global().ops[op]), "\n");
  }
  return WriteFile(path, *text);
}

}  // namespace pd
