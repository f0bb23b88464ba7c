# SPDX-License-Identifier: Apache-2.0
"""python -m ddpdoctor: replaces this process with the program; `mcp` is a server in this package."""
import os
import sys

from ddpdoctor.installed import ProgramMissing, program


def main() -> int:
    if sys.argv[1:] == ["mcp"]:
        from ddpdoctor.mcp_server import main as serve
        return serve()
    try:
        path = program()
    except ProgramMissing as missing:
        print(f"ddpdoctor: {missing}", file=sys.stderr)
        return 3
    sys.stdout.flush()
    os.execv(path, ["ddpdoctor", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
