"""The history service under its unit: its user and rights, kills, a full disk, clock jumps, and an alert that starts a program. A car is
being polled."""
import json, os, time

import service
from steps import check, part, sh, wait


def status():
    code, out, _ = sh("vehiclectl history --json")
    return json.loads(out) if code == 0 else {}


def pid():
    return int(sh("systemctl show -p MainPID --value vehicled-history")[1] or 0)


def configure(text):
    with open("/etc/vehicled/history.toml", "w") as file:
        file.write(text)
    sh("systemctl restart vehicled-history")


def samples():
    """The number of recorded values of the car."""
    code, out, _ = sh("vehiclectl history export --ndjson --device ev --property rpm --since -1h")
    return out.count('"time"') if code == 0 else -1


def run():
    service.configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n')
    sh("systemctl restart vehicled")
    check("a car is polled", wait(lambda: service.get("ev.rpm")))
    configure("[history]\n")
    sh("systemctl enable --now vehicled-history.socket vehicled-history.service")
    check("the history records under its unit", wait(lambda: status().get("recording")), status() or sh("journalctl -u vehicled-history -o cat --no-pager -n 3")[1])
    check("as a user of its own", sh(f"ps -o user= -p {pid()}")[1].startswith("vehicled-hist"), sh(f"ps -o user:20= -p {pid()}")[1])
    check("its files are its own", sh("stat -c '%a %U' /var/lib/vehicled-history/")[1] == "700 vehicled-history", sh("stat -c '%a %U' /var/lib/vehicled-history/")[1])
    exposure = sh("systemd-analyze security vehicled-history.service --no-pager | tail -1")[1]
    check("its exposure is low", "SAFE" in exposure or "OK" in exposure, exposure)
    check("values are recorded", wait(lambda: samples() > 20, 60), samples())
    check("a parked period or a trip is open", '"open":true' in sh("vehiclectl parked --json; vehiclectl trips --json")[1])
    for step in (rights, kills, disk, clock, alert, follows):
        part(step)
    sh("systemctl disable --now vehicled-history.service vehicled-history.socket; rm -rf /etc/vehicled/alerts /etc/vehicled/history.toml")


def rights():
    code, _, errors = sh("runuser -u nobody -- vehiclectl trips")
    check("another user is denied, with the remedy", code != 0 and "vehicled-observe" in errors, errors)
    sh("usermod -aG vehicled-observe daemon")
    check("a member of vehicled-observe can read", sh("runuser -u daemon -- vehiclectl trips")[0] == 0, sh("runuser -u daemon -- vehiclectl trips")[2])
    code, _, errors = sh("runuser -u daemon -- vehiclectl history delete ev --yes")
    check("but not delete", code != 0, errors)


def kills():
    for _ in range(5):
        before = pid()
        time.sleep(12)
        sh("systemctl kill -s KILL vehicled-history")
        wait(lambda: pid() not in (0, before) and status().get("recording"))
    check("after five kills it records", status().get("recording"), status())
    code, out, _ = sh("vehiclectl history check")
    check("nothing is damaged", code == 0, out)


def disk():
    mount = "mount -t tmpfs -o size=6m,mode=700,uid=vehicled-history,gid=vehicled-history none /var/lib/vehicled-history"
    sh(f"systemctl stop vehicled-history.service; {mount}; systemctl start vehicled-history.service")
    check("on a small disk it records", wait(lambda: status().get("recording")), status())
    sh("dd if=/dev/zero of=/var/lib/vehicled-history/ballast bs=1k count=20000")
    full = lambda: "full" in sh("journalctl -u vehicled-history -o cat --no-pager -n 20")[1]
    check("a full disk is reported", wait(full, 90), sh("journalctl -u vehicled-history -o cat --no-pager -n 2")[1])
    check("polling goes on", (service.reading("ev.rpm").get("age") or 99) < 2)
    before = samples()
    sh("rm /var/lib/vehicled-history/ballast")
    check("with free space the values are stored", wait(lambda: samples() > before + 20, 60), samples())
    check("nothing is damaged", sh("vehiclectl history check")[0] == 0, sh("vehiclectl history check")[1])
    sh("systemctl stop vehicled-history.service; umount /var/lib/vehicled-history; systemctl start vehicled-history.service")
    check("with its disk back", wait(lambda: status().get("recording")))


def clock():
    before = pid()
    for jump in (86400 * 400, -86400 * 400):
        sh(f"date -s @{int(time.time() + jump)}")
        time.sleep(12)
    check("clock jumps of 400 days and back: it still runs and records", pid() == before and status().get("recording"), status())


def alert():
    os.makedirs("/etc/vehicled/alerts", exist_ok=True)
    with open("/etc/vehicled/alerts/turning", "w") as file:
        file.write("#!/bin/sh\nread -r line && logger -t vm-alert -- \"$line\"\n")
    os.chmod("/etc/vehicled/alerts/turning", 0o755)
    sh("systemctl enable --now vehicled-alert@turning.path")
    configure('[history]\n[alert.turning]\ncondition = "ev.polls > 10"\nrun-program = true\n')
    ran = lambda: '"turning"' in sh("journalctl -t vm-alert -o cat --no-pager")[1]
    check("an alert starts its program", wait(ran, 60), sh("journalctl -t vm-alert -o cat --no-pager -n 1")[1] or sh("systemctl status vehicled-alert@turning.service --no-pager")[1][-300:])
    record = sh("journalctl MESSAGE_ID=3f5c1d8e0b7a4c62a9d4f1e6b2087c95 -o cat --no-pager")[1]
    check("and is one journal record", "alert turning" in record, record)
    # Raised more often than systemd's default limit of starts.
    for number in range(8):
        with open("/run/vehicled-alerts/turning", "w") as file:
            file.write(f"raised {number}\n")
        check(f"raised {number + 1} times, the program starts", wait(lambda: f"raised {number}" in sh("journalctl -t vm-alert -o cat --no-pager")[1], 20), sh("systemctl is-active vehicled-alert@turning.path")[1])
    sh("systemctl disable --now vehicled-alert@turning.path")


def follows():
    """It stops and starts with the daemon."""
    sh("systemctl stop vehicled.service")
    check("it stops with the daemon", wait(lambda: sh("systemctl is-active vehicled-history.service")[1] == "inactive", 20))
    sh("systemctl start vehicled.service")
    check("and starts with it", wait(lambda: status().get("recording")))
