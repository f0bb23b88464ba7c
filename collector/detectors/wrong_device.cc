// SPDX-License-Identifier: Apache-2.0
// wrong-device: several ranks of one host have a context on one GPU: set_device was forgotten, or a
// checkpoint was loaded without map_location. GPU 0 runs out of memory, or collectives wait on the
// wrong device.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/gpu_processes.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/recorded_place.h"
#include "collector/detectors/evidence/shared_gpus.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::wrong_device {
namespace {

constexpr std::string_view kGuessed = "devices used by this process are currently unknown";

constexpr std::string_view kKind = "wrong-device";
constexpr std::string_view kFix =
    "Call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any CUDA or collective "
    "call, and load checkpoints with map_location.";

std::optional<model::Rank> rank_of(const model::JobModel& job, const model::Fact& context) {
  if (context.rank || !context.pid) {
    return context.rank;
  }
  const model::Process* process = model::process(job, *context.pid);
  return process == nullptr ? std::nullopt : served_rank(job, *process);
}

/// Identified by uuid; else by an index, which is comparable only among processes of one host that
/// see the same GPUs.
struct Gpu {
  std::string numbering;  // empty = the name is a uuid
  std::string name;

  auto operator<=>(const Gpu&) const = default;
};

std::string numbering_of(const model::JobModel& job, const model::Fact& context, model::Rank rank) {
  const model::Process* process =
      context.pid ? model::process(job, *context.pid) : model::rank_process(job, rank);
  if (process == nullptr) {
    return "GPUs";
  }
  const auto visible = process->environment.find("CUDA_VISIBLE_DEVICES");
  return fmt::format("GPUs of {} {}", process->host,
                     visible == process->environment.end() ? "" : visible->second);
}

std::map<Gpu, model::RankSet> ranks_by_gpu(const model::JobModel& job) {
  std::map<Gpu, model::RankSet> out;
  for (const model::Fact* context : model::facts(job, "cuda-context")) {
    const auto rank = rank_of(job, *context);
    const auto device = context->number("device");
    if (!rank) {
      continue;
    }
    if (const auto uuid = context->text("uuid"); uuid && !uuid->empty()) {
      out[{.numbering = {}, .name = *uuid}].insert(rank.value());
    } else if (device) {
      out[{.numbering = numbering_of(job, *context, *rank), .name = fmt::format("{:.0f}", *device)}]
          .insert(rank.value());
    }
  }
  return out;
}

/// The rank's index on its host; nullopt if ranks may be on several hosts and it is unknown.
std::optional<int> local_rank(const model::JobModel& job, model::Rank rank) {
  const model::Process* process = model::rank_process(job, rank);
  if (process != nullptr) {
    const auto told = process->environment.find("LOCAL_RANK");
    if (told != process->environment.end() && !told->second.empty()) {
      int value = -1;
      const std::string& text = told->second;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && value >= 0 ? std::optional(value) : std::nullopt;
    }
  }
  return job.hosts.size() > 1 ? std::nullopt : std::optional(rank);
}

std::optional<int> index_of_gpu(const model::JobModel& job, const std::string& gpu) {
  for (const model::Fact* context : model::facts(job, "cuda-context")) {
    const auto device = context->number("device");
    if (device && (context->text("uuid") == gpu || fmt::format("{:.0f}", *device) == gpu)) {
      return static_cast<int>(std::clamp(*device, -1.0, 1024.0));
    }
  }
  return std::nullopt;
}

/// If ranks see all GPUs of their host, each should use the GPU of its local rank: the right GPU
/// for this rank exists, and no rank uses it. A rank that sees only one GPU uses number 0, whatever
/// its local rank; several ranks on each GPU leave none free.
bool left_its_own(const std::map<Gpu, model::RankSet>& gpus, const Gpu& taken, int local) {
  bool there = false;
  for (const auto& [gpu, ranks] : gpus) {
    int index = -1;
    std::from_chars(gpu.name.data(), gpu.name.data() + gpu.name.size(), index);
    if (gpu.numbering == taken.numbering && index == local) {
      return false;
    }
    there = there || (gpu.numbering == taken.numbering && index > local);
  }
  return there;
}

/// All but the rank to which the GPU belongs: the one without another GPU, or with that local rank.
model::RankSet strangers(const model::JobModel& job, const std::map<Gpu, model::RankSet>& gpus,
                         const Gpu& gpu, const model::RankSet& ranks) {
  model::RankSet elsewhere;  // has another GPU of its own
  for (const auto& [other, there] : gpus) {
    elsewhere = other == gpu ? elsewhere : elsewhere.united(there.common(ranks));
  }
  if (!elsewhere.empty() && elsewhere.size() < ranks.size()) {
    return elsewhere;
  }
  const auto index = index_of_gpu(job, gpu.name);
  model::RankSet out;
  for (const model::Rank rank : ranks) {
    const auto local = local_rank(job, rank);
    const bool other = !index || !local || *local != *index;
    if (other && (gpu.numbering.empty() || (local && left_its_own(gpus, gpu, *local)))) {
      out.insert(rank);
    }
  }
  return out;
}

/// One GPU for all is a choice (a test machine); if there are several GPUs, sharing one is a
/// mistake, and NCCL refuses it.
bool has_other_gpus(const model::JobModel& job, const std::map<Gpu, model::RankSet>& known,
                    const Gpu& gpu) {
  const auto index = index_of_gpu(job, gpu.name);
  const auto gpus = model::facts(job, "gpu");
  return std::count_if(known.begin(), known.end(),
                       [&gpu](const auto& one) { return one.first.numbering == gpu.numbering; }) >
             1 ||
         std::any_of(gpus.begin(), gpus.end(), [&](const model::Fact* one) {
           const auto device = one->number("device");
           return device && index && static_cast<int>(std::clamp(*device, -1.0, 1024.0)) != *index;
         });
}

/// The line where an agent saw the accused rank start CUDA on it.
void add_where_it_was_taken(const model::JobModel& job, Finding& finding) {
  for (const model::Fact* context : model::facts(job, "cuda-context")) {
    const auto rank = rank_of(job, *context);
    const model::CallSite site = recorded_place(*context);
    if (rank && finding.culprits.contains(*rank) && site.known() && finding.locations.empty()) {
      finding.locations.push_back(
          location(site, finding.culprits,
                   said(finding.culprits) + " started CUDA here, on the GPU of a different rank"));
    }
  }
}

/// It trains, or has ended successfully: its use of GPUs is not a problem.
bool does_well(const graph::Examination& examination) {
  const auto fell = [](const graph::Standing& standing) {
    return standing.process != nullptr && standing.process->exit &&
           (standing.process->exit->signal || standing.process->exit->status.value_or(0) != 0);
  };
  return !may_hang(examination) ||
         (examination.job.ended &&
          std::none_of(examination.standings.begin(), examination.standings.end(), fell));
}

/// The log messages of the accused rank about it: torch's warning, or that this GPU has no memory
/// left.
bool add_what_logs_say(const model::JobModel& job, const std::string& gpu, Finding& finding) {
  const auto index = index_of_gpu(job, gpu);
  const std::string full = fmt::format("GPU {} ", index.value_or(-1));
  bool said_so = false;
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const std::string_view line = stream[i].text;
      const bool out_of_memory = line.find("CUDA out of memory") != std::string_view::npos &&
                                 line.find(full) != std::string_view::npos;
      const bool unknown = base::contains(line, kGuessed);
      if (!stream[i].rank || !finding.culprits.contains(*stream[i].rank) ||
          !(out_of_memory || unknown)) {
        continue;
      }
      said_so = true;
      finding.evidence.push_back(
          {.rank = stream[i].rank, .text = "log: " + base::elide(base::printable(line), 200)});
      if (const model::CallSite site = user_place_above(stream, i);
          site.known() && finding.locations.empty()) {
        finding.locations.push_back(location(
            site, model::RankSet{*stream[i].rank},
            fmt::format("rank {} used the GPU of a different rank here", *stream[i].rank)));
      }
    }
  }
  return said_so;
}

