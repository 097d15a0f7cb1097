// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/service.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/parallel.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/serve/json_tensor.h"

namespace pd {
namespace serve {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
      return 503;
    default:
      return 500;
  }
}

HttpResponse Error(int status, absl::string_view message) {
  HttpResponse response;
  response.status = status;
  response.body = ErrorBody(message);
  if (status == 429 || status == 503)
    response.headers.push_back({"Retry-After", "1"});
  return response;
}

HttpResponse Error(const absl::Status& status) {
  return Error(StatusOf(status), status.message());
}

HttpResponse Ok(const OrderedJson& json) {
  HttpResponse response;
  response.body = DumpJson(json);
  return response;
}

HttpResponse NoSuchAddress(const HttpRequest& request) {
  return Error(404, absl::StrCat("there is no '", request.path,
                                 "'; see /v2, /v2/models/NAME, "
                                 "/v2/models/NAME/infer, /metrics"));
}

HttpResponse Not(const char* method, const HttpRequest& request) {
  HttpResponse response =
      Error(405, absl::StrCat("'", request.path, "' takes ", method, ", not ",
                              request.method));
  response.headers.push_back({"Allow", method});
  return response;
}

bool IsGet(const HttpRequest& request) {
  return request.method == "GET" || request.method == "HEAD";
}

OrderedJson Described(const std::vector<TensorInfo>& list) {
  OrderedJson tensors = OrderedJson::array();
  for (const TensorInfo& info : list) {
    tensors.push_back({{"name", info.name},
                       {"datatype", std::string(DatatypeName(info.dtype))},
                       {"shape", info.shape}});
    if (info.pictures != nullptr)
      tensors.back()["parameters"] = {{"pictures", true}};
  }
  return tensors;
}

absl::StatusOr<std::optional<size_t>> JsonLength(const HttpRequest& request) {
  std::optional<size_t> length;
  if (request.json_length.empty()) return length;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(request.json_length, &number) ||
      absl::StrCat(number) != request.json_length)
    return InvalidArgument(
        "Inference-Header-Content-Length is '%s'; expected the bytes of the "
        "JSON",
        Printable(request.json_length));
  length = number;
  return length;
}

}  // namespace

// A request for inference of one model.
struct Service::Asked {
  std::string model;
  std::string version;  // "": the newest
  bool v1 = false;
};

HttpResponse Service::Answer(const HttpRequest& request) {
  HttpResponse response;
  const absl::Status status = Guarded([&]() -> absl::Status {
    response = Route(request);
    return absl::OkStatus();
  });
  if (!status.ok()) response = Error(503, status.message());
  metrics_->CountResponse(response.status);
  return response;
}

HttpResponse Service::Route(const HttpRequest& request) {
  Path path = absl::StrSplit(absl::StripSuffix(request.path, "/"), '/');
  if (!path.empty() && path[0].empty()) path.erase(path.begin());
  if (path.empty()) return NoSuchAddress(request);
  if (path[0] == "metrics" && path.size() == 1) {
    if (!IsGet(request)) return Not("GET", request);
    HttpResponse response;
    response.type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = metrics_->Text();
    return response;
  }
  if (path[0] == "v2") return RouteV2(path, request);
  if (path[0] == "v1") return RouteV1(path, request);
  return NoSuchAddress(request);
}

HttpResponse Service::RouteV2(const Path& path, const HttpRequest& request) {
  if (path.size() == 1) {
    if (!IsGet(request)) return Not("GET", request);
    return Ok({{"name", "pdkit"},
               {"version", version_},
               {"extensions", {"binary_tensor_data", "model_repository"}}});
  }
  if (path[1] == "health" && path.size() == 3) {
    if (!IsGet(request)) return Not("GET", request);
    if (path[2] == "live") return Ok({{"live", true}});
    if (path[2] != "ready") return NoSuchAddress(request);
    if (draining_) return Error(503, "the server is shutting down");
    return Ok({{"ready", true}});
  }
  if (path[1] == "repository") return RouteRepository(path, request);
  if (path[1] != "models" || path.size() < 3) return NoSuchAddress(request);
  Asked asked;
  asked.model = path[2];
  size_t next = 3;
  if (path.size() > 4 && path[3] == "versions") {
    asked.version = path[4];
    next = 5;
  }
  const std::string verb = next < path.size() ? path[next] : "";
  if (next + 1 < path.size() ||
      (verb != "" && verb != "ready" && verb != "infer"))
    return NoSuchAddress(request);
  if (verb == "infer")
    return request.method == "POST" ? Infer(asked, request)
                                    : Not("POST", request);
  if (!IsGet(request)) return Not("GET", request);
  const auto model = repository_->Find(asked.model, asked.version);
  if (!model.ok()) return Error(model.status());
  if (verb == "ready") {
    if (draining_) return Error(503, "the server is shutting down");
    return Ok({{"name", asked.model}, {"ready", true}});
  }
  return Metadata(**model);
}

HttpResponse Service::Metadata(const ServedModel& model) const {
  OrderedJson versions = OrderedJson::array();
  for (const int64_t number : repository_->Versions(model.name))
    versions.push_back(absl::StrCat(number));
  return Ok({{"name", model.name},
             {"versions", std::move(versions)},
             {"platform", absl::StrCat("pdkit_", model.format)},
             {"inputs", Described(model.signature.inputs)},
             {"outputs", Described(model.signature.outputs)}});
}

