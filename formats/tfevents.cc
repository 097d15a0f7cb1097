// SPDX-License-Identifier: Apache-2.0
#include "formats/tfevents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "formats/byte_reader.h"
#include "formats/tfevents.pb.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

namespace format = tfevents_format;

constexpr int kFloat = 1, kString = 7;  // DT_FLOAT, DT_STRING
constexpr char kHyperPlugin[] = "hparams";

std::array<uint32_t, 256> CrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = crc;
  }
  return table;
}

template <typename T>
absl::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

std::string Framed(const format::Event& event) {
  const std::string message = event.SerializeAsString();
  const uint64_t size = message.size();
  const uint32_t size_crc = MaskedCrc32c(BytesOf(size)),
                 crc = MaskedCrc32c(message);
  std::string bytes;
  for (absl::string_view part : {BytesOf(size), BytesOf(size_crc),
                                 absl::string_view(message), BytesOf(crc)})
    bytes.append(part.data(), part.size());
  return bytes;
}

void SetPlugin(const char* name, const std::string& content,
               format::SummaryValue* value) {
  auto* plugin = value->mutable_metadata()->mutable_plugin();
  plugin->set_name(name);
  plugin->set_content(content);
}

// TensorBoard asks for some tensor beside what only the metadata say.
void SetHyperPlugin(const format::HyperParameterPlugin& content,
                    const char* tag, format::Summary* summary) {
  format::SummaryValue* value = summary->add_value();
  value->set_tag(tag);
  SetPlugin(kHyperPlugin, content.SerializeAsString(), value);
  value->mutable_tensor()->set_dtype(kFloat);
  value->mutable_tensor()->mutable_shape()->add_extent()->set_size(0);
}

std::string GraphBytes(const LogGraph& graph) {
  format::Graph message;
  message.mutable_versions()->set_producer(22);
  for (const LogNode& from : graph.nodes) {
    format::Node* node = message.add_node();
    node->set_name(from.name);
    node->set_op(from.type);
    for (const std::string& input : from.inputs) node->add_input(input);
    auto& attributes = *node->mutable_attribute();
    for (const auto& [name, value] : from.attributes)
      attributes[name].set_text(value);
    auto* shapes = attributes["_output_shapes"].mutable_list();
    for (const auto& extents : from.shapes) {
      format::TensorShape* shape = shapes->add_shape();
      for (int64_t extent : extents) shape->add_extent()->set_size(extent);
    }
  }
  return message.SerializeAsString();
}

// Puts a record's content into an event; false when it has no place there.
class Filler {
 public:
  Filler(const LogRecord& record, format::Event* event)
      : record_(record), event_(event) {}

