// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/initial_words.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/text_input.h"
#include "formats/word_vectors.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/tokenizer.h"
#include "libcore/data/vocabulary.h"
#include "libcore/model/edit_arrays.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

// Whether the token stands for no text, so that no file has a vector for it.
bool IsSpecial(const Vocabulary& words, int64_t number) {
  return number == words.pad() || number == words.unk() ||
         number == words.bos() || number == words.eos();
}

// The parameter's element type, where it is a matrix with enough rows.
absl::StatusOr<DType> EmbeddingType(const ProgramDesc& test,
                                    const InitialParameters& from,
                                    const Vocabulary& words, int64_t size) {
  const std::string& name = from.words->parameter;
  const VarDesc* const var = test.global().FindVar(name);
  if (var == nullptr || !var->persistable)
    return InvalidArgument(
        "word_vectors: the network has no parameter '%s'; "
        "it has %s",
        name, QuotedList(PersistableTensors(test)));
  if (var->shape.size() != 2 || !IsFloating(var->dtype))
    return InvalidArgument(
        "word_vectors: '%s' is %s%s; an embedding's weight is [words, numbers]",
        name, Name(var->dtype), ToString(var->shape));
  if (var->shape[1] != size)
    return InvalidArgument(
        "'%s' has %d numbers for each word; parameter '%s' has %d: an "
        "embedding_dim of %d fits",
        from.model, size, name, var->shape[1], size);
  if (var->shape[0] < words.size())
    return InvalidArgument(
        "parameter '%s' has %d rows; field '%s' has %d words", name,
        var->shape[0], from.words->field, words.size());
  return var->dtype;
}

// "'ant', 'bee', ... " of a list that may be long.
std::string FewOf(const std::vector<std::string>& words) {
  constexpr size_t kMost = 10;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(kMost, words.size()); ++i)
    shown.push_back(ShownText(words[i]));
  return absl::StrCat(absl::StrJoin(shown, ", "),
                      words.size() > kMost ? ", ..." : "");
}

// Rows of vectors, and which of them are set.
struct Rows {
  std::vector<float> values;
  std::vector<bool> found;
};

// The rows of the words themselves.
absl::Status ReadExact(absl::string_view text, const Vocabulary& words,
                       int64_t size, Rows* rows) {
  const auto place = [&](absl::string_view word) -> float* {
    const int64_t row = words.Find(word);
    if (row < 0 || rows->found[static_cast<size_t>(row)]) return nullptr;
    rows->found[static_cast<size_t>(row)] = true;
    return rows->values.data() + row * size;
  };
  return ReadWordVectors(text, size, place).status();
}

// The rows that are missing, by their words in lower case.
absl::Status ReadLowered(absl::string_view text, const Vocabulary& words,
                         int64_t size, Rows* rows) {
  std::map<std::string, std::vector<int64_t>> wanted;
  std::string lower;
  for (int64_t row = 0; row < words.size(); ++row) {
    const auto i = static_cast<size_t>(row);
    if (rows->found[i] || IsSpecial(words, row)) continue;
    lower.clear();
    LowerUtf8(words.tokens()[i], &lower);
    wanted[lower].push_back(row);
  }
  std::map<std::string, int64_t> first;  // row of each word that the file has
  const auto place = [&](absl::string_view word) -> float* {
    const auto rows_of = wanted.find(std::string(word));
    if (rows_of == wanted.end()) return nullptr;
    const int64_t row = rows_of->second.front();
    if (!first.emplace(rows_of->first, row).second) return nullptr;
    return rows->values.data() + row * size;
  };
  PD_RETURN_IF_ERROR(ReadWordVectors(text, size, place).status());
  for (const auto& [word, from] : first) {
    for (const int64_t row : wanted[word]) {
      rows->found[static_cast<size_t>(row)] = true;
      if (row != from)
        std::copy_n(rows->values.data() + from * size, size,
                    rows->values.data() + row * size);
    }
  }
  return absl::OkStatus();
}

