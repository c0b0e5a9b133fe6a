#!/bin/sh
# Runs a simulated adapter, a daemon that polls it at 20 Hz, and vehiclectl watch, in a private temporary directory. On a terminal this is
# the full-screen view, which q leaves; elsewhere DEMO_LINES lines. With WEB=1, it serves the page instead, until Ctrl-C.
#   demo.sh DIRECTORY-OF-THE-PROGRAMS
set -eu
umask 077
programs=$1
place=$(mktemp -d "${XDG_RUNTIME_DIR:-/tmp}/vehicled-demo.XXXXXX" 2>/dev/null || mktemp -d /tmp/vehicled-demo.XXXXXX)
simulator=""
daemon=""
watcher=""
page=$(dirname "$0")/../../Sources/vehicled-web/Page

clean_up() {
  trap - EXIT INT TERM HUP
  for pid in $watcher $daemon $simulator; do kill "$pid" 2>/dev/null || true; done
  for pid in $watcher $daemon $simulator; do wait "$pid" 2>/dev/null || true; done
  rm -rf "$place"
}
trap clean_up EXIT
trap 'clean_up; exit 130' INT
trap 'clean_up; exit 143' TERM HUP

give_up() {
  echo "demo: $1" >&2
  cat "$2" >&2
  exit 1
}

# Waits at most 10 s for a command to succeed while the process runs.
wait_for() {
  tries=0
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -lt 200 ] && kill -0 "$started" 2>/dev/null || return 1
    sleep 0.05
  done
}

"$programs/vehiclesim" obd --on tcp:127.0.0.1:0 >"$place/simulator.out" 2>"$place/simulator.err" &
simulator=$! started=$!
wait_for test -s "$place/simulator.out" || give_up "the simulator did not start:" "$place/simulator.err"
link=$(head -n 1 "$place/simulator.out")

cat >"$place/vehicled.toml" <<END
[device.ev]
kind = "obd"
link = "$link"
rate = 20
END

"$programs/vehicled" --config "$place/vehicled.toml" --socket "$place/socket" --state "$place/state" 2>"$place/daemon.err" &
daemon=$! started=$!
polling() { "$programs/vehiclectl" --socket "$place/socket" get ev.rpm >/dev/null 2>&1; }
wait_for test -S "$place/socket" || give_up "the daemon did not start:" "$place/daemon.err"
wait_for polling || give_up "the daemon cannot reach the simulated car:" "$place/daemon.err"

if [ -n "${WEB:-}" ]; then
  # The program prints the link that signs in one browser.
  "$programs/vehicled-web" --daemon "$place/socket" --files "$page" --control ev >"$place/link" 2>"$place/web.err" &
  watcher=$! started=$!
  wait_for test -s "$place/link" || give_up "vehicled-web did not start:" "$place/web.err"
  echo "The page of the simulated car; Ctrl-C ends it: $(cat "$place/link")"
  if command -v xdg-open >/dev/null && [ -n "${DISPLAY:-}${WAYLAND_DISPLAY:-}" ]; then xdg-open "$(cat "$place/link")" >/dev/null 2>&1 || true; fi
  trap : INT
  wait $watcher || true
elif [ -t 1 ]; then
  # Ctrl-C ends vehiclectl as q does; this script continues.
  trap : INT
  "$programs/vehiclectl" --socket "$place/socket" watch || true
else
  # In the background, because a shell handles signals only after a foreground program has ended.
  "$programs/vehiclectl" --socket "$place/socket" watch ev.rpm ev.battery-power --count "${DEMO_LINES:-60}" &
  watcher=$!
  wait $watcher
  watcher=""
fi

cat <<END

That was a simulated car, polled at 20 Hz. For a real adapter, write these four lines to a file car.toml:

$(sed 's,^link = .*,link = "serial:/dev/ttyUSB0"    # or tcp:192.168.0.10:35000,; s,^,    ,' "$place/vehicled.toml")

then run, in two terminals:

    $programs/vehicled --config car.toml --socket /tmp/car.socket --state /tmp/car.state
    $programs/vehiclectl --socket /tmp/car.socket watch

To see the simulated car in a browser, run make demo WEB=1.
These programs are not optimised. To install vehicled, run make && sudo make install, and write the same four lines to
/etc/vehicled/vehicled.toml.
END
