// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/text_format.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_check.h"
#include "libcore/nn/job_inherit.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/nn/job_text.h"
#include "libcore/nn/message_places.h"
#include "libcore/nn/saved_networks.h"

namespace pd {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

namespace {

// A job is written by hand or by a small program; what is larger is another
// file given by mistake.
constexpr size_t kMaxBytes = size_t{16} << 20;

}  // namespace

struct LoadedJob::State {
  std::string path;
  std::vector<std::string> overrides;
  job::Job proto;
  MessagePlaces places;
  std::shared_ptr<const SavedNetworks> networks;
  std::shared_ptr<const SavedPrograms> programs;
};

// Builds a LoadedJob step by step.
class JobLoader {
 public:
  static absl::StatusOr<LoadedJob> Load(
      absl::string_view text, const std::string& path,
      const std::vector<std::string>& overrides) {
    auto state = std::make_shared<LoadedJob::State>();
    state->path = path;
    state->overrides = overrides;
    PD_RETURN_IF_ERROR(
        ReadTextMessage(text, path, &state->proto, &state->places.written));
    if (state->proto.ByteSizeLong() == 0 && overrides.empty())
      return InvalidArgument("%s: the job is empty; pd-job(5) shows one", path);
    for (const std::string& one : overrides)
      PD_RETURN_IF_ERROR(
          ApplyOverride(one, &state->proto, &state->places.written));
    if (!state->proto.has_name())
      state->proto.set_name(std::filesystem::path(path).stem().string());
    const std::string folder =
        std::filesystem::path(path).parent_path().string();
    state->places.Note(state->proto);
    FillDefaultPaths(&state->proto);
    JoinFolder(folder, state.get());
    if (state->proto.data().has_train() && state->proto.data().has_eval())
      InheritFields(state->proto.mutable_data());
    return Finish(std::move(state));
  }

  // The job after `edit` of its parts and places.
  template <typename Edit>
  static absl::StatusOr<LoadedJob> Edited(const LoadedJob& job,
                                          const Edit& edit) {
    auto state = CopyOf(job);
    PD_RETURN_IF_ERROR(edit(&state->proto, &state->places.written));
    return Finish(std::move(state));
  }

  // The job with other opened files, as `set` changes its state.
  template <typename Set>
  static LoadedJob With(const LoadedJob& job, const Set& set) {
    auto state = CopyOf(job);
    state->places.Note(state->proto);
    set(state.get());
    LoadedJob with;
    with.state_ = std::move(state);
    return with;
  }

  static std::vector<OpenSize> Sizes(const LoadedJob& job) {
    return FindSizes(job.state_->proto, job.state_->places.written);
  }

  // Calls `edit` on every string that names a file.
  template <typename Edit>
  static void EditPaths(Message* message, const Edit& edit) {
    const Reflection* reflection = message->GetReflection();
    std::vector<const FieldDescriptor*> fields;
    reflection->ListFields(*message, &fields);
    for (const FieldDescriptor* field : fields) {
      const int count =
          field->is_repeated() ? reflection->FieldSize(*message, field) : 1;
      for (int i = 0; i < count; ++i) {
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
          EditPaths(field->is_repeated()
                        ? reflection->MutableRepeatedMessage(message, field, i)
                        : reflection->MutableMessage(message, field),
                    edit);
        } else if (field->options().GetExtension(job::rule).path()) {
          EditPath(message, field, i, edit);
        }
      }
    }
  }

 private:
  // The job as it was read; the places of its parts are the caller's to note.
  static std::shared_ptr<LoadedJob::State> CopyOf(const LoadedJob& job) {
    const LoadedJob::State& before = *job.state_;
    auto state = std::make_shared<LoadedJob::State>();
    state->path = before.path;
    state->overrides = before.overrides;
    state->proto = before.proto;
    state->places.written = before.places.written;
    state->networks = before.networks;
    state->programs = before.programs;
    return state;
  }

  template <typename Edit>
  static void EditPath(Message* message, const FieldDescriptor* field, int i,
                       const Edit& edit) {
    const Reflection* reflection = message->GetReflection();
    if (field->is_repeated()) {
      reflection->SetRepeatedString(
          message, field, i,
          edit(*message, field, i,
               reflection->GetRepeatedString(*message, field, i)));
    } else {
      reflection->SetString(
          message, field,
          edit(*message, field, -1, reflection->GetString(*message, field)));
    }
  }

  static absl::StatusOr<LoadedJob> Finish(
      std::shared_ptr<LoadedJob::State> state) {
    state->places.Note(state->proto);
    LoadedJob job;
    job.state_ = std::move(state);
    PD_RETURN_IF_ERROR(CheckJob(job));
    return job;
  }

