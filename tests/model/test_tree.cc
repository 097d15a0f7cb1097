// SPDX-License-Identifier: Apache-2.0
// Nested Python objects as named arrays and a JSON text.
#include "libcore/model/tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pd {
namespace test_tree {

TEST(Tree, FlatNamesAndTypes) {
  PickleDict inner;
  inner.Add("w", PickleValue{MakeArray<float>({1}, {1})});
  inner.items.emplace_back(PickleValue{int64_t{3}},
                           PickleValue{MakeArray<float>({1}, {2})});
  PickleDict root;
  root.Add("model", PickleValue{inner});
  root.Add("epoch", PickleValue{int64_t{5}});
  const PickleValue value{root};
  const auto flat = Flatten(value, "alone");
  ASSERT_TRUE(flat.ok());
  ASSERT_EQ(flat->arrays.size(), 2u);
  EXPECT_EQ(flat->arrays[0].name, "model/w");
  EXPECT_EQ(flat->arrays[1].name, "model/3");
  EXPECT_EQ(flat->others, std::vector<std::string>{"'epoch' (int)"});
  root.Add("model/w", PickleValue{MakeArray<float>({1}, {3})});
  EXPECT_FALSE(Flatten(PickleValue{root}, "alone").ok());
}

TEST(Tree, RefusesJsonThatIsNoTree) {
  for (const char* text :
       {"", "[]", "{}", "{\"array\":\"x\"}", "{\"array\":1}", "{\"int\":\"x\"}",
        "{\"list\":{}}", "{\"dict\":[[1]]}", "{\"bytes\":\"0\"}",
        "{\"value\":{}}", "{\"complex\":[\"1\"]}", "{\"dict\":3}"})
    EXPECT_TRUE(absl::IsDataLoss(TreeFromJson(text, {}).status())) << text;
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"list\":[";
  EXPECT_FALSE(TreeFromJson(deep, {}).ok());
}

}  // namespace test_tree
}  // namespace pd
