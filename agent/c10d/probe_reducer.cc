// SPDX-License-Identifier: Apache-2.0
// DDP's reducer: which parameters were marked ready in the current backward pass, by name. Stored
// as a generation per parameter, so that the file contains the answer however many events follow.
#include <cstring>

#include "agent/c10d/torch_objects.h"
#include "agent/hooks.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

// Node of unordered_map<size_t, std::string> (libstdc++; integer keys have no stored hash),
// followed by the string in either ABI.
struct NameNode {
  const NameNode* next;
  std::uint64_t key;
};

struct NameMap {
  std::uint64_t buckets;
  std::uint64_t bucket_count;
  const NameNode* first;
  std::uint64_t size;
};

wire::Reducer* reducer_of(wire::Ring& ring, std::uint64_t object) {
  for (wire::Reducer& reducer : ring.reducer) {
    if (reducer.object == object) {
      return &reducer;
    }
  }
  return nullptr;
}

String name_behind(const NameNode* node, bool old_strings) {
  const auto at = reinterpret_cast<std::uint64_t>(node + 1);
  return old_strings ? as<OldString>(at).plain() : as<String>(at);
}

/// Reads the names; the function's mangled name shows the positions of find_unused_parameters and
/// of the names.
void read_names(wire::Ring& ring, Meaning meaning, const Arguments& arguments,
                wire::Reducer& reducer) {
  const int first = meaning == Meaning::kReducerConstructor ? 6 : 7;
  reducer.find_unused = static_cast<std::uint8_t>(arguments.value[first]);
  const auto* const names = reinterpret_cast<const NameMap*>(arguments.value[first + 2]);
  std::uint64_t left = names->size;
  for (const NameNode* node = names->first; node != nullptr && left > 0; node = node->next) {
    const String name = name_behind(node, meaning == Meaning::kReducerOldStrings);
    if (node->key < wire::kParameters && name.length < 512) {
      reducer.parameter[node->key].name = intern(ring, name.text, name.length);
    }
    --left;
  }
}

void constructed(wire::Ring& ring, Meaning meaning, const Arguments& arguments) {
  if (reducer_of(ring, arguments.value[0]) != nullptr) {
    return;  // C1 calls C2
  }
  const std::uint32_t index = ring.header.reducers.fetch_add(1, std::memory_order_relaxed);
  wire::Reducer& reducer = ring.reducer[index % wire::kReducers];
  memset(static_cast<void*>(&reducer), 0, sizeof reducer);
  const auto* const parameters = reinterpret_cast<const std::uint64_t*>(arguments.value[1]);
  reducer.parameters = static_cast<std::uint32_t>((parameters[1] - parameters[0]) / 8);
  reducer.site = call_site(ring);
  reducer.last_time = now();
  read_names(ring, meaning, arguments, reducer);
  reducer.object = arguments.value[0];
  record(ring, {.kind = wire::EventKind::kReducerCreated,
                .site = reducer.site,
                .object = reducer.object,
                .count = reducer.parameters});
}

}  // namespace

void reducer_event(Meaning meaning, const Arguments& arguments) {
  wire::Ring* const ring_now = ring_or_make();
  if (ring_now == nullptr) {
    return;
  }
  if (meaning == Meaning::kReducerConstructor || meaning == Meaning::kReducerWithLimits ||
      meaning == Meaning::kReducerOldStrings) {
    constructed(*ring_now, meaning, arguments);
    return;
  }
  wire::Reducer* const reducer = reducer_of(*ring_now, arguments.value[0]);
  if (reducer == nullptr) {
    return;
  }
  switch (meaning) {
    case Meaning::kPrepareForward:
      ++reducer->forwards;
      break;
    case Meaning::kPrepareBackward:
      ++reducer->generation;
      reducer->last_time = now();
      break;
    case Meaning::kAutogradHook:
      if (arguments.value[1] < wire::kParameters) {
        reducer->parameter[arguments.value[1]].hooked = reducer->generation;
      }
      break;
    case Meaning::kVariableReady:
      if (arguments.value[1] < wire::kParameters) {
        reducer->parameter[arguments.value[1]].ready = reducer->generation;
      }
      reducer->last_time = now();
      break;
    case Meaning::kFinalizeBackward:
      reducer->finalized = reducer->generation;
      reducer->last_time = now();
      break;
    case Meaning::kStaticGraph:
      reducer->static_graph = 1;
      break;
    default:
      break;
  }
}

}  // namespace ddpdoctor::agent
