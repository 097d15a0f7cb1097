// SPDX-License-Identifier: Apache-2.0
// A device whose driver works with others in other processes: a message is a
// file in a folder that the group is named by. Its addresses are not the
// host's. FILES_DEVICE_LOG is a file that gets the name of each function that
// does work; with FILES_DEVICE_GROUPS there is no xccl_all_to_all.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "paddle/phi/backends/device_ext.h"

struct C_CCLComm_st {
  std::string folder;
  size_t rank, size;
  std::map<std::pair<size_t, size_t>, size_t> messages;
};

namespace {

constexpr uintptr_t kFar = uintptr_t{1} << 45;
constexpr size_t kIdBytes = 64;

char* Near(const void* address) {
  return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(address) - kFar);
}

void Note(const char* name) {
  const char* file = getenv("FILES_DEVICE_LOG");
  if (file != nullptr) std::ofstream(file, std::ios::app) << name << std::endl;
}

C_Status Device(const C_Device) { return C_SUCCESS; }
C_Status Stream(const C_Device, C_Stream) { return C_SUCCESS; }
C_Status MakeEvent(const C_Device, C_Event*) { return C_SUCCESS; }
C_Status Record(const C_Device, C_Stream, C_Event) { return C_SUCCESS; }
C_Status Event(const C_Device, C_Event) { return C_SUCCESS; }
C_Status Allocate(const C_Device, void** pointer, size_t size) {
  char* data = static_cast<char*>(malloc(size));
  *pointer = data + kFar;
  return data == nullptr ? C_FAILED : C_SUCCESS;
}
C_Status Deallocate(const C_Device, void* pointer, size_t) {
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
  *count = 1;
  return C_SUCCESS;
}
C_Status List(size_t* devices) {
  devices[0] = 0;
  return C_SUCCESS;
}

// Bytes of an element; 0 for types that this driver does not know.
size_t Size(C_DataType type) {
  switch (type) {
    case BOOL:
    case INT8:
    case UINT8:
      return 1;
    case INT16:
    case FLOAT16:
    case BFLOAT16:
      return 2;
    case INT32:
    case FLOAT32:
      return 4;
    case INT64:
    case FLOAT64:
      return 8;
    default:
      return 0;
  }
}

// The next message from one rank to another, as the name of a file.
std::string Message(C_CCLComm comm, size_t from, size_t to) {
  std::ostringstream name;
  name << comm->folder << "/" << from << "-" << to << "-"
       << comm->messages[{from, to}]++;
  return name.str();
}
C_Status Put(C_CCLComm comm, size_t to, const char* data, size_t bytes) {
  const std::string name = Message(comm, comm->rank, to);
  std::ofstream file(name + ".part", std::ios::binary);
  file.write(data, static_cast<std::streamsize>(bytes));
  file.close();
  const bool there =
      file.good() && rename((name + ".part").c_str(), name.c_str()) == 0;
  return there ? C_SUCCESS : C_INTERNAL_ERROR;
}
C_Status Take(C_CCLComm comm, size_t from, char* data, size_t bytes) {
  const std::string name = Message(comm, from, comm->rank);
  for (int waits = 0; access(name.c_str(), R_OK) != 0; ++waits) {
    if (waits > 300000) return C_FAILED;
    usleep(100);
  }
  std::ifstream file(name, std::ios::binary);
  file.read(data, static_cast<std::streamsize>(bytes));
  const bool whole =
      file.gcount() == static_cast<std::streamsize>(bytes) && file.peek() < 0;
  return unlink(name.c_str()) == 0 && whole ? C_SUCCESS : C_INTERNAL_ERROR;
}

// Gathers the parts of all ranks, in their order.
C_Status Meet(C_CCLComm comm, const void* part, size_t bytes, char* all) {
  for (size_t r = 0; r < comm->size; ++r)
    if (r != comm->rank && Put(comm, r, Near(part), bytes) != C_SUCCESS)
      return C_INTERNAL_ERROR;
  for (size_t r = 0; r < comm->size; ++r) {
    if (r == comm->rank) {
      memcpy(all + r * bytes, Near(part), bytes);
    } else if (Take(comm, r, all + r * bytes, bytes) != C_SUCCESS) {
      return C_INTERNAL_ERROR;
    }
  }
  return C_SUCCESS;
}

