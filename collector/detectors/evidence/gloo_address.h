// SPDX-License-Identifier: Apache-2.0
// gloo on the loopback interface, in a job of several hosts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// What logs say of gloo's addresses.
struct GlooLoopback {
  model::RankSet ranks;  // that wrote one of the lines
  bool failed = false;   // a connection to the loopback failed
  std::string hosts;     // "2 hosts", "2 nodes"
  std::vector<Evidence> evidence;
};

/// Nothing for a job of one host or of an unknown number of hosts, or if the output continued after
/// gloo's lines.
std::optional<GlooLoopback> gloo_loopback(const model::JobModel& job);

/// Ranks that gloo could not connect to the others when it made a group.
struct GlooMesh {
  model::RankSet ranks;  // that wrote so
  std::vector<Evidence> evidence;
};

/// Nothing if one rank alone wrote so, if something else failed as well (gloo then only notices
/// that a rank has ended), or if the output continued.
std::optional<GlooMesh> gloo_mesh_failed(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
