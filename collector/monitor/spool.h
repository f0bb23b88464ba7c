// SPDX-License-Identifier: Apache-2.0
// The folder in which every process of the job leaves its ring, and the rings in it as they grow.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collector/monitor/agreement_watch.h"
#include "collector/sources/rings/tail.h"

namespace ddpdoctor::monitor {

/// A spool folder: the caller's, or a temporary one of ours that goes away with this object.
class Spool {
 public:
  /// `folder` empty = a temporary one. Where another host records into it already, a folder in it
  /// that has this host's name. Refuses a folder that is not ours or that others may write.
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

/// The host whose processes recorded into a spool folder; nothing when it does not say.
std::optional<std::string> recording_host(const std::string& folder);

/// The names of the rings in a spool folder.
std::vector<std::string> rings_in(const std::string& folder);

/// What happened since the last look, over all rings.
struct Pulse {
  std::uint64_t collectives = 0;  // begun since the start, all processes
  std::size_t processes = 0;      // that have a ring
  bool contradiction = false;     // two ranks' calls disagree: provable now
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
