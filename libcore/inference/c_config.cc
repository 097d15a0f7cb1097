// SPDX-License-Identifier: Apache-2.0
// Configs of the C API. Programs forget a config that has made a predictor, or
// destroy it, or use it once more: handles are looked up in a table, which
// keeps a spent config, without the bytes of a model, until it is destroyed.
#include <map>
#include <mutex>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/inference/border.h"
#include "libcore/inference/c_border.h"

struct PD_Config {
  paddle_infer::Config config;
};

namespace pd {
namespace inference {
namespace {

struct ConfigTable {
  std::mutex mutex;
  std::map<const PD_Config*, std::unique_ptr<PD_Config>> configs;
};

ConfigTable& Configs() {
  static auto* const table = new ConfigTable;
  return *table;
}

bool IsLive(const PD_Config* handle) {
  ConfigTable& table = Configs();
  const std::lock_guard<std::mutex> lock(table.mutex);
  return table.configs.count(handle) > 0;
}

// Null, with a line in the log, for a handle that was destroyed.
PD_Config* Live(const char* call, PD_Config* handle) {
  if (handle == nullptr || IsLive(handle)) return handle;
  LogError("%s: InvalidArgumentError: the config was destroyed", call);
  return nullptr;
}

template <typename Work>
void Set(const char* call, PD_Config* handle, const Work& work) {
  if (handle != nullptr && Live(call, handle) == nullptr) return;
  Do(call, handle, [&](PD_Config& one) { work(one.config); });
}

template <typename Result, typename Work>
Result Get(const char* call, PD_Config* handle, Result otherwise,
           const Work& work) {
  if (handle != nullptr && Live(call, handle) == nullptr) return otherwise;
  return OrElse(call, handle, otherwise,
                [&](PD_Config& one) -> Result { return work(one.config); });
}

std::unordered_set<std::string> SetOf(size_t count, const char** texts) {
  const std::vector<std::string> all = Texts(count, texts);
  return {all.begin(), all.end()};
}

paddle_infer::PrecisionType PrecisionOf(PD_PrecisionType precision) {
  switch (precision) {
    case PD_PRECISION_INT8:
      return paddle_infer::PrecisionType::kInt8;
    case PD_PRECISION_HALF:
      return paddle_infer::PrecisionType::kHalf;
    default:
      return paddle_infer::PrecisionType::kFloat32;
  }
}

paddle_infer::Config::Shapes ShapesOf(const std::vector<std::string>& names,
                                      const size_t* ranks, int32_t** extents) {
  if (!names.empty() && (ranks == nullptr || extents == nullptr))
    Check(InvalidArgument("a list of shapes is a null pointer"));
  paddle_infer::Config::Shapes shapes;
  for (size_t i = 0; i < names.size(); ++i) {
    if (extents[i] == nullptr)
      Check(InvalidArgument("the shape of '%s' is a null pointer", names[i]));
    shapes[names[i]].assign(extents[i], extents[i] + ranks[i]);
  }
  return shapes;
}

}  // namespace

std::shared_ptr<paddle_infer::Predictor> Spend(PD_Config* handle) {
  if (!IsLive(handle)) Check(InvalidArgument("the config was destroyed"));
  auto predictor = paddle_infer::CreatePredictor(handle->config);
  handle->config.PartiallyRelease();
  return predictor;
}

}  // namespace inference
}  // namespace pd

using paddle_infer::Config;
using pd::inference::Get;
using pd::inference::Set;
using pd::inference::SetOf;
using pd::inference::Text;
using pd::inference::Texts;

extern "C" {

PD_Config* PD_ConfigCreate() {
  int here = 0;
  return pd::inference::OrElse(
      __func__, &here, static_cast<PD_Config*>(nullptr), [](int&) {
        auto config = std::make_unique<PD_Config>();
        PD_Config* handle = config.get();
        pd::inference::ConfigTable& table = pd::inference::Configs();
        const std::lock_guard<std::mutex> lock(table.mutex);
        table.configs[handle] = std::move(config);
        return handle;
      });
}

void PD_ConfigDestroy(PD_Config* pd_config) {
  if (pd_config == nullptr) return;
  pd::inference::ConfigTable& table = pd::inference::Configs();
  const std::lock_guard<std::mutex> lock(table.mutex);
  table.configs.erase(pd_config);
}

// PD_Config<X>(config) and its getter of a truth value.
#define PD_CONFIG_CALL(Name, call)                                   \
  void PD_Config##Name(PD_Config* pd_config) {                       \
    Set(__func__, pd_config, [](Config& config) { config.call(); }); \
  }
