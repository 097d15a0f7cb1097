// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/match.h"
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
       "MiB of memory that a convolution on a GPU may take for itself", 0},
      {"FLAGS_cuda_dir", std::string(),
       "folders, separated by colons, where NVIDIA's libcuda and libcublasLt "
       "are looked for first"},
      {"FLAGS_cudnn_deterministic", false,
       "convolutions on a GPU give the same bits in every run"},
      {"FLAGS_cudnn_dir", std::string(),
       "folders, separated by colons, where libcudnn is looked for first"},
      {"FLAGS_cudnn_exhaustive_search", false,
       "runs ten engines of cuDNN for each new convolution on a GPU and keeps "
       "which was the fastest in ~/.cache/pdkit"},
      {"FLAGS_cupti_dir", std::string(),
       "folders, separated by colons, where libcupti, which pd-profile asks "
       "what GPUs did, is looked for first"},
      {"FLAGS_enable_cublas_tensor_op_math", false,
       "products and convolutions on a GPU may round float32 inputs to TF32"},
      {"FLAGS_multiple_of_cupti_buffer_size", int64_t{1},
       "MiB of each buffer that CUPTI records into", 1},
      {"FLAGS_onnxruntime_dir", std::string(),
       "folders, separated by colons, where libonnxruntime, which pd-export "
       "--verify asks what it makes of an ONNX model, is looked for first"},
      {"FLAGS_use_mkldnn", true, "use oneDNN's kernels where they apply"},
  };
  return *table;
}

// The other flags of PaddlePaddle 2.3's manual, without FLAGS_.
constexpr absl::string_view kUnread[] = {
    "USE_STANDALONE_EXECUTOR",
    "allocator_strategy",
    "allow_cinn_ops",
    "allreduce_record_one_event",
    "apply_pass_to_program",
    "benchmark",
    "call_stack_level",
    "communicator_fake_rpc",
    "communicator_independent_recv_thread",
    "communicator_max_merge_var_num",
    "communicator_merge_sparse_grad",
    "communicator_min_send_grad_num_before_recv",
    "communicator_send_queue_size",
    "communicator_send_wait_times",
    "communicator_thread_pool_size",
    "cpu_deterministic",
    "cudnn_batchnorm_spatial_persistent",
    "deny_cinn_ops",
    "dist_threadpool_size",
    "eager_delete_scope",
    "eager_delete_tensor_gb",
    "enable_eager_mode",
    "enable_parallel_graph",
    "enable_rpc_profiler",
    "fast_eager_deletion_mode",
    "fraction_of_cpu_memory_to_use",
    "fraction_of_cuda_pinned_memory_to_use",
    "fraction_of_gpu_memory_to_use",
    "fuse_parameter_groups_size",
    "fuse_parameter_memory_size",
    "init_allocated_mem",
    "initial_cpu_memory_in_mb",
    "initial_gpu_memory_in_mb",
    "inner_op_parallelism",
    "max_body_size",
    "memory_fraction_of_eager_deletion",
    "npu_precision_mode",
    "paddle_num_threads",
    "pe_profile_fname",
    "print_sub_graph_dir",
    "reader_queue_speed_test_mode",
    "reallocate_gpu_memory_in_mb",
    "rpc_deadline",
    "rpc_disable_reuse_port",
    "rpc_get_thread_num",
    "rpc_send_thread_num",
    "rpc_server_profile_path",
    "rpc_server_profile_path_listener_id",
    "run_kp_kernel",
    "selected_gpus",
    "selected_npus",
    "selected_xpus",
    "sync_nccl_allreduce",
    "tracer_profile_fname",
    "use_ngraph",
    "use_pinned_memory"};

bool IsUnread(absl::string_view name) {
  return std::find(std::begin(kUnread), std::end(kUnread),
                   absl::StripPrefix(name, "FLAGS_")) != std::end(kUnread);
}

FlagInfo* Find(absl::string_view name) {
  name = absl::StripPrefix(name, "FLAGS_");
  for (FlagInfo& flag : Table())
    if (absl::StripPrefix(flag.name, "FLAGS_") == name) return &flag;
  return nullptr;
}

// Of a flag that is not in the table.
std::string UnreadText(absl::string_view name) {
  name = absl::StripPrefix(name, "FLAGS_");
  if (IsUnread(name))
    return absl::StrCat("flag 'FLAGS_", name,
                        "' of PaddlePaddle has no effect here");
  std::vector<absl::string_view> names;
  for (const FlagInfo& flag : Table()) names.push_back(flag.name);
  const std::string full = absl::StrCat("FLAGS_", name);
  const std::string near = Nearest(full, names);
  return absl::StrCat(
      "unknown flag '", full, "'",
      near.empty() ? "" : absl::StrCat(", did you mean '", near, "'?"));
}

absl::Status Parse(absl::string_view text, FlagInfo* flag) {
  const char* expected = "a string";
  bool ok = true;
  if (auto* b = std::get_if<bool>(&flag->value)) {
    ok = absl::SimpleAtob(text, b);
    expected = "true or false";
  } else if (auto* i = std::get_if<int64_t>(&flag->value)) {
    int64_t value = 0;
    ok = absl::SimpleAtoi(text, &value) && value >= flag->min;
    if (ok) *i = value;
    expected = flag->min == INT64_MIN ? "an integer"
               : flag->min == 0       ? "an integer of at least 0"
                                      : "an integer of at least 1";
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
    if (IsUnread(name)) return Unimplemented("%s", UnreadText(name));
    return NotFound("%s", UnreadText(name));
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

std::vector<std::string> UnreadFlagsInEnvironment() {
  std::vector<std::string> texts;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    absl::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (absl::StartsWith(name, "FLAGS_") && Find(name) == nullptr)
      texts.push_back(UnreadText(name));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
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
