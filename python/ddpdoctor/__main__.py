# SPDX-License-Identifier: Apache-2.0
"""python -m ddpdoctor: the program takes the place of this process."""
import os
import sys

from ddpdoctor.installed import ProgramMissing, program


def main() -> int:
    try:
        path = program()
    except ProgramMissing as missing:
        print(f"ddpdoctor: {missing}", file=sys.stderr)
        return 3
    sys.stdout.flush()
    os.execv(path, ["ddpdoctor", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
