// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/input_moments.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/sgemm.h"
#include "libcore/ops/conv/window.h"
#include "libcore/ops/linalg/product_attrs.h"
#include "libcore/quant/op_table.h"

namespace pd {
namespace {

constexpr int64_t kMostRows = 2048;

// An op and the matrix that its inputs are added to.
struct Reader {
  OpDesc op;  // normalized
  const Array* weight = nullptr;
  InputMoments* moments = nullptr;
};

// The rows of the op's weight; size 0 where they are not to be had.
WeightRows RowsOf(const OpDesc& op, const QuantOp& chosen, const Array& w) {
  WeightRows rows;
  if (op.type == "conv2d" || op.type == "depthwise_conv2d") {
    rows.groups = op.Attr<int32_t>("groups");
    rows.outputs = w.shape[0] / rows.groups;
    rows.size = w.size() / w.shape[0];
  } else if (IsProduct(op.type) && chosen.axis >= 0 &&
             !ProductAttrsOf(op).trans_x) {
    rows.columns = chosen.axis == 1;
    rows.outputs = w.shape[rows.columns ? 1 : 0];
    rows.size = w.shape[rows.columns ? 0 : 1];
  }
  if (rows.size > kMostInputs) rows.size = 0;
  return rows;
}

// Which of `all` outputs is looked at as number `i`: one of every `step`, each
// time at another place of these, so that no column of an image is preferred.
int64_t Position(int64_t i, int64_t step, int64_t all) {
  return std::min(i * step + i % step, all - 1);
}

class Gatherer {
 public:
  absl::Status Add(const Reader& reader, const Tensor& x) {
    if (x.size() == 0) return absl::OkStatus();
    if (reader.op.type == "conv2d" || reader.op.type == "depthwise_conv2d")
      return AddConv(reader, x);
    const int64_t size = reader.moments->rows.size, all = x.size() / size;
    const int64_t step = (all + kMostRows - 1) / kMostRows;
    const int64_t rows = (all + step - 1) / step;
    Take(rows, size, [&](int64_t i, float* to) {
      std::memcpy(to, x.data<float>() + Position(i, step, all) * size,
                  static_cast<size_t>(size) * sizeof(float));
    });
    AddProducts(rows, size, reader.moments->sums.data());
    reader.moments->count += rows;
    return absl::OkStatus();
  }

 private:
  absl::Status AddConv(const Reader& reader, const Tensor& x) {
    PD_ASSIGN_OR_RETURN(const ConvGeometry g,
                        ReadConv(reader.op, x.shape(), reader.weight->shape));
    const WindowAxis &h = g.axes[0], &w = g.axes[1];
    const int64_t size = reader.moments->rows.size;
    const int64_t each = g.in_channels / g.groups;
    const int64_t pixel = g.channels_last ? g.in_channels : 1;
    const int64_t channel = g.channels_last ? 1 : h.in * w.in;
    const int64_t all = g.batch * h.out * w.out;
    const int64_t step = (all + kMostRows - 1) / kMostRows;
    const int64_t rows = (all + step - 1) / step;
    for (int64_t group = 0; group < g.groups; ++group) {
      Take(rows, size, [&](int64_t i, float* to) {
        const int64_t p = Position(i, step, all);
        const int64_t oy = p / w.out % h.out, ox = p % w.out;
        const float* from = x.data<float>() +
                            p / (h.out * w.out) * g.in_channels * h.in * w.in +
                            group * each * channel;
        for (int64_t c = 0; c < each; ++c)
          for (int64_t ky = 0; ky < h.kernel; ++ky)
            for (int64_t kx = 0; kx < w.kernel; ++kx) {
              const int64_t y = h.Source(oy, ky), z = w.Source(ox, kx);
              const bool inside = y >= 0 && y < h.in && z >= 0 && z < w.in;
              *to++ = inside ? from[c * channel + (y * w.in + z) * pixel] : 0;
            }
      });
      AddProducts(rows, size,
                  reader.moments->sums.data() + group * size * size);
    }
    reader.moments->count += rows;
    return absl::OkStatus();
  }

  template <typename Fill>
  void Take(int64_t rows, int64_t size, const Fill& fill) {
    inputs_.resize(static_cast<size_t>(rows * size));
    ParallelFor(rows, 1 + 16384 / size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fill(i, inputs_.data() + i * size);
    });
  }

  void AddProducts(int64_t rows, int64_t size, float* sums) {
    products_.resize(static_cast<size_t>(size * size));
    GemmShape shape{size, size, rows};
    shape.trans_a = true;
    Sgemm(shape, inputs_.data(), inputs_.data(), products_.data());
    for (int64_t i = 0; i < size * size; ++i)
      sums[i] += products_[static_cast<size_t>(i)];
  }

  std::vector<float> inputs_, products_;
};

}  // namespace

absl::StatusOr<std::map<std::string, InputMoments>> MeasureInputMoments(
    OpRegistry* registry, const InferenceModel& model, const QuantPlan& plan,
    Loader* loader, int64_t most_batches, const BatchProgress& progress) {
  std::map<std::string, InputMoments> all;
  std::map<std::string, std::vector<Reader>> readers;  // by activation
  for (const QuantOp& chosen : plan.ops) {
    if (chosen.weight.empty()) continue;
    OpDesc op = model.program.global().ops[chosen.op];
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry->Get(op.type));
    PD_RETURN_IF_ERROR(
        Annotate(def->NormalizeAttrs(&op), absl::StrCat("op '", op.type, "'")));
    const Array& weight = model.params.at(chosen.weight);
    const WeightRows rows = RowsOf(op, chosen, weight);
    if (rows.size == 0) continue;
    InputMoments& moments = all[chosen.weight];
    moments.rows = rows;
    moments.sums.resize(
        static_cast<size_t>(rows.groups * rows.size * rows.size));
    readers[chosen.activations[0]].push_back(
        {std::move(op), &weight, &moments});
  }
  ObservedRun run;
  run.model = model;
  run.most_batches = most_batches;
  std::vector<const std::vector<Reader>*> of_sight;
  for (const auto& [name, list] : readers) {
    run.sights.push_back({name});
    of_sight.push_back(&list);
  }
  PD_ASSIGN_OR_RETURN(const auto observed,
                      ObservedModel::Create(registry, run));
  Gatherer gatherer;
  const auto see = [&](size_t i, const std::vector<const Tensor*>& values) {
    for (const Reader& reader : *of_sight[i])
      PD_RETURN_IF_ERROR(gatherer.Add(reader, *values[0]));
    return absl::OkStatus();
  };
  PD_RETURN_IF_ERROR(observed->Pass(loader, see, progress).status());
  return all;
}

}  // namespace pd
