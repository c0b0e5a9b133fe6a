"""The daemon as a service: socket activation, restarts during calls, freezes, a hundred kills, a full disk, clock jumps, a serial adapter
that is plugged in late, and connection floods."""
import json, os, subprocess, time

from steps import check, part, sh, wait

ADAPTER = "/dev/serial/by-id/usb-QEMU_QEMU_USB_SERIAL_A50285BI-if00-port0"


def configure(text):
    os.makedirs("/etc/vehicled", exist_ok=True)
    with open("/etc/vehicled/vehicled.toml", "w") as file:
        file.write(text)


def pid():
    return int(sh("systemctl show -p MainPID --value vehicled")[1] or 0)


def get(reference):
    code, out, _ = sh(f"vehiclectl get {reference}")
    return out if code == 0 else None


def reading(reference):
    code, out, _ = sh(f"vehiclectl get --json {reference}")
    return json.loads(out)["readings"][0] if out else {}


def drop_in(text):
    os.makedirs("/run/systemd/system/vehicled.service.d", exist_ok=True)
    with open("/run/systemd/system/vehicled.service.d/vm.conf", "w") as file:
        file.write(text)
    sh("systemctl daemon-reload")


def run():
    sh("systemctl start vm-sim")
    configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n[device.phone]\nkind = "health"\n')
    sh("systemctl restart vehicled")
    check("a car is polled over TCP under the unit", wait(lambda: get("ev.rpm")), get("ev.request"))
    for run in (activation, invalid, restarts, freezes, clock, disk, metrics, serial, kills, flood):
        part(run)


def activation():
    sh("systemctl stop vehicled.service")
    check("only the socket is left", sh("systemctl is-active vehicled.service vehicled.socket")[1].split() == ["inactive", "active"])
    code, out, errors = sh("vehiclectl --timeout 60 status", 90)
    check("a call starts the daemon", code == 0 and pid() > 0, errors or out.split("\n")[0])


def invalid():
    """With an invalid configuration, clients do not make systemd start the daemon in a loop, which its limit would end with a failed socket."""
    with open("/etc/vehicled/vehicled.toml") as file:
        valid = file.read()
    begun = int(time.time())
    configure("[device.\n")
    try:
        code, _, errors = sh("systemctl restart vehicled")
        check("an invalid configuration is an error of the start", code != 0, errors)
        sh("for n in $(seq 10); do vehiclectl --timeout 5 status; sleep 0.5; done", 300)
        code, _, errors = sh("vehiclectl --timeout 5 status", 30)
        check("a client gets an error that names the journal", code == 1 and "configuration may be invalid" in errors and "journalctl" in errors, errors)
        starts = int(sh(f"journalctl -u vehicled --since @{begun} -o cat --no-pager | grep -c 'Main process exited'")[1] or 0)
        check("a few starts, and the socket stays", 0 < starts < 100 and sh("systemctl is-active vehicled.socket")[1] == "active", starts)
    finally:
        configure(valid)
    code, _, errors = sh("vehiclectl --timeout 60 status", 90)
    check("with a valid one, the next call starts the daemon", code == 0 and pid() > 0, errors)
    check("and the car is polled", wait(lambda: get("ev.rpm"), 60))


def restarts():
    """Calls during a restart are answered."""
    loop = "for n in $(seq 40); do vehiclectl --timeout 60 get phone.steps >/dev/null 2>/tmp/$0.err; [ $? -le 1 ] || { cat /tmp/$0.err; exit 1; }; done"
    callers = [subprocess.Popen(["sh", "-c", loop, f"caller{n}"], stdout=subprocess.PIPE, text=True) for n in range(4)]
    for _ in range(3):
        time.sleep(1)
        sh("systemctl restart vehicled")
    said = [caller.communicate(timeout=300)[0] for caller in callers]
    lost = [caller.returncode for caller in callers if caller.returncode]
    check("three restarts under four callers", not lost, " ".join(said).strip())
    check("polled again", wait(lambda: get("ev.rpm")))
    check("reload keeps the process", (before := pid()) and sh("systemctl reload vehicled")[0] == 0 and pid() == before)
    code, out, _ = sh("journalctl -u vehicled -o json --no-pager -n 200")
    records = [json.loads(line) for line in out.split("\n")]
    about = [record for record in records if record.get("VEHICLED_DEVICE") == "ev"]
    check("the journal has fields", about and all(record["SYSLOG_IDENTIFIER"] == "vehicled" and "PRIORITY" in record for record in about) and any(record.get("VEHICLED_LINK") == "main" for record in about), len(about))
    check("journalctl finds a device", "link is up" in sh("journalctl VEHICLED_DEVICE=ev --no-pager -o cat")[1])


