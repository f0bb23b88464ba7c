# SPDX-License-Identifier: Apache-2.0
"""A server answers after ten seconds; rank 0 waits for it, a minute at most, and the others in a barrier."""
import http.server
import threading
import time
import urllib.request

import torch.distributed as dist


class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(10)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def main():
    dist.init_process_group("gloo")
    print("READY", flush=True)
    server = http.server.HTTPServer(("127.0.0.1", 0), Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for _ in range(2):
        if dist.get_rank() == 0:
            urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}", timeout=50).read()
        dist.barrier()


main()
