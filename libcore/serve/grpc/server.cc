// SPDX-License-Identifier: Apache-2.0
// The server over gRPC. Messages come as bytes and are counted and parsed here:
// one of empty strings takes ten times its size. Each thread has a queue of its
// own and takes one call after the other, so a call reads from top to bottom.
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/log.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/grpc.h"
#include "libcore/serve/grpc/messages.h"

namespace pd {
namespace serve {
namespace {

// Clients refuse a head of more than 8 KiB, in which the message stands.
constexpr size_t kMostMessage = 1000;
// Questions about models, which have names alone, are not counted by Hold.
constexpr size_t kMostQuestion = size_t{64} << 10;
constexpr char kMethods[] = "/inference.GRPCInferenceService/";

constexpr char kEnds[] = "the server is shutting down";

// How often a thread that waits for a client looks whether the server ends, and
// how long messages are still taken then.
constexpr std::chrono::milliseconds kGlance(100);
constexpr std::chrono::milliseconds kGrace(500);

std::chrono::system_clock::time_point SoonOf(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

// The code of what HTTP answers with a status.
grpc::StatusCode CodeOf(int http_status) {
  switch (http_status) {
    case 400:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case 404:
      return grpc::StatusCode::NOT_FOUND;
    case 422:  // the answer is too long for a message
    case 429:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case 503:
      return grpc::StatusCode::UNAVAILABLE;
    default:
      return grpc::StatusCode::INTERNAL;
  }
}

grpc::Status Failure(grpc::StatusCode code, absl::string_view message) {
  return grpc::Status(code, Printable(message.substr(0, kMostMessage)));
}

// gRPC writes to standard error on its own otherwise.
void LogOfGrpc(gpr_log_func_args* args) {
  LogVerbose("gRPC: %s", std::string(args->message));
}

// One call of a client, and the queue on which its thread waits.
class GrpcCall {
 public:
  GrpcCall(grpc::ServerCompletionQueue* queue, const GrpcOptions& options,
           const std::atomic<bool>& draining)
      : queue_(queue),
        options_(options),
        draining_(draining),
        stream_(&context_) {}

  /// Waits for a call; false when the server ends.
  bool Await(grpc::AsyncGenericService* service) {
    service->RequestCall(&context_, &stream_, queue_, queue_, this);
    return Next();
  }
  const std::string& method() const { return context_.method(); }

  /// The next message, false where none comes.
  bool Read(grpc::ByteBuffer* to) {
    stream_.Read(to, this);
    // Clients hold streams open; what is on its way still comes.
    return InTime(/*hurries=*/true);
  }
  /// False when the client is gone, or does not take it.
  bool Write(const grpc::ByteBuffer& reply) {
    stream_.Write(reply, this);
    return InTime(/*hurries=*/false);
  }
  void Finish(const grpc::Status& status) {
    stream_.Finish(status, this);
    InTime(/*hurries=*/false);
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_->Next(&tag, &ok) && ok;
  }

  // Next for what depends on the client, who may send nothing and take nothing:
  // in the end the call is cancelled, so that its thread and the server's end
  // do not wait. `hurries`: only for a moment once the server ends.
  bool InTime(bool hurries) {
    using Clock = std::chrono::steady_clock;
    void* tag = nullptr;
    bool ok = false;
    auto end = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(
                                  options_.receive_seconds * 1000));
    while (Clock::now() < end) {
      if (queue_->AsyncNext(&tag, &ok, SoonOf(kGlance)) !=
          grpc::CompletionQueue::NextStatus::TIMEOUT)
        return ok;
      if (!hurries || !draining_) continue;
      hurries = false;
      end = std::min(end, Clock::now() + kGrace);
    }
    context_.TryCancel();
    Next();
    return false;
  }

  grpc::ServerCompletionQueue* const queue_;
  const GrpcOptions& options_;
  const std::atomic<bool>& draining_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
};

template <typename Message>
grpc::ByteBuffer BytesOf(const Message& message) {
  auto* const bytes = new std::string(message.SerializeAsString());
  // Not a copy: where memory for one is missing, gRPC ends the program.
  const grpc::Slice slice(
      &(*bytes)[0], bytes->size(),
      [](void* it) { delete static_cast<std::string*>(it); }, bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// False where the bytes are no such message.
template <typename Message>
bool Parse(const grpc::ByteBuffer& bytes, Message* message) {
  grpc::Slice slice;
  return bytes.DumpToSingleSlice(&slice).ok() &&
         message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()));
}

grpc::Status NoMessage(const char* name) {
  return Failure(grpc::StatusCode::INVALID_ARGUMENT,
                 absl::StrCat("the bytes are no ", name));
}

template <typename Message>
grpc::Status ParseQuestion(const grpc::ByteBuffer& bytes, const char* name,
                           Message* message) {
  if (bytes.Length() > kMostQuestion)
    return Failure(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("the message has ", bytes.Length(), " bytes; a ", name,
                     " has at most ", kMostQuestion));
  return Parse(bytes, message) ? grpc::Status::OK : NoMessage(name);
}

// The status of `work`; UNAVAILABLE where memory runs out.
template <typename Work>
grpc::Status GuardedCall(const Work& work) {
  grpc::Status status;
  const absl::Status run = Guarded([&] {
    status = work();
    return absl::OkStatus();
  });
  if (run.ok()) return status;
  return Failure(grpc::StatusCode::UNAVAILABLE, run.message());
}

class Server : public GrpcServer {
 public:
  Server(const GrpcOptions& options, Service* service)
      : options_(options),
        most_bytes_(std::max<int64_t>(4 * options.max_message, 256 << 20)),
        service_(service) {}
  ~Server() override { Server::Drain(); }

