// SPDX-License-Identifier: Apache-2.0
// The file that a rank leaves behind: one per process, memory-mapped by the agent in the rank and
// read by the collector, even after `kill -9`. Plain structs with a fixed layout; nothing here
// allocates. docs/wire-format.md shows it as a drawing.
//
// Version: raise kVersion when a field moves or changes its meaning, or a struct changes its size.
// A new event kind, or the use of reserved bytes (zero in old files), does not need it. Readers
// refuse other versions and name both numbers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddpdoctor::wire {

inline constexpr std::uint64_t kMagic = 0x31474E4952504444;  // "DDPRING1"
inline constexpr std::uint32_t kVersion = 1;

inline constexpr std::uint32_t kSlots = 16384;
inline constexpr std::uint32_t kSites = 8192;
inline constexpr std::uint32_t kTextBytes = 512 * 1024;
inline constexpr std::uint32_t kGroups = 64;
inline constexpr std::uint32_t kReducers = 4;
inline constexpr std::uint32_t kParameters = 4096;
inline constexpr std::uint32_t kWorks = 1024;
inline constexpr std::uint32_t kStderrBytes = 16 * 1024;
inline constexpr std::uint32_t kSegments = 256;
inline constexpr std::uint32_t kSiteDepth = 24;

/// How a process ended, as far as it could record it.
enum class ExitKind : std::uint32_t {
  kNone = 0,
  kExit = 1,
  kImmediateExit = 2,
  kSignal = 3,
  kAbort = 4,
  kExec = 5
};

/// Why a part of the recording is absent.
enum Disabled : std::uint32_t {
  kNoCallSites = 1,       // CPython with an unknown layout
  kNoTensorFacts = 2,     // torch without the functions that return sizes
  kNoSequence = 4,        // our own counter replaces torch's
  kFramesNotAsKnown = 8,  // CPython of a known version with frames at unknown offsets
  kNoReduceOps = 16,      // torch with reduce ops at unknown offsets
  kNoRoots = 32,
};

/// One event: 64 bytes, valid when `sequence` = index + 1, which is written last with release
/// order.
struct Slot {
  std::atomic<std::uint64_t> sequence;
  std::uint64_t time;  // CLOCK_MONOTONIC, nanoseconds
  std::uint32_t tid;
  std::uint16_t kind;            // EventKind
  std::uint8_t phase;            // Phase
  std::uint8_t operation;        // Operation
  std::uint32_t site;            // index into sites, 0 = unknown
  std::uint16_t group;           // index into groups + 1, 0 = none
  std::uint8_t dtype;            // c10::ScalarType, 255 = unknown
  std::uint8_t reduce_op;        // c10d::ReduceOp, 255 = unknown
  std::uint64_t object;          // address of the Work, Reducer, … inside the process; 0 = none
  std::int64_t count;            // elements, or a kind's own number; -1 = unknown
  std::uint32_t group_sequence;  // from 1; point-to-point calls are counted separately
  std::int32_t peer;             // root, source or destination as group rank; -1 = none
  std::uint32_t text;            // offset into the text pool (shape, key, path, splits), 0 = none
  std::uint32_t detail;          // flags: kAsync …, or a kind's own number
};
static_assert(sizeof(Slot) == 64);
static_assert(offsetof(Slot, count) == 40);

/// A call site in Python as a node of a tree; its parent is its caller. Index 0 is "unknown".
struct Site {
  std::uint32_t caller;    // index into sites, 0 = outermost
  std::uint32_t file;      // offset into the text pool
  std::uint32_t function;  // offset into the text pool
  std::uint32_t line;
};
static_assert(sizeof(Site) == 16);

/// A process group as this process knows it, with its counters: readable even after the slots were
/// overwritten.
struct Group {
  std::uint64_t backend;  // address of the c10d backend object, the key inside this process
  std::uint64_t process_group;
  char name[48];            // as torch names it: "0", "1", …; empty = unknown
  char backend_name[16];    // "gloo", "nccl"
  std::int32_t group_rank;  // -1 = unknown
  std::int32_t size;        // -1 = unknown
  std::uint32_t enqueued;   // number of collectives = the newest group_sequence
  std::uint32_t completed;  // newest group_sequence that is known to be completed
  std::uint32_t failed;
  std::uint32_t point_to_point;  // number of send and recv calls
  std::uint64_t last_enqueued_time;
  std::uint64_t last_completed_time;
  Slot last;  // a copy of the newest call's slot (its `sequence` is the slot's index + 1)
  std::uint32_t checks;      // 1: the group only compares calls for TORCH_DISTRIBUTED_DEBUG=DETAIL
  std::uint32_t asked_tid;   // the thread that last asked NCCL for the state of its own call
  std::uint64_t asked_time;  // when NCCL last answered "in progress"; 0 = never
  std::uint64_t reserved[7];
};
static_assert(sizeof(Group) % 64 == 0);

