// SPDX-License-Identifier: Apache-2.0
// The table of kernels against the operators here and against the headers of
// PaddlePaddle 2.6.2.
#include "libcore/plugin/kernel_signatures.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/plugins.h"

namespace pd {
namespace test_kernel_signatures {

const KernelSignature* Find(const std::string& op, const std::string& text) {
  for (const KernelSignature& signature : KernelSignatures())
    if (signature.op == op && signature.Text() == text) return &signature;
  return nullptr;
}

TEST(KernelSignatures, AreReadFromTheTable) {
  const KernelSignature* clip = Find("clip", "clip(X; min, max) -> Out");
  ASSERT_NE(clip, nullptr);
  ASSERT_EQ(clip->attrs.size(), 2u);
  EXPECT_EQ(clip->attrs[1].slots, std::vector<std::string>{"Max"});
  EXPECT_FALSE(clip->trailing);
  const KernelSignature* embedding =
      Find("lookup_table_v2", "embedding(Ids, W; padding_idx) -> Out");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->typed, 1u);
  EXPECT_FALSE(embedding->typed_by_output);
  const KernelSignature* like =
      Find("fill_any_like", "full_like(X; value, dtype) -> Out");
  ASSERT_NE(like, nullptr);
  EXPECT_TRUE(like->typed_by_output);
  const KernelSignature* stable = Find(
      "argsort", "argsort(X; axis, descending, stable=false) -> Out, Indices");
  ASSERT_NE(stable, nullptr);
  EXPECT_EQ(stable->attrs[2].fixed, std::optional<bool>(false));
  const KernelSignature* divide =
      Find("elementwise_div_grad",
           "divide_grad(X, Y, Out, Out@GRAD; axis) -> X@GRAD, Y@GRAD");
  ASSERT_NE(divide, nullptr);
  EXPECT_EQ(divide->inputs[3], "Out@GRAD");
}

std::set<std::string> NamesOf(const std::vector<SlotDef>& slots) {
  std::set<std::string> names;
  for (const SlotDef& slot : slots) names.insert(slot.name);
  return names;
}

// Names of a row that its operator does not have.
std::vector<std::string> Strangers(const KernelSignature& row,
                                   const OpDef& def) {
  std::vector<std::string> strangers;
  const std::set<std::string> inputs = NamesOf(def.inputs()),
                              outputs = NamesOf(def.outputs());
  std::set<std::string> attrs;
  for (const AttrDef& attr : def.attrs()) attrs.insert(attr.name);
  for (const std::string& slot : row.inputs)
    if (inputs.count(slot) == 0) strangers.push_back("input " + slot);
  for (const std::string& slot : row.outputs)
    if (outputs.count(slot) == 0) strangers.push_back("output " + slot);
  for (const SignatureAttr& attr : row.attrs) {
    if (!attr.fixed.has_value() && attr.name[0] != '$' &&
        attrs.count(attr.name) == 0)
      strangers.push_back("attribute " + attr.name);
    for (const std::string& slot : attr.slots)
      if (inputs.count(slot) == 0) strangers.push_back("input " + slot);
  }
  return strangers;
}

TEST(KernelSignatures, NameWhatTheirOperatorsHave) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  // Other tests may have loaded plug-ins, whose operators have rows too.
  ASSERT_TRUE(AddPluginOps(&registry).ok());
  std::set<std::string> rows;
  for (const KernelSignature& row : KernelSignatures()) {
    const std::string text = row.op + ": " + row.Text();
    EXPECT_TRUE(rows.insert(text).second || row.trailing) << "twice: " << text;
    EXPECT_FALSE(row.outputs.empty()) << text;
    const OpDef* def = registry.Find(row.op);
    if (def == nullptr) {
      ADD_FAILURE() << "no such operator: " << text;
      continue;
    }
    const std::vector<std::string> strangers = Strangers(row, *def);
    EXPECT_TRUE(strangers.empty())
        << text << " names " << absl::StrJoin(strangers, ", ");
  }
  EXPECT_GT(rows.size(), 600u);
}

// Names of kernels without case and underscores, as the golden file has them.
std::string Plain(const std::string& kernel) {
  return absl::StrReplaceAll(kernel, {{"_", ""}});
}

TEST(KernelSignatures, HaveTheNumbersOfArgumentsOfPaddlePaddle) {
  std::map<std::string, std::set<std::string>> golden, ours;
  std::ifstream file(PD_TESTDATA "/plugin/kernel_parameters.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::pair<std::string, std::string> words =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    golden[words.first].insert(words.second);
  }
  for (const KernelSignature& row : KernelSignatures())
    ours[Plain(row.kernel)].insert(absl::StrJoin(
        {row.inputs.size(), row.attrs.size(), row.outputs.size()}, " "));
  size_t compared = 0;
  for (const auto& [kernel, counts] : ours) {
    const auto at = golden.find(kernel);
    if (at == golden.end()) continue;
    ++compared;
    bool same = false;
    for (const std::string& count : counts)
      same = same || at->second.count(count) > 0;
    EXPECT_TRUE(same) << kernel << " has " << absl::StrJoin(counts, " or ")
                      << "; PaddlePaddle's has "
                      << absl::StrJoin(at->second, " or ");
  }
  EXPECT_GT(compared, 400u);
}

}  // namespace test_kernel_signatures
}  // namespace pd