template <typename T>
void Join(C_CCLReduceOp op, const T* term, size_t count, T* into) {
  for (size_t i = 0; i < count; ++i) {
    if (op == SUM) into[i] = static_cast<T>(into[i] + term[i]);
    if (op == PRODUCT) into[i] = static_cast<T>(into[i] * term[i]);
    if (op == MAX && term[i] > into[i]) into[i] = term[i];
    if (op == MIN && term[i] < into[i]) into[i] = term[i];
  }
}
C_Status JoinInto(C_DataType type, C_CCLReduceOp op, const char* term,
                  size_t count, char* into) {
  const void* from = term;
  void* to = into;
  if (type == FLOAT32)
    Join(op, static_cast<const float*>(from), count, static_cast<float*>(to));
  else if (type == FLOAT64)
    Join(op, static_cast<const double*>(from), count, static_cast<double*>(to));
  else if (type == INT32)
    Join(op, static_cast<const int32_t*>(from), count,
         static_cast<int32_t*>(to));
  else if (type == INT64)
    Join(op, static_cast<const int64_t*>(from), count,
         static_cast<int64_t*>(to));
  else
    return C_ERROR;
  return C_SUCCESS;
}
// The reduction of what all ranks bring, `count` numbers.
C_Status Reduced(C_CCLComm comm, const void* part, size_t count,
                 C_DataType type, C_CCLReduceOp op, std::vector<char>* sums) {
  const size_t bytes = count * Size(type);
  std::vector<char> all(bytes * comm->size);
  if (Meet(comm, part, bytes, all.data()) != C_SUCCESS) return C_INTERNAL_ERROR;
  sums->assign(all.data(), all.data() + bytes);
  for (size_t r = 1; r < comm->size; ++r)
    if (JoinInto(type, op, all.data() + r * bytes, count, sums->data()) !=
        C_SUCCESS)
      return C_ERROR;
  return C_SUCCESS;
}

C_Status IdSize(size_t* size) {
  *size = kIdBytes;
  return C_SUCCESS;
}
C_Status Id(C_CCLRootId* id) {
  char name[kIdBytes] = "/tmp/files_device.XXXXXX";
  if (id->sz != kIdBytes || mkdtemp(name) == nullptr) return C_ERROR;
  memcpy(id->data, name, kIdBytes);
  return C_SUCCESS;
}
C_Status Enter(size_t size, C_CCLRootId* id, size_t rank, C_CCLComm* comm) {
  *comm = new C_CCLComm_st{static_cast<const char*>(id->data), rank, size, {}};
  return C_SUCCESS;
}
// The last one to leave an empty folder removes it.
C_Status Leave(C_CCLComm comm) {
  rmdir(comm->folder.c_str());
  delete comm;
  return C_SUCCESS;
}

C_Status AllReduce(void* send, void* receive, size_t count, C_DataType type,
                   C_CCLReduceOp op, C_CCLComm comm, C_Stream) {
  Note("xccl_all_reduce");
  std::vector<char> sums;
  const C_Status status = Reduced(comm, send, count, type, op, &sums);
  if (status == C_SUCCESS) memcpy(Near(receive), sums.data(), sums.size());
  return status;
}
C_Status Broadcast(void* data, size_t count, C_DataType type, size_t root,
                   C_CCLComm comm, C_Stream) {
  Note("xccl_broadcast");
  const size_t bytes = count * Size(type);
  if (comm->rank != root) return Take(comm, root, Near(data), bytes);
  for (size_t r = 0; r < comm->size; ++r)
    if (r != root && Put(comm, r, Near(data), bytes) != C_SUCCESS)
      return C_INTERNAL_ERROR;
  return C_SUCCESS;
}
C_Status Reduce(void* send, void* receive, size_t count, C_DataType type,
                C_CCLReduceOp op, size_t root, C_CCLComm comm, C_Stream) {
  Note("xccl_reduce");
  std::vector<char> sums;
  const C_Status status = Reduced(comm, send, count, type, op, &sums);
  if (status != C_SUCCESS) return status;
  // Elsewhere the interface says nothing about what is received.
  if (comm->rank == root)
    memcpy(Near(receive), sums.data(), sums.size());
  else
    memset(Near(receive), 0x7f, sums.size());
  return C_SUCCESS;
}
C_Status AllGather(void* send, void* receive, size_t count, C_DataType type,
                   C_CCLComm comm, C_Stream) {
  Note("xccl_all_gather");
  return Meet(comm, send, count * Size(type), Near(receive));
}
C_Status ReduceScatter(void* send, void* receive, size_t count, C_DataType type,
                       C_CCLReduceOp op, C_CCLComm comm, C_Stream) {
  Note("xccl_reduce_scatter");
  std::vector<char> sums;
  const C_Status status =
      Reduced(comm, send, count * comm->size, type, op, &sums);
  const size_t bytes = count * Size(type);
  if (status == C_SUCCESS)
    memcpy(Near(receive), sums.data() + comm->rank * bytes, bytes);
  return status;
}

