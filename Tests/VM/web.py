#!/usr/bin/env python3
"""vehicled-web under its unit, and the page as a plugin of Cockpit with real logins. The browser runs on the host (browser.py); its checks
arrive on a port that is forwarded into the guest."""
import json, os, socket, struct, subprocess, urllib.error, urllib.request

import package, service
from steps import check, leave, must, part, sh, wait

ADDRESS = "127.0.0.1:8270"
ORIGIN = f"http://{ADDRESS}"
TOKEN_FILE = "/etc/vehicled/kiosk.token"
# Where browser.py sends its checks.
CHECKS = ("10.0.2.15", 9100)
# The users that log in to Cockpit: name, password, group.
USERS = (("ada", "guest-of-9090", "vehicled"), ("heidi", "watcher-of-9090", "vehicled-observe"), ("grace", "visitor-of-9090", "users"))


class Browser:
    """A client of vehicled-web with a session, as a page has it."""

    def __init__(self):
        self.headers = {"Origin": ORIGIN}

    def request(self, method, path, body=None, headers={}):
        """The status, the headers and the body of the reply."""
        request = urllib.request.Request(ORIGIN + path, body and json.dumps(body).encode(), {**self.headers, **headers}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()
        except OSError as error:
            return 0, {}, str(error)

    def sign_in(self, token):
        status, headers, body = self.request("POST", "/session", {"token": token})
        if status == 200:
            self.headers |= {"Cookie": headers["Set-Cookie"].split(";")[0], "Vehicled-Key": json.loads(body)["key"]}
        return status, headers

    def session(self):
        status, _, body = self.request("GET", "/session")
        return json.loads(body) if status == 200 else None

    def call(self, method, **parameters):
        """The reply to a call of the daemon on a WebSocket of its own; the reason if the server closes it."""
        with socket.create_connection(("127.0.0.1", 8270), timeout=30) as connection:
            lines = {"Host": ADDRESS, "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                     "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **self.headers}
            connection.sendall(("GET /varlink/io.vehicled HTTP/1.1\r\n" + "".join(f"{name}: {text}\r\n" for name, text in lines.items()) + "\r\n").encode())
            stream = connection.makefile("rb")
            status = int(stream.readline().split()[1])
            while stream.readline().strip():
                pass
            if status != 101:
                return {"status": status}
            data = json.dumps({"method": f"io.vehicled.{method}", "parameters": parameters}).encode()
            # Masked with zeros: a client must mask, and the server does not mind the key.
            connection.sendall(bytes([0x81, 0x80 | 126]) + struct.pack(">H", len(data)) + bytes(4) + data)
            message = b""
            while True:
                first, length = stream.read(2)
                if length >= 126:
                    length = int.from_bytes(stream.read(2 if length == 126 else 8), "big")
                payload = stream.read(length)
                if first & 15 == 8:
                    return {"closed": payload[2:].decode()}
                message += payload
                if first & 0x80:
                    return json.loads(message)


def pid():
    return int(sh("systemctl show -p MainPID --value vehicled-web")[1] or 0)


def log(lines=3):
    return sh(f"journalctl -u vehicled-web -o cat --no-pager -n {lines}")[1].replace("\n", " | ")


def configure(more=""):
    with open("/etc/vehicled/web.toml", "w") as file:
        file.write(f'[token.kiosk]\nfile = "{TOKEN_FILE}"\nkiosk = true\n{more}')


def answers():
    return Browser().request("GET", "/")[0] == 200


def unit():
    check("the web server is not enabled by the package", package.unit("vehicled-web.service") == ("inactive", "disabled"), package.unit("vehicled-web.service"))
    sh("systemctl start vehicled-web")
    check("without a token it does not start, and says what to add", "add [token.NAME]" in log(20) and not pid(), log(2))
    check("and systemd does not try again", sh("systemctl show -p NRestarts --value vehicled-web")[1] == "0")
    # The commands of docs/web.md.
    configure()
    sh(f"openssl rand -hex 16 >{TOKEN_FILE}; chmod 644 {TOKEN_FILE}; systemctl reset-failed vehicled-web; systemctl start vehicled-web")
    check("a token that others can read is rejected, with the remedy", wait(lambda: f"chmod 600 {TOKEN_FILE}" in log(20), 30), log(4))
    check("and is not tried again either", sh("systemctl show -p NRestarts --value vehicled-web")[1] == "0")
    sh(f"systemctl stop vehicled-web; rm {TOKEN_FILE}; install -m 600 -o vehicled-web /dev/null {TOKEN_FILE}; openssl rand -hex 16 | tee {TOKEN_FILE}")
    code, out, errors = sh("vehicled-web --check-config && systemctl enable --now vehicled-web")
    must("with a token of mode 0600 it serves the page", code == 0 and wait(answers), errors or log())
    check("it is active and enabled", package.unit("vehicled-web.service") == ("active", "enabled"), package.unit("vehicled-web.service"))


def sandbox():
    check("it runs as a user of its own", sh(f"ps -o user:20= -p {pid()}")[1] == "vehicled-web", sh(f"ps -o user:20= -p {pid()}")[1])
    exposure = sh("systemd-analyze security vehicled-web.service --no-pager | tail -1")[1]
    check("its exposure is low", "SAFE" in exposure or "OK" in exposure, exposure)
    status = dict(line.split(":\t", 1) for line in open(f"/proc/{pid()}/status") if ":\t" in line)
    limits = {name: status[name].strip() for name in ("CapEff", "NoNewPrivs", "Seccomp")}
    check("without capabilities, with a filter of system calls", limits == {"CapEff": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}, limits)
    listening = [line.split()[3] for line in sh("ss -Hltn")[1].splitlines() if "8270" in line]
    check("it listens on loopback only", listening == [ADDRESS], listening)


def sessions():
    token = open(TOKEN_FILE).read().strip()
    browser = Browser()
    check("without a session nothing is shown", browser.session() is None and browser.call("Status") == {"status": 401}, browser.call("Status"))
    check("another Host is rejected", browser.request("GET", "/", headers={"Host": "car.example"})[0] == 421)
    check("a wrong token is rejected", browser.sign_in("0" * 32)[0] == 401)
    status, headers = browser.sign_in(token)
    must("a browser signs in with the token", status == 200 and "HttpOnly; SameSite=Strict" in headers["Set-Cookie"], status)
    check("its page is a kiosk's, and only observes", browser.session()["kiosk"] and browser.session()["control"] == [], browser.session())
    reply = browser.call("Get", references=["ev.rpm"])
    check("a value arrives on a WebSocket", "value" in (reply.get("parameters") or {}).get("readings", [{}])[0], reply)
    steps = {"device": "phone", "property": "steps", "value": {"int": 77}}
    reply = browser.call("Set", **steps)
    check("it may not set anything", "may not control phone" in (reply.get("parameters") or {}).get("missing", ""), reply)
    check("the sessions are stored for the service only", sh("stat -c '%a %U' /run/vehicled-web/sessions")[1] == "600 vehicled-web", sh("stat -c '%a %U' /run/vehicled-web/sessions")[1])

    configure('control = ["phone"]\n')
    sh("systemctl restart vehicled-web")
    check("a restart signs out no browser, but withholds control", wait(answers) and (browser.session() or {}).get("withheld") == ["phone"], browser.session())
    browser.sign_in(token)
    reply = browser.call("Set", **steps)
    check("the daemon decides as well", reply.get("error", "").endswith("PermissionDenied"), reply)
    service.configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n[device.phone]\nkind = "health"\ncontrol-users = ["vehicled-web"]\n')
    sh("systemctl reload vehicled")
    check("with control-users, it sets a value", wait(lambda: "error" not in browser.call("Set", **steps), 20) and service.get("phone.steps") == "77", browser.call("Set", **steps))


def restarts():
    before = pid()
    sh("systemctl kill -s KILL vehicled-web")
    check("killed, it is restarted", wait(lambda: pid() not in (0, before) and answers()), log())
    before = pid()
    sh("systemctl kill -s STOP vehicled-web")
    check("frozen, it is restarted by the watchdog", wait(lambda: pid() not in (0, before) and answers(), 150), log())
    sh("systemctl stop vehicled.service")
    check("it stops with the daemon", wait(lambda: not pid(), 30), log())
    sh("systemctl start vehicled.service")
    check("and starts with it", wait(answers), log())


def cockpit():
    """Logins and the plugin in a browser on the host."""
    for name, password, group in USERS:
        sh(f"useradd -m -s /bin/bash -G {group} {name}")
        subprocess.run(["chpasswd"], input=f"{name}:{password}\n", text=True, check=True)
    sh("systemctl enable --now vehicled-history.socket vehicled-history.service")
    device = sorted(name for name in os.listdir("/sys/class/net") if name != "lo")[0]
    sh(f"ip link set {device} up; ip address add {CHECKS[0]}/24 dev {device}; ip route add default via 10.0.2.2")
    code, _, errors = sh("systemctl start cockpit.socket")
    must("Cockpit listens", code == 0, errors)
    packages = sh("runuser -u ada -- cockpit-bridge --packages")[1]
    check("the plugin is one of its packages", "/usr/share/cockpit/vehicled" in packages, "" if "vehicled" in packages else packages)
    with socket.create_server(CHECKS) as server:
        server.settimeout(1200)
        print("vm: browse", flush=True)
        connection, _ = server.accept()
        with connection, connection.makefile() as lines:
            for line in lines:
                check(*json.loads(line))
    check("what was set in Cockpit is the value", service.get("phone.steps") == "4321", service.get("phone.steps"))


def run():
    service.configure('[device.ev]\nkind = "obd"\nlink = "tcp:127.0.0.1:35000"\n[device.phone]\nkind = "health"\n')
    sh("systemctl start vm-sim; systemctl restart vehicled")
    must("a car is polled", wait(lambda: service.get("ev.rpm")), service.get("ev.request"))
    for step in (unit, sandbox, sessions, restarts, cockpit):
        part(step)


if __name__ == "__main__":
    check("dpkg installs the packages", package.install(package.FILES)[0] == 0)
    part(run)
    leave()