// Says or refuses what the file does not have.
absl::Status ReportWords(const InitialParameters& from, const Vocabulary& words,
                         const Rows& rows, int64_t* taken) {
  std::vector<std::string> missing;
  int64_t texts = 0;
  *taken = 0;
  for (int64_t row = 0; row < words.size(); ++row) {
    const auto i = static_cast<size_t>(row);
    *taken += rows.found[i] ? 1 : 0;
    if (IsSpecial(words, row)) continue;
    ++texts;
    if (!rows.found[i]) missing.push_back(words.tokens()[i]);
  }
  const auto count = static_cast<int64_t>(missing.size());
  if (count == texts)
    return InvalidArgument("'%s' has none of the %d words of field '%s': %s",
                           from.model, texts, from.words->field,
                           FewOf(missing));
  const std::string text = absl::StrFormat(
      "'%s' has no vector for %d of %d words of field '%s': %s", from.model,
      count, texts, from.words->field, FewOf(missing));
  if (count > 0 && from.missing == InitialParameters::Missing::kFail)
    return InvalidArgument("%s", text);
  LogInfo(
      "word vectors from '%s': %d of %d words of field '%s' taken into '%s'",
      from.model, texts - count, texts, from.words->field,
      from.words->parameter);
  if (count > 0 && from.missing == InitialParameters::Missing::kWarn)
    LogWarning("%s: their initial values are kept", text);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TakeWords(const ProgramDesc& test,
                                  const InitialParameters& from,
                                  const FieldVocabularies& vocabularies,
                                  Session* session) {
  if (!from.rename.empty() || !from.skip.empty() || !from.transpose.empty())
    return InvalidArgument(
        "word_vectors take one parameter; rename, skip and transpose are for "
        "models");
  const auto words = vocabularies.find(from.words->field);
  if (words == vocabularies.end())
    return InvalidArgument(
        "word_vectors: field '%s' of data.train has no vocabulary",
        from.words->field);
  const Vocabulary& vocabulary = *words->second;
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadInput(from.model));
  const std::string path = absl::StrCat("'", from.model, "'");
  const auto size = WordVectorSize(file.view());
  if (!size.ok()) return Annotate(size.status(), path);
  PD_ASSIGN_OR_RETURN(const DType dtype,
                      EmbeddingType(test, from, vocabulary, *size));
  const std::string& name = from.words->parameter;
  PD_ASSIGN_OR_RETURN(Array value, session->scope().Get(name));
  PD_ASSIGN_OR_RETURN(value, InFloatingType(value, DType::kFloat32));
  Rows rows;
  rows.values.assign(value.data<float>(), value.data<float>() + value.size());
  rows.found.assign(static_cast<size_t>(vocabulary.size()), false);
  absl::Status read = ReadExact(file.view(), vocabulary, *size, &rows);
  if (read.ok() && from.words->lower)
    read = ReadLowered(file.view(), vocabulary, *size, &rows);
  if (!read.ok()) return Annotate(read, path);
  int64_t taken = 0;
  PD_RETURN_IF_ERROR(ReportWords(from, vocabulary, rows, &taken));
  PD_ASSIGN_OR_RETURN(
      value, InFloatingType(MakeArray(value.shape, rows.values), dtype));
  PD_RETURN_IF_ERROR(session->scope().Set(name, value));
  return taken;
}

}  // namespace

absl::StatusOr<int64_t> TakeWordVectors(const ProgramDesc& test,
                                        const InitialParameters& from,
                                        const FieldVocabularies& vocabularies,
                                        Session* session) {
  auto taken = TakeWords(test, from, vocabularies, session);
  // A file that cannot be read is no mistake of the job.
  if (from.place.empty() || !absl::IsInvalidArgument(taken.status()))
    return taken;
  return Annotate(taken.status(), from.place);
}

}  // namespace pd
