#!/usr/bin/env python3
"""Sends damaged requests and WebSocket frames to vehicled-web for SECONDS: web_requests.py SECONDS [SEED]

Mutates requests with and without a session, and calls with a session that may control one of two devices. The server must go on, reply with
a valid status, never with 500, tell nobody without a session about a device, never change the device that the session may not control, and
keep the number of its descriptors and its memory. Not guided by coverage; the parsers that the server shares with the daemon have fuzzers
of their own."""

import base64, json, os, pathlib, random, re, socket, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "Web"))
sys.dont_write_bytecode = True
from rig import Rig, free_port, wait  # noqa: E402

# Replies that mention it are those of a session.
SECRET = "guarded-device"
CONFIGURATION = f'[device.phone]\nkind = "health"\n[device.{SECRET}]\nkind = "health"\n'
STATUSES = {101, 200, 204, 304, 400, 401, 403, 404, 405, 408, 411, 413, 414, 421, 426, 429, 431, 501, 503, 505}
WORDS = [
    b"\r\n", b"\n", b"\r\n\r\n", b"\0", b" ", b"\t", b":", b";", b",", b"=", b"\"", b"%00", b"%2e%2e/", b"../", b"//", b"\xff\xfe", b"\xed\xa0\x80", b"-1",
    b"0", b"4294967296", b"99999999999999999999", b"chunked", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 3\r\n", b"Host: evil.example\r\n",
    b"Expect: 100-continue\r\n", b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"HTTP/1.0", b"HTTP/2.0", b"HEAD", b"OPTIONS", b"CONNECT", b"TRACE",
    b"If-None-Match: *\r\n", b"Range: bytes=0-\r\n", b"a" * 9000, b"x: y\r\n" * 70, b"5\r\nabcde\r\n0\r\n\r\n", b"{\"token\":", b"\\ud800", b"null", b"[[[[[[",
]


class Target:
    def __init__(self, rig):
        self.rig, self.port = rig, free_port()
        rig.start_daemon(CONFIGURATION)
        rig.vehiclectl("set", f"{SECRET}.steps", "1")
        rig.start("web", "vehicled-web", "--listen", f"127.0.0.1:{self.port}", "--daemon", rig.daemon_socket, "--files",
                  pathlib.Path(__file__).resolve().parents[2] / "Sources/vehicled-web/Page", "--control", "phone")
        token = rig.first_line("web").partition("#token=")[2].encode()
        self.host = b"127.0.0.1:%d" % self.port
        reply = self.exchange(self.request(b"POST /session", body=b'{"token": "%s"}' % token))
        self.key = json.loads(reply.partition(b"\r\n\r\n")[2])["key"].encode()
        self.cookie = re.search(rb"(?i)set-cookie: ([^;]+)", reply)[1]
        self.memory = 0

    def request(self, line, headers=b"", body=b""):
        head = b"%s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\n%s" % (line, self.host, self.host, headers)
        return head + (b"Content-Length: %d\r\n" % len(body) if body else b"") + b"\r\n" + body

    def credentials(self):
        return b"Cookie: %s\r\nVehicled-Key: %s\r\n" % (self.cookie, self.key)

    def handshake(self, service=b"io.vehicled"):
        return self.request(b"GET /varlink/" + service, self.credentials() + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
                            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")

    def exchange(self, *pieces, seconds=2):
        """What the server sends within this time, or until it closes the connection."""
        with self.send(*pieces) as connection:
            return received(connection, seconds)

    def send(self, *pieces):
        connection = socket.create_connection(("127.0.0.1", self.port))
        try:
            for piece in pieces:
                connection.sendall(piece)
        except ConnectionError:
            pass
        return connection

    def requests(self):
        call = json.dumps({"method": "io.vehicled.Status"}).encode()
        return [
            self.request(b"GET /"), self.request(b"GET /session", self.credentials()), self.request(b"GET /main.js", b"Accept-Encoding: gzip\r\n"),
            self.request(b"POST /session", body=b'{"token": "x"}'), self.request(b"DELETE /session"), self.handshake() + frame(call),
            self.request(b"GET /metrics", b"Authorization: Bearer x\r\n"),
            self.request(b"POST /session", b"Transfer-Encoding: chunked\r\n") + b"3\r\nabc\r\n0\r\n\r\n",
        ]


def received(connection, seconds):
    data = b""
    try:
        connection.settimeout(seconds)
        while chunk := connection.recv(65536):
            data += chunk
            connection.settimeout(min(seconds, 0.02))
    except (TimeoutError, ConnectionError):
        pass
    return data


def frame(payload, opcode=1, final=True, masked=True, length=None):
    count = len(payload) if length is None else length
    size = bytes([count]) if count < 126 else b"\x7e" + count.to_bytes(2) if count < 1 << 16 else b"\x7f" + count.to_bytes(8)
    mask = b"\1\2\3\4"
    data = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload)) if masked else payload
    return bytes([opcode | 0x80 * final, size[0] | 0x80 * masked]) + size[1:] + mask * masked + data