#define PD_CONFIG_BOOL(Name, getter)                            \
  PD_Bool PD_Config##Name(PD_Config* pd_config) {               \
    return Get(__func__, pd_config, PD_Bool{FALSE},             \
               [](Config& config) { return config.getter(); }); \
  }
#define PD_CONFIG_NUMBER(Name, T, getter)                       \
  T PD_Config##Name(PD_Config* pd_config) {                     \
    return Get(__func__, pd_config, T{0},                       \
               [](Config& config) { return config.getter(); }); \
  }
#define PD_CONFIG_TEXT(Name, setter)                             \
  void PD_Config##Name(PD_Config* pd_config, const char* text) { \
    Set(__func__, pd_config,                                     \
        [&](Config& config) { config.setter(Text(text)); });     \
  }
#define PD_CONFIG_GET_TEXT(Name, getter)                                \
  const char* PD_Config##Name(PD_Config* pd_config) {                   \
    return Get(__func__, pd_config, static_cast<const char*>(nullptr),  \
               [](Config& config) { return config.getter().c_str(); }); \
  }

PD_CONFIG_TEXT(SetProgFile, SetProgFile)
PD_CONFIG_TEXT(SetParamsFile, SetParamsFile)
PD_CONFIG_TEXT(SetOptimCacheDir, SetOptimCacheDir)
PD_CONFIG_TEXT(SetModelDir, SetModel)
PD_CONFIG_TEXT(CollectShapeRangeInfo, CollectShapeRangeInfo)
PD_CONFIG_TEXT(DeletePass, pass_builder()->DeletePass)
PD_CONFIG_TEXT(AppendPass, pass_builder()->AppendPass)
PD_CONFIG_GET_TEXT(GetModelDir, model_dir)
PD_CONFIG_GET_TEXT(GetProgFile, prog_file)
PD_CONFIG_GET_TEXT(GetParamsFile, params_file)
PD_CONFIG_GET_TEXT(ShapeRangeInfoPath, shape_range_info_path)
PD_CONFIG_CALL(DisableFCPadding, DisableFCPadding)
PD_CONFIG_CALL(DisableGpu, DisableGpu)
PD_CONFIG_CALL(EnableONNXRuntime, EnableONNXRuntime)
PD_CONFIG_CALL(DisableONNXRuntime, DisableONNXRuntime)
PD_CONFIG_CALL(EnableORTOptimization, EnableORTOptimization)
PD_CONFIG_CALL(EnableCudnn, EnableCUDNN)
PD_CONFIG_CALL(EnableVarseqlen, EnableVarseqlen)
PD_CONFIG_CALL(EnableTensorRtOSS, EnableTensorRtOSS)
PD_CONFIG_CALL(EnableMKLDNN, EnableMKLDNN)
PD_CONFIG_CALL(DisableMKLDNN, DisableMKLDNN)
PD_CONFIG_CALL(EnableMkldnnQuantizer, EnableMkldnnQuantizer)
PD_CONFIG_CALL(EnableMkldnnBfloat16, EnableMkldnnBfloat16)
PD_CONFIG_CALL(EnableMkldnnInt8, EnableMkldnnInt8)
PD_CONFIG_CALL(EnableGpuMultiStream, EnableGpuMultiStream)
PD_CONFIG_CALL(EnableProfile, EnableProfile)
PD_CONFIG_CALL(DisableGlogInfo, DisableGlogInfo)
PD_CONFIG_CALL(SetInvalid, SetInValid)
PD_CONFIG_CALL(PartiallyRelease, PartiallyRelease)
PD_CONFIG_BOOL(UseFcPadding, use_fc_padding)
PD_CONFIG_BOOL(UseGpu, use_gpu)
PD_CONFIG_BOOL(ONNXRuntimeEnabled, use_onnxruntime)
PD_CONFIG_BOOL(UseXpu, use_xpu)
PD_CONFIG_BOOL(UseNpu, use_npu)
PD_CONFIG_BOOL(UseCustomDevice, use_custom_device)
PD_CONFIG_BOOL(CudnnEnabled, cudnn_enabled)
PD_CONFIG_BOOL(IrOptim, ir_optim)
PD_CONFIG_BOOL(TensorRtEngineEnabled, tensorrt_engine_enabled)
PD_CONFIG_BOOL(TensorRtDynamicShapeEnabled, tensorrt_dynamic_shape_enabled)
PD_CONFIG_BOOL(TunedTensorRtDynamicShape, tuned_tensorrt_dynamic_shape)
PD_CONFIG_BOOL(TrtAllowBuildAtRuntime, trt_allow_build_at_runtime)
PD_CONFIG_BOOL(ShapeRangeInfoCollected, shape_range_info_collected)
PD_CONFIG_BOOL(TensorRtOssEnabled, tensorrt_oss_enabled)
PD_CONFIG_BOOL(TensorRtDlaEnabled, tensorrt_dla_enabled)
PD_CONFIG_BOOL(LiteEngineEnabled, lite_engine_enabled)
PD_CONFIG_BOOL(MkldnnEnabled, mkldnn_enabled)
PD_CONFIG_BOOL(MkldnnQuantizerEnabled, mkldnn_quantizer_enabled)
PD_CONFIG_BOOL(MkldnnBfloat16Enabled, mkldnn_bfloat16_enabled)
PD_CONFIG_BOOL(MkldnnInt8Enabled, mkldnn_int8_enabled)
PD_CONFIG_BOOL(ThreadLocalStreamEnabled, thread_local_stream_enabled)
PD_CONFIG_BOOL(ModelFromMemory, model_from_memory)
PD_CONFIG_BOOL(MemoryOptimEnabled, enable_memory_optim)
PD_CONFIG_BOOL(ProfileEnabled, profile_enabled)
PD_CONFIG_BOOL(GlogInfoDisabled, glog_info_disabled)
PD_CONFIG_BOOL(IsValid, is_valid)
PD_CONFIG_NUMBER(NpuDeviceId, int32_t, npu_device_id)
PD_CONFIG_NUMBER(CustomDeviceId, int32_t, custom_device_id)
PD_CONFIG_NUMBER(GpuDeviceId, int32_t, gpu_device_id)
PD_CONFIG_NUMBER(XpuDeviceId, int32_t, xpu_device_id)
PD_CONFIG_NUMBER(MemoryPoolInitSizeMb, int32_t, memory_pool_init_size_mb)
PD_CONFIG_NUMBER(FractionOfGpuMemoryForPool, float,
                 fraction_of_gpu_memory_for_pool)