  // Writes out the paths that are left to their defaults: they start at this
  // job's folder, and a run keeps its job in another.
  static void FillDefaultPaths(Message* message) {
    const Reflection* reflection = message->GetReflection();
    for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor* field = message->GetDescriptor()->field(i);
      if (field->is_repeated()) {
        if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
        for (int j = 0; j < reflection->FieldSize(*message, field); ++j)
          FillDefaultPaths(
              reflection->MutableRepeatedMessage(message, field, j));
      } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        if (reflection->HasField(*message, field))
          FillDefaultPaths(reflection->MutableMessage(message, field));
      } else if (field->has_default_value() &&
                 field->options().GetExtension(job::rule).path() &&
                 !reflection->HasField(*message, field)) {
        reflection->SetString(message, field, field->default_value_string());
      }
    }
  }

  // Joins file paths with the folder.
  static void JoinFolder(const std::string& folder, LoadedJob::State* state) {
    EditPaths(&state->proto, [&](const Message& message,
                                 const FieldDescriptor* field, int i,
                                 const std::string& file) {
      std::string where =
          JoinPath(state->places.PathOf(message), field->name());
      if (i >= 0) where = ElementPath(where, i);
      const auto place = state->places.written.find(where);
      const bool typed = place != state->places.written.end() &&
                         absl::StartsWith(place->second, "-o ");
      // "-" is standard input, wherever it is read.
      if (file.empty() || file == "-" || folder.empty() || typed) return file;
      return (std::filesystem::path(folder) / file).lexically_normal().string();
    });
  }
};

const job::Job& LoadedJob::proto() const { return state_->proto; }

const std::string& LoadedJob::path() const { return state_->path; }

const SavedNetworks& LoadedJob::networks() const {
  static const auto* const kNone = new SavedNetworks;
  return state_->networks == nullptr ? *kNone : *state_->networks;
}

const SavedPrograms* LoadedJob::programs() const {
  return state_->programs.get();
}

std::string LoadedJob::Where(const Message& part,
                             absl::string_view field) const {
  const std::string place = state_->places.Where(part, field);
  return place.empty() ? state_->path : place;
}

absl::Status LoadedJob::At(const absl::Status& status, const Message& part,
                           absl::string_view field) const {
  return status.ok() ? status : Annotate(status, Where(part, field));
}

absl::Status LoadedJob::Require(const std::vector<std::string>& fields,
                                absl::string_view who) const {
  for (const std::string& path : fields) {
    // A saved program has its own.
    if (proto().has_program() && (path == "loss" || path == "optimizer"))
      continue;
    const Message* message = &state_->proto;
    for (absl::string_view name : absl::StrSplit(path, '.')) {
      const FieldDescriptor* field =
          message->GetDescriptor()->FindFieldByName(std::string(name));
      PD_INVARIANT(field != nullptr);
      const Reflection* reflection = message->GetReflection();
      const bool there = field->is_repeated()
                             ? reflection->FieldSize(*message, field) > 0
                             : reflection->HasField(*message, field);
      if (!there && path == "optimizer" && proto().phase_size() > 0)
        return At(InvalidArgument("the job has a 'phase'; %s needs one "
                                  "'optimizer' for all losses",
                                  who),
                  proto().phase(0));
      if (!there)
        return At(
            InvalidArgument("the job has no '%s'; %s needs it", path, who),
            *message);
      if (!field->is_repeated())
        message = &reflection->GetMessage(*message, field);
    }
  }
  return absl::OkStatus();
}

std::string LoadedJob::EffectiveText() const {
  job::Job copy = state_->proto;
  JobLoader::EditPaths(&copy, [](const Message&, const FieldDescriptor*, int,
                                 const std::string& file) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(file, error);
    return error || file.empty() || file == "-"
               ? file
               : absolute.lexically_normal().string();
  });
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  printer.PrintToString(copy, &text);
  std::string head = absl::StrCat("# The job as it was run: ", state_->path);
  for (const std::string& one : state_->overrides)
    absl::StrAppend(&head, "\n#   -o ",
                    absl::StrReplaceAll(one, {{"\n", " "}}));
  return absl::StrCat(head, "\n", text);
}

absl::StatusOr<LoadedJob> EditJob(const LoadedJob& job,
                                  const std::function<void(job::Job*)>& edit) {
  return JobLoader::Edited(job, [&](job::Job* proto, Places*) {
    edit(proto);
    return absl::OkStatus();
  });
}

LoadedJob WithNetworks(const LoadedJob& job, SavedNetworks networks) {
  auto kept = std::make_shared<const SavedNetworks>(std::move(networks));
  return JobLoader::With(job, [&](auto* state) { state->networks = kept; });
}

LoadedJob WithPrograms(const LoadedJob& job, SavedPrograms programs) {
  auto kept = std::make_shared<const SavedPrograms>(std::move(programs));
  return JobLoader::With(job, [&](auto* state) { state->programs = kept; });
}

std::vector<OpenSize> OpenSizes(const LoadedJob& job) {
  return JobLoader::Sizes(job);
}

absl::StatusOr<LoadedJob> FillSizes(const LoadedJob& job, const SizeFn& size) {
  return JobLoader::Edited(job, [&](job::Job* proto, Places* places) {
    return SetSizes(size, proto, places);
  });
}

absl::StatusOr<LoadedJob> ParseJob(absl::string_view text,
                                   const std::string& path,
                                   const std::vector<std::string>& overrides) {
  if (text.size() > kMaxBytes)
    return InvalidArgument("%s: %d bytes are too many for a job (at most %d)",
                           path, text.size(), kMaxBytes);
  return JobLoader::Load(text, path, overrides);
}

absl::StatusOr<LoadedJob> ReadJob(const std::string& path,
                                  const std::vector<std::string>& overrides) {
  PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadFile(path));
  return ParseJob(bytes.view(), path, overrides);
}

}  // namespace pd
