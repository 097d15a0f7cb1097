// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/block_use.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/layer_part.h"
#include "libcore/nn/zoo/zoo.h"

namespace pd {
namespace {

// Where the layer's name ends in "features.0.conv2d.groups": names may hold
// dots.
size_t EndOfName(const std::string& path, const job::Block& block) {
  size_t end = std::min(path.find('.'), path.size());
  for (const job::Layer& layer : block.layer())
    if (absl::StartsWith(path, layer.name() + "."))
      end = std::max(end, layer.name().size());
  return end;
}

// The use of a block that `path` leads to from `message`, where it is written:
// "block", "rnn.cell.block". Null when there is none.
job::UseBlock* FindUse(absl::string_view path,
                       google::protobuf::Message* message) {
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const auto* field =
        message->GetDescriptor()->FindFieldByName(std::string(part));
    if (field == nullptr || field->is_repeated() ||
        field->cpp_type() != field->CPPTYPE_MESSAGE ||
        !message->GetReflection()->HasField(*message, field))
      return nullptr;
    message = message->GetReflection()->MutableMessage(message, field);
  }
  return message->GetDescriptor() == job::UseBlock::descriptor()
             ? static_cast<job::UseBlock*>(message)
             : nullptr;
}

// "stage1.block.set[channels]": hands the value on to an argument of a use of
// another block; so does "decoder.rnn.cell.block.set[channels]". False when
// `path` is no such path.
bool HandOn(const std::string& path, const std::string& value,
            job::Block* block) {
  constexpr absl::string_view kSet = ".set[";
  const size_t at = path.find(std::string(kSet));
  if (at == std::string::npos || path.back() != ']') return false;
  const size_t begin = at + kSet.size();
  const std::string name = path.substr(begin, path.size() - 1 - begin) + "=";
  const absl::string_view holder = absl::string_view(path).substr(0, at);
  std::map<std::string, int> numbers;
  for (job::Layer& layer : *block->mutable_layer()) {
    const std::string called = NumberedName(layer, &numbers);
    absl::string_view rest = holder;
    if (!absl::ConsumePrefix(&rest, called + ".")) continue;
    job::UseBlock* use = FindUse(rest, &layer);
    if (use == nullptr) continue;
    for (std::string& set : *use->mutable_set()) {
      if (!absl::StartsWith(set, name)) continue;
      set = name + value;
      return true;
    }
    use->add_set(name + value);
    return true;
  }
  return false;
}

// Whether `argument` takes layers away where it is `value`. They are noted.
absl::StatusOr<bool> LeavesOut(const job::Argument& argument,
                               absl::string_view value, const job::Block& block,
                               std::set<std::string>* left_out) {
  if (argument.zero_leaves_out_size() == 0 ||
      absl::StripAsciiWhitespace(value) != "0")
    return false;
  std::map<std::string, int> numbers;
  std::vector<std::string> known;
  for (const job::Layer& layer : block.layer())
    known.push_back(NumberedName(layer, &numbers));
  for (const std::string& name : argument.zero_leaves_out()) {
    if (std::count(known.begin(), known.end(), name) == 0) {
      const std::string nearest = Nearest(name, known);
      return InvalidArgument(
          "argument '%s' of block '%s' leaves out '%s', which is no layer of "
          "it%s",
          argument.name(), block.name(), name,
          nearest.empty() ? ""
                          : absl::StrCat(", did you mean '", nearest, "'?"));
    }
    left_out->insert(name);
  }
  return true;
}

}  // namespace

