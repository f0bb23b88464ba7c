// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/former_life.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool found_nobody(const Traceback& traceback) {
  constexpr std::array<std::string_view, 4> kWords = {"connectFullMesh failed", "DistNetworkError",
                                                      "DistStoreError",
                                                      "client socket has failed to connect"};
  return std::any_of(kWords.begin(), kWords.end(), [&traceback](std::string_view words) {
    return traceback.exception.find(words) != std::string::npos;
  });
}

std::vector<Traceback> exceptions_of_former_life(const model::JobModel& job) {
  model::JobModel former;
  for (const model::Fact* output : model::facts(job, "former-output")) {
    if (const auto text = output->text("text")) {
      former.logs.push_back({.rank = output->rank, .text = std::string(*text)});
    }
  }
  std::vector<Traceback> out;
  for (Traceback& one : tracebacks(former)) {
    const bool told = std::any_of(out.begin(), out.end(), [&one](const Traceback& other) {
      return other.rank == one.rank && other.place == one.place;
    });
    if (one.rank && one.place.known() && !told && !one.of_thread && !one.ignored &&
        !is_consequence(one) && !found_nobody(one)) {
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
