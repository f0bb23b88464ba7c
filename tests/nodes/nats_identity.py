# SPDX-License-Identifier: Apache-2.0
"""What a nats-server requires of clients: certificates made by openssl, and an operator's signed users (.creds)."""
import base64
import binascii
import hashlib
import json
import subprocess
from pathlib import Path

ROLES = {"operator": 14 << 3, "account": 0 << 3, "user": 20 << 3}
SEED = 18 << 3


def openssl(*words, **more):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, **more).stdout


class Certificates:
    """An authority, and certificates for a server and a client signed by it, as files in PEM format."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.ca, self.ca_key = self.folder / "ca.pem", self.folder / "ca.key"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 2, "-subj", "/CN=authority",
                "-keyout", self.ca_key, "-out", self.ca)
        self.server, self.server_key = self.signed("server")
        self.client, self.client_key = self.signed("client")

    def signed(self, name):
        key, request, certificate, extra = (self.folder / f"{name}.{end}" for end in ("key", "csr", "pem", "ext"))
        extra.write_text("subjectAltName=IP:127.0.0.1\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial", "-days", 2, "-extfile", extra,
                "-out", certificate)
        return certificate, key

    def block(self, verify):
        return f'tls {{ cert_file: "{self.server}", key_file: "{self.server_key}", ca_file: "{self.ca}", verify: {str(verify).lower()} }}'


class Key:
    """An Ed25519 key pair in the text form that NATS uses: base32 of a role, the key and a CRC-16."""

    def __init__(self, folder, role, name):
        self.role, self.file = ROLES[role], Path(folder) / f"{name}.ed25519"
        openssl("genpkey", "-algorithm", "ed25519", "-out", self.file)
        self.secret = openssl("pkey", "-in", self.file, "-outform", "DER")[-32:]
        self.public = self.text(bytes([self.role]) + openssl("pkey", "-in", self.file, "-pubout", "-outform", "DER")[-32:])
        self.seed = self.text(bytes([SEED | self.role >> 5, (self.role & 31) << 3]) + self.secret)

    @staticmethod
    def text(raw):
        crc = binascii.crc_hqx(raw, 0)  # XMODEM
        return base64.b32encode(raw + crc.to_bytes(2, "little")).decode().rstrip("=")

    def sign(self, data):
        message = self.file.with_suffix(".message")
        message.write_bytes(data)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.file, "-in", message)


def part(value):
    raw = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def token(issuer, subject, name, nats):
    claims = {"iat": 1700000000, "iss": issuer.public, "sub": subject.public, "name": name, "nats": {**nats, "version": 2}}
    digest = hashlib.new("sha512_256", json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    text = part({"typ": "JWT", "alg": "ed25519-nkey"}) + "." + part(claims)
    return text + "." + part(issuer.sign(text.encode()))


class Operator:
    """An operator with one account and one user: the server's lines, and the user's .creds file."""

    def __init__(self, folder):
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        operator, account, user = (Key(folder, role, role) for role in ("operator", "account", "user"))
        system = Key(folder, "account", "system")
        unlimited = {"subs": -1, "data": -1, "payload": -1}
        limits = {**unlimited, "imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
        jetstream = {"mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1}  # which a system account may not have
        accounts = "\n".join(f"  {key.public}: {token(operator, key, name, {'type': 'account', 'limits': allowed})}"
                             for key, name, allowed in ((account, "account", {**limits, **jetstream}), (system, "system", limits)))
        self.lines = (f"operator: {token(operator, operator, 'operator', {'type': 'operator', 'system_account': system.public})}\n"
                      f"system_account: {system.public}\nresolver: MEMORY\nresolver_preload: {{\n{accounts}\n}}")
        self.credentials = folder / "user.creds"
        self.credentials.write_text(f"-----BEGIN NATS USER JWT-----\n{token(account, user, 'user', {'type': 'user', **unlimited})}\n"
                                    f"------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n")
