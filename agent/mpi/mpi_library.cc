// SPDX-License-Identifier: Apache-2.0
#include "agent/mpi/mpi_library.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>

#include "agent/slots/definitions.h"

namespace ddpdoctor::agent {

#define MPI(id, arity, name, kind, operation, ...) \
  {"PMPI_" #name, MpiKind::kind, wire::Operation::operation, __VA_ARGS__},

const MpiCall mpi_calls[kMpiCalls] = {
#include "agent/mpi/mpi_calls.inc"
};

#undef MPI

namespace {

constinit std::atomic<void*> real[kMpiCalls][3]{};
constinit std::atomic<const void*> library_found{nullptr};

enum State : int { kUnsearched, kSearching, kFound, kStrange };
constinit std::atomic<int> state{kUnsearched};
MpiLibrary found;

struct Predefined {
  Word handle;
  std::uint8_t code;
};
constexpr std::uint32_t kPredefined = 256;
Predefined dtypes[kPredefined];
Predefined reduce_ops[kPredefined];

std::uint32_t place_of(Word handle) {
  return static_cast<std::uint32_t>((handle * 0x9E3779B97F4A7C15U) >> 56U);
}

void keep(Predefined* table, Word handle, std::uint8_t code) {
  for (std::uint32_t i = 0; handle != 0 && i < kPredefined; ++i) {
    Predefined& slot = table[(place_of(handle) + i) % kPredefined];
    if (slot.handle == 0 || slot.handle == handle) {
      slot = {handle, code};
      return;
    }
  }
}

std::uint8_t code_of(const Predefined* table, Word handle) {
  for (std::uint32_t i = 0; i < kPredefined; ++i) {
    const Predefined& slot = table[(place_of(handle) + i) % kPredefined];
    if (slot.handle == handle) {
      return slot.code;
    }
    if (slot.handle == 0) {
      break;
    }
  }
  return 255;
}

const char* name_in(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool may_be_mpi(const char* path) {
  const char* const name = name_in(path);
  return strncmp(name, "libmpi", 6) == 0 || strncmp(name, "libpmpi", 7) == 0;
}

/// Looks up a name where MPI was found: in the library itself or its dependencies (a tool may come
/// before it).
void* find_in(const void* library, const char* name) {
  return look_up(library, Reach::kDependencies, name);
}

/// An address in the library that contains MPI: searched among global symbols, then the library of
/// the called function, then by file name. Null if there is none.
const void* search_library(const void* function) {
  constexpr int kMost = 10;
  const void* library[kMost] = {dlsym(RTLD_DEFAULT, "PMPI_Init"), function};
  const int count = 2 + loaded_objects(may_be_mpi, library + 2, kMost - 2);
  for (int i = 0; i < count; ++i) {
    if (library[i] != nullptr && find_in(library[i], "PMPI_Init") != nullptr) {
      return library[i];
    }
  }
  return nullptr;
}

/// Address of an object of OpenMPI. The program may have a copy of it (COPY relocation), which all
/// users then share.
Word object(const void* library, const char* name) {
  const void* address = dlsym(RTLD_DEFAULT, name);
  address = address != nullptr ? address : find_in(library, name);
  return reinterpret_cast<Word>(address);
}

void read_openmpi(const void* library) {
  found.family = MpiFamily::kOpenMpi;
  found.world = object(library, "ompi_mpi_comm_world");
  found.self = object(library, "ompi_mpi_comm_self");
  found.null_communicator = object(library, "ompi_mpi_comm_null");
  found.in_place = 1;
#define DTYPE(symbol, mpich, standard, code) \
  keep(dtypes, object(library, "ompi_mpi_" #symbol), code);
#define REDUCE(symbol, mpich, standard, code) \
  keep(reduce_ops, object(library, "ompi_mpi_" #symbol), code);
#include "agent/mpi/mpi_handles.inc"
#undef DTYPE
#undef REDUCE
}

void read_mpich() {
  found.family = MpiFamily::kMpich;
  found.world = 0x44000000;
  found.self = 0x44000001;
  found.null_communicator = 0x04000000;
  found.in_place = ~Word{0};
#define DTYPE(symbol, mpich, standard, code) keep(dtypes, mpich, code);
#define REDUCE(symbol, mpich, standard, code) keep(reduce_ops, mpich, code);
#include "agent/mpi/mpi_handles.inc"
#undef DTYPE
#undef REDUCE
}

void read_standard_abi() {
  found.family = MpiFamily::kStandardAbi;
  found.world = 0x101;
  found.self = 0x102;
  found.null_communicator = 0x100;
  found.in_place = 1;
#define DTYPE(symbol, mpich, standard, code) keep(dtypes, standard, code);
#define REDUCE(symbol, mpich, standard, code) keep(reduce_ops, standard, code);
#include "agent/mpi/mpi_handles.inc"
#undef DTYPE
#undef REDUCE
}

template <typename F>
void find(const void* library, F*& function, const char* name) {
  function = reinterpret_cast<F*>(find_in(library, name));
}

/// MPICH's name for a function that its mpi.h refers to, so it is part of its binary interface.
constexpr const char* kOnlyMpich = "MPIR_Dup_fn";

void read_library(const void* library) {
  Dl_info where{};
  const char* const path =
      dladdr(find_in(library, "PMPI_Init"), &where) != 0 ? where.dli_fname : "";
  if (find_in(library, "ompi_mpi_comm_world") != nullptr) {
    read_openmpi(library);
  } else if (strncmp(name_in(path), "libmpi_abi.", 11) == 0) {
    read_standard_abi();
  } else if (find_in(library, kOnlyMpich) != nullptr) {
    read_mpich();
  }
  find(library, found.ask.rank, "PMPI_Comm_rank");
  find(library, found.ask.size, "PMPI_Comm_size");
  find(library, found.ask.group, "PMPI_Comm_group");
  find(library, found.ask.translate, "PMPI_Group_translate_ranks");
  find(library, found.ask.free_group, "PMPI_Group_free");
  const bool known = found.family != MpiFamily::kUnknown && found.ask.rank != nullptr &&
                     found.ask.size != nullptr && found.ask.group != nullptr &&
                     found.ask.translate != nullptr && found.ask.free_group != nullptr;
  state.store(known ? kFound : kStrange, std::memory_order_release);
}

}  // namespace

void* real_mpi(int id, MpiName which) {
  return real[id][static_cast<int>(which)].load(std::memory_order_acquire);
}

bool keep_real_mpi(int id, MpiName which, void* function) {
  if (library_found.load(std::memory_order_acquire) == nullptr) {
    library_found.store(search_library(function), std::memory_order_release);
  }
  void* known = nullptr;
  return real[id][static_cast<int>(which)].compare_exchange_strong(known, function,
                                                                   std::memory_order_acq_rel) ||
         known == function;
}

const MpiLibrary* mpi_library() {
  int now = state.load(std::memory_order_acquire);
  if (now == kFound) {
    return &found;
  }
  const void* const library = library_found.load(std::memory_order_acquire);
  if (now == kUnsearched && library != nullptr &&
      state.compare_exchange_strong(now, kSearching, std::memory_order_acq_rel)) {
    read_library(library);
  }
  return state.load(std::memory_order_acquire) == kFound ? &found : nullptr;
}

Word mpi_handle(const MpiLibrary& library, Word argument) {
  return library.family == MpiFamily::kMpich ? argument & 0xFFFFFFFFU : argument;
}

Word mpi_handle_at(const MpiLibrary& library, Word address, std::uint64_t index) {
  return library.family == MpiFamily::kMpich
             ? reinterpret_cast<const std::uint32_t*>(address)[index]
             : reinterpret_cast<const std::uint64_t*>(address)[index];
}

std::uint8_t mpi_dtype(Word handle) {
  return code_of(dtypes, handle);
}

std::uint8_t mpi_reduce_op(Word handle) {
  return code_of(reduce_ops, handle);
}

}  // namespace ddpdoctor::agent
