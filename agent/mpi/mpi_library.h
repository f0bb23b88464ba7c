// SPDX-License-Identifier: Apache-2.0
// Which MPI runs here, found by what its library exports, and what its handles mean. Built without
// any mpi.h: OpenMPI's handles are addresses of objects, MPICH's (and Intel's, MVAPICH's) are
// integers, those of the MPI-5 ABI are small addresses.
#pragma once

#include <cstdint>

#include "agent/mpi/mpi_calls.h"

namespace ddpdoctor::agent {

enum class MpiFamily : std::uint8_t { kUnknown, kOpenMpi, kMpich, kStandardAbi };

/// MPI's functions that we ask, all of the profiling interface.
struct MpiFunctions {
  int (*rank)(Word, int*) = nullptr;
  int (*size)(Word, int*) = nullptr;
  int (*group)(Word, Word*) = nullptr;
  int (*translate)(Word, int, const int*, Word, int*) = nullptr;
  int (*free_group)(Word*) = nullptr;
};

struct MpiLibrary {
  MpiFamily family = MpiFamily::kUnknown;
  Word world = 0;
  Word self = 0;
  Word null_communicator = 0;
  Word in_place = 0;
  MpiFunctions ask;
};

/// MPI_X, PMPI_X, and MPI_X_c with counts of 64 bits.
enum class MpiName : std::uint8_t { kPlain, kProfiling, kLarge };

/// The function behind a door of ours, which no call reaches before there is one.
void* real_mpi(int id, MpiName which);

/// From now on `real` is the function behind our door, if none was yet. False when another one is:
/// of two MPIs in one process the second is not recorded.
bool keep_real_mpi(int id, MpiName which, void* real);

/// Null while no MPI of a known family is found. Cheap once it is.
const MpiLibrary* mpi_library();

/// A handle as one number.
Word mpi_handle(const MpiLibrary& library, Word argument);
/// The same from an array of handles or an output argument.
Word mpi_handle_at(const MpiLibrary& library, Word address, std::uint64_t index);

/// c10::ScalarType of a predefined data type, 255 = another one. MPI_BYTE is none: it may carry
/// anything.
std::uint8_t mpi_dtype(Word handle);
/// wire's number of a predefined reduce operation, 255 = another one.
std::uint8_t mpi_reduce_op(Word handle);

}  // namespace ddpdoctor::agent
