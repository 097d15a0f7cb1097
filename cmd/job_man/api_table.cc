// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_man/api_table.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/descriptor.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/zoo/zoo.h"

namespace pd {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr absl::string_view kZoo = "zoo";
constexpr absl::string_view kOperator = "op/";
constexpr absl::string_view kInitializer =
    "model.layer.linear.weight_attr.initializer";

// Where the kinds of a namespace stand in a job.
const std::map<std::string, std::vector<std::string>>& Places() {
  static const auto* const kPlaces =
      new std::map<std::string, std::vector<std::string>>{
          {"paddle.nn", {"model.layer", "loss"}},
          {"paddle.nn.functional", {"model.layer", "loss"}},
          {"paddle.nn.initializer", {std::string(kInitializer)}},
          {"paddle.optimizer", {"optimizer"}},
          {"paddle.optimizer.lr", {"optimizer.lr"}},
          {"paddle.regularizer", {"optimizer.weight_decay"}},
          {"paddle.metric", {"metric"}},
          {"paddle.vision.models", {std::string(kZoo)}},
          {"paddle.vision.datasets", {"data.train"}},
          {"paddle.vision.transforms", {"data.train.transform"}},
          {"paddle.text", {"model.layer"}},
          {"paddle.text.datasets", {"data.train"}},
          {"paddle.io", {"data.train"}},
      };
  return *kPlaces;
}

struct ApiEntry {
  std::string space, name;
  bool later = false;
};

// By namespace and name: what aliases.txt says, or the operator types of
// functions.txt in the same form.
using Answers = std::map<std::string, std::string>;

enum class Answer { kHave, kHaveNot, kPythonOnly };

struct Row {
  ApiEntry name;
  Answer answer = Answer::kHaveNot;
  std::string text;  // the field, or why there is none
};

const FieldDescriptor* FindPath(absl::string_view path) {
  const Descriptor* type = job::Job::descriptor();
  const FieldDescriptor* field = nullptr;
  for (absl::string_view part : absl::StrSplit(path, '.')) {
    if (type == nullptr) return nullptr;
    field = type->FindFieldByName(std::string(part));
    if (field == nullptr) return nullptr;
    type = field->message_type();
  }
  return field;
}

std::vector<std::string> Kinds(const std::string& place) {
  std::vector<std::string> kinds;
  if (place == kZoo) {
    for (const auto& [network, about] : ZooNetworks()) kinds.push_back(network);
    return kinds;
  }
  const FieldDescriptor* field = FindPath(place);
  PD_INVARIANT(field != nullptr && field->message_type() != nullptr);
  const Descriptor* type = field->message_type();
  for (int i = 0; i < type->oneof_decl_count(); ++i)
    for (int k = 0; k < type->oneof_decl(i)->field_count(); ++k)
      kinds.push_back(type->oneof_decl(i)->field(k)->name());
  return kinds;
}

// "BCELoss", "bce_loss" -> "bce"; "CyclicLR", "cyclic" -> "cyclic".
std::string Bare(absl::string_view name) {
  std::string bare =
      absl::StrReplaceAll(absl::AsciiStrToLower(name), {{"_", ""}});
  absl::string_view view = bare;
  if (!absl::ConsumeSuffix(&view, "loss")) absl::ConsumeSuffix(&view, "lr");
  return std::string(view);
}

std::string Shown(absl::string_view path) {
  absl::string_view rest = path;
  if (absl::ConsumePrefix(&rest, kOperator))
    return absl::StrCat("`", rest, "`");
  if (absl::ConsumePrefix(&rest, "zoo/"))
    return absl::StrCat("`block { use: \"", rest, "\" }`");
  if (absl::ConsumePrefix(&rest, kInitializer))
    return absl::StrCat("`initializer", rest, "`");
  if (absl::ConsumePrefix(&rest, "data.train."))
    return absl::StrCat("`data.train.", rest, "`");
  absl::ConsumePrefix(&rest, "model.layer.");
  return rest.size() < path.size() ? absl::StrCat("`layer.", rest, "`")
                                   : absl::StrCat("`", path, "`");
}

// A field of the schema, a network of the zoo or an operator.
bool Exists(absl::string_view path, const OpRegistry& operators) {
  absl::string_view network = path, type = path;
  if (absl::ConsumePrefix(&type, kOperator))
    return operators.Find(type) != nullptr;
  if (!absl::ConsumePrefix(&network, "zoo/")) return FindPath(path) != nullptr;
  const std::vector<std::string> networks = Kinds(std::string(kZoo));
  return std::find(networks.begin(), networks.end(), network) != networks.end();
}

Row Search(const ApiEntry& name, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    for (const std::string& kind : Kinds(place)) {
      if (Bare(kind) != Bare(name.name)) continue;
      const absl::string_view between = place == kZoo ? "/" : ".";
      return {name, Answer::kHave, Shown(absl::StrCat(place, between, kind))};
    }
  }
  return {name, Answer::kHaveNot, ""};
}

Row FromAnswer(const ApiEntry& name, absl::string_view answer,
               const OpRegistry& operators) {
  if (absl::ConsumePrefix(&answer, "- "))
    return {name, Answer::kPythonOnly, std::string(answer)};
  if (absl::ConsumePrefix(&answer, "@ "))
    return {name, Answer::kHave, std::string(answer)};
  absl::ConsumePrefix(&answer, "= ");
  std::vector<std::string> shown;
  for (absl::string_view path :
       absl::StrSplit(answer, ' ', absl::SkipEmpty())) {
    std::string full(path);
    if (absl::StartsWith(path, "layer.")) full = absl::StrCat("model.", path);
    if (!Exists(full, operators))
      return {name, Answer::kHaveNot, absl::StrCat(" (no ", Shown(full), ")")};
    shown.push_back(Shown(full));
  }
  return {name, Answer::kHave, absl::StrJoin(shown, ", ")};
}

