// SPDX-License-Identifier: Apache-2.0
// A kernel that does not belong to NCCL waits for other ranks and never ends: DeepEP, symmetric
// memory, a custom all-reduce. No recorder of collectives sees it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/device_libraries.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::device_kernel_stalled {
namespace {

constexpr std::string_view kKind = "device-kernel-stalled";
constexpr std::size_t kMostLines = 6;

/// What is known about one rank in such a library.
struct Stalled {
  const DeviceLibrary* library = nullptr;
  std::string function;  // name of the wrapper or of the kernel
  const graph::Standing* standing = nullptr;
  bool by_stack = false;  // `function` is what its host called, not a kernel name
};

struct Sightings {
  std::map<model::Rank, Stalled> ranks;
  std::set<std::string> kinds;  // kinds of evidence: "stack", "kernel", "log"
  std::vector<Evidence> evidence;
  std::vector<DeviceTimeout> timeouts;
};

/// The wrapper on the stack, in which the host itself waits or for whose kernel it waits.
void add_stacks(const graph::Examination& examination, Sightings& seen) {
  for (const graph::Standing& standing : examination.standings) {
    if (standing.thread == nullptr || standing.call || standing.moved) {
      continue;
    }
    if (const auto in = library_in(standing.thread->frames)) {
      seen.ranks[standing.rank] = {.library = in->library,
                                   .function = in->function,
                                   .standing = &standing,
                                   .by_stack = true};
      seen.kinds.insert("stack");
    }
  }
}

/// The oldest unfinished kernel of a stream: later ones wait for it.
void add_kernels(const graph::Examination& examination, Sightings& seen) {
  std::map<std::pair<model::Rank, double>, const model::Fact*> oldest;
  for (const model::Fact* fact : model::facts(examination.job, "gpu-kernel")) {
    if (!fact->rank || fact->flag("finished").value_or(true)) {
      continue;
    }
    const model::Fact*& one = oldest[{*fact->rank, fact->number("stream").value_or(0)}];
    if (one == nullptr || fact->number("place").value_or(0) > one->number("place").value_or(0)) {
      one = fact;
    }
  }
  for (const auto& [key, fact] : oldest) {
    const std::string kernel = fact->text("kernel").value_or("");
    const DeviceLibrary* const library = library_of_kernel(kernel);
    if (library == nullptr) {
      continue;
    }
    Stalled& rank = seen.ranks[key.first];
    rank.standing = examination.standing(key.first);
    rank.library = library;
    rank.function = rank.function.empty() ? kernel : rank.function;
    seen.kinds.insert("kernel");
    seen.evidence.push_back(
        {.rank = key.first, .text = fmt::format("the GPU has not finished {}", kernel)});
  }
}

void add_timeouts(const graph::Examination& examination, Sightings& seen) {
  seen.timeouts = device_timeouts(examination.job);
  std::set<std::string> lines;
  for (const DeviceTimeout& one : seen.timeouts) {
    seen.kinds.insert("log");
    if (one.waiting) {
      Stalled& rank = seen.ranks[*one.waiting];
      rank.library = one.library;
      rank.standing = rank.standing == nullptr ? examination.standing(*one.waiting) : rank.standing;
    }
    if (lines.size() < kMostLines && lines.insert(one.line).second) {
      seen.evidence.push_back({.rank = one.waiting, .text = "log: " + one.line});
    }
  }
}

/// Ranks that the timeouts of others name as missing and that report no timeout themselves.
model::RankSet never_came(const Sightings& seen) {
  model::RankSet missing;
  model::RankSet waiting;
  for (const DeviceTimeout& one : seen.timeouts) {
    if (one.missing) {
      missing.insert(*one.missing);
    }
    if (one.waiting) {
      waiting.insert(*one.waiting);
    }
  }
  return missing.minus(waiting);
}

std::string function_text(const Stalled& one) {
  return one.function.empty() ? std::string(one.library->name)
                              : fmt::format("{} of {}", one.function, one.library->name);
}

/// A frame without function or file could be that of the wrapper.
bool is_readable(const model::Thread* thread) {
  return thread != nullptr && !thread->frames.empty() &&
         std::none_of(thread->frames.begin(), thread->frames.end(), [](const model::Frame& frame) {
           return frame.language == model::Language::kPython &&
                  (frame.function.empty() || frame.file.empty());
         });
}

/// The ranks that are elsewhere than the majority; empty in a tie.
model::RankSet odd_ones(const graph::Examination& examination, const Sightings& seen) {
  std::map<model::Rank, std::string> does;
  for (const graph::Standing& standing : examination.standings) {
    const auto in = seen.ranks.find(standing.rank);
    if (in != seen.ranks.end()) {
      if (in->second.by_stack) {
        does[standing.rank] = function_text(in->second);
      }
    } else if (is_readable(standing.thread) && !library_in(standing.thread->frames)) {
      does[standing.rank] = "elsewhere";
    }
  }
  return minority(camps(does));
}

model::RankSet inside(const Sightings& seen) {
  std::vector<model::Rank> ranks;
  for (const auto& [rank, one] : seen.ranks) {
    ranks.push_back(rank);
  }
  return model::RankSet(std::move(ranks));
}

/// Nothing while the job makes progress, or if there is only one snapshot of a wrapper: a healthy
/// job's host looks the same.
std::optional<Confidence> confidence_in(const graph::Examination& examination,
                                        const Sightings& seen) {
  const bool said_so = seen.kinds.contains("log");
  const bool over = examination.job.ended || examination.still();
  if (examination.job.progress == model::Progress::kMoving || (!over && !said_so)) {
    return std::nullopt;
  }
  // The ranks inside spin; a rank that works elsewhere may still arrive.
  const bool others_work = !working_ranks(examination).minus(inside(seen)).empty();
  if (!over || others_work || somebody_is_gone(examination)) {
    // A rank that has exited sets no flags, and has a cause of its own.
    return Confidence::kPossible;
  }
  const Confidence result = confidence_of(static_cast<int>(seen.kinds.size()));
  return unobserved_ranks(examination).empty() ? result : at_most(result, Confidence::kLikely);
}

void tell(const graph::Examination& examination, const Sightings& seen, Finding& finding) {
  const Stalled& first = seen.ranks.empty() ? Stalled{} : seen.ranks.begin()->second;
  const DeviceLibrary& library =
      *(first.library == nullptr ? seen.timeouts.front().library : first.library);
  const std::string what =
      first.library == nullptr ? std::string(library.name) : function_text(first);
  const model::RankSet in = inside(seen).minus(finding.culprits);
  const std::string who = in.empty() ? std::string("a rank") : said(in);
  const std::string waits = fmt::format("{} {} waiting in", who, in.size() > 1 ? "are" : "is");
  finding.details["library"] = std::string(library.name);
  if (finding.culprits.empty()) {
    finding.summary =
        fmt::format("{} {}, whose kernel does not finish; it is not NCCL", waits, what);
    finding.fix = std::string(library.check);
    return;
  }
  const graph::Standing* odd = examination.standing(finding.culprits.front());
  const bool known = odd != nullptr && odd->thread != nullptr;
  finding.summary =
      known ? fmt::format("{}; {} {}, which is not NCCL",
                          whereabouts(examination.job, finding.culprits, *odd), waits, what)
            : fmt::format("{} did not call {}; {} it", said(finding.culprits), what, waits);
  finding.fix = fmt::format(
      "Call {1} on {0}, too. Every rank of the group must call it equally often, also without "
      "tokens "
      "to send.",
      said(finding.culprits), what);
}

/// The line of the first rank inside that a stack shows, with all ranks that are at it.
void add_first_inside(const Sightings& seen, Finding& finding) {
  const Stalled* first = nullptr;
  model::RankSet there;
  for (const auto& [rank, one] : seen.ranks) {
    if (one.standing == nullptr || !one.standing->user.known()) {
      continue;
    }
    first = first == nullptr ? &one : first;
    if (graph::same_line(one.standing->user, first->standing->user)) {
      there.insert(rank);
    }
  }
  if (first != nullptr) {
    finding.locations.push_back(
        location(first->standing->user, there,
                 fmt::format("{} called {} here", said(there), function_text(*first))));
  }
}

/// Some of them are blocked by something of their own (a file, a lock, a worker): that is the
/// cause.
bool have_own_trouble(const graph::Examination& examination, const Sightings& seen,
                      const model::RankSet& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const graph::Standing* one = examination.standing(rank);
    return one != nullptr && one->thread != nullptr && !seen.ranks.contains(rank) &&
           !one->waits_for_ranks() && one->activity != graph::Activity::kGpu;
  });
}

