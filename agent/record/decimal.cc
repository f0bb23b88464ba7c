// SPDX-License-Identifier: Apache-2.0
#include "agent/record/decimal.h"

namespace ddpdoctor::agent {

char* put_decimal(char* to, std::int64_t number) {
  auto rest = static_cast<std::uint64_t>(number);
  if (number < 0) {
    *to++ = '-';
    rest = 0 - rest;
  }
  char digits[24];
  int count = 0;
  do {
    digits[count++] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  while (count > 0) {
    *to++ = digits[--count];
  }
  return to;
}

}  // namespace ddpdoctor::agent
