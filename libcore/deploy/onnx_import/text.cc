// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: how often each n-gram of a pool occurs in rows of integers.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

constexpr int64_t kMaxGramMatrix = 1 << 24;  // elements

// The n-grams of one length in the pool.
struct Grams {
  int64_t length = 0;
  int64_t count = 0;
  int64_t first_id = 0;  // of all lengths together
  int64_t begin = 0;     // in the pool
};

class TfIdf {
 public:
  explicit TfIdf(OnnxNode* node) : node_(node) {
    pool_ = node->AttrInts("pool_int64s");
    ids_ = node->AttrInts("ngram_indexes");
    weights_ = node->Floats("weights", {});
    mode_ = node->Str("mode", "");
    skips_ = node->Int("max_skip_count", -1);
  }

  void Import() {
    if (!node_->Strings("pool_strings").empty())
      node_->Fail(Unimplemented("a pool of strings"));
    std::string x = node_->Cast(node_->In(0), DType::kInt64);
    const int64_t rank = node_->Rank(x);
    if (rank == 1) x = node_->Unsqueeze(x, {0});
    const int64_t row = node_->Extent(x, 1);
    if (node_->ok() && (rank < 1 || rank > 2 || row < 0))
      node_->Fail(
          Unimplemented("rows of %d dimensions, %d elements: their "
                        "length must be known",
                        rank, row));
    const std::vector<Grams> all = TakeGrams();
    CheckIds(all);
    if (!node_->ok()) return;
    std::string sum;
    for (const Grams& grams : all) {
      const std::string counts = Count(x, row, grams);
      if (counts.empty()) continue;
      const std::string share = node_->MatMul(counts, Columns(grams));
      sum = sum.empty() ? share : node_->Add(sum, share);
    }
    if (sum.empty())  // rows that are shorter than any n-gram
      sum = node_->MatMul(
          node_->Cast(node_->Slice(x, {1}, {0}, {1}), DType::kFloat32),
          node_->Full({1, width_}, 0, DType::kFloat32));
    node_->Give(0, rank == 1 ? node_->Squeeze(sum, {0}) : sum);
  }

 private:
  // The lengths from min_gram_length to max_gram_length.
  std::vector<Grams> TakeGrams() {
    std::vector<Grams> all;
    const OnnxNode::Ints begins = node_->AttrInts("ngram_counts");
    const int64_t shortest = node_->Int("min_gram_length", -1);
    const int64_t longest = node_->Int("max_gram_length", -1);
    const auto lengths = static_cast<int64_t>(begins.size());
    const auto size = static_cast<int64_t>(pool_.size());
    if (shortest < 1 || longest < shortest || longest > lengths || skips_ < 0 ||
        skips_ > 1024) {
      node_->Fail(InvalidArgument(
          "n-grams of %d to %d with at most %d skipped; the pool has %d "
          "lengths",
          shortest, longest, skips_, lengths));
      return {};
    }
    Grams grams;
    for (int64_t n = 1; n <= lengths; ++n) {
      const auto at = static_cast<size_t>(n - 1);
      const int64_t end = n < lengths ? begins[at + 1] : size;
      if (begins[at] < 0 || begins[at] > end || end > size ||
          (end - begins[at]) % n != 0) {
        node_->Fail(
            InvalidArgument("the pool's %d-grams from %d to %d of %d numbers",
                            n, begins[at], end, size));
        return {};
      }
      grams.first_id += grams.count;
      grams.length = n;
      grams.count = (end - begins[at]) / n;
      grams.begin = begins[at];
      if (n >= shortest && n <= longest && grams.count > 0)
        all.push_back(grams);
    }
    return all;
  }

  // Every n-gram has an output, and a weight where they are asked for.
  void CheckIds(const std::vector<Grams>& all) {
    if (mode_ != "TF" && mode_ != "IDF" && mode_ != "TFIDF")
      node_->Fail(InvalidArgument("mode '%s'", mode_));
    const auto ids = static_cast<int64_t>(ids_.size());
    for (const int64_t id : ids_) {
      if (id < 0 || id >= kMaxGramMatrix)
        return node_->Fail(InvalidArgument("the output %d of an n-gram", id));
      width_ = std::max(width_, id + 1);
    }
    if (!weights_.empty() && weights_.size() != ids_.size())
      node_->Fail(InvalidArgument("%d weights of %d n-grams", weights_.size(),
                                  ids_.size()));
    for (const Grams& grams : all)
      if (grams.first_id + grams.count > ids ||
          grams.count * width_ > kMaxGramMatrix)
        return node_->Fail(InvalidArgument(
            "%d n-grams of %d elements, %d outputs of %d n-grams", grams.count,
            grams.length, width_, ids));
    if (ids == 0) node_->Fail(InvalidArgument("no n-grams"));
  }

  // [N, grams]: how often each occurs with 0 to max_skip_count elements
  // between its own; in mode IDF 1 where it does. "": rows are too short.
  std::string Count(const std::string& x, int64_t row, const Grams& grams) {
    std::string sum;
    for (int64_t step = 1; step <= (grams.length == 1 ? 1 : skips_ + 1);
         ++step) {
      const int64_t places = row - step * (grams.length - 1);
      if (places <= 0) break;
      std::string found;
      for (int64_t j = 0; j < grams.length; ++j) {
        OnnxNode::Ints elements;
        for (int64_t i = 0; i < grams.count; ++i)
          elements.push_back(
              pool_[static_cast<size_t>(grams.begin + i * grams.length + j)]);
        const std::string part =
            node_->Slice(x, {1}, {j * step}, {j * step + places});
        const std::string same = node_->Binary(
            "equal", node_->Unsqueeze(part, {2}), node_->ConstInts(elements));
        found =
            found.empty() ? same : node_->Binary("logical_and", found, same);
      }
      const std::string count = node_->Reduce(
          "reduce_sum", node_->Cast(found, DType::kFloat32), {1}, false);
      sum = sum.empty() ? count : node_->Add(sum, count);
    }
    if (mode_ != "IDF" || sum.empty()) return sum;
    return node_->Cast(
        node_->Binary("greater_than", sum, node_->Scalar(0, DType::kFloat32)),
        DType::kFloat32);
  }

  // [grams, outputs]: the weight of each n-gram in its column.
  std::string Columns(const Grams& grams) {
    std::vector<double> values(static_cast<size_t>(grams.count * width_));
    for (int64_t i = 0; i < grams.count; ++i) {
      const auto id = static_cast<size_t>(grams.first_id + i);
      values[static_cast<size_t>(i * width_ + ids_[id])] =
          mode_ == "TF" || weights_.empty() ? 1 : weights_[id];
    }
    return node_->Constant(
        OnnxArray(DType::kFloat32, {grams.count, width_}, values));
  }

  OnnxNode* const node_;
  OnnxNode::Ints pool_, ids_;
  std::vector<float> weights_;
  std::string mode_;
  int64_t skips_ = 0;
  int64_t width_ = 0;  // outputs of a row
};

void ImportTfIdf(OnnxNode* node) { TfIdf(node).Import(); }

}  // namespace

OnnxImportEntries TextImports() { return {{"TfIdfVectorizer", ImportTfIdf}}; }

}  // namespace pd