  absl::Status Start();
  int port() const override { return port_; }
  void Drain() override;

 private:
  void Work(grpc::ServerCompletionQueue* queue);
  grpc::Status Answer(const std::string& method, const grpc::ByteBuffer& bytes,
                      grpc::ByteBuffer* reply);
  grpc::Status ModelReady(const grpc::ByteBuffer& bytes,
                          grpc::ByteBuffer* reply);
  grpc::Status Metadata(const grpc::ByteBuffer& bytes, grpc::ByteBuffer* reply);
  grpc::Status Infer(const grpc::ByteBuffer& bytes,
                     wire::ModelInferResponse* answer);
  grpc::ByteBuffer StreamReply(const grpc::ByteBuffer& bytes);
  void Stream(GrpcCall* call);
  bool Hold(const grpc::ByteBuffer& bytes);

  const GrpcOptions options_;
  const int64_t most_bytes_;  // of all messages together
  Service* const service_;
  std::atomic<bool> draining_{false};
  int port_ = 0;
  grpc::AsyncGenericService generic_;
  std::vector<std::unique_ptr<grpc::ServerCompletionQueue>> queues_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::thread> threads_;
};

absl::Status Server::Start() {
  gpr_set_log_function(LogOfGrpc);
  const bool v6 = options_.host.find(':') != std::string::npos;
  const std::string address = absl::StrCat(v6 ? "[" : "", options_.host,
                                           v6 ? "]" : "", ":", options_.port);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port_);
  builder.RegisterAsyncGenericService(&generic_);
  builder.SetMaxReceiveMessageSize(static_cast<int>(
      std::min<int64_t>(options_.max_message, (int64_t{1} << 31) - 1)));
  builder.SetMaxSendMessageSize(-1);
  // Two servers would share a port in silence.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             options_.max_calls);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                             static_cast<int>(options_.idle_seconds * 1000));
  // Bytes that have been received and not been read yet count here.
  grpc::ResourceQuota quota("pd");
  quota.Resize(static_cast<size_t>(most_bytes_));
  builder.SetResourceQuota(quota);
  for (int i = 0; i < options_.max_calls; ++i)
    queues_.push_back(builder.AddCompletionQueue());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) {
    for (const auto& queue : queues_) queue->Shutdown();
    return Unavailable("cannot listen on '%s'", address);
  }
  for (const auto& queue : queues_)
    threads_.emplace_back([this, own = queue.get()] { Work(own); });
  return absl::OkStatus();
}

void Server::Drain() {
  if (threads_.empty()) return;
  draining_ = true;
  // Shutdown cancels calls that clients begin before they hear of it; for a
  // moment they are told to go elsewhere.
  std::this_thread::sleep_for(kGrace);
  server_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

// Whether there is memory for one message more.
bool Server::Hold(const grpc::ByteBuffer& bytes) {
  std::atomic<int64_t>& held = service_->metrics()->body_bytes;
  const auto more = static_cast<int64_t>(bytes.Length());
  if ((held += more) <= most_bytes_) return true;
  held -= more;
  return false;
}

void Server::Work(grpc::ServerCompletionQueue* queue) {
  for (;;) {
    GrpcCall call(queue, options_, draining_);
    if (!call.Await(&generic_)) break;
    if (draining_) {
      call.Finish(Failure(grpc::StatusCode::UNAVAILABLE, kEnds));
      continue;
    }
    if (call.method() == absl::StrCat(kMethods, "ModelStreamInfer")) {
      Stream(&call);
      continue;
    }
    grpc::ByteBuffer bytes, reply;
    if (!call.Read(&bytes)) {
      call.Finish(
          Failure(grpc::StatusCode::INVALID_ARGUMENT, "no message came"));
      continue;
    }
    const grpc::Status status =
        GuardedCall([&] { return Answer(call.method(), bytes, &reply); });
    if (status.ok()) call.Write(reply);
    call.Finish(status);
  }
  queue->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
  }
}

grpc::Status Server::Answer(const std::string& method,
                            const grpc::ByteBuffer& bytes,
                            grpc::ByteBuffer* reply) {
  const absl::string_view name = absl::StripPrefix(method, kMethods);
  if (name == "ModelInfer") {
    wire::ModelInferResponse answer;
    const grpc::Status status = Infer(bytes, &answer);
    if (status.ok()) *reply = BytesOf(answer);
    return status;
  }
  if (name == "ModelReady") return ModelReady(bytes, reply);
  if (name == "ModelMetadata") return Metadata(bytes, reply);
  if (name == "ServerLive") {
    wire::ServerLiveResponse answer;
    answer.set_live(true);
    *reply = BytesOf(answer);
  } else if (name == "ServerReady") {
    wire::ServerReadyResponse answer;
    answer.set_ready(!service_->draining());
    *reply = BytesOf(answer);
  } else if (name == "ServerMetadata") {
    wire::ServerMetadataResponse answer;
    answer.set_name("pdkit");
    answer.set_version(service_->version());
    *reply = BytesOf(answer);
  } else {
    return Failure(
        grpc::StatusCode::UNIMPLEMENTED,
        absl::StrCat("there is no method '", method, "'; see ", kMethods,
                     "ModelInfer, ModelMetadata, ServerReady"));
  }
  return grpc::Status::OK;
}

grpc::Status Server::ModelReady(const grpc::ByteBuffer& bytes,
                                grpc::ByteBuffer* reply) {
  wire::ModelReadyRequest request;
  const grpc::Status parsed =
      ParseQuestion(bytes, "ModelReadyRequest", &request);
  if (!parsed.ok()) return parsed;
  const auto found =
      service_->repository()->Find(request.name(), request.version());
  if (absl::IsNotFound(found.status()))
    return Failure(grpc::StatusCode::NOT_FOUND, found.status().message());
  wire::ModelReadyResponse answer;
  answer.set_ready(found.ok() && !service_->draining());
  *reply = BytesOf(answer);
  return grpc::Status::OK;
}

grpc::Status Server::Metadata(const grpc::ByteBuffer& bytes,
                              grpc::ByteBuffer* reply) {
  wire::ModelMetadataRequest request;
  const grpc::Status parsed =
      ParseQuestion(bytes, "ModelMetadataRequest", &request);
  if (!parsed.ok()) return parsed;
  const auto found =
      service_->repository()->Find(request.name(), request.version());
  if (!found.ok())
    return Failure(CodeOf(absl::IsNotFound(found.status()) ? 404 : 503),
                   found.status().message());
  const ServedModel& model = **found;
  wire::ModelMetadataResponse answer;
  answer.set_name(model.name);
  answer.set_platform(absl::StrCat("pdkit_", model.format));
  for (const int64_t number : service_->repository()->Versions(model.name))
    answer.add_versions(absl::StrCat(number));
  const auto describe = [](const std::vector<TensorInfo>& list, auto* to) {
    for (const TensorInfo& info : list) {
      auto* const tensor = to->Add();
      tensor->set_name(info.name);
      tensor->set_datatype(std::string(DatatypeName(info.dtype)));
      for (const int64_t extent : info.shape) tensor->add_shape(extent);
    }
  };
  describe(model.signature.inputs, answer.mutable_inputs());
  describe(model.signature.outputs, answer.mutable_outputs());
  *reply = BytesOf(answer);
  return grpc::Status::OK;
}

// The model's name stands in the message, so that is parsed before the model is
// found.
grpc::Status Server::Infer(const grpc::ByteBuffer& bytes,
                           wire::ModelInferResponse* answer) {
  if (!Hold(bytes))
    return Failure(grpc::StatusCode::UNAVAILABLE,
                   "other requests hold all memory for messages; try again "
                   "later");
  const auto release = absl::MakeCleanup([&] {
    service_->metrics()->body_bytes -= static_cast<int64_t>(bytes.Length());
  });
  wire::ModelInferRequest message;
  if (!service_->Parse([&] { return serve::Parse(bytes, &message); }))
    return NoMessage("ModelInferRequest");
  const bool raw = message.raw_input_contents_size() > 0;
  const Service::Outcome outcome = service_->Call(
      message.model_name(), message.model_version(),
      [&](const Signature& signature) {
        return Guarded([&] { return ReadMessage(message, signature); });
      },
      [&](const ServedModel& model, const InferRequest& request,
          const Outputs& outputs) {
        return WriteMessage(
            {model.name, absl::StrCat(model.version), request.id},
            model.signature, request, raw, outputs, answer);
      });
  if (outcome.status.ok()) return grpc::Status::OK;
  return Failure(CodeOf(outcome.http_status), outcome.status.message());
}

grpc::ByteBuffer Server::StreamReply(const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer reply;
  const grpc::Status status = GuardedCall([&] {
    wire::ModelStreamInferResponse answer;
    const grpc::Status status = Infer(bytes, answer.mutable_infer_response());
    if (status.ok()) reply = BytesOf(answer);
    return status;
  });
  if (status.ok()) return reply;
  wire::ModelStreamInferResponse refusal;
  refusal.set_error_message(status.error_message());
  return BytesOf(refusal);
}

// An answer for each request, in their order.
void Server::Stream(GrpcCall* call) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point end = Clock::time_point::max();
  for (;;) {
    if (draining_) {
      // A client that goes on and on does not hold up the server's end.
      if (Clock::now() >= end)
        return call->Finish(Failure(grpc::StatusCode::UNAVAILABLE, kEnds));
      end = std::min(end, Clock::now() + kGrace);
    }
    grpc::ByteBuffer bytes;
    if (!call->Read(&bytes) || !call->Write(StreamReply(bytes))) break;
  }
  call->Finish(grpc::Status::OK);
}

}  // namespace
}  // namespace serve
}  // namespace pd

extern "C" __attribute__((visibility("default"))) pd::serve::GrpcServer*
PdMakeGrpcServer(const pd::serve::GrpcOptions& options,
                 pd::serve::Service* service, absl::Status* error) {
  auto server = std::make_unique<pd::serve::Server>(options, service);
  *error = server->Start();
  return error->ok() ? server.release() : nullptr;
}
