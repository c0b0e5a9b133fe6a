"""The Debian packages under dpkg and systemd: installed, upgraded, removed, purged, and installed again, also over the single package
that vehicled was before 0.2.0."""
import glob, os, shutil, subprocess

from steps import check, must, sh, wait

FILES = sorted(glob.glob("/opt/vm/packages/*.deb"))
NEXT = "/tmp/next"
SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


def unit(name):
    return sh(f"systemctl is-active {name}")[1], sh(f"systemctl is-enabled {name}")[1]


def names():
    return " ".join(os.path.basename(file).split("_")[0] for file in FILES)


def main_pid(service):
    return sh(f"systemctl show -p MainPID --value {service}")[1]


def unpacked():
    """The directories of the packages, unpacked with their control files."""
    shutil.rmtree(NEXT, ignore_errors=True)
    os.makedirs(NEXT)
    for file in FILES:
        sh(f"dpkg-deb -R {file} {NEXT}/{os.path.basename(file).split('_')[0]}", 300)
    return sorted(glob.glob(f"{NEXT}/*"))


def packed(folder):
    code, _, errors = sh(f"dpkg-deb -Znone -b {folder} {folder}.deb", 300)
    must(f"dpkg builds {folder}.deb", code == 0, errors)
    return f"{folder}.deb"


def newer(version):
    """The same packages with a higher version."""
    folders = unpacked()
    for folder in folders:
        sh(f"sed -i 's/^Version: .*/Version: {version}/; /^Depends:/s/vehicled (= [^)]*)/vehicled (= {version})/' {folder}/DEBIAN/control")
    # With a changed configuration file, which dpkg must not overwrite.
    sh(f"echo '# A new comment.' >>{NEXT}/vehicled/etc/vehicled/vehicled.toml")
    return [packed(folder) for folder in folders]


def single():
    """One package of version 0.1.0 with the files and the scripts of all of them, as it was before 0.2.0."""
    folders = unpacked()
    whole = f"{NEXT}/whole"
    os.makedirs(f"{whole}/DEBIAN")
    for folder in folders:
        for name in (*SCRIPTS, "conffiles"):
            if os.path.exists(f"{folder}/DEBIAN/{name}"):
                content = open(f"{folder}/DEBIAN/{name}").read()
                with open(f"{whole}/DEBIAN/{name}", "a") as file:
                    if name != "conffiles" and not file.tell():
                        file.write("#!/bin/sh\nset -e\n")
                    # In subshells, so that none ends the others.
                    file.write(content if name == "conffiles" else f"(\n{content}\n)\n")
        shutil.copytree(folder, whole, symlinks=True, dirs_exist_ok=True, ignore=lambda place, _: ["DEBIAN"] if place == folder else [])
    # Its control socket was open to group vehicled only.
    sh(f"sed -i s/^SocketMode=.*/SocketMode=0660/ $(find {whole} -name vehicled.socket)")
    sh(f"cd {whole}/DEBIAN && chmod 755 {' '.join(SCRIPTS)}; sed '/^Version:/s/ .*/ 0.1.0/; /^Recommends:/d; /^Suggests:/d' {NEXT}/vehicled/DEBIAN/control >control")
    return packed(whole)


def install(files):
    """Installs them at once. As apt does, it allows dpkg to deconfigure the single package, which the new ones break."""
    return sh(f"DEBIAN_FRONTEND=noninteractive dpkg --auto-deconfigure --force-confdef --force-confold -i {' '.join(files)}", 300)


