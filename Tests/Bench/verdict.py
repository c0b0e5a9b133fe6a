"""The targets, and the output of figures with their targets. Targets are defined here only."""
import statistics, sys

# Targets: name -> (description, format, comparison, required value, goal).
# Goals without a number are interpreted as: "no drift" 500 µs, "delays no other" 0.98 and 1.5, no wake-ups with a link down 5. The 5.5 µs
# are half of gpsd's time on the machine where the target was set; elsewhere the ratio to gpsd in the same run is more meaningful.
MARKS = {
    "max.rate": ("polls per second, relative to the floor", "{:.2f}", ">=", 0.6, 0.8),
    "max.cpu": ("CPU per poll, times the floor's", "{:.2f}", "<=", 2.5, 1.5),
    "hz.cpu": ("CPU per poll, times the floor's", "{:.2f}", "<=", 2.0, 1.5),
    "hz.missed": ("missed polls", "{:.0f}", "<=", 0, None),
    "hz.drift": ("drift over the run, µs", "{:.0f}", "<=", 500, None),
    "hz.late": ("lateness p50, times the floor's", "{:.2f}", "<=", 2.0, None),
    "scale.100.missed": ("missed polls of 100 adapters", "{:.0f}", "<=", 0, None),
    "scale.1000.cpu": ("1000 adapters: CPU per poll, times the floor's", "{:.2f}", "<=", 3.0, None),
    "scale.1000.memory": ("memory per adapter, kB", "{:.1f}", "<=", 32, None),
    "fanout.cpu": ("CPU per message to 100 watchers of one value, µs", "{:.2f}", "<=", 5.5, None),
    "fanout.cpu.gpsd": ("the same, relative to gpsd in this run", "{:.2f}", "<=", 0.5, None),
    "fanout.requests.1": ("requests per second on 1 connection, relative to gpsd", "{:.2f}", ">=", 1.0, None),
    "fanout.requests.8": ("requests per second on 8 connections, relative to gpsd", "{:.2f}", ">=", 1.0, None),
    "fanout.stalled": ("messages to others while one stops reading, relative to those without", "{:.3f}", ">=", 0.98, None),
    "fanout.stalled.spread": ("their spread p50, times that without", "{:.2f}", "<=", 1.5, None),
    "ble.cpu": ("CPU per poll over BLE, times that over TCP", "{:.2f}", "<=", 3.0, None),
    "ble.p99": ("from the request's write to its published answer over BLE, p99, ms", "{:.2f}", "<=", 2.0, None),
    "vesc.cpu": ("CPU per poll of a VESC at 50 Hz, times that of an OBD adapter", "{:.2f}", "<=", 1.0, None),
    "frames.rate": ("battery records per second over slcan", "{:.0f}", ">=", 1000, None),
    "frames.cpu": ("CPU per record, times that over an ELM327's text", "{:.2f}", "<=", 1.5, None),
    "frames.missed": ("missed polls at 100 Hz of an ECU that answers in 5 ms", "{:.0f}", "<=", 0, None),
    "frames.late": ("their lateness p99, ms", "{:.2f}", "<=", 1.0, None),
    "frames.ecus": ("missed polls of 20 ECUs at 20 Hz", "{:.0f}", "<=", 0, None),
    "tilt.jitter": ("setpoints at 60 Hz, from client to wire: jitter p99, ms", "{:.2f}", "<=", 3.0, None),
    "tilt.stop": ("from the end of the lease to Stop on the wire, at most, ms", "{:.2f}", "<=", 5.0, None),
    "flood.missed": ("missed polls under a flood of calls", "{:.0f}", "<=", 0, None),
    "flood.late": ("lateness p99 of polls under it, ms", "{:.2f}", "<=", 5.0, None),
    "flood.lost": ("motion leases lost under it", "{:.0f}", "<=", 0, None),
    "car.rate": ("battery records per second, relative to the limit of the adapter model", "{:.3f}", ">=", 0.95, None),
    "car.late": ("lateness p99 at 20 Hz with all other requests, ms", "{:.2f}", "<=", 5.0, None),
    "car.python": ("CPU per reply of python-OBD, times vehicled's", "{:.1f}", ">=", 10, None),
    "car.python.waiting": ("the same where both wait for the adapter", "{:.1f}", ">=", 10, None),
    "car.allocations": ("allocations per poll, back to back", "{:.3f}", "<=", 0.01, None),
    "idle.memory": ("resident memory with one device, MB", "{:.1f}", "<=", 20, 14),
    "idle.anonymous": ("of it anonymous, MB", "{:.1f}", "<=", 4, 2),
    "idle.wakeups": ("wake-ups per second with no device", "{:.2f}", "<=", 0, None),
    "idle.wakeups.down": ("wake-ups per attempt to connect with one link down", "{:.1f}", "<=", 5, None),
    "idle.ready": ("from exec to ready, ms", "{:.1f}", "<=", 100, None),
    "history.bytes": ("disk per sample, all in, bytes", "{:.3f}", "<=", 0.25, None),
    "history.rows": ("disk of a row a sample in SQLite, times that of the history", "{:.0f}", ">=", 50, None),
    "history.cpu": ("CPU per sample to encode and store, live, µs", "{:.3f}", "<=", 0.2, None),
    "history.json": ("CPU per sample to read JSON and detect trips, live, µs", "{:.2f}", "<=", 2.0, None),
    "history.written": ("written to the disk per driving hour, MB", "{:.1f}", "<=", 10, None),
    "history.memory": ("resident memory while recording, MB", "{:.1f}", "<=", 25, None),
    "history.plot": ("plot of one property over the recorded days, 2000 points, ms", "{:.1f}", "<=", 50, None),
    "history.trips": ("list of the trips of ten years, ms", "{:.1f}", "<=", 20, None),
    "history.recut": ("trips of a year computed again, s", "{:.1f}", "<=", 10, None),
    "kills.lost": ("recorded values lost by SIGKILL, at most, s", "{:.1f}", "<=", 10, None),
    "kills.damage": ("damaged databases or blocks after all kills", "{:.0f}", "<=", 0, None),
    "idle.get": ("vehiclectl get of one value, ms", "{:.1f}", "<=", 20, None),
    "mqtt.lost": ("events that the broker never acknowledged", "{:.0f}", "<=", 0, None),
    "mqtt.order": ("events whose first delivery followed a later event of their topic", "{:.0f}", "<=", 0, None),
    "mqtt.repeats": ("repeats that QoS 1 does not allow, and old values", "{:.0f}", "<=", 0, None),
    "mqtt.left": ("acknowledged messages that the queue on the disk still has", "{:.0f}", "<=", 0, None),
    "mqtt.outage.lost": ("events of a day without a broker that were lost, late or repeated", "{:.0f}", "<=", 0, None),
    "mqtt.outage.left": ("acknowledged messages that the queue on the disk still has", "{:.0f}", "<=", 0, None),
    "mqtt.outage.drain": ("drain of that day over a link with a round trip of 50 ms, minutes", "{:.1f}", "<=", 15, None),
    "mqtt.outage.live": ("latency p99 of live values during that drain, ms", "{:.0f}", "<=", 250, None),
    "mqtt.bytes": ("20 signals at 1 Hz by TLS, with TCP/IP, MB per vehicle-month", "{:.2f}", "<=", 4, None),
    "mqtt.cpu": ("CPU per published value, times that of libmosquitto in C", "{:.2f}", "<=", 3.0, None),
    "mqtt.memory": ("resident memory with a car of at least 80 properties, MB", "{:.1f}", "<=", 25, None),
    "mqtt.memory.fleet": ("resident memory of a bridge with batches and TLS, MB", "{:.1f}", "<=", 25, None),
    "web.cpu": ("three browsers, each with 80 properties at 10 Hz: CPU, % of a core", "{:.2f}", "<=", 3.0, None),
    "web.memory": ("resident memory with them, MB", "{:.1f}", "<=", 25, None),
    "web.first": ("from a browser's first request to its first values, ms", "{:.1f}", "<=", 100, None),
    "listen.lost": ("frames lost at 4000 frames per second with 500 signals", "{:.0f}", "<=", 0, None),
    "listen.cpu": ("CPU while listening to them, % of a core", "{:.2f}", "<=", 15, None),
    "mqtt.discovery": ("discovery message of a car with 80 properties, kB", "{:.1f}", "<=", 30, None),
    "page.first": ("from navigation to the first values in Chromium, median, ms", "{:.0f}", "<=", 500, None),
    "page.pixel": ("from the adapter's reply to the pixel at 20 Hz, p99, ms", "{:.0f}", "<=", 100, None),
    "page.absent": ("from the car's key-off to the reason on the page, without a number, at most, s", "{:.2f}", "<=", 3, None),
    "page.dropped": ("plot of six series at 20 Hz: updates dropped", "{:.0f}", "<=", 0, None),
    "page.heap": ("growth of its heap, MB", "{:.2f}", "<=", 5, None),
    "page.cpu": ("CPU of the processes that draw it, % of a core", "{:.1f}", "<=", 15, None),
}

verdicts = {}


def judge(name, figure):
    words, form, relation, mark, aim = MARKS[name]
    met = figure >= mark if relation == ">=" else figure <= mark
    verdicts[name] = {"figure": figure, "mark": mark, "aim": aim, "met": met}
    limit = ("at least " if relation == ">=" else "at most ") + f"{mark:g}" + (f", aim {aim:g}" if aim else "")
    print(f"  {words + ':':<68} {form.format(figure):>8}  ({limit})  {'met' if met else 'NOT met'}")
    sys.stdout.flush()


def show(heads, rows):
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        print("  " + "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()


def median(rounds, key):
    return statistics.median(r[key] for r in rounds)
