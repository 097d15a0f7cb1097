// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugins.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/convert.h"
#include "libcore/plugin/declared_ops.h"
#include "libcore/plugin/kernel_operators.h"
#include "libcore/plugin/plugin_device.h"
#include "libcore/plugin/plugin_kernels.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {
namespace {

// Statuses by which the process of the trial ends; a plug-in's own exit has
// another one, most likely.
constexpr int kLoaded = 0, kRefused = 93;

// The error of the exception that is being handled.
absl::Status Thrown() {
  try {
    throw;
  } catch (const phi::enforce::EnforceNotMet& error) {
    return StatusOf(error);
  } catch (const std::exception& error) {
    return InvalidArgument("its initialiser threw: %s", OneLine(error));
  } catch (...) {
    return InvalidArgument("its initialiser threw something");
  }
}

absl::StatusOr<void*> Open(const std::string& path) {
  try {
    void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library != nullptr) return library;
  } catch (...) {
    return Thrown();
  }
  return InvalidArgument("%s", absl::string_view(::dlerror()));
}

// Memory that another process writes and this one reads.
class SharedText {
 public:
  SharedText() : file_(::memfd_create("pdkit-plugin", MFD_CLOEXEC)) {}
  ~SharedText() {
    if (file_ >= 0) ::close(file_);
  }
  int file() const { return file_; }
  std::string Read() const {
    std::string text(4096, '\0');
    const ssize_t bytes = ::pread(file_, text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return text;
  }

 private:
  int file_;
};

int report_file = -1;

[[noreturn]] void EndTrial(const absl::Status& status) {
  if (status.ok()) ::_exit(kLoaded);
  const std::string text =
      absl::StrCat(static_cast<int>(status.code()), " ", status.message());
  if (::write(report_file, text.data(), text.size()) < 0) ::_exit(kRefused);
  ::_exit(kRefused);
}

absl::Status OpenAndInitialise(const std::string& path) {
  PD_ASSIGN_OR_RETURN(void* library, Open(path));
  return AddDriver(library, path).status();
}

// An exception need not come to the handlers of Open: the C library declares
// that dlopen throws none. It ends here at the latest, in the handler below.
[[noreturn]] void RunTrial(const std::string& path, int errors) noexcept {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    ::signal(number, SIG_DFL);
  std::set_terminate([] { EndTrial(Thrown()); });
  EndTrial(OpenAndInitialise(path));
}

// The report of the trial's process, or how it ended.
absl::Status StatusOfTrial(int status, const SharedText& report,
                           const SharedText& errors) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kLoaded)
    return absl::OkStatus();
  const std::string text = report.Read();
  const size_t blank = text.find(' ');
  if (WIFEXITED(status) && WEXITSTATUS(status) == kRefused &&
      blank != std::string::npos)
    return absl::Status(static_cast<absl::StatusCode>(std::atoi(text.c_str())),
                        text.substr(blank + 1));
  std::string said(absl::StripAsciiWhitespace(errors.Read()));
  const bool foreign = absl::StrContains(said, "undefined symbol") &&
                       absl::StrContains(said, "paddle");
  if (!said.empty())
    said = absl::StrCat(": ", said.substr(said.find_last_of('\n') + 1));
  if (foreign)
    said +=
        "; was it built with PaddlePaddle's own headers? Compile it with "
        "those that 'pkg-config --variable=compat_cflags pdkit' names";
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return InvalidArgument("it crashes while it is loaded (SIG%s)%s",
                           name == nullptr ? "?" : name, said);
  }
  return InvalidArgument("it ends the process while it is loaded (status %d)%s",
                         WEXITSTATUS(status), said);
}

absl::Status TryToLoad(const std::string& path) {
  const SharedText report, errors;
  report_file = report.file();
  const pid_t child = ::fork();
  if (child < 0) return ErrnoToStatus(errno, "cannot start a process");
  if (child == 0) RunTrial(path, errors.file());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return ErrnoToStatus(errno, "cannot wait for a process");
  return StatusOfTrial(status, report, errors);
}

