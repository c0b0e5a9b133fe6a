"""The Debian package under dpkg and systemd: installed, upgraded, removed, purged, and installed again."""
import os, subprocess, time

from steps import check, sh, wait

DEB = "/opt/vm/vehicled.deb"


def unit(name):
    return sh(f"systemctl is-active {name}")[1], sh(f"systemctl is-enabled {name}")[1]


def newer(version):
    """Builds the same package with a higher version."""
    sh(f"rm -rf /tmp/next && dpkg-deb -R {DEB} /tmp/next && sed -i 's/^Version: .*/Version: {version}/' /tmp/next/DEBIAN/control", 300)
    # With a changed configuration file, which dpkg must not overwrite.
    sh("echo '# A new comment.' >>/tmp/next/etc/vehicled/vehicled.toml && dpkg-deb -Znone -b /tmp/next /tmp/next.deb", 300)
    return "/tmp/next.deb"


def install(deb):
    return sh(f"DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold -i {deb}", 300)


def run():
    code, _, errors = install(DEB)
    check("dpkg installs the package", code == 0, errors)
    check("the groups exist, and every user can connect", sh("getent group vehicled vehicled-observe")[0] == 0 and sh("stat -c %a /run/vehicled/io.vehicled")[1] == "666", sh("stat -c %a /run/vehicled/io.vehicled")[1])
    check("service and socket are active and enabled", unit("vehicled.service") == ("active", "enabled") and unit("vehicled.socket") == ("active", "enabled"))
    check("the metrics timer is disabled", unit("vehicled-metrics.timer") == ("inactive", "disabled"), unit("vehicled-metrics.timer"))
    check("the user vehicled exists with its groups", {"dialout", "vehicled"} <= set(sh("id -nG vehicled")[1].split()), sh("id vehicled")[1])
    code, out, errors = sh("vehiclectl status")
    check("vehiclectl status answers", code == 0, out or errors)
    code, out, _ = sh("vehiclectl doctor")
    check("the doctor reports the unit", "vehicled.service is running" in out and "socket: you can connect to /run/vehicled/io.vehicled" in out, out.replace("\n", " | "))
    check("it is in the Varlink registry", os.path.realpath("/run/varlink/registry/io.vehicled") == "/run/vehicled/io.vehicled")

    # A changed configuration and stored state survive an upgrade.
    with open("/etc/vehicled/vehicled.toml", "w") as file:
        file.write('[device.phone]\nkind = "health"\n')
    check("reload", sh("systemctl reload vehicled")[0] == 0 and wait(lambda: sh("vehiclectl set phone.steps 4321")[0] == 0))
    socket = os.stat("/run/vehicled/io.vehicled").st_ino
    pid = sh("systemctl show -p MainPID --value vehicled")[1]
    caller = subprocess.Popen("for n in $(seq 60); do vehiclectl --timeout 60 get phone.steps || exit 1; sleep 0.2; done", shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    code, out, errors = install(newer("9.0"))
    check("an upgrade", code == 0 and "9.0" in sh("dpkg-query -W -f '${Version}' vehicled")[1], errors)
    check("it was restarted", wait(lambda: sh("systemctl show -p MainPID --value vehicled")[1] not in (pid, "0")), sh("systemctl is-active vehicled")[1])
    check("the socket stayed", os.stat("/run/vehicled/io.vehicled").st_ino == socket)
    check("no call failed", caller.wait(120) == 0, caller.stderr.read())
    check("the configuration stayed, and the new one is beside it", "phone" in open("/etc/vehicled/vehicled.toml").read() and os.path.exists("/etc/vehicled/vehicled.toml.dpkg-dist"))
    check("stored state stayed", sh("vehiclectl get phone.steps")[1] == "4321")

    code, _, errors = sh("dpkg -r vehicled", 120)
    check("dpkg removes it", code == 0 and not os.path.exists("/usr/bin/vehicled") and not os.path.exists("/run/vehicled/io.vehicled"), errors)
    check("its process is gone", sh("pgrep -x vehicled")[0] == 1)
    check("configuration and state stay", os.path.exists("/etc/vehicled/vehicled.toml") and sh("ls /var/lib/vehicled/devices/phone")[0] == 0)
    code, _, errors = sh("dpkg -P vehicled", 120)
    left = [path for path in ("/etc/vehicled/vehicled.toml", "/var/lib/vehicled", "/etc/systemd/system/multi-user.target.wants/vehicled.service") if os.path.lexists(path)]
    check("dpkg purges it", code == 0 and not left, f"{left} {errors}")
    sh("rm -rf /etc/vehicled; rm -f /tmp/next.deb; rm -rf /tmp/next")
    code, _, errors = install(DEB)
    check("and installs it again", code == 0 and wait(lambda: unit("vehicled.service")[0] == "active"), errors)
