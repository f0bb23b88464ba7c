// SPDX-License-Identifier: Apache-2.0
// In the forms of OpenSSH (also with musl and macOS), dropbear and bash; of Open MPI 1 – 5.
#include "collector/detectors/evidence/ssh_failures.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestSshLine = 400;

/// The line of ssh, and what it says.
struct SshFailure {
  std::string line;
  std::string summary;
  std::string fix;
};

/// "node1" in "ssh: Could not resolve hostname node1: Name or service not known".
std::string_view name_behind(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  const std::string_view rest = line.substr(at == line.npos ? line.size() : at + words.size());
  return rest.substr(0, std::min(rest.find_first_of(": \t"), rest.size()));
}

/// The host as the command names it, if that is longer than what ssh got: "node1.cluster" of
/// "node1".
std::string full_name(const model::JobModel& job, std::string_view host) {
  const std::string begin = std::string(host) + ".";
  for (const model::Log& log : job.logs) {
    for (std::size_t at = log.text.find(begin); at != std::string::npos;
         at = log.text.find(begin, at + 1)) {
      const bool whole =
          at == 0 || std::string_view(" ,=\t\n@").find(log.text[at - 1]) != std::string_view::npos;
      const std::size_t end = log.text.find_first_of(" ,:\t\n\r\"'", at);
      const std::string_view name =
          std::string_view(log.text).substr(at, std::min(end, log.text.size()) - at);
      if (whole && name.size() > begin.size() && name.size() < 256) {
        return base::printable(name);
      }
    }
  }
  return {};
}

SshFailure unknown_host(const model::JobModel& job, std::string_view line, std::string_view host) {
  const std::string name = base::printable(host);
  const std::string full = full_name(job, host);
  if (full.empty()) {
    return {
        .line = std::string(line),
        .summary = fmt::format("ssh cannot resolve the host name {}", name),
        .fix = fmt::format(
            "Check that `getent hosts {}` finds the host on the node of mpirun. Otherwise correct "
            "the name in the hostfile, DNS or the pod's service.",
            name)};
  }
  return {.line = std::string(line),
          .summary =
              fmt::format("ssh cannot resolve the host name {}; the command names {}", name, full),
          .fix =
              "Open MPI cut the name at its first dot: pass `--mca orte_keep_fqdn_hostnames 1` "
              "(Open MPI 5: `--prtemca prte_keep_fqdn_hostnames 1`), or make the short name "
              "resolvable."};
}

std::optional<SshFailure> failure_in(const model::JobModel& job, std::string_view line) {
  constexpr std::array<std::string_view, 4> kDaemonNames = {"orted", "prted", "hydra_pmi_proxy",
                                                            "hydra_bstrap_proxy"};
  if (const auto host = name_behind(line, "ssh: Could not resolve hostname "); !host.empty()) {
    return unknown_host(job, line, host);
  }
  if (const auto host = name_behind(line, "ssh: connect to host "); !host.empty()) {
    return SshFailure{
        .line = std::string(line),
        .summary = fmt::format("ssh cannot connect to {}", base::printable(host)),
        .fix = fmt::format("Start sshd there and open its port (`ssh {} true` must work without a "
                           "password). Pass another port with `--mca plm_rsh_args \"-p PORT\"`.",
                           base::printable(host))};
  }
  if (line.find("Permission denied (publickey") != line.npos ||
      line.starts_with("Host key verification failed")) {
    return SshFailure{.line = std::string(line),
                      .summary = "ssh was refused at a node",
                      .fix =
                          "Install the key of this user on every node, and accept the host keys. "
                          "`ssh NODE true` must "
                          "work without a question."};
  }
  const bool absent = line.find("command not found") != line.npos ||
                      line.find("No such file or directory") != line.npos ||
                      line.find("error while loading shared libraries") != line.npos;
  if (absent && base::contains_any(line, kDaemonNames)) {
    return SshFailure{.line = std::string(line),
                      .summary = "a node does not find mpirun's daemon or its libraries",
                      .fix =
                          "Install the same MPI at the same path on every node, or pass "
                          "`--prefix DIR` to mpirun."};
  }
  return std::nullopt;
}

}  // namespace

void tell_why_ssh_failed(const model::JobModel& job, Finding& finding) {
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      const std::string_view line = base::trim(raw.substr(0, kLongestSshLine));
      if (const auto failure = failure_in(job, line)) {
        finding.summary = "mpirun could not start its daemons: " + failure->summary;
        finding.fix = failure->fix;
        finding.evidence.insert(
            finding.evidence.begin(),
            {.rank = {}, .text = "log: " + base::elide(base::printable(failure->line), 240)});
        return;
      }
    }
  }
}

}  // namespace ddpdoctor::detectors
