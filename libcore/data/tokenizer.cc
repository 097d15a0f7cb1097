// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "formats/json_text.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/sentence_pieces.h"

namespace pd {
namespace {

// Longer words have no pieces, as in BERT.
constexpr size_t kLongestWord = 100;

bool NeedsVocabulary(TokenizerKind kind) {
  return kind != TokenizerKind::kByte && kind != TokenizerKind::kSentencePiece;
}

size_t Characters(absl::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(),
      [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string Shown(absl::string_view token) {
  constexpr size_t kMost = 40;
  return absl::StrCat("'", absl::CHexEscape(token.substr(0, kMost)),
                      token.size() > kMost ? "...'" : "'");
}

}  // namespace

TextEncoder::~TextEncoder() = default;

absl::StatusOr<std::unique_ptr<TextEncoder>> TextEncoder::Create(
    const TextOptions& options) {
  std::unique_ptr<TextEncoder> encoder(new TextEncoder);
  encoder->options_ = options;
  if (options.kind == TokenizerKind::kSentencePiece) {
    // Read once by us: the library's messages do not tell what is wrong.
    PD_RETURN_IF_ERROR(ReadFile(options.model).status());
    std::string error;
    encoder->sentence_pieces_ = SentencePieces::Read(options.model, &error);
    if (encoder->sentence_pieces_ == nullptr)
      return DataLoss("'%s': no model of SentencePiece: %s", options.model,
                      error);
  }
  if (!NeedsVocabulary(options.kind)) {
    encoder->options_.vocabulary = nullptr;
  } else if (options.vocabulary == nullptr) {
    if (options.kind == TokenizerKind::kWordpiece)
      return InvalidArgument("wordpiece needs a vocabulary file");
    encoder->builder_.emplace(options.special);
  }
  if (options.add_bos && encoder->bos() < 0)
    return InvalidArgument("the vocabulary has no token '%s' for a beginning",
                           options.special.bos);
  if (options.add_eos && encoder->eos() < 0)
    return InvalidArgument("the vocabulary has no token '%s' for an end",
                           options.special.eos);
  if (options.max_len > 0 &&
      options.max_len < int64_t{options.add_bos} + options.add_eos)
    return InvalidArgument(
        "max_len is %d, which the tokens for beginning and end do not fit",
        options.max_len);
  return encoder;
}

int64_t TextEncoder::pad() const {
  int64_t pad = -1;
  if (sentence_pieces_ != nullptr) pad = sentence_pieces_->pad();
  if (options_.vocabulary != nullptr) pad = options_.vocabulary->pad();
  return std::max<int64_t>(pad, 0);
}

int64_t TextEncoder::bos() const {
  if (sentence_pieces_ != nullptr) return sentence_pieces_->bos();
  if (builder_.has_value()) return VocabularyBuilder::kBos;
  return options_.vocabulary != nullptr ? options_.vocabulary->bos() : -1;
}

int64_t TextEncoder::eos() const {
  if (sentence_pieces_ != nullptr) return sentence_pieces_->eos();
  if (builder_.has_value()) return VocabularyBuilder::kEos;
  return options_.vocabulary != nullptr ? options_.vocabulary->eos() : -1;
}

absl::StatusOr<std::vector<int64_t>> TextEncoder::Finish() {
  std::vector<int64_t> renumber;
  if (!builder_.has_value()) return renumber;
  PD_ASSIGN_OR_RETURN(
      Vocabulary built,
      builder_->Build(options_.min_freq, options_.max_size, &renumber));
  options_.vocabulary = std::make_shared<const Vocabulary>(std::move(built));
  builder_.reset();
  return renumber;
}

absl::Status TextEncoder::Encode(absl::string_view text,
                                 std::vector<int64_t>* ids) {
  const size_t begin = ids->size();
  if (options_.add_bos) ids->push_back(bos());
  PD_RETURN_IF_ERROR(Tokens(text, ids));
  if (options_.max_len > 0) {
    const size_t most =
        begin + static_cast<size_t>(options_.max_len - options_.add_eos);
    if (ids->size() > most) ids->resize(most);
  }
  if (options_.add_eos) ids->push_back(eos());
  return absl::OkStatus();
}

absl::Status TextEncoder::Tokens(absl::string_view text,
                                 std::vector<int64_t>* ids) {
  const TokenizerKind kind = options_.kind;
  if (kind == TokenizerKind::kByte) {
    for (char c : text) ids->push_back(static_cast<unsigned char>(c));
    return absl::OkStatus();
  }
  if (!IsUtf8(text)) return DataLoss("%s is not UTF-8", Shown(text));
  const bool bert =
      kind == TokenizerKind::kBasic || kind == TokenizerKind::kWordpiece;
  if (bert) {
    lowered_ = CleanForBert(text, options_.lower);
    text = lowered_;
  } else if (options_.lower) {
    LowerUtf8(text, &lowered_);
    text = lowered_;
  }
  if (kind == TokenizerKind::kSentencePiece) {
    std::string error;
    if (!sentence_pieces_->Encode(text.data(), text.size(), ids, &error))
      return DataLoss("SentencePiece cannot cut %s: %s", Shown(text), error);
    return absl::OkStatus();
  }
  if (kind == TokenizerKind::kWordpiece)
    return SplitText(TokenizerKind::kBasic, text,
                     [&](absl::string_view word) { return Pieces(word, ids); });
  return SplitText(kind, text,
                   [&](absl::string_view word) { return Number(word, ids); });
}

absl::Status TextEncoder::Number(absl::string_view token,
                                 std::vector<int64_t>* ids) {
  if (builder_.has_value()) {
    ids->push_back(builder_->Add(token));
    return absl::OkStatus();
  }
  const Vocabulary& vocabulary = *options_.vocabulary;
  int64_t number = vocabulary.Find(token);
  if (number < 0) number = vocabulary.unk();
  if (number < 0)
    return NotFound("%s is not in the vocabulary, which has no '%s' either",
                    Shown(token), options_.special.unk);
  ids->push_back(number);
  return absl::OkStatus();
}

// The longest piece that the vocabulary holds, again and again; pieces inside a
// word begin with ##. A word that cannot be cut is unknown.
absl::Status TextEncoder::Pieces(absl::string_view word,
                                 std::vector<int64_t>* ids) {
  const Vocabulary& vocabulary = *options_.vocabulary;
  const size_t first = ids->size();
  if (Characters(word) > kLongestWord) {
    ids->push_back(vocabulary.unk());
  } else {
    size_t begin = 0;
    while (begin < word.size()) {
      size_t end = word.size();
      int64_t number = -1;
      for (; end > begin; --end) {
        piece_.assign(begin > 0 ? "##" : "");
        piece_.append(word.data() + begin, end - begin);
        number = vocabulary.Find(piece_);
        if (number >= 0) break;
      }
      if (number < 0) {
        ids->resize(first);
        ids->push_back(vocabulary.unk());
        break;
      }
      ids->push_back(number);
      begin = end;
    }
  }
  if (ids->size() > first && ids->back() < 0)
    return NotFound("%s has no pieces in the vocabulary, which has no '%s'",
                    Shown(word), options_.special.unk);
  return absl::OkStatus();
}

}  // namespace pd
