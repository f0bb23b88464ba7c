// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/rings/bytes.h"
#include "collector/sources/rings/slots.h"
#include "collector/sources/rings/tables.h"
#include "wire/events.h"
#include "wire/layout.h"

namespace ddpdoctor::sources {
namespace {

#define HEADER(field) offsetof(wire::Header, field)

std::vector<std::int64_t> numbers(std::string_view text, char separator) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : base::split(text, separator)) {
    std::int64_t value = 0;
    if (std::from_chars(part.data(), part.data() + part.size(), value).ec == std::errc{}) {
      values.push_back(value);
    }
  }
  return values;
}

/// Turns slots into calls and events.
class Reader {
 public:
  Reader(const RingBytes& ring, Recording& recording) : ring_(ring), recording_(recording) {
    const auto monotonic = ring.load<std::uint64_t>(HEADER(monotonic_ns));
    const auto wall = ring.load<std::uint64_t>(HEADER(wall_ns));
    offset_ns_ = wall - monotonic;
  }

  [[nodiscard]] double seconds(std::uint64_t monotonic) const {
    return monotonic == 0
               ? 0
               : static_cast<double>(static_cast<std::int64_t>(monotonic + offset_ns_)) / 1e9;
  }

  [[nodiscard]] std::vector<RecordedFrame> stack(std::uint32_t site) const {
    std::vector<RecordedFrame> frames;
    while (site != 0 && site < wire::kSites && frames.size() < wire::kSiteDepth) {
      const auto plain =
          ring_.load<PlainSite>(offsetof(wire::Ring, site) + site * sizeof(wire::Site));
      frames.push_back({ring_.text(plain.file), static_cast<int>(plain.line & 0x7FFFFFFFU),
                        ring_.text(plain.function)});
      site = plain.caller;
    }
    return frames;
  }

  void read_slots() {
    const auto head = ring_.load<std::uint64_t>(HEADER(head));
    const std::uint64_t first = head > wire::kSlots ? head - wire::kSlots : 0;
    recording_.wrapped = first > 0;
    for (std::uint64_t index = first; index < head; ++index) {
      const auto slot = ring_.load<PlainSlot>(offsetof(wire::Ring, slot) +
                                              (index % wire::kSlots) * sizeof(wire::Slot));
      if (slot.sequence != index + 1) {
        ++recording_.torn;
        continue;
      }
      add(slot);
    }
  }

  /// A group whose calls were overwritten by those of others still has a separate copy of its
  /// newest call.
  void read_newest_of_groups() {
    for (std::size_t i = 0; i < recording_.groups.size(); ++i) {
      const RecordedGroup& group = recording_.groups[i];
      const auto slot = ring_.load<PlainSlot>(
          offsetof(wire::Ring, group) + i * sizeof(wire::Group) + offsetof(wire::Group, last));
      const bool collective =
          static_cast<wire::EventKind>(slot.kind) == wire::EventKind::kCollective;
      const bool known = std::any_of(
          recording_.calls.begin(), recording_.calls.end(),
          [&](const RecordedCall& call) { return call.group == i && !call.point_to_point; });
      if (!collective || known || slot.group != i + 1 ||
          static_cast<std::int64_t>(slot.group_sequence) != group.enqueued) {
        continue;
      }
      RecordedCall call = call_of(slot, false);
      if (group.completed >= call.sequence) {
        call.state = RecordedState::kCompleted;
      }
      recording_.calls.push_back(std::move(call));
    }
  }

 private:
  void add(const PlainSlot& slot) {
    const auto kind = static_cast<wire::EventKind>(slot.kind);
    if (kind == wire::EventKind::kCollective || kind == wire::EventKind::kPointToPoint) {
      add_call(slot);
    } else if (kind == wire::EventKind::kGpuWait) {
      add_event((slot.detail & wire::kOfHost) != 0 ? "gpu-wait" : "gpu-behind", slot);
    } else if (const char* const name = kept_as(kind); name != nullptr) {
      add_event(name, slot);
      if (kind == wire::EventKind::kGpuKernel && (slot.detail & wire::kEndsAreTold) == 0) {
        recording_.events.back().state = RecordedState::kUnknown;
      }
    }
  }

