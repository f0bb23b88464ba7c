# SPDX-License-Identifier: Apache-2.0
"""An HTTP receiver for tests: writes each message as one line of JSON to standard output. Ends with the node."""
import http.server
import json
import sys


class Taker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        print(json.dumps({"path": self.path, "type": self.headers["Content-Type"], "body": body}), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Taker).serve_forever()
