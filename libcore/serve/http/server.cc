// SPDX-License-Identifier: Apache-2.0
// The HTTP server over cpp-httplib, which parses requests and writes responses.
// Limits, the end of connections and the end of the server are our own.
#include <httplib.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/serve/http.h"
#include "libcore/serve/http/connection.h"
#include "libcore/serve/http/connection_threads.h"
#include "libcore/serve/protocol.h"

namespace pd {
namespace serve {
namespace {

constexpr int kBacklog = 1024;
constexpr size_t kMostPath = 1024;

// One request and its response, of this thread.
struct Exchange {
  Connection* connection = nullptr;
  Metrics* metrics = nullptr;
  httplib::Request* request = nullptr;  // null until its head is read
  int refusal = 0;                      // a status: refused for its head
  std::string why;
  bool close = false;  // no other request can follow
  int64_t held = 0;    // bytes of the body
};
thread_local Exchange* exchange = nullptr;

void Fill(HttpResponse&& from, httplib::Response* to) {
  to->status = from.status;
  to->body = std::move(from.body);
  to->set_header("Content-Type", from.type);
  for (const auto& [name, value] : from.headers) to->set_header(name, value);
}

// Lets no new connection begin, so that the kernel's queue of those that have
// runs empty: to close the socket would reset them.
void RefuseNew(int listener) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13),            // the flags of TCP
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x02, 1, 0),  // SYN: drop
      BPF_STMT(BPF_RET | BPF_K, 0xffffffff), BPF_STMT(BPF_RET | BPF_K, 0)};
  const sock_fprog program{4, code};
  // Where the system has no filters, a moment is left in which one is reset.
  (void)setsockopt(listener, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                   sizeof(program));
}

void FillError(int status, absl::string_view why, httplib::Response* to) {
  HttpResponse response;
  response.status = status;
  response.body = ErrorBody(why);
  exchange->metrics->CountResponse(status);
  Fill(std::move(response), to);
}

class Server : public httplib::Server, public HttpServer {
 public:
  Server(const HttpOptions& options, HttpHandler* handler, Metrics* metrics)
      : options_(options),
        most_bytes_(std::max<int64_t>(4 * options.max_body, 256 << 20)),
        handler_(handler),
        metrics_(metrics) {
    SetHandlers();
  }
  ~Server() override { Server::Drain(); }

  absl::Status Start();
  int port() const override { return port_; }
  void Drain() override;

 private:
  bool process_and_close_socket(socket_t socket) override;
  void SetHandlers();
  void CheckHead(httplib::Request* request);
  void Refuse(int status, std::string why);
  void CloseAfter();
  bool Hold(size_t bytes);
  void AnswerBody(const httplib::Request& request, httplib::Response* response,
                  const httplib::ContentReader& reader);
  void Answer(const httplib::Request& request, std::string body,
              httplib::Response* response);

  const HttpOptions options_;
  const int64_t most_bytes_;  // of all bodies together
  HttpHandler* const handler_;
  Metrics* const metrics_;
  ServerState state_;
  int port_ = 0, listener_ = -1;
  std::thread thread_;
};