HttpResponse Service::RouteV1(const Path& path, const HttpRequest& request) {
  if (path.size() < 3 || path[1] != "models") return NoSuchAddress(request);
  Asked asked;
  asked.v1 = true;
  asked.model = path[2];
  std::string* last = &asked.model;
  if (path.size() == 5 && path[3] == "versions") {
    asked.version = path[4];
    last = &asked.version;
  } else if (path.size() != 3) {
    return NoSuchAddress(request);
  }
  if (absl::EndsWith(*last, ":predict")) {
    last->resize(last->size() - 8);
    return request.method == "POST" ? Infer(asked, request)
                                    : Not("POST", request);
  }
  if (!IsGet(request)) return Not("GET", request);
  const auto model = repository_->Find(asked.model, asked.version);
  if (!model.ok()) return Error(model.status());
  return Ok({{"name", asked.model}, {"ready", !draining_.load()}});
}

HttpResponse Service::RouteRepository(const Path& path,
                                      const HttpRequest& request) {
  if (path.size() == 3 && path[2] == "index")
    return request.method == "POST" ? Index(request) : Not("POST", request);
  if (path.size() != 5 || path[2] != "models" ||
      (path[4] != "load" && path[4] != "unload"))
    return NoSuchAddress(request);
  if (request.method != "POST") return Not("POST", request);
  const absl::Status status = path[4] == "load" ? repository_->Load(path[3])
                                                : repository_->Unload(path[3]);
  if (status.ok()) return Ok(OrderedJson::object());
  // The files are at fault, not the request.
  return absl::IsNotFound(status) && repository_->Versions(path[3]).empty()
             ? Error(status)
             : Error(500, status.message());
}

HttpResponse Service::Index(const HttpRequest& request) const {
  bool only_ready = false;
  if (!request.body.empty()) {
    const auto json = ParseJson(request.body);
    if (!json.ok()) return Error(json.status());
    if (!json->is_object())
      return Error(400, "the request is no object, as in {\"ready\": true}");
    const auto found = json->find("ready");
    only_ready =
        found != json->end() && found->is_boolean() && found->get<bool>();
  }
  OrderedJson list = OrderedJson::array();
  for (const Repository::Entry& entry : repository_->Index()) {
    if (only_ready && !entry.ready) continue;
    OrderedJson item = {{"name", entry.name}};
    if (entry.version > 0) item["version"] = absl::StrCat(entry.version);
    item["state"] = entry.ready ? "READY" : "UNAVAILABLE";
    item["reason"] = entry.reason;
    list.push_back(std::move(item));
  }
  return Ok(list);
}

HttpResponse Service::Infer(const Asked& asked, const HttpRequest& request) {
  const auto json_length = JsonLength(request);
  HttpResponse response;
  const Outcome outcome = Call(
      asked.model, asked.version,
      [&](const Signature& signature) -> absl::StatusOr<InferRequest> {
        PD_RETURN_IF_ERROR(json_length.status());
        return asked.v1
                   ? ReadPredictRequest(request.body, signature)
                   : ReadInferRequest(request.body, *json_length, signature);
      },
      [&](const ServedModel& model, const InferRequest& read,
          const Outputs& outputs) -> absl::Status {
        if (asked.v1) {
          PD_ASSIGN_OR_RETURN(response.body,
                              WritePredictAnswer(model.signature, outputs));
          return absl::OkStatus();
        }
        PD_ASSIGN_OR_RETURN(
            Body body,
            WriteInferAnswer({model.name, absl::StrCat(model.version), read.id},
                             model.signature, read.outputs, outputs));
        response.body = std::move(body.bytes);
        if (!body.json_length.has_value()) return absl::OkStatus();
        response.type = "application/octet-stream";
        response.headers.push_back({"Inference-Header-Content-Length",
                                    absl::StrCat(*body.json_length)});
        return absl::OkStatus();
      });
  if (outcome.status.ok()) return response;
  return Error(outcome.http_status, outcome.status.message());
}

bool Service::Parse(const std::function<bool()>& work) {
  std::unique_lock<std::mutex> lock(parsing_mutex_);
  parsing_ended_.wait(lock, [&] { return parsing_ < AvailableCpus(); });
  ++parsing_;
  lock.unlock();
  // After an exception, too: memory may run out.
  const auto ended = absl::MakeCleanup([&] {
    lock.lock();
    --parsing_;
    lock.unlock();
    parsing_ended_.notify_one();
  });
  return work();
}

Service::Outcome Service::CallOnce(const ServedModel& model, const Read& read,
                                   const Write& write) {
  absl::StatusOr<InferRequest> request;
  Parse([&] {
    request = read(model.signature);
    return true;
  });
  if (absl::IsResourceExhausted(request.status()))
    return {503, request.status()};
  if (!request.ok()) return {StatusOf(request.status()), request.status()};
  const auto outputs = model.batcher->Answer(request->inputs);
  if (!outputs.ok()) return {StatusOf(outputs.status()), outputs.status()};
  const absl::Status written = write(model, *request, *outputs);
  if (!written.ok()) return {422, written};
  return {};
}

Service::Outcome Service::Call(const std::string& model,
                               const std::string& version, const Read& read,
                               const Write& write) {
  const auto begin = Clock::now();
  // A version that is replaced between Find and Answer is not the answer.
  for (int tries = 0; tries < 10; ++tries) {
    const auto found = repository_->Find(model, version);
    if (!found.ok()) return {StatusOf(found.status()), found.status()};
    const Outcome outcome = CallOnce(**found, read, write);
    if (absl::IsAborted(outcome.status)) continue;
    ModelMetrics& metrics = *(*found)->metrics;
    ++metrics.requests;
    if (!outcome.status.ok()) metrics.CountError(outcome.http_status);
    metrics.request_seconds.Observe(
        std::chrono::duration<double>(Clock::now() - begin).count());
    return outcome;
  }
  return {503, Unavailable("model '%s' is being closed", Printable(model))};
}

}  // namespace serve
}  // namespace pd
