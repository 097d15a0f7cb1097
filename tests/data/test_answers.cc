// SPDX-License-Identifier: Apache-2.0
// From numbers back to what people read: texts, pictures of classes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "libcore/data/class_colors.h"
#include "libcore/data/class_lists.h"
#include "libcore/data/tokenizer.h"
#include "libcore/data/transforms.h"
#include "libcore/data/vocabulary.h"

namespace pd {
namespace test_answers {

std::unique_ptr<TextEncoder> Encoder(TokenizerKind kind,
                                     std::vector<std::string> tokens) {
  TextOptions options;
  options.kind = kind;
  if (kind == TokenizerKind::kWordpiece)
    options.special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  if (!tokens.empty()) {
    auto words = Vocabulary::Make(std::move(tokens), options.special);
    EXPECT_TRUE(words.ok()) << words.status();
    options.vocabulary = std::make_shared<const Vocabulary>(*std::move(words));
  }
  auto encoder = TextEncoder::Create(options);
  EXPECT_TRUE(encoder.ok()) << encoder.status();
  return *std::move(encoder);
}

std::string Decoded(const TextEncoder& encoder, std::vector<int64_t> ids) {
  return encoder.Decode(ids.data(), ids.size());
}

TEST(DecodeTest, ByKind) {
  const std::vector<std::string> words = {"<pad>", "<unk>", "<s>", "</s>",
                                          "der",   "die",   "Hund"};
  const auto plain = Encoder(TokenizerKind::kWhitespace, words);
  EXPECT_EQ(Decoded(*plain, {2, 4, 6, 3, 5, 5}), "der Hund");
  EXPECT_EQ(Decoded(*plain, {4, 1, 0, 0}), "der <unk>");
  EXPECT_EQ(Decoded(*plain, {99, 4}), "\xEF\xBF\xBD der");
  EXPECT_EQ(Decoded(*plain, {}), "");
  const auto letters = Encoder(TokenizerKind::kCharacter, {"a", "b", " "});
  EXPECT_EQ(Decoded(*letters, {0, 1, 2, 0}), "ab a");
  const auto bytes = Encoder(TokenizerKind::kByte, {});
  EXPECT_EQ(Decoded(*bytes, {'h', 'i', 0xC3, 0xA9, 300}), "hi\xC3\xA9");
  // BERT's pieces: "##" goes on with the word before.
  const auto bert =
      Encoder(TokenizerKind::kWordpiece,
              {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ing", "chess"});
  EXPECT_EQ(Decoded(*bert, {2, 4, 5, 6, 3, 0, 0}), "playing chess");
}

// The colours that Pascal VOC's development kit gives the classes.
TEST(ClassColorsTest, AreVocs) {
  const Image image = ColoredClasses({0, 1, 2, 15, 20, 255}, 2, 3);
  EXPECT_EQ(image.pixels,
            (std::vector<uint8_t>{0, 0, 0, 128, 0, 0, 0, 128, 0, 192, 128, 128,
                                  0, 64, 128, 255, 255, 255}));
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(VocClasses().size(), 21);
  EXPECT_EQ(VocClasses()[15], "person");
  EXPECT_EQ(Cifar100Classes().size(), 100);
}

TEST(PictureChannelsTest, FollowTheNetworksInput) {
  const Transform tensor = transforms::ToTensor{};
  EXPECT_EQ(PictureChannels({-1, 1, 28, 28}, {tensor}), 1);
  EXPECT_EQ(PictureChannels({-1, 3, 224, 224},
                            {transforms::Resize{{224, 224}}, tensor}),
            3);
  EXPECT_EQ(PictureChannels({-1, 784}, {transforms::Resize{{28, 28}}, tensor}),
            1);
  EXPECT_EQ(
      PictureChannels({-1, 1, 28, 28}, {transforms::Grayscale{1}, tensor}), 3);
}

}  // namespace test_answers
}  // namespace pd
