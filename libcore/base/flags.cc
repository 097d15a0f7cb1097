// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/flags.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::vector<FlagInfo>& Table() {
  static auto* table = new std::vector<FlagInfo>{
      {"FLAGS_check_nan_inf", false,
       "stop at the first operator whose output holds NaN or Inf"},
      {"FLAGS_conv_workspace_size_limit", int64_t{512},
       "MiB of memory that a convolution on a GPU may take for itself"},
      {"FLAGS_cuda_dir", std::string(),
       "folders, separated by colons, where NVIDIA's libcuda and libcublasLt "
       "are looked for first"},
      {"FLAGS_cudnn_deterministic", false,
       "convolutions on a GPU give the same bits in every run"},
      {"FLAGS_cudnn_dir", std::string(),
       "folders, separated by colons, where libcudnn is looked for first"},
      {"FLAGS_cudnn_exhaustive_search", false,
       "has cuDNN run all its algorithms for each new convolution on a GPU and "
       "keeps which was the fastest in ~/.cache/pdkit"},
      {"FLAGS_cupti_dir", std::string(),
       "folders, separated by colons, where libcupti, which pd-profile asks "
       "what GPUs did, is looked for first"},
      {"FLAGS_enable_cublas_tensor_op_math", false,
       "products and convolutions on a GPU may round float32 inputs to TF32"},
      {"FLAGS_multiple_of_cupti_buffer_size", int64_t{1},
       "MiB of each buffer that CUPTI records into"},
      {"FLAGS_use_mkldnn", true, "use oneDNN's kernels where they apply"},
  };
  return *table;
}

FlagInfo* Find(absl::string_view name) {
  name = absl::StripPrefix(name, "FLAGS_");
  for (FlagInfo& flag : Table())
    if (absl::StripPrefix(flag.name, "FLAGS_") == name) return &flag;
  return nullptr;
}

absl::Status Parse(absl::string_view text, FlagInfo* flag) {
  const char* expected = "a string";
  bool ok = true;
  if (auto* b = std::get_if<bool>(&flag->value)) {
    ok = absl::SimpleAtob(text, b);
    expected = "true or false";
  } else if (auto* i = std::get_if<int64_t>(&flag->value)) {
    ok = absl::SimpleAtoi(text, i);
    expected = "a whole number";
  } else if (auto* d = std::get_if<double>(&flag->value)) {
    ok = absl::SimpleAtod(text, d);
    expected = "a number";
  } else {
    flag->value = std::string(text);
  }
  if (!ok)
    return InvalidArgument("%s is '%s'; expected %s", flag->name, text,
                           expected);
  return absl::OkStatus();
}

}  // namespace

const std::vector<FlagInfo>& AllFlags() { return Table(); }

absl::Status SetFlag(absl::string_view name, absl::string_view value) {
  FlagInfo* flag = Find(name);
  if (flag == nullptr) {
    std::vector<absl::string_view> names;
    for (const FlagInfo& f : Table()) names.push_back(f.name);
    const std::string full =
        absl::StrCat("FLAGS_", absl::StripPrefix(name, "FLAGS_"));
    const std::string near = Nearest(full, names);
    return NotFound("unknown flag '%s'%s", full,
                    near.empty()
                        ? std::string()
                        : absl::StrCat(", did you mean '", near, "'?"));
  }
  return Parse(value, flag);
}

absl::Status SetFlagsFromEnvironment() {
  for (FlagInfo& flag : Table()) {
    const char* value = std::getenv(std::string(flag.name).c_str());
    if (value != nullptr) PD_RETURN_IF_ERROR(Parse(value, &flag));
  }
  return absl::OkStatus();
}

template <typename T>
const T& GetFlag(absl::string_view name) {
  FlagInfo* flag = Find(name);
  PD_INVARIANT(flag != nullptr && std::holds_alternative<T>(flag->value));
  return std::get<T>(flag->value);
}

template const bool& GetFlag<bool>(absl::string_view);
template const int64_t& GetFlag<int64_t>(absl::string_view);
template const double& GetFlag<double>(absl::string_view);
template const std::string& GetFlag<std::string>(absl::string_view);

}  // namespace pd
