#!/usr/bin/env python3
"""The tests in the guest: the package, the units under systemd, a link through bluetoothd with every part of it switched off once,
the history service, polkit, driving, the mirror, and the toy's Wi-Fi through NetworkManager. Prints one line per check."""
import fcntl, json, os, socket, struct, subprocess, time

import package, recording, service, wifi
from steps import check, leave, must, part, sh, wait


def air(*words):
    with socket.socket(socket.AF_UNIX) as steering:
        steering.connect("/run/air.sock")
        steering.sendall((" ".join(words) + "\n").encode())
        steering.recv(16)


def configure(link, more=""):
    with open("/etc/vehicled/vehicled.toml", "w") as file:
        file.write(f'[device.ev]\nkind = "obd"\nlink = "{link}"\nrate = 20\n{more}')


def status():
    code, out, _ = sh("vehiclectl status ev --json")
    return json.loads(out)["devices"][0] if code == 0 else {}


def link():
    return (status().get("links") or [{}])[0]


def polled():
    return sh("vehiclectl get ev.rpm")[0] == 0


def comes_back(what, seconds=90):
    start = time.monotonic()
    check(f"{what}: polled again", wait(polled, seconds), f"after {time.monotonic() - start:.1f} s, {link().get('reason') or 'up'}")


def shown(words):
    return wait(lambda: words in open("/run/mirror.log").read(), 60)


def motors():
    lines = [line for line in open("/run/car.log") if "car: motors " in line]
    return lines[-1].split("motors ")[1].strip() if lines else None


def drives():
    driver = subprocess.Popen(["vehiclectl", "drive", "car", "--deadline", "3000"], stdin=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)

    def tilted():
        driver.stdin.write('{"roll": 0.4, "pitch": 0}\n')
        driver.stdin.flush()
        return motors() == "50.96 50.96"

    return driver, wait(tilted, 30)


class Gamepad:
    """A virtual gamepad (uinput) with a stick and three buttons."""

    def __init__(self):
        self.file = os.open("/dev/uinput", os.O_WRONLY | os.O_NONBLOCK)
        for request, codes in ((0x40045564, (1, 3)), (0x40045565, (0x130, 0x131, 0x13B)), (0x40045567, (0, 1))):  # events, keys, axes
            for code in codes:
                fcntl.ioctl(self.file, request, code)
        most, least = [32767, 32767] + [0] * 62, [-32768, -32768] + [0] * 62
        os.write(self.file, struct.pack("80s4HI256i", b"Guest pad", 3, 0x1234, 0x5678, 1, 0, *most, *least, *[0] * 128))
        fcntl.ioctl(self.file, 0x5501)

    def say(self, kind, code, value):
        for event in ((kind, code, value), (0, 0, 0)):
            os.write(self.file, struct.pack("llHHi", 0, 0, *event))

    def unplug(self):
        fcntl.ioctl(self.file, 0x5502)
        os.close(self.file)


def without_bluetooth():
    """The daemon starts without Bluetooth, and reports what is missing."""
    check("the user is in group bluetooth", "bluetooth" in sh("id -nG vehicled")[1].split())
    sh("systemctl stop vehicled.service vm-sim")
    configure("ble:Veepeak")

    sh("systemctl stop bluetooth")
    must("systemctl start vehicled", sh("systemctl start vehicled.socket vehicled.service")[0] == 0, sh("systemctl is-active vehicled")[1])
    check("missing BlueZ is reported", wait(lambda: "BlueZ is not running" in (link().get("reason") or "")), link().get("reason"))
    sh("systemctl start bluetooth")
    check("a missing adapter is reported", wait(lambda: "no Bluetooth adapter hci0" in (link().get("reason") or "")), link().get("reason"))
    check("vm-sim and vm-air", sh("systemctl start vm-sim vm-air", 180)[0] == 0, sh("bluetoothctl --version")[1])
    wait(lambda: "hci0" in sh("ls /sys/class/bluetooth")[1])
    sh("bluetoothctl power on")


