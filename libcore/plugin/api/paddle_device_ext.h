// SPDX-License-Identifier: Apache-2.0
/* <paddle/phi/backends/device_ext.h>: the table of functions by which a device
 * of a user is driven, in the order of PaddlePaddle 2.6. A library that defines
 * InitPlugin is the driver of a kind of device. */
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_EXT_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_EXT_H_

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
extern "C" {
#endif

#define PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION 0
#define PADDLE_CUSTOM_RUNTIME_MINOR_VERSION 1
#define PADDLE_CUSTOM_RUNTIME_PATCH_VERSION 1

typedef enum {
  C_SUCCESS = 0,
  C_WARNING,       /* done, but not as expected */
  C_FAILED,        /* nothing is left of a resource */
  C_ERROR,         /* a bad argument, or not initialised */
  C_INTERNAL_ERROR /* of the plug-in */
} C_Status;

typedef enum {
  UNDEFINED = 0,
  BOOL,
  UINT8,
  UINT16,
  UINT32,
  UINT64,
  INT8,
  INT16,
  INT32,
  INT64,
  FLOAT16,
  FLOAT32,
  FLOAT64,
  BFLOAT16,
  COMPLEX64,
  COMPLEX128
} C_DataType;

typedef enum {
  ANY = 0,
  NHWC,
  NCHW,
  NCDHW,
  NDHWC,
  NUM_DATA_LAYOUTS,
  ALL_LAYOUT = ANY
} C_DataLayout;

typedef enum { SUM = 0, AVG, MAX, MIN, PRODUCT } C_CCLReduceOp;

struct C_Device_st {
  int id;
};
typedef struct C_Device_st* C_Device;
typedef struct C_Stream_st* C_Stream;
typedef struct C_Event_st* C_Event;
typedef struct C_CCLComm_st* C_CCLComm;
typedef struct C_Profiler_st* C_Profiler;
typedef void (*C_Callback)(C_Device device, C_Stream stream, void* user_data,
                           C_Status* status);
typedef struct {
  size_t sz;
  void* data;
} C_CCLRootId;

/* Of the host, for profiler_collect_trace_data: an event is a
 * phi::RuntimeTraceEvent, or a phi::DeviceTraceEvent, of
 * <paddle/phi/api/profiler/trace_event.h>, and is copied. */
__attribute__((visibility("default"))) void profiler_add_runtime_trace_event(
    C_Profiler prof, void* event);
__attribute__((visibility("default"))) void profiler_add_device_trace_event(
    C_Profiler prof, void* event);

/* Pointers are to the device's memory where a name says so. Null: the driver
 * does not have the function. */
struct C_DeviceInterface {
  size_t size;

  /* Devices, streams, events. */
  C_Status (*initialize)(void);
  C_Status (*finalize)(void);
  C_Status (*init_device)(const C_Device device);
  C_Status (*set_device)(const C_Device device);
  C_Status (*get_device)(const C_Device device);
  C_Status (*deinit_device)(const C_Device device);
  C_Status (*create_stream)(const C_Device device, C_Stream* stream);
  C_Status (*destroy_stream)(const C_Device device, C_Stream stream);
  C_Status (*query_stream)(const C_Device device, C_Stream stream);
  C_Status (*stream_add_callback)(const C_Device device, C_Stream stream,
                                  C_Callback callback, void* user_data);
  C_Status (*create_event)(const C_Device device, C_Event* event);
  C_Status (*record_event)(const C_Device device, C_Stream stream,
                           C_Event event);
  C_Status (*destroy_event)(const C_Device device, C_Event event);
  C_Status (*query_event)(const C_Device device, C_Event event);
  C_Status (*synchronize_device)(const C_Device device);
  C_Status (*synchronize_stream)(const C_Device device, C_Stream stream);
  C_Status (*synchronize_event)(const C_Device device, C_Event event);
  C_Status (*stream_wait_event)(const C_Device device, C_Stream stream,
                                C_Event event);
  void* reserved_dev_api[8];

  /* Memory; sizes are in bytes. */
  C_Status (*device_memory_allocate)(const C_Device device, void** ptr,
                                     size_t size);
  C_Status (*device_memory_deallocate)(const C_Device device, void* ptr,
                                       size_t size);
  C_Status (*device_memory_set)(const C_Device device, void* ptr,
                                unsigned char value, size_t size);
  C_Status (*host_memory_allocate)(const C_Device device, void** ptr,
                                   size_t size);
  C_Status (*host_memory_deallocate)(const C_Device device, void* ptr,
                                     size_t size);
  C_Status (*unified_memory_allocate)(const C_Device device, void** ptr,
                                      size_t size);
  C_Status (*unified_memory_deallocate)(const C_Device device, void* ptr,
                                        size_t size);
  C_Status (*memory_copy_h2d)(const C_Device device, void* dst, const void* src,
                              size_t size);
  C_Status (*memory_copy_d2h)(const C_Device device, void* dst, const void* src,
                              size_t size);
  C_Status (*memory_copy_d2d)(const C_Device device, void* dst, const void* src,
                              size_t size);
  C_Status (*memory_copy_p2p)(const C_Device dst_device,
                              const C_Device src_device, void* dst,
                              const void* src, size_t size);
  C_Status (*async_memory_copy_h2d)(const C_Device device, C_Stream stream,
                                    void* dst, const void* src, size_t size);
  C_Status (*async_memory_copy_d2h)(const C_Device device, C_Stream stream,
                                    void* dst, const void* src, size_t size);
  C_Status (*async_memory_copy_d2d)(const C_Device device, C_Stream stream,
                                    void* dst, const void* src, size_t size);
  C_Status (*async_memory_copy_p2p)(const C_Device dst_device,
                                    const C_Device src_device, C_Stream stream,
                                    void* dst, const void* src, size_t size);
  void* reserved_mem_api[8];

  /* Facts. */
  C_Status (*get_device_count)(size_t* count);
  C_Status (*get_device_list)(size_t* devices);
  C_Status (*device_memory_stats)(const C_Device device, size_t* total_memory,
                                  size_t* free_memory);
  C_Status (*device_min_chunk_size)(const C_Device device, size_t* size);
  C_Status (*device_max_chunk_size)(const C_Device device, size_t* size);
  C_Status (*device_max_alloc_size)(const C_Device device, size_t* size);
  C_Status (*device_extra_padding_size)(const C_Device device, size_t* size);
  C_Status (*device_init_alloc_size)(const C_Device device, size_t* size);
  C_Status (*device_realloc_size)(const C_Device device, size_t* size);
  C_Status (*get_compute_capability)(size_t* compute_capability);
  C_Status (*get_runtime_version)(size_t* version);
  C_Status (*get_driver_version)(size_t* version);
  void* reserved_info_api[8];

  /* Several devices together. */
  C_Status (*xccl_get_unique_id_size)(size_t* size);
  C_Status (*xccl_get_unique_id)(C_CCLRootId* unique_id);
  C_Status (*xccl_comm_init_rank)(size_t nranks, C_CCLRootId* unique_id,
                                  size_t rank, C_CCLComm* comm);
  C_Status (*xccl_destroy_comm)(C_CCLComm comm);
  C_Status (*xccl_all_reduce)(void* send_buf, void* recv_buf, size_t count,
                              C_DataType data_type, C_CCLReduceOp op,
                              C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_broadcast)(void* buf, size_t count, C_DataType data_type,
                             size_t root, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_reduce)(void* send_buf, void* recv_buf, size_t count,
                          C_DataType data_type, C_CCLReduceOp op,
                          size_t root_id, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_all_gather)(void* send_buf, void* recv_buf, size_t count,
                              C_DataType data_type, C_CCLComm comm,
                              C_Stream stream);
  C_Status (*xccl_reduce_scatter)(void* send_buf, void* recv_buf, size_t count,
                                  C_DataType data_type, C_CCLReduceOp op,
                                  C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_group_start)(void);
  C_Status (*xccl_group_end)(void);
  C_Status (*xccl_send)(void* send_buf, size_t count, C_DataType data_type,
                        size_t dest_rank, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_recv)(void* recv_buf, size_t count, C_DataType data_type,
                        size_t src_rank, C_CCLComm comm, C_Stream stream);
  C_Status (*xccl_all_to_all)(const void** send_buf, const size_t* send_count,
                              const C_DataType* send_dtype, void** recv_buf,
                              const size_t* recv_count,
                              const C_DataType* recv_dtype, size_t rank,
                              size_t nranks, C_CCLComm comm, C_Stream stream);
  void* reserved_ccl_api[8];

  /* Traces. */
  C_Status (*profiler_initialize)(C_Profiler prof, void** user_data);
  C_Status (*profiler_finalize)(C_Profiler prof, void* user_data);
  C_Status (*profiler_prepare_tracing)(C_Profiler prof, void* user_data);
  C_Status (*profiler_start_tracing)(C_Profiler prof, void* user_data);
  C_Status (*profiler_stop_tracing)(C_Profiler prof, void* user_data);
  C_Status (*profiler_collect_trace_data)(C_Profiler prof, uint64_t start_ns,
                                          void* user_data);
  void* reserved_profiler_api[8];

  /* y = alpha x + beta y. */
  C_Status (*blas_axpby)(const C_Device device, C_Stream stream,
                         C_DataType dtype, size_t numel, float alpha, void* x,
                         float beta, void* y);
  void* reserved_other_api[7];
};

struct CustomRuntimeVersion {
  size_t major, minor, patch;
};

#ifdef __cplusplus
/* Drivers hand literals to the two texts, which C++ takes for constants only.
 */
typedef const char* PD_RuntimeText;
#else
typedef char* PD_RuntimeText;
#endif

struct CustomRuntimeParams {
  size_t size;
  struct C_DeviceInterface* interface;
  struct CustomRuntimeVersion version;
  PD_RuntimeText device_type;
  PD_RuntimeText sub_device_type;
  char reserved[32];
};
#ifndef __cplusplus
typedef struct C_DeviceInterface C_DeviceInterface;
typedef struct CustomRuntimeVersion CustomRuntimeVersion;
typedef struct CustomRuntimeParams CustomRuntimeParams;
#endif

/* Fills in the version; returns from InitPlugin where the host knows none of
 * the two structures. */
#define PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params)                    \
  do {                                                                 \
    if ((params)->size != sizeof(struct CustomRuntimeParams) &&        \
        (params)->interface->size != sizeof(struct C_DeviceInterface)) \
      return;                                                          \
    (params)->version.major = PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION;     \
    (params)->version.minor = PADDLE_CUSTOM_RUNTIME_MINOR_VERSION;     \
    (params)->version.patch = PADDLE_CUSTOM_RUNTIME_PATCH_VERSION;     \
  } while (0)

/* Of the driver: fills in params and params->interface. */
__attribute__((visibility("default"))) void InitPlugin(
    struct CustomRuntimeParams* params);

#ifdef __cplusplus
}
#endif

#endif /* PD_LIBCORE_PLUGIN_API_PADDLE_DEVICE_EXT_H_ */
