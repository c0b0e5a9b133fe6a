#!/usr/bin/env python3
"""Measures the delay of Stop after a network outage, for each configuration of the socket.

    sudo python3 Tests/Bench/hole.py [SECONDS ...]      (default: 1 2 4 8 16)

Creates a network namespace and a veth pair (198.18.77.0/30, reserved for benchmarks), drives like the daemon (60 setpoints per second,
then Stop followed by a status request, repeated with a back-off), and for the outage sends the frames of both sides to a wrong MAC
address. Prints the seconds from the end of the outage until the other side has read Stop.
"""
import os
import socket
import subprocess
import sys
import threading
import time

NAME = f"hole{os.getpid()}"
HERE, THERE = "198.18.77.1", "198.18.77.2"
TCP_THIN_LINEAR_TIMEOUTS, TCP_USER_TIMEOUT, TCP_RTO_MAX_MS = 16, 18, 44
WAYS = {
    "kernel default": [],
    "TCP_THIN_LINEAR_TIMEOUTS": [(TCP_THIN_LINEAR_TIMEOUTS, 1)],
    "TCP_RTO_MAX_MS alone": [(TCP_RTO_MAX_MS, 1000)],
    "vehicled": [(TCP_RTO_MAX_MS, 1000), (TCP_USER_TIMEOUT, 3_600_000)],
}
CAR = f"""
import socket, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("{THERE}", 12345))
server.listen(1)
print("listening", flush=True)
client, _ = server.accept()
while data := client.recv(1024):
    if b"Stop" in data:
        print(time.monotonic(), flush=True)
"""


def run(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout.strip()


def neighbours(there, here):
    run(f"ip neigh replace {THERE} lladdr {there} dev {NAME}a nud permanent")
    run(f"ip netns exec {NAME} ip neigh replace {HERE} lladdr {here} dev {NAME}b nud permanent")


def measure(hole, options, real):
    car = subprocess.Popen(["ip", "netns", "exec", NAME, sys.executable, "-c", CAR], stdout=subprocess.PIPE, text=True)
    car.stdout.readline()
    link = socket.create_connection((THERE, 12345))
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in options:
            link.setsockopt(socket.IPPROTO_TCP, option, value)

        def drive(seconds):
            for _ in range(int(seconds * 60)):
                link.send(b"Gyro#$# 0.400000; 0.200000; 0.000000%^%\r\n")
                time.sleep(1 / 60)

        drive(1)
        neighbours("02:00:00:00:00:99", "02:00:00:00:00:98")
        begun = time.monotonic()
        drive(0.3)
        pause = 0.3
        while (left := begun + hole - time.monotonic()) > 0:
            link.send(b"Stop#$#%^%\r\n")
            time.sleep(0.06)
            link.send(b"Modes#$#%^%\r\n")
            time.sleep(max(0, min(pause, left - 0.06)))
            pause = min(2 * pause, 5)
        neighbours(*real)
        ended, heard = time.monotonic(), []
        reader = threading.Thread(target=lambda: heard.append(car.stdout.readline()), daemon=True)
        reader.start()
        reader.join(130)
        return f"{float(heard[0]) - ended:.2f} s" if heard and heard[0] else "never"
    except OSError as error:
        return error.strerror
    finally:
        link.close()
        car.kill()
        car.wait()


def main():
    holes = [float(text) for text in sys.argv[1:]] or [1, 2, 4, 8, 16]
    run(f"ip netns add {NAME}")
    try:
        run(f"ip link add {NAME}a type veth peer name {NAME}b netns {NAME}")
        run(f"ip addr add {HERE}/30 dev {NAME}a && ip link set {NAME}a up")
        run(f"ip netns exec {NAME} ip addr add {THERE}/30 dev {NAME}b && ip netns exec {NAME} ip link set {NAME}b up")
        real = (run(f"ip netns exec {NAME} cat /sys/class/net/{NAME}b/address"), run(f"cat /sys/class/net/{NAME}a/address"))
        for hole in holes:
            for way, options in WAYS.items():
                print(f"{hole:5.1f} s  {way:26}  {measure(hole, options, real)}", flush=True)
    finally:
        subprocess.run(["ip", "netns", "del", NAME], check=False)


if __name__ == "__main__":
    main()
