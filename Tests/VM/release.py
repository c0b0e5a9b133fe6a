#!/usr/bin/env python3
"""The packages on another release of Debian than that on which they were built: with all services and a simulated car, newly installed, or
while the system is upgraded from one release to the next. The file `phase` contains new, upgrade, or rebooted: after the upgrade, with the
new kernel."""
import json, os, subprocess, time, urllib.request

import package, recording, service
from steps import check, leave, must, part, sh, wait

SERVICES = ("vehicled", "vehicled-history", "vehicled-mqtt", "vehicled-web")
UNITS = (*(f"{name}.service" for name in SERVICES), "vehicled.socket", "vehicled-history.socket")
TOKEN_FILE = "/etc/vehicled/kiosk.token"
# What was recorded before the upgrade: the period, and its values as an export.
BEFORE = "/var/lib/vm-before.json"
LOG = "/var/log/vm-upgrade.log"


def configure():
    """All services: a car, a broker, and a token for browsers."""
    service.configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n[device.phone]\nkind = "health"\n')
    for name, text in (("history", "# An owner's comment."), ("mqtt", 'broker = "mqtt://127.0.0.1"'), ("web", f'[token.kiosk]\nfile = "{TOKEN_FILE}"')):
        with open(f"/etc/vehicled/{name}.toml", "a") as file:
            file.write(f"{text}\n")
    sh(f"install -m 600 -o vehicled-web /dev/null {TOKEN_FILE}; echo 0123456789abcdef0123456789abcdef >{TOKEN_FILE}")
    code, _, errors = sh("systemctl enable --now mosquitto && systemctl start vm-sim && systemctl reload vehicled && systemctl enable --now vehicled-mqtt vehicled-web", 120)
    must("the bridge and the web server are enabled", code == 0, "" if code == 0 else errors)
    check("a value is stored", wait(lambda: sh("vehiclectl set phone.steps 4321")[0] == 0))


def add_weather():
    """A device that requires libcurl."""
    subprocess.Popen(["vehiclesim", "weather", "--on", "tcp:127.0.0.1:35002"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open("/etc/vehicled/vehicled.toml", "a") as file:
        file.write('[device.weather]\nkind = "weather"\nlatitude = 63\nlongitude = 10\nurl = "http://127.0.0.1:35002"\n')
    sh("systemctl reload vehicled")


def has_weather():
    return sh("vehiclectl get weather.temperature")[0] == 0


def page():
    try:
        with urllib.request.urlopen("http://127.0.0.1:8270/", timeout=30) as reply:
            return reply.status
    except OSError as error:
        return error


def services():
    """All services work, with the settings of `configure`."""
    system = dict(line.split("=", 1) for line in open("/etc/os-release").read().splitlines())
    print(f"     {system['PRETTY_NAME']}, Linux {os.uname().release}, {sh('systemctl --version')[1].splitlines()[0]}", flush=True)
    for name in UNITS:
        check(f"{name} is active and enabled", wait(lambda: package.unit(name) == ("active", "enabled"), 30), package.unit(name))
    check("vehiclectl status answers", sh("vehiclectl status")[0] == 0, sh("vehiclectl status")[1].replace("\n", " | "))
    must("a car is polled", wait(lambda: (service.reading("ev.rpm").get("age") or 99) < 2), service.reading("ev.rpm"))
    integrators()
    check("the stored value is there", service.get("phone.steps") == "4321", service.get("phone.steps"))
    check("the history records", wait(lambda: recording.status().get("recording")), recording.status())
    begun = recording.samples()
    check("and returns what it recorded", wait(lambda: recording.samples() > begun + 20), f"{begun}, then {recording.samples()} samples of one property")
    check("nothing is damaged", sh("vehiclectl history check")[0] == 0, sh("vehiclectl history check"))
    code, out, errors = sh("mosquitto_sub -h 127.0.0.1 -R -t vehicled/ev/+ -C 3 -W 60 -v", 90)
    check("the broker receives values", code == 0, errors or out.replace("\n", " | "))
    check("the web server serves the page", wait(lambda: page() == 200, 30), page())
    for name in SERVICES:
        exposure = sh(f"systemd-analyze security {name}.service --no-pager | tail -1")[1]
        check(f"the exposure of {name} is low", "SAFE" in exposure or "OK" in exposure, exposure)
    changed = [line for line in sh(f"dpkg -V {package.names()}", 120)[1].splitlines() if " c /etc/vehicled/" not in line]
    check("dpkg finds all files unchanged, except configuration files", not changed, changed[:5])
    errors = sh("journalctl -b -p err -o short-monotonic --no-pager -u 'vehicled*'")[1]
    check("the journal has no errors of the services", errors in ("", "-- No entries --"), errors)
    failed = sh("systemctl --failed --plain --no-legend")[1]
    check("no unit of vehicled has failed", "vehicled" not in failed, failed)


def integrators():
    """systemd's own Varlink client, where the release has it, reads the interfaces and calls them."""
    if sh("varlinkctl --help | grep -q -e ' -E '")[0]:
        return print("     varlinkctl with -E is not installed", flush=True)
    for interface, path in (("io.vehicled", "/run/vehicled/io.vehicled"), ("io.vehicled.history", "/run/vehicled-history/io.vehicled.history")):
        code, out, errors = sh(f"varlinkctl --no-pager introspect {path} {interface}")
        check(f"varlinkctl introspects {interface}", code == 0 and "method " in out and "# " in out, errors or f"{out.count('method ')} methods, {out.count('error ')} errors, {out.count('# ')} lines of comments")
        code, out, errors = sh(f"varlinkctl --no-pager validate-idl <<'EOF'\n{out}\nEOF")
        check("and finds its definition valid", code == 0, errors)
    socket = "/run/vehicled/io.vehicled"
    code, out, errors = sh(f"varlinkctl info {socket}")
    check("varlinkctl shows the service", code == 0 and "io.vehicled" in out, errors or out.replace("\n", " | "))
    code, out, errors = sh(f"varlinkctl call {socket} io.vehicled.Get " + """'{"references":["ev.rpm"]}'""")
    check("it gets a value", code == 0 and '"readings"' in out, errors or out[:200].replace("\n", " "))
    code, out, errors = sh(f"varlinkctl call {socket} io.vehicled.Get " + """'{"references":["ev.nothing"]}'""")
    check("an error has its name", code != 0 and "io.vehicled." in errors, errors)
    code, out, errors = sh(f"timeout 5 varlinkctl -E -j call {socket} io.vehicled.Watch " + """'{"references":["ev.rpm"],"minimumIntervalMilliseconds":500}'""")
    check("it watches", '"snapshot"' in out and '"changes"' in out, errors or f"{len(out.splitlines())} messages in 5 s")


def exported(period):
    since, until = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)) for second in period)
    return sh(f"vehiclectl history export --ndjson --device ev --since {since} --until {until}", 120)[1].splitlines()


