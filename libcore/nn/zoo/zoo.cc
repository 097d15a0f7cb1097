// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/zoo/zoo.h"

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/job_model.pb.h"
#include "libcore/nn/message_places.h"
#include "libcore/nn/zoo/zoo_files.h"

namespace pd {
namespace {

struct ZooFile {
  job::Zoo proto;
  MessagePlaces places;
};

// Every file of the zoo, read at first use.
struct LoadedZoo {
  absl::Status status;
  std::vector<std::unique_ptr<ZooFile>> files;
  std::map<std::string, const job::Block*, std::less<>> blocks;
};

absl::Status LoadFile(const ZooText& text, LoadedZoo* zoo) {
  auto file = std::make_unique<ZooFile>();
  const std::string path = absl::StrCat("zoo/", text.name);
  PD_RETURN_IF_ERROR(
      ReadTextMessage(text.text, path, &file->proto, &file->places.written));
  file->places.Note(file->proto);
  for (const job::Block& block : file->proto.block()) {
    const absl::Status fits = CheckRules(block, "block");
    if (!fits.ok()) return Annotate(fits, file->places.Where(block));
    if (!zoo->blocks.emplace(block.name(), &block).second)
      return Annotate(
          InvalidArgument("the zoo has two blocks '%s'", block.name()),
          file->places.Where(block));
  }
  zoo->files.push_back(std::move(file));
  return absl::OkStatus();
}

// Whether anybody has asked for the zoo: a job that does without does not pay
// for reading it.
std::atomic<bool> asked_for{false};

const LoadedZoo& TheZoo() {
  asked_for = true;
  static const LoadedZoo* const kZoo = [] {
    auto* zoo = new LoadedZoo;
    for (const ZooText& text : ZooFiles()) {
      zoo->status = LoadFile(text, zoo);
      if (!zoo->status.ok()) break;
    }
    return zoo;
  }();
  return *kZoo;
}

}  // namespace

absl::StatusOr<const job::Block*> FindZooBlock(absl::string_view name) {
  const LoadedZoo& zoo = TheZoo();
  PD_RETURN_IF_ERROR(zoo.status);
  const auto it = zoo.blocks.find(name);
  return it == zoo.blocks.end() ? nullptr : it->second;
}

std::vector<std::pair<std::string, std::string>> ZooNetworks() {
  std::vector<std::pair<std::string, std::string>> networks;
  for (const auto& [name, block] : TheZoo().blocks)
    if (block->has_about()) networks.emplace_back(name, block->about());
  return networks;
}

std::string ZooPlace(const google::protobuf::Message& part) {
  if (!asked_for) return "";
  for (const auto& file : TheZoo().files)
    if (file->places.Holds(part)) return file->places.Where(part);
  return "";
}

}  // namespace pd
