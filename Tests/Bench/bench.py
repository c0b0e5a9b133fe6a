#!/usr/bin/env python3
"""Benchmarks of vehicled against the floor: the minimum that hardware and kernel allow, measured in the same run.

  bench.py [max] [hz] [scale] [frames] [fanout] [ble] [vesc] [car] [tilt] [flood] [idle]     default: all of these
  bench.py history | kills | mqtt | web | page | can-listen

  max     one adapter back to back: polls per second and CPU per poll, against the C floor
  hz      one adapter at 20 Hz, no client: CPU per poll, missed polls, drift, lateness, against the floor
  scale   100 and 1000 adapters at 20 Hz: missed polls, CPU per poll, memory per adapter, against the floor
  frames  battery records over slcan against those over an ELM327's text: rate, CPU; 100 Hz, and 20 ECUs at 20 Hz over slcan
  fanout  100 watchers of a 20 Hz stream, one that stops reading, requests back to back; against gpsd if installed
  ble     one adapter at 20 Hz over BLE, through a mock BlueZ, against the same over TCP: CPU per poll, round trip
  vesc    a VESC at 50 Hz against an OBD adapter at the same rate: CPU per poll
  car     a car behind an adapter with real timing: polls per second, lateness with all other requests, allocations;
          CPU per reply against python-OBD if installed by Tests/Setup/setup.sh bench
  tilt    an RC car driven at 60 Hz: from a setpoint to the wire, and from the end of the lease to Stop
  flood   128 connections of one user, and of three, flood the socket: missed polls, lateness, lost leases; needs root
  idle    memory, wake-ups, start-up, `vehiclectl get`
  history a year made by `vehiclesim history` (or --days), and a live drive: size, CPU, writes, memory, plot, list, recut
  kills   vehicled-history killed at random times (--kills): what is lost, and damage
  mqtt    vehicled-mqtt: events through broker kills (--kills), a day without a broker, bytes on the wire, CPU, memory
  can-listen
          a CAN bus with 4000 frames per second and 500 signals over slcan on TCP: lost frames, CPU
  web     vehicled-web: three browsers that watch 80 properties at 10 Hz: CPU, memory, time to the first values
  page    its page in Chromium: the first values, the delay to the pixel, the reason after key-off, a plot of six series for ten minutes

Rates and lateness are measured by the simulated adapter (fastelm), CPU by the kernel. The programs take turns; figures are medians of
the rounds, ratios are computed within a round. The exit status is 1 if a target is missed.
"""
import argparse, json, os, platform, shutil, signal, sys, tempfile
from pathlib import Path

sys.dont_write_bytecode = True  # keeps the source directory clean
import beside, car, fanout, flooding, frames, history, idle, listening, mqtt, polling, rig, tilting, web
from verdict import verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="NAME", help="max, hz, scale, frames, fanout, ble, vesc, car, tilt, flood, idle, history, kills, web, page, can-listen, mqtt, or one part of mqtt: mqtt-kills, mqtt-outage, mqtt-cpu, mqtt-vehicle")
    parser.add_argument("--bin", type=Path, default=rig.ROOT / ".build" / "linked" / "bin", help="directory of the programs (.build/linked/bin)")
    parser.add_argument("--quick", action="store_true", help="short runs, as a smoke test")
    parser.add_argument("--rounds", type=int, help="number of rounds (3; quick 1)")
    parser.add_argument("--seconds", type=float, help="length of one run (default: depends on the benchmark)")
    parser.add_argument("--days", type=int, help="history: days in virtual time (365; quick 14)")
    parser.add_argument("--state", help="history: keep the recorded days in this directory, or reuse those that are there")
    parser.add_argument("--kills", type=int, help="number of kills (kills: 1000, quick 20; mqtt: 100, quick 5)")
    parser.add_argument("--json", type=Path, help="write the results of all rounds to this file")
    options = parser.parse_args()
    benchmarks = {"max": polling.run_max, "hz": polling.run_hz, "scale": polling.run_scale, "frames": frames.run_frames, "fanout": fanout.run_fanout, "ble": beside.run_ble, "vesc": beside.run_vesc, "car": car.run_car, "tilt": tilting.run_tilt, "flood": flooding.run_flood, "idle": idle.run_idle}
    parts = {f"mqtt-{part}": run for part, run in mqtt.PARTS.items()}
    separate = {"history": history.run_history, "kills": history.run_kills, "mqtt": mqtt.run_mqtt, "web": web.run_web, "page": web.run_page, "can-listen": listening.run_listen, **parts}
    for name in options.what:
        if name not in benchmarks | separate:
            parser.error(f"there is no benchmark {name}: choose from {', '.join(benchmarks | separate)}")
    options.rounds = options.rounds or (1 if options.quick else 3)
    rig.binaries = options.bin.resolve()
    if not os.access(rig.binaries / "vehicled", os.X_OK):
        parser.error(f"there is no {rig.binaries}/vehicled: build it with make, or say where it is with --bin")
    cpus = sorted(os.sched_getaffinity(0))
    rig.same, rig.other = {cpus[0]}, {cpus[-1]}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rig.folder = tempfile.mkdtemp(prefix="vehicled-bench.")
    results = {}
    try:
        rig.build_tools()
        print(f"{platform.machine()}, {len(cpus)} CPUs, Linux {platform.release()}, load {os.getloadavg()[0]:.1f}")
        for name in options.what or benchmarks:
            try:
                results[name] = (benchmarks | separate)[name](options)
            except rig.Trouble as trouble:
                print(f"\n{name}: {trouble}", file=sys.stderr)
                verdicts[name] = {"met": False, "trouble": str(trouble)}
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        verdicts["run"] = {"met": False}
    finally:
        for process in list(rig.live):
            rig.end(process)
        shutil.rmtree(rig.folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps({"marks": verdicts, "rounds": results}, indent=1))
    missed = [name for name, verdict in verdicts.items() if not verdict["met"]]
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} targets met" + (f"; missed: {', '.join(missed)}" if missed else ""))
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
