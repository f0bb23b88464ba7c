// SPDX-License-Identifier: Apache-2.0
#include "agent/slots/definitions.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>

#include "agent/slots/object.h"

namespace ddpdoctor::agent {
namespace {

const char* file_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

/// Symbol 0 is invalid.
bool defines(const Object& object, std::uint32_t symbol, const char* name) {
  constexpr ElfW(Half) kNotDefault = 0x8000;
  const ElfW(Sym)& found = object.symbols[symbol];
  const char* const its_name = object.name_at(found.st_name);
  const auto type = ELF64_ST_TYPE(found.st_info);
  return found.st_shndx != SHN_UNDEF && found.st_value != 0 && its_name != nullptr &&
         ELF64_ST_BIND(found.st_info) != STB_LOCAL && type != STT_TLS && type != STT_GNU_IFUNC &&
         (object.versions == nullptr || (object.versions[symbol] & kNotDefault) == 0) &&
         strcmp(its_name, name) == 0;
}

std::uint32_t by_gnu_hash(const Object& object, const char* name) {
  constexpr std::uint32_t kBitsOfAWord = 64;
  std::uint32_t hash = 5381;
  for (const char* at = name; *at != 0; ++at) {
    hash = hash * 33 + static_cast<unsigned char>(*at);
  }
  const std::uint32_t buckets = object.gnu_hash[0];
  const std::uint32_t first = object.gnu_hash[1];
  const std::uint32_t words = object.gnu_hash[2];
  const std::uint32_t shift = object.gnu_hash[3];
  if (buckets == 0 || words == 0) {
    return 0;
  }
  const std::uint32_t* const filter = object.gnu_hash + 4;
  std::uint64_t bits = 0;
  memcpy(&bits, filter + 2 * static_cast<std::size_t>(hash / kBitsOfAWord % words), sizeof bits);
  const std::uint64_t both = (std::uint64_t{1} << (hash % kBitsOfAWord)) |
                             (std::uint64_t{1} << ((hash >> shift) % kBitsOfAWord));
  if ((bits & both) != both) {
    return 0;
  }
  const std::uint32_t* const bucket = filter + 2 * static_cast<std::size_t>(words);
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t symbol = bucket[hash % buckets];
  if (symbol < first) {
    return 0;
  }
  for (;; ++symbol) {
    const std::uint32_t its_hash = chain[symbol - first];
    if ((its_hash | 1U) == (hash | 1U) && defines(object, symbol, name)) {
      return symbol;
    }
    if ((its_hash & 1U) != 0) {
      return 0;
    }
  }
}

std::uint32_t by_old_hash(const Object& object, const char* name) {
  std::uint32_t hash = 0;
  for (const char* at = name; *at != 0; ++at) {
    hash = (hash << 4U) + static_cast<unsigned char>(*at);
    hash = (hash ^ ((hash & 0xF0000000U) >> 24U)) & 0x0FFFFFFFU;
  }
  const std::uint32_t buckets = object.old_hash[0];
  const std::uint32_t symbols = object.old_hash[1];
  const std::uint32_t* const bucket = object.old_hash + 2;
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t symbol = buckets == 0 ? 0 : bucket[hash % buckets];
  for (std::uint32_t i = 0; i < symbols && symbol != 0 && symbol < symbols; ++i) {
    if (defines(object, symbol, name)) {
      return symbol;
    }
    symbol = chain[symbol];
  }
  return 0;
}

void* definition(const Object& object, const char* name) {
  if (object.symbols == nullptr) {
    return nullptr;
  }
  const std::uint32_t symbol = object.gnu_hash != nullptr   ? by_gnu_hash(object, name)
                               : object.old_hash != nullptr ? by_old_hash(object, name)
                                                            : 0;
  return symbol == 0 ? nullptr
                     : reinterpret_cast<void*>(object.base + object.symbols[symbol].st_value);
}

/// An object and its dependencies, breadth first.
constexpr int kMostInScope = 256;
struct Scope {
  int count;
  Object object[kMostInScope];
};

void add(Scope& scope, const Object& object) {
  for (int i = 0; i < scope.count; ++i) {
    if (scope.object[i].begin == object.begin) {
      return;
    }
  }
  if (scope.count < kMostInScope) {
    scope.object[scope.count++] = object;
  }
}

struct Needed {
  Scope* scope;
  const char* name;
};

/// Compares its file name, and the name that it gives itself.
bool is_called(const Object& object, const char* path, const char* name) {
  for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL;
       ++entry) {
    const char* const own = entry->d_tag == DT_SONAME ? object.name_at(entry->d_un.d_val) : nullptr;
    if (own != nullptr && strcmp(own, name) == 0) {
      return true;
    }
  }
  return strcmp(file_name(path), file_name(name)) == 0;
}

int add_needed(dl_phdr_info* info, std::size_t, void* data) {
  const auto& needed = *static_cast<const Needed*>(data);
  const Object object = read_object(*info);
  if (info->dlpi_name == nullptr || !is_called(object, info->dlpi_name, needed.name)) {
    return 0;
  }
  add(*needed.scope, object);
  return 1;
}

void add_dependencies(Scope& scope) {
  for (int i = 0; i < scope.count; ++i) {
    const Object object = scope.object[i];
    for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL;
         ++entry) {
      const Needed needed{&scope,
                          entry->d_tag == DT_NEEDED ? object.name_at(entry->d_un.d_val) : nullptr};
      if (needed.name != nullptr) {
        dl_iterate_phdr(add_needed, const_cast<Needed*>(&needed));
      }
    }
  }
}

