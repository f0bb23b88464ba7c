// SPDX-License-Identifier: Apache-2.0
// The recordings of a job's nodes in the server's object store, one per node, under JOB/NODE.ddpd:
// the snapshot in which a problem was found, otherwise the one of the end.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/fleet/marks.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::fleet {

/// Keeps `bytes` as the recording of the node of `marks`.
base::Result<void> keep_recording(transport::Transport& transport, const std::string& job,
                                  const NodeMarks& marks, std::string_view bytes);

struct KeptRecording {
  std::string name;
  std::string bytes;
};

/// The recordings of a job, without those of an earlier job of the same name; an empty `job` is the
/// only one. Recordings that cannot be read are in `problems`.
base::Result<std::vector<KeptRecording>> kept_recordings(transport::Transport& transport,
                                                         const std::string& job,
                                                         std::vector<base::Error>& problems);

}  // namespace ddpdoctor::fleet
