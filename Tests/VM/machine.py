#!/usr/bin/env python3
"""Tests the Debian packages in a Debian guest with systemd, journald, dbus, bluetoothd and NetworkManager.

  machine.py build DIRECTORY [RELEASE [NEXT]]  creates kernel, initrd and disk image once (needs root, about three minutes), with Debian 12, or
                                               RELEASE, which is bookworm or trixie; with NEXT: a small guest that contains an upgrade to NEXT
  machine.py run DIRECTORY PACKAGES SIMULATOR  boots the guest with the packages, and SIMULATOR behind a USB serial cable, and
                                               runs scenario.py in it
  machine.py web DIRECTORY PACKAGES            boots the guest with the packages, runs web.py in it, and browser.py here
  machine.py can DIRECTORY PACKAGES ORACLE COUNT [PROGRAM…]
                                               boots the guest with the packages, and runs can.py in it, with COUNT exchanges between the
                                               program ORACLE and the kernel; the PROGRAM fastelm answers for the comparison of the links;
                                               others, linked statically, replace those of the packages (PACKAGES -: none, only the exchanges)
  machine.py release DIRECTORY PACKAGES        boots the guest with the packages, and runs release.py in it
  machine.py upgrade DIRECTORY PACKAGES        boots the small guest, runs release.py in it, which upgrades it to NEXT, and boots it again with
                                               the kernel of NEXT
  machine.py reset DIRECTORY PACKAGES COUNT    resets the guest COUNT times while it records a car (resets.py), and checks what was lost

PACKAGES is the directory with the files of `make deb`.

Uses KVM if available, otherwise emulation. The guest boots in 15 s, has no external network, and discards its changes; only the
recorded values of `reset` stay, on a disk of their own, and `upgrade` changes a copy of the disk. The exit status of `run` is that of the
scenario, or 125 if the guest did not report one."""
import io, os, random, re, shutil, signal, socket, statistics, subprocess, sys, tarfile, tempfile, threading, time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ("systemd-sysv,dbus,bluez,python3,polkitd,udev,kmod,procps,rfkill,libevdev2,libcurl4,libsqlite3-0,libdeflate0,ca-certificates,libpam-systemd,linux-image-amd64,"
            "network-manager,wpasupplicant,hostapd,dnsmasq-base,iw,iproute2,libmosquitto1,dbus-user-session,cockpit-bridge,cockpit-system,cockpit-ws,can-utils,"
            "mosquitto,mosquitto-clients")
# For the upgrade: every package takes seconds under emulation. curl makes apt replace libcurl4 with libcurl4t64.
SMALL = ("systemd-sysv,dbus,python3,udev,kmod,procps,curl,libevdev2,libcurl4,libsqlite3-0,libdeflate0,ca-certificates,libmosquitto1,mosquitto,mosquitto-clients,"
         "linux-image-cloud-amd64")
RELEASES = {"bookworm": ("3.11", {}), "trixie": ("3.13", {"libcurl4": "libcurl4t64"})}  # the version of Python, packages with another name
BUMBLE = "bumble==0.0.236"
TIMEOUT = 3000  # seconds for the whole run

UNITS = {
    "vm-disks.service": """[Unit]
DefaultDependencies=no
After=systemd-remount-fs.service
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'modprobe -a hci_vhci virtio_console; tar x -C / --no-same-owner </dev/vdb; systemd-sysusers'
""",
    "vm-air.service": """[Unit]
After=vm-sim.service
[Service]
Type=notify
Environment=PYTHONPATH=/opt/bumble PYTHONUNBUFFERED=1
ExecStart=/usr/bin/python3 /opt/vm/air.py 127.0.0.1:35000 127.0.0.1:35001
TimeoutStartSec=120
""",
    "vm-sim.service": """[Service]
ExecStart=/usr/bin/vehiclesim obd --on tcp:127.0.0.1:35000
""",
    "vm-scenario.service": """[Unit]
After=multi-user.target
[Service]
ExecStart=/bin/sh -c 'python3 -u /opt/vm/scenario.py >/dev/ttyS1 2>&1; echo "vm: exit $?" >/dev/ttyS1; systemctl poweroff -ff'
""",
}
QUIET = ("apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer e2scrub_reap.service "
         "getty@tty1.service serial-getty@ttyS0.service systemd-timesyncd.service").split()
