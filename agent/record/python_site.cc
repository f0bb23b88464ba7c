// SPDX-License-Identifier: Apache-2.0
// Reads only the calling thread's own frames, which do not change meanwhile.
// PyGILState_GetThisThreadState is thread-local and needs no GIL; after a binding released the GIL,
// "the current thread state" would be another thread's. Nothing is followed before python_proof.h
// has verified that this interpreter matches its row of the table.
#include "agent/record/python_site.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>

#include "agent/record/python_layout_table.h"
#include "agent/record/python_proof.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

using ThreadStateFunction = void* (*)();

enum : int { kUntried, kTrying, kUnproven, kOn, kOff };
constinit std::atomic<int> readiness{kUntried};
const FrameLayout* layout = nullptr;
ThreadStateFunction thread_state = nullptr;
constinit PythonSymbols python{};

struct SiteSlot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint32_t> site;
};
constexpr std::uint32_t kSiteSlots = 16384;
struct alignas(kPage) KnownSites {
  SiteSlot slot[kSiteSlots];
};
constinit KnownSites known{};
bool wipe_by_hand = false;

template <typename T>
T at(const void* base, int offset) {
  T value;
  memcpy(&value, static_cast<const char*>(base) + offset, sizeof value);
  return value;
}

bool is_free_threaded(const char* version) {
  return strstr(version, "free-threading") != nullptr;
}

/// The row for "3.11.7 (main, …)"; free-threaded builds have other layouts.
const FrameLayout* layout_of(const char* version) {
  if (version[0] != '3' || version[1] != '.' || is_free_threaded(version)) {
    return nullptr;
  }
  int minor = 0;
  for (const char* digit = version + 2; *digit >= '0' && *digit <= '9'; ++digit) {
    minor = minor * 10 + (*digit - '0');
  }
  for (const FrameLayout& row : kFrameLayouts) {
    if (row.minor == minor) {
      return &row;
    }
  }
  return nullptr;
}

using QuestionFunction = int (*)();
constinit std::atomic<QuestionFunction> is_finalizing{nullptr};
constinit std::atomic<QuestionFunction> is_initialized{nullptr};

QuestionFunction find_question(const char* name) {
  return reinterpret_cast<QuestionFunction>(dlsym(RTLD_DEFAULT, name));
}

template <typename T>
T* symbol(const char* name) {
  return reinterpret_cast<T*>(dlsym(RTLD_DEFAULT, name));
}

/// The interpreter version in the header of each ring, including a child's.
constinit char version_text[sizeof wire::Header::python_version]{};
constinit std::atomic<std::uint32_t> why_off{0};  // wire::Disabled

/// "3.11.7", and "3.13.0t" of a free-threaded build.
void remember_version(const char* version) {
  std::size_t length = strcspn(version, " ");
  length = length < sizeof version_text - 1 ? length : sizeof version_text - 2;
  memcpy(version_text, version, length);
  if (is_free_threaded(version)) {
    version_text[length] = 't';
  }
}

void tell_ring(wire::Ring& ring) {
  memcpy(ring.header.python_version, version_text, sizeof version_text);
  ring.header.disabled &= ~std::uint32_t{wire::kNoCallSites | wire::kFramesNotAsKnown};
  ring.header.disabled |= why_off.load(std::memory_order_relaxed);
}

/// Finds the interpreter's exports once; true if its frames may be examined.
bool find_interpreter() {
  using VersionFunction = const char*();
  VersionFunction* const version = symbol<VersionFunction>("Py_GetVersion");
  thread_state = symbol<void*()>("PyGILState_GetThisThreadState");
  python = {.code_type = symbol<void>("PyCode_Type"),
            .string_type = symbol<void>("PyUnicode_Type"),
            .bytes_type = symbol<void>("PyBytes_Type"),
            .frame_type = symbol<void>("PyFrame_Type"),
            .line_of = symbol<int(void*, int)>("PyCode_Addr2Line")};
  const QuestionFunction finalizing = find_question("Py_IsFinalizing");  // from 3.13 on
  is_finalizing.store(finalizing != nullptr ? finalizing : find_question("_Py_IsFinalizing"));
  is_initialized.store(find_question("Py_IsInitialized"));
  if (version == nullptr) {  // a process without Python has no call sites
    return false;
  }
  remember_version(version());
  layout = layout_of(version());
  if (layout == nullptr || thread_state == nullptr || !python.complete()) {
    why_off.store(wire::kNoCallSites);
    return false;
  }
  wipe_by_hand = !forget_in_children(&known, sizeof known);
  return true;
}

// A frame may be seen while it is destroyed, so a single failure does not decide; and a program
// with one frame never shows more, however often it is checked.
constexpr int kMostFailures = 8;
constexpr int kEnoughSingles = 64;
constinit std::atomic<int> failures{0};
constinit std::atomic<int> singles{0};

/// True if the frames of this thread match the row.
bool proven(const void* state) {
  const Verdict verdict = frames_are_as(*layout, python, state);
  const bool holds = verdict == Verdict::kHolds || verdict == Verdict::kHoldsOnce;
  if (verdict == Verdict::kHolds || (holds && singles.fetch_add(1) + 1 >= kEnoughSingles)) {
    why_off.store(0);
    readiness.store(kOn, std::memory_order_release);
  } else if (verdict == Verdict::kFails) {
    why_off.store(wire::kFramesNotAsKnown);
    if (failures.fetch_add(1) + 1 >= kMostFailures) {
      readiness.store(kOff, std::memory_order_release);
    }
  }
  return holds;
}