// Receipts of a group wait for its end; messages do not wait for receivers.
struct Receipt {
  C_CCLComm comm;
  size_t from;
  char* data;
  size_t bytes;
};
std::vector<Receipt> receipts;
bool in_group = false;
C_Status GroupStart() {
  Note("xccl_group_start");
  in_group = true;
  return C_SUCCESS;
}
C_Status GroupEnd() {
  Note("xccl_group_end");
  in_group = false;
  C_Status status = C_SUCCESS;
  for (const Receipt& one : receipts)
    if (Take(one.comm, one.from, one.data, one.bytes) != C_SUCCESS)
      status = C_INTERNAL_ERROR;
  receipts.clear();
  return status;
}
C_Status Send(void* data, size_t count, C_DataType type, size_t to,
              C_CCLComm comm, C_Stream) {
  Note("xccl_send");
  return Put(comm, to, Near(data), count * Size(type));
}
C_Status Receive(void* data, size_t count, C_DataType type, size_t from,
                 C_CCLComm comm, C_Stream) {
  Note("xccl_recv");
  const size_t bytes = count * Size(type);
  if (!in_group) return Take(comm, from, Near(data), bytes);
  receipts.push_back({comm, from, Near(data), bytes});
  return C_SUCCESS;
}
// Sizes of what goes to each rank, or comes from it.
struct Parts {
  size_t bytes(size_t rank) const { return counts[rank] * Size(types[rank]); }
  const size_t* counts;
  const C_DataType* types;
};
C_Status Exchange(const void** send, const Parts& out, void** receive,
                  const Parts& in, C_CCLComm comm) {
  Note("xccl_all_to_all");
  const size_t rank = comm->rank, ranks = comm->size;
  memcpy(Near(receive[rank]), Near(send[rank]), out.bytes(rank));
  for (size_t r = 0; r < ranks; ++r)
    if (r != rank && Put(comm, r, Near(send[r]), out.bytes(r)) != C_SUCCESS)
      return C_INTERNAL_ERROR;
  for (size_t r = 0; r < ranks; ++r)
    if (r != rank && Take(comm, r, Near(receive[r]), in.bytes(r)) != C_SUCCESS)
      return C_INTERNAL_ERROR;
  return C_SUCCESS;
}

}  // namespace

void InitPlugin(CustomRuntimeParams* params) {
  PADDLE_CUSTOM_RUNTIME_CHECK_VERSION(params);
  params->device_type = "files";
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
  table->memory_copy_h2d = ToDevice;
  table->memory_copy_d2h = ToHost;
  table->get_device_count = Count;
  table->get_device_list = List;
  table->xccl_get_unique_id_size = IdSize;
  table->xccl_get_unique_id = Id;
  table->xccl_comm_init_rank = Enter;
  table->xccl_destroy_comm = Leave;
  table->xccl_all_reduce = AllReduce;
  table->xccl_broadcast = Broadcast;
  table->xccl_reduce = Reduce;
  table->xccl_all_gather = AllGather;
  table->xccl_reduce_scatter = ReduceScatter;
  table->xccl_group_start = GroupStart;
  table->xccl_group_end = GroupEnd;
  table->xccl_send = Send;
  table->xccl_recv = Receive;
  if (getenv("FILES_DEVICE_GROUPS") == nullptr)
    table->xccl_all_to_all = [](const void** send, const size_t* send_count,
                                const C_DataType* send_type, void** receive,
                                const size_t* receive_count,
                                const C_DataType* receive_type, size_t rank,
                                size_t ranks, C_CCLComm comm, C_Stream) {
      if (rank != comm->rank || ranks != comm->size) return C_ERROR;
      return Exchange(send, {send_count, send_type}, receive,
                      {receive_count, receive_type}, comm);
    };
}
