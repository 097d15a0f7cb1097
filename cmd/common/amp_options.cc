// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/amp_options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/common/text.h"
#include "libcore/base/status_macros.h"

namespace pd {

void BindAmpOptions(OptionTable* table, AmpFlags* flags) {
  table->Group("Mixed precision");
  table->Choice({"--amp", "LEVEL",
                 "computes in mixed precision, as paddle.amp does: O1 by lists "
                 "of operators, O2 nearly all; O0 does not"},
                {"O0", "O1", "O2"}, &flags->level);
  table->Choice({"--amp-dtype", "TYPE",
                 "of --amp: float16, or bfloat16, which is fast on CPUs with "
                 "avx512_bf16 or amx_bf16"},
                {"float16", "bfloat16"}, &flags->dtype);
  table->DescribeDefault("--amp-dtype", "float16");
  table->Texts({"--amp-white-list", "OP[,...]",
                "of --amp: operators that compute in half precision besides "
                "PaddlePaddle's"},
               &flags->white_list);
  table->Texts({"--amp-black-list", "OP[,...]",
                "of --amp: operators that compute in float32"},
               &flags->black_list);
}

absl::Status ValidateAmp(const OptionTable& table) {
  for (const char* name :
       {"--amp-dtype", "--amp-white-list", "--amp-black-list"})
    PD_RETURN_IF_ERROR(table.Needs(name, "--amp"));
  return absl::OkStatus();
}

namespace {

std::vector<std::string> Ops(const std::vector<std::string>& lists) {
  std::vector<std::string> ops;
  for (const std::string& list : lists)
    for (const std::string& op : SplitNames(list)) ops.push_back(op);
  return ops;
}

// ["a", "b"]
std::string Quoted(const std::vector<std::string>& ops) {
  return absl::StrCat("[\"", absl::StrJoin(ops, "\", \""), "\"]");
}

}  // namespace

std::vector<std::string> AmpOverrides(const AmpFlags& flags) {
  std::vector<std::string> overrides;
  if (flags.level.empty()) return overrides;
  overrides.push_back(absl::StrCat("amp.level=", flags.level));
  if (!flags.dtype.empty())
    overrides.push_back(absl::StrCat("amp.dtype=", flags.dtype));
  const std::vector<std::string> white = Ops(flags.white_list);
  const std::vector<std::string> black = Ops(flags.black_list);
  if (!white.empty())
    overrides.push_back(absl::StrCat("amp.custom_white_list=", Quoted(white)));
  if (!black.empty())
    overrides.push_back(absl::StrCat("amp.custom_black_list=", Quoted(black)));
  return overrides;
}

std::optional<AmpSpec> AmpSpecOf(const AmpFlags& flags) {
  if (flags.level.empty() || flags.level == "O0") return std::nullopt;
  AmpSpec spec;
  spec.level = flags.level == "O2" ? AmpSpec::Level::kO2 : AmpSpec::Level::kO1;
  spec.dtype = flags.dtype == "bfloat16" ? DType::kBFloat16 : DType::kFloat16;
  for (const std::string& op : Ops(flags.white_list))
    spec.custom_white_list.insert(op);
  for (const std::string& op : Ops(flags.black_list))
    spec.custom_black_list.insert(op);
  return spec;
}

}  // namespace pd
