// SPDX-License-Identifier: Apache-2.0
// The flags of PaddlePaddle 2.3's manual and some of our own: its types and
// defaults, our meaning.
#include "libcore/base/flag_table.h"

#include <iterator>

namespace pd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kInt32 = std::numeric_limits<int32_t>::max();

const FlagInfo kRows[] = {
    {"FLAGS_USE_STANDALONE_EXECUTOR", false,
     "every program is compiled into a plan", FlagUse::kFixed},
    {"FLAGS_allocator_strategy", std::string("auto_growth"),
     "a plan takes the memory of its steps in one piece, whose size is known "
     "before",
     FlagUse::kFixed, -kInfinity, kInfinity, "naive_best_fit auto_growth"},
    {"FLAGS_allow_cinn_ops", std::string(), "there is no CINN here",
     FlagUse::kFixed},
    {"FLAGS_allreduce_record_one_event", false,
     "gradients travel on a thread that waits for each bucket by itself",
     FlagUse::kFixed},
    {"FLAGS_apply_pass_to_program", false,
     "passes rewrite every program; --disable-pass leaves one out",
     FlagUse::kFixed},
    {"FLAGS_benchmark", false, "the log says how much memory each plan takes"},
    {"FLAGS_call_stack_level", int64_t{1},
     "errors name file, operator and tensor instead of a stack",
     FlagUse::kFixed, 0, 2},
    {"FLAGS_check_nan_inf", false,
     "stop at the first operator whose output holds NaN or Inf"},
    {"FLAGS_communicator_fake_rpc", false, "there is no parameter server here",
     FlagUse::kFixed},
    {"FLAGS_communicator_independent_recv_thread", true,
     "there is no parameter server here", FlagUse::kFixed},
    {"FLAGS_communicator_max_merge_var_num", int64_t{20},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_communicator_merge_sparse_grad", true,
     "there is no parameter server here", FlagUse::kFixed},
    {"FLAGS_communicator_min_send_grad_num_before_recv", int64_t{20},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_communicator_send_queue_size", int64_t{20},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_communicator_send_wait_times", int64_t{5},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_communicator_thread_pool_size", int64_t{5},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_conv_workspace_size_limit", int64_t{512},
     "MiB of memory that a convolution on a GPU may take for itself",
     FlagUse::kWorks, 0},
    {"FLAGS_cpu_deterministic", false,
     "results on the CPU are the same in every run", FlagUse::kFixed},
    {"FLAGS_cuda_dir", std::string(),
     "folders, separated by colons, where NVIDIA's libcuda and libcublasLt "
     "are looked for first"},
    {"FLAGS_cudnn_batchnorm_spatial_persistent", false,
     "batch norm on a GPU is a kernel of its own, not cuDNN's",
     FlagUse::kFixed},
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
    {"FLAGS_deny_cinn_ops", std::string(), "there is no CINN here",
     FlagUse::kFixed},
    {"FLAGS_dist_threadpool_size", int64_t{0},
     "processes exchange numbers on one thread", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_eager_delete_scope", true,
     "a plan has no scope for each run that could be deleted", FlagUse::kFixed},
    {"FLAGS_eager_delete_tensor_gb", 0.0,
     "negative: no step of a plan uses the memory of earlier ones again, so "
     "that a debugger finds all values"},
    {"FLAGS_enable_cublas_tensor_op_math", false,
     "products and convolutions on a GPU may round float32 inputs to TF32"},
    {"FLAGS_enable_eager_mode", false, "every program is compiled into a plan",
     FlagUse::kFixed},
    {"FLAGS_enable_parallel_graph", false,
     "steps use all threads one after the other", FlagUse::kFixed},
    {"FLAGS_enable_rpc_profiler", false,
     "pd-profile shows the time of every step", FlagUse::kFixed},
    {"FLAGS_fast_eager_deletion_mode", true,
     "memory of a GPU is used again in the order of its stream, without "
     "waiting",
     FlagUse::kFixed},
    {"FLAGS_fraction_of_cpu_memory_to_use", 1.0,
     "tensors take at most this share of the machine's memory, where "
     "--memory-limit does not say it",
     FlagUse::kWorks, 0, 1},
    {"FLAGS_fraction_of_cuda_pinned_memory_to_use", 0.5,
     "pinned memory is taken for the batches in flight alone", FlagUse::kFixed,
     0, 1},
    {"FLAGS_fraction_of_gpu_memory_to_use", 0.92,
     "a plan takes the memory of a GPU that its steps need, and nothing "
     "before",
     FlagUse::kFixed, 0, 1},
    {"FLAGS_fuse_parameter_groups_size", int64_t{3},
     "distributed.fuse_grad_size_in_MB of the job says it, in MiB",
     FlagUse::kFixed, -1, kInt32},
    {"FLAGS_fuse_parameter_memory_size", -1.0,
     "distributed.fuse_grad_size_in_MB of the job says it", FlagUse::kFixed,
     -1},
    {"FLAGS_init_allocated_mem", false,
     "plans begin with memory full of NaN, so that a step that reads what "
     "nobody wrote shows"},
    {"FLAGS_initial_cpu_memory_in_mb", int64_t{500},
     "a plan takes the memory of its steps in one piece, whose size is known "
     "before",
     FlagUse::kFixed, 0},
    {"FLAGS_initial_gpu_memory_in_mb", int64_t{0},
     "a plan takes the memory of a GPU that its steps need, and nothing "
     "before",
     FlagUse::kFixed, 0},
    {"FLAGS_inner_op_parallelism", int64_t{0},
     "--threads is the number of threads in every operator", FlagUse::kFixed, 0,
     kInt32},
    {"FLAGS_max_body_size", int64_t{2147483647},
     "there is no parameter server here", FlagUse::kFixed, 0},
    {"FLAGS_memory_fraction_of_eager_deletion", 1.0,
     "the share of a plan's bytes, largest tensors first, whose memory later "
     "steps use again",
     FlagUse::kWorks, 0, 1},
    {"FLAGS_multiple_of_cupti_buffer_size", int64_t{1},
     "MiB of each buffer that CUPTI records into", FlagUse::kWorks, 1},
    {"FLAGS_npu_precision_mode", std::string(), "there is no Ascend NPU here",
     FlagUse::kFixed, -kInfinity, kInfinity,
     "force_fp32 force_fp16 allow_fp32_to_fp16 must_keep_origin_dtype "
     "allow_mix_precision"},
    {"FLAGS_onnxruntime_dir", std::string(),
     "folders, separated by colons, where libonnxruntime, which pd-export "
     "--verify asks what it makes of an ONNX model, is looked for first"},
    {"FLAGS_paddle_num_threads", int64_t{1},
     "number of compute threads where --threads is not given", FlagUse::kWorks,
     1, 1024},
    {"FLAGS_pe_profile_fname", std::string(),
     "pd-profile writes a trace of a training", FlagUse::kFixed},
    {"FLAGS_print_sub_graph_dir", std::string(),
     "a file that gets the parts of each compiled program that hang together "
     "by no variable"},
    {"FLAGS_program_files", std::string(),
     "the folder below which a program's own operators (load, save, read_file) "
     "may read and write files; without it they may not"},
    {"FLAGS_reader_queue_speed_test_mode", false,
     "batches are made once and given again and again, so that reading costs "
     "nothing"},
    {"FLAGS_reallocate_gpu_memory_in_mb", int64_t{0},
     "a plan takes the memory of a GPU that its steps need, and nothing "
     "before",
     FlagUse::kFixed, 0},
    {"FLAGS_rpc_deadline", int64_t{180000},
     "there is no parameter server here; --collective-timeout is for "
     "processes that train together",
     FlagUse::kFixed, 0, kInt32},
    {"FLAGS_rpc_disable_reuse_port", false, "there is no parameter server here",
     FlagUse::kFixed},
    {"FLAGS_rpc_get_thread_num", int64_t{12},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_rpc_send_thread_num", int64_t{12},
     "there is no parameter server here", FlagUse::kFixed, 0, kInt32},
    {"FLAGS_rpc_server_profile_path", std::string("./profile_ps"),
     "there is no parameter server here", FlagUse::kFixed},
    {"FLAGS_run_kp_kernel", false, "there is no Kunlun XPU here",
     FlagUse::kFixed},
    {"FLAGS_selected_gpus", std::string(),
     "numbers of GPUs, separated by commas; `--device gpu` takes the first",
     FlagUse::kWorks, -kInfinity, kInfinity, "", true},
    {"FLAGS_selected_npus", std::string(), "there is no Ascend NPU here",
     FlagUse::kFixed, -kInfinity, kInfinity, "", true},
    {"FLAGS_selected_xpus", std::string(), "there is no Kunlun XPU here",
     FlagUse::kFixed, -kInfinity, kInfinity, "", true},
    {"FLAGS_sync_nccl_allreduce", true,
     "gradients travel on a thread of their own, and the update waits for "
     "them",
     FlagUse::kFixed},
    {"FLAGS_tracer_profile_fname", std::string("gperf"),
     "pd-profile writes a trace of a training", FlagUse::kFixed},
    {"FLAGS_use_mkldnn", true, "use oneDNN's kernels where they apply"},
    {"FLAGS_use_ngraph", false, "nGraph is no longer made", FlagUse::kFixed},
    {"FLAGS_use_pinned_memory", true,
     "memory is not locked; pinned memory is for batches that go to a GPU",
     FlagUse::kFixed},
};

}  // namespace

std::vector<FlagInfo>& FlagTable() {
  static auto* table =
      new std::vector<FlagInfo>(std::begin(kRows), std::end(kRows));
  return *table;
}

}  // namespace pd
