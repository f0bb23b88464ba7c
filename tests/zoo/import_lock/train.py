# SPDX-License-Identifier: Apache-2.0
"""Two threads import two modules that import each other's lock: a thread waits for an import that another thread holds."""
import os
import sys
import tempfile
import threading
import time

import torch.distributed as dist

MODULES = {
    "tokenizer_rules": "import threading, time\n"
                       "def load():\n    import tokenizer_rules\n    return tokenizer_rules\n"
                       "worker = threading.Thread(target=load, daemon=True)\nworker.start()\n{wait}\n",
}


def load_tokenizer():
    import tokenizer_rules  # CULPRIT
    return tokenizer_rules


def main():
    dist.init_process_group("gloo")
    folder = tempfile.mkdtemp()
    with open(os.path.join(folder, "tokenizer_rules.py"), "w") as module:
        module.write(MODULES["tokenizer_rules"].format(wait="" if "--healthy" in sys.argv else "worker.join()"))
    sys.path.insert(0, folder)
    print("READY", flush=True)
    if dist.get_rank() == 1:
        load_tokenizer()
    while True:
        dist.barrier()
        time.sleep(0.02)


main()
