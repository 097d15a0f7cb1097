// SPDX-License-Identifier: Apache-2.0
// Settings of a predictor. Each PD_ConfigX does what X of paddle_infer::Config
// does. Strings that are given live until the config changes or goes. An error
// goes to the log, and the setting stays as it was.
#ifndef PD_LIBCORE_INFERENCE_API_PD_CONFIG_H_
#define PD_LIBCORE_INFERENCE_API_PD_CONFIG_H_

#include "pd_types.h"

typedef struct PD_Config PD_Config;

PD_C_BEGIN

PADDLE_CAPI_EXPORT extern PD_Config* PD_ConfigCreate();
PADDLE_CAPI_EXPORT extern void PD_ConfigDestroy(PD_Config* pd_config);

PADDLE_CAPI_EXPORT extern void PD_ConfigSetModel(PD_Config* pd_config,
                                                 const char* prog_file_path,
                                                 const char* params_file_path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetProgFile(PD_Config* pd_config,
                                                    const char* prog_file_path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetParamsFile(
    PD_Config* pd_config, const char* params_file_path);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetOptimCacheDir(
    PD_Config* pd_config, const char* opt_cache_dir);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetModelDir(PD_Config* pd_config,
                                                    const char* model_dir);
PADDLE_CAPI_EXPORT extern const char* PD_ConfigGetModelDir(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern const char* PD_ConfigGetProgFile(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern const char* PD_ConfigGetParamsFile(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableFCPadding(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseFcPadding(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableUseGpu(
    PD_Config* pd_config, uint64_t memory_pool_init_size_mb, int32_t device_id,
    PD_PrecisionType precision_mode);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableGpu(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseGpu(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableONNXRuntime(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableONNXRuntime(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigONNXRuntimeEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableORTOptimization(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableXpu(
    PD_Config* pd_config, int32_t l3_workspace_size, PD_Bool locked,
    PD_Bool autotune, const char* autotune_file, const char* precision,
    PD_Bool adaptive_seqlen, PD_Bool enable_multi_stream);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseXpu(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableNpu(PD_Config* pd_config,
                                                  int32_t device_id);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseNpu(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigNpuDeviceId(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableCustomDevice(
    PD_Config* pd_config, const char* device_type, int32_t device_id,
    PD_PrecisionType precision);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigUseCustomDevice(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigCustomDeviceId(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern const char* PD_ConfigCustomDeviceType(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigGpuDeviceId(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigXpuDeviceId(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigMemoryPoolInitSizeMb(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern float PD_ConfigFractionOfGpuMemoryForPool(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableCudnn(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigCudnnEnabled(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchIrOptim(PD_Config* pd_config,
                                                      PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigIrOptim(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtEngine(
    PD_Config* pd_config, int64_t workspace_size, int32_t max_batch_size,
    int32_t min_subgraph_size, PD_PrecisionType precision, PD_Bool use_static,
    PD_Bool use_calib_mode);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtEngineEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetTrtDynamicShapeInfo(
    PD_Config* pd_config, size_t tensor_num, const char** tensor_name,
    size_t* shapes_num, int32_t** min_shape, int32_t** max_shape,
    int32_t** optim_shape, PD_Bool disable_trt_plugin_fp16);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtDynamicShapeEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTunedTensorRtDynamicShape(
    PD_Config* pd_config, const char* shape_range_info_path,
    PD_Bool allow_build_at_runtime);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTunedTensorRtDynamicShape(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTrtAllowBuildAtRuntime(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigCollectShapeRangeInfo(
    PD_Config* pd_config, const char* shape_range_info_path);
PADDLE_CAPI_EXPORT extern const char* PD_ConfigShapeRangeInfoPath(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigShapeRangeInfoCollected(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableTensorRtOPs(
    PD_Config* pd_config, size_t ops_num, const char** ops_name);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableVarseqlen(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtOSS(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtOssEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableTensorRtDla(PD_Config* pd_config,
                                                          int32_t dla_core);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigTensorRtDlaEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableLiteEngine(
    PD_Config* pd_config, PD_PrecisionType precision, PD_Bool zero_copy,
    size_t passes_filter_num, const char** passes_filter, size_t ops_filter_num,
    const char** ops_filter);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigLiteEngineEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSwitchIrDebug(PD_Config* pd_config,
                                                      PD_Bool x);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMKLDNN(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableMKLDNN(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetMkldnnCacheCapacity(
    PD_Config* pd_config, int32_t capacity);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnEnabled(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetCpuMathLibraryNumThreads(
    PD_Config* pd_config, int32_t cpu_math_library_num_threads);
PADDLE_CAPI_EXPORT extern int32_t PD_ConfigGetCpuMathLibraryNumThreads(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetMkldnnOp(PD_Config* pd_config,
                                                    size_t ops_num,
                                                    const char** op_list);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnQuantizer(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnQuantizerEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnBfloat16(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnBfloat16Enabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetBfloat16Op(PD_Config* pd_config,
                                                      size_t ops_num,
                                                      const char** op_list);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMkldnnInt8(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMkldnnInt8Enabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableGpuMultiStream(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigThreadLocalStreamEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetExecStream(PD_Config* pd_config,
                                                      void* stream);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetModelBuffer(
    PD_Config* pd_config, const char* prog_buffer, size_t prog_buffer_size,
    const char* params_buffer, size_t params_buffer_size);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigModelFromMemory(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableMemoryOptim(PD_Config* pd_config,
                                                          PD_Bool x);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigMemoryOptimEnabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigEnableProfile(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigProfileEnabled(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDisableGlogInfo(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigGlogInfoDisabled(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigSetInvalid(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Bool PD_ConfigIsValid(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigPartiallyRelease(PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern void PD_ConfigDeletePass(PD_Config* pd_config,
                                                   const char* pass);
PADDLE_CAPI_EXPORT extern void PD_ConfigInsertPass(PD_Config* pd_config,
                                                   size_t idx,
                                                   const char* pass);
PADDLE_CAPI_EXPORT extern void PD_ConfigAppendPass(PD_Config* pd_config,
                                                   const char* pass);
// The caller's own, as is the next one.
PADDLE_CAPI_EXPORT extern PD_OneDimArrayCstr* PD_ConfigAllPasses(
    PD_Config* pd_config);
PADDLE_CAPI_EXPORT extern PD_Cstr* PD_ConfigSummary(PD_Config* pd_config);

PD_C_END

#endif  // PD_LIBCORE_INFERENCE_API_PD_CONFIG_H_