/// "using GPU 2 to perform barrier as devices used by this process are currently unknown": the GPUs
/// that torch guessed for several ranks are all different, as they should be.
bool guessed_apart(const model::JobModel& job) {
  std::set<std::string_view> gpus;
  model::RankSet ranks;
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      constexpr std::string_view kGpu = "using GPU ";
      const std::size_t at = line.text.find(kGpu);
      if (at != line.text.npos && base::contains(line.text, kGuessed) && line.rank) {
        const std::string_view rest = line.text.substr(at + kGpu.size());
        gpus.insert(rest.substr(0, rest.find(' ')));
        ranks.insert(*line.rank);
      }
    }
  }
  return ranks.size() > 1 && gpus.size() == ranks.size();
}

bool rests_on_guess(const Finding& finding) {
  return std::all_of(finding.evidence.begin(), finding.evidence.end(),
                     [](const Evidence& one) { return base::contains(one.text, kGuessed); });
}

Findings detect(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  Findings findings;
  const auto gpus = ranks_by_gpu(job);
  for (const auto& [gpu, ranks] : gpus) {
    Finding finding;
    finding.kind = kKind;
    finding.culprits = ranks.size() < 2 ? model::RankSet{} : strangers(job, gpus, gpu, ranks);
    if (finding.culprits.empty()) {
      continue;
    }
    const bool more_gpus = has_other_gpus(job, gpus, gpu);
    const bool told = add_what_logs_say(job, gpu.name, finding);
    if (!told && (!more_gpus || does_well(examination))) {
      continue;
    }
    finding.confidence = confidence_of((more_gpus ? 1 : 0) + (told ? 1 : 0));
    finding.summary = fmt::format("{} {} use {}", said(ranks), ranks.size() == 2 ? "both" : "all",
                                  gpu.name.starts_with("GPU") ? gpu.name : "GPU " + gpu.name);
    finding.fix = kFix;
    add_where_it_was_taken(job, finding);
    if (finding.locations.empty()) {
      add_where_accused_stand(examination, finding);
    }
    add_waiting(examination, finding);
    findings.push_back(std::move(finding));
  }
  std::vector<ToldFinding> texts = told_by_text(examination, kKind);
  auto shared = shared_gpus(examination, kKind, kFix);
  const bool apart = !texts.empty() && guessed_apart(job);
  std::erase_if(texts, [&findings, &shared, apart](const ToldFinding& text) {
    return (apart && rests_on_guess(text.finding)) ||
           (shared && text.messages == std::set{Message::kOneGpu}) ||
           std::any_of(findings.begin(), findings.end(), [&text](const Finding& known) {
             return text.finding.culprits.minus(known.culprits).empty();
           });
  });
  if (shared) {
    findings.push_back(std::move(*shared));
  }
  for (ToldFinding& text : texts) {
    findings.push_back(summarized(std::move(text)));
  }
  if (auto full = findings.empty() ? ranks_on_full_gpu(examination, kKind, kFix) : std::nullopt) {
    findings.push_back(*std::move(full));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Several ranks use one GPU",
    .explanation =
        R"(What you see: GPU 0 is out of memory while the others are not; "devices used by this process are currently unknown"; a barrier
that hangs.

Why: without set_device a rank's first CUDA call, and collectives without tensors, go to GPU 0.

How ddpdoctor knows: from the CUDA contexts of the ranks, from torch's warning, or from NCCL's "Duplicate GPU detected", which names
both ranks. "Process 101553 has 1.19 GiB memory in use" in torch's message names ranks whose pids NCCL's lines tell. If several
GPUs are shared, more processes than GPUs were started. Under ddpdoctor run: a rank initialised CUDA only on the GPU of another rank,
while the GPU of its own local rank exists and is unused.

Fix:
    + torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
      dist.init_process_group("nccl"))",
    .detect = detect,
    .specificity = kPlaceOfCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors::wrong_device
