// SPDX-License-Identifier: Apache-2.0
// spawn-unpicklable: under the spawn method everything a child gets is pickled; a lambda or a local
// function cannot be. The start fails on one process and the others wait at the rendezvous.
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "spawn-unpicklable";

Findings detect(const graph::Examination& examination) {
  return findings_from_text(examination, kKind);
}

}  // namespace

extern const Detector spawn_unpicklable;
const Detector spawn_unpicklable{
    .kind = kKind,
    .title = "A spawned process got something that cannot be pickled",
    .explanation =
        R"(What you see: "Can't pickle local object" or "Can't get attribute" when processes are started.

Why: spawn starts a fresh interpreter; it must import what it runs by its name.

How it is recognised: Python's message, with the user's line that started the process.

Fix:
    - mp.spawn(lambda rank: train(rank), nprocs=4)
    + mp.spawn(train, nprocs=4)          # train is defined at the top level of a module)",
    .detect = detect,
    .specificity = kCause,
    .effect = Effect::kCrash,
};

}  // namespace ddpdoctor::detectors