  void add_call(const PlainSlot& slot) {
    if (slot.group == 0 || slot.group > recording_.groups.size()) {
      return;
    }
    const bool peer_to_peer =
        static_cast<wire::EventKind>(slot.kind) == wire::EventKind::kPointToPoint;
    const auto key = std::tuple(slot.group, peer_to_peer, slot.group_sequence);
    const auto phase = static_cast<wire::Phase>(slot.phase);
    if (phase == wire::Phase::kCompleted || phase == wire::Phase::kFailed) {
      const auto known = open_.find(key);
      if (known != open_.end()) {
        RecordedCall& call = recording_.calls[known->second];
        call.state =
            phase == wire::Phase::kFailed ? RecordedState::kFailed : RecordedState::kCompleted;
        call.end_time = seconds(slot.time);
        open_.erase(known);
      }
      return;
    }
    if (phase == wire::Phase::kStarted) {
      if (const auto known = open_.find(key); known != open_.end()) {
        recording_.calls[known->second].state = RecordedState::kStarted;
      }
      return;
    }
    open_[key] = recording_.calls.size();
    recording_.calls.push_back(call_of(slot, peer_to_peer));
  }

  [[nodiscard]] RecordedCall call_of(const PlainSlot& slot, bool peer_to_peer) const {
    const auto operation = static_cast<wire::Operation>(slot.operation);
    RecordedCall call{.group = static_cast<std::size_t>(slot.group - 1),
                      .sequence = slot.group_sequence,
                      .point_to_point = peer_to_peer};
    call.operation = wire::operation_name(operation);
    if (slot.count >= 0) {
      call.count = slot.count;
    }
    if (slot.dtype < kDtypes.size()) {
      call.dtype = kDtypes.at(slot.dtype);
    }
    if (slot.reduce_op < kReduceOps.size()) {
      call.reduce_op = kReduceOps.at(slot.reduce_op);
    }
    if (slot.peer >= 0) {
      call.peer = slot.peer;
    }
    call.asynchronous = (slot.detail & wire::kAsync) != 0;
    call.in_progress = (slot.detail & wire::kInProgress) != 0;
    if ((slot.detail & wire::kOnStream) != 0) {
      call.on_stream = true;
      call.stream = slot.object;
      call.grouped = (slot.detail & wire::kGrouped) != 0;
      constexpr std::uint32_t kEndIsTold = wire::kTracked | wire::kInProgress;
      call.state = (slot.detail & wire::kCaptured) != 0 ? RecordedState::kCompleted
                   : (slot.detail & kEndIsTold) != 0    ? RecordedState::kEnqueued
                                                        : RecordedState::kUnknown;
    }
    if (peer_to_peer && (slot.detail >> wire::kTagShift) != 0) {
      call.tag = static_cast<int>(slot.detail >> wire::kTagShift) - 1;
    }
    call.thread = static_cast<pid_t>(slot.tid);
    call.time = seconds(slot.time);
    call.stack = stack(slot.site);
    const std::string text = ring_.text(slot.text);
    if (operation == wire::Operation::kAllToAllSingle) {
      for (const std::string_view part : base::split(text, '|')) {
        if (part.starts_with("in=")) {
          call.input_splits = numbers(part.substr(3), ',');
        } else if (part.starts_with("out=")) {
          call.output_splits = numbers(part.substr(4), ',');
        }
      }
    } else if (!text.empty()) {
      call.shape = numbers(text, 'x');
    }
    return call;
  }

  void add_event(std::string kind, const PlainSlot& slot) {
    RecordedEvent event{.kind = std::move(kind),
                        .time = seconds(slot.time),
                        .count = slot.count,
                        .peer = slot.peer,
                        .detail = slot.detail,
                        .object = slot.object};
    const auto phase = static_cast<wire::Phase>(slot.phase);
    event.state = phase == wire::Phase::kCompleted ? RecordedState::kCompleted
                  : phase == wire::Phase::kFailed  ? RecordedState::kFailed
                  : phase == wire::Phase::kStarted ? RecordedState::kStarted
                                                   : RecordedState::kEnqueued;
    event.text = ring_.text(slot.text);
    event.stack = stack(slot.site);
    recording_.events.push_back(std::move(event));
  }

  const RingBytes& ring_;
  Recording& recording_;
  std::uint64_t offset_ns_ = 0;  // unsigned, so it may wrap: a ring may contain anything
  std::map<std::tuple<std::uint16_t, bool, std::uint32_t>, std::size_t> open_;
};