def bluetooth():
    must("a car is polled through bluetoothd", wait(polled, 90), link().get("reason") or "")
    details = link().get("details") or {}
    check("profile and MTU are shown", details.get("profile") == "FFF0/FFF1/FFF2" and int(details.get("mtu", 0)) >= 23, details)
    before = int(sh("vehiclectl get ev.polls")[1] or 0)
    time.sleep(10)
    rate = (int(sh("vehiclectl get ev.polls")[1] or 0) - before) / 10
    check("it is polled steadily", rate > 3, f"{rate:.1f} polls a second, {status().get('state')}, round trip {sh('vehiclectl get ev.round-trip')[1]} ms")
    check("a query is answered", "ELM327" in sh("vehiclectl do ev.query ATI")[1])
    code, out, errors = sh("vehiclectl scan ble --seconds 3")
    check("scan while the link is up", code == 0 and "Veepeak" in out and polled(), out or errors)
    code, out, _ = sh("vehiclectl doctor")
    check("the doctor finds no problem", code == 0, out.replace("\n", " | "))

    # Write types.
    for mode, words in (("yes", "with response"), ("no", "without response")):
        configure(f"ble:Veepeak?response={mode}")
        check(f"reload with response={mode}", sh("systemctl reload vehicled")[0] == 0)
        seen = wait(lambda: polled() and (link().get("details") or {}).get("write", "").startswith(words), 90)
        check(f"writes {words}", seen, link().get("details"))
    air("mtu", "23")
    configure("ble:AA:BB:CC:00:11:22")
    sh("vehiclectl reload")
    check("found by its address, with the minimum MTU", wait(lambda: polled() and (link().get("details") or {}).get("mtu") == "23", 90), link().get("details"))

    # Faults.
    air("off")
    check("out of range is noticed", wait(lambda: not polled() and link().get("state") != "up"), link().get("reason"))
    air("on")
    comes_back("in range again")
    sh("bluetoothctl power off")
    check("a radio that is switched off is reported", wait(lambda: "powered off" in (link().get("reason") or "")), link().get("reason"))
    sh("bluetoothctl power on")
    comes_back("radio switched on")
    sh("systemctl restart bluetooth")
    comes_back("bluetoothd restarted")
    sh("systemctl kill -s KILL bluetooth")
    check("bluetoothd killed is noticed", wait(lambda: link().get("state") != "up"), link().get("reason"))
    sh("systemctl start bluetooth")
    comes_back("bluetoothd started")
    sh("systemctl stop vm-air")
    check("an unplugged adapter is reported", wait(lambda: "no Bluetooth adapter" in (link().get("reason") or "")), link().get("reason"))
    sh("systemctl start vm-air", 180)
    wait(lambda: "hci0" in sh("ls /sys/class/bluetooth")[1])
    sh("bluetoothctl power on")
    comes_back("adapter plugged in again")
    sh("systemctl kill -s KILL vehicled")
    check("systemd restarts a killed vehicled", wait(lambda: sh("systemctl is-active vehicled")[1] == "active"))
    comes_back("vehicled restarted")


def permissions():
    # The last record can be that of the detected vehicle, which has no link.
    records = [json.loads(line) for line in sh("journalctl -o json VEHICLED_DEVICE=ev --no-pager -n 20")[1].splitlines()]
    check("the journal has fields", any(record.get("SYSLOG_IDENTIFIER") == "vehicled" and "VEHICLED_LINK" in record for record in records), len(records))
    sh("useradd owner; usermod -aG vehicled owner; useradd stranger")
    check("a member of the group can read", sh("runuser -u owner -- vehiclectl get ev.rpm")[0] == 0)
    code, _, errors = sh("runuser -u stranger -- vehiclectl get ev.rpm")
    check("another user cannot, and learns why", code == 7 and "stranger lacks the observe right" in errors, errors)
    check("another user can read the version", sh("runuser -u stranger -- vehiclectl version")[0] == 0)
    sh("useradd observer; usermod -aG vehicled-observe observer")
    check("a member of vehicled-observe can read", sh("runuser -u observer -- vehiclectl get ev.rpm")[0] == 0)
    check("but not control", sh("runuser -u observer -- vehiclectl disconnect ev")[0] == 7)