/// A parameter of a DDP reducer.
struct Parameter {
  std::uint32_t ready;  // generation (backward) in which it was last marked ready
  // Generation in which its gradient was accumulated; ready but not hooked = marked as unused.
  std::uint32_t hooked;
  std::uint32_t name;    // offset into the text pool
  std::uint32_t bucket;  // + 1; 0 = unknown
};

/// One c10d::Reducer (a DDP-wrapped module).
struct Reducer {
  std::uint64_t object;
  std::uint32_t parameters;  // number of parameters; only the first kParameters are kept
  std::uint32_t generation;  // backward passes begun
  std::uint32_t finalized;   // newest generation whose backward pass was finalized
  std::uint32_t find_unused;
  std::uint32_t static_graph;
  std::uint32_t forwards;  // forward passes begun
  std::uint32_t site;      // call site of the constructor
  std::uint32_t reserved0;
  std::uint64_t last_time;
  std::uint64_t reserved[2];
  Parameter parameter[kParameters];
};

/// Maps the address of a Work object in flight to its call.
struct Work {
  std::atomic<std::uint64_t> object;
  std::uint32_t group;  // index + 1
  std::uint32_t group_sequence;
  std::uint32_t operation;
  std::uint32_t reserved;
};

/// Bits of Segment::created.
inline constexpr std::uint32_t kSegmentCreated = 1;  // by this process
inline constexpr std::uint32_t kSegmentMapped = 2;   // mapped by this process, by any creator

/// A shared-memory segment this process created or mapped.
struct Segment {
  char name[96];
  std::uint64_t bytes;
  std::uint32_t created;   // kSegment bits
  std::uint32_t unlinked;  // 1: by us
  std::uint64_t time;
};

/// What a thread waits in.
enum class WaitKind : std::uint32_t { kBarrier = 1, kSemaphore = 2 };

/// A thread's wait in libc while it lasts. A cancelled thread's entry stays.
struct Wait {
  std::atomic<std::uint32_t> tid;  // 0 = free, all bits set = being filled
  std::uint32_t kind;              // WaitKind
  std::uint64_t object;            // address of the barrier or semaphore
  std::uint64_t since;             // CLOCK_MONOTONIC, nanoseconds
};
static_assert(sizeof(Wait) == 24);
inline constexpr std::uint32_t kWaits = 64;

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t bytes;  // size of the whole file
  std::uint32_t pid;
  std::uint32_t ppid;
  std::uint64_t start_ticks;  // field 22 of /proc/PID/stat: pids are reused
  std::int32_t rank;          // from the environment or init_process_group; -1 = unknown
  std::int32_t local_rank;
  std::int32_t world_size;
  std::uint32_t disabled;      // Disabled bits
  std::uint64_t monotonic_ns;  // both clocks when the file was made
  std::uint64_t wall_ns;
  std::atomic<std::uint64_t> head;  // index of the next slot; head - kSlots … head - 1 are kept
  std::atomic<std::uint64_t> lost;
  std::atomic<std::uint32_t> sites;
  std::atomic<std::uint32_t> text_used;
  std::atomic<std::uint32_t> groups;
  std::atomic<std::uint32_t> reducers;
  std::atomic<std::uint32_t> segments;
  std::atomic<std::uint32_t> stderr_head;  // bytes ever written
  std::atomic<std::uint64_t> collectives;  // calls begun in all groups, to detect progress
  std::uint32_t exit_kind;                 // ExitKind
  std::int32_t exit_value;  // 6 after an abort, -6 when the interpreter was being finalized
  std::uint64_t exit_time;
  std::uint32_t exit_site;
  std::uint32_t forked;  // 1: made by fork without exec
  std::uint32_t
      parent_team;  // pid of the ancestor whose OpenMP team existed before the fork, 0 = none
  // 1: this process entered an OpenMP team that it inherited without threads.
  std::uint32_t team_entered;
  std::uint32_t team_site;
  std::uint32_t team_size;      // largest team requested
  std::uint32_t cuda_contexts;  // bit per device
  std::uint32_t cuda_before_fork;
  std::uint32_t forks;
  char torch_version[32];
  char python_version[16];
  char command[256];
  // When the agent's thread last checked the GPU's events, 0 = no such thread.
  std::uint64_t watcher_time;
  Wait wait[kWaits];
  // Calls of NCCL whose end was not tracked because the agent's tables were full.
  std::atomic<std::uint32_t> untracked;
};
static_assert(sizeof(Header) <= 4096);

/// The whole file.
struct Ring {
  union {
    Header header;
    char header_page[4096];
  };
  Slot slot[kSlots];
  Site site[kSites];
  Group group[kGroups];
  Reducer reducer[kReducers];
  Work work[kWorks];
  Segment segment[kSegments];
  char text[kTextBytes];
  char standard_error[kStderrBytes];
};
static_assert(sizeof(Ring) < 4 * 1024 * 1024);

}  // namespace ddpdoctor::wire
