// SPDX-License-Identifier: Apache-2.0
// Two devices of the host's memory that work together: sums and gathers as they
// should be, a broadcast that moves nothing, and no reduce_scatter.
#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "paddle/phi/backends/device_ext.h"

// A group is in this process, whose threads are its ranks.
struct C_CCLComm_st {
  size_t number, rank, size;
};

namespace {

std::mutex mutex;
std::condition_variable changed;
size_t groups = 0, calls = 0, members = 0;
// Numbers that the ranks of a group have brought, by rank.
struct Round {
  std::map<size_t, std::vector<float>> parts;
  size_t left = 0;
};
std::map<size_t, Round> rounds;

// Brings `part` and takes the parts of all ranks.
std::vector<std::vector<float>> Meet(C_CCLComm comm, const void* part,
                                     size_t count) {
  std::unique_lock<std::mutex> lock(mutex);
  ++calls;
  changed.wait(lock, [&] { return rounds[comm->number].left == 0; });
  const float* first = static_cast<const float*>(part);
  rounds[comm->number].parts[comm->rank].assign(first, first + count);
  changed.notify_all();
  changed.wait(lock,
               [&] { return rounds[comm->number].parts.size() == comm->size; });
  std::vector<std::vector<float>> all;
  for (const auto& entry : rounds[comm->number].parts)
    all.push_back(entry.second);
  if (++rounds[comm->number].left == comm->size) rounds.erase(comm->number);
  changed.notify_all();
  return all;
}

C_Status Device(const C_Device) { return C_SUCCESS; }
C_Status Stream(const C_Device, C_Stream) { return C_SUCCESS; }
C_Status MakeEvent(const C_Device, C_Event*) { return C_SUCCESS; }
C_Status Record(const C_Device, C_Stream, C_Event) { return C_SUCCESS; }
C_Status Event(const C_Device, C_Event) { return C_SUCCESS; }
C_Status Allocate(const C_Device, void** pointer, size_t size) {
  *pointer = malloc(size);
  return C_SUCCESS;
}
C_Status Deallocate(const C_Device, void* pointer, size_t) {
  free(pointer);
  return C_SUCCESS;
}
C_Status Copy(const C_Device, void* to, const void* from, size_t size) {
  memcpy(to, from, size);
  return C_SUCCESS;
}
C_Status Count(size_t* count) {
  *count = 2;
  return C_SUCCESS;
}
C_Status List(size_t* devices) {
  devices[0] = 0;
  devices[1] = 1;
  return C_SUCCESS;
}

C_Status IdSize(size_t* size) {
  *size = sizeof(size_t);
  return C_SUCCESS;
}
C_Status Id(C_CCLRootId* id) {
  const std::lock_guard<std::mutex> lock(mutex);
  const size_t number = ++groups;
  memcpy(id->data, &number, sizeof(number));
  return C_SUCCESS;
}
C_Status Join(size_t size, C_CCLRootId* id, size_t rank, C_CCLComm* comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  *comm = new C_CCLComm_st{0, rank, size};
  memcpy(&(*comm)->number, id->data, sizeof((*comm)->number));
  ++members;
  return C_SUCCESS;
}
C_Status Leave(C_CCLComm comm) {
  const std::lock_guard<std::mutex> lock(mutex);
  delete comm;
  --members;
  return C_SUCCESS;
}
C_Status AllReduce(void* send, void* receive, size_t count, C_DataType type,
                   C_CCLReduceOp op, C_CCLComm comm, C_Stream) {
  if (type != FLOAT32) return C_ERROR;
  const auto all = Meet(comm, send, count);
  float* out = static_cast<float*>(receive);
  for (size_t i = 0; i < count; ++i) {
    out[i] = all[0][i];
    for (size_t r = 1; r < all.size(); ++r)
      out[i] = op == MAX ? (all[r][i] > out[i] ? all[r][i] : out[i])
                         : out[i] + all[r][i];
  }
  return C_SUCCESS;
}
C_Status AllGather(void* send, void* receive, size_t count, C_DataType,
                   C_CCLComm comm, C_Stream) {
  const auto all = Meet(comm, send, count);
  for (size_t r = 0; r < all.size(); ++r)
    memcpy(static_cast<float*>(receive) + r * count, all[r].data(),
           count * sizeof(float));
  return C_SUCCESS;
}
C_Status Broadcast(void*, size_t, C_DataType, size_t, C_CCLComm, C_Stream) {
  return C_SUCCESS;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void PairCounts(size_t* done,
                                                                  size_t* in) {
  const std::lock_guard<std::mutex> lock(mutex);
  *done = calls;
  *in = members;
}

void InitPlugin(CustomRuntimeParams* params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
  params->device_type = "pair";
  C_DeviceInterface* table = params->interface;
  memset(table, 0, sizeof(*table));
  table->set_device = Device;
  table->get_device = Device;
  table->synchronize_stream = Stream;
  table->create_event = MakeEvent;
  table->record_event = Record;
  table->destroy_event = Event;
  table->synchronize_event = Event;
  table->device_memory_allocate = Allocate;
  table->device_memory_deallocate = Deallocate;
  table->memory_copy_h2d = Copy;
  table->memory_copy_d2h = Copy;
  table->get_device_count = Count;
  table->get_device_list = List;
  table->xccl_get_unique_id_size = IdSize;
  table->xccl_get_unique_id = Id;
  table->xccl_comm_init_rank = Join;
  table->xccl_destroy_comm = Leave;
  table->xccl_all_reduce = AllReduce;
  table->xccl_all_gather = AllGather;
  table->xccl_broadcast = Broadcast;
}
