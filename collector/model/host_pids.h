// SPDX-License-Identifier: Apache-2.0
// Process and thread numbers mean one host; in a job of several hosts the same number names several
// processes (in containers always). While such a job is examined each of them has a number of its
// own, above every pid that Linux gives; what is written down afterwards has the hosts' numbers
// again.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

class HostPids {
 public:
  /// Numbers the processes and threads of a job that was seen on several hosts; of one host it
  /// changes nothing. Facts are of the host that their field "host" names, else of their rank's,
  /// else of the only one that has their pid; of what cannot be told the pid is dropped.
  static HostPids number(JobModel& job);

  /// The numbers as the hosts know them.
  void restore(JobModel& job) const;

  [[nodiscard]] bool empty() const {
    return places_.empty();
  }

  /// The host of a numbered process; empty = unknown.
  [[nodiscard]] std::string host_of(std::int64_t number) const;
  /// The host's own number of a numbered process; any other number is itself.
  [[nodiscard]] std::int64_t local(std::int64_t number) const;

  /// A text about numbered processes as a person reads it: "process 77 on node2 waits", and of a
  /// command in backticks "`kill -CONT 77` on node2".
  [[nodiscard]] std::string said(std::string_view text) const;

 private:
  struct Place {
    std::string host;
    pid_t pid = 0;
  };

  std::map<std::int64_t, Place> places_;
};

/// Writes into every fact of a job of one host which host that is.
void name_host_of_facts(JobModel& job);

/// The host of each rank; without ranks that were seen on several.
std::map<Rank, std::string> hosts_of_ranks(const JobModel& job);

}  // namespace ddpdoctor::model
