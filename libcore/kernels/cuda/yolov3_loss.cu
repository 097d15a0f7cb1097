// SPDX-License-Identifier: Apache-2.0
// yolov3_loss and its gradient. The formulas are those of libcore/ops. Where
// several truths share a cell, the cell looks for the last one.
#include "libcore/kernels/cuda/yolov3_loss_arguments.h"

#include <cmath>

#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

PD_DEVICE float SigmoidOf(float x) { return 1 / (1 + expf(-x)); }
PD_DEVICE float CrossEntropy(float x, float target) {
  return fmaxf(x, 0.0f) - x * target + logf(1 + expf(-fabsf(x)));
}
PD_DEVICE int64_t CellsOf(const YoloArgs& p) { return p.side * p.side; }
// Where the values of a cell begin in x, by its place in ObjectnessMask.
PD_DEVICE int64_t EntryOf(const YoloArgs& p, int64_t i) {
  const int64_t cells = CellsOf(p);
  return i / cells * (p.classes + 5) * cells + i % cells;
}
PD_DEVICE float ScoreOf(const YoloArgs& p, int64_t truth) {
  return p.scores != nullptr ? p.scores[truth] : 1.0f;
}
PD_DEVICE bool IsBox(const float* gt) {
  return gt[2] >= 1e-6f && gt[3] >= 1e-6f;
}

struct Box {
  float at[2], extent[2];
};

PD_DEVICE float Overlap(const Box& a, const Box& b) {
  float sides[2];
  for (int k = 0; k < 2; ++k)
    sides[k] = fminf(a.at[k] + a.extent[k] / 2, b.at[k] + b.extent[k] / 2) -
               fmaxf(a.at[k] - a.extent[k] / 2, b.at[k] - b.extent[k] / 2);
  const float common =
      sides[0] < 0 || sides[1] < 0 ? 0.0f : sides[0] * sides[1];
  return common /
         (a.extent[0] * a.extent[1] + b.extent[0] * b.extent[1] - common);
}

// The box that cell i of ObjectnessMask predicts.
PD_DEVICE Box Predicted(const YoloArgs& p, int64_t i) {
  const int64_t cells = CellsOf(p), cell = i % cells;
  const int64_t places[2] = {cell % p.side, cell / p.side};
  const int anchor = p.mask[i / cells % p.count];
  Box box;
  for (int k = 0; k < 2; ++k) {
    const float* value = p.x + EntryOf(p, i) + k * cells;
    box.at[k] = (static_cast<float>(places[k]) + SigmoidOf(value[0]) * p.scale +
                 -0.5f * (p.scale - 1)) /
                static_cast<float>(p.side);
    box.extent[k] = expf(value[2 * cells]) *
                    static_cast<float>(p.anchor[2 * anchor + k]) / p.input_size;
  }
  return box;
}

// A ground truth where it belongs: the targets and the weight of its box.
struct Truth {
  int64_t cell = 0;
  float target[4], weight = 0;

  PD_DEVICE Truth(const YoloArgs& p, int64_t truth, int32_t m) {
    const float* gt = p.boxes + truth * 4;
    int64_t places[2];
    for (int k = 0; k < 2; ++k) {
      const float at = gt[k] * static_cast<float>(p.side);
      // A centre on the far edge or outside belongs to the nearest cell.
      places[k] =
          at > 0
              ? static_cast<int64_t>(fminf(at, static_cast<float>(p.side - 1)))
              : 0;
      target[k] = at - static_cast<float>(places[k]);
      target[2 + k] = logf(gt[2 + k] * p.input_size /
                           static_cast<float>(p.anchor[2 * p.mask[m] + k]));
    }
    cell = places[1] * p.side + places[0];
    weight = (2 - gt[2] * gt[3]) * ScoreOf(p, truth);
  }
};

// The last truth of place i of ObjectnessMask; -1: none.
PD_DEVICE int32_t OwnerOf(const YoloArgs& p, int64_t i) {
  const int64_t cells = CellsOf(p), image = i / cells / p.count;
  const int64_t m = i / cells % p.count;
  for (int64_t b = (image + 1) * p.truths; b-- > image * p.truths;)
    if (p.match[b] == m && Truth(p, b, p.match[b]).cell == i % cells)
      return static_cast<int32_t>(b);
  return -1;
}

// The place in the mask of the anchor that fits best; -1: not there.
struct YoloMatch {
  PD_DEVICE static void Run(const Block& block, const YoloArgs& p) {
    block.Spread(p.images * p.truths, [&](int64_t b) {
      const float* gt = p.boxes + b * 4;
      p.match[b] = -1;
      if (!IsBox(gt)) return;
      const Box shape = {{0, 0}, {gt[2], gt[3]}};
      float best = 0;
      int which = 0;
      for (int i = 0; i < p.anchors; ++i) {
        const Box anchor = {
            {0, 0},
            {static_cast<float>(p.anchor[2 * i]) / p.input_size,
             static_cast<float>(p.anchor[2 * i + 1]) / p.input_size}};
        const float overlap = Overlap(anchor, shape);
        if (overlap <= best) continue;
        best = overlap;
        which = i;
      }
      for (int m = p.count; m-- > 0;)
        if (p.mask[m] == which) p.match[b] = m;
    });
  }
};

