#!/usr/bin/env python3
"""One run of a guest that is reset while it records a car: reports what earlier runs have stored on the disk /dev/vdc, then prints the
time of CLOCK_BOOTTIME in µs while it records."""
import sqlite3, time

import service
from steps import sh, wait

STATE = "/var/lib/vehicled-history"


def recording():
    return '"recording":true' in sh("vehiclectl history --json")[1]


def report(what, more=""):
    print(f"{what} {more}".strip(), flush=True)


sh(f"mkdir -p {STATE}; mount /dev/vdc {STATE}; systemctl start vm-sim")
service.configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n')
sh("mkdir -p /etc/vehicled && echo '[history]' >/etc/vehicled/history.toml")
sh("systemctl start vehicled.socket vehicled.service vehicled-history.socket vehicled-history.service", 120)
if not wait(lambda: recording() and service.get("ev.rpm"), 120):
    report("damage", "nothing is recorded: " + sh("journalctl -u vehicled -u vehicled-history -o cat --no-pager -n 5")[1].replace("\n", " | "))
code, out, errors = sh("vehiclectl history check", 120)
if code != 0:
    report("damage", f"history check: {out} {errors}".replace("\n", " | "))
boot = open("/proc/sys/kernel/random/boot_id").read().strip()
store = sqlite3.connect(f"file:{STATE}/history.db?mode=ro", uri=True)
found = store.execute("PRAGMA quick_check").fetchall()
if found != [("ok",)]:
    report("damage", found)
for uuid, end in store.execute("""SELECT uuid, max("end") FROM (SELECT boot, "end" FROM recent UNION ALL SELECT boot, "end" FROM block) part
                                  JOIN boot ON boot.id = part.boot WHERE uuid != ? GROUP BY uuid""", (boot,)):
    report("stored", f"{uuid} {end}")
store.close()
while True:
    report("recording", f"{boot} {time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000}")
    time.sleep(0.1)
