// SPDX-License-Identifier: Apache-2.0
// Objects are processed in steps: first the content of their slots is collected; then, outside
// dl_iterate_phdr (whose callback must not take the loader's other lock), doors are chosen; then
// the slots are written. Nothing is written while another thread may still be relocating.
#include "agent/slots/slots.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

#include <sys/mman.h>

#include "agent/inside.h"
#include "agent/record/file_status.h"
#include "agent/slots/definitions.h"
#include "agent/slots/names.h"
#include "agent/slots/object.h"

namespace ddpdoctor::agent {
namespace {

constinit std::atomic<bool> begun{false};
constinit std::atomic<bool> looking{false};
constinit std::atomic<bool> alone{false};  // this process had only one thread at its last fork
constinit std::atomic<std::uint64_t> looked_at{0};  // number of objects loaded by the last pass

/// How many objects the process has loaded and unloaded so far; both numbers only grow.
struct Count {
  unsigned long long loaded = 0;
  unsigned long long unloaded = 0;
  bool operator==(const Count&) const = default;
};

int take_count(dl_phdr_info* info, std::size_t, void* data) {
  *static_cast<Count*>(data) = {info->dlpi_adds, info->dlpi_subs};
  return 1;
}

Count count_objects() {
  Count count;
  dl_iterate_phdr(take_count, &count);
  return count;
}

// Finished objects, identified by their program headers, which are unique.
constexpr std::size_t kSeen = 4096;
constexpr std::size_t kMostSeen = kSeen / 2;
constinit const void* seen[kSeen]{};
constinit std::size_t seen_count = 0;
constinit unsigned long long seen_unloaded = 0;

// Limits the passes for a program that opens and closes libraries continuously.
constexpr int kForgetAtMost = 64;
constinit int forgotten = 0;

const void** seen_place(const void* key) {
  std::size_t at = (reinterpret_cast<std::uint64_t>(key) * 0x9E3779B97F4A7C15U) >> 52U;
  while (seen[at] != nullptr && seen[at] != key) {
    at = (at + 1) % kSeen;
  }
  return &seen[at];
}

void remember_seen(const void* key) {
  const void** const place = seen_place(key);
  if (*place == nullptr && seen_count < kMostSeen) {
    *place = key;
    ++seen_count;
  }
}

/// The content of one function's slots, and the door for it.
struct Choice {
  void* value;
  void* door;
  // Start of the object with these slots; an unbound slot belongs to its object alone.
  ElfW(Addr) owner;
  std::int16_t place;
  std::int16_t next;  // next choice with the same name, -1 = none
  bool unbound;
};
constexpr int kChoices = 1024;
constexpr int kHits = 8192;

/// A slot to write.
struct Hit {
  void** slot;
  const void* object;  // identified by its program headers
  int choice;
};

struct Look {
  Count count;
  bool overtaken;  // objects were loaded or unloaded in the meantime
  int choices;
  int hits;
  std::int16_t first[kMostNames];  // choice by the index of the name, -1 = none
  Choice choice[kChoices];
  Hit hit[kHits];  // grouped by object
};
constinit Look look{};

/// -1 if there is none.
int known_choice(const Object& object, const Slot& slot) {
  for (int at = look.first[slot.place]; at >= 0; at = look.choice[at].next) {
    const Choice& known = look.choice[at];
    if (known.value == slot.value && (!slot.unbound || known.owner == object.begin)) {
      return at;
    }
  }
  return -1;
}

int choice_for(const Object& object, const Slot& slot) {
  if (const int known = known_choice(object, slot); known >= 0 || look.choices == kChoices) {
    return known;
  }
  look.choice[look.choices] = {.value = slot.value,
                               .door = nullptr,
                               .owner = object.begin,
                               .place = static_cast<std::int16_t>(slot.place),
                               .next = look.first[slot.place],
                               .unbound = slot.unbound};
  look.first[slot.place] = static_cast<std::int16_t>(look.choices);
  return look.choices++;
}

bool is_overtaken(const dl_phdr_info& info) {
  look.overtaken = look.overtaken || look.count != Count{info.dlpi_adds, info.dlpi_subs};
  return look.overtaken;
}

bool is_ours(const Object& object) {
  return object.holds(reinterpret_cast<const void*>(&is_overtaken));
}

int note_object(dl_phdr_info* info, std::size_t, void* ours) {
  if (is_overtaken(*info)) {
    return 1;
  }
  if (*seen_place(info->dlpi_phdr) != nullptr) {
    return 0;
  }
  const Object object = read_object(*info);
  bool any = false;
  Slots slots(object);
  for (Slot slot{}; !is_ours(object) && slots.next(slot);) {
    if (static_cast<const Object*>(ours)->holds(slot.value) || look.hits == kHits) {
      continue;
    }
    if (const int choice = choice_for(object, slot); choice >= 0) {
      look.hit[look.hits++] = {slot.address, info->dlpi_phdr, choice};
      any = true;
    }
  }
  if (!any) {
    remember_seen(info->dlpi_phdr);
  }
  return 0;
}

void* door_to(const Name& name, void* real) {
  switch (name.family) {
    case Family::kNccl:
      return nccl::door_to(name.id, real);
    case Family::kMpi:
      return mpi_door_to(name.id / 3, name.id % 3, real);
    case Family::kCuda:
      return cuda_door_to(name.id, real);
    default:
      return c10d_door_to(name.id, real);
  }
}

/// The function to which the dynamic linker would bind a slot at its first call: the global scope
/// comes first, then the object's own. Null if the two differ, because the result depends on how
/// the object was loaded.
void* bound_later(void* own, const char* name) {
  void* const everybodys = dlsym(RTLD_DEFAULT, name);
  const bool agree = own == nullptr || everybodys == nullptr || own == everybodys;
  return !agree ? nullptr : everybodys != nullptr ? everybodys : own;
}

/// The choices of one object are consecutive; its scope is searched once for all of them.
void choose_doors() {
  static constinit const char* name[kMostNames]{};
  static constinit void* own[kMostNames]{};
  for (int first = 0, end = 0; first < look.choices; first = end) {
    bool asks = false;
    for (; end < look.choices && end < first + kMostNames &&
           look.choice[end].owner == look.choice[first].owner;
         ++end) {
      name[end - first] = name_at(look.choice[end].place).text;
      asks = asks || look.choice[end].unbound;
    }
    if (asks) {
      look_up(reinterpret_cast<const void*>(look.choice[first].owner), Reach::kDependencies, name,
              own, end - first);
    }
    for (int i = first; i < end; ++i) {
      Choice& choice = look.choice[i];
      void* const real =
          choice.unbound ? bound_later(own[i - first], name[i - first]) : choice.value;
      choice.door = real == nullptr ? nullptr : door_to(name_at(choice.place), real);
    }
  }
}

/// Makes the loader's read-only pages of an object writable during its lifetime.
class Unlocked {
 public:
  explicit Unlocked(const Object& object) : object_(&object) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    if (open_) {
      static_cast<void>(protect(PROT_READ));
    }
  }
  bool may_write(const void* address) {
    if (object_->is_locked(address) && !open_) {
      open_ = protect(PROT_READ | PROT_WRITE);
      return open_;
    }
    return true;
  }

