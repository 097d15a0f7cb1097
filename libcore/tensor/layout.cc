// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/layout.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

// Strides of extent-1 dimensions never matter: compare what does.
bool IsRowMajor(const Layout& layout) {
  if (!layout.blocks.empty() || layout.padded != layout.shape) return false;
  const auto strides = RowMajorStrides(layout.shape);
  for (size_t i = 0; i < strides.size(); ++i)
    if (layout.shape[i] > 1 && layout.strides[i] != strides[i]) return false;
  return true;
}

}  // namespace

int64_t Layout::Elements() const {
  int64_t block = 1;
  for (const Block& b : blocks) block *= b.size;
  int64_t last = block;  // one past the last element reached
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t inner = 1;
    for (const Block& b : blocks)
      if (b.dim == static_cast<int>(i)) inner *= b.size;
    if (padded[i] == 0) return 0;
    last += (padded[i] / inner - 1) * strides[i];
  }
  return last;
}

std::vector<std::vector<int64_t>> Layout::Offsets() const {
  std::vector<std::vector<int64_t>> offsets(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    offsets[d].resize(static_cast<size_t>(shape[d]));
    for (int64_t at = 0; at < shape[d]; ++at) {
      int64_t outer = at, offset = 0, scale = 1;
      for (size_t b = blocks.size(); b-- > 0;) {
        if (static_cast<size_t>(blocks[b].dim) == d) {
          offset += (outer % blocks[b].size) * scale;
          outer /= blocks[b].size;
        }
        scale *= blocks[b].size;
      }
      offsets[d][static_cast<size_t>(at)] = offset + outer * strides[d];
    }
  }
  return offsets;
}

std::string Layout::ToString() const {
  std::string text = absl::StrCat("strides ", pd::ToString(strides));
  if (!blocks.empty()) absl::StrAppend(&text, " blocks");
  for (const Block& b : blocks) absl::StrAppend(&text, " ", b.size, "@", b.dim);
  return text;
}

bool SameLayout(const LayoutPtr& a, const LayoutPtr& b) {
  if (a == b) return true;
  if (a == nullptr) return IsRowMajor(*b);
  if (b == nullptr) return IsRowMajor(*a);
  return *a == *b;
}

LayoutPtr PermutedLayout(const Shape& shape, const std::vector<int>& order) {
  Layout layout;
  layout.shape = layout.padded = shape;
  layout.strides.assign(shape.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    const size_t d = static_cast<size_t>(order[i]);
    layout.strides[d] = stride;
    stride *= shape[d];
  }
  return Canonical(std::move(layout));
}

LayoutPtr Canonical(Layout layout) {
  if (IsRowMajor(layout)) return nullptr;
  return std::make_shared<const Layout>(std::move(layout));
}

}  // namespace pd
