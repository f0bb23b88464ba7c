// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/signal_exceptions.h"

#include <cctype>
#include <csignal>
#include <cstring>

#include "collector/detectors/evidence/agreement.h"

namespace ddpdoctor::detectors {

std::string signal_of_exception(std::string_view text) {
  std::string_view name = text.substr(0, text.find(':'));
  name = name.substr(name.rfind('.') + 1);
  if (!name.starts_with("SIG")) {
    return {};
  }
  for (int number = 1; number < NSIG; ++number) {
    const char* const abbreviation = sigabbrev_np(number);
    const std::string signal = abbreviation == nullptr ? "" : "SIG" + std::string(abbreviation);
    const std::string_view rest = signal.empty() || !name.starts_with(signal)
                                      ? std::string_view("x")
                                      : name.substr(signal.size());
    const bool word = rest.empty() || std::isupper(static_cast<unsigned char>(rest.front())) != 0;
    if (word && (rest.size() < 2 || std::islower(static_cast<unsigned char>(rest[1])) != 0)) {
      return signal;  // "SIGTERM" and "SIGTERMException", and no longer name of a signal
    }
  }
  return {};
}

std::vector<Traceback> left_for_a_signal(const graph::Examination& examination) {
  std::vector<Traceback> out = tracebacks(examination.job);
  std::erase_if(out, [](const Traceback& one) {
    return !one.rank || signal_of_exception(one.exception).empty();
  });
  model::RankSet left;
  for (const Traceback& one : out) {
    left.insert(*one.rank);
  }
  return waiting_ranks(examination).minus(left).empty() ? std::vector<Traceback>{} : out;
}

}  // namespace ddpdoctor::detectors
