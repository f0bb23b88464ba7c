// SPDX-License-Identifier: Apache-2.0
// The folder in which every process of the job leaves its ring, and the rings as they grow.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collector/monitor/agreement_watch.h"
#include "collector/sources/rings/tail.h"

namespace ddpdoctor::monitor {

/// A spool folder: the caller's, or a temporary one that is removed with this object.
class Spool {
 public:
  /// An empty `folder` means a temporary one. If another host already records into it, uses a
  /// subfolder with this host's name. Refuses a folder that another user owns or may write to.
  static base::Result<Spool> open(const std::string& folder);
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  Spool(Spool&& other) noexcept;
  Spool& operator=(Spool&&) = delete;
  ~Spool();

  [[nodiscard]] const std::string& folder() const {
    return folder_;
  }

 private:
  Spool(std::string folder, bool temporary) : folder_(std::move(folder)), temporary_(temporary) {}
  std::string folder_;
  bool temporary_ = false;
};

/// The host whose processes recorded into a spool folder; nothing if it is not recorded.
std::optional<std::string> recording_host(const std::string& folder);

/// The names of the rings in a spool folder.
std::vector<std::string> rings_in(const std::string& folder);

/// What happened since the last check, over all rings.
struct Pulse {
  std::uint64_t collectives = 0;  // begun since the start, in all processes
  std::size_t processes = 0;      // number of processes with a ring
  bool contradiction = false;     // the calls of two ranks contradict each other: provable now
  int children_killed = 0;
};

/// Follows all rings of a spool.
class PulseWatch {
 public:
  explicit PulseWatch(std::string folder) : folder_(std::move(folder)) {}
  Pulse read();

 private:
  std::string folder_;
  std::map<std::string, sources::RingTail> tails_;
  AgreementWatch agreement_;
};

}  // namespace ddpdoctor::monitor
