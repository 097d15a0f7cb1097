// SPDX-License-Identifier: Apache-2.0
#include "formats/visualdl.h"

#include <cmath>
#include <cstring>

#include "formats/visualdl.pb.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

namespace format = visualdl_format;

// Puts a record's content into a message; false when it has no place there.
class Filler {
 public:
  explicit Filler(format::Value* value) : value_(value) {}

  bool operator()(float scalar) {
    value_->set_scalar(scalar);
    return true;
  }
  bool operator()(const LogHistogram& histogram) {
    format::Histogram* to = value_->mutable_histogram();
    to->mutable_count()->Add(histogram.counts.begin(), histogram.counts.end());
    to->mutable_edge()->Add(histogram.edges.begin(), histogram.edges.end());
    return true;
  }
  bool operator()(const LogPicture& picture) {
    value_->mutable_image()->set_encoded(picture.png);
    return true;
  }
  bool operator()(const LogAudio& audio) {
    audio.Fill(value_->mutable_audio());
    return true;
  }
  bool operator()(const LogPrCurve& curve) {
    format::PrCurve* to = value_->mutable_pr_curve();
    SetCounts(curve.counts, to);
    for (size_t i = 0; i < curve.counts.tp.size(); ++i) {
      to->add_precision(curve.counts.Precision(i));
      to->add_recall(curve.counts.Recall(i));
    }
    return true;
  }
  bool operator()(const LogRocCurve& curve) {
    format::RocCurve* to = value_->mutable_roc_curve();
    SetCounts(curve.counts, to);
    for (size_t i = 0; i < curve.counts.tp.size(); ++i) {
      to->add_tpr(curve.counts.Recall(i));
      to->add_fpr(curve.counts.FalsePositiveRate(i));
    }
    return true;
  }
  bool operator()(const LogEmbedding& embedding) {
    format::Embeddings* to = value_->mutable_embeddings();
    for (size_t i = 0; i < embedding.labels.size(); ++i) {
      format::Embedding* row = to->add_row();
      row->add_label(embedding.labels[i]);
      const float* values = embedding.values.data() + i * embedding.width;
      row->mutable_vector()->Add(values, values + embedding.width);
    }
    return true;
  }
  bool operator()(const LogText& text) {
    value_->mutable_text()->set_text(text.text);
    return true;
  }
  bool operator()(const LogHyperParameters& hyper) {
    format::HyperParameters* to = value_->mutable_hyper_parameters();
    to->set_name(hyper.name);
    for (const LogParameter& parameter : hyper.parameters) {
      auto* entry = to->add_parameter();
      entry->set_name(parameter.name);
      if (const auto* truth = std::get_if<bool>(&parameter.value))
        entry->set_whole(*truth);
      else if (const auto* whole = std::get_if<int64_t>(&parameter.value))
        entry->set_whole(*whole);
      else if (const auto* real = std::get_if<double>(&parameter.value))
        entry->set_real(*real);
      else
        entry->set_text(std::get<std::string>(parameter.value));
    }
    for (const std::string& metric : hyper.metrics) {
      auto* entry = to->add_metric();
      entry->set_name(metric);
      entry->set_real(0);  // VisualDL takes the value from the scalars
    }
    return true;
  }
  bool operator()(const LogEnd&) { return false; }
  bool operator()(const LogGraph&) { return false; }

 private:
  template <typename To>
  static void SetCounts(const LogCurve& from, To* to) {
    to->mutable_tp()->Add(from.tp.begin(), from.tp.end());
    to->mutable_fp()->Add(from.fp.begin(), from.fp.end());
    to->mutable_tn()->Add(from.tn.begin(), from.tn.end());
    to->mutable_fn()->Add(from.fn.begin(), from.fn.end());
  }

  format::Value* value_;
};

std::string Framed(const format::Record& record) {
  const std::string message = record.SerializeAsString();
  const uint64_t size = message.size();
  std::string bytes(sizeof(size), '\0');
  std::memcpy(&bytes[0], &size, sizeof(size));
  return bytes + message;
}

int64_t Milliseconds(double seconds) { return std::llround(seconds * 1000); }

}  // namespace

std::string EncodeVisualDl(const LogRecord& record) {
  format::Record message;
  format::Value* value = message.add_value();
  value->set_step(record.step);
  value->set_tag(record.tag);
  value->set_milliseconds(Milliseconds(record.seconds));
  if (!std::visit(Filler(value), record.content)) return "";
  if (value->has_hyper_parameters()) {
    value->set_tag(kHyperTag);
    value->set_step(kHyperStep);
  }
  return Framed(message);
}

std::string VisualDlHead(double seconds) {
  format::Record message;
  format::Value* value = message.add_value();
  value->set_tag("meta_data_tag");
  value->set_milliseconds(Milliseconds(seconds));
  value->mutable_meta_data();
  return Framed(message);
}

absl::StatusOr<std::vector<LogMark>> ScanVisualDl(absl::string_view bytes) {
  std::vector<LogMark> marks;
  size_t at = 0;
  uint64_t size = 0;
  while (bytes.size() - at >= sizeof(size)) {
    std::memcpy(&size, bytes.data() + at, sizeof(size));
    if (size > bytes.size() - at - sizeof(size)) break;
    format::Record record;
    // Records hold one value, so an empty one is no record of VisualDL's.
    if (size > INT32_MAX ||
        !record.ParseFromArray(bytes.data() + at + sizeof(size),
                               static_cast<int>(size)) ||
        record.value_size() == 0)
      return DataLoss("the record at byte %d is none of VisualDL's", at);
    at += sizeof(size) + static_cast<size_t>(size);
    marks.push_back({at, record.value(0).step(), record.value(0).tag()});
  }
  return marks;
}

}  // namespace pd
