"""Helpers of all parts of the scenario: run a command, wait for a condition, report a check."""
import subprocess, sys, time, traceback

failures = []
begun = time.monotonic()


def sh(command, timeout=60):
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def check(what, seen, more=""):
    print(f"{'ok  ' if seen else 'FAIL'} {time.monotonic() - begun:6.1f} s  {what}{'  ' + str(more) if more != '' else ''}", flush=True)
    if not seen:
        failures.append(what)


class CannotGoOn(Exception):
    """A failed check on which the rest of the part depends."""


def must(what, seen, more=""):
    check(what, seen, more)
    if not seen:
        raise CannotGoOn


def part(run):
    """Runs one part. An exception counts as a failure; the next part runs in any case."""
    try:
        run()
    except CannotGoOn:
        print(f"     the rest of {run.__module__}.{run.__name__} is skipped", flush=True)
    except Exception:
        check(f"{run.__module__}.{run.__name__} completes", False, traceback.format_exc(limit=-2).strip().replace("\n", " | "))


def leave():
    if failures:
        print(sh("journalctl -u vehicled -u vehicled.socket -u vehicled-history -u vehicled-mqtt -u vehicled-web -u bluetooth -u vm-air -u NetworkManager --no-pager -o short-monotonic | tail -250")[1])
    print("\n".join([f"{len(failures)} failures:", *(f"  {what}" for what in failures)]) if failures else "all checks passed", flush=True)
    sys.exit(min(len(failures), 99))


def wait(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return False
