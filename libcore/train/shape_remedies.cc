// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/shape_remedies.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

// The fields of a layer that say the extents of its weight, by axis; "" for an
// extent that comes from the layer's input.
struct WeightFields {
  absl::string_view op, slot;
  std::vector<absl::string_view> by_axis;
};

const std::vector<WeightFields>& WeightFieldsByOp() {
  static const auto* const kFields = new std::vector<WeightFields>{
      {"matmul_v2", "Y", {"", "out_features"}},
      {"mul", "Y", {"", "out_features"}},
      {"conv2d", "Filter", {"out_channels", "", "kernel_size", "kernel_size"}},
      {"lookup_table_v2", "W", {"num_embeddings", "embedding_dim"}},
  };
  return *kFields;
}

// "out_features: 10": the field of the layer that makes the parameter as the
// file has it; "" where none alone does.
std::string FieldFor(const ProgramDesc& test,
                     const ParamMatch::Misshapen& one) {
  if (one.value.size() != one.declared.size()) return "";
  for (const WeightFields& fields : WeightFieldsByOp()) {
    if (fields.by_axis.size() != one.value.size()) continue;
    for (const BlockDesc& block : test.blocks) {
      for (const OpDesc& op : block.ops) {
        if (op.type != fields.op || op.In(fields.slot) != one.name) continue;
        std::set<std::string> texts;
        for (size_t axis = 0; axis < one.value.size(); ++axis)
          if (one.value[axis] != one.declared[axis])
            texts.insert(fields.by_axis[axis].empty()
                             ? ""
                             : absl::StrCat(fields.by_axis[axis], ": ",
                                            one.value[axis]));
        return texts.size() == 1 ? *texts.begin() : "";
      }
    }
  }
  return "";
}

bool IsReversed(const ParamMatch::Misshapen& one) {
  return one.value.size() == 2 && one.declared.size() == 2 &&
         one.value[0] == one.declared[1] && one.value[1] == one.declared[0];
}

// "fc.weight" and "fc.bias" go together.
std::string PatternOfLayer(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? name : name.substr(0, dot) + ".*";
}

}  // namespace

std::string InitOption(const InitialParameters& from, absl::string_view field) {
  return from.place.empty() ? absl::StrCat("--init-", field)
                            : absl::StrCat(field, ":");
}

bool IsLinearWeight(const ProgramDesc& test, const std::string& name) {
  for (const BlockDesc& block : test.blocks)
    for (const OpDesc& op : block.ops)
      if ((op.type == "matmul_v2" || op.type == "mul") && op.In("Y") == name)
        return true;
  return false;
}

absl::Status ShapeError(const ProgramDesc& test, const InitialParameters& from,
                        const std::string& path,
                        const std::vector<ParamMatch::Misshapen>& wrong) {
  // Quotes as the pattern's writer needs them.
  const auto said = [&](absl::string_view field, const std::string& pattern) {
    const char* quote = from.place.empty() ? "'" : "\"";
    return absl::StrCat(InitOption(from, field), " ", quote, pattern, quote);
  };
  std::vector<std::string> texts;
  std::set<std::string> skips, transposes;
  for (const ParamMatch::Misshapen& one : wrong) {
    std::string& text = texts.emplace_back(
        absl::StrCat("'", one.name, "' has shape ", ToString(one.value),
                     ", the network's has ", ToString(one.declared)));
    if (IsReversed(one)) {
      transposes.insert(said("transpose", one.name));
      continue;
    }
    skips.insert(said("skip", PatternOfLayer(one.name)));
    const std::string field = FieldFor(test, one);
    if (!field.empty())
      absl::StrAppend(&text, " (", field, " makes it as there)");
  }
  constexpr size_t kMostTexts = 6;
  const size_t more = texts.size() - std::min(texts.size(), kMostTexts);
  texts.resize(texts.size() - more);
  std::string message =
      absl::StrCat("'", path, "': ", absl::StrJoin(texts, "; "));
  if (more > 0) absl::StrAppend(&message, "; and ", more, " more");
  if (!transposes.empty())
    absl::StrAppend(
        &message, "; ", absl::StrJoin(transposes, " "),
        transposes.size() == 1 ? " transposes it" : " transpose them");
  if (!skips.empty())
    absl::StrAppend(&message, "; ", absl::StrJoin(skips, " "),
                    " keeps initial values there");
  return InvalidArgument("%s", message);
}

}  // namespace pd
