// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/window_meter.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/clock.h"

namespace pd {
namespace {

constexpr char kPowercap[] = "/sys/class/powercap";

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

bool ReadNumber(const std::string& path, double* number) {
  std::ifstream file(path);
  return static_cast<bool>(file >> *number);
}

}  // namespace

WindowMeter::WindowMeter()
    : statm_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {
  FindEnergy();
}

WindowMeter::~WindowMeter() {
  if (statm_ >= 0) close(statm_);
}

// RAPL's domains, such as a package and the memory beside it.
void WindowMeter::FindEnergy() {
  std::error_code error;
  std::filesystem::directory_iterator it(kPowercap, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string folder = it->path().string();
    if (!absl::StrContains(folder, "rapl:")) continue;
    Energy energy;
    energy.file = folder + "/energy_uj";
    double now = 0;
    std::ifstream name(folder + "/name");
    if (!(name >> energy.name)) continue;
    if (!ReadNumber(energy.file, &now)) {
      no_energy_ = "not permitted to read RAPL's counters";
      continue;
    }
    ReadNumber(folder + "/max_energy_range_uj", &energy.range);
    energies_.push_back(std::move(energy));
  }
  if (energies_.empty() && no_energy_.empty())
    no_energy_ = "this machine shows no RAPL counters";
}

double WindowMeter::ProcessSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

double WindowMeter::ResidentMegabytes() const {
  char text[128] = {};
  if (statm_ < 0 || pread(statm_, text, sizeof(text) - 1, 0) <= 0) return 0;
  unsigned long long size = 0, resident = 0;
  if (std::sscanf(text, "%llu %llu", &size, &resident) != 2) return 0;
  static const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return static_cast<double>(resident) * page / 1e6;
}

WindowMeter::SystemTimes WindowMeter::ReadSystemTimes() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  SystemTimes times;
  file >> cpu;
  double ticks = 0;
  // user nice system idle iowait irq softirq steal; what follows is in user.
  for (int i = 0; i < 8 && file >> ticks; ++i)
    (i == 3 || i == 4 ? times.idle : times.busy) += ticks;
  return times;
}

void WindowMeter::Start() {
  counters_.Start();
  for (Energy& energy : energies_) ReadNumber(energy.file, &energy.begin);
  system_ = ReadSystemTimes();
  process_ = ProcessSeconds();
  wall_ = SteadySeconds();
}

std::vector<std::pair<std::string, std::string>> WindowMeter::Stop() {
  std::vector<std::pair<std::string, std::string>> facts;
  const double wall = SteadySeconds() - wall_;
  const double process = ProcessSeconds() - process_;
  const SystemTimes system = ReadSystemTimes();
  const double busy = system.busy - system_.busy;
  const double all = busy + system.idle - system_.idle;
  const auto number = [](double value) {
    return absl::StrFormat("%.6g", value);
  };
  facts.emplace_back("Process Cpu Utilization",
                     number(wall > 0 ? process / wall : 0));
  // In a short window no tick of the system may have passed.
  if (all > 0) facts.emplace_back("System Cpu Utilization", number(busy / all));
  for (const PerfCounters::Value& value : counters_.Stop())
    facts.emplace_back(absl::StrCat("counter ", value.name),
                       value.unavailable.empty()
                           ? absl::StrFormat("%.0f", value.count)
                           : absl::StrCat("unavailable: ", value.unavailable));
  for (Energy& energy : energies_) {
    double end = 0;
    ReadNumber(energy.file, &end);
    if (end < energy.begin) end += energy.range;  // the counter began anew
    facts.emplace_back(absl::StrCat("energy ", energy.name, " (J)"),
                       number((end - energy.begin) / 1e6));
  }
  if (energies_.empty())
    facts.emplace_back("energy", absl::StrCat("unavailable: ", no_energy_));
  return facts;
}

}  // namespace pd
