"""Wi-Fi set-up of the toy while the computer's own Wi-Fi is in use: simulated radios, access points in network namespaces, a real
NetworkManager, and the daemon under its unit. Prints one line per check."""
import os, pty, re, select, signal, subprocess, time
from pathlib import Path

from steps import check, sh, wait

PASSWORD = "correct horse"


def put_away(lan, space):
    """Moves a radio to a network namespace; returns the command that moves it back."""
    radio = Path(f"/sys/class/net/{lan}/phy80211/name").read_text().strip()
    check(f"{lan} is moved away", sh(f"ip netns add {space} && iw phy {radio} set netns name {space}")[0] == 0)
    return f"ip netns exec {space} iw phy {radio} set netns 1"


class AccessPoint:
    """An access point with a DHCP server."""

    def __init__(self, number, name, channel, net, security=""):
        self.name, self.net, self.lan, self.space = name, net, f"wlan{number}", name.lower()
        Path(f"/run/{self.space}.conf").write_text(f"interface={self.lan}\nssid={name}\nhw_mode=g\nchannel={channel}\n{security}")
        put_away(self.lan, self.space)
        sh(f"ip -n {self.space} link set lo up; ip -n {self.space} address add {net}.1/24 dev {self.lan}")
        self.programs = []

    def run(self, log, command):
        with open(f"/run/{log}.log", "w") as file:
            return subprocess.Popen(f"exec ip netns exec {self.space} {command}", shell=True, stdout=file, stderr=subprocess.STDOUT)

    def on(self, addresses=True):
        self.programs = [self.run(f"{self.space}-air", f"hostapd /run/{self.space}.conf")]
        Path(f"/run/{self.space}.leases").unlink(missing_ok=True)  # as on the toy: the next client gets the first address
        if addresses:
            lease = f"--dhcp-range={self.net}.2,{self.net}.2 --dhcp-authoritative --no-ping --dhcp-leasefile=/run/{self.space}.leases"
            self.programs.append(self.run(
                f"{self.space}-lease", f"dnsmasq -k -C /dev/null -p 0 -u root -i {self.lan} --bind-dynamic --log-facility=- {lease}"))
        check(f"{self.name} is on the air", wait(lambda: "AP-ENABLED" in Path(f"/run/{self.space}-air.log").read_text(), 20))

    def off(self):
        for program in self.programs:
            program.terminate()
            program.wait(20)
        self.programs = []


def active():
    """The active connections of NetworkManager on its radios."""
    return sorted(line for line in sh("nmcli -t -f NAME,DEVICE,STATE connection show --active")[1].splitlines() if ":wlan" in line)


HOME = ["Home:wlan0:activated"]
JOINED = ["vehiclectl Trivio:wlan0:activated"]
WAITING = "waiting for the network \"Trivio\": press the toy's Wi-Fi button until its light is white"


def is_open():
    return sh("ss -ltnH 'sport = :8080'")[1] != ""


def all_back(what):
    check(f"{what}: back in Home", wait(lambda: active() == HOME, 5), active())
    names = sh("nmcli -t -f NAME connection show")[1].splitlines()
    check(f"{what}: no profile is left", not any("Trivio" in name for name in names), names)
    check(f"{what}: port 8080 is closed", wait(lambda: not is_open(), 5) and sh("vehiclectl get toy.wifi-setup")[1] in ("idle", "sent"))


class Toy:
    """The simulated toy in its own network."""

    def __init__(self, trivio):
        words = f"--phone tcp:{trivio.net}.2:8080 --network Home --network-password '{PASSWORD}' --joins-after 1 -v"
        self.program = trivio.run("toy", f"vehiclesim toy {words}")

    def said(self, words):
        return words in Path("/run/toy.log").read_text()

    def is_told(self):
        return self.said(f'user "1", network "Home", password "{PASSWORD}"')

    def end(self):
        self.program.terminate()
        self.program.wait(10)