bool IsComment(absl::string_view line) {
  return line.empty() || line[0] == '#';
}

absl::StatusOr<std::vector<ApiEntry>> ReadNames(absl::string_view text) {
  std::vector<ApiEntry> names;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (IsComment(line)) continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const bool later = words.size() == 3 && words[2] == "later";
    if (words.size() != 2 && !later)
      return InvalidArgument(
          "'%s' is not a namespace, a name and perhaps 'later'", line);
    names.push_back({words[0], words[1], later});
  }
  return names;
}

absl::Status CheckKnown(absl::string_view line, const std::string& full,
                        const std::set<std::string>& known) {
  return known.count(full) > 0
             ? absl::OkStatus()
             : InvalidArgument("'%s': there is no such name", line);
}

// "NAME = PATH...", "NAME @ TEXT", "NAME - REASON".
absl::Status ReadAliases(absl::string_view text,
                         const std::set<std::string>& known, Answers* answers) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (IsComment(line)) continue;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    PD_RETURN_IF_ERROR(CheckKnown(line, parts.first, known));
    const std::string sign = parts.second.substr(0, 2);
    if (sign != "= " && sign != "@ " && sign != "- ")
      return InvalidArgument(
          "'%s' is not 'NAME = PATH', 'NAME @ TEXT' or 'NAME - REASON'", line);
    (*answers)[parts.first] = parts.second;
  }
  return absl::OkStatus();
}

// "NAME TYPE...".
absl::Status ReadFunctions(absl::string_view text,
                           const std::set<std::string>& known,
                           Answers* answers) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (IsComment(line)) continue;
    std::vector<std::string> words = absl::StrSplit(line, ' ');
    PD_RETURN_IF_ERROR(CheckKnown(line, words[0], known));
    std::string& answer = (*answers)[words[0]] = "=";
    for (size_t i = 1; i < words.size(); ++i)
      absl::StrAppend(&answer, " ", kOperator, words[i]);
  }
  return absl::OkStatus();
}

std::vector<std::string> Spaces(const std::vector<Row>& rows) {
  std::vector<std::string> spaces;
  for (const Row& row : rows)
    if (std::find(spaces.begin(), spaces.end(), row.name.space) == spaces.end())
      spaces.push_back(row.name.space);
  return spaces;
}

// One row of the counts; `space` "" is all of them.
std::string CountRow(const std::vector<Row>& rows, const std::string& space) {
  int have = 0, have_not = 0, python = 0, later = 0, later_have = 0;
  for (const Row& row : rows) {
    if (!space.empty() && row.name.space != space) continue;
    if (row.answer == Answer::kPythonOnly) {
      ++python;
    } else if (row.name.later) {
      ++later;
      later_have += row.answer == Answer::kHave;
    } else {
      ++(row.answer == Answer::kHave ? have : have_not);
    }
  }
  return absl::StrCat(
      space.empty() ? "**all**" : "`" + space + "`", " | ", have, " | ",
      have_not, " | ", python, " | ",
      later == 0 ? "-" : absl::StrCat(later_have, " of ", later));
}

ApiTable Write(const std::vector<Row>& rows) {
  ApiTable table;
  table.counts =
      "| names of | have | have not | for Python only | of later versions |\n"
      "|---|---|---|---|---|\n";
  std::vector<std::string> spaces = Spaces(rows);
  for (const std::string& space : spaces) {
    absl::StrAppend(&table.counts, "| ", CountRow(rows, space), " |\n");
    absl::StrAppend(&table.names, "\n## ", space,
                    "\n\n| name | in a job |\n|---|---|\n");
    for (const Row& row : rows) {
      if (row.name.space != space) continue;
      const std::string text = row.answer == Answer::kHave ? row.text
                               : row.answer == Answer::kHaveNot
                                   ? "**have not**" + row.text
                                   : "(Python: " + row.text + ")";
      absl::StrAppend(&table.names, "| ", row.name.name,
                      row.name.later ? " (after 2.3)" : "", " | ", text,
                      " |\n");
    }
  }
  absl::StrAppend(&table.counts, "| ", CountRow(rows, ""), " |\n");
  return table;
}

}  // namespace

absl::StatusOr<ApiTable> MakeApiTable(const ApiFiles& files,
                                      const OpRegistry& operators) {
  PD_ASSIGN_OR_RETURN(const auto names, ReadNames(files.names));
  std::set<std::string> known;
  for (const ApiEntry& name : names)
    known.insert(absl::StrCat(name.space, ".", name.name));
  Answers answers;
  PD_RETURN_IF_ERROR(ReadFunctions(files.functions, known, &answers));
  PD_RETURN_IF_ERROR(ReadAliases(files.aliases, known, &answers));
  std::vector<Row> rows;
  for (const ApiEntry& name : names) {
    const auto answer = answers.find(absl::StrCat(name.space, ".", name.name));
    const auto places = Places().find(name.space);
    if (answer != answers.end())
      rows.push_back(FromAnswer(name, answer->second, operators));
    else if (places != Places().end())
      rows.push_back(Search(name, places->second));
    else
      rows.push_back({name, Answer::kHaveNot, ""});
  }
  return Write(rows);
}

}  // namespace pd