struct Question {
  const void* inside;
  Reach reach;
  const char* const* names;
  void** found;
  int count;
};

/// During the callback nothing is unloaded, and dl_iterate_phdr may be called recursively.
int answer(dl_phdr_info* info, std::size_t, void* data) {
  const auto& question = *static_cast<const Question*>(data);
  const Object object = read_object(*info);
  if (!object.holds(question.inside)) {
    return 0;
  }
  static constinit Scope scope{};  // too large for a stack; the callback's lock protects it
  scope.count = 0;
  add(scope, object);
  if (question.reach == Reach::kDependencies) {
    add_dependencies(scope);
  }
  for (int i = 0; i < question.count; ++i) {
    for (int at = 0; at < scope.count && question.found[i] == nullptr; ++at) {
      question.found[i] = definition(scope.object[at], question.names[i]);
    }
  }
  return 1;
}

struct Wanted {
  bool (*by_path)(const char*);
  const void** inside;
  int most;
  int count;
};

int collect(dl_phdr_info* info, std::size_t, void* data) {
  auto& wanted = *static_cast<Wanted*>(data);
  if (info->dlpi_name == nullptr || !wanted.by_path(info->dlpi_name)) {
    return 0;
  }
  const Object object = read_object(*info);
  if (object.symbols != nullptr) {
    wanted.inside[wanted.count++] = reinterpret_cast<const void*>(object.begin);
  }
  return wanted.count == wanted.most ? 1 : 0;
}

}  // namespace

int loaded_objects(bool (*wanted)(const char* path), const void** inside, int most) {
  Wanted question{wanted, inside, most, 0};
  dl_iterate_phdr(collect, &question);
  return question.count;
}

void look_up(const void* inside, Reach reach, const char* const* names, void** found, int count) {
  for (int i = 0; i < count; ++i) {
    found[i] = nullptr;
  }
  Question question{inside, reach, names, found, count};
  dl_iterate_phdr(answer, &question);
}

void* look_up(const void* inside, Reach reach, const char* name) {
  void* found = nullptr;
  look_up(inside, reach, &name, &found, 1);
  return found;
}

}  // namespace ddpdoctor::agent
