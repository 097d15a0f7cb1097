// SPDX-License-Identifier: Apache-2.0
// PBM, PGM and PPM, as text (P1 to P3) or bytes (P4 to P6). Values of other
// ranges are spread over 0 to 255 and rounded; of 16 bits too, where Pillow
// clips grey ones instead.
#include "formats/pnm.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

struct Pnm {
  char kind = 0;  // '1' to '6'
  int64_t width = 0, height = 0, most = 1;
  size_t pixels = 0;  // where they begin

  bool bitmap() const { return kind == '1' || kind == '4'; }
  bool text() const { return kind <= '3'; }
  int channels() const { return kind == '3' || kind == '6' ? 3 : 1; }
};

bool IsSpace(char c) {
  return absl::ascii_isspace(static_cast<unsigned char>(c));
}

// Integers between white space and comments from # to the line's end.
class Numbers {
 public:
  Numbers(absl::string_view bytes, size_t at) : bytes_(bytes), at_(at) {}

  size_t at() const { return at_; }
  // A pixel of P1 is one digit, with or without white space behind it.
  absl::StatusOr<int64_t> Next(bool one_digit = false) {
    while (at_ < bytes_.size() && (IsSpace(bytes_[at_]) || bytes_[at_] == '#'))
      at_ = bytes_[at_] == '#' ? std::min(bytes_.find('\n', at_), bytes_.size())
                               : at_ + 1;
    int64_t value = 0;
    const size_t begin = at_;
    while (at_ < bytes_.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(bytes_[at_]))) {
      value = value * 10 + (bytes_[at_++] - '0');
      if (value > INT32_MAX)
        return DataLoss("byte %d: the number is too large", begin);
      if (one_digit) break;
    }
    if (at_ == begin) return DataLoss("byte %d: expected a number", begin);
    return value;
  }

 private:
  absl::string_view bytes_;
  size_t at_;
};

absl::StatusOr<Pnm> ParseHeader(absl::string_view bytes) {
  Pnm pnm;
  pnm.kind = bytes[1];
  Numbers numbers(bytes, 2);
  PD_ASSIGN_OR_RETURN(pnm.width, numbers.Next());
  PD_ASSIGN_OR_RETURN(pnm.height, numbers.Next());
  if (!pnm.bitmap()) {
    PD_ASSIGN_OR_RETURN(pnm.most, numbers.Next());
  }
  if (pnm.most < 1 || pnm.most > 65535)
    return DataLoss("the largest value is %d; expected 1 to 65535", pnm.most);
  // One white space, then the pixels.
  pnm.pixels = numbers.at();
  if (pnm.pixels < bytes.size() && !IsSpace(bytes[pnm.pixels]))
    return DataLoss("byte %d: expected white space", pnm.pixels);
  pnm.pixels = std::min(pnm.pixels + 1, bytes.size());
  return pnm;
}

uint8_t Spread(const Pnm& pnm, int64_t value) {
  if (pnm.bitmap()) return value != 0 ? 0 : 255;  // 1 is black
  const double share =
      static_cast<double>(value) / static_cast<double>(pnm.most);
  return static_cast<uint8_t>(std::min(255.0, std::nearbyint(share * 255)));
}

absl::Status ReadText(const Pnm& pnm, absl::string_view bytes, uint8_t* out,
                      size_t values) {
  Numbers numbers(bytes, pnm.pixels);
  for (size_t i = 0; i < values; ++i) {
    PD_ASSIGN_OR_RETURN(const int64_t value, numbers.Next(pnm.bitmap()));
    if (value > pnm.most)
      return DataLoss("pixel value %d; the header says at most %d", value,
                      pnm.most);
    out[i] = Spread(pnm, value);
  }
  return absl::OkStatus();
}

void ReadBytes(const Pnm& pnm, absl::string_view bytes, uint8_t* out,
               size_t values) {
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (pnm.bitmap()) {
    const auto width = static_cast<size_t>(pnm.width);
    const size_t stride = (width + 7) / 8;
    for (size_t i = 0; i < values; ++i) {
      const size_t x = i % width;
      out[i] = Spread(pnm, in[i / width * stride + x / 8] >> (7 - x % 8) & 1);
    }
  } else if (pnm.most > 255) {
    for (size_t i = 0; i < values; ++i)
      out[i] = Spread(pnm, in[2 * i] << 8 | in[2 * i + 1]);
  } else {
    uint8_t table[256];
    for (int value = 0; value < 256; ++value) table[value] = Spread(pnm, value);
    for (size_t i = 0; i < values; ++i) out[i] = table[in[i]];
  }
}

// The bytes that the pixels take at least.
int64_t LeastBytes(const Pnm& pnm) {
  const int64_t values = pnm.width * pnm.height * pnm.channels();
  if (pnm.kind == '1') return values;
  if (pnm.kind == '4') return (pnm.width + 7) / 8 * pnm.height;
  if (pnm.text()) return 2 * values - 1;
  return values * (pnm.most > 255 ? 2 : 1);
}

}  // namespace

bool IsPnm(absl::string_view bytes) {
  if (bytes.size() < 4 || bytes[0] != 'P' || bytes[1] < '1' || bytes[1] > '6')
    return false;
  size_t at = 2;
  while (at < bytes.size() && IsSpace(bytes[at])) ++at;
  return at < bytes.size() &&
         (bytes[at] == '#' ||
          (at > 2 &&
           absl::ascii_isdigit(static_cast<unsigned char>(bytes[at]))));
}

absl::StatusOr<ImageHeader> ParsePnmHeader(absl::string_view bytes) {
  PD_ASSIGN_OR_RETURN(const Pnm pnm, ParseHeader(bytes));
  ImageHeader header;
  header.height = pnm.height;
  header.width = pnm.width;
  header.channels = pnm.channels();
  while (pnm.most >> header.bits != 0) ++header.bits;
  header.colour = header.channels == 3 ? "RGB" : "grey";
  return header;
}

absl::Status DecodePnm(absl::string_view bytes, const ImageOptions& options,
                       Image* image) {
  PD_ASSIGN_OR_RETURN(const Pnm pnm, ParseHeader(bytes));
  if (pnm.width > 0 && pnm.height > 0 &&
      (pnm.height > INT32_MAX / pnm.width ||
       LeastBytes(pnm) > static_cast<int64_t>(bytes.size() - pnm.pixels)))
    return DataLoss("%d bytes are too few for %d x %d pixels", bytes.size(),
                    pnm.width, pnm.height);
  PD_RETURN_IF_ERROR(PrepareImage(pnm.height, pnm.width, options, image));
  const auto values =
      static_cast<size_t>(pnm.width * pnm.height * pnm.channels());
  uint8_t* pixels = image->pixels.data();
  if (pnm.text()) {
    PD_RETURN_IF_ERROR(ReadText(pnm, bytes, pixels, values));
  } else {
    ReadBytes(pnm, bytes.substr(pnm.pixels), pixels, values);
  }
  if (pnm.channels() == 3 && options.channels == 1) RgbToGrey(image);
  if (pnm.channels() == 1 && options.channels == 3) GreyToRgb(image);
  image->pixels.resize(static_cast<size_t>(pnm.width * pnm.height) *
                       static_cast<size_t>(options.channels));
  return absl::OkStatus();
}

}  // namespace pd
