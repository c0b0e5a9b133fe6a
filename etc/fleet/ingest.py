#!/usr/bin/env python3
"""Writes fleet batches from an MQTT broker to a database that accepts Influx line protocol, such as VictoriaMetrics. See docs/fleet.md.
A batch is acknowledged after the database has accepted its values; after an interruption, some batches are written again."""
import argparse, functools, http.client, itertools, math, operator, os, queue, re, signal, socket, sys, threading, time, urllib.request
from paho.mqtt import client as mqtt, packettypes, properties
import decode

IN_FLIGHT = 50  # batches that the broker sends before it waits for an acknowledgement
EXPIRY = 30 * 86_400  # seconds for which the broker stores batches while this program does not run
MAX_SESSIONS, MAX_SEEN, MAX_GAPS, MAX_FILES = 200_000, 256, 100, 10_000
def log(text): print(text, file=sys.stderr, flush=True)
@functools.lru_cache(10_000)
def escape(name): return re.sub(r"([\\,= ])", r"\\\1", name)
def field(value, with_text):  # Returns the value in line protocol, or None if it is not written.
    if isinstance(value, float): return repr(value) if math.isfinite(value) else None
    if isinstance(value, int): return str(int(value))
    if value is None or not with_text: return None
    text = value if isinstance(value, str) else ", ".join(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
def lines(batch, tenant, with_text):
    """The batch in line protocol. If its clock was not synchronised, a tag keeps its values apart from those with correct times."""
    tags = {"tenant": tenant, "vehicle": batch["vehicle"], "device": batch["device"]}
    if not batch["synchronised"]: tags["clock"] = "unsynchronised"
    prefix, text = ",".join(["vehicled", *(f"{name}={escape(value)}" for name, value in tags.items())]), []
    for moment, samples in itertools.groupby(batch["samples"], operator.itemgetter("time")):
        values = [(escape(sample["property"]), field(sample["value"], with_text)) for sample in samples]
        fields = ",".join(f"{name}={value}" for name, value in values if value is not None)
        if fields: text.append(f"{prefix} {fields} {moment * 1000}\n")
    return "".join(text).encode()

def write(url, text):
    """Returns when the database has accepted the text; tries again until then."""
    request = urllib.request.Request(url.rstrip("/") + "/write", text, {"Content-Type": "text/plain"})
    for delay in itertools.chain((0, 1, 2, 5, 10), itertools.repeat(30)) if text else ():
        try:
            with urllib.request.urlopen(request, timeout=30): return
        except (OSError, http.client.HTTPException) as error: log(f"cannot write to {url}: {error}; trying again in {delay} s")
        time.sleep(delay)
class Sequences:
    """The sequence numbers of each session: the highest, the latest, and the gaps with the time at which to report them."""
    def __init__(self, timeout): self.timeout, self.sessions, self.next_report = timeout, {}, 0
    def is_repeat(self, key, number): return key in self.sessions and number in self.sessions[key][1]
    def add(self, key, number):
        highest, seen, gaps = self.sessions.pop(key, (number, {}, []))  # The sessions are in the order of their last use.
        gaps = [*gaps, (highest + 1, number - 1, time.monotonic() + self.timeout)]
        split = [part for first, last, due in gaps for part in ((first, min(last, number - 1), due), (max(first, number + 1), last, due))]
        self.sessions[key] = max(highest, number), {**seen, number: None}, [gap for gap in split if gap[0] <= gap[1]][-MAX_GAPS:]
        if len(seen) >= MAX_SEEN: del self.sessions[key][1][next(iter(seen))]
        if len(self.sessions) > MAX_SESSIONS: del self.sessions[next(iter(self.sessions))]
    def report(self):
        if time.monotonic() < self.next_report: return
        self.next_report = time.monotonic() + 1
        for (tenant, vehicle, name), (_, _, gaps) in self.sessions.items():
            for first, last, due in [gap for gap in gaps if gap[2] <= time.monotonic()]:
                gaps.remove((first, last, due))
                log(f"vehicle {vehicle} of {tenant}: batches {first} to {last} of session {name} are missing")
class Client(mqtt.Client):
    """A client that acknowledges messages only by `ack`; paho-mqtt 1.6 has no option for this."""
    def __init__(self, name):
        new = {"callback_api_version": mqtt.CallbackAPIVersion.VERSION2, "manual_ack": True} if hasattr(mqtt, "CallbackAPIVersion") else {}
        super().__init__(client_id=name, protocol=mqtt.MQTTv5, **new)
    if not hasattr(mqtt, "CallbackAPIVersion"):
        def _send_puback(self, mid): return mqtt.MQTT_ERR_SUCCESS
        def ack(self, mid, qos): super()._send_puback(mid)
class Ingest:
    def __init__(self, options):
        self.options, self.sequences = options, Sequences(options.gap_timeout)
        # A message is acknowledged only on the connection on which it has arrived: on the next one, its ID may be that of another message.
        self.inbox, self.connection, self.lock = queue.SimpleQueue(), 0, threading.Lock()
    def run(self):
        options, url = self.options, urllib.parse.urlsplit(self.options.broker)
        connect = properties.Properties(packettypes.PacketTypes.CONNECT)
        client = Client(options.client_id or f"vehicled-ingest-{socket.gethostname()}")
        client.on_connect, client.on_disconnect, client.on_subscribe = self.connected, self.disconnected, self.subscribed
        client.on_connect_fail = lambda *_: log(f"cannot connect to {options.broker}; trying again")
        client.on_message = lambda _, __, message: self.inbox.put((self.connection, message))
        connect.SessionExpiryInterval, connect.ReceiveMaximum, connect.MaximumPacketSize = EXPIRY, IN_FLIGHT, decode.MAX_PAYLOAD
        if options.user: client.username_pw_set(options.user, options.password_file and open(options.password_file).read().strip())
        if url.scheme == "mqtts": client.tls_set(options.ca_file, options.certificate, options.key)
        client.reconnect_delay_set(1, 30)
        client.connect_async(url.hostname, url.port or (8883 if url.scheme == "mqtts" else 1883), 30, clean_start=False, properties=connect)
        client.loop_start()
        while True:
            self.sequences.report()
            try: connection, message = self.inbox.get(timeout=1)
            except queue.Empty: continue
            self.process(message)
            with self.lock:
                if connection == self.connection: client.ack(message.mid, message.qos)
    def connected(self, client, _, flags, reason, properties):
        if reason.value >= 128: return log(f"{self.options.broker} refuses the connection: {reason}")
        # If the broker has the session, it delivers all unacknowledged messages again.
        if flags["session present"] if isinstance(flags, dict) else flags.session_present: self.inbox = queue.SimpleQueue()
        client.subscribe((f"$share/{self.options.group}/" if self.options.group else "") + self.options.filter, qos=1)
    def disconnected(self, client, _, *details):
        with self.lock: self.connection += 1
        log(f"connection to {self.options.broker} ended; trying again")
    def subscribed(self, client, _, mid, reasons, properties):
        log(f"{self.options.broker}: " + (f"subscription rejected: {reasons[0]}" if reasons[0].value >= 128 else "connected"))
    def process(self, message):
        try:
            _, _, tenant, vehicle, _ = message.topic.split("/")
            batch = decode.decode(message.payload)
            if not tenant or not tenant.isprintable(): raise ValueError("the tenant is empty or not printable")
            if batch["vehicle"] != vehicle: raise ValueError(f"vehicle {batch['vehicle']} has used the topic of another one")
        except ValueError as error:
            log(f"damaged batch on {message.topic!r}: {error}")
            return self.keep(message) if self.options.keep else None
        key = tenant, vehicle, batch["session"]
        if self.sequences.is_repeat(key, batch["sequence"]): return
        write(self.options.database, lines(batch, tenant, self.options.text))
        self.sequences.add(key, batch["sequence"])
    def keep(self, message):
        folder, name = self.options.keep, urllib.parse.quote(message.topic, safe="")[:200]
        try:
            if len(os.listdir(folder)) >= MAX_FILES: raise OSError(f"it has {MAX_FILES} files; move or delete them")
            open(f"{folder}/{name}@{time.time_ns()}.vfb", "xb").write(message.payload)
        except OSError as error: log(f"cannot save a damaged batch in {folder}: {error}")
def replay(options):
    status = 0
    for path in options.replay:
        try:
            levels = urllib.parse.unquote(os.path.basename(path)).split("/")
            if not options.tenant and len(levels) != 5: raise ValueError("its name does not contain the tenant; use --tenant")
            with open(path, "rb") as file: text = lines(decode.decode(file.read()), options.tenant or levels[2], options.text)
            write(options.database, text)
        except (OSError, ValueError) as error: status = log(f"cannot replay {path}: {error}") or 1
    return status
def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--broker", default="mqtt://localhost", metavar="URL", help="connect to mqtt://HOST[:PORT], or mqtts:// for TLS")
    add("--user", help="log in to the broker as this user")
    add("--password-file", metavar="FILE", help="read the password from this file")
    add("--ca-file", metavar="FILE", help="trust these certificate authorities instead of those of the system")
    add("--certificate", metavar="FILE", help="present this client certificate")
    add("--key", metavar="FILE", help="use this private key of the client certificate")
    add("--database", default="http://127.0.0.1:8428", metavar="URL", help="write to this database, by POST to URL/write")
    add("--group", help="share the batches with the other programs of this group; not with mosquitto, which forgets shared subscriptions")
    add("--filter", default="fleet/v1/+/+/b", help="subscribe to these topics")
    add("--client-id", metavar="ID", help="use this client ID; default: vehicled-ingest-HOST")
    add("--text", action="store_true", help="write strings and lists too, to a database that can store them (not VictoriaMetrics)")
    add("--gap-timeout", type=float, default=600, metavar="S", help="report batches that are missing for this long (default: 600 s)")
    add("--keep", metavar="DIR", help="save damaged batches in this directory")
    add("--replay", nargs="+", metavar="FILE", help="write saved batches to the database, and exit")
    add("--tenant", help="replay batches as those of this tenant; default: the one in the name of the file")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(replay(options) if options.replay else Ingest(options).run())
if __name__ == "__main__": main()
