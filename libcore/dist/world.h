// SPDX-License-Identifier: Apache-2.0
// The processes that work together, and the groups among them that programs
// call rings: ring_id, an attribute of every collective operator, names one.
#ifndef PD_LIBCORE_DIST_WORLD_H_
#define PD_LIBCORE_DIST_WORLD_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/transport.h"

namespace pd {

/// A launcher's environment: an engine ("mpi" or "gloo") and
/// this process's place. PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM,
/// PADDLE_TRAINER_ENDPOINTS and PADDLE_CURRENT_ENDPOINT of
/// paddle.distributed.launch, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
/// mean Gloo; the variables of mpirun and srun mean MPI.
struct LaunchedBy {
  std::string engine;
  Meeting meeting;
};

/// Nothing where the environment names one process or none. InvalidArgument
/// names a variable that is no number, is missing, or contradicts another.
/// `get` is std::getenv, or a test's.
absl::StatusOr<std::optional<LaunchedBy>> LaunchOf(
    const std::function<const char*(const char*)>& get);

/// The ranks of one ring.
struct RingClaim {
  int id = 0;
  std::vector<int> ranks;  ///< in the ring's order
};

class World {
 public:
  /// Loads the engine's library, which is looked for beside libpd, and
  /// connects. Unavailable where the library is missing, or when not all
  /// processes come within Meeting::rendezvous_seconds: the message names the
  /// ranks.
  static absl::StatusOr<std::unique_ptr<World>> Connect(
      const LaunchedBy& launch);
  /// A world of one process, without an engine.
  World();
  /// The members of `transport`, at most `most`, all on this host, without an
  /// engine. `transport` outlives this.
  World(Transport* transport, int most);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Communicator& all() const { return all_; }
  int rank() const { return all_.rank(); }
  int size() const { return all_.size(); }
  /// Host names in rank order.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// Processes on this process's host, and its number among them.
  int local_size() const;
  int local_rank() const;
  /// How much a gradient of this process's part of a batch counts in the mean
  /// over all parts: 1 where they have equally many records.
  double weight() const { return weight_; }
  void SetWeight(double weight) { weight_ = weight; }
  /// "rank 2 on node7".
  std::string NameOf(int rank) const;

  /// InvalidArgument, with ranks and values, unless every process passes the
  /// same value. All processes call it.
  absl::Status ExpectSame(const std::string& what, const std::string& value);

  /// Makes the groups of the rings that this process belongs to. All
  /// processes call it, each with the rings that it knows of; claims of
  /// several processes for one ring have to agree. InvalidArgument otherwise.
  absl::Status DeclareRings(const std::vector<RingClaim>& claims);
  /// The group of a ring. Where no ring has been declared, each is all
  /// processes, as PaddlePaddle's CPU kernels have it, and so is ring 0 where
  /// it has not been. NotFound otherwise.
  absl::StatusOr<const Communicator*> Ring(int id) const;

  /// See Engine::Watch.
  void Watch(std::function<void(const std::string&)> lost);
  /// `status`, with the process that is gone where one is.
  absl::Status Explain(const absl::Status& status);
  /// The end of a run that went well.
  absl::Status Leave();

 private:
  struct Library;
  absl::Status MakeGroup(int id, const std::vector<int>& ranks);

  std::unique_ptr<Library> library_;  // outlives the engine
  std::unique_ptr<Engine> engine_;
  Communicator all_;
  std::vector<std::string> hosts_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::map<int, Communicator> rings_;
  int groups_ = 0;  // made so far, in all processes
  bool declared_ = false;
  double weight_ = 1;
};

/// Whether this process speaks for the run, printing and writing: it is alone
/// (`world` null) or rank 0.
inline bool Leads(const World* world) {
  return world == nullptr || world->rank() == 0;
}

}  // namespace pd

#endif  // PD_LIBCORE_DIST_WORLD_H_