def run():
    code, _, errors = install(FILES)
    check("dpkg installs the packages", code == 0, errors)
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
    pid = main_pid("vehicled")
    caller = subprocess.Popen("for n in $(seq 60); do vehiclectl --timeout 60 get phone.steps || exit 1; sleep 0.2; done", shell=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    code, out, errors = install(newer("9.0"))
    check("an upgrade", code == 0 and "9.0" in sh("dpkg-query -W -f '${Version}' vehicled")[1], errors)
    check("it was restarted", wait(lambda: main_pid("vehicled") not in (pid, "0")), sh("systemctl is-active vehicled")[1])
    check("the socket stayed", os.stat("/run/vehicled/io.vehicled").st_ino == socket)
    check("no call failed", caller.wait(120) == 0, caller.stderr.read())
    check("the configuration stayed, and the new one is beside it", "phone" in open("/etc/vehicled/vehicled.toml").read() and os.path.exists("/etc/vehicled/vehicled.toml.dpkg-dist"))
    check("stored state stayed", sh("vehiclectl get phone.steps")[1] == "4321")

    sh("mkdir -p /var/lib/prometheus/node-exporter")
    must("more units run", sh("systemctl enable --now vehicled-metrics.timer vehicled-alert@low-battery.path")[0] == 0)
    written = wait(lambda: os.path.exists("/var/lib/prometheus/node-exporter/vehicled.prom"))
    check("metrics are written, and no line to the journal", written and not sh("journalctl -q -u vehicled-metrics.service")[1], sh("journalctl -q -u vehicled-metrics.service")[1])
    code, _, errors = sh(f"dpkg -r {names()}", 300)
    check("dpkg removes them", code == 0 and not os.path.exists("/usr/bin/vehicled") and not os.path.exists("/usr/lib/vehicled") and not os.path.exists("/run/vehicled/io.vehicled"), errors)
    check("the processes are gone", sh("pgrep vehicled")[0] == 1, sh("pgrep -a vehicled")[1])
    units = sh("systemctl list-units --plain --no-legend --state=active 'vehicled*'")[1]
    check("so are the other units", not units, units)
    check("configuration and state stay", os.path.exists("/etc/vehicled/vehicled.toml") and sh("ls /var/lib/vehicled/devices/phone")[0] == 0)
    code, _, errors = install(FILES)
    check("enabled metrics and alerts run again when they are installed again", code == 0 and all(unit(name) == ("active", "enabled") for name in ("vehicled-metrics.timer", "vehicled-alert@low-battery.path")), errors)
    mount_point()
    split()
    purge()
    must("dpkg installs the single package again", install([single()])[0] == 0 and wait(lambda: unit("vehicled-history.service")[0] == "active"))
    code, _, errors = install([file for file in FILES if "/vehicled_" in file])
    check("the package vehicled alone is enough", code == 0 and wait(lambda: unit("vehicled.service")[0] == "active") and sh("vehiclectl status")[0] == 0, errors)
    check("services without a package are stopped", not glob.glob("/usr/bin/vehicled-*") and sh("pgrep vehicled-histor")[0] == 1, sh("pgrep -a vehicled")[1])
    code, _, errors = install(FILES)
    check("and the others are installed later", code == 0 and wait(lambda: unit("vehicled-history.service")[0] == "active"), errors)
    shutil.rmtree(NEXT, ignore_errors=True)


def purge():
    code, _, errors = sh(f"dpkg -P {names()}", 300)
    left = [path for path in ("/etc/vehicled/vehicled.toml", "/etc/vehicled/history.toml", "/var/lib/vehicled", "/var/lib/vehicled-history", "/etc/systemd/system/multi-user.target.wants/vehicled.service", "/etc/systemd/system/vehicled.service.wants/vehicled-history.service") if os.path.lexists(path)]
    check("dpkg purges them", code == 0 and not left, f"{left} {errors}")
    sh("rm -rf /etc/vehicled")


def mount_point():
    """Purging with state on a file system of its own."""
    must("a mounted state directory", sh("systemctl stop vehicled.socket vehicled.service && mount -t tmpfs tmpfs /var/lib/vehicled && mkdir -p /var/lib/vehicled/devices/phone")[0] == 0)
    code, _, errors = sh(f"dpkg -P {names()}", 300)
    check("purging empties it, and removes the links of alerts", code == 0 and not os.listdir("/var/lib/vehicled") and not glob.glob("/etc/systemd/system/*/vehicled*"), f"{errors} {glob.glob('/etc/systemd/system/*/vehicled*')}")
    sh("umount /var/lib/vehicled; rm -r /var/lib/vehicled /etc/vehicled /var/lib/prometheus")


def split():
    """The upgrade from the single package: files change their package, and settings, data and enabled services stay."""
    code, _, errors = install([single()])
    must("dpkg installs the single package", code == 0 and wait(lambda: unit("vehicled-history.service")[0] == "active"), errors)
    with open("/etc/vehicled/history.toml", "a") as file:
        file.write("# An owner's comment.\n")
    with open("/etc/vehicled/mqtt.toml", "a") as file:
        file.write('broker = "mqtt://127.0.0.1:1"\n')
    check("the bridge is enabled, and the history runs", sh("systemctl enable --now vehicled-mqtt")[0] == 0 and wait(lambda: os.path.exists("/var/lib/vehicled-history/history.db")), unit("vehicled-mqtt"))
    before = {name: main_pid(name) for name in ("vehicled", "vehicled-history", "vehicled-mqtt")}
    store = os.stat("/var/lib/vehicled-history/history.db").st_ino
    code, out, errors = install(FILES)
    check("an upgrade to several packages", code == 0, errors)
    check("the control socket is open to all users", sh("stat -c %a /run/vehicled/io.vehicled")[1] == "666", sh("stat -c %a /run/vehicled/io.vehicled")[1])
    check("they share no file", sh("dpkg -S /usr/bin/vehicled-history /etc/vehicled/mqtt.toml")[1].split("\n") == ["vehicled-history: /usr/bin/vehicled-history", "vehicled-mqtt: /etc/vehicled/mqtt.toml"], sh("dpkg -S /usr/bin/vehicled-history /etc/vehicled/mqtt.toml")[1])
    for name, pid in before.items():
        check(f"{name} runs the new program", wait(lambda: unit(name)[0] == "active" and main_pid(name) not in (pid, "0")) and os.readlink(f"/proc/{main_pid(name)}/exe") == f"/usr/bin/{name}", f"{unit(name)} {pid}")
        check(f"{name} stays enabled", unit(name)[1] == "enabled", unit(name))
    check("the web server stays disabled", unit("vehicled-web") == ("inactive", "disabled"), unit("vehicled-web"))
    check("changed configuration files stay", "An owner's comment" in open("/etc/vehicled/history.toml").read() and "mqtt://127.0.0.1:1" in open("/etc/vehicled/mqtt.toml").read(), os.listdir("/etc/vehicled"))
    check("none is left beside them", not [name for name in os.listdir("/etc/vehicled") if ".dpkg" in name], os.listdir("/etc/vehicled"))
    check("the history stays", os.stat("/var/lib/vehicled-history/history.db").st_ino == store)
    code, _, errors = sh("dpkg -r vehicled-mqtt", 120)
    check("removing one stops it", code == 0 and sh("pgrep vehicled-mqtt")[0] == 1, errors)
    code, _, errors = install([file for file in FILES if "/vehicled-mqtt_" in file])
    check("installed again, it is still enabled and runs", code == 0 and wait(lambda: unit("vehicled-mqtt") == ("active", "enabled")), errors or unit("vehicled-mqtt"))
    code, _, errors = sh("dpkg -P vehicled-mqtt", 120)
    check("purging one stops it", sh("pgrep vehicled-mqtt")[0] == 1, sh("pgrep -a vehicled-mqtt")[1])
    check("purging one leaves the others", code == 0 and not os.path.exists("/etc/vehicled/mqtt.toml") and os.path.exists("/etc/vehicled/history.toml") and unit("vehicled.service")[0] == "active", errors)