LATER = ("NetworkManager", "NetworkManager-wait-online", "wpa_supplicant", "hostapd", "cockpit.socket", "mosquitto")  # the scenario starts them


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr)


def build(folder, release="bookworm", following=None):
    python, names = RELEASES[release]
    packages = ",".join(names.get(name, name) for name in (SMALL if following else PACKAGES).split(","))
    later = ("mosquitto",) if following else LATER
    root, wanted = folder / "root", f"{release}\n{following}\n{packages}\n{BUMBLE}\n{UNITS}\n{QUIET}\n{later}"
    if (folder / "stamp").is_file() and (folder / "stamp").read_text() == wanted:
        return
    if os.geteuid() != 0:
        sys.exit("machine.py: creating the guest needs root (debootstrap); run sudo make test-vm")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run("debootstrap", "--variant=minbase", f"--include={packages}", release, root)
    if following:
        prepare(root, release, following)
    else:
        run(sys.executable, "-m", "pip", "install", "-q", "--target", root / "opt/bumble", "--python-version", python, "--only-binary", ":all:", BUMBLE)
    units = root / "etc/systemd/system"
    for name, text in UNITS.items():
        (units / name).write_text(text)
    for target, name in (("sysinit", "vm-disks"), ("multi-user", "vm-scenario")):
        (units / f"{target}.target.wants").mkdir(exist_ok=True)
        (units / f"{target}.target.wants/{name}.service").symlink_to(f"../{name}.service")
    for name in QUIET:
        (units / name).symlink_to("/dev/null")
    run("chroot", root, "systemctl", "disable", *later)
    (root / "etc/fstab").write_text("")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/initramfs-tools/conf.d/vm").write_text("MODULES=list\nCOMPRESS=gzip\n")
    (root / "etc/initramfs-tools/modules").write_text("virtio_pci\nvirtio_blk\next4\n")
    kernel = next((root / "boot").glob("vmlinuz-*"))
    run("chroot", root, "mkinitramfs", "-o", "/boot/initrd.small", kernel.name.removeprefix("vmlinuz-"))
    shutil.copy(kernel, folder / "vmlinuz")
    shutil.copy(root / "boot/initrd.small", folder / "initrd")
    for waste in (*(() if following else ("var/cache/apt", "var/lib/apt/lists")), "usr/share/doc", "usr/share/locale"):
        shutil.rmtree(root / waste, ignore_errors=True)
    run("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", root, folder / "disk.img", "3G")
    shutil.rmtree(root)
    (folder / "stamp").write_text(wanted)


def prepare(root, release, following):
    """Gives a tree of `release` the sources of the `following` one and what apt downloads for an upgrade, so that it needs no network."""
    sources = root / "etc/apt/sources.list"
    sources.write_text(sources.read_text().replace(release, following))
    run("chroot", root, "apt-get", "clean")
    run("chroot", root, "apt-get", "-q", "-o", "Acquire::Languages=none", "update")
    run("chroot", root, "apt-get", "-qy", "--download-only", "full-upgrade")


def has_kvm():
    """Whether KVM works. The device alone is not enough: it can exist in a virtual machine without nested virtualisation."""
    return os.access("/dev/kvm", os.R_OK | os.W_OK) and bool(re.search(r"\b(vmx|svm)\b", Path("/proc/cpuinfo").read_text()))