PD_CONFIG_NUMBER(GetCpuMathLibraryNumThreads, int32_t,
                 cpu_math_library_num_threads)

#undef PD_CONFIG_CALL
#undef PD_CONFIG_BOOL
#undef PD_CONFIG_NUMBER
#undef PD_CONFIG_TEXT
#undef PD_CONFIG_GET_TEXT

void PD_ConfigSetModel(PD_Config* pd_config, const char* prog_file_path,
                       const char* params_file_path) {
  Set(__func__, pd_config, [&](Config& config) {
    config.SetModel(Text(prog_file_path), Text(params_file_path));
  });
}

void PD_ConfigEnableUseGpu(PD_Config* pd_config,
                           uint64_t memory_pool_init_size_mb, int32_t device_id,
                           PD_PrecisionType precision) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableUseGpu(memory_pool_init_size_mb, device_id,
                        pd::inference::PrecisionOf(precision));
  });
}

void PD_ConfigEnableXpu(PD_Config* pd_config, int32_t l3_workspace_size,
                        PD_Bool locked, PD_Bool autotune,
                        const char* autotune_file, const char* precision,
                        PD_Bool adaptive_seqlen, PD_Bool enable_multi_stream) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableXpu(l3_workspace_size, locked, autotune, Text(autotune_file),
                     Text(precision), adaptive_seqlen, enable_multi_stream);
  });
}

void PD_ConfigEnableNpu(PD_Config* pd_config, int32_t device_id) {
  Set(__func__, pd_config,
      [&](Config& config) { config.EnableNpu(device_id); });
}

void PD_ConfigEnableCustomDevice(PD_Config* pd_config, const char* device_type,
                                 int32_t device_id,
                                 PD_PrecisionType precision) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableCustomDevice(Text(device_type), device_id,
                              pd::inference::PrecisionOf(precision));
  });
}

const char* PD_ConfigCustomDeviceType(PD_Config* pd_config) {
  return Get(__func__, pd_config, static_cast<const char*>(nullptr),
             [](Config&) { return ""; });
}

void PD_ConfigSwitchIrOptim(PD_Config* pd_config, PD_Bool x) {
  Set(__func__, pd_config, [&](Config& config) { config.SwitchIrOptim(x); });
}

void PD_ConfigSwitchIrDebug(PD_Config* pd_config, PD_Bool x) {
  Set(__func__, pd_config, [&](Config& config) { config.SwitchIrDebug(x); });
}

void PD_ConfigEnableMemoryOptim(PD_Config* pd_config, PD_Bool x) {
  Set(__func__, pd_config,
      [&](Config& config) { config.EnableMemoryOptim(x != 0); });
}

void PD_ConfigEnableTensorRtEngine(PD_Config* pd_config, int64_t workspace_size,
                                   int32_t max_batch_size,
                                   int32_t min_subgraph_size,
                                   PD_PrecisionType precision,
                                   PD_Bool use_static, PD_Bool use_calib_mode) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableTensorRtEngine(
        workspace_size, max_batch_size, min_subgraph_size,
        pd::inference::PrecisionOf(precision), use_static, use_calib_mode);
  });
}