struct YoloMask {
  PD_DEVICE static void Run(const Block& block, const YoloArgs& p) {
    block.Spread(p.images * p.count * CellsOf(p), [&](int64_t i) {
      const int32_t owner = OwnerOf(p, i);
      if (owner >= 0) {
        p.objectness[i] = ScoreOf(p, owner);
        return;
      }
      const Box box = Predicted(p, i);
      const int64_t image = i / CellsOf(p) / p.count;
      float best = 0;
      for (int64_t b = image * p.truths; b < (image + 1) * p.truths; ++b) {
        const float* gt = p.boxes + b * 4;
        if (!IsBox(gt)) continue;
        const float overlap = Overlap(box, Box{{gt[0], gt[1]}, {gt[2], gt[3]}});
        if (overlap > best) best = overlap;
      }
      p.objectness[i] = best > p.ignore ? -1.0f : 0.0f;
    });
  }
};

PD_DEVICE float TruthLoss(const YoloArgs& p, int64_t b, int64_t image) {
  const int32_t m = p.match[b];
  if (m < 0) return 0;
  const int64_t cells = CellsOf(p);
  const Truth truth(p, b, m);
  const float* values =
      p.x + EntryOf(p, (image * p.count + m) * cells + truth.cell);
  float sum = 0;
  for (int k = 0; k < 2; ++k)
    sum += CrossEntropy(values[k * cells], truth.target[k]) * truth.weight;
  for (int k = 2; k < 4; ++k)
    sum += fabsf(truth.target[k] - values[k * cells]) * truth.weight;
  for (int64_t c = 0; c < p.classes; ++c)
    sum += CrossEntropy(values[(5 + c) * cells],
                        c == p.labels[b] ? p.same : p.other) *
           ScoreOf(p, b);
  return sum;
}

// A block for each image.
struct YoloSum {
  PD_DEVICE static void Run(const Block& block, const YoloArgs& p) {
    const int64_t places = p.count * CellsOf(p);
    for (int64_t image = block.index(); image < p.images;
         image += block.blocks()) {
      const float boxes = SumOf(block, p.truths, [&](int64_t b) {
        return TruthLoss(p, image * p.truths + b, image);
      });
      const float objects = SumOf(block, places, [&](int64_t at) {
        const int64_t i = image * places + at;
        const float value = p.x[EntryOf(p, i) + 4 * CellsOf(p)];
        const float mask = p.objectness[i];
        if (mask > 1e-5f) return CrossEntropy(value, 1) * mask;
        return mask > -0.5f ? CrossEntropy(value, 0) : 0.0f;
      });
      block.Each([&](int thread) {
        if (thread == 0) p.loss[image] = boxes + objects;
      });
    }
  }
};

struct YoloOwners {
  PD_DEVICE static void Run(const Block& block, const YoloArgs& p) {
    block.Spread(p.images * p.count * CellsOf(p),
                 [&](int64_t i) { p.owners[i] = OwnerOf(p, i); });
  }
};

struct YoloGrad {
  PD_DEVICE static void Run(const Block& block, const YoloArgs& p) {
    const int64_t cells = CellsOf(p), entries = p.classes + 5;
    block.Spread(p.images * p.count * entries * cells, [&](int64_t e) {
      const int64_t entry = e / cells % entries;
      const int64_t i = e / cells / entries * cells + e % cells;
      const float x = p.x[e], dloss = p.dloss[i / cells / p.count];
      p.dx[e] = 0;
      if (entry == 4) {
        const float mask = p.objectness[i];
        if (mask > 1e-5f)
          p.dx[e] = (SigmoidOf(x) - 1) * mask * dloss;
        else if (mask > -0.5f)
          p.dx[e] = SigmoidOf(x) * dloss;
        return;
      }
      const int32_t owner = p.owners[i];
      if (owner < 0) return;
      const Truth truth(p, owner, p.match[owner]);
      if (entry < 2)
        p.dx[e] = (SigmoidOf(x) - truth.target[entry]) * truth.weight * dloss;
      else if (entry < 4)
        p.dx[e] = (x > truth.target[entry] ? 1 : -1) * truth.weight * dloss;
      else
        p.dx[e] =
            (SigmoidOf(x) - (entry - 5 == p.labels[owner] ? p.same : p.other)) *
            ScoreOf(p, owner) * dloss;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(yolo_match, YoloMatch, YoloArgs)
PD_KERNEL(yolo_mask, YoloMask, YoloArgs)
PD_KERNEL(yolo_loss, YoloSum, YoloArgs)
PD_KERNEL(yolo_owners, YoloOwners, YoloArgs)
PD_KERNEL(yolo_grad, YoloGrad, YoloArgs)