@contextmanager
def guest(folder, job, *options, seconds=TIMEOUT, kernel="vmlinuz", initrd="initrd", disk="disk.img,snapshot=on"):
    """Boots the guest with the files of the function `job`, and ends it, at the latest after `seconds`."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        with tarfile.open(f"{place}/job.tar", "w") as tar:
            job(tar)
        accelerator = ["-accel", "kvm", "-cpu", "host"] if has_kvm() else ["-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max"]
        command = [
            "qemu-system-x86_64", *accelerator, "-smp", "2", "-m", "1024", "-display", "none", "-monitor", "none", "-no-reboot", "-nic", "none",
            "-kernel", folder / kernel, "-initrd", folder / initrd, "-serial", f"file:{folder}/console.log", "-serial", "stdio",
            "-append", "console=ttyS0 root=/dev/vda rootfstype=ext4 rw quiet panic=-1 tsc=unstable mitigations=off systemd.show_status=0",
            "-drive", f"if=virtio,format=raw,file={folder}/{disk}",
            "-drive", f"file={place}/job.tar,if=virtio,format=raw,readonly=on", *options]
        machine = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        limit = threading.Timer(seconds, machine.kill)
        limit.start()
        try:
            yield machine
        finally:
            limit.cancel()
            machine.kill()
            machine.wait()


def add_packages(tar, packages, *without):
    for package in sorted(Path(packages).glob("*.deb")):
        if package.name.split("_")[0] not in without:
            tar.add(package, f"opt/vm/packages/{package.name}")


def add_text(tar, name, text):
    member = tarfile.TarInfo(name)
    member.size = len(text)
    tar.addfile(member, io.BytesIO(text.encode()))


def test(folder, packages, simulator):
    def job(tar):
        add_packages(tar, packages)
        for name in ("air.py", "package.py", "recording.py", "scenario.py", "service.py", "steps.py", "wifi.py"):
            tar.add(HERE / name, f"opt/vm/{name}")

    adapter = subprocess.Popen([simulator, "obd", "--on", "tcp:127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    port = adapter.stdout.readline().split(":")[-1].strip()
    try:
        with guest(folder, job, "-device", "qemu-xhci", "-chardev", f"socket,id=adapter,host=127.0.0.1,port={port},reconnect=1",
                   "-device", "usb-serial,chardev=adapter,serial=A50285BI") as machine:
            return outcome(folder, machine)
    finally:
        adapter.kill()
        adapter.wait()


def outcome(folder, machine):
    """Prints the output of the scenario, and returns its exit status."""
    code = 125
    for line in machine.stdout:
        line = line.rstrip()
        if line.startswith("vm: exit "):
            code = int(line.split()[-1])
        else:
            print(line, flush=True)
    if code == 125:
        show_console(folder)
    return code


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def web(folder, packages):
    """Only Cockpit, and the port that takes the checks of the browser, are forwarded into the guest, and from loopback only."""
    import browser, web as scenario

    def job(tar):
        add_packages(tar, packages)
        for name, file in (("scenario.py", "web.py"), ("package.py", "package.py"), ("service.py", "service.py"), ("steps.py", "steps.py")):
            tar.add(HERE / file, f"opt/vm/{name}")

    cockpit, checks = free_port(), free_port()
    forwards = f"hostfwd=tcp:127.0.0.1:{cockpit}-:9090,hostfwd=tcp:127.0.0.1:{checks}-:{scenario.CHECKS[1]}"
    with guest(folder, job, "-nic", f"user,model=virtio-net-pci,restrict=on,{forwards}") as machine:
        for line in machine.stdout:
            match line.split():
                case ["vm:", "exit", code]: return int(code)
                case ["vm:", "browse"]: browser.browse(cockpit, checks, scenario.USERS, folder)
                case _: print(line.rstrip(), flush=True)
    show_console(folder)
    return 125


def can(folder, packages, oracle, count, *programs):
    def job(tar):
        if packages != "-":
            add_packages(tar, packages)
        tar.add(oracle, "opt/vm/isotp-oracle")
        for program in programs:
            tar.add(program, f"opt/vm/bin/{Path(program).name}")
        for name, file in (("scenario.py", "can.py"), ("package.py", "package.py"), ("steps.py", "steps.py")):
            tar.add(HERE / file, f"opt/vm/{name}")
        add_text(tar, "opt/vm/count", count)

    with guest(folder, job, seconds=TIMEOUT + int(count) // 50) as machine:
        return outcome(folder, machine)


def release_job(packages, phase, *without):
    def job(tar):
        add_packages(tar, packages, *without)
        for name, file in (("scenario.py", "release.py"), ("package.py", "package.py"), ("recording.py", "recording.py"), ("service.py", "service.py"), ("steps.py", "steps.py")):
            tar.add(HERE / file, f"opt/vm/{name}")
        add_text(tar, "opt/vm/phase", phase)

    return job


def release(folder, packages):
    with guest(folder, release_job(packages, "new")) as machine:
        return outcome(folder, machine)


def upgrade(folder, packages):
    """Upgrades a copy of the disk, takes the new kernel from it with its initrd, and boots the copy with them."""
    run("cp", "--sparse=always", folder / "disk.img", folder / "upgraded.img")
    codes = []
    with guest(folder, release_job(packages, "upgrade", "cockpit-vehicled"), seconds=2 * TIMEOUT, disk="upgraded.img,cache=unsafe") as machine:
        codes.append(outcome(folder, machine))
    files = subprocess.run(["debugfs", "-R", "ls -p /boot", folder / "upgraded.img"], check=True, capture_output=True, text=True).stdout
    version = max(re.findall(r"/vmlinuz-(\d+)\.(\d+)\.(\d+)([^/]*)/", files), key=lambda found: [int(number) for number in found[:3]])
    version = ".".join(version[:3]) + version[3]
    for name, copy in ((f"vmlinuz-{version}", "upgraded.vmlinuz"), (f"initrd.img-{version}", "upgraded.initrd")):
        run("debugfs", "-R", f"dump /boot/{name} {folder}/{copy}", folder / "upgraded.img")
    print(f"the guest boots again, with Linux {version}", flush=True)
    with guest(folder, release_job(packages, "rebooted", "cockpit-vehicled"), kernel="upgraded.vmlinuz", initrd="upgraded.initrd", disk="upgraded.img,cache=unsafe") as machine:
        codes.append(outcome(folder, machine))
    return max(codes)


def show_console(folder):
    print(f"machine.py: the guest ended too early; last lines of {folder}/console.log:", file=sys.stderr)
    print((folder / "console.log").read_text(errors="replace")[-2000:], file=sys.stderr)


def reset(folder, packages, count):
    """Each run of the guest prints what earlier ones have stored, then the time while it records, until it is reset at a random time."""

    def job(tar):
        # Unpacked, because dpkg would take a minute in each run.
        for package in Path(packages).glob("*.deb"):
            content = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True).stdout
            with tarfile.open(fileobj=io.BytesIO(content)) as files:
                for member in files:
                    # In the guest, /lib is a link, which a directory would replace.
                    member.name = re.sub(r"^\./lib/", "./usr/lib/", member.name)
                    if not member.isdir():
                        tar.addfile(member, files.extractfile(member) if member.isfile() else None)
        for name, file in (("scenario.py", "resets.py"), ("service.py", "service.py"), ("steps.py", "steps.py")):
            tar.add(HERE / file, f"opt/vm/{name}")

    disk = folder / "history.img"
    disk.unlink(missing_ok=True)
    run("mke2fs", "-q", "-t", "ext4", disk, "256M")
    first, last, stored, damage = {}, {}, {}, []
    for number in range(count + 1):
        due = None
        with guest(folder, job, "-drive", f"file={disk},if=virtio,format=raw") as machine:
            for line in machine.stdout:
                match line.split(maxsplit=2):
                    case ["stored", boot, time_us]:
                        stored[boot] = int(time_us)
                    case ["damage", *_]:
                        damage.append(line.strip())
                    case ["recording", boot, time_us]:
                        last[boot] = int(time_us)
                        first.setdefault(boot, last[boot])
                        due = due or time.monotonic() + random.uniform(0, 30)
                        if number == count or time.monotonic() > due:
                            break
                    case _:
                        print(line.rstrip(), flush=True)
            else:
                show_console(folder)
                return 125
        print(f"reset {number + 1} of {count}" if number < count else f"after {count} resets:", flush=True)
    # Nothing is known of the last run yet.
    lost = [(last[boot] - max(stored.get(boot, 0), first[boot])) / 1e6 for boot in list(first)[:-1]]
    print(f"lost: median {statistics.median(lost):.1f} s, at most {max(lost):.1f} s; {len(damage)} reports of damage")
    print("\n".join(damage), end="")
    return 1 if damage or max(lost) > 10 else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    match sys.argv[1:]:
        case ["build", folder, *releases]: build(Path(folder).resolve(), *releases)
        case ["run", folder, packages, simulator]: sys.exit(test(Path(folder).resolve(), packages, simulator))
        case ["web", folder, packages]: sys.exit(web(Path(folder).resolve(), packages))
        case ["can", folder, packages, oracle, count, *programs]: sys.exit(can(Path(folder).resolve(), packages, oracle, count, *programs))
        case ["release", folder, packages]: sys.exit(release(Path(folder).resolve(), packages))
        case ["upgrade", folder, packages]: sys.exit(upgrade(Path(folder).resolve(), packages))
        case ["reset", folder, packages, count]: sys.exit(reset(Path(folder).resolve(), packages, int(count)))
        case _: sys.exit(__doc__)
