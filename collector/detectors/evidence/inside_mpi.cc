// SPDX-License-Identifier: Apache-2.0
// Ranks of one collective also run different functions (the root, a tree): so the paths must
// diverge before the first function of a collective, in Open MPI "…_coll_…", in MPICH
// "MPIR_Barrier…".
#include "collector/detectors/evidence/inside_mpi.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using Frames = std::vector<model::Frame>;

/// "barrier" in "ompi_coll_base_barrier_intra_two_procs"; empty for other functions.
std::string collective_in(std::string_view function) {
  constexpr std::array<std::string_view, 8> kNames = {"barrier",  "allreduce", "allgather",
                                                      "alltoall", "bcast",     "reduce_scatter",
                                                      "reduce",   "gather"};
  const std::string lower = base::lower(function);
  const bool of_library = lower.find("_coll_") != std::string::npos || lower.starts_with("mpir_") ||
                          lower.starts_with("mpid_") || lower.starts_with("mpidi_");
  const auto* const found = std::find_if(
      kNames.begin(), kNames.end(),
      [&lower](std::string_view name) { return lower.find(name) != std::string::npos; });
  return of_library && found != kNames.end() ? std::string(*found) : std::string();
}

/// Where a rank is inside MPI.
struct InsideMpi {
  std::string call;               // "MPI_Win_allocate"
  model::CallSite from;           // the line of the program that calls it
  std::vector<std::string> path;  // functions of MPI, outermost first, before the collective
  std::string collective;         // "barrier"
};

bool is_public(std::string_view function) {
  return function.starts_with("PMPI_") || function.starts_with("MPI_");
}

/// "osc ^rdma" of "ompi_osc_rdma_component_select" and "mca_btl_vader_…".
std::string component_of(std::string_view function) {
  constexpr std::array<std::string_view, 7> kFrameworks = {"osc", "coll", "pml", "btl",
                                                           "mtl", "io",   "topo"};
  const auto parts = base::split(function, '_');
  const bool known =
      parts.size() > 3 && (parts[0] == "ompi" || parts[0] == "mca") &&
      std::find(kFrameworks.begin(), kFrameworks.end(), parts[1]) != kFrameworks.end() &&
      parts[2] != "base";
  return known ? fmt::format("{} ^{}", parts[1], parts[2]) : std::string();
}

std::optional<InsideMpi> inside_mpi(const model::Process& process) {
  const model::Thread* thread = model::main_thread(process);
  if (thread == nullptr) {
    return std::nullopt;
  }
  const Frames& frames = thread->frames;  // innermost first
  const auto outer = std::find_if(frames.rbegin(), frames.rend(), [](const model::Frame& frame) {
    return frame.language != model::Language::kPython && is_public(frame.function);
  });
  if (outer == frames.rend() || outer == frames.rbegin()) {
    return std::nullopt;
  }
  InsideMpi out;
  out.call = outer->function.substr(outer->function.starts_with("P") ? 1 : 0);
  const model::Frame& caller = *(outer - 1);
  out.from = {.file = caller.file, .line = caller.line, .function = caller.function};
  for (auto frame = outer + 1; frame != frames.rend() && out.collective.empty(); ++frame) {
    out.collective = collective_in(frame->function);
    if (out.collective.empty()) {
      out.path.push_back(frame->function);
    }
  }
  return out.collective.empty() || out.path.empty() ? std::nullopt : std::optional(out);
}

bool is_cleanup(std::string_view function) {
  constexpr std::array<std::string_view, 4> kEndings = {"_free", "_finalize", "_destruct",
                                                        "_cleanup"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [function](std::string_view end) { return function.ends_with(end); });
}

}  // namespace

std::optional<Finding> parted_inside_mpi(const graph::Examination& examination,
                                         std::string_view kind) {
  std::map<std::vector<std::string>, model::RankSet> sides;
  std::optional<InsideMpi> first;
  std::map<std::vector<std::string>, std::string> collectives;
  for (const graph::Standing& standing : examination.standings) {
    const auto own = standing.process == nullptr ? std::nullopt : inside_mpi(*standing.process);
    if (!own || (first && (own->call != first->call || own->from.line != first->from.line ||
                           own->from.file != first->from.file))) {
      return std::nullopt;
    }
    first = first ? first : own;
    sides[own->path].insert(standing.rank);
    collectives[own->path] = own->collective;
  }
  const auto still = stuck(examination);
  if (!still || sides.size() != 2) {
    return std::nullopt;
  }
  const auto& [path, ranks] = *sides.begin();
  const auto& [other_path, other_ranks] = *sides.rbegin();
  const auto parts = std::mismatch(path.begin(), path.end(), other_path.begin(), other_path.end());
  // One path begins with the whole other path: the ranks are in two steps of one function.
  if (parts.first == path.end() || parts.second == other_path.end()) {
    return std::nullopt;
  }
  const auto word = [&](const std::vector<std::string>& side, const model::RankSet& there) {
    return fmt::format("{} {} in a {} of {}", said(there), is_or_are(there), collectives[side],
                       side.back());
  };
  const bool swapped = other_ranks.front() < ranks.front();
  const auto& one = swapped ? other_path : path;
  const auto& two = swapped ? path : other_path;
  Finding finding;
  finding.kind = kind;
  finding.confidence = *still;
  finding.waiting = ranks.united(other_ranks);
  finding.summary = fmt::format("inside {}{}, {}; {}", first->call, placed(first->from),
                                word(one, sides[one]), word(two, sides[two]));
  for (const auto* side : {&one, &two}) {
    if (is_cleanup(side->back())) {
      finding.evidence.push_back(
          {.rank = sides[*side].front(),
           .text = fmt::format("stack: {} in {}, the cleanup of MPI: {} its setup before",
                               ranks_do(sides[*side], "is", "are"), side->back(),
                               sides[*side].size() == 1 ? "it left" : "they left")});
    }
  }
  if (first->from.line > 0) {
    finding.locations.push_back(
        location(first->from, finding.waiting, ranks_do(finding.waiting, "is here", "are here")));
  }
  std::string component;
  for (const std::string& function : path) {
    component = component.empty() ? component_of(function) : component;
  }
  finding.fix = fmt::format(
      "Read the error of the process that left the setup (memory, `ulimit -l`, /dev/shm, its "
      "adapter){}, and update MPI: it must end this call on all processes.",
      component.empty() ? std::string()
                        : fmt::format("; exclude the component with `--mca {}`", component));
  return finding;
}

}  // namespace ddpdoctor::detectors