absl::Status Server::Start() {
  set_socket_options([this](socket_t socket) {
    listener_ = socket;
    // Not SO_REUSEPORT, with which two servers would share a port in silence.
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  set_tcp_nodelay(true);
  set_keep_alive_max_count(size_t{1} << 30);
  set_keep_alive_timeout(static_cast<time_t>(options_.idle_seconds));
  set_payload_max_length(static_cast<size_t>(options_.max_body));
  new_task_queue = [this] {
    return new ConnectionThreads(options_.max_connections, &state_);
  };
  errno = 0;
  port_ = options_.port;
  const bool bound = port_ == 0 ? (port_ = bind_to_any_port(options_.host)) > 0
                                : bind_to_port(options_.host, port_);
  if (!bound)
    return ErrnoToStatus(errno == 0 ? EADDRINUSE : errno,
                         absl::StrCat("cannot listen on '", options_.host, ":",
                                      options_.port, "'"));
  // The library's own queue of five makes clients wait a second to try again.
  ::listen(listener_, kBacklog);
  thread_ = std::thread([this] { listen_after_bind(); });
  return absl::OkStatus();
}

void Server::Drain() {
  if (!thread_.joinable()) return;
  using std::chrono::milliseconds;
  state_.draining = true;
  RefuseNew(listener_);
  // Clients whose connection the kernel has taken already are let in.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  do std::this_thread::sleep_for(milliseconds(100));
  while (state_.crowded && std::chrono::steady_clock::now() < end);
  stop();
  thread_.join();
}

bool Server::process_and_close_socket(socket_t socket) {
  ++metrics_->connections;
  Connection connection(socket, options_, state_);
  bool more = true;
  while (more && connection.AwaitRequest()) {
    Exchange own;
    own.connection = &connection;
    own.metrics = metrics_;
    exchange = &own;
    bool closed = false;
    try {
      more = process_request(connection, false, closed,
                             [&](httplib::Request& head) { CheckHead(&head); });
    } catch (const std::exception& error) {
      // Memory may run out before the library looks for a handler.
      LogWarning("a connection is given up: %s", error.what());
      more = false;
    }
    // Without a request the head was none, and no one knows where it ends. A
    // client that was not told of the end may send once more.
    more = more && !closed && !own.close && own.request != nullptr;
    metrics_->body_bytes -= own.held;
    exchange = nullptr;
  }
  connection.Close();
  --metrics_->connections;
  return true;
}

void Server::CloseAfter() {
  exchange->close = true;
  exchange->request->headers.erase("Connection");
  exchange->request->set_header("Connection", "close");
}

void Server::Refuse(int status, std::string why) {
  exchange->refusal = status;
  exchange->why = std::move(why);
  CloseAfter();
}

// Refusals that follow from the head alone, before the body is read.
void Server::CheckHead(httplib::Request* request) {
  exchange->connection->BeginBody();
  exchange->request = request;
  request->ranges.clear();
  // A compressed answer would cost more time than it saves.
  request->headers.erase("Accept-Encoding");
  const size_t lengths = request->get_header_value_count("Content-Length");
  const std::string coding = request->get_header_value("Transfer-Encoding");
  const bool chunked = request->has_header("Transfer-Encoding");
  const std::string length = request->get_header_value("Content-Length");
  uint64_t bytes = 0;
  if (request->path.size() > kMostPath)
    return Refuse(414, "the address is longer than any that is served");
  if (lengths > 1 || (lengths == 1 && chunked) ||
      request->get_header_value_count("Transfer-Encoding") > 1 ||
      (chunked && coding != "chunked"))
    return Refuse(400,
                  "the head does not say in one way how long the body is; send "
                  "either Content-Length or Transfer-Encoding: chunked");
  if (lengths == 1 &&
      (!absl::SimpleAtoi(length, &bytes) || absl::StrCat(bytes) != length))
    return Refuse(400, "Content-Length is no number of bytes");
  if (bytes > static_cast<uint64_t>(options_.max_body))
    return Refuse(
        413, absl::StrCat("the body has ", bytes, " bytes; the server takes ",
                          options_.max_body, " (--max-request)"));
  if (request->is_multipart_form_data())
    return Refuse(415, "a form is no request; send JSON");
  if (request->method == "POST") {
    // The library would read on until the connection ends.
    if (lengths == 0 && !chunked) request->set_header("Content-Length", "0");
  } else if (bytes > 0 || chunked) {
    CloseAfter();  // its body is not read
  }
}

// False where all bodies together would have too many bytes.
bool Server::Hold(size_t bytes) {
  const auto more = static_cast<int64_t>(bytes);
  if ((metrics_->body_bytes += more) > most_bytes_) {
    metrics_->body_bytes -= more;
    return false;
  }
  exchange->held += more;
  return true;
}

void Server::AnswerBody(const httplib::Request& request,
                        httplib::Response* response,
                        const httplib::ContentReader& reader) {
  std::string body;
  bool too_large = false, too_many = false;
  const bool complete = reader([&](const char* bytes, size_t size) {
    too_large = body.size() + size > static_cast<size_t>(options_.max_body);
    too_many = !too_large && !Hold(size);
    if (too_large || too_many) return false;
    body.append(bytes, size);
    return true;
  });
  if (complete) return Answer(request, std::move(body), response);
  CloseAfter();
  if (too_large)
    return FillError(
        413,
        absl::StrCat("the body has more than the ", options_.max_body,
                     " bytes that the server takes "
                     "(--max-request)"),
        response);
  if (too_many) {
    response->set_header("Retry-After", "1");
    return FillError(503,
                     "other requests hold all memory for bodies; try "
                     "again later",
                     response);
  }
  if (exchange->connection->timed_out())
    return FillError(408, "the body did not come in time", response);
  FillError(400,
            absl::StrCat("the body is not what its head says: ", body.size(),
                         " bytes have come"),
            response);
}

void Server::Answer(const httplib::Request& request, std::string body,
                    httplib::Response* response) {
  HttpRequest own;
  own.method = request.method;
  own.path = request.path;
  own.json_length = request.get_header_value("Inference-Header-Content-Length");
  own.body = std::move(body);
  Fill(handler_->Answer(own), response);
  if (state_.draining) CloseAfter();
}

void Server::SetHandlers() {
  using Request = httplib::Request;
  using Response = httplib::Response;
  using Next = httplib::Server::HandlerResponse;
  set_pre_routing_handler([this](const Request& in, Response& out) {
    if (exchange->refusal != 0) {
      FillError(exchange->refusal, exchange->why, &out);
      return Next::Handled;
    }
    if (in.method == "POST") return Next::Unhandled;
    Answer(in, "", &out);
    return Next::Handled;
  });
  Post(R"([\s\S]*)", [this](const Request& in, Response& out,
                            const httplib::ContentReader& reader) {
    AnswerBody(in, &out, reader);
  });
  set_expect_100_continue_handler([](const Request&, Response& out) {
    if (exchange->refusal == 0) return 100;
    FillError(exchange->refusal, exchange->why, &out);
    return exchange->refusal;
  });
  // Also for what the library itself finds wrong. It has to be handled here to
  // get a Content-Length.
  set_error_handler(
      httplib::Server::HandlerWithResponse([](const Request&, Response& out) {
        if (out.body.empty())
          FillError(out.status, "the request is no HTTP that is served", &out);
        if (exchange->request == nullptr) out.set_header("Connection", "close");
        return Next::Handled;
      }));
  set_exception_handler(
      [](const Request&, Response& out, const std::exception_ptr&) {
        FillError(500, "the server ran into an error of its own", &out);
      });
}

}  // namespace
}  // namespace serve
}  // namespace pd

extern "C" __attribute__((visibility("default"))) pd::serve::HttpServer*
PdMakeHttpServer(const pd::serve::HttpOptions& options,
                 pd::serve::HttpHandler* handler, pd::serve::Metrics* metrics,
                 absl::Status* error) {
  auto server = std::make_unique<pd::serve::Server>(options, handler, metrics);
  *error = server->Start();
  return error->ok() ? server.release() : nullptr;
}