class Run:
    """A run of `vehiclectl toy wifi Home --join` without a terminal."""

    def __init__(self, *more, command=("vehiclectl", "toy", "wifi", "Home", "--join")):
        self.begun = time.monotonic()
        self.log = open("/run/join.log", "w+")
        self.program = subprocess.Popen([*command, *more], stdin=subprocess.PIPE, stdout=self.log, stderr=self.log, text=True)
        self.program.stdin.write(PASSWORD + "\n")
        self.program.stdin.close()

    def said(self):
        return Path("/run/join.log").read_text().strip()

    def end(self, number=None, seconds=90):
        """The exit code, after a signal if one is given."""
        self.begun = time.monotonic()
        if number is not None:
            self.program.send_signal(number)
        try:
            return self.program.wait(seconds)
        except subprocess.TimeoutExpired:
            self.program.kill()
            return "still running"
        finally:
            self.took = f"{time.monotonic() - self.begun:.1f} s"

    def tail(self):
        return f"{self.took}: " + " | ".join(self.said().splitlines()[-4:])


def person(trivio, toy):
    """A user at a terminal, who selects Home from the list; the toy's network ends once the toy has its settings."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("vehiclectl", ["vehiclectl", "toy", "wifi", "--join"])
    shown, status = "", None

    def until(words, seconds=90):
        nonlocal shown
        end = time.monotonic() + seconds
        while words not in shown and time.monotonic() < end:
            if not select.select([terminal], [], [], 0.2)[0]:
                if trivio.programs and toy.is_told():
                    trivio.off()
                continue
            try:
                shown += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                break
        return words in shown

    check("the terminal lists the networks in range", until("number or name (Enter: rescan): ", 20))
    row = re.search(r"(\d+)  Home +(\d+) %  password", shown)
    check("Home is listed, and the toy itself is not", bool(row) and "1 that may be the toy itself" in shown, row and row[0])
    if row:
        os.write(terminal, f"{row[1]}\n".encode())
        check("it prompts for the password", until("password for Home: ", 10))
        os.write(terminal, f"{PASSWORD}\n".encode())
        until("\0")
    else:
        os.kill(pid, signal.SIGINT)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    lines = [line.strip() for line in re.split(r"[\r\n]|\x1b\[[0-9;]*[A-Za-z]", shown) if line.strip()]
    check("a run at a terminal succeeds", os.waitstatus_to_exitcode(status) == 0 and "sent; check the toy's LED" in shown, lines[-6:])
    check("the terminal never shows the password", PASSWORD not in shown)
    return lines


def prepare():
    check("simulated radios", sh("modprobe mac80211_hwsim radios=4")[0] == 0 and wait(lambda: os.path.exists("/sys/class/net/wlan3"), 10))
    home = AccessPoint(1, "Home", 6, "192.168.7",
                       f"wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase={PASSWORD}\n"
                       "wpa_disable_eapol_key_retries=1\nwpa_group_rekey=0\n")  # a slow guest answers late, and retransmissions confuse it
    trivio = AccessPoint(2, "Trivio", 3, "192.168.4")
    home.on()
    second = put_away("wlan3", "drawer")
    check("systemctl start NetworkManager", sh("systemctl start wpa_supplicant NetworkManager")[0] == 0, sh("nmcli --version")[1])
    sh(f"nmcli connection add type wifi con-name Home ssid Home wifi-sec.key-mgmt wpa-psk wifi-sec.psk '{PASSWORD}'")
    for _ in range(5):
        if wait(lambda: active() == HOME, 20):
            break
        sh("nmcli --wait 0 connection up Home")  # it gives up on a network that once answered too late
    check("NetworkManager is in Home", active() == HOME, active())
    server = subprocess.Popen(["vehiclesim", "trivia", "--on", "tcp:127.0.0.1:8088"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Path("/etc/vehicled/vehicled.toml").write_text(
        '[device.toy]\nkind = "toy"\nserver = "http://127.0.0.1:8088"\ninsecure-http = true\n')
    sh("systemctl restart vehicled.socket vehicled.service")
    made = sh("echo hunter22 | vehiclectl toy register Ada ada@example.org")
    check("an account at the toy's server", made[0] == 0, made[1] or made[2])
    return home, trivio, server, second


def borrow():
    home, trivio, server, second = prepare()

    # Before the toy's button is pressed.
    sh("useradd owner; usermod -aG vehicled owner")
    run = Run(command=("runuser", "-u", "owner", "--", "vehiclectl", "toy", "wifi", "Home", "--join"))
    check("missing permission to change networks is reported", run.end() == 7 and "NetworkManager denies permission" in run.said(), run.tail())
    all_back("not allowed")
    run = Run()
    check("it waits for the toy's network while in Home", wait(lambda: WAITING in run.said(), 20) and active() == HOME, active())
    check("SIGINT ends it, and nothing has changed", run.end(signal.SIGINT) == 1 and run.said().endswith(f"{WAITING}\nvehiclectl: interrupted"), run.tail())
    all_back("SIGINT while waiting")

    # After the button is pressed. The toy's network stays, so that vehiclectl must restore Home.
    run = Run()
    check("it waits for the toy's network again", wait(lambda: WAITING in run.said(), 20))
    trivio.on()
    check("it joins the network when it appears", wait(lambda: active() == JOINED), active())
    check("8080 is open under the unit", is_open(), sh("ss -ltnH 'sport = :8080'")[1])
    toy = Toy(trivio)
    check("a run without a terminal succeeds", run.end() == 0 and toy.is_told(), run.tail())
    check("the toy is in its network", wait(lambda: toy.said("joined the network"), 20))
    all_back("without a terminal")
    toy.end()

    # The toy's network ends once the toy has its settings, as on the real toy.
    toy = Toy(trivio)
    person(trivio, toy)
    check("the toy has its settings, and is in the network", toy.is_told() and wait(lambda: toy.said("joined the network"), 20))
    all_back("at a terminal")
    toy.end()

    # The toy does not connect.
    trivio.on()
    for number in (signal.SIGINT, signal.SIGTERM):
        run = Run()
        check(f"Trivio is joined before {number.name}", wait(lambda: active() == JOINED) and is_open(), active())
        check(f"{number.name} ends it", run.end(number) == 1 and "reconnected to \"Home\"" in run.said(), run.tail())
        all_back(number.name)
    run = Run()
    check("Trivio is joined before SIGKILL", wait(lambda: active() == JOINED), active())
    run.end(signal.SIGKILL)
    check("after SIGKILL NetworkManager leaves by itself", wait(lambda: active() == HOME), active())
    all_back("SIGKILL")
    run = Run()
    check("Trivio is joined before the daemon ends", wait(lambda: active() == JOINED), active())
    sh("systemctl kill -s KILL vehicled")
    check("the end of the daemon ends it", run.end() not in (0, "still running") and "reconnected to \"Home\"" in run.said(), run.tail())
    check("the unit is active again", wait(lambda: sh("vehiclectl get toy.wifi-setup")[1] == "idle"))
    all_back("a dead daemon")

    # The toy's network assigns no address.
    trivio.off()
    trivio.on(addresses=False)
    run = Run()
    check("Trivio is being joined", wait(lambda: "Trivio" in "".join(active())), active())
    check("SIGINT ends that", run.end(signal.SIGINT) == 1 and "reconnected to \"Home\"" in run.said(), run.tail())
    all_back("SIGINT while joining")
    run = Run()
    check("a missing address is reported", run.end() == 1 and "no IP address" in run.said(), run.tail())
    all_back("no address")
    trivio.off()

    # With a second, unused radio Home stays connected, and with it the default route.
    trivio.on()
    sh(second)
    check("a second radio is plugged in", wait(lambda: "wlan3:disconnected" in sh("nmcli -t -f DEVICE,STATE device")[1]))
    run = Run()
    check("it is used", wait(lambda: active() == HOME + ["vehiclectl Trivio:wlan3:activated"]), active())
    route = sh("ip route get 9.9.9.9")[1]
    check("the default route stays", "via 192.168.7.1" in route, route)
    toy = Toy(trivio)
    check("its run succeeds", run.end() == 0 and toy.is_told() and "disconnected from \"Trivio\"" in run.said(), run.tail())
    all_back("a second radio")
    toy.end()

    for it in (home, trivio):
        it.off()
    server.terminate()
    sh("systemctl stop NetworkManager wpa_supplicant")


if __name__ == "__main__":
    borrow()