void PD_ConfigSetTrtDynamicShapeInfo(PD_Config* pd_config, size_t tensor_num,
                                     const char** tensor_name,
                                     size_t* shapes_num, int32_t** min_shape,
                                     int32_t** max_shape, int32_t** optim_shape,
                                     PD_Bool disable_trt_plugin_fp16) {
  Set(__func__, pd_config, [&](Config& config) {
    const std::vector<std::string> names = Texts(tensor_num, tensor_name);
    const auto shapes = [&](int32_t** extents) {
      return pd::inference::ShapesOf(names, shapes_num, extents);
    };
    config.SetTRTDynamicShapeInfo(shapes(min_shape), shapes(max_shape),
                                  shapes(optim_shape),
                                  disable_trt_plugin_fp16 != 0);
  });
}

void PD_ConfigEnableTunedTensorRtDynamicShape(PD_Config* pd_config,
                                              const char* path,
                                              PD_Bool allow_build_at_runtime) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableTunedTensorRtDynamicShape(Text(path),
                                           allow_build_at_runtime != 0);
  });
}

void PD_ConfigDisableTensorRtOPs(PD_Config* pd_config, size_t ops_num,
                                 const char** ops_name) {
  Set(__func__, pd_config, [&](Config& config) {
    config.Exp_DisableTensorRtOPs(Texts(ops_num, ops_name));
  });
}

void PD_ConfigEnableTensorRtDla(PD_Config* pd_config, int32_t dla_core) {
  Set(__func__, pd_config,
      [&](Config& config) { config.EnableTensorRtDLA(dla_core); });
}

void PD_ConfigEnableLiteEngine(PD_Config* pd_config, PD_PrecisionType precision,
                               PD_Bool zero_copy, size_t passes_filter_num,
                               const char** passes_filter,
                               size_t ops_filter_num, const char** ops_filter) {
  Set(__func__, pd_config, [&](Config& config) {
    config.EnableLiteEngine(pd::inference::PrecisionOf(precision),
                            zero_copy != 0,
                            Texts(passes_filter_num, passes_filter),
                            Texts(ops_filter_num, ops_filter));
  });
}

void PD_ConfigSetMkldnnCacheCapacity(PD_Config* pd_config, int32_t capacity) {
  Set(__func__, pd_config,
      [&](Config& config) { config.SetMkldnnCacheCapacity(capacity); });
}

void PD_ConfigSetCpuMathLibraryNumThreads(PD_Config* pd_config,
                                          int32_t threads) {
  Set(__func__, pd_config,
      [&](Config& config) { config.SetCpuMathLibraryNumThreads(threads); });
}

void PD_ConfigSetMkldnnOp(PD_Config* pd_config, size_t ops_num,
                          const char** op_list) {
  Set(__func__, pd_config,
      [&](Config& config) { config.SetMKLDNNOp(SetOf(ops_num, op_list)); });
}

void PD_ConfigSetBfloat16Op(PD_Config* pd_config, size_t ops_num,
                            const char** op_list) {
  Set(__func__, pd_config,
      [&](Config& config) { config.SetBfloat16Op(SetOf(ops_num, op_list)); });
}

void PD_ConfigSetExecStream(PD_Config* pd_config, void* stream) {
  Set(__func__, pd_config,
      [&](Config& config) { config.SetExecStream(stream); });
}

void PD_ConfigSetModelBuffer(PD_Config* pd_config, const char* prog_buffer,
                             size_t prog_buffer_size, const char* params_buffer,
                             size_t params_buffer_size) {
  Set(__func__, pd_config, [&](Config& config) {
    config.SetModelBuffer(prog_buffer, prog_buffer_size, params_buffer,
                          params_buffer_size);
  });
}

void PD_ConfigInsertPass(PD_Config* pd_config, size_t idx, const char* pass) {
  Set(__func__, pd_config, [&](Config& config) {
    config.pass_builder()->InsertPass(idx, Text(pass));
  });
}

PD_OneDimArrayCstr* PD_ConfigAllPasses(PD_Config* pd_config) {
  return Get(
      __func__, pd_config, static_cast<PD_OneDimArrayCstr*>(nullptr),
      [](Config& config) {
        return pd::inference::NewArrayOf(config.pass_builder()->AllPasses());
      });
}

PD_Cstr* PD_ConfigSummary(PD_Config* pd_config) {
  return Get(
      __func__, pd_config, static_cast<PD_Cstr*>(nullptr),
      [](Config& config) { return pd::inference::NewCstr(config.Summary()); });
}

}  // extern "C"