 private:
  [[nodiscard]] bool protect(int how) const {
    return mprotect(reinterpret_cast<void*>(object_->locked), object_->locked_end - object_->locked,
                    how) == 0;
  }
  const Object* object_;
  bool open_ = false;
};

int write_object(dl_phdr_info* info, std::size_t, void*) {
  if (is_overtaken(*info)) {
    return 1;
  }
  int at = 0;
  while (at < look.hits && look.hit[at].object != info->dlpi_phdr) {
    ++at;
  }
  if (at == look.hits) {
    return 0;
  }
  const Object object = read_object(*info);
  Unlocked unlocked(object);
  for (; at < look.hits && look.hit[at].object == info->dlpi_phdr; ++at) {
    const Choice& choice = look.choice[look.hit[at].choice];
    void* held = choice.value;
    if (choice.door != nullptr && unlocked.may_write(look.hit[at].slot)) {
      __atomic_compare_exchange_n(look.hit[at].slot, &held, choice.door, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED);
    }
  }
  remember_seen(info->dlpi_phdr);
  return 0;
}

int find_ours(dl_phdr_info* info, std::size_t, void* into) {
  const Object object = read_object(*info);
  if (is_ours(object)) {
    *static_cast<Object*>(into) = object;
    return 1;
  }
  return 0;
}

/// Waits, as dlsym itself would, until no other thread is loading; errors of our own lookups must
/// not appear in the program's dlerror.
void pass_the_loaders_lock() {
  if (void* const program = dlopen(nullptr, RTLD_NOLOAD | RTLD_LAZY); program != nullptr) {
    dlclose(program);
  }
}

/// False if objects were loaded or unloaded in the meantime.
bool look_once() {
  static constinit Object ours{};
  if (ours.end == 0) {
    dl_iterate_phdr(find_ours, &ours);
  }
  look.count = count_objects();
  look.overtaken = false;
  look.choices = look.hits = 0;
  memset(look.first, -1, sizeof look.first);
  if (look.count.unloaded != seen_unloaded && forgotten < kForgetAtMost) {
    ++forgotten;  // another object may be at the address of an unloaded one
    memset(static_cast<void*>(seen), 0, sizeof seen);
    seen_count = 0;
    seen_unloaded = look.count.unloaded;
  }
  pass_the_loaders_lock();
  dl_iterate_phdr(note_object, &ours);
  if (!look.overtaken && look.choices > 0) {
    choose_doors();
    dl_iterate_phdr(write_object, nullptr);
    pass_the_loaders_lock();
  }
  return !look.overtaken;
}

void look_until_nobody_overtakes() {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    if (look_once()) {
      looked_at.store(look.count.loaded, std::memory_order_release);
      return;
    }
  }
}

}  // namespace

void begin_with_slots() {
  look_until_nobody_overtakes();
  begun.store(true, std::memory_order_release);
}

void look_for_slots() {
  if (!begun.load(std::memory_order_acquire)) {
    return;
  }
  const Inside inside;
  if (!inside || count_objects().loaded == looked_at.load(std::memory_order_acquire) ||
      looking.exchange(true, std::memory_order_acquire)) {
    return;
  }
  look_until_nobody_overtakes();
  begun.store(seen_count < kMostSeen, std::memory_order_relaxed);
  looking.store(false, std::memory_order_release);
}

void note_who_else_runs() {
  const Inside inside;
  struct stat tasks{};
  constexpr nlink_t kOfOneThread = 3;
  alone.store(status_of("/proc/self/task", tasks) && tasks.st_nlink == kOfOneThread,
              std::memory_order_relaxed);
}

void forget_who_looks() {
  if (!alone.load(std::memory_order_relaxed)) {
    begun.store(false, std::memory_order_relaxed);
  }
  looking.store(false, std::memory_order_relaxed);
}

}  // namespace ddpdoctor::agent