absl::StatusOr<std::string> RealPath(const std::string& file) {
  char path[PATH_MAX];
  if (::realpath(file.c_str(), path) == nullptr)
    return ErrnoToStatus(errno, "cannot be read");
  struct stat facts;
  if (::stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
    return InvalidArgument("it is no file; expected a shared library");
  return std::string(path);
}

absl::Status Load(const std::string& file) {
  static auto* const loaded = new std::set<std::string>;
  PD_ASSIGN_OR_RETURN(const std::string path, RealPath(file));
  if (loaded->count(path) > 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(CheckNewDeclarations().status());
  SetDeclaringFile(file);
  PD_RETURN_IF_ERROR(TryToLoad(path));
  PD_ASSIGN_OR_RETURN(void* library, Open(path));
  SetDeclaringFile("");
  PD_ASSIGN_OR_RETURN(const bool drives, AddDriver(library, file));
  PD_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                      CheckNewDeclarations());
  const NewKernels kernels = CheckNewKernels();
  if (names.empty() && kernels.names.empty() && !drives)
    return InvalidArgument(
        "it declares no operators, kernels or devices: expected PD_BUILD_OP, "
        "PD_REGISTER_KERNEL or InitPlugin in its source, and that it was built "
        "with the headers that 'pkg-config --variable=compat_cflags pdkit' "
        "names");
  const bool useless = names.empty() && !drives && kernels.useful == 0;
  if (useless && !kernels.unsuited.empty())
    return InvalidArgument("%s", kernels.unsuited[0]);
  if (useless)
    return InvalidArgument(
        "its kernels (%s) are of no operator here; expected names as in "
        "PaddlePaddle's kernels: 'add', 'matmul', 'softmax_grad'",
        absl::StrJoin(kernels.names, ", "));
  loaded->insert(path);
  for (const std::string& name : names)
    LogDebug("plug-in '%s': op '%s'", file, name);
  for (const std::string& name : kernels.names)
    LogDebug("plug-in '%s': kernel '%s'", file, name);
  for (const std::string& problem : kernels.unsuited)
    LogInfo("%s; it is left out", problem);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadPlugin(const std::string& file) {
  TellCrashes();
  const std::string context = absl::StrCat("plug-in '", file, "'");
  const absl::Status status = Load(file);
  return absl::StartsWith(status.message(), context)
             ? status
             : Annotate(status, context);
}

absl::Status LoadDevicePlugins() {
  const char* folder = std::getenv("CUSTOM_DEVICE_ROOT");
  if (folder == nullptr || *folder == '\0') return absl::OkStatus();
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error))
    if (it->path().extension() == ".so") files.push_back(it->path().string());
  if (error)
    return InvalidArgument("CUSTOM_DEVICE_ROOT: folder '%s': %s", folder,
                           error.message());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) PD_RETURN_IF_ERROR(LoadPlugin(file));
  return absl::OkStatus();
}

absl::Status AddPluginOps(OpRegistry* registry, bool prefer_kernels) {
  PD_RETURN_IF_ERROR(CheckNewDeclarations().status());
  CheckNewKernels();
  for (OpDef& def : CheckedOps()) {
    const std::string type = def.type();
    const absl::Status added = registry->Add(std::move(def));
    if (absl::IsAlreadyExists(added))
      return AlreadyExists(
          "%s: pdkit has an operator of this name; expected another one",
          FindCustomOp(type)->Describe());
    PD_RETURN_IF_ERROR(added);
  }
  for (OpDef& def : KernelOperators()) {
    // PaddlePaddle takes the kernel for its own operator of that name.
    const absl::Status added = registry->Add(std::move(def));
    if (!absl::IsAlreadyExists(added)) PD_RETURN_IF_ERROR(added);
  }
  return AttachPluginKernels(prefer_kernels, registry);
}

}  // namespace pd
