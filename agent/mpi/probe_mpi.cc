// SPDX-License-Identifier: Apache-2.0
// MPI_… and PMPI_… of mpi_calls.inc: record, call the real function with the same words, record.
// Slots with MPI's functions point here. OpenMPI's Fortran functions call PMPI_…, MPICH's call
// MPI_…; so both names are interposed, and calls inside a call are not recorded again. All
// arguments of MPI are integers and addresses, eight bytes each in registers and on the stack,
// hence one signature per number of arguments.
#include <cstddef>
#include <utility>

#include "agent/inside.h"
#include "agent/mpi/mpi_library.h"
#include "agent/mpi/mpi_record.h"
#include "agent/slots/slots.h"

namespace ddpdoctor::agent {
namespace {

template <std::size_t>
using WordAt = Word;

template <std::size_t... I>
int call(void* function, const Word* arguments, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(WordAt<I>...)>(function)(arguments[I]...);
}

template <int Id, std::size_t Arity, MpiName Which>
inline __attribute__((always_inline)) int through(const Word* arguments, const void* caller) {
  void* const function = real_mpi(Id, Which);
  MpiFrame frame;
  mpi_entered(Id, Which == MpiName::kLarge, arguments, caller, frame);
  const int result = call(function, arguments, std::make_index_sequence<Arity>());
  mpi_left(Id, arguments, frame, result);
  return result;
}

}  // namespace
}  // namespace ddpdoctor::agent

using ddpdoctor::agent::MpiName;
using ddpdoctor::agent::through;
using ddpdoctor::agent::Word;

// clang-format off
#define PARAMETERS_0
#define PARAMETERS_1 Word a
#define PARAMETERS_2 PARAMETERS_1, Word b
#define PARAMETERS_3 PARAMETERS_2, Word c
#define PARAMETERS_4 PARAMETERS_3, Word d
#define PARAMETERS_5 PARAMETERS_4, Word e
#define PARAMETERS_6 PARAMETERS_5, Word f
#define PARAMETERS_7 PARAMETERS_6, Word g
#define PARAMETERS_8 PARAMETERS_7, Word h
#define PARAMETERS_9 PARAMETERS_8, Word i
#define PARAMETERS_10 PARAMETERS_9, Word j
#define PARAMETERS_12 PARAMETERS_10, Word k, Word l
#define NAMES_0 0
#define NAMES_1 a
#define NAMES_2 NAMES_1, b
#define NAMES_3 NAMES_2, c
#define NAMES_4 NAMES_3, d
#define NAMES_5 NAMES_4, e
#define NAMES_6 NAMES_5, f
#define NAMES_7 NAMES_6, g
#define NAMES_8 NAMES_7, h
#define NAMES_9 NAMES_8, i
#define NAMES_10 NAMES_9, j
#define NAMES_12 NAMES_10, k, l

#define DOOR(id, arity, symbol, which) \
  HIDDEN int symbol(PARAMETERS_##arity) { \
    const Word words[] = {NAMES_##arity}; \
    return through<id, arity, which>(words, __builtin_return_address(0)); \
  }
#define MPI(id, arity, name, ...) \
  DOOR(id, arity, MPI_##name, MpiName::kPlain) \
  DOOR(id, arity, PMPI_##name, MpiName::kProfiling) \
  DOOR(id, arity, MPI_##name##_c, MpiName::kLarge)
// clang-format on

extern "C" {
#include "agent/mpi/mpi_calls.inc"
}

#undef MPI
#undef DOOR
#define DOOR(symbol) reinterpret_cast<void*>(&symbol)
#define MPI(id, arity, name, ...) {DOOR(MPI_##name), DOOR(PMPI_##name), DOOR(MPI_##name##_c)},

namespace ddpdoctor::agent {
namespace {
void* const doors[kMpiCalls][3] = {
#include "agent/mpi/mpi_calls.inc"
};
}  // namespace

void* mpi_door_to(int id, int which, void* real) {
  return keep_real_mpi(id, static_cast<MpiName>(which), real) ? doors[id][which] : nullptr;
}

}  // namespace ddpdoctor::agent
