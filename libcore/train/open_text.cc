// SPDX-License-Identifier: Apache-2.0
// Data sets of text, tokenizers and vocabularies of a job.
#include <memory>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/train/open_data.h"
#include "libcore/train/open_internal.h"

namespace pd {
namespace {

TokenizerKind KindOf(job::Tokenizer::Kind kind) {
  switch (kind) {
    case job::Tokenizer::whitespace:
      return TokenizerKind::kWhitespace;
    case job::Tokenizer::character:
      return TokenizerKind::kCharacter;
    case job::Tokenizer::byte:
      return TokenizerKind::kByte;
    case job::Tokenizer::basic:
      return TokenizerKind::kBasic;
    case job::Tokenizer::wordpiece:
      return TokenizerKind::kWordpiece;
    case job::Tokenizer::sentencepiece:
      return TokenizerKind::kSentencePiece;
  }
  return TokenizerKind::kWhitespace;
}

SpecialTokens SpecialOf(const job::Text& text) {
  SpecialTokens special;
  if (text.tokenizer() == job::Tokenizer::wordpiece)
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"};
  const job::Vocab& vocab = text.vocab();
  if (vocab.has_pad_token()) special.pad = vocab.pad_token();
  if (vocab.has_unk_token()) special.unk = vocab.unk_token();
  if (vocab.has_bos_token()) special.bos = vocab.bos_token();
  if (vocab.has_eos_token()) special.eos = vocab.eos_token();
  return special;
}

absl::Status CheckText(const LoadedJob& job, const job::Text& text) {
  const std::string kind = job::Tokenizer::Kind_Name(text.tokenizer());
  const bool pieces = text.tokenizer() == job::Tokenizer::sentencepiece;
  if (pieces != text.has_model())
    return job.At(pieces
                      ? InvalidArgument("sentencepiece needs its model")
                      : InvalidArgument("only sentencepiece has a model; the "
                                        "tokenizer is %s",
                                        kind),
                  text, "model");
  if ((pieces || text.tokenizer() == job::Tokenizer::byte) && text.has_vocab())
    return job.At(InvalidArgument("%s takes no vocabulary", kind), text,
                  "vocab");
  if (text.tokenizer() == job::Tokenizer::byte && text.lower())
    return job.At(InvalidArgument("bytes have no lower case"), text, "lower");
  if (text.tokenizer() == job::Tokenizer::wordpiece && !text.vocab().has_path())
    return job.At(InvalidArgument("wordpiece needs vocab { path: ... }"), text);
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> OpenLanguageModelOf(
    OpenContext* context, const job::LanguageModel& model) {
  LanguageModelOptions options;
  options.paths = ListOf<std::string>(model.path());
  options.input_name = model.input();
  options.label_name = model.label();
  PD_ASSIGN_OR_RETURN(options.text,
                      TextOptionsOf(context, model, model.input()));
  options.seq_len = model.seq_len();
  options.stride = model.has_stride() ? model.stride() : model.seq_len();
  if (model.input() == model.label())
    return context->job().At(
        InvalidArgument("inputs and labels are both named '%s'", model.input()),
        model, "label");
  auto dataset = OpenLanguageModel(options);
  if (!dataset.ok() && absl::IsInvalidArgument(dataset.status()))
    return context->job().At(dataset.status(), model);
  return dataset;
}

absl::StatusOr<DatasetPtr> OpenParallelOf(OpenContext* context,
                                          const job::ParallelText& text) {
  ParallelTextOptions options;
  options.source_paths = ListOf<std::string>(text.source_path());
  options.target_paths = ListOf<std::string>(text.target_path());
  options.source_name = text.source_name();
  options.target_name = text.target_name();
  options.label_name = text.label_name();
  options.skip_bad = context->skip_bad();
  if (options.source_name == options.target_name ||
      options.source_name == options.label_name ||
      options.target_name == options.label_name)
    return context->job().At(InvalidArgument("two fields have the same name"),
                             text, "source_name");
  PD_ASSIGN_OR_RETURN(options.source, TextOptionsOf(context, text.source(),
                                                    text.source_name()));
  if (!options.target_paths.empty()) {
    PD_ASSIGN_OR_RETURN(
        options.target,
        TextOptionsOf(context,
                      text.has_target() ? text.target() : text.source(),
                      text.target_name()));
  } else if (text.has_target()) {
    return context->job().At(
        InvalidArgument("target says how target_path is read, which is not "
                        "given"),
        text, "target");
  }
  auto dataset = OpenParallelText(options);
  if (!dataset.ok() && absl::IsInvalidArgument(dataset.status()))
    return context->job().At(dataset.status(), text);
  return dataset;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Vocabulary>> OpenContext::Words(
    const std::string& field, const SpecialTokens& special,
    const google::protobuf::Message& part) {
  PD_ASSIGN_OR_RETURN(auto known, vocabularies_->Find(field, special));
  if (known != nullptr) return known;
  if (is_training_ && may_build_) return nullptr;
  if (is_training_)
    return job_.At(
        InvalidArgument("the parts of a data set need the same vocabulary for "
                        "'%s': give its path",
                        field),
        part);

  if (!job_.proto().data().has_train())
    return job_.At(
        InvalidArgument("the vocabulary of '%s' is made of data.train, which "
                        "is not given: give its path",
                        field),
        part);
  PD_RETURN_IF_ERROR(
      OpenDataset(job_, job_.proto().data().train(), vocabularies_).status());
  PD_ASSIGN_OR_RETURN(known, vocabularies_->Find(field, special));
  if (known == nullptr)
    return job_.At(
        InvalidArgument("data.train has no texts '%s' to make a vocabulary of: "
                        "give its path",
                        field),
        part);
  return known;
}

absl::StatusOr<TextOptions> TextOptionsOf(OpenContext* context,
                                          const job::Text& text,
                                          const std::string& field) {
  PD_RETURN_IF_ERROR(CheckText(context->job(), text));
  const bool bert = text.tokenizer() == job::Tokenizer::wordpiece;
  TextOptions options;
  options.kind = KindOf(text.tokenizer());
  options.special = SpecialOf(text);
  options.model = text.model();
  options.lower = text.has_lower()
                      ? text.lower()
                      : bert || text.tokenizer() == job::Tokenizer::basic;
  options.add_bos = text.has_add_bos() ? text.add_bos() : bert;
  options.add_eos = text.has_add_eos() ? text.add_eos() : bert;
  options.max_len = text.max_len();
  options.min_freq = text.vocab().min_freq();
  options.max_size = text.vocab().max_size();
  if (text.vocab().has_path()) {
    if (text.vocab().has_max_size() || text.vocab().has_min_freq())
      return context->job().At(
          InvalidArgument("max_size and min_freq are for a vocabulary that is "
                          "made of data.train; '%s' is taken whole",
                          text.vocab().path()),
          text.vocab());
    PD_ASSIGN_OR_RETURN(Vocabulary words,
                        Vocabulary::Read(text.vocab().path(), options.special));
    options.vocabulary = std::make_shared<const Vocabulary>(std::move(words));
  } else if (options.kind != TokenizerKind::kByte &&
             options.kind != TokenizerKind::kSentencePiece) {
    PD_ASSIGN_OR_RETURN(options.vocabulary,
                        context->Words(field, options.special, text));
  }
  return options;
}

absl::StatusOr<TextOptions> TextOptionsOf(OpenContext* context,
                                          const job::LanguageModel& model,
                                          const std::string& field) {
  job::Text characters;
  characters.set_tokenizer(job::Tokenizer::character);
  return TextOptionsOf(context, model.has_text() ? model.text() : characters,
                       field);
}

absl::StatusOr<DatasetPtr> OpenTextOf(OpenContext* context,
                                      const job::DataSet& set) {
  return set.has_language_model()
             ? OpenLanguageModelOf(context, set.language_model())
             : OpenParallelOf(context, set.parallel_text());
}

}  // namespace pd