def polkit():
    configure("ble:Veepeak", '[control]\nauthorization = "polkit"\n')
    sh("systemctl restart vehicled.service")
    comes_back("polkit instead of lists")
    code, _, errors = sh("runuser -u stranger -- vehiclectl get ev.rpm")
    check("polkit requires authentication of another user", code == 7 and "authentication for io.vehicled.observe" in errors, errors)
    with open("/etc/polkit-1/rules.d/10-stranger.rules", "w") as file:
        file.write('polkit.addRule(function(action, subject) { if (action.id == "io.vehicled.observe" && subject.user == "stranger") return "yes"; });\n')
    check("a rule grants read access", wait(lambda: sh("runuser -u stranger -- vehiclectl get ev.rpm")[0] == 0, 20), sh("runuser -u stranger -- vehiclectl get ev.rpm")[2])
    check("but not control", sh("runuser -u stranger -- vehiclectl disconnect ev")[0] == 7)


def stop():
    start = time.monotonic()
    check("systemctl stop vehicled", sh("systemctl stop vehicled.service vehicled.socket")[0] == 0, f"in {time.monotonic() - start:.1f} s")
    check("it ended without an error", "Result=success" in sh("systemctl show -p Result vehicled")[1])
    check("the peer is disconnected", wait(lambda: "Connected: no" in sh("bluetoothctl info AA:BB:CC:00:11:22")[1] or "not available" in sh("bluetoothctl info AA:BB:CC:00:11:22")[1]))
    check("no discovery is left running", wait(lambda: "Discovering: no" in sh("bluetoothctl show")[1]))


def guardian():
    """The guardian survives what ends the daemon under systemd, and the unit waits for it."""
    for how in ("systemctl kill -s KILL --kill-whom=main vehicled", "systemctl kill -s ABRT vehicled", "systemctl kill -s STOP --kill-whom=main vehicled"):
        check("a car is connected", wait(lambda: sh("vehiclectl get car.connected")[1] == "on", 90), sh("vehiclectl get car.connected")[2])
        driver, moved = drives()
        check("it is driven", moved, motors())
        sh(how)
        check(f"the wheels stop after {how}", wait(lambda: motors() == "0.00 0.00"), motors())
        sh("systemctl kill -s CONT --kill-whom=main vehicled")
        driver.kill()
        check("the unit is active again", wait(lambda: sh("systemctl is-active vehicled")[1] == "active"))
    check("the journal has the crash, and there is no core file", "status=6/ABRT" in sh("journalctl -u vehicled --no-pager -o cat | grep 'Main process exited'")[1] and sh("find / -xdev -name 'core*' -user vehicled | grep -q .")[0] != 0)


