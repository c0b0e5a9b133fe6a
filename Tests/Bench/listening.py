"""can-listen: a device of kind can on a bus with 4000 frames per second and the 500 signals of a DBC file, over slcan on TCP. Every frame
changes two of its five signals."""
import subprocess, time

import rig
from beside import values
from rig import Daemon, Trouble, cpu, end, last_words, memory, running, start
from verdict import judge, median, show

RATE, MESSAGES, SIGNALS = 4000, 100, 5


def define():
    """Writes the DBC file, and converts it to signals beside the configuration."""
    lines = ['VERSION ""', "BU_: A"]
    for message in range(MESSAGES):
        lines.append(f"BO_ {0x100 + message} M{message}: 8 A")
        for signal, bits in enumerate(("0|16@1+ (0.1,0)", "16|8@1- (1,-40)", "31|12@0+ (0.25,0)", "48|4@1+ (1,0)", "56|8@1+ (0.5,0)")):
            lines.append(f' SG_ Signal_{message}_{signal} : {bits} [0|0] "V" A')
    lines += ['BA_DEF_DEF_ "GenMsgCycleTime" 0;', *(f'BA_ "GenMsgCycleTime" BO_ {0x100 + message} 25;' for message in range(MESSAGES))]
    with open(f"{rig.folder}/bus.dbc", "w") as file:
        file.write("\n".join(lines) + "\n")
    subprocess.run(["mkdir", "-p", f"{rig.folder}/signals.d"], check=True)
    command = [rig.binaries / "vehiclectl", "import", f"{rig.folder}/bus.dbc", "--force", "--output", f"{rig.folder}/signals.d/bus.toml"]
    subprocess.run(command, check=True, capture_output=True)


def record(seconds):
    """Writes a log of this length, with four frames every millisecond, and returns the number of its frames."""
    count = int(seconds * RATE)
    with open(f"{rig.folder}/bus.log", "w") as file:
        for number in range(count):
            turn = number // MESSAGES
            data = bytes([turn & 255, turn >> 8 & 255, turn // 40 & 127, number % 7, turn // 9 & 240, 0, number % 3, turn & 255])
            milliseconds = number * 1000 // RATE
            file.write(f"({milliseconds // 1000}.{milliseconds % 1000:03}000) can0 {0x100 + number % MESSAGES:03X}#{data.hex().upper()}\n")
    return count


def listen(seconds):
    sent = record(seconds)
    simulator = start(
        [rig.binaries / "vehiclesim", "can", "--on", "slcan:tcp:127.0.0.1:0", "--log", f"{rig.folder}/bus.log", "--once"], "vehiclesim",
        rig.other, stdout=subprocess.PIPE)
    link = simulator.stdout.readline().strip()
    if not link:
        raise Trouble(last_words(simulator))
    try:
        with running(Daemon(devices=1, rate=None, cpus=rig.same, link=link, kind='kind = "can"\nbit-rate = 500000')) as daemon:
            count = lambda: values(daemon, "frames")[0] or 0
            deadline = time.monotonic() + 20
            while count() == 0:
                if time.monotonic() > deadline:
                    raise Trouble(f"no frames: {last_words(daemon.process)}")
                time.sleep(0.1)
            used, begun = cpu(daemon.pid), time.monotonic()
            time.sleep(seconds - 3)
            load = (cpu(daemon.pid) - used) / (time.monotonic() - begun) / 1e4
            rate = values(daemon, "frame-rate")[0]
            time.sleep(3)
            while (now := count()) < sent and time.monotonic() < begun + seconds + 10:
                time.sleep(0.5)
            bad = values(daemon, "bad-messages")[0]
            return {"rate": rate, "lost": sent - now, "bad": bad, "cpu": load, "sent": sent, "memory": memory(daemon.pid)[0] / 1e3}
    finally:
        end(simulator)


def run_listen(options):
    seconds = options.seconds or (6 if options.quick else 30)
    define()
    runs = [listen(seconds) for _ in range(options.rounds)]
    print(f"\nListening: {RATE} frames/s with {MESSAGES * SIGNALS} signals over slcan on TCP, {seconds:g} s, no client")
    show(["", "frames/s", "frames", "lost", "bad lines", "CPU, %", "memory, MB"], [
        [f"round {number + 1}", str(run["rate"]), str(run["sent"]), str(run["lost"]), str(run["bad"]), f"{run['cpu']:.2f}", f"{run['memory']:.1f}"]
        for number, run in enumerate(runs)])
    judge("listen.lost", max(run["lost"] for run in runs))
    judge("listen.cpu", median(runs, "cpu"))
    return runs