/// True when the frames of the calling thread may be read directly.
bool may_follow(const void* state) {
  return state != nullptr && (readiness.load(std::memory_order_acquire) == kOn || proven(state));
}

/// The calling thread's PyThreadState if its frames may be read directly, else null.
const void* readable_thread(wire::Ring& ring) {
  int state = readiness.load(std::memory_order_acquire);
  if (state == kUntried &&
      readiness.compare_exchange_strong(state, kTrying, std::memory_order_acq_rel)) {
    state = find_interpreter() ? kUnproven : kOff;
    readiness.store(state, std::memory_order_release);
  }
  const void* const thread = state == kOn || state == kUnproven ? thread_state() : nullptr;
  const bool readable = may_follow(thread);
  if (ring.header.python_version[0] == 0 || state != kOn) {
    tell_ring(ring);
  }
  return readable ? thread : nullptr;
}

/// The text of a compact ASCII string; other strings are omitted instead of decoded here.
std::uint32_t text_of(wire::Ring& ring, const void* string) {
  constexpr std::uint32_t kCompactAscii = 0x60;
  if (string == nullptr || (at<std::uint32_t>(string, 32) & kCompactAscii) != kCompactAscii) {
    return 0;
  }
  return intern(ring, static_cast<const char*>(string) + layout->string_ascii,
                at<std::uint64_t>(string, 16));
}

struct RawFrame {
  void* code;
  std::uint64_t instruction;
};

int line_number(const RawFrame& frame) {
  if (layout->minor >= 11) {
    const auto first = reinterpret_cast<std::uint64_t>(frame.code) +
                       static_cast<std::uint64_t>(layout->code_bytes);
    // prev_instr is before the first instruction of a frame that has not begun
    return python.line_of(
        frame.code, frame.instruction < first ? 0 : static_cast<int>(frame.instruction - first));
  }
  const auto last = static_cast<std::int32_t>(frame.instruction);
  return python.line_of(frame.code, layout->minor == 10 ? last * 2 : last);
}

std::uint32_t site_of(wire::Ring& ring, std::uint32_t caller, const RawFrame& frame) {
  std::uint64_t key = reinterpret_cast<std::uint64_t>(frame.code) * 0x9E3779B97F4A7C15U;
  key ^= frame.instruction * 0xC2B2AE3D27D4EB4FU;
  key = (key ^ (key >> 29U) ^ caller) * 0xBF58476D1CE4E5B9U;
  key = key == 0 ? 1 : key;
  for (std::uint32_t i = 0; i < 64; ++i) {
    SiteSlot& slot = known.slot[((key >> 40U) + i) % kSiteSlots];
    const std::uint64_t seen = slot.key.load(std::memory_order_acquire);
    if (seen == key) {
      return slot.site.load(std::memory_order_acquire);
    }
    if (seen != 0) {
      continue;
    }
    const std::uint32_t index = ring.header.sites.fetch_add(1, std::memory_order_relaxed);
    if (index >= wire::kSites) {
      ring.header.sites.store(wire::kSites, std::memory_order_relaxed);
      return 0;
    }
    wire::Site& site = ring.site[index];
    site.caller = caller;
    site.file = text_of(ring, at<void*>(frame.code, layout->code_filename));
    site.function = text_of(ring, at<void*>(frame.code, layout->code_name));
    site.line = static_cast<std::uint32_t>(line_number(frame));
    std::uint64_t expected = 0;
    if (slot.key.compare_exchange_strong(expected, key, std::memory_order_acq_rel)) {
      slot.site.store(index, std::memory_order_release);
    }
    return index;
  }
  return 0;
}

}  // namespace

std::uint32_t call_site(wire::Ring& ring) {
  const void* const state = readable_thread(ring);
  if (state == nullptr) {
    return 0;
  }
  const void* frame = nullptr;
  if (layout->thread_cframe >= 0) {
    const void* const cframe = at<const void*>(state, layout->thread_cframe);
    frame = cframe == nullptr ? nullptr : at<const void*>(cframe, layout->cframe_frame);
  } else {
    frame = at<const void*>(state, layout->thread_frame);
  }
  RawFrame frames[wire::kSiteDepth];
  std::uint32_t depth = 0;
  for (std::uint32_t links = 0; frame != nullptr && depth < wire::kSiteDepth && links < kMostLinks;
       ++links, frame = at<const void*>(frame, layout->frame_previous)) {
    if (layout->frame_owner >= 0 &&
        at<std::uint8_t>(frame, layout->frame_owner) >= kOwnedByCStack) {
      continue;
    }
    const std::uint64_t code = untagged(*layout, at<std::uint64_t>(frame, layout->frame_code));
    if (code == 0) {
      break;
    }
    frames[depth++] = {reinterpret_cast<void*>(code),
                       layout->minor >= 11
                           ? at<std::uint64_t>(frame, layout->frame_instruction)
                           : static_cast<std::uint64_t>(static_cast<std::uint32_t>(
                                 at<std::int32_t>(frame, layout->frame_instruction)))};
  }
  std::uint32_t site = 0;
  while (depth > 0) {
    site = site_of(ring, site, frames[--depth]);
  }
  return site;
}

bool interpreter_is_ending() {
  const QuestionFunction finalizing = is_finalizing.load(std::memory_order_relaxed);
  const QuestionFunction initialized = is_initialized.load(std::memory_order_relaxed);
  return (finalizing != nullptr && finalizing() != 0) ||
         (initialized != nullptr && initialized() == 0);
}

void forget_sites() {
  if (wipe_by_hand) {
    memset(static_cast<void*>(known.slot), 0, sizeof known.slot);
  }
}

}  // namespace ddpdoctor::agent
