#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`./dev new-detector KIND`: the three skeletons of a new cause. Nothing else has to be edited: CMake finds the files."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DETECTOR = '''// SPDX-License-Identifier: Apache-2.0
// {kind}: describe the hang as its owner sees it.
#include "collector/detectors/detector.h"

namespace ddpdoctor::detectors::{stem} {{
namespace {{

Findings detect(const graph::Examination& examination) {{
  if (!examination.still()) {{
    return {{}};
  }}
  return {{}};
}}

}}  // namespace

extern const Detector detector;
const Detector detector{{
    .kind = "{kind}",
    .title = "One line: what goes wrong",
    .explanation =
        R"(What you see: the job as its owner sees it.

Why: what happens, and why it never ends.

How it is recognised: the facts this detector needs.

Fix:
    - the line as it is
    + the line as it should be)",
    .detect = detect,
}};

}}  // namespace ddpdoctor::detectors::{stem}
'''

TEST = '''// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/detectors/detector.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::detectors {{
namespace {{

TEST({suite}, NamesTheRank) {{
  FAIL() << "tell a job that hangs by this cause and expect the finding";
}}

TEST({suite}, IsSilentOnTheHealthyTwin) {{
  FAIL() << "tell the same job with the fix and expect no finding";
}}

}}  // namespace
}}  // namespace ddpdoctor::detectors
'''

CASE = '''# SPDX-License-Identifier: Apache-2.0
# EXPECT {{"launch": "torchrun", "ranks": 2, "culprits": [0]}}
"""What hangs, and which report it re-enacts."""
import sys

import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    if "--healthy" not in sys.argv and dist.get_rank() == 0:
        pass  # CULPRIT
    while True:
        dist.barrier()


main()
'''


def main():
    if len(sys.argv) != 2 or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", sys.argv[1]):
        print("usage: ./dev new-detector KIND   (kebab-case noun of the cause, such as missing-rank)", file=sys.stderr)
        return 2
    kind = sys.argv[1]
    stem, suite = kind.replace("-", "_"), "".join(part.capitalize() for part in kind.split("-"))
    files = {
        f"collector/detectors/{stem}.cc": DETECTOR.format(kind=kind, stem=stem),
        f"tests/unit/detectors/{stem}_test.cc": TEST.format(suite=suite),
        f"tests/zoo/{stem}/train.py": CASE.format(),
    }
    taken = [path for path in files if (ROOT / path).exists()]
    if taken:
        print(f"there already: {', '.join(taken)}", file=sys.stderr)
        return 2
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
