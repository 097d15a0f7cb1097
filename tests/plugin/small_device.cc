// SPDX-License-Identifier: Apache-2.0
// A device with two kernels in the C form. Its addresses are not the host's:
// whoever follows one outside of its driver and kernels crashes.
#include <chrono>
#include <vector>

#include "paddle/phi/api/profiler/trace_event.h"
#include "paddle/phi/backends/device_ext.h"
#include "paddle/phi/capi/all.h"

namespace {

constexpr uintptr_t kFar = uintptr_t{1} << 45;

template <typename T>
T* Near(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) - kFar);
}

constexpr size_t kMemory = 64 << 20;
size_t taken = 0;

C_Status Device(const C_Device) { return C_SUCCESS; }
C_Status MakeStream(const C_Device, C_Stream* stream) {
  *stream = nullptr;
  return C_SUCCESS;
}
C_Status Stream(const C_Device, C_Stream) { return C_SUCCESS; }
C_Status MakeEvent(const C_Device, C_Event* event) {
  *event = nullptr;
  return C_SUCCESS;
}
C_Status Record(const C_Device, C_Stream, C_Event) { return C_SUCCESS; }
C_Status Event(const C_Device, C_Event) { return C_SUCCESS; }

C_Status Allocate(const C_Device, void** pointer, size_t size) {
  if (size % 256 != 0) return C_ERROR;
  if (size > kMemory - taken) return C_FAILED;
  void* data = aligned_alloc(256, size);
  if (data == nullptr) return C_FAILED;
  taken += size;
  memset(data, 0x7f, size);
  *pointer = static_cast<char*>(data) + kFar;
  return C_SUCCESS;
}
C_Status Deallocate(const C_Device, void* pointer, size_t size) {
  taken -= size;
  free(Near(pointer));
  return C_SUCCESS;
}
C_Status ToDevice(const C_Device, void* to, const void* from, size_t size) {
  memcpy(Near(to), from, size);
  return C_SUCCESS;
}
C_Status ToHost(const C_Device, void* to, const void* from, size_t size) {
  memcpy(to, Near(from), size);
  return C_SUCCESS;
}
C_Status Count(size_t* count) {
  *count = 2;
  return C_SUCCESS;
}
C_Status List(size_t* devices) {
  devices[0] = 0;
  devices[1] = 3;
  return C_SUCCESS;
}
C_Status Chunk(const C_Device, size_t* size) {
  *size = 256;
  return C_SUCCESS;
}
C_Status Stats(const C_Device, size_t* total, size_t* free) {
  *total = kMemory;
  *free = kMemory - taken;
  return C_SUCCESS;
}

C_Status LargestPiece(const C_Device, size_t* size) {
  *size = kMemory / 2;
  return C_SUCCESS;
}
C_Status DriverVersion(size_t* version) {
  *version = 5;
  return C_SUCCESS;
}
C_Status RuntimeVersion(size_t* version) {
  *version = 12;
  return C_SUCCESS;
}
C_Status Capability(size_t* number) {
  *number = 70;
  return C_SUCCESS;
}

bool idle_sums = false;
C_Status Axpby(const C_Device, C_Stream, C_DataType type, size_t count,
               float alpha, void* x, float beta, void* y) {
  if (type != FLOAT32) return C_ERROR;
  const float* from = Near(static_cast<const float*>(x));
  float* to = Near(static_cast<float*>(y));
  for (size_t i = 0; i < count && !idle_sums; ++i)
    to[i] = alpha * from[i] + beta * to[i];
  return C_SUCCESS;
}

// Its profiler tells of products, of the call that starts each, and of one copy
// that was before the window.
std::vector<phi::DeviceTraceEvent> products;
bool tracing = false;
uint64_t Now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}
struct Product {
  explicit Product(int64_t rows) : begin(Now()), rows(rows) {}
  ~Product() {
    if (!tracing) return;
    phi::DeviceTraceEvent event;
    event.name = "small_product";
    event.start_ns = begin;
    event.end_ns = Now();
    event.device_id = 3;
    event.stream_id = 7;
    event.correlation_id = static_cast<uint32_t>(products.size() + 1);
    event.kernel_info.grid_x = static_cast<uint32_t>(rows);
    products.push_back(event);
  }
  uint64_t begin;
  int64_t rows;
};
C_Status StartProfiler(C_Profiler, void** user_data) {
  *user_data = &products;
  return C_SUCCESS;
}
C_Status StartTracing(C_Profiler, void* user_data) {
  products.clear();
  tracing = true;
  return user_data == &products ? C_SUCCESS : C_ERROR;
}
C_Status StopTracing(C_Profiler, void*) {
  tracing = false;
  return C_SUCCESS;
}
C_Status Collect(C_Profiler profiler, uint64_t start, void*) {
  for (phi::DeviceTraceEvent& product : products) {
    phi::RuntimeTraceEvent call("small_launch", product.start_ns,
                                product.start_ns, 1, 99, product.correlation_id,
                                0);
    profiler_add_runtime_trace_event(profiler, &call);
    profiler_add_device_trace_event(profiler, &product);
  }
  phi::DeviceTraceEvent copy;
  copy.name = "early_copy";
  copy.type = phi::TracerEventType::Memcpy;
  copy.start_ns = start - 2;
  copy.end_ns = start - 1;
  copy.memcpy_info.num_bytes = 8;
  profiler_add_device_trace_event(profiler, &copy);
  return C_SUCCESS;
}

}  // namespace

