// SPDX-License-Identifier: Apache-2.0
// Counters of a server, in the text form that Prometheus reads.
#ifndef PD_LIBCORE_SERVE_METRICS_H_
#define PD_LIBCORE_SERVE_METRICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pd {
namespace serve {

/// Counts of observations up to each of its bounds. Any thread may use it.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void Observe(double value);
  /// Lines of the family `name` with these labels ("a=\"b\"").
  void AppendTo(const std::string& name, const std::string& labels,
                std::string* text) const;

 private:
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> counts_;  // one more than bounds: +Inf
  double sum_ = 0;
};

/// Counts of one version of a model, which go on when it is reloaded.
struct ModelMetrics {
  ModelMetrics();
  std::atomic<uint64_t> requests{0};
  std::atomic<int64_t> waiting{0};  ///< requests in the queue now
  Histogram request_seconds;        ///< from the parsed request to its answer
  Histogram queue_seconds;          ///< before a run took it
  Histogram batch_rows;             ///< of each run
  Histogram batch_requests;         ///< of each run

  void CountError(int http_status);
  std::map<int, uint64_t> errors() const;

 private:
  mutable std::mutex mutex_;
  std::map<int, uint64_t> errors_;
};

class Metrics {
 public:
  /// The same object for the same model and version.
  std::shared_ptr<ModelMetrics> Of(const std::string& model, int64_t version);
  void CountResponse(int http_status);
  /// The page of /metrics.
  std::string Text() const;

  std::atomic<int64_t> connections{0};  ///< open now
  std::atomic<int64_t> body_bytes{0};   ///< of requests that are held now
  std::atomic<uint64_t> reloads{0}, failed_loads{0};

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<ModelMetrics>>
      models_;
  std::map<int, uint64_t> responses_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_METRICS_H_
