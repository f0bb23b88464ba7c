// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/devices.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/model/gpu_calls.h"

namespace ddpdoctor::model {
namespace {

using sources::RecordedGroup;
using sources::Recording;

/// The devices of each communicator that has several of them in this process.
std::map<std::string, std::set<int>> local_communicators(const Recording& recording) {
  std::map<std::string, std::set<int>> found;
  for (const RecordedGroup& group : recording.groups) {
    if (is_communicator(group) && !group.name.empty() && group.group_rank) {
      found[group.name].insert(*group.group_rank);
    }
  }
  std::erase_if(found, [](const auto& entry) { return entry.second.size() < 2; });
  return found;
}

/// The thread that made the last call for a device; 0 = none.
pid_t launching_thread(const Recording& recording, int device) {
  const auto last = std::find_if(recording.calls.rbegin(), recording.calls.rend(),
                                 [&](const sources::RecordedCall& call) {
                                   return call.group < recording.groups.size() &&
                                          recording.groups[call.group].group_rank == device;
                                 });
  return last == recording.calls.rend() ? 0 : last->thread;
}

/// The part of a recording that belongs to one device; group indices are kept, so calls find their
/// groups.
Recording of_device(const Recording& recording, int device, const std::set<int>& devices) {
  Recording one = recording;
  for (const int other : devices) {
    const pid_t thread = launching_thread(recording, other);
    if (thread != launching_thread(recording, device)) {
      one.threads_of_others.push_back(thread);
    }
  }
  one.one_device = true;
  one.rank = device;
  one.world_size = static_cast<int>(devices.size());
  std::erase_if(one.calls, [&](const sources::RecordedCall& call) {
    return call.group >= recording.groups.size() ||
           recording.groups[call.group].group_rank != device;
  });
  for (RecordedGroup& group : one.groups) {
    if (group.group_rank != device) {
      group = {};
    }
  }
  if (device > 0) {  // reported once, with device 0
    one.events.clear();
    one.segments.clear();
    one.waits.clear();
    one.notes.clear();
    one.lost = 0;
  }
  return one;
}

/// True if no other process is a rank.
bool is_alone(const std::vector<Recording>& recordings, const Recording& recording) {
  return !recording.forked &&
         std::none_of(recordings.begin(), recordings.end(), [&](const Recording& other) {
           return &other != &recording && !other.forked && other.rank.has_value();
         });
}

}  // namespace

bool drives_devices(const Recording& recording) {
  return !local_communicators(recording).empty();
}

std::vector<Recording> by_device(const std::vector<Recording>& recordings) {
  std::vector<Recording> out;
  for (const Recording& recording : recordings) {
    const auto local = local_communicators(recording);
    if (local.empty()) {
      out.push_back(recording);
      continue;
    }
    const auto largest = std::max_element(
        local.begin(), local.end(),
        [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (is_alone(recordings, recording)) {
      for (const int device : largest->second) {
        out.push_back(of_device(recording, device, largest->second));
      }
      continue;
    }
    Recording apart = recording;
    for (RecordedGroup& group : apart.groups) {
      if (local.contains(group.name)) {
        group.name += fmt::format(" device {}", group.group_rank.value_or(0));
      }
    }
    out.push_back(std::move(apart));
  }
  return out;
}

Process seen_for_another_device(const std::vector<Process>& processes, const Recording& recording) {
  const auto same = std::find_if(processes.begin(), processes.end(), [&](const Process& process) {
    return recording.one_device && process.pid == recording.pid;
  });
  if (same == processes.end()) {
    return {};
  }
  Process copy = *same;
  copy.rank.reset();
  return copy;
}

void keep_own_threads(std::vector<Process>& processes, const std::vector<Recording>& recordings) {
  for (const Recording& recording : recordings) {
    for (Process& process : processes) {
      if (recording.one_device && process.pid == recording.pid && process.rank == recording.rank) {
        std::erase_if(process.threads, [&recording](const Thread& thread) {
          return std::ranges::find(recording.threads_of_others, thread.tid) !=
                 recording.threads_of_others.end();
        });
      }
    }
  }
}

}  // namespace ddpdoctor::model