def mutated(data, rounds):
    for _ in range(rounds):
        at, end = random.randrange(len(data) + 1), random.randrange(len(data) + 1)
        data = random.choice([
            lambda: data[:at] + random.choice(WORDS) + data[at:],
            lambda: data[:min(at, end)] + data[max(at, end):],
            lambda: data[:at] + bytes([random.randrange(256)]) + data[at + 1:],
            lambda: data[:at] + data[min(at, end):max(at, end)] + data[at:],
            lambda: data[:at],
        ])()
    return data


def calls():
    methods = ["Status", "Describe", "Get", "Watch", "Set", "Call", "Log", "Record", "Drive", "Reload", "Connect", "Diagnose"]
    parameters = {"device": random.choice(["phone", SECRET, "", "x" * 300, 5, None]), "property": "steps", "value": random.choice([{"int": 2}, {}, None, [1]]),
                  "references": [f"{SECRET}.steps"], "settings": [{"property": "steps", "value": {"int": 2}}], "action": "query", "lease": "x", "interval": -1}
    chosen = {name: parameters[name] for name in parameters if random.random() < 0.5}
    call = {"method": f"io.vehicled.{random.choice(methods)}", "parameters": chosen} | ({"more": True} if random.random() < 0.5 else {})
    return json.dumps(call).encode()


def conversation():
    """A session's calls: whole ones, damaged ones, and damaged frames."""
    frames = []
    for _ in range(random.randrange(1, 6)):
        payload = calls() if random.random() < 0.6 else mutated(calls(), random.randrange(1, 4))
        whole = frame(payload, random.choice([1, 1, 1, 1, 0, 2, 8, 9, 10, 3]), random.random() < 0.9, random.random() < 0.97)
        frames.append(mutated(whole, 1) if random.random() < 0.2 else whole)
    return frames


def check(reply, sent, has_session):
    for line in re.findall(rb"(?m)^HTTP/1\.[01] (\d+)", reply)[:1]:
        assert int(line) in STATUSES, f"status {int(line)} to {sent!r}"
    if reply:
        assert reply.startswith(b"HTTP/1."), f"{reply[:80]!r} to {sent!r}"
    assert has_session or SECRET.encode() not in reply, f"{reply!r} to {sent!r}"


def examine(target):
    """The server goes on, and nothing was changed or is leaking."""
    process = target.rig.running["web"]
    assert process.poll() is None, target.rig.errors("web")[-2000:]
    reply = target.exchange(target.request(b"GET /session", target.credentials()))
    assert reply.startswith(b"HTTP/1.1 200"), f"a valid request gets {reply[:200]!r}"
    reading = target.rig.readings(f"{SECRET}.steps")[0]
    assert reading.get("value") == 1, f"a session has changed a device that it may not control: {reading}"
    descriptors = lambda: len(os.listdir(f"/proc/{process.pid}/fd")) < 64
    wait(descriptors)
    memory = int(re.search(r"VmRSS:\s*(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1])
    target.memory = target.memory or memory + 40_000
    assert memory < target.memory, f"the server uses {memory} kB"


def main():
    seconds, seed = float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns()
    random.seed(seed)
    rig, sent, count, end = Rig(), b"", 0, time.monotonic() + seconds
    try:
        target = Target(rig)
        while time.monotonic() < end:
            # Several connections at once, because the server waits for more on most of them.
            batch = []
            for _ in range(16):
                if random.random() < 0.4:
                    pieces, has_session = [target.handshake(), *conversation()], True
                else:
                    sent = mutated(random.choice(target.requests()), random.randrange(1, 5))
                    at, has_session = random.randrange(len(sent) + 1), target.cookie in sent and target.key in sent
                    pieces = [sent] if random.random() < 0.7 else [sent[:at], sent[at:]]
                batch.append((target.send(*pieces), b"".join(pieces), has_session))
            time.sleep(0.03)
            for connection, sent, has_session in batch:
                with connection:
                    check(received(connection, 0.001), sent, has_session)
                count += 1
            if count % 320 == 0:
                examine(target)
        examine(target)
    except (AssertionError, OSError) as error:
        sys.exit(f"fuzz: web_requests: {error}\nseed {seed}, request {count}: {base64.b64encode(sent[:4000]).decode()}")
    finally:
        rig.close()
    print(f"fuzz: web_requests: Done {count} runs in {seconds:.0f} second(s)")


if __name__ == "__main__":
    main()
