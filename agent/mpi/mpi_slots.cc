// SPDX-License-Identifier: Apache-2.0
#include "agent/mpi/mpi_slots.h"

#include <cstring>
#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <sys/mman.h>

#include "agent/inside.h"

namespace ddpdoctor::agent {
namespace {

struct Wanted {
  void* const* doors;
  bool has[kMpiCalls];
  const void* ourselves;
};

/// Id of "MPI_…_c", -1 when it is none of ours.
int id_of(const char* symbol) {
  const std::size_t length = strlen(symbol);
  if (strncmp(symbol, "MPI_", 4) != 0 || length < 7 || strcmp(symbol + length - 2, "_c") != 0) {
    return -1;
  }
  for (int id = 0; id < kMpiCalls; ++id) {
    const char* const name = mpi_calls[id].name + 1;
    if (strlen(name) == length - 2 && strncmp(name, symbol, length - 2) == 0) {
      return id;
    }
  }
  return -1;
}

struct Object {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * calls = nullptr;
  std::size_t calls_bytes = 0;
  const ElfW(Rela) * data = nullptr;
  std::size_t data_bytes = 0;
  ElfW(Addr) read_only = 0;  // what the loader protects after it has relocated
  std::size_t read_only_bytes = 0;
};

/// glibc has added the base to the addresses of what it loaded, but not to the kernel's own object.
template <typename T>
const T* address(const Object& object, ElfW(Addr) value) {
  return reinterpret_cast<const T*>(value < object.base ? object.base + value : value);
}

Object read_object(const dl_phdr_info& info) {
  Object object;
  object.base = info.dlpi_addr;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info.dlpi_phdr[i];
    if (part.p_type == PT_DYNAMIC) {
      entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + part.p_vaddr);
    } else if (part.p_type == PT_GNU_RELRO) {
      object.read_only = info.dlpi_addr + part.p_vaddr;
      object.read_only_bytes = part.p_memsz;
    }
  }
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) value = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) {
      object.symbols = address<ElfW(Sym)>(object, value);
    } else if (entry->d_tag == DT_STRTAB) {
      object.names = address<char>(object, value);
    } else if (entry->d_tag == DT_JMPREL) {
      object.calls = address<ElfW(Rela)>(object, value);
    } else if (entry->d_tag == DT_PLTRELSZ) {
      object.calls_bytes = entry->d_un.d_val;
    } else if (entry->d_tag == DT_RELA) {
      object.data = address<ElfW(Rela)>(object, value);
    } else if (entry->d_tag == DT_RELASZ) {
      object.data_bytes = entry->d_un.d_val;
    }
  }
  return object;
}

void point_to(const Object& object, void** slot, void* door) {
  const auto place = reinterpret_cast<ElfW(Addr)>(slot);
  const bool locked =
      place >= object.read_only && place < object.read_only + object.read_only_bytes;
  const auto page_size = static_cast<ElfW(Addr)>(sysconf(_SC_PAGESIZE));
  auto* const page = reinterpret_cast<void*>(place & ~(page_size - 1));
  if (locked && mprotect(page, page_size, PROT_READ | PROT_WRITE) != 0) {
    return;
  }
  __atomic_store_n(slot, door, __ATOMIC_RELEASE);
  if (locked) {
    mprotect(page, page_size, PROT_READ);
  }
}

void redirect(const Object& object, const ElfW(Rela) * first, std::size_t bytes,
              const Wanted& wanted) {
  for (std::size_t i = 0; first != nullptr && i < bytes / sizeof *first; ++i) {
    const auto type = ELF64_R_TYPE(first[i].r_info);
    if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) {
      continue;
    }
    const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(first[i].r_info)];
    const int id = id_of(object.names + symbol.st_name);
    auto* const slot = reinterpret_cast<void**>(object.base + first[i].r_offset);
    if (id >= 0 && wanted.has[id] && *slot != nullptr) {
      point_to(object, slot, wanted.doors[id]);
    }
  }
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  const auto& wanted = *static_cast<const Wanted*>(data);
  const char* const path = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  const char* const slash = strrchr(path, '/');
  const bool mpi_itself = strncmp(slash == nullptr ? path : slash + 1, "libmpi", 6) == 0;
  const Object object = read_object(*info);
  if (!mpi_itself && reinterpret_cast<const void*>(object.base) != wanted.ourselves &&
      object.symbols != nullptr && object.names != nullptr) {
    redirect(object, object.calls, object.calls_bytes, wanted);
    redirect(object, object.data, object.data_bytes, wanted);
  }
  return 0;
}

}  // namespace

void redirect_large_mpi(void* const* doors) {
  const Inside inside;
  Wanted wanted{.doors = doors, .has = {}, .ourselves = base_of_agent()};
  bool any = false;
  for (int id = 0; id < kMpiCalls; ++id) {
    wanted.has[id] = real_mpi(id, MpiName::kLarge, nullptr) != nullptr;
    any = any || wanted.has[id];
  }
  if (any) {
    dl_iterate_phdr(visit, &wanted);
  }
}

}  // namespace ddpdoctor::agent
