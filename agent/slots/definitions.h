// SPDX-License-Identifier: Apache-2.0
// What loaded objects define, read from their own tables. Nothing is opened: dlopen, even of a
// library that is loaded, runs the constructors that it and its dependencies have still before
// them. Asked from a constructor (a library that calls dlsym in its own), that is before their
// turn, and a crash (libGLX before libGLdispatch, under torch 1.13). Nor is anything resolved: an
// indirect function (STT_GNU_IFUNC) counts as not defined. Takes the lock of dl_iterate_phdr.
#pragma once

#include <cstddef>

namespace ddpdoctor::agent {

/// An address in each loaded object whose file `wanted` takes, in load order; how many there are,
/// at most `most`.
int loaded_objects(bool (*wanted)(const char* path), const void** inside, int most);

enum class Reach {
  kItself,
  kDependencies,  // and what it depends on, breadth first, as dlsym of its handle would
};

/// Looks `count` names up in the loaded object that holds `inside`; null for what is not defined
/// there, and for every name when no object holds the address.
void look_up(const void* inside, Reach reach, const char* const* names, void** found, int count);

/// One name.
void* look_up(const void* inside, Reach reach, const char* name);

}  // namespace ddpdoctor::agent
