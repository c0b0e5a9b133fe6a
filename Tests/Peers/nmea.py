"""A GPS receiver that sends NMEA 0183 to one TCP client after the other, one fix per second, standing at one place. Prints its port.
A line on standard input sets the state: `fix` or `void`. Ends with standard input."""
import socket, sys, threading, time

state = "fix"


def sentence(body):
    check = 0
    for byte in body.encode():
        check ^= byte
    return f"${body}*{check:02X}\r\n"


def epoch(second):
    at = f"12{second // 60 % 60:02}{second % 60:02}.00"
    place = "6325.8000,N,01023.4000,E"  # 63.43° N, 10.39° E
    used = ",".join(f"{number:02}" for number in range(1, 9))
    if state == "fix":
        yield f"GPRMC,{at},A,{place},10.00,90.0,010626,,"
        yield f"GPGGA,{at},{place},1,08,1.0,123.0,M,40.0,M,,"
        yield f"GPGSA,A,3,{used},,,,,1.8,1.0,1.5"
    else:
        yield f"GPRMC,{at},V,,,,,,,010626,,"
        yield f"GPGGA,{at},,,,,0,00,,,M,,M,,"
        yield "GPGSA,A,1,,,,,,,,,,,,,,,"
    for part in (0, 4):
        satellites = ",".join(f"{number:02},45,{number * 40:03},30" for number in range(part + 1, part + 5))
        yield f"GPGSV,2,{part // 4 + 1},08,{satellites}"


def serve(server):
    second = 0
    while True:
        client, _ = server.accept()
        try:
            while True:
                client.sendall("".join(map(sentence, epoch(second))).encode())
                second += 1
                time.sleep(1)
        except OSError:
            client.close()


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
threading.Thread(target=serve, args=(server,), daemon=True).start()
for line in sys.stdin:
    state = line.strip()