absl::StatusOr<const job::Block*> FindBlock(const LoadedJob& job,
                                            const std::string& use,
                                            bool from_zoo) {
  std::vector<std::string> known;
  if (!from_zoo) {
    for (const job::Block& b : job.proto().model().block()) {
      known.push_back(b.name());
      if (b.name() == use) return &b;
    }
  }
  PD_ASSIGN_OR_RETURN(const job::Block* zoo, FindZooBlock(use));
  if (zoo != nullptr) return zoo;
  for (const auto& network : ZooNetworks()) known.push_back(network.first);
  const std::string nearest = Nearest(use, known);
  return InvalidArgument(
      "there is no block '%s'%s", use,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

absl::Status SetArguments(const job::UseBlock& use, const job::Block& written,
                          job::Block* block, std::set<std::string>* left_out) {
  for (const std::string& text : use.set()) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos)
      return InvalidArgument("'set' is '%s'; expected NAME=VALUE", text);
    const std::string name = text.substr(0, equals);
    const job::Argument* argument = nullptr;
    std::vector<std::string> known;
    for (const job::Argument& a : written.argument()) {
      known.push_back(a.name());
      if (a.name() == name) argument = &a;
    }
    if (argument == nullptr) {
      const std::string nearest = Nearest(name, known);
      return InvalidArgument(
          "block '%s' has no argument '%s'%s", written.name(), name,
          nearest.empty() ? ""
                          : absl::StrCat(", did you mean '", nearest, "'?"));
    }
    PD_ASSIGN_OR_RETURN(
        const bool leaves_out,
        LeavesOut(*argument, text.substr(equals + 1), written, left_out));
    if (leaves_out) continue;
    for (const std::string& path : argument->sets()) {
      if (HandOn(path, text.substr(equals + 1), block)) continue;
      const size_t name_end = EndOfName(path, *block);
      Places places;
      const absl::Status status =
          SetByPath(absl::StrCat("layer[", path.substr(0, name_end), "]",
                                 path.substr(name_end)),
                    text.substr(equals + 1), "", block, &places);
      if (!status.ok())
        return Annotate(
            status, absl::StrCat("argument '", name, "' of block '",
                                 written.name(), "', which sets '", path, "'"));
    }
  }
  return CheckRules(*block, "block");
}

absl::Status CheckBlockInputs(const job::UseBlock& use, const job::Block& block,
                              const std::string& layer,
                              const std::vector<LayerInput>& inputs) {
  const auto least = static_cast<size_t>(std::max(1, block.input_size()));
  const size_t most = least + static_cast<size_t>(block.optional_input_size());
  if (use.repeat() > 1 && least != 1)
    return InvalidArgument(
        "block '%s' has %d inputs (to repeat it, it needs one); layer '%s' "
        "names %d",
        block.name(), least, layer, inputs.size());
  if (inputs.size() < least || inputs.size() > most)
    return InvalidArgument(
        "block '%s' has %d inputs%s; layer '%s' names %d", block.name(), least,
        most > least ? absl::StrCat(" and ", most - least, " optional ones")
                     : "",
        layer, inputs.size());
  for (size_t i = 0; i < least; ++i)
    if (inputs[i].left_out())
      return InvalidArgument(
          "layer '%s': input %d of block '%s' is not optional, and what is "
          "named for it is left out in this use",
          layer, i + 1, block.name());
  return absl::OkStatus();
}

void BlockWeights::Enter(
    const google::protobuf::RepeatedPtrField<job::Layer>& layers,
    const std::string& prefix) {
  for (const job::Layer& layer : layers)
    if (layer.block().has_weights_of())
      lenders_.insert(prefix + layer.block().weights_of());
}

absl::StatusOr<const std::vector<BlockWeights::Copy>*> BlockWeights::Lender(
    const job::UseBlock& use, const std::string& layer) const {
  const std::string name =
      layer.substr(0, layer.rfind('/') + 1) + use.weights_of();
  const auto found = uses_.find(name);
  if (found == uses_.end())
    return InvalidArgument(
        "layer '%s' is to have the weights of '%s'; no layer of this name uses "
        "a block before it",
        layer, use.weights_of());
  const Use& lender = found->second;
  if (lender.block != use.use())
    return InvalidArgument(
        "layer '%s' uses block '%s'; '%s', whose weights it is to have, uses "
        "'%s'",
        layer, use.use(), use.weights_of(), lender.block);
  const size_t copies = lender.copies.size();
  if (copies != 1 && copies != static_cast<size_t>(use.repeat()))
    return InvalidArgument(
        "layer '%s' repeats its block %d times; '%s', whose weights it is to "
        "have, does so %d times",
        layer, use.repeat(), use.weights_of(), copies);
  return &lender.copies;
}

}  // namespace pd