def freezes():
    """SIGSTOP and SIGCONT, as in a suspend; then SIGSTOP alone, after which the watchdog restarts it."""
    process = pid()
    os.kill(process, 19)
    time.sleep(8)
    os.kill(process, 18)
    check("it continues after eight seconds without CPU time", wait(lambda: (reading("ev.rpm").get("age") or 99) < 2, 20) and pid() == process, reading("ev.rpm").get("age"))
    drop_in("[Service]\nWatchdogSec=6\n")
    sh("systemctl restart vehicled")
    wait(lambda: get("ev.rpm"))
    process = pid()
    os.kill(process, 19)
    check("a frozen loop is ended by the watchdog", wait(lambda: pid() not in (0, process), 60), sh("journalctl -u vehicled -o cat --no-pager -n 40 | grep -i watchdog")[1].split("\n")[-1])
    check("and polled again", wait(lambda: get("ev.rpm")))
    drop_in("")


def clock():
    polls = int(get("ev.polls") or 0)
    now = time.time()
    for jump in (7200, -7200, 86400 * 400):
        sh(f"date -s @{int(time.time() + jump)}")
        age = reading("ev.rpm").get("age")
        check(f"the clock jumps by {jump} s: ages follow the boot-time clock", age is not None and 0 <= age < 3, age)
    sh(f"date -s @{int(now + 30)}")
    time.sleep(3)
    check("polling continues", int(get("ev.polls") or 0) > polls and sh("systemctl show -p NRestarts --value vehicled")[1] is not None)


def disk():
    """A full disk and a read-only one are reported; polling continues."""
    sh("systemctl stop vehicled; mount -t tmpfs -o size=128k,mode=700,uid=vehicled,gid=vehicled none /var/lib/vehicled; chown vehicled: /var/lib/vehicled; systemctl start vehicled")
    check("on a small disk", wait(lambda: get("ev.rpm")) and sh("vehiclectl set phone.steps 10")[0] == 0)
    sh("dd if=/dev/zero of=/var/lib/vehicled/ballast bs=1k count=1000")
    code, _, errors = sh("vehiclectl set phone.steps 11")
    check("a full disk is reported when a value cannot be stored", code == 1 and "space" in errors, errors)
    check("and by the doctor", "is full" in sh("vehiclectl doctor")[1], sh("vehiclectl doctor | grep disk")[1])
    check("polling goes on", (reading("ev.rpm").get("age") or 99) < 2)
    sh("rm /var/lib/vehicled/ballast")
    check("with free space it is stored again", sh("vehiclectl set phone.steps 12")[0] == 0)
    sh("systemctl kill -s KILL vehicled")
    check("acknowledged values survive SIGKILL", wait(lambda: get("phone.steps") == "12"), get("phone.steps"))
    inside = f"nsenter -t {pid()} -m mount -o remount,ro /var/lib/vehicled"
    code, _, errors = sh(inside)
    code, _, errors = sh("vehiclectl set phone.steps 13")
    check("a read-only disk is reported", code == 1 and "ead-only" in errors, errors)
    check("and by the doctor", "read-only" in sh("vehiclectl doctor")[1])
    check("polling goes on", (reading("ev.rpm").get("age") or 99) < 2)
    sh("systemctl stop vehicled; umount /var/lib/vehicled; systemctl start vehicled")
    check("with its disk back", wait(lambda: get("ev.rpm")))


def metrics():
    file = "/var/lib/prometheus/node-exporter/vehicled.prom"
    os.makedirs(os.path.dirname(file), exist_ok=True)
    sh(f"chown daemon: {os.path.dirname(file)}")
    code, _, errors = sh("systemctl enable --now vehicled-metrics.timer")
    check("the timer writes the metrics", code == 0 and wait(lambda: os.path.exists(file), 40) and "vehicle_rpm" in open(file).read(), errors)
    written = os.stat(file).st_mtime if os.path.exists(file) else 0
    check("again and again", wait(lambda: os.path.exists(file) and os.stat(file).st_mtime > written, 40))
    sh("systemctl stop vehicled.service")
    check("and removes them when the daemon is stopped", wait(lambda: not os.path.exists(file), 60) and sh("systemctl is-failed vehicled-metrics.service")[0] != 0)
    time.sleep(20)
    check("which stays stopped", pid() == 0 and not os.path.exists(file), sh("systemctl is-active vehicled.service vehicled.socket")[1])
    sh("systemctl stop vehicled.socket")
    time.sleep(20)
    check("also without its socket", pid() == 0 and sh("systemctl is-failed vehicled-metrics.service")[0] != 0)
    sh("systemctl disable --now vehicled-metrics.timer; systemctl start vehicled.socket vehicled.service")


