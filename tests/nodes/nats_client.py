# SPDX-License-Identifier: Apache-2.0
"""A few requests in NATS' own protocol, so that tests see the server as another client does."""
import base64
import hashlib
import json
import socket


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.lines = self.socket.makefile("rb")
        self.lines.readline()  # INFO
        self.socket.sendall(b'CONNECT {"verbose":false}\r\nSUB answers 1\r\n')

    def request(self, subject, body):
        data = json.dumps(body).encode()
        self.socket.sendall(f"PUB {subject} answers {len(data)}\r\n".encode() + data + b"\r\n")
        while True:
            words = self.lines.readline().split()
            if words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            elif words[0] == b"MSG":
                return json.loads(self.lines.read(int(words[-1]) + 2))

    def bucket(self, most_bytes):
        """The bucket as an operator makes it, with a limit of its own."""
        answer = self.request("$JS.API.STREAM.CREATE.OBJ_ddpdoctor", {
            "name": "OBJ_ddpdoctor", "subjects": ["$O.ddpdoctor.C.>", "$O.ddpdoctor.M.>"], "retention": "limits", "discard": "new", "storage": "file",
            "max_bytes": most_bytes, "max_msgs": -1, "max_consumers": -1, "num_replicas": 1, "allow_rollup_hdrs": True, "allow_direct": True})
        assert "error" not in answer, answer

    def last(self, subject):
        answer = self.request("$JS.API.STREAM.MSG.GET.OBJ_ddpdoctor", {"last_by_subj": subject})
        return base64.b64decode(answer["message"]["data"]) if "message" in answer else None

    def object(self, name):
        """The description and the contents of an object of one chunk, by NATS' ADR-20."""
        encoded = base64.urlsafe_b64encode(name.encode()).decode()
        described = self.last(f"$O.ddpdoctor.M.{encoded}")
        about = json.loads(described) if described else {"deleted": True}
        if about.get("deleted"):
            return None
        contents = self.last(f"$O.ddpdoctor.C.{about['nuid']}")
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).decode()
        assert (about["chunks"], about["size"], about["digest"]) == (1, len(contents), f"SHA-256={digest}"), about
        return about, contents

    def state(self):
        return self.request("$JS.API.STREAM.INFO.OBJ_ddpdoctor", {"subjects_filter": "$O.ddpdoctor.M.>"})

    def objects(self):
        """The name, the description and the contents of every object."""
        names = [base64.urlsafe_b64decode(subject.split(".")[-1]).decode() for subject in self.state()["state"].get("subjects", {})]
        return {name: found for name in names if (found := self.object(name))}
