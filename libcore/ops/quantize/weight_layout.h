// SPDX-License-Identifier: Apache-2.0
// Where PaddlePaddle puts the 8-bit or 4-bit numbers of a weight [k, n] that a
// GPU's matrix instructions multiply by floats (algorithms weight_only_int8 and
// weight_only_int4 for compute capabilities 7.5 and later). Rows are taken in
// the order in which threads read them, columns lie one after the other in
// tiles of 64 rows, several of them side by side, and in each word of 32 bits
// the even numbers come before the odd ones. A number q is stored as q +
// 2^(bits
// - 1).
#ifndef PD_LIBCORE_OPS_QUANTIZE_WEIGHT_LAYOUT_H_
#define PD_LIBCORE_OPS_QUANTIZE_WEIGHT_LAYOUT_H_

#include <cstdint>

namespace pd {

class WeightLayout {
 public:
  /// `k` is a multiple of 64 and `n` of columns_together().
  WeightLayout(int bits, int64_t k) : bits_(bits), k_(k) {}

  /// Columns whose tiles lie side by side.
  int64_t columns_together() const { return 16 / bits_; }
  int64_t most() const { return (int64_t{1} << (bits_ - 1)) - 1; }

  /// The number of the element at `row` and `column`, counted in elements.
  int64_t PlaceOf(int64_t row, int64_t column) const {
    const int64_t in_word = 32 / bits_, block = 128 / bits_;
    // The place of the row in its block, from the bits of its number there:
    // pairs of rows are taken from quarters or halves in turn.
    const int64_t at = row % block, eights = at / 8, pair = at % 8 / 2;
    const int64_t turned = row - at + pair * in_word + eights * 2 + at % 2;
    const int64_t words = k_ / in_word, tile_words = 64 / in_word;
    const int64_t word = turned / in_word, together = columns_together();
    const int64_t place = column / together * words * together +
                          word / tile_words * tile_words * together +
                          column % together * tile_words + word % tile_words;
    const int64_t s = turned % in_word;
    return place * in_word + s / 2 + s % 2 * (in_word / 2);
  }

  int32_t Read(const int8_t* bytes, int64_t place) const {
    if (bits_ == 8) return static_cast<uint8_t>(bytes[place]) - 128;
    const auto byte = static_cast<uint8_t>(bytes[place / 2]);
    return ((byte >> (place % 2 * 4)) & 15) - 8;
  }
  /// Writes a number into zeroed bytes.
  void Write(int32_t value, int64_t place, int8_t* bytes) const {
    const auto stored = static_cast<uint8_t>(value + (1 << (bits_ - 1)));
    if (bits_ == 8)
      bytes[place] = static_cast<int8_t>(stored);
    else
      bytes[place / 2] = static_cast<int8_t>(
          static_cast<uint8_t>(bytes[place / 2]) | (stored << (place % 2 * 4)));
  }

 private:
  int bits_;
  int64_t k_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_QUANTIZE_WEIGHT_LAYOUT_H_