def remember():
    period = (time.time(), time.time() + 20)
    time.sleep(50)  # until every value of this period has arrived, on a slow computer, too
    rows = exported(period)
    must("values are recorded before the upgrade", len(rows) > 100, f"{len(rows)} values of 20 s")
    with open(BEFORE, "w") as file:
        json.dump((period, rows), file)


def kept():
    period, rows = json.load(open(BEFORE))
    check("the values that were recorded before the upgrade are unchanged", (now := exported(period)) == rows, f"{len(rows)} values" if now == rows else f"{len(rows)} became {len(now)}; {len(set(rows) - set(now))} are missing")
    check("so are the configuration files", "An owner's comment" in open("/etc/vehicled/history.toml").read() and "mqtt://127.0.0.1" in open("/etc/vehicled/mqtt.toml").read())
    check("none is left beside them", not [name for name in os.listdir("/etc/vehicled") if ".dpkg" in name], os.listdir("/etc/vehicled"))


def installed(pattern):
    """The packages that match it, with their states."""
    return {name: state for name, state in (line.split() for line in sh(f"dpkg-query -W -f '${{Package}} ${{db:Status-Abbrev}}\\n' '{pattern}'")[1].splitlines())}


def new():
    part(package.run)
    part(package.purge)
    must("dpkg installs the packages", package.install(package.FILES)[0] == 0)
    configure()
    add_weather()
    check("libcurl is loaded", wait(has_weather), sh("vehiclectl get weather.temperature"))
    services()
    part(package.purge)


def upgrade():
    code, _, errors = package.install(package.FILES)
    must("dpkg installs the packages", code == 0, "" if code == 0 else errors)
    configure()
    services()
    remember()
    before, begun = {name: package.main_pid(name) for name in SERVICES}, time.time()
    code, _, _ = sh(f"DEBIAN_FRONTEND=noninteractive apt-get -y --no-download -o Dpkg::Options::=--force-confold full-upgrade >{LOG} 2>&1", 3000)
    ended = time.time()
    count = next((line for line in open(LOG) if "newly installed" in line), "").strip()
    must("apt upgrades the system", code == 0, f"{count} In {ended - begun:.0f} s" if code == 0 else open(LOG).read()[-1000:].replace("\n", " | "))
    check("the packages stay installed", set(installed("vehicle*").values()) == {"ii"}, installed("vehicle*"))
    libraries = installed("libssl3*") | installed("libcurl4*")
    check("their dependencies have new names", {name for name in libraries if libraries[name] == "ii"} == {"libssl3t64", "libcurl4t64"}, libraries)
    code, _, errors = sh("apt-get check")
    check("apt finds no broken dependency", code == 0, errors)
    unneeded = [line.split()[1] for line in sh("apt-get -s autoremove")[1].splitlines() if line.startswith("Remv ")]
    check("autoremove would keep them and their dependencies", not {"libssl3t64", "libcurl4t64", "libmosquitto1", *installed("vehicle*")} & set(unneeded), unneeded)
    check("no service was restarted", {name: package.main_pid(name) for name in SERVICES} == before, before)
    times = len([row for row in exported((begun, ended)) if '"rpm"' in row])
    check("values were recorded during the upgrade", times > 60, f"{times} of one property")
    # The process has the old C library.
    add_weather()
    error = lambda: sh("vehiclectl get weather.temperature")[2]
    check("a library that the running daemon cannot load is reported, with the remedy", wait(lambda: "libcurl cannot be loaded; if the system was upgraded, restart vehicled" in error()), error())
    sh("systemctl restart vehicled")
    check("after a restart, it is loaded", wait(has_weather), error())
    services()
    kept()


def rebooted():
    sh("systemctl start vm-sim")
    services()
    kept()
    part(package.purge)


phase = open("/opt/vm/phase").read()
part({"new": new, "upgrade": upgrade, "rebooted": rebooted}[phase])
try:
    leave()
except SystemExit as end:
    if phase != "upgrade":
        raise
    # The disk is used again, so the system is shut down properly.
    print(f"vm: exit {end.code}", flush=True)
    sh("systemctl poweroff")
    time.sleep(300)