void read_groups(const RingBytes& ring, const Reader& reader, Recording& recording) {
  const auto count = std::min(ring.load<std::uint32_t>(HEADER(groups)), wire::kGroups);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t at = offsetof(wire::Ring, group) + i * sizeof(wire::Group);
    RecordedGroup group{
        .name = ring.fixed(at + offsetof(wire::Group, name), sizeof(wire::Group::name)),
        .backend = ring.fixed(at + offsetof(wire::Group, backend_name),
                              sizeof(wire::Group::backend_name))};
    const auto rank = ring.load<std::int32_t>(at + offsetof(wire::Group, group_rank));
    const auto size = ring.load<std::int32_t>(at + offsetof(wire::Group, size));
    if (rank >= 0 && size > 0 && rank < size) {
      group.group_rank = rank;
      group.size = size;
    }
    group.enqueued = ring.load<std::uint32_t>(at + offsetof(wire::Group, enqueued));
    group.completed = ring.load<std::uint32_t>(at + offsetof(wire::Group, completed));
    group.failed = ring.load<std::uint32_t>(at + offsetof(wire::Group, failed));
    group.point_to_point = ring.load<std::uint32_t>(at + offsetof(wire::Group, point_to_point));
    group.asked_by = static_cast<pid_t>(
        ring.load<std::uint32_t>(at + offsetof(wire::Group, asked_tid)) & 0x7FFFFFFFU);
    group.asked = reader.seconds(ring.load<std::uint64_t>(at + offsetof(wire::Group, asked_time)));
    recording.groups.push_back(std::move(group));
  }
}

void read_reducers(const RingBytes& ring, const Reader& reader, Recording& recording) {
  constexpr std::size_t kNamedAtMost = 64;
  for (std::uint32_t i = 0; i < wire::kReducers; ++i) {
    const std::size_t at = offsetof(wire::Ring, reducer) + i * sizeof(wire::Reducer);
    if (ring.load<std::uint64_t>(at + offsetof(wire::Reducer, object)) == 0) {
      continue;
    }
    RecordedReducer reducer{
        .parameters = ring.load<std::uint32_t>(at + offsetof(wire::Reducer, parameters)),
        .generation = ring.load<std::uint32_t>(at + offsetof(wire::Reducer, generation)),
        .finalized = ring.load<std::uint32_t>(at + offsetof(wire::Reducer, finalized)),
        .forwards = ring.load<std::uint32_t>(at + offsetof(wire::Reducer, forwards))};
    reducer.find_unused = ring.load<std::uint32_t>(at + offsetof(wire::Reducer, find_unused)) != 0;
    reducer.static_graph =
        ring.load<std::uint32_t>(at + offsetof(wire::Reducer, static_graph)) != 0;
    reducer.last_time =
        reader.seconds(ring.load<std::uint64_t>(at + offsetof(wire::Reducer, last_time)));
    reducer.stack = reader.stack(ring.load<std::uint32_t>(at + offsetof(wire::Reducer, site)));
    const auto known = std::min<std::int64_t>(reducer.parameters, wire::kParameters);
    for (std::int64_t k = 0; k < known && reducer.generation > 0; ++k) {
      const std::size_t parameter = at + offsetof(wire::Reducer, parameter) +
                                    static_cast<std::size_t>(k) * sizeof(wire::Parameter);
      if (ring.load<std::uint32_t>(parameter + offsetof(wire::Parameter, ready)) ==
          reducer.generation) {
        ++reducer.ready;
      } else if (reducer.not_ready.size() < kNamedAtMost) {
        reducer.not_ready.push_back(
            {k, ring.text(ring.load<std::uint32_t>(parameter + offsetof(wire::Parameter, name)))});
      }
    }
    recording.reducers.push_back(std::move(reducer));
  }
}

void read_exit(const RingBytes& ring, const Reader& reader, Recording& recording) {
  constexpr std::array<std::string_view, 6> kKinds{"", "exit", "_exit", "signal", "abort", "exec"};
  const auto kind = ring.load<std::uint32_t>(HEADER(exit_kind));
  if (kind == 0 || kind >= kKinds.size()) {
    return;
  }
  recording.exit = RecordedExit{.kind = std::string(kKinds.at(kind)),
                                .value = ring.load<std::int32_t>(HEADER(exit_value)),
                                .time = reader.seconds(ring.load<std::uint64_t>(HEADER(exit_time))),
                                .stack = reader.stack(ring.load<std::uint32_t>(HEADER(exit_site)))};
}