Findings detect(const graph::Examination& examination) {
  Sightings seen;
  add_stacks(examination, seen);
  add_kernels(examination, seen);
  add_timeouts(examination, seen);
  const auto sure = seen.kinds.empty() ? std::nullopt : confidence_in(examination, seen);
  if (!sure) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = *sure;
  const model::RankSet missing = never_came(seen);
  finding.culprits = missing.empty() ? odd_ones(examination, seen) : missing;
  if (have_own_trouble(examination, seen, finding.culprits)) {
    finding.confidence = Confidence::kPossible;
  }
  std::vector<model::Rank> inside;
  for (const auto& [rank, one] : seen.ranks) {
    inside.push_back(rank);
  }
  finding.waiting =
      waiting_ranks(examination).united(model::RankSet(std::move(inside))).minus(finding.culprits);
  tell(examination, seen, finding);
  for (const model::Rank rank : finding.culprits) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing != nullptr && standing->user.known() && finding.locations.size() < 3) {
      finding.locations.push_back(location(*standing, fmt::format("rank {} is here", rank)));
    }
  }
  add_first_inside(seen, finding);
  finding.evidence = std::move(seen.evidence);
  add_whereabouts(finding, examination, finding.culprits);
  return {finding};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A communication kernel outside NCCL does not finish",
    .explanation =
        R"(What you see: GPUs show 100 %, no NCCL call is open, and the watchdog reports nothing or a later call that is not the
cause. The hosts are in dispatch or combine of DeepEP, in a custom all-reduce, or in symmetric memory. Later "DeepEP error: timeout"
or "DeepEP dispatch NVL receiver timeout".

Why: such a kernel spins until flags of all peers arrive. If one rank does not call it (no tokens, a different branch, a different
CUDA graph), or a link does not carry its writes, all other ranks wait. As with NCCL's watchdog, the rank that raises the timeout
exception is usually not the cause.

How ddpdoctor knows: from the wrapper on the stack, the oldest kernel that a GPU has not finished, and the timeout messages of these
libraries, which name both ranks. Check the rank that others waited for and that waited for no rank; if there is none, check the ranks
whose code differs from that of most ranks.

Fix: let every rank take part.
    -    if tokens.numel():
    -        out = buffer.dispatch(tokens, ...)
    +    out = buffer.dispatch(tokens, ...)   # also with no tokens)",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::device_kernel_stalled