def serial():
    """A USB serial adapter: missing at the start with its driver, plugged in, unplugged, and plugged in again."""
    sh("modprobe -a xhci_pci ftdi_sio; udevadm settle", 120)
    if not wait(lambda: os.path.exists(ADAPTER), 30):
        return check("a USB serial port exists", False, sh("ls -l /dev/serial/by-id /dev/ttyUSB*")[1])
    place = os.path.basename(os.path.realpath("/sys/class/tty/ttyUSB0/device/../.."))
    sh(f"echo {place} >/sys/bus/usb/drivers/usb/unbind; udevadm settle")
    configure(f'[device.ev]\nkind = "obd"\nlink = "serial:{ADAPTER}"\n[device.phone]\nkind = "health"\n')
    code, _, errors = sh("modprobe -r ftdi_sio usbserial && ! grep -q ttyUSB /proc/devices")
    check("no driver for USB serial ports is loaded", code == 0, errors)
    sh("systemctl restart vehicled")
    check("an adapter that is missing at the start is reported", wait(lambda: "does not exist" in sh("vehiclectl status ev")[1]), sh("vehiclectl doctor | grep by-id")[1].split("\n")[0])
    sh(f"echo {place} >/sys/bus/usb/drivers/usb/bind; udevadm settle")
    check("plugged in, it is polled", wait(lambda: get("ev.rpm"), 90), sh("vehiclectl status ev | head -2")[1])
    check("the configured port belongs to group vehicled", sh("stat -L -c %G:%a /dev/ttyUSB0")[1] == "vehicled:660", sh("stat -L -c %G:%a /dev/ttyUSB0")[1])
    check("ModemManager ignores the port", "ID_MM_PORT_IGNORE=1" in sh("udevadm info /dev/ttyUSB0")[1])
    check("the doctor reports the port as ok", f"ok       {ADAPTER}: accessible" in sh("vehiclectl doctor")[1])
    sh(f"echo {place} >/sys/bus/usb/drivers/usb/unbind; udevadm settle")
    check("status shows the last records of a device from the journal",
          wait(lambda: any(f" {level} " in sh("vehiclectl status ev | tail -5")[1] for level in ("info", "notice", "warning"))), sh("vehiclectl status ev | tail -3")[1])
    check("unplugged, it is reported", wait(lambda: get("ev.rpm") is None), sh("vehiclectl status ev | sed -n 2p")[1])
    sh(f"echo {place} >/sys/bus/usb/drivers/usb/bind; udevadm settle")
    check("plugged in again, it is polled again", wait(lambda: get("ev.rpm"), 90))
    # A device that the unit does not list.
    sh("mknod -m 666 /dev/vm-port c 10 229")
    configure('[device.ev]\nkind = "obd"\nlink = "serial:/dev/vm-port"\n[device.phone]\nkind = "health"\n')
    sh("systemctl reload vehicled")
    check("a device that the sandbox denies is reported with the remedy", wait(lambda: "DeviceAllow=char-10 rw" in sh("vehiclectl status ev")[1]) and "DeviceAllow=char-10 rw" in sh("vehiclectl doctor")[1], sh("vehiclectl doctor | grep vm-port")[1])
    # A port that is not configured keeps its owner.
    configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n[device.phone]\nkind = "health"\n')
    sh("systemctl reload vehicled; udevadm trigger --action=change --settle /dev/ttyUSB0")
    check("a port that is not configured is left alone", sh("udevadm info /dev/ttyUSB0")[1].find("ID_MM_PORT_IGNORE") < 0)


def kills():
    """A hundred kills; acknowledged values survive each."""
    check("polled before the kills", wait(lambda: get("ev.rpm")))
    lost, begin = [], time.monotonic()
    for number in range(100):
        steps = str(5000 + number)
        if not wait(lambda: sh(f"vehiclectl --timeout 30 set phone.steps {steps}")[0] == 0, 60):
            lost.append(f"{steps} rejected")
        os.kill(pid(), 9)
        if not wait(lambda: get("phone.steps") == steps, 60):
            lost.append(f"{steps} became {get('phone.steps')}")
    check("a hundred kills lose no acknowledged value", not lost, f"{lost[:3]} in {time.monotonic() - begin:.0f} s")
    check("polled after the kills", wait(lambda: get("ev.rpm")))
    left = sh("pgrep -c -x vehicled")[1]
    check("no process is left", wait(lambda: sh("pgrep -c -x vehicled")[1] in ("1", "2")), left)


def flood():
    """Many more connections than the limit, half-open and silent ones; the link is not affected."""
    polls, began = int(get("ev.polls") or 0), time.monotonic()
    script = """
import resource, socket, time
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
held = []
for number in range(10000):
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    try:
        client.connect("/run/vehicled/io.vehicled")
        client.send(b'{"method":"io.vehicled.Watch","more":true}' + (b"" if number % 3 else bytes(1)))
    except OSError:
        pass
    held.append(client)
time.sleep(5)
"""
    done = subprocess.run(["python3", "-c", script], capture_output=True, text=True, timeout=300)
    rate = (int(get("ev.polls") or 0) - polls) / (time.monotonic() - began)
    memory = int(sh(f"grep VmRSS /proc/{pid()}/status")[1].split()[1])
    check("ten thousand connections do not disturb the link", done.returncode == 0 and rate > 5 and memory < 80000, f"{rate:.1f} polls a second, {memory} kB {done.stderr}")
    check("and the next call is answered", wait(lambda: sh("vehiclectl status")[0] == 0, 30))
