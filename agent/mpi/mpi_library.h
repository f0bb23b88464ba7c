// SPDX-License-Identifier: Apache-2.0
// Which MPI is used, determined from the library's exports, and the meaning of its handles. Built
// without mpi.h: OpenMPI's handles are addresses of objects, those of MPICH (and Intel's MPI,
// MVAPICH) are integers, those of the MPI-5 ABI are small addresses.
#pragma once

#include <cstdint>

#include "agent/mpi/mpi_calls.h"

namespace ddpdoctor::agent {

enum class MpiFamily : std::uint8_t { kUnknown, kOpenMpi, kMpich, kStandardAbi };

/// MPI's functions that we call, all from the profiling interface.
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

/// The real function behind one of our doors; it is set before any call reaches the door.
void* real_mpi(int id, MpiName which);

/// Makes `real` the function behind our door unless there is one already. Returns false if that is
/// a different function: of two MPIs in one process, the second is not recorded.
bool keep_real_mpi(int id, MpiName which, void* real);

/// Null while no MPI of a known family was found. Fast afterwards.
const MpiLibrary* mpi_library();

/// A handle as one number.
Word mpi_handle(const MpiLibrary& library, Word argument);
/// The same from an array of handles or an output argument.
Word mpi_handle_at(const MpiLibrary& library, Word address, std::uint64_t index);

/// c10::ScalarType of a predefined data type, 255 = another one. MPI_BYTE has none, because it may
/// carry anything.
std::uint8_t mpi_dtype(Word handle);
/// wire's number of a predefined reduce operation, 255 = another one.
std::uint8_t mpi_reduce_op(Word handle);

}  // namespace ddpdoctor::agent
