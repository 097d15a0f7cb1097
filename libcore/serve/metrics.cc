// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/metrics.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pd {
namespace serve {
namespace {

std::vector<double> SecondBounds() {
  return {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
          0.1,    0.25,  0.5,    1,     2.5,  5,     10};
}

std::vector<double> SizeBounds() { return {1, 2, 4, 8, 16, 32, 64, 128, 256}; }

// A label's value: backslash, quote and line break are escaped.
std::string Escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    text += c;
  }
  return text;
}

void Head(const char* name, const char* kind, const char* help,
          std::string* text) {
  absl::StrAppend(text, "# HELP ", name, " ", help, "\n# TYPE ", name, " ",
                  kind, "\n");
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::Observe(double value) {
  const size_t place =
      std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  const std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[place];
  sum_ += value;
}

void Histogram::AppendTo(const std::string& name, const std::string& labels,
                         std::string* text) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    count += counts_[i];
    const std::string bound =
        i < bounds_.size() ? absl::StrFormat("%g", bounds_[i]) : "+Inf";
    absl::StrAppend(text, name, "_bucket{", labels, ",le=\"", bound, "\"} ",
                    count, "\n");
  }
  absl::StrAppend(text, name, "_sum{", labels, "} ",
                  absl::StrFormat("%.9g", sum_), "\n", name, "_count{", labels,
                  "} ", count, "\n");
}

ModelMetrics::ModelMetrics()
    : request_seconds(SecondBounds()),
      queue_seconds(SecondBounds()),
      batch_rows(SizeBounds()),
      batch_requests(SizeBounds()) {}

void ModelMetrics::CountError(int http_status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++errors_[http_status];
}

std::map<int, uint64_t> ModelMetrics::errors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return errors_;
}

std::shared_ptr<ModelMetrics> Metrics::Of(const std::string& model,
                                          int64_t version) {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto& own = models_[{model, version}];
  if (own == nullptr) own = std::make_shared<ModelMetrics>();
  return own;
}

void Metrics::CountResponse(int http_status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++responses_[http_status];
}

std::string Metrics::Text() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  const auto labels = [](const auto& item) {
    return absl::StrCat("model=\"", Escaped(item.first.first), "\",version=\"",
                        item.first.second, "\"");
  };
  Head("pd_responses_total", "counter", "HTTP responses by status.", &text);
  for (const auto& [status, count] : responses_)
    absl::StrAppend(&text, "pd_responses_total{code=\"", status, "\"} ", count,
                    "\n");
  Head("pd_connections", "gauge", "Open connections.", &text);
  absl::StrAppend(&text, "pd_connections ", connections.load(), "\n");
  Head("pd_body_bytes", "gauge", "Bytes of request bodies held now.", &text);
  absl::StrAppend(&text, "pd_body_bytes ", body_bytes.load(), "\n");
  Head("pd_loads_total", "counter", "Versions of models loaded.", &text);
  absl::StrAppend(&text, "pd_loads_total ", reloads.load(), "\n");
  Head("pd_failed_loads_total", "counter",
       "Versions of models that could not be loaded.", &text);
  absl::StrAppend(&text, "pd_failed_loads_total ", failed_loads.load(), "\n");
  Head("pd_requests_total", "counter", "Requests for inference.", &text);
  for (const auto& item : models_)
    absl::StrAppend(&text, "pd_requests_total{", labels(item), "} ",
                    item.second->requests.load(), "\n");
  Head("pd_request_errors_total", "counter",
       "Requests for inference that were answered with an error.", &text);
  for (const auto& item : models_)
    for (const auto& [status, count] : item.second->errors())
      absl::StrAppend(&text, "pd_request_errors_total{", labels(item),
                      ",code=\"", status, "\"} ", count, "\n");
  Head("pd_queue_length", "gauge", "Requests that wait for a run.", &text);
  for (const auto& item : models_)
    absl::StrAppend(&text, "pd_queue_length{", labels(item), "} ",
                    item.second->waiting.load(), "\n");
  const auto histogram = [&](const char* name, const char* help,
                             Histogram ModelMetrics::*which) {
    Head(name, "histogram", help, &text);
    for (const auto& item : models_)
      ((*item.second).*which).AppendTo(name, labels(item), &text);
  };
  histogram("pd_request_seconds",
            "Time from a request that has been read to its answer.",
            &ModelMetrics::request_seconds);
  histogram("pd_queue_seconds", "Time of a request in the queue.",
            &ModelMetrics::queue_seconds);
  histogram("pd_batch_rows", "Rows of a run.", &ModelMetrics::batch_rows);
  histogram("pd_batch_requests", "Requests joined in a run.",
            &ModelMetrics::batch_requests);
  return text;
}

}  // namespace serve
}  // namespace pd
