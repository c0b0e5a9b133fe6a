#!/bin/sh
# Installs the build and test dependencies on Debian 12 or 13: system packages, and a Python venv with the programs that the tests talk to.
# Does nothing if none is missing. It does not install a Swift toolchain.
set -eu
cd "$(dirname "$0")/../.."

build="g++ make python3 git ca-certificates binutils pkg-config libsystemd-dev libdbus-1-dev libevdev-dev libtomlplusplus-dev libcurl4-openssl-dev libssl-dev libsqlite3-dev libdeflate-dev libmosquitto-dev"
toolchain="libedit2 libncurses6 libsqlite3-0 libxml2"
tests="chromium cockpit-bridge cockpit-ws python3-venv systemd procps dbus socat gpsd mosquitto mosquitto-clients openssl victoria-metrics"
package="debhelper lintian dpkg-dev fakeroot"
guest="qemu-system-x86 debootstrap e2fsprogs"
home_assistant="debootstrap mosquitto mosquitto-clients dbus iproute2"
python_packages="varlink==31.0.0 ELM327-emulator==4.0.0 prometheus-client==0.26.0 pyte==0.8.2 amqtt==0.12.1 paho-mqtt==2.1.0 playwright==1.65.2 python-can[serial]==4.6.1 can-isotp==2.0.7 udsoncan==1.26.1 cantools==45.1.0"
bench_packages="obd==0.7.3"

if ! command -v swift >/dev/null; then
  echo "setup: swift not found in PATH or /opt/swift/usr/bin; install Swift 6.3 from https://www.swift.org/install/linux" >&2
  exit 1
fi

case "${1:-all}" in
  build) wanted="$build $toolchain" ;;
  bench) wanted="$build $toolchain python3-venv mosquitto openssl iproute2" ;;
  soak) wanted="$build $toolchain python3-venv mosquitto chromium" ;;
  all) wanted="$build $toolchain $tests" ;;
  deb) wanted="$build $toolchain $package" ;;
  vm) wanted="$guest" ;;
  home-assistant) wanted="$home_assistant" ;;
  *) echo "setup: unknown argument $1; usage: setup.sh [all|build|bench|soak|deb|vm|home-assistant]" >&2; exit 2 ;;
esac

missing=""
for package in $wanted; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -n "$missing" ]; then
  root=""
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: packages are missing; as root, run: apt-get install$missing" >&2
      exit 1
    fi
    root=sudo
  fi
  echo "setup: installing$missing" >&2
  $root apt-get update -q
  # shellcheck disable=SC2086 # split into words
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
fi

# Creates a Python venv with these packages.
make_venv() {
  if [ "$(cat "$1/packages" 2>/dev/null)" != "$2" ]; then
    echo "setup: creating $1 with $2" >&2
    python3 -m venv --clear "$1"
    # shellcheck disable=SC2086 # split into words
    "$1/bin/pip" install -q --disable-pip-version-check $2
    echo "$2" >"$1/packages"
  fi
}

case "${1:-all}" in
  all | soak) make_venv .venv "$python_packages" ;;
  bench) make_venv .build/bench/python "$bench_packages" ;;
esac
