// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 (and, under its other name, a librccl.so.1) with every function that the agent
// replaces. The functions do nothing but store their arguments: tests use it to check that nothing
// is lost or changed. Arguments are read as words (registers first, then the stack), whatever the
// function's type.
#include <cstdint>
#include <cstring>
#include <initializer_list>

using Word = std::uint64_t;

extern "C" {

constexpr int kWords = 24;
Word nccl_echo_words[kWords];  // arguments of the latest call
char nccl_echo_name[64];
int nccl_echo_calls = 0;
int nccl_echo_answer = 0;
}

namespace {

int keep(const char* name, std::initializer_list<Word> words) {
  std::strncpy(nccl_echo_name, name, sizeof nccl_echo_name - 1);
  int at = 0;
  for (const Word word : words) {
    nccl_echo_words[at++] = word;
  }
  ++nccl_echo_calls;
  return nccl_echo_answer;
}

}  // namespace

extern "C" {

#define NCCL(id, symbol, probe)                                                              \
  int symbol(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, \
             Word k, Word l, Word m, Word n, Word o, Word p, Word q, Word r, Word s, Word t, \
             Word u, Word v, Word w, Word x) {                                               \
    return keep(#symbol,                                                                     \
                {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x});   \
  }
#include "agent/nccl/nccl_functions.inc"
#undef NCCL

int ncclGetVersion(int* version) {
  *version = 23203;
  return 0;
}
int ncclCommCount(void*, int* count) {
  *count = 2;
  return 0;
}
int ncclCommUserRank(void*, int* rank) {
  *rank = 0;
  return 0;
}
}