def gamepad():
    sh("modprobe uinput; modprobe evdev")
    check("a car is connected for the gamepad", wait(lambda: sh("vehiclectl get car.connected")[1] == "on", 90), sh("vehiclectl get car.connected")[2])
    check("a missing gamepad is reported", "no gamepad" in sh("vehiclectl drive car --input gamepad")[2].lower(), sh("vehiclectl drive car --input gamepad")[2])
    pad = Gamepad()
    time.sleep(1)
    driver = subprocess.Popen(["vehiclectl", "drive", "car", "--input", "gamepad"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    check("a gamepad is found and drives", wait(lambda: sh("vehiclectl get car.running")[1] == "on", 20))
    pad.say(3, 1, -32768)
    check("the stick forward turns the wheels", wait(lambda: motors() == "40.02 40.02", 20), motors())
    pad.say(3, 1, 0)
    check("the centred stick stops them", wait(lambda: motors() == "0.00 0.00", 20), motors())
    pad.say(3, 1, -32768)
    check("and forward again", wait(lambda: motors() == "40.02 40.02", 20), motors())
    pad.say(1, 0x131, 1)
    check("button B stops", wait(lambda: motors() == "0.00 0.00" and sh("vehiclectl get car.running")[1] == "off", 20), motors())
    pad.say(1, 0x131, 0)
    pad.say(1, 0x130, 1)
    check("button A resumes", wait(lambda: motors() == "40.02 40.02", 20), motors())
    pad.unplug()
    check("unplugged, it stops and ends with 1", driver.wait(20) == 1 and wait(lambda: motors() == "0.00 0.00", 20), f"{motors()}: {driver.stderr.read().strip().splitlines()[-1:]}")


def motion():
    with open("/run/car.log", "w") as log:
        car = subprocess.Popen(["vehiclesim", "rc-car", "--on", "tcp:127.0.0.1:12345", "--restart", "1", "-v"], stderr=log, stdout=subprocess.DEVNULL)
    with open("/etc/vehicled/vehicled.toml", "w") as file:
        file.write('[device.car]\nkind = "rc-car"\nlink = "tcp:127.0.0.1:12345"\n')
    sh("systemctl start vehicled.socket vehicled.service")
    try:
        for run in (guardian, gamepad):
            part(run)
    finally:
        car.terminate()


def mirror():
    """A mirror through bluetoothd with its key in a systemd credential, and the weather through libcurl under the system-call filter."""
    os.makedirs("/etc/systemd/system/vehicled.service.d", exist_ok=True)
    with open("/etc/systemd/system/vehicled.service.d/mirror.conf", "w") as file:
        file.write("[Service]\nLoadCredential=mirror.key:/etc/vehicled/mirror.key\nLoadCredential=mirror.iv:/etc/vehicled/mirror.iv\n")
    for name, text in (("key", "ascii:0123456789ABCDEF"), ("iv", "ascii:FEDCBA9876543210")):
        with open(os.open(f"/etc/vehicled/mirror.{name}", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(text + "\n")
    with open("/run/mirror.log", "w") as log:
        keys = ["--key-file", "/etc/vehicled/mirror.key", "--iv-file", "/etc/vehicled/mirror.iv"]
        mirror = subprocess.Popen(["vehiclesim", "mirror", "--on", "tcp:127.0.0.1:35001", "-v", *keys], stderr=log, stdout=subprocess.DEVNULL)
    sky = subprocess.Popen(["vehiclesim", "weather", "--on", "tcp:127.0.0.1:35002"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open("/etc/vehicled/vehicled.toml", "w") as file:
        file.write("""[device.mirror]
kind = "mirror"
link = "ble:ESP32-BLE-Server"
key-file = "mirror.key"
iv-file = "mirror.iv"
health = ["phone.steps"]
weather = "weather"
[device.phone]
kind = "health"
[device.weather]
kind = "weather"
latitude = 63
longitude = 10
url = "http://127.0.0.1:35002"
""")
    sh("systemctl daemon-reload; systemctl restart vehicled.service")
    check("the weather is known", wait(lambda: sh("vehiclectl get weather.temperature")[0] == 0), sh("vehiclectl get weather.temperature")[2])
    check("steps are set", sh("vehiclectl set phone.steps 4321")[0] == 0)
    check("a mirror without a name reports that", wait(lambda: "needs-username" in sh("vehiclectl status mirror")[1]), sh("vehiclectl status mirror")[2])
    check("its name is set", sh("vehiclectl set mirror.username Ada")[0] == 0)
    check("the mirror is up", wait(lambda: sh("vehiclectl get sent-name")[1] == "Ada", 120), sh("vehiclectl status mirror")[1].splitlines()[:3])
    check("vehiclectl set led 70", sh("vehiclectl set led 70")[0] == 0)

    check("the mirror shows it", shown("Bright 70.0"), open("/run/mirror.log").read().splitlines()[-1:])
    for setting in ("send-steps", "health", "weather", "send"):
        sh(f"vehiclectl set mirror.{setting} on")
    check("the mirror shows steps and weather", shown("StepC 4321") and shown("TempF "), open("/run/mirror.log").read().splitlines()[-1:])
    check("no message would have crashed it or corrupted its data", not any(text in open("/run/mirror.log").read() for text in ("crash", "corrupted data")))
    mirror.terminate()
    sky.terminate()


def end():
    check("systemctl stop vehicled, with a toy", sh("systemctl stop vehicled.service vehicled.socket")[0] == 0)


check("systemd runs the guest", open("/proc/1/comm").read().strip() == "systemd")
part(package.run)
if sh("command -v vehicled vehiclectl vehiclesim")[0] != 0:
    leave()
for run in (service.run, recording.run, without_bluetooth, bluetooth, permissions, polkit, stop, motion, mirror, wifi.borrow, end):
    part(run)
leave()