  bool operator()(float scalar) {
    Tagged()->set_scalar(scalar);
    return true;
  }
  bool operator()(const LogHistogram& histogram) {
    format::Histogram* to = Tagged()->mutable_histogram();
    to->set_min(histogram.edges.front());
    to->set_max(histogram.edges.back());
    double num = 0;
    for (double count : histogram.counts) num += count;
    to->set_num(num);
    to->set_sum(histogram.sum);
    to->set_sum_squares(histogram.sum_squares);
    // Buckets have an upper limit each; the first begins at `min`.
    to->mutable_limit()->Add(histogram.edges.begin() + 1,
                             histogram.edges.end());
    to->mutable_count()->Add(histogram.counts.begin(), histogram.counts.end());
    return true;
  }
  bool operator()(const LogPicture& picture) {
    format::Image* to = Tagged()->mutable_image();
    to->set_height(static_cast<int32_t>(picture.height));
    to->set_width(static_cast<int32_t>(picture.width));
    to->set_channels(static_cast<int32_t>(picture.channels));
    to->set_encoded(picture.png);
    return true;
  }
  bool operator()(const LogAudio& audio) {
    audio.Fill(Tagged()->mutable_audio());
    return true;
  }
  bool operator()(const LogPrCurve& curve) {
    const LogCurve& c = curve.counts;
    format::SummaryValue* value = Tagged();
    format::PrCurvePlugin plugin;
    plugin.set_thresholds(static_cast<uint32_t>(c.tp.size()));
    SetPlugin("pr_curves", plugin.SerializeAsString(), value);
    format::Tensor* tensor = value->mutable_tensor();
    tensor->set_dtype(kFloat);
    tensor->mutable_shape()->add_extent()->set_size(6);
    tensor->mutable_shape()->add_extent()->set_size(
        static_cast<int64_t>(c.tp.size()));
    for (const auto* counts : {&c.tp, &c.fp, &c.tn, &c.fn})
      for (int64_t count : *counts)
        tensor->add_value(static_cast<float>(count));
    for (size_t i = 0; i < c.tp.size(); ++i)
      tensor->add_value(static_cast<float>(c.Precision(i)));
    for (size_t i = 0; i < c.tp.size(); ++i)
      tensor->add_value(static_cast<float>(c.Recall(i)));
    return true;
  }
  bool operator()(const LogRocCurve&) { return false; }
  bool operator()(const LogEmbedding&) { return false; }
  bool operator()(const LogText& text) {
    format::SummaryValue* value = Tagged();
    SetPlugin("text", format::TextPlugin().SerializeAsString(), value);
    value->mutable_tensor()->set_dtype(kString);
    value->mutable_tensor()->mutable_shape();
    value->mutable_tensor()->add_text(text.text);
    return true;
  }
  bool operator()(const LogHyperParameters& hyper) {
    format::HyperParameterPlugin about, start;
    format::Experiment* experiment = about.mutable_experiment();
    experiment->set_created_seconds(record_.seconds);
    start.mutable_start()->set_seconds(record_.seconds);
    auto& values = *start.mutable_start()->mutable_parameter();
    for (const LogParameter& parameter : hyper.parameters) {
      format::ParameterInfo* info = experiment->add_parameter();
      info->set_name(parameter.name);
      format::PlainValue& value = values[parameter.name];
      if (const auto* text = std::get_if<std::string>(&parameter.value)) {
        info->set_type(1);
        value.set_text(*text);
      } else if (const auto* truth = std::get_if<bool>(&parameter.value)) {
        info->set_type(2);
        value.set_truth(*truth);
      } else {
        info->set_type(3);
        const auto* whole = std::get_if<int64_t>(&parameter.value);
        value.set_number(whole != nullptr ? static_cast<double>(*whole)
                                          : std::get<double>(parameter.value));
      }
    }
    for (const std::string& metric : hyper.metrics)
      experiment->add_metric()->mutable_name()->set_tag(metric);
    SetHyperPlugin(about, "_hparams_/experiment", event_->mutable_summary());
    SetHyperPlugin(start, "_hparams_/session_start_info",
                   event_->mutable_summary());
    return true;
  }
  bool operator()(const LogEnd& end) {
    format::HyperParameterPlugin plugin;
    plugin.mutable_end()->set_status(end.success ? 1 : 2);
    plugin.mutable_end()->set_seconds(record_.seconds);
    SetHyperPlugin(plugin, kLogEndTag, event_->mutable_summary());
    return true;
  }
  bool operator()(const LogGraph& graph) {
    event_->set_graph(GraphBytes(graph));
    return true;
  }

 private:
  format::SummaryValue* Tagged() {
    format::SummaryValue* value = event_->mutable_summary()->add_value();
    value->set_tag(record_.tag);
    return value;
  }

  const LogRecord& record_;
  format::Event* event_;
};

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = CrcTable();
  uint32_t crc = 0xffffffffu;
  for (char c : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xffu];
  return ~crc;
}

uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string EncodeTfEvent(const LogRecord& record) {
  format::Event event;
  event.set_seconds(record.seconds);
  event.set_step(record.step);
  if (!std::visit(Filler(record, &event), record.content)) return "";
  return Framed(event);
}

std::string TfEventsHead(double seconds) {
  format::Event event;
  event.set_seconds(seconds);
  event.set_file_version("brain.Event:2");
  return Framed(event);
}

absl::StatusOr<std::vector<LogMark>> ScanTfEvents(absl::string_view bytes) {
  constexpr size_t kHead = 12, kTail = 4;
  std::vector<LogMark> marks;
  size_t at = 0;
  while (bytes.size() - at >= kHead + kTail) {
    const char* here = bytes.data() + at;
    const auto size = Load<uint64_t>(here);
    if (Load<uint32_t>(here + 8) != MaskedCrc32c(bytes.substr(at, 8)))
      return DataLoss("the length at byte %d has another checksum", at);
    if (size > bytes.size() - at - kHead - kTail) break;
    const absl::string_view message =
        bytes.substr(at + kHead, static_cast<size_t>(size));
    format::Event event;
    if (Load<uint32_t>(message.data() + message.size()) !=
            MaskedCrc32c(message) ||
        size > INT32_MAX ||
        !event.ParseFromArray(message.data(), static_cast<int>(size)))
      return DataLoss("the event at byte %d is damaged", at);
    at += kHead + message.size() + kTail;
    const format::Summary& summary = event.summary();
    std::string tag = event.has_graph() ? "graph" : "";
    if (summary.value_size() > 0) tag = summary.value(0).tag();
    marks.push_back({at, event.step(), std::move(tag)});
  }
  return marks;
}

bool IsTfEvents(absl::string_view bytes) {
  if (bytes.size() < 16 || bytes[12] != 0x09) return false;
  const auto size = NumberAt<uint64_t>(bytes, 0);
  return size >= 9 && size <= bytes.size() - 12;
}

}  // namespace pd
