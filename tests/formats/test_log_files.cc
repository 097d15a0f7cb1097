// SPDX-License-Identifier: Apache-2.0
// VisualDL's and TensorBoard's files against their rules, taken apart here by
// hand: framing, checksums, and the wire format of the fields.
// scripts/check_logs asks the two programs themselves.
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "formats/image.h"
#include "formats/log_record.h"
#include "formats/tfevents.h"
#include "formats/visualdl.h"
#include "formats/wav.h"
#include "gtest/gtest.h"

namespace pd {
namespace test_log_files {

// The fields of a protobuf message by number: varints and fixed numbers as
// they lie in the file, everything else as bytes.
struct Wire {
  std::multimap<int, std::string> bytes;
  std::multimap<int, uint64_t> numbers;

  std::string One(int field) const { return bytes.find(field)->second; }
  uint64_t Number(int field) const { return numbers.find(field)->second; }
};

uint64_t Varint(const std::string& text, size_t* at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(text.at((*at)++));
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

Wire TakeApart(const std::string& message) {
  Wire wire;
  for (size_t at = 0; at < message.size();) {
    const uint64_t key = Varint(message, &at);
    const int field = static_cast<int>(key >> 3);
    size_t size = 0;
    switch (key & 7) {
      case 0:
        wire.numbers.emplace(field, Varint(message, &at));
        continue;
      case 1:
        size = 8;
        break;
      case 2:
        size = Varint(message, &at);
        break;
      default:
        size = 4;
    }
    wire.bytes.emplace(field, message.substr(at, size));
    at += size;
  }
  return wire;
}

template <typename T>
std::vector<T> Numbers(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// The value message in a VisualDL record.
Wire VisualDlValue(const LogRecord& record) {
  const std::string bytes = EncodeVisualDl(record);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  EXPECT_EQ(bytes.size(), 8 + size);
  return TakeApart(TakeApart(bytes.substr(8)).One(1));
}

Wire TfEvent(const LogRecord& record) {
  const std::string bytes = EncodeTfEvent(record);
  return TakeApart(bytes.substr(12, bytes.size() - 16));
}

uint32_t Little(const std::string& bytes, size_t at, int size) {
  uint32_t value = 0;
  for (int i = size; i-- > 0;)
    value =
        value << 8 | static_cast<uint8_t>(bytes[at + static_cast<size_t>(i)]);
  return value;
}

// The head as Microsoft's and IBM's description of RIFF has it.
TEST(Wav, IsPcmOf16Bits) {
  const auto wav = EncodeWav({22050, 2, {1, -2, 32767, -32768, 0, 258}});
  ASSERT_TRUE(wav.ok()) << wav.status();
  ASSERT_EQ(wav->size(), 44u + 12u);
  EXPECT_EQ(wav->substr(0, 4), "RIFF");
  EXPECT_EQ(Little(*wav, 4, 4), 36u + 12u);
  EXPECT_EQ(wav->substr(8, 8), "WAVEfmt ");
  EXPECT_EQ(Little(*wav, 16, 4), 16u);
  EXPECT_EQ(Little(*wav, 20, 2), 1u);      // PCM
  EXPECT_EQ(Little(*wav, 22, 2), 2u);      // channels
  EXPECT_EQ(Little(*wav, 24, 4), 22050u);  // frames a second
  EXPECT_EQ(Little(*wav, 28, 4), 88200u);  // bytes a second
  EXPECT_EQ(Little(*wav, 32, 2), 4u);      // bytes a frame
  EXPECT_EQ(Little(*wav, 34, 2), 16u);     // bits a sample
  EXPECT_EQ(wav->substr(36, 4), "data");
  EXPECT_EQ(Little(*wav, 40, 4), 12u);
  EXPECT_EQ(wav->substr(44),
            std::string("\x01\0\xfe\xff\xff\x7f\0\x80\0\0\x02\x01", 12));
}

TEST(Wav, RefusesWhatTheHeadCannotHold) {
  for (const WavSound& sound :
       {WavSound{0, 1, {}}, WavSound{8000, 0, {}}, WavSound{8000, 2, {1, 2, 3}},
        WavSound{8000, 40000, {}}, WavSound{1 << 30, 2, {}}})
    EXPECT_EQ(EncodeWav(sound).status().code(),
              absl::StatusCode::kInvalidArgument);
}

// int(32767.0 * x) of clipped numbers.
TEST(Wav, SamplesAreCutTowardsZero) {
  EXPECT_EQ(PcmOf(1), 32767);
  EXPECT_EQ(PcmOf(-7), -32767);
  EXPECT_EQ(PcmOf(0.5f), 16383);
  EXPECT_EQ(PcmOf(-0.5f), -16383);
  EXPECT_EQ(PcmOf(std::numeric_limits<float>::infinity()), 32767);
  EXPECT_EQ(PcmOf(std::numeric_limits<float>::quiet_NaN()), 0);
}

void CheckAudio(const Wire& audio) {
  EXPECT_EQ(Numbers<float>(audio.One(1)), std::vector<float>{16000});
  EXPECT_EQ(audio.Number(2), 2u);
  EXPECT_EQ(audio.Number(3), 300u);
  EXPECT_EQ(audio.One(4), "RIFF...");
  EXPECT_EQ(audio.One(5), "audio/wav");
}

TEST(VisualDl, Audio) {
  const LogAudio audio{16000, 2, 300, "RIFF..."};
  CheckAudio(TakeApart(VisualDlValue({"a", 1, 0, audio}).One(6)));
}

TEST(TfEvents, Audio) {
  const LogAudio audio{16000, 2, 300, "RIFF..."};
  const Wire value =
      TakeApart(TakeApart(TfEvent({"a", 1, 0, audio}).One(5)).One(1));
  EXPECT_EQ(value.One(1), "a");
  CheckAudio(TakeApart(value.One(6)));
}

TEST(Crc32c, KnownValues) {
  // RFC 3720, B.4.
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(VisualDl, Scalar) {
  const Wire value = VisualDlValue({"train/loss", 7, 12.3456, 0.25f});
  EXPECT_EQ(value.Number(1), 7u);
  EXPECT_EQ(value.One(2), "train/loss");
  EXPECT_EQ(value.Number(3), 12346u);
  EXPECT_EQ(Numbers<float>(value.One(4)), std::vector<float>{0.25f});
}

TEST(VisualDl, ScalarOfZeroIsThere) {
  EXPECT_EQ(VisualDlValue({"x", 0, 0, 0.0f}).bytes.count(4), 1u);
}

TEST(VisualDl, HistogramAndCurves) {
  LogHistogram histogram;
  histogram.counts = {2, 1};
  histogram.edges = {0, 0.5, 1};
  const Wire h = TakeApart(VisualDlValue({"h", 1, 0, histogram}).One(8));
  EXPECT_EQ(Numbers<double>(h.One(1)), histogram.counts);
  EXPECT_EQ(Numbers<double>(h.One(2)), histogram.edges);

  LogCurve curve{{3, 1}, {2, 0}, {0, 2}, {0, 2}};
  const Wire pr =
      TakeApart(VisualDlValue({"c", 1, 0, LogPrCurve{curve}}).One(9));
  EXPECT_EQ(pr.One(1), std::string("\3\1"));
  EXPECT_EQ(Numbers<double>(pr.One(5)), (std::vector<double>{0.6, 1.0}));
  EXPECT_EQ(Numbers<double>(pr.One(6)), (std::vector<double>{1.0, 1.0 / 3}));
  const Wire roc =
      TakeApart(VisualDlValue({"c", 1, 0, LogRocCurve{curve}}).One(11));
  EXPECT_EQ(Numbers<double>(roc.One(5)), (std::vector<double>{1.0, 1.0 / 3}));
  EXPECT_EQ(Numbers<double>(roc.One(6)), (std::vector<double>{1.0, 0.0}));
}

TEST(TfEvents, FramingAndScalar) {
  const std::string bytes = EncodeTfEvent({"train/loss", 7, 12.5, 0.25f});
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  ASSERT_EQ(bytes.size(), 16 + size);
  const auto masked = [](const std::string& text) {
    const uint32_t crc = Crc32c(text);
    return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  };
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + 8, 4);
  EXPECT_EQ(crc, masked(bytes.substr(0, 8)));
  std::memcpy(&crc, bytes.data() + 12 + size, 4);
  EXPECT_EQ(crc, masked(bytes.substr(12, size)));

  const Wire event = TfEvent({"train/loss", 7, 12.5, 0.25f});
  EXPECT_EQ(Numbers<double>(event.One(1)), std::vector<double>{12.5});
  EXPECT_EQ(event.Number(2), 7u);
  const Wire value = TakeApart(TakeApart(event.One(5)).One(1));
  EXPECT_EQ(value.One(1), "train/loss");
  EXPECT_EQ(Numbers<float>(value.One(2)), std::vector<float>{0.25f});
}

TEST(TfEvents, PrCurve) {
  const LogCurve curve{{3, 1}, {2, 0}, {0, 2}, {0, 2}};
  const Wire value = TakeApart(
      TakeApart(TfEvent({"pr", 1, 0, LogPrCurve{curve}}).One(5)).One(1));
  const Wire tensor = TakeApart(value.One(8));
  EXPECT_EQ(tensor.Number(1), 1u);
  const std::vector<float> want = {3, 1, 2,    0,    0,    2,
                                   0, 2, 0.6f, 1.0f, 1.0f, 1.0f / 3};
  EXPECT_EQ(Numbers<float>(tensor.One(5)), want);
  const Wire plugin = TakeApart(TakeApart(value.One(9)).One(1));
  EXPECT_EQ(plugin.One(1), "pr_curves");
  EXPECT_EQ(plugin.One(2), std::string("\x10\x02"));
}

TEST(LogCurve, Area) {
  // Perfect, useless, and worked by hand: (0,0) (0,1/3) (1/2,1) (1,1).
  EXPECT_DOUBLE_EQ((LogCurve{{4, 4}, {4, 0}, {0, 4}, {0, 0}}).Area(), 1);
  EXPECT_DOUBLE_EQ((LogCurve{{4, 2}, {4, 2}, {0, 2}, {0, 2}}).Area(), 0.5);
  EXPECT_DOUBLE_EQ(
      (LogCurve{{3, 3, 1}, {4, 2, 0}, {0, 2, 4}, {0, 0, 2}}).Area(),
      0.5 * (1.0 / 3 + 1) / 2 + 0.5);
  EXPECT_DOUBLE_EQ((LogCurve{{0, 0}, {4, 2}, {0, 2}, {0, 0}}).Area(), 0.5);
}

TEST(Histogram, AsNumpy) {
  // np.histogram([0, 0.1, 0.5, 0.9, 1, 1], bins=4): 2 0 1 3
  const float values[] = {0, 0.1f, 0.5f, 0.9f, 1, 1};
  const LogHistogram h = MakeHistogram(values, 6, 4);
  EXPECT_EQ(h.counts, (std::vector<double>{2, 0, 1, 3}));
  EXPECT_EQ(h.edges, (std::vector<double>{0, 0.25, 0.5, 0.75, 1}));
  EXPECT_NEAR(h.sum, 3.5, 1e-6);
  EXPECT_NEAR(h.sum_squares, 3.07, 1e-6);
}

TEST(Histogram, OddValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const float same[] = {2, 2, NAN, inf};
  const LogHistogram h = MakeHistogram(same, 4, 2);
  EXPECT_EQ(h.edges, (std::vector<double>{1.5, 2, 2.5}));
  EXPECT_EQ(h.counts, (std::vector<double>{0, 2}));
  const LogHistogram none = MakeHistogram(same + 2, 2, 2);
  EXPECT_EQ(none.edges, (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(none.counts, (std::vector<double>{0, 0}));
}

template <typename Encode, typename Scan>
void CheckScan(const std::string& head, const Encode& encode,
               const Scan& scan) {
  std::string bytes = head;
  bytes += encode({"a", 1, 0, 1.0f});
  const size_t before = bytes.size();
  bytes += encode({"b", 2, 0, 2.0f});
  const auto marks = scan(bytes);
  ASSERT_TRUE(marks.ok()) << marks.status();
  ASSERT_EQ(marks->size(), 3u);
  EXPECT_EQ((*marks)[1].end, before);
  EXPECT_EQ((*marks)[2].step, 2);
  EXPECT_EQ((*marks)[2].tag, "b");
  // A torn end is no error; whatever else happens to a byte, nothing breaks.
  for (size_t n = before; n < bytes.size(); ++n) {
    const auto torn = scan(bytes.substr(0, n));
    ASSERT_TRUE(torn.ok());
    EXPECT_EQ(torn->size(), 2u);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xff);
    scan(damaged).status().IgnoreError();
  }
}

TEST(VisualDl, Scan) {
  CheckScan(VisualDlHead(1), EncodeVisualDl, ScanVisualDl);
}

TEST(TfEvents, Scan) {
  CheckScan(TfEventsHead(1), EncodeTfEvent, ScanTfEvents);
  std::string bytes = TfEventsHead(1);
  bytes[14] = static_cast<char>(bytes[14] ^ 1);
  EXPECT_EQ(ScanTfEvents(bytes).status().code(), absl::StatusCode::kDataLoss);
}

TEST(EncodePng, ReadsBack) {
  for (const int channels : {1, 3}) {
    Image image{2, 3, channels, {}};
    for (int i = 0; i < 6 * channels; ++i)
      image.pixels.push_back(static_cast<uint8_t>(i * 13));
    const auto bytes = EncodePng(image);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    Image back;
    ImageOptions options;
    options.channels = channels;
    ASSERT_TRUE(DecodeImage(*bytes, options, &back).ok());
    EXPECT_EQ(back.pixels, image.pixels);
    image.pixels.pop_back();
    EXPECT_EQ(EncodePng(image).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace test_log_files
}  // namespace pd