// Whether sums are left as they are from now on.
extern "C" __attribute__((visibility("default"))) void SmallSumsAreIdle(
    bool idle) {
  idle_sums = idle;
}

void InitPlugin(CustomRuntimeParams* params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
  std::cout << "this line is not a tool's output\n";
#ifndef PD_WITHOUT_TYPE
  params->device_type = "small";
#endif
  params->sub_device_type = "v7";
  C_DeviceInterface* table = params->interface;
  memset(table, 0, sizeof(*table));
  table->set_device = Device;
  table->get_device = Device;
  table->create_stream = MakeStream;
  table->destroy_stream = Stream;
  table->synchronize_stream = Stream;
  table->create_event = MakeEvent;
  table->record_event = Record;
  table->destroy_event = Event;
  table->synchronize_event = Event;
  table->device_memory_allocate = Allocate;
  table->device_memory_deallocate = Deallocate;
  table->memory_copy_h2d = ToDevice;
#ifndef PD_WITHOUT_COPY
  table->memory_copy_d2h = ToHost;
#endif
  table->get_device_count = Count;
  table->get_device_list = List;
  table->device_min_chunk_size = Chunk;
  table->device_memory_stats = Stats;
  table->device_max_alloc_size = LargestPiece;
  table->get_driver_version = DriverVersion;
  table->get_runtime_version = RuntimeVersion;
  table->get_compute_capability = Capability;
  table->blas_axpby = Axpby;
  table->profiler_initialize = StartProfiler;
  table->profiler_start_tracing = StartTracing;
  table->profiler_stop_tracing = StopTracing;
#ifndef PD_WITHOUT_COLLECT
  table->profiler_collect_trace_data = Collect;
#endif
}

template <typename T>
void Matmul(const phi::Context& context, const phi::DenseTensor& x,
            const phi::DenseTensor& y, bool transpose_x, bool transpose_y,
            phi::DenseTensor* out) {
  const std::vector<int64_t> a = x.dims(), b = y.dims();
  PD_CHECK(a.size() == 2 && b.size() == 2, "this device knows matrices only");
  const int64_t rows = a[transpose_x], depth = a[!transpose_x];
  const int64_t columns = b[!transpose_y];
  out->Resize({rows, columns});
  T* sums = Near(context.template Alloc<T>(out));
  const T *left = Near(x.data<T>()), *right = Near(y.data<T>());
  const Product traced(rows);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < depth; ++k)
        sum += left[transpose_x ? k * rows + i : i * depth + k] *
               right[transpose_y ? j * depth + k : k * columns + j];
      sums[i * columns + j] = sum;
    }
}
PD_BUILD_PHI_KERNEL(matmul, small, ALL_LAYOUT, Matmul, float, double) {}

template <typename T>
void MatmulGrad(const phi::Context& context, const phi::DenseTensor& x,
                const phi::DenseTensor& y, const phi::DenseTensor& out_grad,
                bool transpose_x, bool transpose_y, phi::DenseTensor* x_grad,
                phi::DenseTensor* y_grad) {
  PD_CHECK(!transpose_x && !transpose_y, "this gradient knows plain products");
  if (x_grad != nullptr) Matmul<T>(context, out_grad, y, false, true, x_grad);
  if (y_grad != nullptr) Matmul<T>(context, x, out_grad, true, false, y_grad);
}
PD_BUILD_PHI_KERNEL(matmul_grad, small, ALL_LAYOUT, MatmulGrad, float) {}

template <typename T>
void Relu(const phi::Context& context, const phi::DenseTensor& x,
          phi::DenseTensor* out) {
  T* to = Near(context.template Alloc<T>(out));
  const T* from = Near(x.data<T>());
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] > T(0) ? from[i] : 0;
}
PD_BUILD_PHI_KERNEL(relu, small, ALL_LAYOUT, Relu, float) {}