/// What the agent could not record, and why.
std::vector<std::string> notes_of(std::uint32_t disabled, const Recording& recording) {
  const std::string& python = recording.python_version;
  const std::string& torch = recording.torch_version;
  std::vector<std::string> notes;
  const auto add = [disabled, &notes](wire::Disabled bit, std::string note) {
    if ((disabled & bit) != 0) {
      notes.push_back(std::move(note));
    }
  };
  add(wire::kNoCallSites,
      fmt::format("no call sites: the layout of CPython {} is unknown", python));
  add(wire::kFramesNotAsKnown,
      fmt::format(
          "no call sites: CPython {} keeps its frames elsewhere than that release (a debug, "
          "alpha or patched build)",
          python));
  add(wire::kNoTensorFacts,
      fmt::format("no shapes and data types: torch {} does not provide them", torch));
  add(wire::kNoReduceOps,
      fmt::format("no reduce operations: where torch {} stores them is unknown", torch));
  add(wire::kNoRoots,
      fmt::format("some root ranks are missing: where torch {} stores them is unknown", torch));
  return notes;
}

void read_header(const RingBytes& ring, Recording& recording) {
  recording.pid = static_cast<pid_t>(ring.load<std::uint32_t>(HEADER(pid)) & 0x7FFFFFFFU);
  recording.ppid = static_cast<pid_t>(ring.load<std::uint32_t>(HEADER(ppid)) & 0x7FFFFFFFU);
  recording.start_ticks = ring.load<std::uint64_t>(HEADER(start_ticks));
  const auto rank = ring.load<std::int32_t>(HEADER(rank));
  const auto world = ring.load<std::int32_t>(HEADER(world_size));
  constexpr std::int32_t kMostRanks = 100000;
  if (rank >= 0 && rank < kMostRanks) {
    recording.rank = rank;
  }
  if (world > 0 && world < kMostRanks) {
    recording.world_size = world;
  }
  recording.torch_version = ring.fixed(HEADER(torch_version), sizeof(wire::Header::torch_version));
  recording.python_version =
      ring.fixed(HEADER(python_version), sizeof(wire::Header::python_version));
  recording.command = ring.fixed(HEADER(command), sizeof(wire::Header::command));
  recording.forked = ring.load<std::uint32_t>(HEADER(forked)) != 0;
  if (const auto team = ring.load<std::uint32_t>(HEADER(parent_team)); team != 0) {
    recording.parent_team = static_cast<pid_t>(team & 0x7FFFFFFFU);
  }
  recording.cuda_devices = ring.load<std::uint32_t>(HEADER(cuda_contexts));
  recording.lost = ring.load<std::uint64_t>(HEADER(lost));
  recording.notes = notes_of(ring.load<std::uint32_t>(HEADER(disabled)), recording);
  if (const auto untracked = ring.load<std::uint32_t>(HEADER(untracked)); untracked > 0) {
    recording.notes.push_back(
        fmt::format("the agent did not record when {} NCCL call{} finished: too many launches were "
                    "open at once",
                    untracked, untracked == 1 ? "" : "s"));
  }
}

}  // namespace

base::Result<Recording> read_ring(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < sizeof(wire::Ring)) {
    return base::failure(
        fmt::format("{}: {} bytes, a ring has {}", name, bytes.size(), sizeof(wire::Ring)),
        "the process was probably stopped while it made the file, or the file was cut");
  }
  const RingBytes ring(bytes);
  if (ring.load<std::uint64_t>(HEADER(magic)) != wire::kMagic) {
    return base::failure(fmt::format("{}: not a ring of ddpdoctor", name),
                         "report reads the *.ring files of a --spool folder");
  }
  if (const auto version = ring.load<std::uint32_t>(HEADER(version)); version != wire::kVersion) {
    return base::failure(fmt::format("{}: ring of version {}, this program reads version {}", name,
                                     version, wire::kVersion),
                         "read it with the ddpdoctor that recorded it");
  }
  Recording recording;
  read_header(ring, recording);
  Reader reader(ring, recording);
  read_groups(ring, reader, recording);
  reader.read_slots();
  reader.read_newest_of_groups();
  read_reducers(ring, reader, recording);
  recording.segments = read_segments(ring);
  recording.waits = read_waits(ring);
  read_exit(ring, reader, recording);
  recording.standard_error = read_stderr(ring);
  if (const auto answered = ring.load<std::uint64_t>(HEADER(watcher_time)); answered != 0) {
    recording.driver_answered = reader.seconds(answered);
  }
  return recording;
}

}  // namespace ddpdoctor::sources
