// SPDX-License-Identifier: Apache-2.0
// A pid or tid is valid on one host only; in a job of several hosts (always with containers), the
// same number occurs several times. During the diagnosis of such a job, each process and thread
// gets a unique number above every Linux pid; reports show the hosts' numbers again.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

class HostPids {
 public:
  /// Renumbers the processes and threads of a job seen on several hosts; changes nothing for one
  /// host. A fact belongs to the host in its field "host", else to its rank's host, else to the
  /// only host with its pid; if that is unknown, the pid is removed.
  static HostPids number(JobModel& job);

  /// Restores the hosts' own numbers.
  void restore(JobModel& job) const;

  [[nodiscard]] bool empty() const {
    return places_.empty();
  }

  /// The host of a renumbered process; empty = unknown.
  [[nodiscard]] std::string host_of(std::int64_t number) const;
  /// The host's own number of a renumbered process; other numbers are unchanged.
  [[nodiscard]] std::int64_t local(std::int64_t number) const;

  /// Replaces renumbered processes in a text for people: "process 77 on node2 waits", and after a
  /// command in backticks "`kill -CONT 77` on node2".
  [[nodiscard]] std::string said(std::string_view text) const;

 private:
  struct Place {
    std::string host;
    pid_t pid = 0;
  };

  std::map<std::int64_t, Place> places_;
};

/// Adds the host's name to every fact of a job on one host.
void name_host_of_facts(JobModel& job);

/// The host of each rank; without ranks that were seen on several hosts.
std::map<Rank, std::string> hosts_of_ranks(const JobModel& job);

}  // namespace ddpdoctor::model
